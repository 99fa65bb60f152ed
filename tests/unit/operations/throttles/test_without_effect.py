"""Throttles of running moves that limit nothing: each with its reason, the rate in force and the observed one."""

from __future__ import annotations

import json
from dataclasses import replace
from typing import Any

import pytest

from headroom.cluster.model import BrokerThrottles, Partition, TopicConfig
from headroom.operations.throttles.needs.throttle_need import MoveNeed, NeedsSource, ThrottleNeeds
from headroom.operations.throttles.without_effect import ThrottleWithoutEffect, throttles_without_effect
from headroom.planning.throttles.effect import NoEffect
from headroom.schemas.keys import Role
from tests.unit.builders.throttle_views import DEFAULT, MB, MOVING, NONE, OWN, SILENT, FakeCluster, run, view_of

NOTHING = ThrottleNeeds()
# t-0 and t-1 move from broker 1, which leads them, to 3; broker 2 is an in-sync follower.
BOTH = (MOVING, Partition("t", 1, 1, 0, (1, 2, 3), (1, 2), (), adding=(3,)))
BARE = {"t": TopicConfig(None, None, compacted=False)}
HIGH = replace(OWN, leader_bytes_per_s=5_000 * MB, follower_bytes_per_s=5_000 * MB)


def need(broker: int, role: str, copied_mb: float | None, verdict: str = "catching_up", **fields: Any) -> MoveNeed:
    known = MoveNeed(broker, role, 5 * MB, 2 * MB, 4 * MB, 4 * MB, verdict, 1, ())
    return replace(known, copied_bytes_per_s=None if copied_mb is None else copied_mb * MB, **fields)


def needs(*of_roles: MoveNeed) -> ThrottleNeeds:
    return ThrottleNeeds(NeedsSource.LIVE, None, of_roles)


def reasons(found: tuple[ThrottleWithoutEffect, ...]) -> list[tuple[int, Role, NoEffect]]:
    return [(one.broker, one.role, one.reason) for one in found]


def test_rates_that_no_list_names_limit_nothing() -> None:
    view = view_of({1: OWN, 2: OWN, 3: OWN}, configs=BARE)
    found = throttles_without_effect(view, needs(need(1, "leader", 12), need(3, "follower", None)))
    # Broker 2 follows in sync, and broker 3 leads nothing.
    assert reasons(found) == [(1, Role.LEADER, NoEffect.NOT_LISTED), (3, Role.FOLLOWER, NoEffect.NOT_LISTED)]
    assert found[0].text == (
        "Broker 1 as leader: rate in force 5.00 MB/s, observed 12.00 MB/s: it limits nothing, because no "
        "leader.replication.throttled.replicas names what it sends (t-0)."
    )
    assert "Broker 3 as destination: rate in force 5.00 MB/s, observed unknown: it limits nothing" in found[1].text


def test_lists_of_other_brokers_and_partitions_name_nothing_of_it() -> None:
    others = {"t": TopicConfig("0:2,7:1", "0:4", compacted=False)}
    found = throttles_without_effect(view_of({1: OWN, 3: OWN}, configs=others), NOTHING)
    assert [one.reason for one in found] == [NoEffect.NOT_LISTED] * 2


def test_a_list_that_names_some_limits_only_these() -> None:
    configs = {"t": TopicConfig("0:1", "0:3,1:3", compacted=False)}
    (found,) = throttles_without_effect(view_of({1: OWN, 3: OWN}, BOTH, configs), NOTHING)
    assert (found.reason, found.copies, found.unlisted_copies) == (NoEffect.PARTLY_LISTED, 2, 1)
    assert "it does not limit 1 of the 2 replicas that it sends" in found.text
    assert "names them (t-1)" in found.text


def test_a_cluster_default_that_a_higher_own_rate_overrides_limits_nothing_there() -> None:
    default = replace(DEFAULT, leader_bytes_per_s=2 * MB)
    (found,) = throttles_without_effect(view_of({1: OWN}, default=default), NOTHING)
    assert (found.broker, found.reason, found.default_bytes_per_s) == (1, NoEffect.OVERRIDDEN, 2 * MB)
    why = "the cluster default of 2.00 MB/s limits nothing here, because the broker has its own rate."
    assert found.text.endswith(why)
    # A lower own rate limits more than the default.
    assert throttles_without_effect(view_of({1: OWN}, default=DEFAULT), NOTHING) == ()


def test_a_rate_in_force_from_the_cluster_default_says_so() -> None:
    (found,) = throttles_without_effect(view_of({1: DEFAULT}, configs=BARE, default=DEFAULT), NOTHING)
    assert "rate in force 7.00 MB/s (cluster default), observed" in found.text


def test_a_rate_of_another_unit_limits_nothing() -> None:
    view = view_of({1: HIGH, 3: HIGH})
    found = throttles_without_effect(view, needs(need(1, "leader", 100), need(3, "follower", 100)))
    assert [one.reason for one in found] == [NoEffect.FAR_ABOVE] * 2
    assert found[0].text == (
        "Broker 1 as leader: rate in force 5,000 MB/s, observed 100 MB/s: it limits nothing, because it is 50 times "
        "what is observed; its unit may be wrong."
    )
    # The leader limits the same copies, so the high rate does no harm.
    limited = view_of({1: OWN, 3: HIGH})
    assert throttles_without_effect(limited, needs(need(1, "leader", 4.8), need(3, "follower", 4.8))) == ()


def test_more_observed_than_the_rate_lets_through_is_named() -> None:
    (found,) = throttles_without_effect(view_of({1: OWN}), needs(need(1, "leader", 12)))
    assert (found.reason, found.observed_bytes_per_s) == (NoEffect.EXCEEDED, 12 * MB)
    assert "rate in force 5.00 MB/s, observed 12.00 MB/s: it does not hold" in found.text
    # In-sync followers are counted and never held back: the throttle is too low, and limits all the same.
    starved = need(1, "leader", 0, verdict="starved", quota_bytes_per_s=12.0 * MB)
    assert throttles_without_effect(view_of({1: OWN}), needs(starved)) == ()


@pytest.mark.parametrize(
    ("rates", "configs"),
    [
        # As it should be; without a rate; not reported; lists not read.
        ({1: OWN, 3: OWN}, None),
        ({1: NONE}, BARE),
        ({1: SILENT}, BARE),
        ({1: OWN}, {}),
        ({1: OWN}, {"t": TopicConfig("0;1", "0:3", compacted=False)}),
        # It takes no part.
        ({4: OWN}, BARE),
    ],
)
def test_what_limits_or_is_unknown_is_not_named(
    rates: dict[int, BrokerThrottles], configs: dict[str, TopicConfig] | None
) -> None:
    assert throttles_without_effect(view_of(rates, configs=configs), NOTHING) == ()


def test_a_new_replica_on_a_dead_broker_copies_nothing() -> None:
    assert throttles_without_effect(view_of({1: OWN}, configs=BARE, down=(3,)), NOTHING) == ()


def test_show_has_a_line_and_a_json_key(monkeypatch: pytest.MonkeyPatch) -> None:
    cluster = FakeCluster(view_of({1: OWN}, configs=BARE))
    cluster.needs = needs(need(1, "leader", 12, quota_bytes_per_s=0.0))
    cluster.install(monkeypatch)
    assert "\nBroker 1 as leader: rate in force 5.00 MB/s, observed 12.00 MB/s: it limits" in run("show").stdout
    found = json.loads(run("show", "--format", "json").stdout)
    (one,) = found["without_effect"]
    assert one.pop("text").startswith("Broker 1 as leader")
    assert one == {
        "broker": 1,
        "role": "leader",
        "reason": "not_listed",
        "throttle_bytes_per_s": 5 * MB,
        "throttle_source": "broker",
        "observed_bytes_per_s": 12 * MB,
        "copies": 1,
        "unlisted_copies": 1,
        "partitions": [{"topic": "t", "partition": 0}],
        "default_bytes_per_s": None,
    }
    (of_broker,) = found["needs"]["brokers"]
    assert (of_broker["copied_bytes_per_s"], of_broker["quota_bytes_per_s"]) == (12 * MB, 0.0)


def test_show_without_such_throttles_has_no_line(monkeypatch: pytest.MonkeyPatch) -> None:
    FakeCluster(view_of({1: OWN, 3: OWN})).install(monkeypatch)
    assert "rate in force" not in run("show").stdout
    assert json.loads(run("show", "--format", "json").stdout)["without_effect"] == []
