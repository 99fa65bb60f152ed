"""Whose a rate or a list is by the journal."""

from __future__ import annotations

import json
from dataclasses import replace

from headroom.planning.reassignments.run.journal import JournalRow
from headroom.planning.reassignments.run.owners import ThrottleOwner, owners_by_subject

RATE, LIST = "broker 2 as leader", "topic t as leader"
RUN_COMMAND = "headroom reassign run move.json --execute"


def row(run_id: str, step: str, state: str, subject: str, after: str | None = None, command: str = "") -> JournalRow:
    command = command or ("throttle apply" if run_id.startswith("apply") else "reassign run")
    return JournalRow(run_id, 1, "orders", command, step, state, subject, None, after, "anna@host", 1)


def owners_of(*rows: JournalRow) -> dict[str, ThrottleOwner]:
    """Return the owners by rows that were written one after another."""
    return owners_by_subject([replace(row, seq=number, at_ms=number) for number, row in enumerate(rows, start=1)])


def began(run_id: str) -> JournalRow:
    return row(run_id, "run", "intended", "fingerprint", json.dumps({"command": RUN_COMMAND}))


def owners(*rows: JournalRow) -> dict[str, str]:
    return {subject: owner.run_id for subject, owner in owners_of(*rows).items()}


def test_the_newest_command_that_has_not_taken_it_back_is_the_owner() -> None:
    old = [row("old", "rate", state, RATE, "5") for state in ("intended", "done")]
    new = [row("new", "rate", state, RATE, "9") for state in ("intended", "done")]
    assert owners(*old) == {RATE: "old"}
    assert owners(*old, *new) == {RATE: "new"}
    # Restored to what the earlier one had set.
    assert owners(*old, *new, row("new", "rate", "undone", RATE, "5")) == {RATE: "old"}
    # A higher rate that was not set leaves the one before.
    assert owners(*new, row("new", "rate", "intended", RATE, "20"), row("new", "rate", "failed", RATE, "20")) == {
        RATE: "new"
    }
    assert owners(row("new", "rate", "intended", RATE, "9"), row("new", "rate", "failed", RATE, "9")) == {}


def test_a_list_is_owned_as_long_as_an_entry_is_left() -> None:
    added = row("run", "list", "intended", LIST, "0:1,1:2")
    assert owners(added, row("run", "list", "undone", LIST, "0:1")) == {LIST: "run"}
    assert owners(added, row("run", "list", "undone", LIST, "0:1,1:2")) == {}


def test_entries_that_throttle_apply_added_are_not_of_the_run_that_is_cleaned() -> None:
    found = owners_of(
        began("run"),
        row("run", "list", "intended", LIST, "0:1"),
        row("apply", "list", "done", LIST, "5:1"),
        row("run", "list", "undone", LIST, "0:1", command="reassign clean"),
    )
    assert found == {LIST: ThrottleOwner("apply", "throttle apply", "anna@host")}


def test_a_removal_ends_the_ownership_of_all() -> None:
    set_by = [row("run", "rate", "done", RATE, "5"), row("apply", "rate", "done", RATE, "9")]
    intended = row("clear", "rate", "intended", RATE, command="throttle clear")
    assert owners(*set_by, intended) == {RATE: "apply"}
    assert owners(*set_by, intended, row("clear", "rate", "failed", RATE, command="throttle clear")) == {RATE: "apply"}
    assert owners(*set_by, intended, row("clear", "rate", "done", RATE, command="throttle clear")) == {}


def test_a_run_that_has_not_ended_has_the_command_that_continues_it() -> None:
    rate = row("run", "rate", "done", RATE, "5")
    killed = owners_of(began("run"), rate)[RATE]
    assert killed == ThrottleOwner("run", "reassign run", "anna@host", True, True, RUN_COMMAND)
    ended = owners_of(began("run"), rate, row("run", "run", "done", "fingerprint"))[RATE]
    assert (ended.runs_plan, ended.unfinished, ended.continue_command) == (True, False, None)
    # Written by an older version, the options have no command.
    for options in ("{}", "no json", None):
        old = row("run", "run", "intended", "fingerprint", options)
        assert owners_of(old, rate)[RATE].continue_command is None


def test_the_newest_unfinished_run_is_the_one_that_a_process_carries_on() -> None:
    other = "topic t as follower"
    killed = [began("killed"), row("killed", "rate", "done", RATE, "5")]
    running = [began("running"), row("running", "list", "done", other, "0:1")]
    rows = [replace(one, at_ms=at_ms) for at_ms, one in enumerate([*killed, *running])]
    found = owners_by_subject(rows, "pid 7 on host h")
    assert {subject: owner.process for subject, owner in found.items()} == {RATE: None, other: "pid 7 on host h"}
    assert found[RATE].state_text(moves=False) == "has not ended"
    assert found[other].state_text(moves=True) == "is running (pid 7 on host h)"
    assert found[other].state_text(moves=False) == (
        "is running (pid 7 on host h), with no reassignment at the moment: it pauses between two batches, or ends"
    )
    # The lock may be that of a command that cleans.
    ended = replace(rows[-1], step="run", state="done", at_ms=9)
    assert owners_by_subject([*rows, ended], "pid 7 on host h")[other].state_text(moves=False) == ""


def test_a_clock_that_was_set_back_during_a_run_does_not_leave_it_unfinished() -> None:
    rows = [began("run"), row("run", "rate", "done", RATE, "5"), row("run", "run", "done", "fingerprint")]
    # The last row is the earliest by its time.
    timed = [replace(row, seq=seq, at_ms=at) for row, seq, at in zip(rows, (1, 2, 3), (1000, 1001, 400), strict=True)]
    assert not owners_by_subject(timed)[RATE].unfinished
    assert owners_by_subject(timed[::-1]) == owners_by_subject(timed)
