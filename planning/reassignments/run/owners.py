"""Owners of throttles: by the journal, the command that set each rate and list, and has not taken it back."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field

from headroom.planning.reassignments.run.journal import JournalRow, StepKind, StepState, in_time_order, options_of
from headroom.planning.throttles.rate_options import accept_low_rates

# Steps of the journal that say whose a throttle is.
OWNER_STEPS = (StepKind.RUN, StepKind.RATE, StepKind.LIST)


@dataclass(frozen=True)
class ThrottleOwner:
    """A command that set a rate or list entries, and has not taken them back.

    Attributes:
        run_id: id of the run, or of the execution of another command.
        command: command as the journal names it: reassign run, throttle apply.
        by: user and host.
        runs_plan: whether it ran a plan, so that ``headroom reassign clean`` takes back what it set.
        unfinished: whether it ran a plan and has not ended: it is running, or was killed.
        continue_command: command that continues the run; None if it has ended, or if the journal does not have it.
        process: process that carries on the run now, as text; None if none does, or if that is unknown.
    """

    run_id: str
    command: str
    by: str
    runs_plan: bool = False
    unfinished: bool = False
    continue_command: str | None = None
    process: str | None = None

    def __str__(self) -> str:
        return f"run {self.run_id} ({self.command}, {self.by})" if self.runs_plan else f"{self.command} by {self.by}"

    def state_text(self, *, moves: bool) -> str:
        """Return how far its run is, as the end of a sentence about it; empty if the run has ended.

        Args:
            moves: whether any reassignment of the cluster is running.
        """
        if self.process is None:
            return "has not ended" if self.unfinished else ""
        pause = "" if moves else ", with no reassignment at the moment: it pauses between two batches, or ends"
        return f"is running ({self.process}){pause}"


def owners_by_subject(rows: Iterable[JournalRow], process: str | None = None) -> dict[str, ThrottleOwner]:
    """Return the newest owner of each rate and list that is in force by the journal.

    The keys are subjects as in the journal: ``broker 2 as leader`` and ``topic orders as follower``. A step that was
    intended may have been taken before a crash, so it counts.

    Args:
        rows: rows of one cluster with the steps ``OWNER_STEPS``, in any order.
        process: process that carries on a run of the cluster now, as text; None if none does, or if that is unknown.
    """
    runs: dict[str, _Run] = {}
    # By subject: the commands that have set it, the newest last.
    in_force: dict[str, dict[str, set[str]]] = {}
    for row in in_time_order(rows):
        run = runs.setdefault(row.run_id, _Run(row.run_id))
        run.add(row)
        if row.step in (StepKind.RATE.value, StepKind.LIST.value):
            _add(in_force.setdefault(row.subject, {}), row)
    # At most one run is carried on at a time.
    unfinished = [run for run in runs.values() if run.is_unfinished]
    running = max(unfinished, key=lambda run: run.last_ms, default=None)
    newest = {subject: runs[list(owners)[-1]] for subject, owners in in_force.items() if owners}
    return {subject: run.owner(process if run is running else None) for subject, run in newest.items()}


def subjects_by_owner(subjects: Iterable[str], owners: Mapping[str, ThrottleOwner]) -> dict[ThrottleOwner, list[str]]:
    """Return the subjects of each owner, in their order; those without a known owner are left out.

    Args:
        subjects: rates and lists, as in the journal.
        owners: result of ``owners_by_subject``.
    """
    by_owner: dict[ThrottleOwner, list[str]] = {}
    for subject in subjects:
        if subject in owners:
            by_owner.setdefault(owners[subject], []).append(subject)
    return by_owner


def _state_of(row: JournalRow) -> StepState | None:
    """Return the state of a row; None if the row is damaged, or of a newer version."""
    try:
        return StepState(row.state)
    except ValueError:
        return None


def _add(owners: dict[str, set[str]], row: JournalRow) -> None:
    """Apply a step of one rate or list to those who own it."""
    state = _state_of(row)
    if state is StepState.DONE and row.after is None:
        # Removed by a command that removes all, whoever set it.
        owners.clear()
        return
    # Entries of a list, or the one value of a rate.
    values = {part.strip() for part in (row.after or "").split(",")}
    own = owners.pop(row.run_id, set())
    if state in (StepState.INTENDED, StepState.DONE):
        # A step without a value is about to remove it, and whose it was is still to be seen.
        left = own | values if row.after is not None else own
    elif state is StepState.UNDONE and row.step == StepKind.RATE.value:
        left = set()
    else:
        left = own - values
    if left:
        owners[row.run_id] = left


@dataclass
class _Run:
    """What the rows of one run, or of another command, say about it."""

    run_id: str
    command: str = ""
    by: str = ""
    states: list[StepState] = field(default_factory=list)
    continue_command: str | None = None
    last_ms: int = 0

    @property
    def is_unfinished(self) -> bool:
        return bool(self.states) and self.states[-1] is StepState.INTENDED

    def add(self, row: JournalRow) -> None:
        self.last_ms = max(self.last_ms, row.at_ms)
        if row.step != StepKind.RUN.value:
            # A run keeps the command that began it: clean writes to its journal too.
            self.command, self.by = self.command or row.command, self.by or row.by
            return
        state = _state_of(row)
        if state is not None:
            self.states.append(state)
        if row.state == StepState.INTENDED.value:
            self.command, self.by = row.command, row.by
            self.continue_command = _command_of(row)

    def owner(self, process: str | None) -> ThrottleOwner:
        again = self.continue_command if self.is_unfinished else None
        return ThrottleOwner(self.run_id, self.command, self.by, bool(self.states), self.is_unfinished, again, process)


def _command_of(row: JournalRow) -> str | None:
    """Return the command in the options of a run; None if they have none, as those of older versions."""
    options = options_of(row)
    command = options.get("command")
    if not isinstance(command, str) or not command:
        return None
    # The throttle of a proposal is not among the words of its command.
    rates = (options.get(name) for name in ("throttle_bytes_per_s", "log_dirs_bytes_per_s"))
    return accept_low_rates(command, [rate for rate in rates if isinstance(rate, int)])
