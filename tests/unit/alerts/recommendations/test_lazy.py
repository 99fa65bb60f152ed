"""What is worked out when it is read: once, not sooner, and of the tick that it is of."""

from __future__ import annotations

import gc
import json
import weakref
from typing import Any

import pytest

from headroom.alerts.engine import AlertEngine
from headroom.alerts.inputs.throttle_status import LeadershipRisk, ThrottleStatus
from headroom.alerts.recommendations import throttle_raise
from headroom.alerts.recommendations.recommendation import Action
from headroom.alerts.recommendations.throttle_raise import ThrottleChoice, ThrottleRaise
from headroom.planning.finish import finish_time as duration
from headroom.schemas.alerts import AlertEvent
from headroom.schemas.config import AlertSettings, ClusterSettings, Settings
from headroom.schemas.keys import Role
from tests.unit.builders.finish_times import finish_s
from tests.unit.builders.throttle_status import MB, TICK_MS, partition, status


def raised(made: list[str], monkeypatch: pytest.MonkeyPatch) -> ThrottleRaise:
    """A recommendation that notes what is worked out, in its order."""

    def noting(name: str) -> None:
        compute = getattr(throttle_raise, name)

        def noted(*args: Any) -> Any:
            made.append(name)
            return compute(*args)

        monkeypatch.setattr(throttle_raise, name, noted)

    for name in ("finish", "raise_commands", "_per_broker"):
        noting(name)

    def choose() -> ThrottleChoice:
        made.append("choose")
        return ThrottleChoice(Action.RAISE_THROTTLE, 9_000_000)

    return ThrottleRaise(choose, [too_low(50)], "broker1:9092", None, ())


def test_a_recommendation_is_computed_when_read_and_costly_values_once(monkeypatch: pytest.MonkeyPatch) -> None:
    made: list[str] = []
    lazy = raised(made, monkeypatch)
    assert made == []
    assert (lazy.action, lazy.throttle_bytes_per_s, lazy.action) == (Action.RAISE_THROTTLE, 9_000_000, lazy.action)
    assert made == ["choose"]
    assert lazy.per_broker is lazy.per_broker
    assert lazy.finish is lazy.finish
    assert made == ["choose", "_per_broker", "finish"]


def test_read_as_a_whole_each_value_is_made_once(monkeypatch: pytest.MonkeyPatch) -> None:
    made: list[str] = []
    lazy = raised(made, monkeypatch)
    whole = lazy.to_json()
    assert made == ["choose", "_per_broker", "finish", "raise_commands"]
    assert lazy.to_json() == whole == raised([], monkeypatch).to_json()


class Simulations:
    """An alert engine that counts quota simulations."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch, **alerts: Any) -> None:
        self.count = 0
        copied_s = duration.copied_s

        def counted(*args: Any) -> float | None:
            self.count += 1
            return copied_s(*args)

        monkeypatch.setattr(duration, "copied_s", counted)
        cluster = ClusterSettings(name="c", bootstrap_servers="broker1:9092")
        settings = Settings(cluster=cluster, alerts=AlertSettings(**{"hold_s": 3, "resolve_s": 2, **alerts}))
        self.engine = AlertEngine(settings, lambda: TICK_MS)

    def tick(self, second: int, *statuses: ThrottleStatus) -> list[AlertEvent]:
        return self.engine.evaluate("c", TICK_MS + second * 1000, statuses)

    def states(self, second: int, *statuses: ThrottleStatus) -> tuple[list[str], bool]:
        """The states of the events that a tick brings, and whether a quota was played forward for them."""
        before = self.count
        return [event.state for event in self.tick(second, *statuses)], self.count > before


def too_low(remaining_mb: float, required_mb: float = 4) -> ThrottleStatus:
    """A leader whose throttle of 3 MB/s is too low."""
    counted = {"remaining_bytes": round(remaining_mb * MB), "used_bytes_per_s": 3 * MB}
    return status(1, Role.LEADER, 3, required_mb, partition(), **counted)


def at_risk() -> list[ThrottleStatus]:
    """A throttle of 9 MB/s that is enough until broker 1 leads a partition of 6 MB/s more."""
    leader = status(1, Role.LEADER, 9, 4, partition())
    return [leader, status(1, Role.FOLLOWER, 9, 0, limited=0, takeover=LeadershipRisk(6 * MB, "t", 1, 2))]


@pytest.mark.parametrize("finish_within", [None, 100.0])
def test_a_finish_is_worked_out_for_events_alone(monkeypatch: pytest.MonkeyPatch, finish_within: float | None) -> None:
    simulations = Simulations(monkeypatch, finish_within=finish_within)
    results = [simulations.states(second, too_low(50 + second)) for second in range(3)]
    # Pending, and then only pending still.
    assert results == [(["pending"], True), ([], False), ([], False)]
    assert simulations.states(3, too_low(53)) == (["firing"], True)
    # While it stands it is compared by its throttle, in which a deadline is played for.
    assert simulations.states(4, too_low(54)) == simulations.states(5, too_low(54)) == ([], finish_within is not None)
    # 8 MB/s are more than 4 x 1.15.
    assert simulations.states(6, too_low(54, required_mb=8)) == (["firing"], True)


def test_the_finish_of_a_throttle_at_risk_is_computed_only_for_its_events(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    simulations = Simulations(monkeypatch)
    results = [simulations.states(second, *at_risk()) for second in range(6)]
    assert results == [(["pending"], True), ([], False), ([], False), (["firing"], True), ([], False), ([], False)]


def test_findings_of_one_tick_share_one_advice(monkeypatch: pytest.MonkeyPatch) -> None:
    def simulations(*statuses: ThrottleStatus) -> int:
        simulations = Simulations(monkeypatch, hold_s=0)
        assert [event.state for event in simulations.tick(0, *statuses)] == [*["pending", "firing"] * len(statuses)]
        return simulations.count

    came = partition(1, leader=2, previous_leader=5, switch_tick_ms=TICK_MS)
    other = status(2, Role.LEADER, 3, 4, came)
    one, two = simulations(too_low(50)), simulations(too_low(50), other)
    assert one == two > 0


def test_the_finish_in_an_event_is_computed_from_its_own_tick(monkeypatch: pytest.MonkeyPatch) -> None:
    simulations = Simulations(monkeypatch)
    statuses = [too_low(remaining_mb) for remaining_mb in (20, 23, 24, 30)]
    events = [event for second, one in enumerate(statuses) for event in simulations.tick(second, one)]
    assert [event.state for event in events] == ["pending", "firing"]
    before = [(float(age), {(1, Role.LEADER): one.load}) for age, one in enumerate(statuses[2::-1], 1)]
    # 4 MB/s x 1.2
    promised = [finish_s([statuses[0].load], 4_800_000), finish_s([statuses[3].load], 4_800_000, before)]
    assert [json.loads(event.recommendation)["finish_s"] for event in events] == promised
    assert promised[0] != promised[1] != finish_s([statuses[3].load], 4_800_000)


def test_recommendations_that_are_not_read_keep_no_tick_in_memory(monkeypatch: pytest.MonkeyPatch) -> None:
    made: list[weakref.ref[ThrottleRaise]] = []
    make = ThrottleRaise.__init__

    def noted(lazy: ThrottleRaise, *args: Any) -> None:
        made.append(weakref.ref(lazy))
        make(lazy, *args)

    monkeypatch.setattr(ThrottleRaise, "__init__", noted)
    simulations = Simulations(monkeypatch)
    for second in range(5):
        simulations.tick(second, too_low(50))
    gc.collect()
    # One of each tick.
    assert len(made) == 5
    assert [lazy() for lazy in made] == [None] * len(made)
