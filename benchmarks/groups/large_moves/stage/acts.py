"""Actions on the cluster that several scenes share, and checks of their effect in Kafka."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from contextlib import suppress

from benchmarks.fixtures.bench_cluster import await_true, failure
from benchmarks.groups.large_moves.stage.groups import Group
from benchmarks.groups.large_moves.stage.stage import SceneContext
from benchmarks.groups.large_moves.stage.topic import Rates
from headroom.schemas.errors import HeadroomError
from headroom.schemas.keys import Role

_MOVE_END_S = 150.0
_IN_SYNC_S = 150.0
# Far above all write rates of scenes, so that a move ends within a minute.
FAST_BYTES_PER_S = 60e6


def start_move(context: SceneContext, rates: Rates, chosen: Collection[int] | None = None) -> None:
    """Start the move of some partitions, or of all, under rates by broker and role. Brokers that are down get none."""
    count = sum(group.count for group in context.topic.groups if group.moves) if chosen is None else len(chosen)
    context.note(f"move of {count} partition(s) starts; rates in MB/s: {_rates_text(rates)}")
    context.topic.start_move(rates, chosen)


def require_losing(context: SceneContext, length_s: float, chosen: Collection[Group] | None = None) -> None:
    """Wait for a time in which new replicas of some groups, or of all, must fall further behind or get nothing.

    Raises:
        HeadroomError: the new replicas gained, so the fault did not happen.
    """
    before = context.topic.logs.missing_bytes(chosen)
    context.observe(length_s)
    after = context.topic.logs.missing_bytes(chosen)
    context.note(f"{before / 1e6:.1f} MB to copy, {length_s:.0f} s later {after / 1e6:.1f} MB")
    if after < before:
        raise failure(f"new replicas gained, though the throttle is too low: {before} to {after} bytes")


def await_end(context: SceneContext, deadline_s: float) -> bool:
    """Return whether the move ended in time."""
    with suppress(HeadroomError):
        await_true(lambda: not context.topic.moving(), deadline_s, "the end of the move")
        context.note("the move has ended")
        return True
    return False


def end_healthy(context: SceneContext, deadline_s: float) -> None:
    """Return once a healthy move has ended.

    Raises:
        HeadroomError: it did not end in time.
    """
    if not await_end(context, deadline_s):
        raise failure("a healthy move did not end")


def finish_fast(context: SceneContext, rates: Mapping[tuple[int, Role], float] | None = None) -> None:
    """Set rates under which the move ends soon, high ones on all live brokers if None, and return when it has ended.

    Raises:
        HeadroomError: the move did not end.
    """
    alive = [broker for broker in context.bench.brokers if broker not in context.topic.down]
    context.topic.set_rates(rates or {(b, role): FAST_BYTES_PER_S for b in alive for role in Role})
    context.note("rates raised for the end of the move")
    await_true(lambda: not context.topic.moving(), _MOVE_END_S, f"the end of the move of {context.topic.name}")
    context.note("the move has ended")


def await_in_sync(context: SceneContext, broker: int) -> None:
    """Return once every replica of a broker is in sync, except for adding replicas."""
    await_true(lambda: not context.topic.out_of_sync(broker), _IN_SYNC_S, f"replicas of broker {broker} in sync")
    context.note(f"the replicas of broker {broker} are in sync")


def _rates_text(rates: Rates) -> str:
    """Return rates in MB/s as text. A rate that all brokers share is shown once."""
    by_role = {role: {b: f"{rate / 1e6:.2f}" for (b, of), rate in sorted(rates.items()) if of is role} for role in Role}
    texts = []
    for role, by_broker in by_role.items():
        same = len(by_broker) > 1 and len(set(by_broker.values())) == 1
        each = next(iter(by_broker.values())) if same else ", ".join(f"{b}: {rate}" for b, rate in by_broker.items())
        texts.append(f"{role.value} {each or 'none'}")
    return "; ".join(texts)
