"""Leader imbalance in Spark is what counting by hand gives, on random clusters and in the cases that count."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

import pytest
from pyspark.sql import DataFrame, Row, SparkSession

from headroom.planning.elections import planner as planning
from headroom.schemas.keys import TopicPartition
from headroom.schemas.tables import LEADER_IMBALANCE
from headroom.streaming.transforms.decode import alert_messages, message_rows, with_headers
from headroom.streaming.transforms.gold import as_table
from headroom.streaming.transforms.leaders.imbalance import ImbalanceInputs, leader_imbalance
from headroom.streaming.transforms.tick_status import rows_of
from tests.spark.cases import Cases, Given, Results, by_case, records_of
from tests.spark.leaders import alert_partition, broker_rows, history, random_clusters
from tests.spark.ticks import message, records
from tests.support.random_clusters import BROKERS
from tests.support.random_leaders import Broker, Leadership, PartitionState

SETTING = 0.1
WELL = Broker(alive=True, metered=True, reads=2, percentage=None)
Messages = list[dict[str, Any]]
RATES = [f"{share}{what}_bytes_per_s" for what in ("write", "read") for share in ("", "preferred_")]


def imbalance(raw: DataFrame) -> list[Row]:
    headers = with_headers(raw).where("reason IS NULL")
    kinds = (message_rows(headers, kind) for kind in ("leaders", "logs", "meters"))
    rows = leader_imbalance(ImbalanceInputs(*kinds, rows_of(alert_messages(raw), "brokers")), SETTING)
    return as_table(rows, LEADER_IMBALANCE).collect()


def balances_of(spark: SparkSession, cases: Mapping[str, Given]) -> dict[str, dict[int, Row]]:
    """The row of each broker, from the messages of its cluster."""
    found = by_case(imbalance(records_of(spark, cases)), cases)
    balances = {name: {row["broker"]: row for row in rows} for name, rows in found.items()}
    assert [name for name in cases if len(balances[name]) != len(found[name])] == [], "each broker has one row"
    return balances


CASES = Cases(balances_of)


@pytest.fixture(scope="module")
def balances(spark: SparkSession) -> Results[dict[int, Row]]:
    return CASES.results(spark)


def of(*partitions: PartitionState, **brokers: Broker) -> Messages:
    """The messages of one cluster; a broker that is not given as ``b1`` and so on is well."""
    cluster = Leadership(partitions, {b: brokers.get(f"b{b}", WELL) for b in BROKERS})
    return [*alert_partition(cluster), *history(cluster)]


def led(number: int, leader: int | None, *replicas: int, rate: int = 100, **more: Any) -> PartitionState:
    """A partition of topic ``a``, all in sync and at rest."""
    return replace(PartitionState("a", number, leader, replicas, replicas, False, rate, True), **more)


def counted(cluster: Leadership, broker: int) -> tuple[Any, ...] | None:
    """What the row of a broker must say, counted one partition after the other; None: it has none."""
    mine = [p for p in cluster.partitions if p.replicas[0] == broker]
    away = [p for p in mine if p.leader not in (None, broker)]
    alive = cluster.brokers[broker].alive
    waiting = sum(p.moving for p in away)
    electable = sum(not p.moving and alive and broker in p.isr for p in away)
    if not mine:
        return None
    percentage = cluster.brokers[broker].percentage
    return (
        alive,
        len(mine),
        len(away),
        electable,
        waiting,
        len(away) - waiting - electable,
        sum(p.leader is None for p in mine),
        sum(p.leader == broker for p in cluster.partitions),
        len(away) / len(mine),
        SETTING if percentage is None else percentage / 100,
        "setting" if percentage is None else "broker",
        max(1000 * p.partition for p in mine),
    )


def in_spark(row: Row) -> tuple[Any, ...]:
    names = "alive preferred_partitions non_preferred_partitions electable_now waiting_for_move unavailable leaderless"
    more = "leader_partitions imbalance_ratio threshold_ratio threshold_source metadata_age_ms"
    return tuple(row[name] for name in f"{names} {more}".split())


def traffic(cluster: Leadership, broker: int) -> tuple[float | None, ...]:
    """What is written to and read of a broker, and would be if every preferred leader led; None: unknown."""
    brokers, partitions = cluster.brokers, [p for p in cluster.partitions if p.leader is not None]
    if not brokers[broker].metered:
        return None, None, None, None

    def summed(of_broker: list[PartitionState], reads: bool) -> float:
        return sum(p.write_bytes_per_s * (brokers[p.leader or 0].reads if reads else 1) for p in of_broker)

    now, then = ([p for p in partitions if who(p) == broker] for who in (lambda p: p.leader, lambda p: p.replicas[0]))
    changed = [p for p in partitions if p.leader != p.replicas[0] and broker in (p.leader, p.replicas[0])]
    return (
        summed(now, False),
        summed(then, False) if all(p.reported for p in changed) else None,
        summed(now, True),
        summed(then, True) if all(_read_known(cluster, p) for p in changed) else None,
    )


def _read_known(cluster: Leadership, p: PartitionState) -> bool:
    """Whether it can be told what is read of a partition: nothing where nothing is written, or read of its leader."""
    leader = cluster.brokers[p.leader or 0]
    written = sum(other.write_bytes_per_s for other in cluster.partitions if other.leader == p.leader)
    return (leader.metered and not leader.reads * written) or (
        p.reported and (leader.metered or not p.write_bytes_per_s)
    )


@pytest.fixture(scope="module")
def found(spark: SparkSession) -> dict[tuple[str, int], Row]:
    """The rows of every random cluster, all in one batch."""
    messages = [
        m
        for n, cluster in enumerate(random_clusters())
        for m in (*alert_partition(cluster, str(n)), *history(cluster, str(n)))
    ]
    rows = imbalance(records(spark, messages))
    by_broker = {(row["cluster"], row["broker"]): row for row in rows}
    assert len(by_broker) == len(rows), "each broker has one row"
    return by_broker


def test_every_broker_is_counted_as_by_hand(found: dict[tuple[str, int], Row]) -> None:
    wanted = {
        (str(number), broker): numbers
        for number, cluster in enumerate(random_clusters())
        for broker in BROKERS
        if (numbers := counted(cluster, broker)) is not None
    }
    assert {key: in_spark(row) for key, row in found.items()} == wanted
    # The examples are worth something: each count differs from zero and from the others somewhere.
    for at in (2, 3, 4, 5, 6):
        assert any(numbers[at] for numbers in wanted.values())
    assert any(numbers[3] < numbers[2] - numbers[4] for numbers in wanted.values())


def test_every_broker_is_counted_as_elections_are_planned(found: dict[tuple[str, int], Row]) -> None:
    for number, cluster in enumerate(random_clusters()):
        alive = frozenset(b for b, broker in cluster.brokers.items() if broker.alive)
        leads = [
            planning.PartitionState(TopicPartition(p.topic, p.partition), p.leader, p.replicas, p.isr, moving=p.moving)
            for p in cluster.partitions
        ]
        rows = {broker: row for (name, broker), row in found.items() if name == str(number)}
        assert [_counts(rows[broker]) for broker in sorted(rows)] == [
            _counts(vars(balance) | {"imbalance_ratio": balance.imbalance_ratio})
            for balance in planning.balances(leads, alive)
        ]


def _counts(balance: Row | dict[str, Any]) -> list[Any]:
    names = "broker preferred_partitions non_preferred_partitions electable_now waiting_for_move imbalance_ratio"
    return [balance[name] for name in names.split()]


def test_every_brokers_share_of_the_traffic_is_as_by_hand(found: dict[tuple[str, int], Row]) -> None:
    shares = {key: tuple(row[name] for name in RATES) for key, row in found.items()}
    wanted = {(number, broker): traffic(random_clusters()[int(number)], broker) for number, broker in found}
    assert shares == {key: pytest.approx(numbers) for key, numbers in wanted.items()}
    assert any(numbers[1] is None and numbers[0] is not None for numbers in wanted.values())
    assert any(numbers[3] is None and numbers[1] is not None for numbers in wanted.values())
    assert any(None not in numbers and numbers[0] != numbers[1] for numbers in wanted.values())


CASES.add("leads and is preferred for nothing", of(led(0, 2, 1, 2), led(1, 2, 1, 2)))


def test_a_broker_that_is_preferred_for_nothing_has_no_row_though_it_leads(
    balances: Results[dict[int, Row]],
) -> None:
    rows = balances["leads and is preferred for nothing"]
    assert list(rows) == [1]
    assert (rows[1]["imbalance_ratio"], rows[1]["electable_now"]) == (1.0, 2)


CASES.add("leaderless", of(led(0, 1, 1, 2), led(1, None, 1, 2), led(2, 2, 1, 2)))


def test_a_leaderless_partition_counts_as_preferred_only(balances: Results[dict[int, Row]]) -> None:
    row = balances["leaderless"][1]
    assert (row["preferred_partitions"], row["non_preferred_partitions"], row["leaderless"]) == (3, 1, 1)
    # 1 of 3
    assert row["imbalance_ratio"] == pytest.approx(1 / 3)


CASES.add("died in the ISR", of(led(0, 2, 1, 2), b1=replace(WELL, alive=False)))


def test_a_dead_preferred_leader_that_is_still_in_the_isr_is_not_electable(
    balances: Results[dict[int, Row]],
) -> None:
    row = balances["died in the ISR"][1]
    assert (row["alive"], row["electable_now"], row["unavailable"]) == (False, 0, 1)


CASES.add("own threshold", of(led(0, 1, 1, 2), led(1, 2, 2, 1), b1=replace(WELL, percentage=15)))


def test_the_threshold_is_that_of_the_broker_if_it_has_one(balances: Results[dict[int, Row]]) -> None:
    rows = balances["own threshold"]
    assert [(rows[b]["threshold_ratio"], rows[b]["threshold_source"]) for b in (1, 2)] == [
        (0.15, "broker"),
        (0.1, "setting"),
    ]


def with_automatic_elections() -> Messages:
    cluster = Leadership((led(0, 1, 1),), {1: WELL})
    (brokers,) = alert_partition(cluster)
    balancing = {"auto_leader_rebalance": True, "leader_imbalance_check_s": 300}
    return [brokers | {"rows": [row | balancing for row in broker_rows(cluster)]}, *history(cluster)]


CASES.add("automatic elections", with_automatic_elections())


def test_automatic_rebalancing_of_brokers_and_its_interval_are_reported(balances: Results[dict[int, Row]]) -> None:
    (row,) = balances["automatic elections"].values()
    assert (row["auto_leader_rebalance"], row["check_interval_s"]) == (True, 300)


# Broker 2 leads 300 B/s for 1; each of them leads 500 B/s of its own. Read is twice what is written.
CASES.add("one leads for another", of(led(0, 1, 1, rate=500), led(1, 2, 1, 2, rate=300), led(2, 2, 2, rate=500)))


def test_a_partition_led_for_another_broker_moves_only_its_own_rate(balances: Results[dict[int, Row]]) -> None:
    rows = balances["one leads for another"]
    rates = {b: tuple(row[name] for name in RATES) for b, row in rows.items()}
    assert rates == {1: pytest.approx((500, 800, 1000, 1600)), 2: pytest.approx((800, 500, 1600, 1000))}
    assert {row["rate_window_ms"] for row in rows.values()} == {10_000}


CASES.add("no rate yet", of(led(0, 1, 1, reported=False), led(1, 1, 1, 2)))


def test_a_partition_led_as_preferred_may_have_no_rate_yet(balances: Results[dict[int, Row]]) -> None:
    assert [balances["no rate yet"][1][name] for name in RATES] == [200, 200, 400, 400]


def older(sent: dict[str, Any]) -> dict[str, Any]:
    """The message without the columns that are new."""
    new = ("preferred", "auto_leader_rebalance", "leader_imbalance_check_s", "leader_imbalance_percentage")
    if "rows" in sent:
        return sent | {"rows": [{n: v for n, v in row.items() if n not in new} for row in sent["rows"]]}
    return sent | {"columns": {n: v for n, v in sent["columns"].items() if n not in new}}


CASES.add("older collector, even", [older(m) for m in of(led(0, 1, 1, 2), led(1, 2, 2, 1))])
CASES.add("older collector, uneven", [older(m) for m in of(led(0, 2, 1, 2), led(1, 2, 2, 1))])


def test_ticks_of_an_older_collector_have_counts_and_the_share_where_nobody_leads_for_another(
    balances: Results[dict[int, Row]],
) -> None:
    counts = {
        (name, broker): (row["electable_now"], row["preferred_write_bytes_per_s"])
        for name in ("even", "uneven")
        for broker, row in balances[f"older collector, {name}"].items()
    }
    assert counts == {("even", 1): (0, 100), ("even", 2): (0, 100), ("uneven", 1): (1, None), ("uneven", 2): (0, None)}


def in_small_messages(first_replicas: list[Any]) -> Messages:
    """A cluster with a message for each partition; replicas of the first partition as given."""
    cluster = Leadership((led(0, 2, 1, 2), led(1, 2, 1, 2)), dict.fromkeys(BROKERS, WELL))
    sent = history(cluster, cut=1)
    sent[0]["columns"]["replicas"] = first_replicas
    return [*alert_partition(cluster), *sent]


CASES.add("all messages can be read", in_small_messages([[1, 2]]))
CASES.add("one message cannot be read", in_small_messages([None]))


def test_a_tick_with_a_message_that_cannot_be_read_gives_no_row_and_others_do(
    balances: Results[dict[int, Row]],
) -> None:
    assert set(balances["all messages can be read"]) == {1}
    assert balances["one message cannot be read"] == {}


CASES.add(
    "neither meters nor logs",
    [m for m in of(led(0, 2, 1, 2), led(1, 1, 1, 2)) if m["kind"] in ("brokers", "leaders")],
)


def test_without_meters_or_logs_there_are_counts_and_no_rates(balances: Results[dict[int, Row]]) -> None:
    row = balances["neither meters nor logs"][1]
    assert (row["electable_now"], row["preferred_partitions"]) == (1, 2)
    assert [row[name] for name in RATES] == [None] * 4


def with_topic_counters_of_two_times() -> Messages:
    messages = of(led(0, 2, 1, 2))
    meters = messages[-1]["columns"]
    at = next(n for n, (meter, topic) in enumerate(zip(meters["meter"], meters["topic"], strict=True)) if topic)
    meters["prev_read_ms"][at] -= 5000
    return messages


CASES.add("topic counters of two times", with_topic_counters_of_two_times())


def test_a_brokers_topic_counters_of_two_times_give_no_rate(balances: Results[dict[int, Row]]) -> None:
    assert balances["topic counters of two times"][1]["preferred_write_bytes_per_s"] is None


CASES.add("no rows", [message("brokers", 0, [])])


def test_a_message_without_rows_of_any_kind_is_no_cluster(balances: Results[dict[int, Row]]) -> None:
    assert balances["no rows"] == {}
