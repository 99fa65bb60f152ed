"""``headroom reassignments``: running reassignments, as a table or as Kafka's own plan file."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import click

from headroom.cli.common.changing import print_notes
from headroom.cli.common.options import config_option
from headroom.cli.common.outcome import CommandOutcome, with_format
from headroom.cli.common.output import echo, partition_json, print_table
from headroom.cli.common.parameters import TopicName
from headroom.cli.config.load import load_settings
from headroom.cluster.live.running import Reassignment
from headroom.operations.reassignments.plan_file import write_plan
from headroom.operations.reassignments.running import read_reassignments
from headroom.schemas.config import Settings
from headroom.schemas.errors import HeadroomError
from headroom.schemas.text import shell_quoted

MAX_ROWS = 40


@click.command(short_help="Show running reassignments, and write them to a plan file.")
@config_option
@with_format
@click.option(
    "--topic",
    "topics",
    type=TopicName(),
    metavar="NAME",
    multiple=True,
    help="Only reassignments of this topic; may be repeated.",
)
@click.option(
    "--file",
    type=click.Path(path_type=Path),
    metavar="PATH",
    help="Write them as a plan for kafka-reassign-partitions.sh; exit code 1 if none is running.",
)
def reassignments(config: str | None, topics: tuple[str, ...], file: Path | None) -> CommandOutcome:
    """Show running reassignments: current replicas, replicas being added and removed, and target replicas.

    With --file they are also written as Kafka's own plan, with the target replicas of every partition, for example to
    cancel them all. An existing file is replaced only if it contains such a plan. If no reassignment is running, no
    file is written and the exit code is 1, so that a command after && does not use an earlier file.

    \b
    Example:  headroom reassignments
              headroom reassignments --topic orders --topic payments
              headroom reassignments --file move.json && kafka-reassign-partitions.sh \\
                --bootstrap-server broker1:9092 --reassignment-json-file move.json --cancel --preserve-throttles
    """  # noqa: D301
    settings = load_settings(config)
    running = read_reassignments(settings)
    selected = [r for r in running if not topics or r.name.topic in topics]
    written = file if selected else None
    if written is not None:
        write_plan(written, selected)
        print_notes(_notes(selected))
    result = ReassignmentList(settings, selected, len(running), topics, written)
    error = None
    if file is not None and written is None:
        rule = f"none is running{_of(topics)}, so {file} was not written"
        error = HeadroomError("reassignments", rule, "There is nothing to cancel or to change.")
    return CommandOutcome(lambda: _json(result), lambda: _print(result), error=error)


@dataclass(frozen=True)
class ReassignmentList:
    """Result of the command.

    Attributes:
        settings: settings of the cluster.
        selected: running reassignments of the requested topics.
        total: number of running reassignments of all topics.
        topics: requested topics; empty for all.
        file: plan file that was written; None if none was.
    """

    settings: Settings
    selected: Sequence[Reassignment]
    total: int
    topics: Sequence[str]
    file: Path | None


def _print(result: ReassignmentList) -> None:
    selected, name = result.selected, result.settings.cluster.name
    others = f" (of {result.total} in all)" if len(selected) < result.total else ""
    if not selected:
        echo(f"Cluster {name}: no reassignment is running{_of(result.topics)}{others}.")
        return
    echo(f"Cluster {name}: {_count(len(selected))} running{_of(result.topics)}{others}.")
    echo()
    header = ("partition", "replicas", "adding", "removing", "target", "leader")
    print_table("", header, [_row(reassignment) for reassignment in selected[:MAX_ROWS]])
    if len(selected) > MAX_ROWS:
        echo(f"and {len(selected) - MAX_ROWS} more; --format json shows all, --file PATH writes all")
    if result.file is not None:
        _print_file(result.settings, selected, result.file)


def _row(reassignment: Reassignment) -> tuple[str, ...]:
    r = reassignment
    lists = (",".join(map(str, brokers)) for brokers in (r.replicas, r.adding, r.removing, r.target))
    return (str(r.name), *lists, "none" if r.leader is None else str(r.leader))


def _print_file(settings: Settings, selected: Sequence[Reassignment], file: Path) -> None:
    # Operators may reach the brokers by other addresses than this process.
    servers = settings.alerts.bootstrap_servers or settings.cluster.bootstrap_servers
    echo()
    echo(f"Wrote {_count(len(selected), plain=True)} to {file}. To cancel:")
    echo(
        f"  $ kafka-reassign-partitions.sh --bootstrap-server {shell_quoted(servers)} "
        f"--reassignment-json-file {shell_quoted(str(file))} --cancel --preserve-throttles"
    )


def _notes(selected: Sequence[Reassignment]) -> list[str]:
    """Return notes about the plan file, in sentences."""
    # Source: ReassignPartitionsCommand.cancelAssignment of Kafka 3.9.1 and 4.0.0, which skips these partitions.
    only_add = sum(bool(r.adding) and not r.removing for r in selected)
    if not only_add:
        return []
    return [
        f"{only_add} of them only add replicas: the tool of Kafka 3.9 and 4.0 does not cancel these, that of 4.1 does."
    ]


def _json(result: ReassignmentList) -> dict[str, Any]:
    """Return the reassignments as a JSON object; ``leader`` is null without a leader, ``file`` if none was written."""
    return {
        "cluster": result.settings.cluster.name,
        "reassignments": [
            {
                **partition_json(r.name),
                "replicas": list(r.replicas),
                "adding": list(r.adding),
                "removing": list(r.removing),
                "target": list(r.target),
                "leader": r.leader,
            }
            for r in result.selected
        ],
        "file": None if result.file is None else str(result.file),
    }


def _of(topics: Sequence[str]) -> str:
    return f" of topic{'s' if len(topics) > 1 else ''} {', '.join(topics)}" if topics else ""


def _count(count: int, plain: bool = False) -> str:
    if plain:
        return f"{count} reassignment{'' if count == 1 else 's'}"
    return f"{count} reassignment{' is' if count == 1 else 's are'}"
