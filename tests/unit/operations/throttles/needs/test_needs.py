"""Who needs which throttle: from the tables of a watch, from two readings, and from log directories."""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from deltalake import QueryBuilder, write_deltalake

from headroom.cluster.elections.leadership import leadership_of
from headroom.cluster.elections.traffic import Traffic
from headroom.cluster.log_dirs.describe import LogDirsReading
from headroom.cluster.model import BrokerRead, BrokerThrottles, Partition, TopicConfig
from headroom.operations.throttles.needs import needs as needs_module
from headroom.operations.throttles.needs.directory_needs import directory_needs
from headroom.operations.throttles.needs.live_needs import needs_of
from headroom.operations.throttles.needs.needs import read_needs
from headroom.operations.throttles.needs.throttle_need import MoveNeed, NeedingPartition, NeedsSource, ThrottleNeeds
from headroom.operations.throttles.needs.watch_needs import watch_needs
from headroom.schemas.config import ClusterSettings, Settings, StoreSettings
from headroom.schemas.errors import HeadroomError
from headroom.schemas.keys import TopicPartition
from tests.unit.builders import log_dirs
from tests.unit.builders.throttle_views import MB, MOVING, NONE, OWN, STILL, FakeCluster, run, view_of

AT_MS = 1_700_000_000_000
NOTHING = LogDirsReading({}, {})
NEED = MoveNeed(1, "leader", 5.6 * MB, 4 * MB, 8 * MB, 8 * MB, "losing", 1, (NeedingPartition("t", 0, 4 * MB),))


def gold(tick_ms: int = AT_MS, cluster: str = "c", broker: int = 1, moving: int = 1, required: float = 8e6) -> str:
    """Return the SELECT of a row of gold/throttle_headroom; partition 7 of its evidence does not move."""
    evidence = ", ".join(
        f"named_struct('topic', 't', 'partition', {number}, "
        f"'write_bytes_per_s', CAST(4e6 AS DOUBLE), 'moving', {moves})"
        for number, moves in ((0, "true"), (7, "false"))
    )
    return (
        f"SELECT CAST({tick_ms} AS BIGINT) AS tick_ms, '{cluster}' AS \"cluster\", DATE '2023-11-14' AS date, "
        f"CAST({broker} AS INT) AS broker, '{'leader' if broker == 1 else 'follower'}' AS role, "
        f"CAST(5.6e6 AS DOUBLE) AS throttle_bytes_per_s, CAST(4e6 AS DOUBLE) AS in_sync_bytes_per_s, "
        f"CAST({required} AS DOUBLE) AS required_bytes_per_s, CAST(8e6 AS DOUBLE) AS moving_bytes_per_s, "
        f"'losing' AS verdict, CAST({moving} AS INT) AS moving_partitions, make_array({evidence}) AS partitions, "
        "CAST(9000000 AS BIGINT) AS remaining_bytes, CAST(0 AS DOUBLE) AS down_required_bytes_per_s, "
        "CAST(5.7e6 AS DOUBLE) AS quota_bytes_per_s"
    )


def progress(
    leader: int | None, write: float | None, catch_up: float, in_sync: bool = False, tick_ms: int = AT_MS
) -> str:
    """Return the SELECT of a row of gold/reassignment_progress of a new replica on broker 3."""
    leads, written = ("NULL" if number is None else str(number) for number in (leader, write))
    return (
        f"SELECT CAST({tick_ms} AS BIGINT) AS tick_ms, 'c' AS \"cluster\", DATE '2023-11-14' AS date, "
        "'t' AS topic, CAST(0 AS INT) AS partition, "
        f"CAST(3 AS INT) AS adding_replica, CAST({leads} AS INT) AS leader, "
        f"CAST({written} AS DOUBLE) AS write_bytes_per_s, CAST({catch_up} AS DOUBLE) AS catch_up_bytes_per_s, "
        f"{str(in_sync).lower()} AS in_sync"
    )


def copied(folder: Path, *rows: str) -> list[float | None]:
    """Return what brokers 1 as leader and 3 as destination copy by these rows."""
    settings = write_gold(folder, gold(), gold(broker=3))
    made = QueryBuilder().execute(" UNION ALL ".join(rows)).read_all()
    write_deltalake(str(folder / "gold/reassignment_progress"), made)
    found = watch_needs(settings, AT_MS + 3000)
    assert found is not None
    assert {need.quota_bytes_per_s for need in found.needs} == {5.7e6}
    return [need.copied_bytes_per_s for need in found.needs]


def test_a_running_watch_knows_what_new_replicas_copy(tmp_path: Path) -> None:
    rows = (
        # 2 + 3 and 1 + 1.5 MB/s; one that falls behind by all that is written copies nothing.
        progress(1, 2e6, 3e6),
        progress(1, 1e6, 1.5e6),
        progress(1, 1e6, -1.1e6),
        progress(1, 9e6, 9e6, in_sync=True),
        progress(1, 9e6, 9e6, tick_ms=AT_MS - 1000),
    )
    assert copied(tmp_path, *rows) == [7.5e6, 7.5e6]


def test_if_one_copy_is_unknown_so_is_the_sum(tmp_path: Path) -> None:
    assert copied(tmp_path, progress(1, 2e6, 3e6), progress(None, None, 0)) == [5e6, None]


def write_gold(folder: Path, *rows: str) -> Settings:
    """Write rows of gold/throttle_headroom, and return settings that name their store."""
    made = QueryBuilder().execute(" UNION ALL ".join(rows)).read_all()
    write_deltalake(str(folder / "gold/throttle_headroom"), made)
    return Settings(cluster=ClusterSettings(name="c"), store=StoreSettings(path=str(folder)))


def test_a_running_watch_knows_the_needs_of_its_newest_tick(tmp_path: Path) -> None:
    settings = write_gold(
        tmp_path,
        gold(AT_MS - 5000, required=1e6),
        gold(broker=3),
        gold(),
        gold(broker=2, moving=0),
        gold(AT_MS + 1000, cluster="other"),
    )
    found = watch_needs(settings, AT_MS + 3000)
    assert found is not None
    assert (found.source, found.tick_ms) == (NeedsSource.WATCH, AT_MS)
    assert [(need.broker, need.role, need.required_bytes_per_s) for need in found.needs] == [
        (1, "leader", 8e6),
        (3, "follower", 8e6),
    ]
    # Partition 7 is in the lists, but does not move.
    assert found.needs[0] == replace(NEED, remaining_bytes=9_000_000, quota_bytes_per_s=5.7e6)


def test_an_old_tick_is_no_running_watch(tmp_path: Path) -> None:
    assert watch_needs(write_gold(tmp_path, gold()), AT_MS + 61_000) is None
    assert watch_needs(Settings(store=StoreSettings(path=str(tmp_path / "none"))), AT_MS) is None


# t-0 moves from broker 1 to 3 with an in-sync follower on 2, t-1 rests on 1 and 2; both are listed.
PARTITIONS = (MOVING, Partition("t", 1, 1, 0, (1, 2), (1, 2), ()))
LISTS = {"t": TopicConfig("0:1,0:2,1:1", "0:3,1:2", compacted=False)}
RATES = {b: BrokerRead(b, BrokerThrottles(True, 9 * MB, None, "broker", "none"), None, None) for b in (1, 2, 3, 4)}


def measured(written: dict[TopicPartition, float], lists: dict[str, TopicConfig] = LISTS) -> dict[Any, MoveNeed]:
    snapshot = view_of(partitions=PARTITIONS, configs=lists).snapshot
    found = needs_of(leadership_of(snapshot, RATES, Traffic(written)))
    assert found.source is NeedsSource.LIVE
    return {(need.broker, need.role): need for need in found.needs}


def test_two_readings_give_the_needs_of_moving_partitions() -> None:
    needs = measured({TopicPartition("t", 0): 2.0 * MB, TopicPartition("t", 1): 1.0 * MB})
    # Broker 2 leads nothing, and follows in sync; broker 4 has no part.
    assert list(needs) == [(1, "leader"), (3, "follower")]
    leader = needs[1, "leader"]
    # It sends t-0 to brokers 2 and 3, and t-1, which rests but is in the list, to broker 2.
    assert (leader.required_bytes_per_s, leader.in_sync_bytes_per_s, leader.moving_bytes_per_s) == (
        5.0 * MB,
        3.0 * MB,
        4.0 * MB,
    )
    assert leader.partitions == (NeedingPartition("t", 0, 2.0 * MB),)
    assert (leader.throttle_bytes_per_s, leader.verdict, leader.moving_partitions) == (9 * MB, "catching_up", 1)
    assert needs[3, "follower"].moving_bytes_per_s == 2.0 * MB


def test_a_leader_needs_more_once_a_dead_broker_is_back(monkeypatch: pytest.MonkeyPatch) -> None:
    snapshot = view_of(partitions=PARTITIONS, configs=LISTS, down=(3,)).snapshot
    written = {TopicPartition("t", 0): 2.0 * MB, TopicPartition("t", 1): 1.0 * MB}
    (need,) = needs_of(leadership_of(snapshot, RATES, Traffic(written))).needs
    # It sends t-0 and t-1 to broker 2, and t-0 to broker 3 once that is back.
    assert (need.required_bytes_per_s, need.moving_bytes_per_s) == (3 * MB, 2 * MB)
    assert (need.down_required_bytes_per_s, need.lasting_required_bytes_per_s) == (2 * MB, 5 * MB)
    cluster = FakeCluster(view_of())
    cluster.needs = ThrottleNeeds(NeedsSource.LIVE, None, (need,))
    cluster.install(monkeypatch)
    assert "Broker 1 as leader requires 5.00 MB/s once the brokers that are down are back." in run("show").stdout


def test_a_move_without_lists_shows_what_it_would_need() -> None:
    bare = {"t": TopicConfig(None, None, compacted=False)}
    leader = measured({TopicPartition("t", 0): 2.0 * MB}, bare)[1, "leader"]
    assert (leader.required_bytes_per_s, leader.moving_bytes_per_s, leader.verdict) == (0.0, 4.0 * MB, "unthrottled")


def test_a_rate_that_was_not_measured_is_unknown_and_never_zero() -> None:
    leader = measured({})[1, "leader"]
    assert (leader.required_bytes_per_s, leader.moving_bytes_per_s, leader.verdict) == (None, None, "no_data")


def test_a_broker_that_moves_logs_between_directories_needs_its_rate() -> None:
    rate = replace(NONE, log_dirs_bytes_per_s=6 * MB, log_dirs_source="broker")
    first, second = TopicPartition("orders", 0), TopicPartition("orders", 1)
    logs = log_dirs.logs(1, {first: ("/a", 900), second: ("/a", 500)}, {first: ("/b", 800), second: ("/b", 100)})
    (need,) = directory_needs(view_of({1: rate}), LogDirsReading({1: logs, 2: log_dirs.logs(2, {})}, {}))
    assert (need.broker, need.role, need.throttle_bytes_per_s, need.moving_partitions) == (1, "log_dirs", 6 * MB, 2)
    # 100 + 400 bytes are left, and most of them of orders-1.
    assert (need.remaining_bytes, [p.name for p in need.partitions]) == (500, [second, first])


@pytest.fixture
def sources(monkeypatch: pytest.MonkeyPatch) -> Callable[..., ThrottleNeeds]:
    def read(watch: object, live: object, measure: bool = True) -> ThrottleNeeds:
        def answer(found: object) -> Callable[[Settings], object]:
            def give(settings: Settings) -> object:
                if isinstance(found, HeadroomError):
                    raise found
                return found

            return give

        monkeypatch.setattr(needs_module, "watch_needs", answer(watch))
        monkeypatch.setattr(needs_module, "live_needs", answer(live))
        return read_needs(Settings(), view_of(), NOTHING, measure, print)

    return read


WATCHED, LIVE = ThrottleNeeds(NeedsSource.WATCH, AT_MS, (NEED,)), ThrottleNeeds(NeedsSource.LIVE, None, (NEED,))
BROKEN = HeadroomError("the table", "cannot be read", "Look.")


def test_the_watch_is_preferred_and_nothing_is_measured_then(sources: Callable[..., ThrottleNeeds]) -> None:
    assert sources(WATCHED, BROKEN).source is NeedsSource.WATCH
    assert sources(None, LIVE).source is NeedsSource.LIVE


def test_if_neither_knows_it_is_unknown_with_the_reasons(sources: Callable[..., ThrottleNeeds]) -> None:
    found = sources(BROKEN, HeadroomError("broker 1", "is not there", "Look."))
    assert (found.source, found.needs) == (None, ())
    assert [problem.split(":")[0] for problem in found.problems] == ["the table", "Required rates are unknown"]
    assert sources(BROKEN, LIVE).problems == ["the table: cannot be read. Look."]
    quick = sources(None, LIVE, measure=False)
    assert (quick.source, "no headroom watch is running" in quick.problems[0]) == (None, True)


def test_without_a_move_nothing_is_read(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(needs_module, "watch_needs", lambda settings: pytest.fail("it was read"))
    found = read_needs(Settings(), view_of(partitions=(STILL,)), NOTHING, measure=True, on_step=print)
    assert (found.source, found.needs, list(found.problems)) == (None, (), [])


def test_show_prints_who_needs_each_rate(monkeypatch: pytest.MonkeyPatch) -> None:
    cluster = FakeCluster(view_of({1: OWN}))
    directories = replace(NEED, broker=2, role="log_dirs", verdict=None, remaining_bytes=1_500_000)
    cluster.needs = ThrottleNeeds(NeedsSource.LIVE, None, (NEED, directories), ("Broker 4 is silent.",))
    cluster.install(monkeypatch)
    shown = run("show").stdout
    rows = [" ".join(line.split()) for line in shown.splitlines()]
    assert "Required rates, measured now" in rows
    assert "1 leader 5.60 MB/s 8.00 MB/s 8.00 MB/s losing t-0" in rows
    assert "2 log directories 5.60 MB/s 1.5 MB left t-0" in rows
    assert "Broker 4 is silent." in rows


def test_show_names_three_partitions_and_counts_the_others(monkeypatch: pytest.MonkeyPatch) -> None:
    cluster = FakeCluster(view_of())
    twenty = tuple(NeedingPartition("t", number, None) for number in range(20))
    cluster.needs = ThrottleNeeds(NeedsSource.WATCH, 0, (replace(NEED, moving_partitions=45, partitions=twenty),))
    cluster.install(monkeypatch)
    assert "t-0, t-1, t-2 and 42 more" in run("show").stdout


def test_json_has_the_needs_and_problems_go_to_standard_error(monkeypatch: pytest.MonkeyPatch) -> None:
    cluster = FakeCluster(view_of())
    cluster.needs = ThrottleNeeds(NeedsSource.WATCH, AT_MS, (NEED,), ("Broker 4 is silent.",))
    cluster.install(monkeypatch)
    result = run("show", "--format", "json")
    found = json.loads(result.stdout)["needs"]
    assert (found["source"], found["tick_ms"]) == ("watch", AT_MS)
    assert found["brokers"] == [
        {
            "broker": 1,
            "role": "leader",
            "throttle_bytes_per_s": 5.6 * MB,
            "in_sync_bytes_per_s": 4 * MB,
            "required_bytes_per_s": 8 * MB,
            "moving_bytes_per_s": 8 * MB,
            "verdict": "losing",
            "moving_partitions": 1,
            "partitions": [{"topic": "t", "partition": 0, "write_bytes_per_s": 4 * MB}],
            "remaining_bytes": None,
            "down_required_bytes_per_s": 0.0,
            "quota_bytes_per_s": None,
            "copied_bytes_per_s": None,
        }
    ]
    assert "Broker 4 is silent." in result.stderr
