"""Rows in the journal for commands that change a cluster in one go: before the change, and what came of it."""

from __future__ import annotations

import secrets
from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import TypeVar

from headroom.cluster.reassignment.execution.run_journal import RunJournal
from headroom.operations.journal.session import author
from headroom.operations.progress import OnText
from headroom.planning.reassignments.run.journal import JournalStep, StepState
from headroom.planning.reassignments.run.record import RecordedRun
from headroom.schemas.config import Settings
from headroom.schemas.errors import HeadroomError
from headroom.streaming.clock import now_ms
from headroom.streaming.tables.journal import ActionJournal

_T = TypeVar("_T")
_ID_BYTES = 4


def make_journalled_change(
    settings: Settings,
    command: str,
    steps: Sequence[JournalStep],
    change: Callable[[], _T],
    on_note: OnText,
    is_failure: Callable[[_T], bool] = lambda result: False,
) -> _T:
    """Make a change with its steps in the journal, and return its result; what it raises is raised unchanged.

    A command that an operator needs during an incident must not depend on the store: without a journal it warns and
    makes the change.

    Args:
        settings: all settings.
        command: command as the journal names it.
        steps: what is changed, with the values from before and after.
        change: makes the change.
        on_note: gets a sentence if the change is not in the journal.
        is_failure: returns whether a result means that not all of it was changed.
    """
    record = RecordedRun(secrets.token_hex(_ID_BYTES))
    store = ActionJournal(settings.store.path)
    journal = RunJournal(store, record, settings.cluster.name, command, author(), now_ms)
    is_written = _write(journal, steps, StepState.INTENDED, on_note)
    try:
        result = change()
    except HeadroomError:
        if is_written:
            _write(journal, steps, StepState.FAILED, on_note)
        raise
    if is_written:
        _write(journal, steps, StepState.FAILED if is_failure(result) else StepState.DONE, on_note)
    return result


def _write(journal: RunJournal, steps: Sequence[JournalStep], state: StepState, on_note: OnText) -> bool:
    try:
        journal.write([replace(step, state=state) for step in steps])
    except HeadroomError as error:
        on_note(f"The change is not in the journal: {error}")
        return False
    return True
