"""A store with rows for every view of the page, at four ticks."""

from __future__ import annotations

from pathlib import Path

from headroom.planning.migration.progress.progress import MigrationVerdict
from headroom.schemas.keys import Role
from tests.unit.builders.dashboard_store import DashboardStore, event, leader_row, new_replica
from tests.unit.builders.migration_progress import progress, switched
from tests.unit.builders.throttle_status import partition, status

_TICKS, _APART_MS = 4, 60_000
# Of one replica, of one pair of brokers and of one partition nothing is known at this one.
_UNKNOWN_TICK = 3


def make_views(folder: Path, last_ms: int) -> list[int]:
    """Write the store, in which no two ticks have the same figures.

    Args:
        folder: new folder of the store.
        last_ms: newest tick, epoch milliseconds.

    Returns:
        Its ticks, epoch milliseconds.
    """
    store = DashboardStore(folder)
    ticks_ms = [last_ms - n * _APART_MS for n in reversed(range(_TICKS))]
    for n, tick_ms in enumerate(ticks_ms, start=1):
        _write_tick(store, n, tick_ms)
    first_ms, second_ms, third_ms, _ = ticks_ms
    store.alerts(event("a", "firing", first_ms, subject="broker 1"), event("b", "firing", first_ms, subject="broker 2"))
    store.alerts(event("a", "resolved", second_ms, subject="broker 1"))
    store.alerts(event("b", "resolved", third_ms, subject="broker 2", severity="warning"))
    for n, tick_ms in enumerate(ticks_ms):
        store.deliveries({"alert_id": "a", "attempt": n + 1, "answer": f"answer {n}", "delivery_ms": tick_ms})
    for n, tick_ms in enumerate(ticks_ms):
        store.journal({"run_id": f"r{n}", "at_ms": tick_ms}, {"run_id": f"r{n}", "at_ms": tick_ms + 9, "state": "done"})
    store.journal({"run_id": "r0", "seq": 9, "at_ms": third_ms, "subject": "broker 2 as leader", "state": "failed"})
    return ticks_ms


def _write_tick(store: DashboardStore, n: int, tick_ms: int) -> None:
    is_unknown = n == _UNKNOWN_TICK
    parts = [partition(0, topic=f"t{n}")]
    store.replicas(
        new_replica(0, remaining_bytes=n * 1_000_000, lag_offsets=10 * n, eta_s=60.0 * n),
        new_replica(1, "in_sync", catch_up_bytes_per_s=1e6 * n),
        new_replica(2, "never", write_bytes_per_s=3e6 * n, leader=n),
        *([new_replica(3, "no_data", remaining_bytes=None, lag_offsets=None)] if is_unknown else []),
        tick_ms=tick_ms,
    )
    store.leaders(leader_row(1, 100 + n, 30 + n), leader_row(2, 50, n, write_bytes_per_s=1e6 * n), tick_ms=tick_ms)
    lags = [(3, 1, "t", 0, 5 * n), (3, 1, "t", 1, None), (3, 2, "u", 0, 0), (2, 1, "u", 1, n)]
    store.lags(*lags, *([(4, 1, "t", 2, None)] if is_unknown else []), tick_ms=tick_ms)
    lost = None if is_unknown else 0
    late = progress(0, left_offsets=1000 * n, at_risk_offsets=n, lost_offsets=lost, verdict=MigrationVerdict.LATE)
    store.migrations(late, switched(1, end_offset=500 + n), tick_ms=tick_ms)
    store.throttles(
        status(1, Role.LEADER, 10 + n, 8 + n, *parts), status(3, Role.FOLLOWER, 12, 20 - n, *parts), tick_ms=tick_ms
    )
