"""Text and JSON of a run: its steps before it begins, and its result."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

from headroom.alerts.recommendations.commands import headroom_reassign_clean, headroom_throttle_show
from headroom.cli.common.changing import error_json
from headroom.cli.common.output import echo, partition_json, print_table
from headroom.cli.plan.json_view import directory_json
from headroom.cli.plan.text_view import DIRECTORIES, DIRECTORIES_TITLE, directory_row
from headroom.cluster.reassignment.execution.executor import RunOutcome
from headroom.operations.reassignments.plan_files import whole_plan
from headroom.operations.reassignments.run_plan import PlannedRun
from headroom.planning.reassignments.run.changes import BatchChanges
from headroom.planning.reassignments.run.conditions import partitions_text
from headroom.planning.reassignments.run.journal import rate_subject
from headroom.planning.reassignments.run.record import RecordedRun, RunState
from headroom.planning.throttles.replica_lists import format_replica_list
from headroom.schemas.errors import HeadroomError
from headroom.schemas.keys import BrokerRate, TopicPartition
from headroom.schemas.text.amounts import clock_text, join_names, rate_text
from headroom.schemas.text.names import broker_names
from headroom.streaming.store.single_instance import JobProcess

_MOST_NUMBERS = 10
_MOST_RATES = 5


def print_steps(planned: PlannedRun, cluster: str, err: bool) -> None:
    """Print what each batch changes, on standard error if ``err`` is true."""
    partitions = len(whole_plan(planned.batches))
    batches = f"{len(planned.batches)} batch{'' if len(planned.batches) == 1 else 'es'}"
    # The run of one batch of a proposal shows its number there: by itself every batch would be the only one.
    if planned.numbers.total is not None:
        batches = f"batch {planned.numbers.first} of {planned.numbers.total}"
    run = f"run {planned.record.run_id} goes on" if planned.resumes else "a new run"
    echo(f"Cluster {cluster}: {partitions} partitions in {batches}, {run}, fingerprint {planned.fingerprint}.", err=err)
    if planned.empty:
        which = "that exists " if any(changes.missing for changes in planned.changes) else ""
        echo(f"Every partition {which}has its target replicas and log directories already.", err=err)
        return
    echo(err=err)
    header = ("batch", "to move", "list entries", "rates to set", "must exceed", "throttle")
    first = planned.numbers.first
    rows = [_row(number, changes, planned) for number, changes in enumerate(planned.changes, start=first)]
    print_table("", header, rows, err=err)
    if changed := _changed_rates(planned):
        echo(f"Rates in force that change: {join_names(changed, most=_MOST_RATES)}.", err=err)
    rows = [
        (str(number), *directory_row(moves))
        for number, batch in enumerate(planned.directories, start=first)
        for moves in batch
    ]
    if rows:
        echo(err=err)
        print_table(DIRECTORIES_TITLE, ("batch", *DIRECTORIES), rows, err=err)


def _changed_rates(planned: PlannedRun) -> list[str]:
    """Return the rates in force that batches change, each as ``broker 1 as leader 5.00 MB/s -> 10.00 MB/s``."""
    changed: dict[BrokerRate, str] = {}
    for name, rate in (item for changes in planned.changes for item in sorted(changes.rates.items())):
        now = planned.snapshot.rates.get(name)
        if now is not None and now.in_force is not None and rate.after is not None:
            changed.setdefault(name, f"{rate_subject(name)} {rate_text(now.in_force)} -> {rate_text(rate.after)}")
    return list(changed.values())


def _row(number: int, changes: BatchChanges, planned: PlannedRun) -> tuple[str, ...]:
    required = planned.required_bytes_per_s(changes) if planned.throttle_bytes_per_s is not None else None
    brokers = sorted({name.broker for name in changes.rates})
    return (
        str(number),
        partitions_text(changes.moves) or "none",
        str(sum(len(entries) for entries in changes.entries.values())),
        broker_names(brokers, 5) if brokers else "none",
        rate_text(required) if planned.throttle_bytes_per_s is not None else "no throttle",
        rate_text(planned.throttle_bytes_per_s) if planned.throttle_bytes_per_s is not None else "none",
    )


def steps_json(planned: PlannedRun, cluster: str) -> dict[str, Any]:
    """Return the steps as a JSON object; rates are bytes per second, or null for none or unknown."""
    return {
        "cluster": cluster,
        "run_id": planned.record.run_id if planned.resumes else None,
        "resumes": planned.resumes,
        "fingerprint": planned.fingerprint,
        "throttle_bytes_per_s": planned.throttle_bytes_per_s,
        "log_dirs_throttle_bytes_per_s": planned.rates.log_dirs_bytes_per_s,
        "notes": planned.notes(),
        "batches": [_batch_json(number, c, planned) for number, c in enumerate(planned.changes, start=1)],
    }


def _batch_json(number: int, changes: BatchChanges, planned: PlannedRun) -> dict[str, Any]:
    return {
        "number": number,
        "partitions": len(planned.batches[number - 1]),
        "submit": [
            {**partition_json(name), "before": list(move.before), "after": list(move.after)}
            for name, move in sorted(changes.submit.items())
        ],
        "entries": [
            {"topic": name.topic, "role": name.role.value, "entries": format_replica_list(entries)}
            for name, entries in sorted(changes.entries.items())
        ],
        "rates": [
            {
                "broker": name.broker,
                "role": name.role.value,
                "before_bytes_per_s": rate.before,
                "after_bytes_per_s": rate.after,
            }
            for name, rate in sorted(changes.rates.items())
        ],
        "log_dirs": [
            {**partition_json(replica.name), "broker": replica.broker, "before": place.before, "after": place.after}
            for replica, place in sorted(changes.places.items())
        ],
        "directory_moves": [directory_json(moves) for moves in planned.directories[number - 1]],
        "required_bytes_per_s": planned.required_bytes_per_s(changes),
        "missing": [partition_json(name) for name in changes.missing],
    }


def outcome_json(outcome: RunOutcome | None, error: HeadroomError | None) -> dict[str, Any]:
    """Return the result of a run as a JSON object; ``executed`` is false if there was none."""
    if outcome is None:
        # A run that ended with an error has no outcome, but may have changed the cluster.
        return {"executed": error is not None, "error": error_json(error)}
    return {
        "executed": True,
        "run_id": outcome.record.run_id,
        "state": outcome.record.state.value,
        "stopped": outcome.stopped,
        "batches_done": outcome.batches,
        "refused": [{**partition_json(name), "reason": reason} for name, reason in sorted(outcome.refused.items())],
        "left_behind": left_behind_json(outcome.record),
        "kept_rates": kept_rates_json(outcome.kept_rates),
        "unelected": [{**partition_json(n), "reason": reason} for n, reason in sorted(outcome.unelected.items())],
        "error": error_json(error),
    }


def run_status(record: RecordedRun, process: JobProcess | None) -> str:
    """Return the status of a run for people: that in the journal, ``running`` or ``cancelled``.

    Args:
        record: the run.
        process: the process that carries it on now; None if none does, or if that is unknown.
    """
    if process is not None:
        return "running"
    return "cancelled" if record.cancelled and record.state is not RunState.UNFINISHED else record.state.value


def running_text(record: RecordedRun, process: JobProcess) -> str:
    """Return by which process a run is carried on, and how far it is."""
    last = f", last step at {clock_text(record.last_ms)}: {record.last_step}"
    return f"{process}{last}"


def running_json(process: JobProcess | None) -> dict[str, Any] | None:
    """Return the process that carries on a run as a JSON object; None if none does, or if that is unknown."""
    if process is None:
        return None
    return {"pid": process.pid, "host": process.host, "since_ms": process.since_ms, "command": process.command}


def left_behind_json(record: RecordedRun) -> dict[str, Any]:
    """Return what a run has set and not taken back."""
    return {
        "entries": [
            {"topic": name.topic, "role": name.role.value, "entries": format_replica_list(entries)}
            for name, entries in sorted(record.entries.items())
        ],
        "rates": [
            {"broker": name.broker, "role": name.role.value, "before_bytes_per_s": own.before}
            for name, own in sorted(record.rates.items())
        ],
    }


def print_outcome(outcome: RunOutcome, config: str | None, err: bool) -> None:
    """Print the result of a run.

    Args:
        outcome: the result.
        config: settings file that recommended commands name; the default one if None.
        err: print to standard error.
    """
    # What was refused has ended too, but not at its target.
    finished = sum(name not in outcome.refused for name in outcome.record.finished)
    record = outcome.record
    placed = sum(place.after is not None for r, place in record.placed.items() if r not in record.placing)
    directories = f", and {placed} replicas the log directories of the plan" if placed else ""
    echo(f"Run {record.run_id}: {finished} partitions have their target replicas{directories}.", err=err)
    print_refused(outcome.refused.items(), err)
    if outcome.record.leaves_behind:
        echo(f"Some of its throttle is still set, see above: {headroom_reassign_clean((), config)}", err=err)
    elif outcome.record.rows:
        text = f"list entries are removed, and {restored_rates_text(outcome.kept_rates)}"
        echo(f"{'Its' if outcome.kept_rates else 'Nothing of its throttle is left:'} {text}.", err=err)


def restored_rates_text(kept: Mapping[BrokerRate, int | None]) -> str:
    """Return what became of the rates of a run, such as ``rates are as before``.

    Args:
        kept: rates that stay, because others have changed them; None for no rate.
    """
    if not kept:
        return "rates are as before"
    rates = [
        f"{rate_subject(name)} {'none' if rate is None else rate_text(rate)}" for name, rate in sorted(kept.items())
    ]
    return f"rates are as before, except those that others have changed: {', '.join(rates)}"


def kept_rates_json(kept: Mapping[BrokerRate, int | None]) -> list[dict[str, Any]]:
    """Return the rates of a run that stay, because others have changed them."""
    return [
        {"broker": name.broker, "role": name.role.value, "bytes_per_s": rate} for name, rate in sorted(kept.items())
    ]


def print_refused(refused: Iterable[tuple[TopicPartition, str]], err: bool) -> None:
    """Print partitions that are not at their target, grouped by reason."""
    by_reason: dict[str, list[TopicPartition]] = {}
    for name, reason in refused:
        by_reason.setdefault(reason, []).append(name)
    for reason, names in sorted(by_reason.items()):
        echo(f"Not at their target: {partitions_text(names)} ({reason})", err=err)


def print_damaged_rows(records: Iterable[RecordedRun], config: str | None) -> None:
    """Print what is not known of runs, because a disk has damaged or lost rows of the journal.

    Args:
        records: the runs.
        config: settings file that recommended commands name; the default one if None.
    """
    for record in records:
        if record.damaged_rows:
            rows = join_names([str(number) for number in sorted(record.damaged_rows)], most=_MOST_NUMBERS)
            echo(
                f"Run {record.run_id}: what its rows {rows} of the journal set is unknown, because they are "
                f"damaged or lost. Compare with: {headroom_throttle_show(config)}"
            )
