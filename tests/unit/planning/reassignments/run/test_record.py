"""The record of a run from its journal: what it has set, and what it has taken back."""

from __future__ import annotations

from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from headroom.planning.reassignments.run.journal import JournalRow, ThrottledList
from headroom.planning.reassignments.run.record import (
    DirectoryPlacement,
    OwnRate,
    RecordedRun,
    RunState,
    Submission,
    run_records,
)
from headroom.schemas.keys import BrokerRole, LogDirsRate, ReplicaKey, Role, TopicPartition

NAME = TopicPartition("my-topic", 3)
LIST = ThrottledList("my-topic", Role.LEADER)
RATE = BrokerRole(2, Role.FOLLOWER)


def row(
    step: str, state: str, subject: str, before: str | None = None, after: str | None = None, seq: int = 1
) -> JournalRow:
    return JournalRow(
        "run", seq, "orders", "reassign run", step, state, subject, before, after, "anna@host", 1000 + seq
    )


def record(*rows: JournalRow) -> RecordedRun:
    return RecordedRun("run").after(rows)


def test_entries_belong_to_the_run_from_the_intention_until_they_are_undone() -> None:
    intended = row("list", "intended", str(LIST), "9:9", "3:1,3:2")
    assert record(intended).entries == {LIST: {(3, 1), (3, 2)}}
    assert record(intended, row("list", "undone", str(LIST), None, "3:1")).entries == {LIST: {(3, 2)}}
    assert not record(intended, row("list", "undone", str(LIST), None, "3:1,3:2")).leaves_behind


def test_a_rate_that_is_raised_again_goes_back_to_the_first_one() -> None:
    subject = "broker 2 as follower"
    rows = [row("rate", "intended", subject, "5", "10"), row("rate", "intended", subject, "10", "20")]
    assert record(*rows).rates == {RATE: OwnRate(5, frozenset({10, 20}))}
    assert record(row("rate", "intended", subject, None, "10")).rates[RATE].before is None
    assert record(*rows, row("rate", "undone", subject, "20", "5")).rates == {}


def test_a_rate_is_confirmed_once_its_broker_has_read_it_back_until_the_run_ends() -> None:
    intended, done = (row("rate", state, "broker 2 as follower", "5", "10") for state in ("intended", "done"))
    assert [record(*rows).rates[RATE].confirmed for rows in ((intended,), (intended, done))] == [False, True]
    assert record(intended, done, intended).rates[RATE].confirmed
    # A broker that was down keeps the rate after the end.
    assert record(intended, done, row("run", "undone", "abc")).rates == {RATE: OwnRate(5, frozenset({10}))}


def test_rates_from_before_a_run_are_known_until_it_ends() -> None:
    options = '{"rates": {"broker 2 as follower": 5, "broker 3 as log_dirs": null, "a newer one": 7}}'
    began, ended = row("run", "intended", "abc", None, options), row("run", "undone", "abc")
    assert record(began).rates_before == {RATE: 5, LogDirsRate(3): None}
    assert record(began, ended).rates_before == {}
    # The journal of an earlier version.
    assert record(row("run", "intended", "abc", None, "{}")).rates_before == {}


def test_a_refused_partition_is_no_submission_and_a_cancelled_one_neither() -> None:
    submitted = row("submit", "intended", str(NAME), "[1,2]", "[3,2]")
    assert record(submitted).submitted == {NAME: Submission((1, 2), (3, 2))}
    refused = record(submitted, row("submit", "failed", str(NAME), "[1,2]", "InvalidReplicaAssignment"))
    assert (refused.submitted, refused.refused) == ({}, {NAME: "InvalidReplicaAssignment"})
    begun = record(submitted, row("cancel", "intended", str(NAME), "[3,2,1]", "[1,2]"))
    assert (begun.cancelling, begun.leaves_behind) == ({NAME}, True)
    done = begun.after([row("cancel", "done", str(NAME), None, "[1,2]")])
    assert (done.submitted, done.leaves_behind, done.cancelled) == ({}, False, {NAME})
    assert done.after([submitted]).cancelled == frozenset()


def test_partitions_of_one_request_have_its_number_also_where_the_rows_come_one_by_one() -> None:
    def submitting(*numbers: int) -> list[JournalRow]:
        names = [str(TopicPartition("my-topic", number)) for number in numbers]
        intended = [row("submit", "intended", name, "[1,2]", "[3,2]") for name in names]
        return [*intended, *(row("submit", "done", name, "[1,2]", "[3,2]") for name in names)]

    rows = [*submitting(0, 1), row("finish", "done", "my-topic-0", "[3,2]", "[3,2]"), *submitting(2), *submitting(1)]
    expected = {TopicPartition("my-topic", 0): 1, TopicPartition("my-topic", 1): 3, TopicPartition("my-topic", 2): 2}
    assert record(*rows).requests == expected
    one_by_one = RecordedRun("run")
    for single in rows:
        one_by_one = one_by_one.after([single])
    assert one_by_one.requests == expected


def test_a_move_that_others_cancelled_is_known_by_its_replicas() -> None:
    submitted = row("submit", "intended", str(NAME), "[1,2]", "[3,2]")

    def cancelled(replicas: str) -> frozenset[TopicPartition]:
        return record(submitted, row("finish", "failed", str(NAME), "[3,2]", replicas)).cancelled

    # In another order, sent elsewhere, and deleted.
    assert (cancelled("[2,1]"), cancelled("[4,2]"), cancelled("[]")) == ({NAME}, frozenset(), frozenset())


def test_a_replica_is_placed_from_the_intention_and_keeps_the_directory_from_before_the_run() -> None:
    replica, subject = ReplicaKey(TopicPartition("my-topic", 3), 1), "my-topic-3 on broker 1"
    intended = row("place", "intended", subject, "/a", "/b")
    assert record(intended).placed == {replica: DirectoryPlacement("/a", "/b")}
    assert record(intended).placing == {replica}
    # Requested again after a crash, when its broker had put the new replica elsewhere.
    new = [row("place", "intended", subject, before, "/b") for before in (None, "/c")]
    assert record(*new).placed == {replica: DirectoryPlacement(None, "/b")}
    done = record(intended, row("place", "done", subject, "/a", "/b"))
    assert (done.placed, done.placing, done.leaves_behind) == (record(intended).placed, frozenset(), False)
    refused = record(intended, row("place", "failed", subject, "/a", "broker 1: cannot be in /b"))
    assert (refused.placed, refused.placing, refused.refused) == ({}, frozenset(), {NAME: "broker 1: cannot be in /b"})
    assert record(intended, row("place", "undone", subject, "/b", "/a")).placed == {}
    # A replica that the plan removes is on its way nowhere.
    assert record(row("place", "intended", subject, "/a", None)).placing == frozenset()


def test_the_rate_between_directories_is_a_rate_of_the_run() -> None:
    rows = [row("rate", "intended", "broker 2 as log_dirs", None, "5")]
    assert record(*rows).rates == {LogDirsRate(2): OwnRate(None, frozenset({5}))}
    assert record(*rows, row("rate", "undone", "broker 2 as log_dirs", "5", None)).rates == {}
    # Only a broker has a rate of its own: this is a row of throttle clear.
    assert record(row("rate", "intended", "the cluster-wide default as leader", None, "5")).rates == {}


def test_the_last_row_of_a_run_decides_its_state() -> None:
    began, done, ended = (row("run", state, "abc") for state in ("intended", "done", "undone"))
    states = [record(*rows).state for rows in ((began,), (began, done), (began, ended), (began, ended, began))]
    assert states == [RunState.UNFINISHED, RunState.DONE, RunState.ENDED, RunState.UNFINISHED]
    assert (record(began).fingerprint, record(began).by) == ("abc", "anna@host")


def test_steps_of_a_newer_version_and_rows_of_other_commands_are_left_out() -> None:
    assert record(row("run", "intended", "abc"), row("sing", "done", "a song")).state is RunState.UNFINISHED
    assert run_records([row("rate", "done", "broker 2 as leader", None, "5")]) == []


def test_a_run_whose_first_rows_are_lost_is_unfinished_and_still_to_be_cleaned() -> None:
    rate = row("rate", "intended", "broker 2 as follower", "5", "10", seq=3)
    submitted = row("submit", "intended", str(NAME), "[1,2]", "[3,2]", seq=4)
    for rows in ([rate], [rate, submitted]):
        (found,) = run_records(rows)
        assert (found.state, found.command, found.by) == (RunState.UNFINISHED, "reassign run", "anna@host")
        assert found.leaves_behind
        assert found.rows == rows[-1].seq
    # Of a command that sets a throttle and is done.
    assert run_records([replace(rate, command="throttle apply")]) == []


@pytest.mark.parametrize(
    "damaged",
    [
        row("submit", "foo", str(NAME), "[1,2]", "[3,2]", seq=2),
        row("submit", "intended", "no-partition", "[1,2]", "[3,2]", seq=2),
        row("submit", "intended", str(NAME), "[1,2", "[3,2]", seq=2),
        row("submit", "intended", str(NAME), "3", "[3,2]", seq=2),
        row("rate", "intended", "broker 2 as follower", "many", "10", seq=2),
        row("rate", "intended", "broker 2 as follower", "5", "1e9", seq=2),
        row("rate", "intended", None, "5", "10", seq=2),  # type: ignore[arg-type]
        row("list", "intended", None, None, "3:1", seq=2),  # type: ignore[arg-type]
    ],
)
def test_a_damaged_row_costs_only_itself_and_is_named(damaged: JournalRow) -> None:
    began, rate = row("run", "intended", "abc"), row("rate", "intended", "broker 2 as leader", None, "7", seq=3)
    found = record(began, damaged, rate)
    assert found.damaged_rows == {2}
    assert found.rates == {BrokerRole(2, Role.LEADER): OwnRate(None, frozenset({7}))}
    assert (found.submitted, found.entries, found.rows) == ({}, {}, 3)


def test_rows_that_a_disk_has_lost_are_named_like_damaged_ones() -> None:
    began, rate = row("run", "intended", "abc"), row("rate", "intended", "broker 2 as leader", None, "7", seq=4)
    assert record(began, rate).damaged_rows == {2, 3}
    assert record(replace(began, seq=3), rate).damaged_rows == {1, 2}
    done = row("run", "done", "abc", seq=10**15)
    assert len(record(began, rate, done).damaged_rows) < 20_000


STEPS = st.sampled_from(
    [
        ("run", "intended", "abc", None, None),
        ("list", "intended", str(LIST), None, "3:1"),
        ("list", "done", str(LIST), None, "3:1"),
        ("list", "undone", str(LIST), None, "3:1"),
        ("rate", "intended", "broker 2 as follower", None, "7"),
        ("rate", "undone", "broker 2 as follower", "7", None),
        ("submit", "intended", str(NAME), "[1,2]", "[3,2]"),
        ("finish", "done", str(NAME), "[3,2]", "[3,2]"),
        ("place", "intended", "my-topic-3 on broker 1", "/a", "/b"),
        ("place", "failed", "my-topic-3 on broker 1", "/a", "refused"),
        ("rate", "intended", "broker 2 as log_dirs", None, "7"),
        ("cancel", "intended", str(NAME), "[3,2]", "[1,2]"),
        ("cancel", "done", str(NAME), None, "[1,2]"),
        ("run", "done", "abc", None, None),
    ]
)


@given(st.lists(STEPS, max_size=12), st.integers(0, 12), st.randoms())
def test_the_record_does_not_depend_on_how_the_rows_are_read(
    steps: list[tuple[str, str, str, str | None, str | None]], cut: int, random: object
) -> None:
    rows = [row(*step, seq=number) for number, step in enumerate(steps, start=1)]
    whole = record(*rows)
    assert record(*rows[:cut]).after(rows[cut:]) == whole
    shuffled = list(rows)
    random.shuffle(shuffled)  # type: ignore[attr-defined]
    assert run_records(shuffled) == ([whole] if any(step[0] == "run" for step in steps) else [])


def of_run(run_id: str, found: JournalRow, at_ms: int, seq: int = 1) -> JournalRow:
    return replace(found, run_id=run_id, at_ms=at_ms, seq=seq)


def test_a_rate_that_another_run_has_left_is_not_the_one_from_before() -> None:
    began, subject = row("run", "intended", "abc"), "broker 2 as follower"
    old = [of_run("b-old", began, 1), of_run("b-old", row("rate", "intended", subject, "3", "10"), 2, 2)]
    new = [of_run("a-new", began, 3), of_run("a-new", row("rate", "intended", subject, "10", "20"), 4, 2)]
    newest = [of_run("c", began, 5), of_run("c", row("rate", "intended", subject, "20", "30"), 6, 2)]
    found = {r.run_id: r.rates[RATE] for r in run_records([*newest, *new, *old])}
    assert found == {
        "b-old": OwnRate(3, frozenset({10})),
        "a-new": OwnRate(3, frozenset({20})),
        "c": OwnRate(3, frozenset({30})),
    }
    # Taken back before, the same rate is one of others; so is another rate.
    undone = of_run("b-old", row("rate", "undone", subject, "10", "3"), 2, 3)
    assert run_records([*old, undone, *new])[-1].rates[RATE].before == 10
    changed = of_run("a-new", row("rate", "intended", subject, "11", "20"), 4, 2)
    assert run_records([*old, new[0], changed])[-1].rates[RATE].before == 11
    # A rate of throttle apply is one of others.
    applied = [replace(r, command="throttle apply") for r in old[1:]]
    assert [r.rates[RATE].before for r in run_records([*applied, *new])] == [10]
