"""Output of ``headroom migration run``, as text and as JSON."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from headroom.cli.common.output import echo, partition_json
from headroom.cli.migration.options import count_text, print_rows
from headroom.cli.migration.plan_view import plan_json, print_plan
from headroom.operations.migration.running.progress import left_offsets, switch_in_s
from headroom.operations.migration.running.run import MigrationPreview, MigrationRunRequest, MigrationRunResult
from headroom.operations.migration.running.watch import SeenMigration
from headroom.planning.migration.run.next_step import RunGoal
from headroom.planning.migration.run.seen import RunStep
from headroom.schemas.keys import TopicPartition
from headroom.schemas.migrations import PartitionAgreement
from headroom.schemas.text.amounts import UNKNOWN, clock_text, join_names

_HEADER = ("partition", "status", "end offset", "base", "agreement", "left to write", "reached")
_GOALS = {
    RunGoal.STARTED: "the target is in use",
    RunGoal.MIGRATED: "the origin has reached its end offsets",
    RunGoal.AGED: "retention has deleted all before the end offsets",
}
Agreements = Mapping[TopicPartition, PartitionAgreement]


def print_preview(preview: MigrationPreview, request: MigrationRunRequest) -> None:
    """Print what a run would do."""
    plan = preview.preparation.plan
    if plan is not None:
        print_plan(plan)
        if plan.forecast.is_forbidden():
            return
    if preview.agreements:
        header = (*_HEADER, "next")
        rows = [
            (*_row(one, preview.seen), _next_text(one, preview.steps.get(name)))
            for name, one in preview.agreements.items()
        ]
        print_rows(f"Agreed in the migration {request.terms.migration}", header, rows)
    echo()
    for topic in preview.preparation.created:
        settings = ", ".join(f"{key}={value}" for key, value in sorted(topic.settings.items())) or "the defaults"
        echo(
            f"Creates {topic.name} on the target: {topic.partitions} partitions, {topic.replicas} replicas, {settings}."
        )
    if request.terms.routers:
        echo(f"Starts once these have agreed: {join_names(list(request.terms.routers), most=10)}.")
    echo(f"Runs until {_GOALS[request.goal]}.")
    if request.drop:
        echo(f"Then deletes on the origin: {', '.join(request.topics)}, once all groups have passed.")


def print_run(result: MigrationRunResult) -> None:
    """Print the partitions as a run has left them."""
    name = result.request.terms.migration
    rows = [_row(one, result.seen) for one in result.agreements.values()]
    print_rows(f"Migration {name}", _HEADER, rows)
    echo()
    if result.error is None and not result.stopped:
        count = f"{len(result.agreements):,}"
        echo(f"{count} of {count} partitions are there: {_GOALS[result.request.goal]}.")
    if result.dropped:
        echo(f"Deleted on the origin: {', '.join(result.dropped)}.")
    if result.stopped:
        echo("Stopped. Run the same command again to continue.")
    held = [str(one.name) for one in result.agreements.values() if one.reopened_end is not None]
    if held:
        echo(
            "Do not leave it like this: until a run has put their nearer end offsets in force, producers hold what "
            f"lands from there on, and readers wait: {join_names(held)}."
        )


def _row(one: PartitionAgreement, seen: SeenMigration | None) -> tuple[str, ...]:
    at = None if seen is None else seen.partitions.get(one.name)
    left = None if at is None else left_offsets(one, at)
    seconds = None if at is None else switch_in_s(one, at)
    reached = UNKNOWN
    if at is not None and seconds is not None:
        reached = "yes" if seconds == 0 else clock_text(at.now_ms + round(seconds * 1000), at.now_ms)
    return (
        str(one.name),
        one.status + (", origin ignored" if one.ignore_origin else "") + (", shielded" if one.shielded else ""),
        count_text(one.end_offset),
        count_text(one.target_base_offset),
        str(one.number),
        count_text(left),
        reached,
    )


def _next_text(one: PartitionAgreement, step: RunStep | None) -> str:
    if step is None:
        return "nothing"
    if step.refusal is not None:
        return f"refused: {step.refusal.rule}"
    if step.after is None:
        return f"waits for {step.waits_for}" if step.waits_for else "nothing"
    if step.after.status != one.status and step.after.reopened_end is None:
        return f"becomes {step.after.status}"
    return f"end offset {count_text(step.after.end_offset)}, agreement {step.after.number}"


def preview_json(preview: MigrationPreview, request: MigrationRunRequest) -> dict[str, Any]:
    """Return what a run would do as a JSON object."""
    plan = preview.preparation.plan
    return {
        **_request_json(request),
        "plan": None if plan is None else plan_json(plan),
        "creates": [{**vars(topic), "settings": dict(topic.settings)} for topic in preview.preparation.created],
        "partitions": [
            {**_agreement_json(one, preview.seen), "next": _next_text(one, preview.steps.get(name))}
            for name, one in preview.agreements.items()
        ],
    }


def run_json(result: MigrationRunResult) -> dict[str, Any]:
    """Return the partitions as a run has left them as a JSON object."""
    return {
        **_request_json(result.request),
        "partitions": [_agreement_json(one, result.seen) for one in result.agreements.values()],
        "dropped": list(result.dropped),
        "stopped": result.stopped,
    }


def _request_json(request: MigrationRunRequest) -> dict[str, Any]:
    return {
        "migration": request.terms.migration,
        "method": request.terms.method.value,
        "routers": list(request.terms.routers),
        "until": request.goal.value,
    }


def _agreement_json(one: PartitionAgreement, seen: SeenMigration | None) -> dict[str, Any]:
    at = None if seen is None else seen.partitions.get(one.name)
    return {
        **agreed_json(one),
        "origin_closed": one.origin_closed,
        "reopened_end": one.reopened_end,
        "left_offsets": None if at is None else left_offsets(one, at),
        "write_offsets_per_s": None if at is None else at.offsets_per_s,
        "switch_in_s": None if at is None else switch_in_s(one, at),
    }


def agreed_json(one: PartitionAgreement) -> dict[str, Any]:
    """Return what was agreed about a partition as a JSON object."""
    return {
        **partition_json(one.name),
        "migration": one.migration,
        "status": one.status,
        "method": one.method,
        "number": one.number,
        "end_offset": one.end_offset,
        "target_base_offset": one.target_base_offset,
        "origin_end": one.origin_end,
        "ignore_origin": one.ignore_origin,
        "shielded": one.shielded,
        "origin_dropped": one.origin_dropped,
        "routers": list(one.routers),
    }
