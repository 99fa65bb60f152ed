"""Runs: what each command has changed on the cluster, from the journal."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import suppress
from itertools import islice
from typing import overload

from headroom.alerts.recommendations.commands import changing_command, headroom_reassign_clean
from headroom.dashboard.acting.actions import ActionProgress, ChosenAction
from headroom.dashboard.address import Address, View
from headroom.dashboard.data.journal import JournalReader
from headroom.dashboard.data.timeline import TickRange
from headroom.dashboard.site import Site
from headroom.dashboard.views.blocks import Block, Commands, DataColumn, DataTable, Kind, Row, StoredRows, Tone
from headroom.planning.reassignments.run.journal import StepKind, StepState, rate_of_subject
from headroom.planning.throttles.rate_options import rate_options
from headroom.schemas.keys import BrokerRole
from headroom.schemas.text import shell_quoted
from headroom.schemas.text.amounts import rate_text
from headroom.streaming.delta.query import sql_text

_TONES = {
    StepState.INTENDED.value: Tone.QUIET,
    StepState.DONE.value: Tone.GOOD,
    StepState.UNDONE.value: Tone.QUIET,
    StepState.FAILED.value: Tone.WARNING,
}
_STATES = {"done": Tone.GOOD, "ended early": Tone.WARNING, "not ended": Tone.UNKNOWN}
_PROGRESS_TONES = {
    **{progress.value: Tone.QUIET for progress in ActionProgress},
    ActionProgress.DONE.value: Tone.GOOD,
    ActionProgress.FAILED.value: Tone.CRITICAL,
    ActionProgress.NOT_POSSIBLE.value: Tone.WARNING,
    ActionProgress.LOST.value: Tone.UNKNOWN,
}
_ACTION_COLUMNS = (
    DataColumn("made_ms", "chosen", Kind.MOMENT),
    DataColumn("command", "command", link="url"),
    DataColumn("progress", "progress", Kind.STATE, tones=_PROGRESS_TONES),
    DataColumn("by", "by", none=""),
    DataColumn("action_id", "id"),
)
_MOVING_COMMANDS = frozenset(("reassign run", "reassign rollback", "balance run"))
_ROLLBACK = ("reassign", "rollback")
# Of those that have not ended, the last ones; a newer one begins only once the others are ended.
_MOST_RUNNING = 3
_COLUMNS = (
    DataColumn("run_id", "run", link="url"),
    DataColumn("began_ms", "begun", Kind.MOMENT),
    DataColumn("last_ms", "last step", Kind.MOMENT),
    DataColumn("command", "command"),
    DataColumn("by", "by"),
    DataColumn("state", "state", Kind.STATE, tones=_STATES),
    DataColumn("steps", "steps", Kind.NUMBER),
    DataColumn("failed", "failed", Kind.NUMBER),
)
_STEP_COLUMNS = (
    DataColumn("at_ms", "at", Kind.MOMENT),
    DataColumn("step", "step"),
    DataColumn("state", "state", Kind.STATE, tones=_TONES),
    DataColumn("subject", "what"),
    DataColumn("before", "before", none="–", text_key="before_text"),
    DataColumn("after", "after", none="–", text_key="after_text"),
    DataColumn("by", "by"),
)
# Steps that are read at once where all are wanted, as for a file.
_PART_STEPS = 5000


def runs(site: Site, address: Address) -> Sequence[Block]:
    """Return the changes of commands up to the moment of an address, the last one first; of one, its steps.

    Raises:
        HeadroomError: the table cannot be read.
    """
    condition = f'"cluster" = {sql_text(site.cluster(address))} AND at_ms <= {site.at_ms(address)}'
    blocks: list[Block] = []
    if address.run is not None:
        of_run = f"{condition} AND run_id = {sql_text(address.run)}"
        steps = _steps(site, of_run)
        blocks.append(DataTable("steps", f"Steps of {address.run}", _STEP_COLUMNS, steps, "It has no step."))
        if site.journal.count(of_run).commands & _MOVING_COMMANDS:
            blocks.append(taking_back(site, address, address.run))
    newest = site.journal.newest(site.cluster(address), site.at_ms(address))
    linked = [{**row, "url": address.url(View.RUNS, run=row["run_id"], page=None, sort=None)} for row in newest.rows]
    older = None
    if newest.before_ms is not None:
        older = address.url(View.RUNS, at=newest.before_ms, play=None, run=None, page=None)
    empty = "No command of Headroom has changed this cluster, by the journal of this store."
    note = "" if older is None else f"The newest {len(linked):,} runs."
    blocks.append(DataTable("runs", "Changes", _COLUMNS, linked, empty, note, older))
    if site.actions is not None:
        chosen, none = _actions_of(site, address), "No command was chosen here."
        blocks.append(DataTable("actions", "Chosen on this page", _ACTION_COLUMNS, chosen, none))
    return blocks


def unfinished_moves(site: Site, address: Address) -> list[Row]:
    """Return the runs of plans on the cluster of an address that have not ended, the last one first.

    Raises:
        HeadroomError: the journal cannot be read.
    """
    newest = site.journal.newest(site.cluster(address), site.at_ms(address)).rows
    unfinished = (row for row in newest if row["state"] == "not ended" and row["command"] in _MOVING_COMMANDS)
    return list(islice(unfinished, _MOST_RUNNING))


def moving_actions(site: Site, address: Address) -> list[ChosenAction]:
    """Return the moves that this page carries out on the cluster of an address now, with what they print."""
    found: list[ChosenAction] = []
    if site.actions is None or not site.can_act(address):
        return found
    for action in site.actions.all():
        moves = action.offer.command.is_made or action.offer.command.words[:2] == _ROLLBACK
        if moves and action.progress is ActionProgress.CHANGING and action.offer.cluster == site.cluster(address):
            # It may be forgotten meanwhile.
            with suppress(LookupError):
                found.append(site.actions.read(action.action_id))
    return found


def carried_out_now(site: Site, address: Address) -> list[Block]:
    """Return a table of the commands that the page carries out on the cluster of an address now; none if it does not.

    Their own pages have what they print, and stop them.
    """
    if not site.can_act(address):
        return []
    rows = [row for row in _actions_of(site, address) if row["progress"] == ActionProgress.CHANGING.value]
    return [DataTable("carried_out", "Being carried out", _ACTION_COLUMNS, rows)] if rows else []


def _actions_of(site: Site, address: Address) -> list[Row]:
    every = [] if site.actions is None else site.actions.all()
    return [_action_row(action) for action in every if action.offer.cluster == site.cluster(address)]


def taking_back(site: Site, address: Address, run_id: str) -> Commands:
    """Return the commands that remove what a run has left, and that take it back at the rate that it had set.

    Without such a rate it is not known at which one to go back, and nothing is recommended.

    Raises:
        HeadroomError: the journal cannot be read.
    """
    watched = site.watched(site.cluster(address))
    given = site.journal.rates(f'"cluster" = {sql_text(site.cluster(address))} AND run_id = {sql_text(run_id)}')
    clean = headroom_reassign_clean([run_id], watched.config)
    rates = [
        int(value)
        for subject, value in given
        if value is not None and _is_rate(value) and isinstance(rate_of_subject(subject), BrokerRole)
    ]
    if not rates:
        return Commands("Remove what it has left", [clean])
    words = ["reassign rollback", shell_quoted(run_id), *rate_options({"--throttle": max(rates)})]
    back = changing_command(words, watched.config)
    return Commands("Remove what it has left, or move its partitions back", [clean, back])


def _action_row(action: ChosenAction) -> Row:
    return {
        "action_id": action.action_id,
        "made_ms": action.made_ms,
        "command": action.text,
        "progress": action.progress.value,
        "by": action.by,
        "url": f"/actions/{action.action_id}",
    }


def steps_table(site: Site, ticks: TickRange) -> DataTable:
    """Return the steps of all commands in a range, in the order of time.

    Raises:
        HeadroomError: the table cannot be read.
    """
    condition = f'"cluster" = {sql_text(ticks.cluster)} AND at_ms BETWEEN {ticks.first_ms} AND {ticks.last_ms}'
    columns = (DataColumn("run_id", "run"), DataColumn("command", "command"), *_STEP_COLUMNS)
    return DataTable("steps", "Steps", columns, _steps(site, condition), "No command of Headroom changed the cluster.")


def _steps(site: Site, condition: str) -> Sequence[Row]:
    steps = site.journal.count(condition).steps
    return _StoredSteps(site.journal, condition, steps) if steps else []


class _StoredSteps(StoredRows):
    """Steps of the journal: a run of a large plan has more than a hundred thousand.

    Args:
        journal: reads them.
        condition: SQL condition on the rows of the journal.
        steps: number of the steps.
        sort: order as of ``Paging``.
    """

    def __init__(self, journal: JournalReader, condition: str, steps: int, sort: str | None = None) -> None:
        self._journal = journal
        self._condition = condition
        self._steps = steps
        self._sort = sort

    def __len__(self) -> int:
        """Return their number."""
        return self._steps

    @overload
    def __getitem__(self, index: int) -> Row: ...

    @overload
    def __getitem__(self, index: slice) -> Sequence[Row]: ...

    def __getitem__(self, index: int | slice) -> Row | Sequence[Row]:
        """Return a step, or those of a part."""
        places = range(self._steps)[index]
        if isinstance(places, int):
            return self._read(places, 1)[0]
        return self._read(places.start, len(places) * places.step)[:: places.step]

    def __iter__(self) -> Iterator[Row]:
        """Yield all of them."""
        for first in range(0, self._steps, _PART_STEPS):
            yield from self._read(first, _PART_STEPS)

    def ordered(self, sort: str | None) -> Sequence[Row]:
        """Return them in another order."""
        return _StoredSteps(self._journal, self._condition, self._steps, sort)

    def _read(self, first: int, most: int) -> list[Row]:
        return [
            {**row, **{f"{key}_text": value_text(row["step"], row[key]) for key in ("before", "after")}}
            for row in self._journal.steps(self._condition, self._sort, first, most)
        ]


def value_text(step: str, value: str | None) -> str | None:
    """Return a value of the journal, which ``schemas.tables.actions`` describes, as text: rates with their unit."""
    return rate_text(float(value)) if step == StepKind.RATE.value and value is not None and _is_rate(value) else value


def _is_rate(value: str | None) -> bool:
    return value is not None and value.isdigit()
