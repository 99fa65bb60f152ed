"""Which orders of replicas the journal knows: of moves without an end, and of cancellations that were interrupted."""

from __future__ import annotations

from dataclasses import replace

from headroom.planning.reassignments.cluster_state import PartitionPlacement
from headroom.planning.reassignments.run.journal import JournalRow
from headroom.planning.reassignments.run.orders import known_orders

NAME = "t-0"
BEFORE, TARGET, LEFT = (3, 2, 1), (0, 2, 1), (2, 1, 3)


def row(step: str, state: str, before: str | None = None, after: str | None = None, at_ms: int = 1) -> JournalRow:
    return JournalRow(f"run-{at_ms}", 1, "orders", "reassign run", step, state, NAME, before, after, "anna@host", at_ms)


SUBMITTED = row("submit", "intended", "[3,2,1]", "[0,2,1]")
BEGUN = row("cancel", "intended", "[0,2,1,3]", "[3,2,1]", at_ms=2)


def moving(target: tuple[int, ...] = TARGET) -> PartitionPlacement:
    adding = tuple(broker for broker in target if broker not in BEFORE)
    return PartitionPlacement("t", 0, 3, (*target, 3), BEFORE, adding, (3,))


def resting(replicas: tuple[int, ...]) -> PartitionPlacement:
    return PartitionPlacement("t", 0, replicas[0], replicas, replicas)


def test_the_order_before_a_move_is_that_of_its_submission_until_its_end() -> None:
    assert known_orders([SUBMITTED]).before(moving()) == BEFORE
    assert known_orders([SUBMITTED, BEGUN]).before(moving()) == BEFORE
    # Sent elsewhere by others, and of a run that has ended.
    assert known_orders([SUBMITTED]).before(moving((5, 2, 1))) is None
    for ended in (
        row("finish", "done", "[0,2,1]", "[0,2,1]", at_ms=3),
        row("finish", "failed", "[0,2,1]", "[2,1,3]", at_ms=3),
        row("submit", "failed", "[3,2,1]", "refused", at_ms=3),
        row("cancel", "done", None, "[3,2,1]", at_ms=3),
    ):
        assert known_orders([ended, SUBMITTED]).before(moving()) is None


def test_a_clock_that_was_set_back_during_a_run_does_not_make_its_end_the_first_row() -> None:
    ended = replace(row("finish", "done", "[0,2,1]", "[0,2,1]"), seq=2, at_ms=0)
    assert ended.run_id == SUBMITTED.run_id
    assert known_orders([SUBMITTED, ended]).before(moving()) is None


def test_an_interrupted_cancellation_is_finished_where_the_order_is_as_kafka_left_it() -> None:
    begun = known_orders([SUBMITTED, BEGUN])
    assert begun.to_restore(resting(LEFT)) == BEFORE
    for other in (resting(BEFORE), resting((1, 2, 3)), resting(TARGET), moving()):
        assert begun.to_restore(other) is None
    # Refused, it may be tried again; the end of the run does not restore the order either.
    for after in (
        row("cancel", "failed", None, "NotController", at_ms=3),
        row("finish", "failed", "[0,2,1]", "[2,1,3]", at_ms=3),
    ):
        assert known_orders([SUBMITTED, BEGUN, after]).to_restore(resting(LEFT)) == BEFORE
    for after in (
        row("cancel", "done", None, "[3,2,1]", at_ms=3),
        row("finish", "done", "[0,2,1]", "[0,2,1]", at_ms=3),
        row("submit", "intended", "[2,1,3]", "[5,2,1]", at_ms=3),
        row("cancel", "intended", "[2,1,3]", None, at_ms=3),
    ):
        assert known_orders([SUBMITTED, BEGUN, after]).to_restore(resting(LEFT)) is None


def test_damaged_rows_and_other_steps_are_left_out() -> None:
    damaged = [row("submit", "sung", "[3,2,1]", "[0,2,1]", at_ms=3), row("cancel", "intended", "[3", "[3]", at_ms=4)]
    others = [row("rate", "intended", None, "5", at_ms=5), row("sing", "done", at_ms=6)]
    assert known_orders([SUBMITTED, BEGUN, *damaged, *others]) == known_orders([SUBMITTED, BEGUN])
