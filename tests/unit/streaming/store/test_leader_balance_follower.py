"""The table of leader imbalance on a local disk, followed: the newest tick of each cluster, once."""

from __future__ import annotations

import logging
import shutil
from collections.abc import Sequence
from dataclasses import fields, replace
from pathlib import Path
from typing import Any

import pytest
from arro3.core import Array, DataType
from arro3.core import Table as ArrowTable
from deltalake import DeltaTable, QueryBuilder, write_deltalake

from headroom.alerts.inputs.leader_balance import LeaderBalance
from headroom.planning.elections.planner import Balance
from headroom.planning.elections.summary import ElectionPlanSummary
from headroom.schemas.tables import ELECTION_PLAN, LEADER_IMBALANCE
from headroom.streaming.store.leader_balance_follower import LeaderBalanceFollower
from headroom.streaming.store.store import Store
from tests.unit.builders.leader_balance import PLAN_SUMMARY
from tests.unit.builders.throttle_status import TICK_MS

TYPES = {
    "STRING": DataType.string(),
    "BIGINT": DataType.int64(),
    "INT": DataType.int32(),
    "DOUBLE": DataType.float64(),
    "BOOLEAN": DataType.bool(),
}
# The folder, of which a follower knows nothing.
COLUMNS = [column for column in LEADER_IMBALANCE.columns if column.name != "date"]


def row(cluster: str, tick_ms: int, broker: int, electable: int = 0) -> dict[str, Any]:
    """A broker that is preferred for ten partitions."""
    return dict.fromkeys(LEADER_IMBALANCE.names()) | {
        "cluster": cluster,
        "tick_ms": tick_ms,
        "broker": broker,
        "alive": True,
        "preferred_partitions": 10,
        "non_preferred_partitions": electable,
        "electable_now": electable,
        "waiting_for_move": 0,
        "unavailable": 0,
        "leaderless": 0,
        "leader_partitions": 10 - electable,
        "imbalance_ratio": electable / 10,
        "threshold_ratio": 0.1,
        "threshold_source": "setting",
    }


# Rows with lists of structs, which the Arrow library does not make of Python's own.
PLAN_SQL = """SELECT cluster, tick_ms, CAST(batches AS INT) AS batches, CAST(700 AS INT) AS elections,
    90000000e0 AS write_bytes_per_s,
    make_array(named_struct('topic', 't', 'partition', arrow_cast(7, 'Int32')),
        named_struct('topic', 'u', 'partition', arrow_cast(0, 'Int32'))) AS first_batch,
    3000000e0 AS first_batch_write_bytes_per_s,
    make_array(
        named_struct('broker', arrow_cast(1, 'Int32'), 'first_batch_ratio', 0.25e0, 'last_batch_ratio', 0.004e0),
        named_struct('broker', arrow_cast(2, 'Int32'), 'first_batch_ratio', 0.1e0, 'last_batch_ratio', 0e0))
        AS outlooks,
    make_array(named_struct('reason', 'moving', 'partitions', arrow_cast(3, 'Int32')),
        named_struct('reason', 'over_throttle', 'partitions', arrow_cast(5, 'Int32'))) AS left_out,
    make_array(named_struct('broker', arrow_cast(2, 'Int32'), 'role', 'leader',
        'throttle_bytes_per_s', 9000000e0, 'required_bytes_per_s', 12000000e0)) AS raise_first
FROM (VALUES {}) AS ticks (cluster, tick_ms, batches)"""


class Followed:
    """A store with the table, and what a follower of it passed on."""

    def __init__(self, folder: Path) -> None:
        self.received: list[tuple[str, int, list[int]]] = []
        self.plans: list[tuple[str, ElectionPlanSummary]] = []
        self.balances: Sequence[LeaderBalance] = ()
        no_spark: Any = None
        store = Store(no_spark, str(folder))
        self.location = store.location(LEADER_IMBALANCE)
        self.now_ms = TICK_MS
        self.start = lambda: LeaderBalanceFollower(no_spark, store, self._take, self._take_plan, lambda: self.now_ms)
        self.follower = self.start()
        self.plans_location = store.location(ELECTION_PLAN)

    def _take(self, cluster: str, tick_ms: int, balances: Sequence[LeaderBalance]) -> None:
        self.received.append((cluster, tick_ms - TICK_MS, sorted(state.broker for state in balances)))
        self.balances = balances

    def _take_plan(self, cluster: str, plan: ElectionPlanSummary) -> None:
        # It is there before the balances that call for it.
        assert all(received[0] != cluster for received in self.received)
        self.plans.append((cluster, plan))

    def write_plans(self, *ticks: tuple[str, int, int]) -> None:
        """A plan for each cluster and tick, of so many batches, else as ``PLAN_SUMMARY``."""
        made = QueryBuilder().execute(PLAN_SQL.format(", ".join(map(str, ticks)))).read_all()
        assert set(made.schema.names) == set(ELECTION_PLAN.names()) - {"date"}
        write_deltalake(self.plans_location, made, mode="append")

    def write(self, *rows: dict[str, Any]) -> None:
        columns: Any = {c.name: Array([row[c.name] for row in rows], TYPES[c.type]) for c in COLUMNS}
        write_deltalake(self.location, ArrowTable.from_pydict(columns), mode="append")

    def polled(self) -> list[tuple[str, int, list[int]]]:
        """Poll once and return what is passed on: cluster, milliseconds after the first tick, brokers."""
        before = len(self.received)
        self.follower.poll()
        return self.received[before:]


@pytest.fixture
def followed(tmp_path: Path) -> Followed:
    return Followed(tmp_path)


def test_the_newest_tick_of_each_cluster_is_handed_over_once(followed: Followed) -> None:
    assert followed.polled() == []
    followed.write(row("a", TICK_MS, 1), row("a", TICK_MS + 1000, 1), row("a", TICK_MS + 1000, 2), row("b", TICK_MS, 3))
    assert sorted(followed.polled()) == [("a", 1000, [1, 2]), ("b", 0, [3])]
    assert followed.polled() == []
    followed.write(row("a", TICK_MS + 2000, 2))
    assert followed.polled() == [("a", 2000, [2])]


def test_a_leader_balance_has_the_values_of_its_row(followed: Followed) -> None:
    followed.write(row("a", TICK_MS, 1, electable=3))
    followed.polled()
    (state,) = followed.balances
    assert state.balance == Balance(1, 10, 3, 3, 0)
    assert (state.tick_ms, state.threshold_ratio, state.threshold_source) == (TICK_MS, 0.1, "setting")
    assert {field.name for field in fields(state)} - {"balance"} <= set(LEADER_IMBALANCE.names())


def test_the_last_plan_comes_with_balances_of_which_one_is_out_of_balance(followed: Followed) -> None:
    followed.write_plans(("a", TICK_MS, 9), ("a", TICK_MS + 1000, 4))
    followed.write(row("b", TICK_MS, 1, electable=1))
    assert followed.polled() == [("b", 0, [1])]
    assert followed.plans == []
    followed.write(row("a", TICK_MS + 2000, 1, electable=2))
    assert followed.polled() == [("a", 2000, [1])]
    assert followed.plans == [("a", replace(PLAN_SUMMARY, tick_ms=TICK_MS + 1000))]


def test_without_plans_the_balances_come_all_the_same(followed: Followed, caplog: pytest.LogCaptureFixture) -> None:
    followed.write(row("a", TICK_MS, 1, electable=2))
    assert followed.polled() == [("a", 0, [1])]
    followed.write(row("a", TICK_MS + 1000, 1, electable=2))
    assert followed.polled() == [("a", 1000, [1])]
    (record,) = caplog.records
    assert record.message.startswith(
        f"{followed.plans_location} cannot be read, so alerts name no batches of elections"
    )


def test_an_older_tick_that_comes_late_and_a_compaction_hand_over_nothing(followed: Followed) -> None:
    followed.write(row("a", TICK_MS + 1000, 1))
    assert followed.polled() == [("a", 1000, [1])]
    followed.write(row("a", TICK_MS, 1))
    assert followed.polled() == []
    assert DeltaTable(followed.location).optimize.compact()["numFilesAdded"] == 1
    assert followed.polled() == []


def test_a_cluster_that_is_behind_by_some_minutes_is_found(followed: Followed) -> None:
    followed.write(row("a", TICK_MS, 1))
    assert followed.polled() == [("a", 0, [1])]
    followed.write(row("b", TICK_MS - 600_000, 2))
    assert followed.polled() == [("b", -600_000, [2])]
    followed.write(row("b", TICK_MS - 590_000, 2))
    assert followed.polled() == [("b", -590_000, [2])]


HOUR_MS = 3_600_000


def test_after_the_clock_was_set_back_new_ticks_are_followed_and_old_ones_are_not(followed: Followed) -> None:
    # Every 5 s of an hour and a quarter, up to 0.
    followed.write(*(row("a", TICK_MS - 5000 * number, 1) for number in range(900)))
    assert followed.polled() == [("a", 0, [1])]
    followed.now_ms = TICK_MS - HOUR_MS
    received = []
    # New ones come a second off those times, from an hour ago on: what is there is noted, one may be late, two are it.
    for second in range(1, 31, 5):
        followed.write(row("a", followed.now_ms + second * 1000, 2))
        received.append(followed.polled())
    offset = -HOUR_MS
    assert received == [
        [],
        [],
        [("a", offset + 11_000, [2])],
        [("a", offset + 16_000, [2])],
        [("a", offset + 21_000, [2])],
        [("a", offset + 26_000, [2])],
    ]
    # The clock is right again.
    followed.now_ms = TICK_MS + 60_000
    followed.write(row("a", TICK_MS + 60_000, 3))
    assert followed.polled() == [("a", 60_000, [3])]
    followed.write(row("a", TICK_MS + 65_000, 3))
    assert followed.polled() == [("a", 65_000, [3])]


def test_a_start_after_the_clock_was_set_back_follows_new_ticks(followed: Followed) -> None:
    followed.write(*(row("a", TICK_MS - 5000 * number, 1) for number in range(900)))
    followed.now_ms = TICK_MS - HOUR_MS
    followed.follower = followed.start()
    # The rules see by its time that it does not count.
    assert followed.polled() == [("a", 0, [1])]
    received = []
    for second in range(1, 21, 5):
        followed.write(row("a", followed.now_ms + second * 1000, 2))
        received += followed.polled()
    assert received == [("a", 11_000 - HOUR_MS, [2]), ("a", 16_000 - HOUR_MS, [2])]


def test_ticks_of_a_second_collector_that_is_behind_are_not_taken_in_turns(followed: Followed) -> None:
    received = []
    for second in range(1, 10):
        followed.write(row("a", TICK_MS + second * 1000, 1))
        followed.write(row("a", TICK_MS + second * 1000 - 20_500, 2))
        received += followed.polled()
    assert received == [("a", second * 1000, [1]) for second in range(1, 10)]


def test_after_the_clock_was_set_back_new_plans_are_followed(tmp_path: Path) -> None:
    followed = Followed(tmp_path)
    followed.write_plans(*(("a", TICK_MS - 60_000 * number, 9) for number in range(90)))
    followed.write(row("a", TICK_MS, 1, electable=2))
    followed.polled()
    followed.received.clear()
    followed.now_ms = TICK_MS - HOUR_MS
    received: list[int] = []
    for minute in range(1, 7):
        at_ms = followed.now_ms + minute * 60_000 + 1
        followed.write_plans(("a", at_ms, 4))
        followed.write(row("a", at_ms, 1, electable=2))
        followed.polled()
        followed.received.clear()
        received.append(len(followed.plans))
    # Balances are received from the third on; of plans the first is noted then, the next may be late, two are it.
    assert received == [1, 1, 1, 1, 2, 3]
    assert [plan.batches for _, plan in followed.plans] == [9, 4, 4]


def test_an_unreadable_table_is_logged_once_and_followed_again_when_it_is_readable(
    followed: Followed, caplog: pytest.LogCaptureFixture
) -> None:
    followed.write(row("a", TICK_MS, 1))
    followed.polled()
    log = Path(followed.location) / "_delta_log"
    log.rename(log.with_name("away"))
    shutil.copytree(log.with_name("away"), log)
    (log / "00000000000000000001.json").write_text("not JSON")
    with caplog.at_level(logging.WARNING):
        assert followed.polled() == followed.polled() == []
    assert [record.message.partition(",")[0] for record in caplog.records] == [f"{followed.location} cannot be read"]
    shutil.rmtree(log)
    log.with_name("away").rename(log)
    followed.write(row("a", TICK_MS + 1000, 1))
    assert followed.polled() == [("a", 1000, [1])]
