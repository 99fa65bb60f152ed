"""Throttle views, and a fake cluster that records the changes of throttle commands."""

from __future__ import annotations

from collections.abc import Collection, Mapping

import pytest
from click.testing import CliRunner, Result

from headroom.cli.throttle import apply as throttle_apply
from headroom.cli.throttle import clear as throttle_clear
from headroom.cli.throttle import command as throttle_commands
from headroom.cluster.live.throttle_state import ThrottleState
from headroom.cluster.log_dirs.describe import LogDirsReading
from headroom.cluster.model import Broker, BrokerThrottles, Partition, Snapshot, TopicConfig
from headroom.cluster.throttles.rate_change import RatesError
from headroom.operations.throttles import applying, clearing
from headroom.operations.throttles.needs.throttle_need import ThrottleNeeds
from headroom.planning.throttles.replica_lists import TopicLists
from headroom.schemas.config import Settings
from headroom.schemas.errors import HeadroomError
from headroom.schemas.keys import Role

MB = 1_000_000
NONE = BrokerThrottles(True, None, None, "none", "none", None, "none")
OWN = BrokerThrottles(True, 5 * MB, 5 * MB, "broker", "broker", None, "none")
DEFAULT = BrokerThrottles(True, 7 * MB, None, "default", "none", None, "none")
SILENT = BrokerThrottles(known=False)
STILL = Partition("still", 0, 4, 0, (4, 3), (4, 3), ())
MOVING = Partition("t", 0, 1, 0, (1, 2, 3), (1, 2), (), adding=(3,))
LISTED = TopicConfig("0:1,0:2", "0:3", compacted=False)
UNLISTED = TopicConfig(None, None, compacted=False)


def view_of(
    rates: dict[int, BrokerThrottles] | None = None,
    partitions: tuple[Partition, ...] = (STILL, MOVING),
    configs: dict[str, TopicConfig] | None = None,
    down: tuple[int, ...] = (),
    default: BrokerThrottles = NONE,
) -> ThrottleState:
    """Return a view of brokers 1 to 4; a broker that is down reports no rates."""
    rates = dict.fromkeys((1, 2, 3, 4), NONE) | (rates or {}) | dict.fromkeys(down, SILENT)
    brokers = {b: Broker(b, f"broker{b}", 9092, b not in down) for b in rates}
    configs = {"t": LISTED, "still": UNLISTED} if configs is None else configs
    return ThrottleState(Snapshot(brokers, {p.name: p for p in partitions}, {}, configs), rates, default)


class FakeCluster:
    """A cluster whose throttles can be read and changed; brokers in ``hanging`` apply no change.

    Attributes:
        changes: requested changes, in order.
        needs: needs of the running moves.
        log_dirs: log directories of the brokers with a rate for them.
        refusing: topics that refuse new list entries.
    """

    def __init__(self, view: ThrottleState) -> None:
        self.view = view
        self.hanging: set[int] = set()
        self.changes: list[object] = []
        self.needs = ThrottleNeeds()
        self.log_dirs = LogDirsReading({}, {})
        self.refusing: set[str] = set()

    def read_throttles(self, settings: Settings) -> ThrottleState:
        return self.view

    def read_limited_log_dirs(self, settings: Settings, view: ThrottleState) -> LogDirsReading:
        return self.log_dirs

    def read_needs(
        self, settings: Settings, view: ThrottleState, reading: LogDirsReading, measure: bool, on_step: object
    ) -> ThrottleNeeds:
        return self.needs

    def append_lists(self, settings: Settings, entries: Mapping[str, TopicLists], on_step: object) -> list[str]:
        self.changes.append({topic: (lists.leader, lists.follower) for topic, lists in entries.items()})
        if self.refusing & entries.keys():
            raise HeadroomError("topic t", "the configuration was not changed", "Look.")
        return sorted(entries)

    def apply_rates(
        self, settings: Settings, rates: Mapping[tuple[int, str], int], on_step: object
    ) -> dict[int, BrokerThrottles]:
        self.changes.append(rates)
        brokers = {broker for broker, _ in rates}
        after = {b: self._after(b, rates) for b in sorted(brokers - self.hanging)}
        self._require_answers(brokers, after)
        return after

    def _after(self, broker: int, rates: Mapping[tuple[int, str], int]) -> BrokerThrottles:
        now = vars(self.view.of(broker))
        ours = {f"{role}_bytes_per_s": rate for (b, role), rate in rates.items() if b == broker}
        return BrokerThrottles(**{**now, **ours})

    def clear_rates(self, settings: Settings, brokers: tuple[int, ...], default: bool, on_step: object) -> None:
        self.changes.append((brokers, default))
        self._require_answers(set(brokers), {})

    def clear_lists(self, settings: Settings, roles: Mapping[str, Collection[Role]], on_step: object) -> None:
        self.changes.append({topic: tuple(of_topic) for topic, of_topic in roles.items()})

    def _require_answers(self, brokers: set[int], after: Mapping[int, BrokerThrottles]) -> None:
        if brokers & self.hanging:
            raise RatesError(f"broker {brokers & self.hanging}", "no answer", "Look.", after)

    def install(self, monkeypatch: pytest.MonkeyPatch) -> None:
        """Put this cluster behind the commands."""
        names = ("read_throttles", "read_limited_log_dirs", "read_needs", "append_lists", "apply_rates")
        for module in (throttle_commands, throttle_apply, throttle_clear, applying, clearing):
            for name in (*names, "clear_rates", "clear_lists"):
                if hasattr(module, name):
                    monkeypatch.setattr(module, name, getattr(self, name))
        monkeypatch.setenv("HEADROOM_CLUSTER__BOOTSTRAP_SERVERS", "broker1:9092")


def run(*arguments: str) -> Result:
    """Return the result of ``headroom throttle`` with these arguments."""
    return CliRunner().invoke(throttle_commands.throttle, arguments)
