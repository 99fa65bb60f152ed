"""Output of ``headroom migration status``, as text and as JSON."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Sequence
from dataclasses import asdict
from typing import Any

from headroom.alerts.recommendations.commands import headroom_migration_run
from headroom.alerts.recommendations.migrations import END_HERE
from headroom.cli.common.output import echo
from headroom.cli.migration.options import count_text, print_rows
from headroom.cli.migration.running.run_view import agreed_json
from headroom.operations.migration.running.status import EvaluatedPartition, MigrationStatusResult, RouterStatus
from headroom.planning.migration.progress.progress import MigrationProgress, MigrationVerdict
from headroom.planning.migration.progress.removal import known_readers_left
from headroom.schemas.migrations import MigrationMethod, MigrationStatus
from headroom.schemas.text.amounts import UNKNOWN, clock_text

_HEADER = (
    *("partition", "status", "method", "end offset", "log end", "left", "written", "reached", "readers left"),
    *("could lose", "verdict"),
)


def print_status(result: MigrationStatusResult, config: str | None) -> None:
    """Print partitions, why each has its verdict, routers, and what continues partitions that come to no end."""
    if not result.partitions:
        echo("No partition of these topics is in a migration to this cluster.")
        return
    print_rows("Partitions of the origin", _HEADER, [_row(evaluated) for evaluated in result.partitions])
    reasons = [
        (str(evaluated.reading.agreement.name), evaluated.progress.verdict.value, evaluated.progress.reason)
        for evaluated in result.partitions
    ]
    print_rows("Why", ("partition", "verdict", "reason"), reasons)
    if result.routers:
        header = ("migration", "router", "role", "acks", "agreement")
        print_rows("Routers", header, [_router_row(router) for router in result.routers])
    progress = [evaluated.progress for evaluated in result.partitions]
    _print_commands(
        "If producers write no more, these agree on a nearer end offset, where the origin's logs end:",
        _run_commands((own for own in progress if _never_ends(own)), END_HERE, config),
    )
    _print_commands(
        "Producers hold records, and readers wait, until a nearer end offset is in force. If no run is under way:",
        _run_commands((own for own in progress if own.reopened_end is not None), (), config),
    )


def _print_commands(lead: str, commands: Sequence[str]) -> None:
    if commands:
        echo()
        echo(lead)
        for command in commands:
            echo(f"  $ {command}")


def _never_ends(own: MigrationProgress) -> bool:
    """Return whether a started partition's log never gets to its end offset, and a nearer one can be agreed."""
    is_open = own.method == MigrationMethod.ROUTED and own.status == MigrationStatus.MIGRATING
    return is_open and own.verdict is MigrationVerdict.NEVER


def _run_commands(partitions: Iterable[MigrationProgress], options: Sequence[str], config: str | None) -> Sequence[str]:
    """Return the command that continues each migration of some partitions, with their topics."""
    topics: dict[str, set[str]] = defaultdict(set)
    for own in partitions:
        topics[own.migration].add(own.topic)
    return [
        headroom_migration_run(sorted(of_migration), name, MigrationMethod.ROUTED.value, options, config)
        for name, of_migration in sorted(topics.items())
    ]


def _row(evaluated: EvaluatedPartition) -> tuple[str, ...]:
    one, own = evaluated.reading.agreement, evaluated.progress
    rate = own.write_offsets_per_s
    return (
        str(one.name),
        own.status,
        own.method,
        count_text(own.end_offset),
        count_text(evaluated.reading.origin.end if evaluated.reading.is_origin_up else None),
        count_text(own.left_offsets),
        UNKNOWN if rate is None else f"{rate:,.1f}/s",
        _reached_text(evaluated),
        count_text(known_readers_left(own)),
        count_text(could_lose(evaluated)),
        own.verdict.value,
    )


def could_lose(evaluated: EvaluatedPartition) -> int | None:
    """Return the offsets that are lost, or that a leader switch or retention would lose: the most of these.

    Returns:
        Offsets; None if one of them is unknown and none of the others is above 0.
    """
    own = evaluated.progress
    groups = [None] if own.groups is None else [group.lost_offsets for group in own.groups]
    # Without a report of a switch nothing was acknowledged by a leader before, as far as the log is not shorter than E.
    lost = [own.lost_offsets] if evaluated.reading.acknowledged or own.lost_offsets else []
    parts = [own.at_risk_offsets, *lost, *groups]
    most = max((part for part in parts if part is not None), default=0)
    return most if most or None not in parts else None


def _reached_text(evaluated: EvaluatedPartition) -> str:
    seconds, now_ms = evaluated.progress.switch_eta_s, evaluated.reading.now_ms
    if seconds is None:
        return UNKNOWN
    return "yes" if seconds == 0 else clock_text(now_ms + round(seconds * 1000), now_ms)


def _router_row(router: RouterStatus) -> tuple[str, ...]:
    report = router.report
    if report is None:
        return router.migration, router.name, UNKNOWN, UNKNOWN, "missing: no report"
    number = report.agreed.get(router.migration)
    agreed = (
        "missing" if number is None else f"missing, keeps to {number}" if router.is_missing else f"agreed, {number}"
    )
    return (
        router.migration,
        router.name,
        report.role,
        report.acks or "",
        agreed if router.is_named else f"not named, {number}",
    )


def status_json(result: MigrationStatusResult) -> dict[str, Any]:
    """Return the status as a JSON object."""
    return {
        "read_ms": result.read_ms,
        "partitions": [_partition_json(evaluated) for evaluated in result.partitions],
        "routers": [_router_json(router) for router in result.routers],
    }


def _partition_json(evaluated: EvaluatedPartition) -> dict[str, Any]:
    reading = evaluated.reading
    return {
        **agreed_json(reading.agreement),
        **asdict(evaluated.progress),
        "verdict": evaluated.progress.verdict.value,
        "origin_up": reading.is_origin_up,
        "origin": asdict(reading.origin),
        "target": asdict(reading.target),
        "could_lose": could_lose(evaluated),
    }


def _router_json(router: RouterStatus) -> dict[str, Any]:
    report = router.report
    return {
        "migration": router.migration,
        "router": router.name,
        "role": None if report is None else report.role,
        "acks": None if report is None else report.acks,
        "client": None if report is None else report.client,
        "agreed": None if report is None else report.agreed.get(router.migration),
        "named": router.is_named,
        "missing": router.is_missing,
    }
