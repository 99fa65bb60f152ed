"""Removal of what runs have set and not taken back."""

from __future__ import annotations

from collections.abc import Sequence

from headroom.alerts.recommendations.commands import config_option_of, headroom_reassign_clean
from headroom.cluster.live.live_control import LiveClusterControl
from headroom.cluster.reassignment.execution.cleaning import CleanOutcome, clean_run
from headroom.cluster.reassignment.execution.control import RunOutput
from headroom.operations.journal.owners import owners_or_none
from headroom.operations.journal.session import RunSession, require_this_host
from headroom.operations.progress import OnText
from headroom.planning.reassignments.run.owners import subjects_by_owner
from headroom.planning.reassignments.run.record import RecordedRun, RunState
from headroom.schemas.config import Settings
from headroom.schemas.text.amounts import join_names


def runs_to_clean(session: RunSession, run_ids: Sequence[str]) -> list[RecordedRun]:
    """Return the runs that have left something behind, or are unfinished.

    Args:
        session: journal of the cluster.
        run_ids: ids of runs, or their beginnings; all runs if empty.

    Raises:
        HeadroomError: no run, or more than one, has one of the ids.
    """
    chosen = [session.of_id(run_id) for run_id in run_ids] if run_ids else session.records
    return [record for record in chosen if record.leaves_behind or record.state is RunState.UNFINISHED]


def clean_runs(
    settings: Settings,
    session: RunSession,
    records: Sequence[RecordedRun],
    force: bool,
    on_step: OnText,
    config: str | None = None,
) -> list[CleanOutcome]:
    """Remove what some runs have set, and return what became of each.

    Args:
        settings: all settings.
        session: journal of the cluster, which no other process changes meanwhile.
        records: the runs, the oldest first.
        force: whether runs of other machines are cleaned too.
        on_step: gets one line per step.
        config: settings file that recommended commands name; the default one if None.

    Raises:
        HeadroomError: a run was begun on another machine, the cluster could not be read, the journal not be written, or
            another process has taken the run lock.
    """
    if not records:
        return []
    for record in records:
        require_this_host(record, force)
    topics = {name.topic for record in records for name in record.entries}
    unfinished = {record.run_id: record for record in session.records if record.state is RunState.UNFINISHED}
    placed = {replica.name for record in (*records, *unfinished.values()) for replica in record.placing}
    outcomes: dict[str, CleanOutcome] = {}
    with LiveClusterControl(settings, topics, placed=placed) as control:
        output = RunOutput(line=on_step, clean_command=headroom_reassign_clean((), config))
        # The newest first: it has set its rates over those that an older one has left.
        for record in reversed(records):
            session.require_not_lost()
            others = [other for run_id, other in unfinished.items() if run_id != record.run_id]
            journal = session.journal(record)
            outcome = clean_run(control, journal, output, settings.reassign.settle_s, others=others)
            outcomes[record.run_id] = outcome
            if outcome.record.state is not RunState.UNFINISHED:
                unfinished.pop(record.run_id, None)
    return [outcomes[record.run_id] for record in records]


def notes_on_others(settings: Settings, on_note: OnText, config: str | None = None) -> list[str]:
    """Return which throttles stay because another command has set them by the journal, in sentences.

    Args:
        settings: all settings.
        on_note: gets a sentence if the journal cannot be read.
        config: settings file that recommended commands name; the default one if None.
    """
    owners = owners_or_none(settings, on_note)
    return [
        f"Not of a run, so it stays: {join_names(subjects)}, set with {owner}. To remove it: headroom throttle "
        f"clear{config_option_of(config)}"
        for owner, subjects in subjects_by_owner(owners, owners).items()
        if not owner.runs_plan
    ]
