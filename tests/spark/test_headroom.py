"""The verdicts that real brokers showed, from the tables' own transforms."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, NamedTuple

import pytest
from pyspark.sql import DataFrame, Row, SparkSession

from headroom.alerts.inputs.throttle_status import ThrottleStatus, throttle_status_of
from headroom.streaming.transforms.decode import alert_messages
from headroom.streaming.transforms.gold import GoldQueries, headroom_rows
from headroom.streaming.transforms.tick_status import complete_ticks
from tests.spark.cases import Cases, Given, Results, by_case, records_of
from tests.spark.ticks import TICK_MS, assert_covers, broker, log, message, move, records, tick

MB = 1_000_000
Messages = list[dict[str, Any]]
Statuses = dict[tuple[int, str], Row]


def complete(spark: SparkSession, cases: Mapping[str, Given]) -> DataFrame:
    """The messages of the complete ticks of all cases."""
    return complete_ticks(alert_messages(records_of(spark, cases)))


def by_broker_and_role(rows: list[Row]) -> Statuses:
    sides = {(row["broker"], row["role"]): row for row in rows}
    assert len(sides) == len(rows), "each broker and role has one row"
    return sides


def statuses_of(spark: SparkSession, cases: Mapping[str, Given]) -> dict[str, Statuses]:
    """The rows of every broker and role, from the transform that the alert path uses."""
    rows = headroom_rows(complete(spark, cases)).collect()
    return {name: by_broker_and_role(of_case) for name, of_case in by_case(rows, cases).items()}


class GoldRows(NamedTuple):
    """Rows of two gold tables."""

    sides: Statuses
    progress: list[Row]


def gold_of(spark: SparkSession, cases: Mapping[str, Given]) -> dict[str, GoldRows]:
    """The rows of the gold job: of every broker and role, and the progress of every new replica, by partition."""
    gold = GoldQueries().rows(complete(spark, cases))
    sides, progress = (by_case(rows.collect(), cases) for rows in (gold.headroom, gold.progress))
    return {
        name: GoldRows(by_broker_and_role(sides[name]), sorted(progress[name], key=lambda row: row["partition"]))
        for name in cases
    }


CASES = Cases(statuses_of)
GOLD_CASES = Cases(gold_of)


@pytest.fixture(scope="module")
def sides(spark: SparkSession) -> Results[Statuses]:
    return CASES.results(spark)


@pytest.fixture(scope="module")
def gold(spark: SparkSession) -> Results[GoldRows]:
    return GOLD_CASES.results(spark)


def scene(brokers: list[dict[str, Any]], moves: list[dict[str, Any]]) -> Messages:
    """The messages of a tick with every column."""
    assert_covers(moves, "moves")
    assert_covers(brokers, "brokers")
    return tick(brokers, moves)


def three(leader: int | None, follower: int | None) -> list[dict[str, Any]]:
    """Brokers 1 to 3 with their throttle rates."""
    return [broker(b, leader, follower) for b in (1, 2, 3)]


def status_of(row: Row) -> ThrottleStatus:
    return throttle_status_of(row.asDict(recursive=True))


def two_partitions(leader_of_0: int = 1) -> list[dict[str, Any]]:
    """Two partitions of 2 MB/s, RF 2, each with broker 3 coming in: FACTS of a real cluster."""
    listed = {"leader_listed": [1, 2], "follower_listed": [3]}
    behind = {3: log(3, 1000, 1 * MB)}
    return [
        move(
            "t",
            0,
            leader_of_0,
            [2, 3, 1],
            isr=[1, 2],
            adding=[3],
            removing=[1],
            logs=[log(1, 9000, 2 * MB), log(2, 9000, 2 * MB), behind[3]],
            **listed,
        ),
        move(
            "t",
            1,
            2,
            [3, 1, 2],
            isr=[2, 1],
            adding=[3],
            removing=[2],
            logs=[log(2, 9000, 2 * MB), log(1, 9000, 2 * MB), behind[3]],
            **listed,
        ),
    ]


# Each leader sends 2 MB/s to its in-sync follower and needs 2 more for the new one: in-sync use 2, required 4.
VERDICTS = {
    1.5: "starved",
    1.99: "starved",
    2.0: "losing",
    3.0: "losing",
    4.0: "losing",
    5.0: "catching_up",
    9.0: "catching_up",
}
for _mb in VERDICTS:
    CASES.add(f"throttle of {_mb} MB/s", scene(three(round(_mb * MB), round(_mb * MB)), two_partitions()))


@pytest.mark.parametrize(("throttle_mb", "verdict"), VERDICTS.items())
def test_verdict_of_a_leader_follows_from_in_sync_use_and_requirement(
    sides: Results[Statuses], throttle_mb: float, verdict: str
) -> None:
    rate = round(throttle_mb * MB)
    leader = sides[f"throttle of {throttle_mb} MB/s"][1, "leader"]
    assert leader["in_sync_bytes_per_s"] == pytest.approx(2 * MB)
    assert leader["required_bytes_per_s"] == pytest.approx(4 * MB)
    assert leader["headroom_bytes_per_s"] == pytest.approx(rate - 4 * MB)
    assert leader["verdict"] == verdict


CASES.add("a destination of 3 MB/s", scene(three(9 * MB, 3 * MB), two_partitions()))


# Broker 3 receives 2 + 2 MB/s, whichever broker leads; none of it is in sync.
def test_a_destination_needs_the_sum_of_what_it_receives(sides: Results[Statuses]) -> None:
    destination = sides["a destination of 3 MB/s"][3, "follower"]
    assert destination["in_sync_bytes_per_s"] == 0
    assert destination["required_bytes_per_s"] == pytest.approx(4 * MB)
    assert destination["verdict"] == "losing"


# Broker 3 has 1,000 of 9,000 offsets, and a record has 1,000 bytes.
def test_a_destination_lists_the_remaining_bytes_and_leader_of_each_of_its_replicas(sides: Results[Statuses]) -> None:
    at_3_mb = sides["throttle of 3.0 MB/s"]
    found = [
        (r.name.partition, r.leader, r.remaining_bytes, r.write_bytes_per_s, r.target)
        for r in status_of(at_3_mb[3, "follower"]).load.catching_up
    ]
    assert found == [(0, 1, 8 * MB, pytest.approx(2 * MB), (2, 3)), (1, 2, 8 * MB, pytest.approx(2 * MB), (3, 1))]
    # A leader's followers are told of by their destinations.
    assert status_of(at_3_mb[1, "leader"]).load.catching_up == ()


FIRST, SECOND = two_partitions()
CASES.add("no log of one new replica", scene(three(3 * MB, 3 * MB), [FIRST | {"logs": FIRST["logs"][:2]}, SECOND]))


def test_replicas_with_unknown_remaining_bytes_are_not_listed_one_by_one(sides: Results[Statuses]) -> None:
    destination = sides["no log of one new replica"][3, "follower"]
    assert destination["moving_replicas"] == 2
    assert status_of(destination).load.catching_up == ()


def just_switched() -> list[dict[str, Any]]:
    """Broker 2 leads both partitions, the first one since this tick."""
    moves = two_partitions(leader_of_0=2)
    moves[0] |= {
        "previous_leader": 1,
        "switch_tick_ms": TICK_MS,
        "before_log": {k: v for k, v in log(1, 9000, 2 * MB).items() if "lag" not in k and "unchanged" not in k},
    }
    # The new leader's own log stood still at the moment of the switch: the rate from before it counts.
    moves[0]["logs"][1] = log(2, 9000, 0)
    return moves


CASES.add("just switched", scene(three(5_600_000, 9 * MB), just_switched()))


# Broker 2 leads both: 2 x 2 MB/s to each of two followers: required 8, in-sync use 4.
def test_a_leader_switch_changes_the_verdict_at_once(sides: Results[Statuses]) -> None:
    leader = sides["just switched"][2, "leader"]
    assert leader["required_bytes_per_s"] == pytest.approx(8 * MB)
    assert leader["in_sync_bytes_per_s"] == pytest.approx(4 * MB)
    assert leader["verdict"] == "losing"
    switched = next(p for p in leader["partitions"] if p["partition"] == 0)
    assert (switched["previous_leader"], switched["switch_tick_ms"]) == (1, TICK_MS)


RATED = three(9 * MB, 9 * MB)


def dead(number: int) -> list[dict[str, Any]]:
    return [row | {"alive": row["broker"] != number} for row in RATED]


def large_move() -> Messages:
    """60 partitions of 20 kB/s that move to brokers 3 and 4 from leader 1, 10 of them just switched from 2, and 25 of
    1 MB/s that rest in the lists; partition 0 of those that move has no rate that is known.
    """
    listed = {"leader_listed": [1, 2], "follower_listed": [3, 4]}
    moves = []
    for n in range(60):
        to = 3 + n % 2
        switched = {"previous_leader": 2, "switch_tick_ms": TICK_MS - 5000} if n >= 50 else {}
        old = {"previous_leader": 2, "switch_tick_ms": TICK_MS - 600_000} if n < 10 else {}
        logs = [log(1, 9000, 20_000), log(to, 1000 + n, 10_000)] if n else [log(to, 1000, 10_000)]
        row = {"isr": [1, 2], "adding": [to], "removing": [2], "logs": logs, **listed, **switched, **old}
        moves.append(move("m", n, 1, [to, 1, 2], **row))
    moves += [move(f"r{n}", 0, 1, [1, 2], logs=[log(1, 9000, 1 * MB)], **listed) for n in range(25)]
    return scene([broker(b, 5 * MB, 5 * MB) for b in (1, 2, 3, 4)], moves)


CASES.add("large", large_move())


@pytest.fixture(scope="module")
def large(sides: Results[Statuses]) -> Statuses:
    return sides["large"]


# 59 x 20 kB/s x 1 in sync + 25 x 1 MB/s; with the new replica 59 x 20 kB/s more.
def test_known_rates_are_summed_even_if_one_rate_is_unknown(large: Statuses) -> None:
    leader = large[1, "leader"]
    assert (leader["in_sync_bytes_per_s"], leader["required_bytes_per_s"]) == (None, None)
    assert leader["known_in_sync_bytes_per_s"] == pytest.approx(59 * 20_000 + 25 * MB)
    assert leader["known_required_bytes_per_s"] == pytest.approx(2 * 59 * 20_000 + 25 * MB)
    assert leader["moving_bytes_per_s"] is None
    # Broker 3 receives the even ones, 0 among them; broker 4 the 30 odd ones.
    assert large[3, "follower"]["known_required_bytes_per_s"] == pytest.approx(29 * 20_000)
    assert large[4, "follower"]["moving_bytes_per_s"] == pytest.approx(30 * 20_000)


def test_counts_are_over_all_partitions_and_names_of_what_moves_before_what_rests(
    large: Statuses,
) -> None:
    leader = large[1, "leader"]
    counts = ("counting_partitions", "moving_partitions", "limited_partitions", "free_partitions")
    assert [leader[name] for name in counts] == [85, 60, 60, 0]
    assert {p["moving"] for p in leader["partitions"]} == {True}
    assert len(leader["partitions"]) == 20
    assert [(m["topic"], m["partition"], m["target"]) for m in leader["moves"][:2]] == [
        ("m", 0, [3, 1]),
        ("m", 1, [4, 1]),
    ]
    assert len(leader["moves"]) == 20
    assert (leader["resting_topic_count"], leader["resting_topics"][:2]) == (25, ["r0", "r1"])


# Partition n of the 60 has 9,000 - 1,000 - n records of 1,000 bytes to copy.
def test_each_broker_and_role_names_the_peers_of_its_copies(large: Statuses) -> None:
    to_4 = [8000 * 1000 - n * 1000 for n in range(1, 60, 2)]
    (peer,) = large[4, "follower"]["peers"]
    assert (peer["broker"], peer["replicas"], peer["remaining_bytes"]) == (1, 30, sum(to_4))
    assert peer["write_bytes_per_s"] == pytest.approx(30 * 20_000)
    assert peer["largest_remaining_bytes"] == to_4[0]
    peers = {p["broker"]: p for p in large[1, "leader"]["peers"]}
    assert {b: p["replicas"] for b, p in peers.items()} == {3: 30, 4: 30}
    # Of partition 0 nothing is known.
    assert (peers[3]["remaining_bytes"], peers[3]["write_bytes_per_s"]) == (None, None)
    assert peers[4]["remaining_bytes"] == sum(to_4)


# Ten of them came within the last window, each for two followers; those of ten minutes ago are no cause any more.
def test_switches_are_those_of_the_last_window(large: Statuses) -> None:
    (switch,) = large[1, "leader"]["switches"]
    assert (switch["previous_leader"], switch["partitions"], switch["switch_tick_ms"]) == (2, 10, TICK_MS - 5000)
    assert switch["bytes_per_s"] == pytest.approx(10 * 20_000 * 2)
    assert switch["names"] == ["m-50", "m-51", "m-52"]
    assert large[3, "follower"]["switches"] == []


def stalled_copies() -> Messages:
    """Broker 3 copies nothing: of 40 partitions of leader 1, of 2 of leader 2, and of one without a leader."""
    stuck = {"adding": [3], "isr": [1], "follower_listed": [3], "leader_listed": [1]}
    still = {"unchanged_since_ms": TICK_MS - 60_000, "lag_offsets": 8000}
    moves = [
        *(move("a", n, 1, [1, 3], logs=[log(1, 9000), log(3, 1000, **still)], **stuck) for n in range(40)),
        *(move("b", n, 2, [2, 3], **{**stuck, "isr": [2]}, logs=[log(2, 9000), log(3, 10, **still)]) for n in range(2)),
        move("c", 0, None, [1, 3], **stuck),
    ]
    return scene(RATED, moves)


CASES.add("stalled", stalled_copies())


def test_stalled_replicas_are_counted_by_cause_and_leader(sides: Results[Statuses]) -> None:
    destination = sides["stalled"][3, "follower"]
    found = [(s["cause"], s["leader"], s["replicas"], s["partitions"]) for s in destination["stalls"]]
    assert found == [
        ("unknown", 1, 40, ["a-0", "a-1", "a-2"]),
        ("unknown", 2, 2, ["b-0", "b-1"]),
        ("no_leader", None, 1, ["c-0"]),
    ]
    assert (destination["stalled_replicas"], destination["waiting_replicas"]) == (43, 0)


def leaderless() -> Messages:
    moves = two_partitions()
    return scene(three(3 * MB, 3 * MB), [*moves, moves[0] | {"partition": 9, "leader": None, "isr": [1]}])


CASES.add("leaderless", leaderless())


# Without a leader nothing is written and nobody fetches: the others of its destination have their verdict.
def test_a_partition_without_a_leader_hides_no_throttle_that_is_too_low(sides: Results[Statuses]) -> None:
    destination = sides["leaderless"][3, "follower"]
    assert (destination["verdict"], destination["required_bytes_per_s"]) == ("losing", pytest.approx(4 * MB))
    assert [(s["cause"], s["replicas"]) for s in destination["stalls"]] == [("no_leader", 1)]
    assert sides["leaderless"][1, "leader"]["verdict"] == "losing"


def many_leaderless() -> Messages:
    """50 partitions, 30 of them moving, that broker 2 holds out of sync and broker 1, alone in sync, does not lead."""
    row = {"isr": [1], "offline": [1], "compacted": None}
    moving = [move("a", n, None, [3, 2, 1], adding=[3], removing=[1], **row) for n in range(30)]
    led = move("c", 0, 3, [2, 3], isr=[3], compacted=None)
    return scene(dead(1), [*moving, *(move("b", n, None, [1, 2], **row) for n in range(20)), led])


SETTINGS = {"quota_window_num": 6, "replica_fetch_max_bytes": 2**21, "log_dirs_throttle_bytes_per_s": 7}
CASES.add("many leaderless", many_leaderless())
CASES.add("settings", scene([broker(1, MB, MB, **SETTINGS, log_dirs_throttle_source="broker")], []))


# Of broker 2 the 30 + 20 without a leader, and one that broker 3 leads; broker 1, which is down, is in sync.
def test_lost_replicas_without_a_leader_are_counted_beyond_those_that_are_named(sides: Results[Statuses]) -> None:
    row = sides["many leaderless"][2, "follower"]
    names = ("lost_replicas", "lost_moving_replicas", "lost_leaderless_replicas", "lost_leaderless_moving_replicas")
    assert [row[name] for name in names] == [51, 30, 50, 30]
    assert len(row["lost"]) == 20
    state = status_of(row)
    assert (state.lost_leaderless_replicas, state.lost_leaderless_moving_replicas) == (50, 30)
    # Where there is no replica, none is lost.
    assert sides["settings"][1, "leader"]["lost_leaderless_replicas"] == 0


def test_settings_of_a_broker_are_passed_on(sides: Results[Statuses]) -> None:
    row = sides["settings"][1, "leader"]
    assert {name: row[name] for name in SETTINGS} == SETTINGS
    assert status_of(row).log_dirs.source == "broker"


# Of the two partitions the first removes broker 1, the second keeps it.
CASES.add(
    "a replica that is to stay is down",
    scene(dead(1), [m | {"offline": [1], "isr": [2], "leader": 2} for m in two_partitions()]),
)
CASES.add("a destination is down", scene(dead(3), [m | {"offline": [3]} for m in two_partitions()]))


def test_leaving_and_incoming_replicas_of_a_dead_broker_are_counted(sides: Results[Statuses]) -> None:
    lost = sides["a replica that is to stay is down"][1, "follower"]
    assert (lost["lost_replicas"], lost["lost_leaving_replicas"]) == (2, 1)
    leader = sides["a destination is down"][1, "leader"]
    assert (leader["down_replicas"], leader["verdict"]) == (1, "idle")


def one_of_two_destinations_is_down() -> Messages:
    """Leader 1 at 5 MB/s: of 6 MB/s and 2 MB/s, which move to 3, that is down, and 4; 3 MB/s more have no entry."""
    row = {"isr": [1], "leader_listed": [1], "follower_listed": [3, 4]}
    moves = [
        move("d", 0, 1, [1, 3], adding=[3], offline=[3], logs=[log(1, 90_000, 6 * MB)], **row),
        move("d", 1, 1, [1, 4], adding=[4], logs=[log(1, 90_000, 2 * MB), log(4, 1000, 3 * MB)], **row),
        move("e", 0, 1, [1, 3], offline=[3], logs=[log(1, 90_000, 3 * MB)], **row | {"leader_listed": []}),
    ]
    return scene([broker(b, 5 * MB, 5 * MB, alive=b != 3) for b in (1, 3, 4)], moves)


CASES.add("one of two destinations is down", one_of_two_destinations_is_down())


def test_the_rate_that_replicas_of_a_dead_broker_would_require_is_counted_for_their_leader(
    sides: Results[Statuses],
) -> None:
    found = sides["one of two destinations is down"]
    leader = status_of(found[1, "leader"])
    assert (leader.verdict, leader.load.required_bytes_per_s) == ("catching_up", pytest.approx(2 * MB))
    assert leader.load.down_required_bytes_per_s == pytest.approx(6 * MB)
    assert {key: row["down_required_bytes_per_s"] for key, row in found.items() if key != (1, "leader")} == {
        (1, "follower"): 0,
        **{(b, role): 0 for b in (3, 4) for role in ("leader", "follower")},
    }
    # Broker 2 leads both at 2 MB/s; broker 1, which is down, follows one that it is to keep and one that it leaves.
    (two,) = (row for key, row in sides["a replica that is to stay is down"].items() if key == (2, "leader"))
    assert two["down_required_bytes_per_s"] == pytest.approx(4 * MB)


def leaders_leave() -> Messages:
    """Three partitions of 1 MB/s from brokers 1, which leads, and 2 to 3 and 4: two to be led by 3, one by 4."""
    row = {"isr": [1, 2], "adding": [3, 4], "removing": [1, 2], "leader_listed": [1, 2], "follower_listed": [3, 4]}
    logs = [log(1, 9000, 1 * MB), log(3, 1000), log(4, 1000)]
    moves = [move("l", n, 1, [*to, 1, 2], **row, logs=logs) for n, to in enumerate([(3, 4), (3, 4), (4, 3)])]
    return scene([broker(b, 5 * MB, 5 * MB) for b in (1, 2, 3, 4)], moves)


CASES.add("leaders leave", leaders_leave())


# Of 3 MB/s each that leader 1 sends of three partitions nothing stays, shared by two new replicas of each.
def test_traffic_that_ends_with_a_removed_leader_is_counted_for_it_and_its_successor(sides: Results[Statuses]) -> None:
    for destination, leads in ((3, 2), (4, 1)):
        (peer,) = sides["leaders leave"][destination, "follower"]["peers"]
        assert peer["leaving_bytes_per_s"] == pytest.approx(3 * 3 * MB / 2)
        assert peer["leading_bytes_per_s"] == pytest.approx(leads * MB)
    of_leader = {p["broker"]: p["leading_bytes_per_s"] for p in sides["leaders leave"][1, "leader"]["peers"]}
    assert of_leader == {3: pytest.approx(2 * MB), 4: pytest.approx(1 * MB)}


# A follower list with an entry of broker 9 alone is set all the same.
CASES.add(
    "a list at rest",
    scene(
        [broker(1, None, None), broker(2, None, None)],
        [move("t", 0, 1, [1, 2], leader_listed=[], follower_listed=[9], logs=[log(1, 9000, MB)])],
    ),
)


def test_a_resting_list_is_reported_for_its_role_whichever_broker_it_names(sides: Results[Statuses]) -> None:
    topics = {key: row["resting_topics"] for key, row in sides["a list at rest"].items() if row["resting_topics"]}
    assert topics == {(2, "follower"): ["t"]}


CASES.add("no moves", scene([broker(1, None, None)], []))


def test_a_broker_without_moves_is_idle(sides: Results[Statuses]) -> None:
    leader = sides["no moves"][1, "leader"]
    assert leader["verdict"] == "idle"
    assert leader["required_bytes_per_s"] == 0


CASES.add(
    "a broker is down",
    scene(
        dead(2),
        [FIRST | {"isr": [1]}, SECOND, move("u", 7, 1, [1, 2, 3], isr=[1], offline=[2], compacted=None)],
    ),
)


def test_replicas_that_no_move_brings_are_lost_once_out_of_the_isr(sides: Results[Statuses]) -> None:
    found = sides["a broker is down"]
    down = status_of(found[2, "follower"])
    assert (down.alive, down.lost_replicas, down.lost_moving_replicas) == (False, 2, 1)
    assert [(lost.name, lost.leader, lost.moving) for lost in down.lost] == [("t-0", 1, True), ("u-7", 1, False)]
    # Broker 3 is to get t-0 and t-1, and is missing from the ISR of u-7 for no reason that is known.
    behind = status_of(found[3, "follower"])
    assert (behind.lost_replicas, [lost.name for lost in behind.lost]) == (1, ["u-7"])
    assert behind.load.limited_replicas + behind.load.free_replicas == 2
    # Who leads is not who lost them.
    assert [found[1, "leader"][name] for name in ("lost_replicas", "lost_moving_replicas", "lost")] == [0, 0, []]
    # t-1 has only broker 3 out of sync, as planned; t-0 has broker 2 out of sync as well.
    assert [found[b, "leader"]["planned_partitions"] for b in (1, 2)] == [0, 1]


CASES.add(
    "one replica out of sync",
    scene([broker(b, MB, MB) for b in (1, 2)], [move("u", 7, 1, [1, 2], isr=[1], compacted=None)]),
)


def test_a_partition_that_only_lacks_a_replica_is_nobodys_traffic(sides: Results[Statuses]) -> None:
    found = sides["one replica out of sync"]
    assert {row["verdict"] for row in found.values()} == {"idle"}
    assert [row["moving_partitions"] + row["resting_listed_partitions"] for row in found.values()] == [0] * 4


CASES.add(
    "only leader 1 listed", scene([broker(2, 9 * MB, 9 * MB)], [m | {"leader_listed": [1]} for m in two_partitions()])
)


# Broker 2 leads t-1 and is in sync with t-0; with both it would send 4 MB/s more.
def test_an_in_sync_broker_has_the_rate_that_leading_one_more_partition_would_add(sides: Results[Statuses]) -> None:
    found = sides["throttle of 9.0 MB/s"]
    takeover = status_of(found[2, "follower"]).takeover
    assert takeover is not None
    assert (takeover.topic, takeover.partition, takeover.leader) == ("t", 0, 1)
    assert takeover.bytes_per_s == pytest.approx(4 * MB)
    # Broker 3 has nothing in sync; and one that the list does not name would not be throttled.
    assert found[3, "follower"]["takeover"] is None
    assert sides["only leader 1 listed"][2, "follower"]["takeover"] is None


# Change of a partition of which a copy does not grow, to the reason.
STALLS: list[tuple[dict[str, Any], str]] = [
    ({"offline": [3]}, "offline"),
    ({"leader": None}, "no_leader"),
    ({}, "not_fetching"),
]
for _change, _stall in STALLS:
    for _fetches in (False, True):
        _logs = [log(1, 9000, 2 * MB), log(3, 1000, 0, lag_offsets=8000 if _fetches else None)]
        CASES.add(f"{_stall}, fetches: {_fetches}", scene(RATED, [FIRST | _change | {"logs": _logs}]))


@pytest.mark.parametrize(("change", "stall"), STALLS)
def test_each_cause_of_a_stalled_replica_is_distinguished(
    sides: Results[Statuses], change: dict[str, Any], stall: str
) -> None:
    destination = sides[f"{stall}, fetches: False"][3, "follower"]
    assert destination["stall"] == stall
    fetches = sides[f"{stall}, fetches: True"][3, "follower"]
    assert fetches["stall"] == ("unknown" if stall == "not_fetching" else stall)


CASES.add(
    "rates and lists at rest",
    scene(
        [broker(1, MB, None, leader_throttle_source="default"), broker(2, None, None)],
        [move("t", 0, 1, [1, 2], leader_listed=[1, 2], follower_listed=[2], logs=[log(1, 9000, MB)])],
    ),
)


def test_resting_lists_and_the_source_of_a_rate_are_reported(sides: Results[Statuses]) -> None:
    found = sides["rates and lists at rest"]
    assert [found[1, "leader"][name] for name in ("resting_listed_partitions", "throttle_source")] == [1, "default"]
    assert found[2, "follower"]["resting_listed_partitions"] == 1
    assert {row["moving_partitions"] for row in found.values()} == {0}


CASES.add(
    "rates without lists",
    scene(three(MB, MB), [m | {"leader_listed": [], "follower_listed": []} for m in two_partitions()]),
)


def test_a_rate_without_a_list_limits_nothing(sides: Results[Statuses]) -> None:
    found = sides["rates without lists"]
    assert found[1, "leader"]["verdict"] == "unthrottled"
    assert found[3, "follower"]["verdict"] == "unthrottled"


CASES.add("lists without rates", scene(three(None, None), two_partitions()))


def test_a_list_without_a_rate_limits_nothing(sides: Results[Statuses]) -> None:
    assert sides["lists without rates"][1, "leader"]["verdict"] == "unthrottled"


def finished_and_listed() -> Messages:
    """RF 3, broker 1 leads t-0 at 0.5 MB/s with 2 in-sync followers, and t-1 at 1 MB/s, which broker 4 is to join."""
    listed = {"leader_listed": [1, 2, 3], "follower_listed": [4]}
    row = {"isr": [1, 2, 3], "adding": [4], "removing": [3], "logs": [log(1, 1000, MB), log(4, 10, 0.1 * MB)]}
    moves = [
        move("t", 0, 1, [1, 2, 4], logs=[log(1, 500, 0.5 * MB)], **listed),
        move("t", 1, 1, [4, 1, 2, 3], **row, **listed),
    ]
    return scene([broker(b, 4 * MB, 4 * MB) for b in (1, 2, 3, 4)], moves)


CASES.add("finished and listed", finished_and_listed())


def test_a_partition_that_finished_but_is_listed_still_counts(sides: Results[Statuses]) -> None:
    leader = sides["finished and listed"][1, "leader"]
    # 0.5 x 2 in sync + 1 x 2 in sync = 3; and 1 x 1 coming in: 4.
    assert leader["in_sync_bytes_per_s"] == pytest.approx(3 * MB)
    assert leader["required_bytes_per_s"] == pytest.approx(4 * MB)
    assert leader["verdict"] == "losing"


CASES.add("no logs", scene(RATED, [m | {"logs": []} for m in two_partitions()]))


def test_an_unknown_write_rate_is_no_data_and_never_a_number(sides: Results[Statuses]) -> None:
    leader = sides["no logs"][1, "leader"]
    assert leader["verdict"] == "no_data"
    assert leader["required_bytes_per_s"] is None
    assert "write rate unknown of 1 partition" in leader["reason"]


FRESH = [m | {"logs": [sample | {"prev_read_ms": None} for sample in m["logs"]]} for m in two_partitions()]
CASES.add("one reading", scene(RATED, FRESH))
CASES.add("one reading, and one without logs", scene(RATED, [FRESH[0], FRESH[1] | {"logs": []}]))


def test_a_write_rate_that_wants_a_second_reading_is_said_to_be_not_known_yet(sides: Results[Statuses]) -> None:
    found = sides["one reading"]
    assert found[1, "leader"]["reason"] == "write rate not known yet of 1 partition(s): it takes two readings"
    assert found[3, "follower"]["reason"] == "write rate not known yet of 2 partition(s): it takes two readings"
    # Where one of them is unknown for another cause, a second reading is not all that is wanting.
    mixed = sides["one reading, and one without logs"]
    assert mixed[3, "follower"]["reason"] == "write rate unknown of 2 partition(s)"


HUNG = broker(3, None, None, answered=False, throttles_known=False, error="no answer in 0.8 s")
CASES.add("a broker hangs", scene([*RATED[:2], HUNG], two_partitions()))


def test_unknown_throttles_are_no_data(sides: Results[Statuses]) -> None:
    destination = sides["a broker hangs"][3, "follower"]
    assert destination["verdict"] == "no_data"
    assert "no answer in 0.8 s" in destination["reason"]


DOWN = broker(3, None, None, alive=False, answered=False, throttles_known=False, error="down")
CASES.add(
    "a destination is down and does not answer",
    scene([*three(3 * MB, 3 * MB)[:2], DOWN], [m | {"offline": [3]} for m in two_partitions()]),
)


def test_a_destination_that_is_down_is_no_data_and_its_leader_owes_it_nothing(sides: Results[Statuses]) -> None:
    found = sides["a destination is down and does not answer"]
    assert found[3, "follower"]["verdict"] == "no_data"
    assert found[3, "follower"]["reason"] == "the broker is down"
    assert found[3, "follower"]["stalled_replicas"] == 2
    assert found[1, "leader"]["required_bytes_per_s"] == pytest.approx(2 * MB)
    assert found[1, "leader"]["verdict"] == "idle"


CASES.add("only the end of a tick", tick([broker(1, None, None)], [])[1:], 1)
CASES.add("a tick without its end", tick([broker(1, None, None)], [])[:2])


def test_half_a_tick_gives_no_verdict(sides: Results[Statuses]) -> None:
    assert sides["only the end of a tick"] == {}
    assert sides["a tick without its end"] == {}


CASES.add("shuffled", [scene(three(3 * MB, 3 * MB), two_partitions())[n] for n in (2, 1, 0, 1, 2)])


def test_order_and_duplicates_within_a_tick_change_nothing(sides: Results[Statuses]) -> None:
    straight, other = (
        sorted(str(row.asDict(recursive=True) | {"cluster": None}) for row in sides[name].values())
        for name in ("throttle of 3.0 MB/s", "shuffled")
    )
    assert other == straight
    assert len(straight) == 6


GOLD_CASES.add("losing", tick(three(3 * MB, 3 * MB), two_partitions()))


# 8,000 records of 1,000 bytes behind; destination copies 1 MB/s of 2 MB/s written: it falls back by 1 MB/s.
def test_progress_has_remaining_bytes_and_the_state_never(gold: Results[GoldRows]) -> None:
    rows = gold["losing"].progress
    assert [(r["topic"], r["partition"], r["adding_replica"]) for r in rows] == [("t", 0, 3), ("t", 1, 3)]
    assert rows[0]["lag_offsets"] == 8000
    assert rows[0]["remaining_bytes"] == 8 * MB
    assert rows[0]["catch_up_bytes_per_s"] == pytest.approx(-MB)
    assert (rows[0]["state"], rows[0]["eta_s"]) == ("never", None)


GOLD_CASES.add("catching up", tick(three(6 * MB, 6 * MB), two_partitions()))


# The destination gets 33 times 2.1 MB in 11.5 s, one response of each leader, of which 98.5 % are new: 5.93 MB/s, 1.93
# more than is written, and 16 MB take 8.3 s. Half a window of 11.5 s sooner or later, and by 95 to 100 % of 6 MB/s with
# one response more. Each leader has only 8 MB to send.
def test_progress_is_that_of_the_slower_broker_and_role(gold: Results[GoldRows]) -> None:
    rows = gold["catching up"].progress
    assert [row["eta_s"] for row in rows] == pytest.approx([8.30, 8.30], abs=0.01)
    # 16 MB by 6 + 2.1/11 - 4 MB/s, less 5.75 s; 16 MB by 0.95 x 6 - 4 MB/s, and 5.75 s.
    assert (rows[0]["eta_low_s"], rows[0]["eta_high_s"]) == pytest.approx((1.55, 15.16), abs=0.01)
    assert {row["state"] for row in rows} == {"catching_up"}


def between_bursts(leader_quota_mb: float, destination_quota_mb: float) -> Messages:
    """Destination 3 copies 1 kB/s more than is written: 8 MB of each leader would take 8,000 s at that rate."""
    copied = {"logs": [log(1, 9000, 2 * MB), log(2, 9000, 2 * MB), log(3, 1000, 2.001 * MB)]}
    leaders = {"leader_quota_bytes_per_s": leader_quota_mb * MB}
    brokers = [
        *(broker(b, 6 * MB, 9 * MB, **leaders) for b in (1, 2)),
        broker(3, 6 * MB, 9 * MB, follower_quota_bytes_per_s=destination_quota_mb * MB),
    ]
    return tick(brokers, [FIRST | copied, SECOND | copied])


ONLY_LEADERS_BIND, ONLY_DESTINATION_BINDS, NONE_BINDS = "only leaders bind", "only the destination binds", "none binds"
for _name, _quotas in ((ONLY_LEADERS_BIND, (5.9, 4.0)), (ONLY_DESTINATION_BINDS, (4.0, 8.9)), (NONE_BINDS, (4.0, 4.0))):
    GOLD_CASES.add(_name, between_bursts(*_quotas))


# Copies come in bursts, and a reading between two of them has seen almost none.
def test_the_finish_is_that_of_the_throttle_that_binds_and_not_of_a_rate_measured_between_bursts(
    gold: Results[GoldRows],
) -> None:
    for name, binding in (
        (ONLY_LEADERS_BIND, [(1, "leader"), (2, "leader")]),
        (ONLY_DESTINATION_BINDS, [(3, "follower")]),
    ):
        sides, progress = gold[name]
        for eta in ETAS:
            at_binding = max(sides[key][eta] for key in binding)
            assert at_binding < 60
            # A row that does not bind has the time of the throttles that do.
            others = [(1, "leader"), (2, "leader"), (3, "follower")]
            assert [sides[key][eta] for key in others if key not in binding] == [at_binding] * (3 - len(binding))
            assert max(row[eta] for row in progress) == at_binding


def test_where_no_throttle_binds_the_measured_rate_counts(gold: Results[GoldRows]) -> None:
    sides, progress = gold[NONE_BINDS]
    assert sides[3, "follower"]["eta_s"] == pytest.approx(8000)
    assert [row["eta_s"] for row in progress] == pytest.approx([8000, 8000])


def one_of_thirty_copies() -> Messages:
    """Broker 3 is to get 30 replicas: one copies 0.5 MB/s, the others have been idle for 40 s."""
    free = {"leader_listed": [], "follower_listed": []}
    moves = []
    for n in range(30):
        copies = log(3, 1000, 0.5 * MB, unchanged_since_ms=TICK_MS)
        waits = log(3, 1000, unchanged_since_ms=TICK_MS - 40_000)
        logs = [log(1, 9000), waits if n else copies]
        moves.append(move("t", n, 1, [1, 3], isr=[1], adding=[3], logs=logs, **free))
    return tick([broker(b, None, None) for b in (1, 3)], moves)


GOLD_CASES.add("one of thirty copies", one_of_thirty_copies())


# Of 30 replicas at 0.5 MB/s together, of which one copies now, each waits 30 x 1.05 MB / 0.5 MB/s = 63 s for its turn.
def test_a_replica_that_waits_for_its_turn_gets_there_with_the_others(gold: Results[GoldRows]) -> None:
    copies, waits = gold["one of thirty copies"].progress[:2]
    # 30 x 8 MB at 0.5 MB/s.
    assert (waits["state"], waits["eta_s"]) == ("catching_up", pytest.approx(480))
    assert (copies["state"], copies["eta_s"]) == ("catching_up", pytest.approx(16))


ETAS = ("eta_low_s", "eta_s", "eta_high_s")
TO_4 = {"topic": "u", "replicas": [2, 4, 1], "adding": [4], "follower_listed": [4]} | {
    "logs": [log(1, 9000, 2 * MB), log(2, 9000, 2 * MB), log(4, 1000, 1 * MB)]
}
for _mb in (1.5, 3.0):
    _brokers = [broker(1, round(_mb * MB), 9 * MB), *RATED[1:]]
    CASES.add(f"only leader 1 has {_mb} MB/s", scene(_brokers, two_partitions()))
    GOLD_CASES.add(f"only leader 1 has {_mb} MB/s", tick(_brokers, two_partitions()))
    CASES.add(
        f"leader 1 has {_mb} MB/s for another destination alone",
        scene(_brokers, [FIRST | {"leader_listed": [2]}, SECOND, FIRST | TO_4]),
    )


# Leader 1 sends 2 MB/s in sync and is to send 2 more: 1.5 MB/s leave nothing for the destination, 3 MB/s too little.
@pytest.mark.parametrize(("rate_mb", "verdict"), [(1.5, "starved"), (3.0, "losing")])
def test_a_destination_has_no_finish_if_the_throttle_of_one_of_its_leaders_is_too_low(
    sides: Results[Statuses], gold: Results[GoldRows], rate_mb: float, verdict: str
) -> None:
    short = gold[f"only leader 1 has {rate_mb} MB/s"]
    assert (short.sides[1, "leader"]["verdict"], short.sides[3, "follower"]["verdict"]) == (verdict, "catching_up")
    assert [short.sides[3, "follower"][name] for name in ETAS] == [None] * 3
    assert [sides[f"only leader 1 has {rate_mb} MB/s"][3, "follower"][name] for name in ETAS] == [None] * 3
    # Of leader 2, which has enough, one replica gets there; that of leader 1 does not.
    assert [row["state"] for row in short.progress] == ["never", "catching_up"]
    assert None not in [short.progress[1][name] for name in ETAS]
    # With enough at leader 1 there is a time; and where it is short of what it sends to another destination alone.
    assert None not in [sides["throttle of 9.0 MB/s"][3, "follower"][name] for name in ETAS]
    other = sides[f"leader 1 has {rate_mb} MB/s for another destination alone"]
    assert other[1, "leader"]["verdict"] == verdict
    assert None not in [other[3, "follower"][name] for name in ETAS]


def test_an_unknown_version_is_skipped(spark: SparkSession) -> None:
    messages = [m | {"version": 99} for m in tick([broker(1, None, None)], [])]
    assert alert_messages(records(spark, [*messages, message("moves", 5, [])])).count() == 1
