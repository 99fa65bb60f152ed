"""Group ``acting``: which rows of the journal are compared."""

from __future__ import annotations

from typing import Any

from benchmarks.groups.acting.tasks import compared_rows


def row(**given: Any) -> dict[str, Any]:
    first = {"run_id": "r1", "seq": 1, "cluster": "c", "command": "reassign run", "step": "list", "state": "undone"}
    return {**first, "subject": "topic t as leader", "before": None, "by": "ops@host", "at_ms": 1, **given}


def test_entries_count_alike_whichever_steps_they_leave_in() -> None:
    at_once = compared_rows([row(after="1:2,1:4,3:2")])
    one_by_one = compared_rows([row(after="3:2", seq=7, at_ms=9), row(after="1:2,1:4", run_id="r2")])
    assert at_once == one_by_one
    assert at_once.total() == 3
    assert at_once != compared_rows([row(after="1:2,1:4")])
    assert at_once != compared_rows([row(after="1:2,1:4,3:2", state="done")])


def test_other_values_count_as_they_are() -> None:
    (only,) = compared_rows([row(step="submit", subject="t-1", before="[1,2]", after="[1,3]")])
    assert only == ("reassign run", "submit", "undone", "t-1", "[1,2]", "[1,3]", "ops@host")
