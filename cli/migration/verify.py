"""``headroom migration verify``: a mirror, or what clients have moved, compared with the origin record by record."""

from __future__ import annotations

from typing import Any

import click

from headroom.cli.common.changing import print_note
from headroom.cli.common.logs import silence_clients
from headroom.cli.common.options import config_option
from headroom.cli.common.outcome import CommandOutcome, with_format
from headroom.cli.common.output import echo, partition_json
from headroom.cli.common.parameters import TopicName
from headroom.cli.config.load import load_settings
from headroom.cli.migration.options import count_text, print_rows, progress_view
from headroom.operations.migration.clusters import migration_clusters
from headroom.operations.migration.running.changing import require_unshielded
from headroom.operations.migration.verification import (
    VerifiedMirror,
    VerifiedPartition,
    verify_mirror,
    verify_moved,
)
from headroom.schemas.migrations import METHODS_WITHOUT_COPIES

_MOVED = ("mirrored", "missing", "doubled")
_SHOWN = ("mirrored", "pending", "missing", "doubled", "differing", "out_of_order", "foreign")


@click.command(short_help="Compare a mirrored topic with its origin, record by record.")
@click.argument("topic", metavar="TOPIC", type=TopicName())
@config_option
@with_format
@click.option(
    "--committed",
    is_flag=True,
    help="Leave out records of open and aborted transactions, as a mirror with isolation.level read_committed does.",
)
def verify(topic: str, config: str | None, committed: bool) -> CommandOutcome:
    """Read TOPIC on the origin and its mirror on the target, and compare every record.

    A record is mirrored if the target has one with the same key, value, headers and timestamp in the same partition.
    Missing: it has none, although it has a later one. Pending: neither it nor a later one is there yet. Doubled: a
    further copy. Differing: at its place, but with another value or other headers. Out of order: behind a later record.
    Foreign: not on the origin. Records that only one cluster has deleted by retention are left out.

    If TOPIC migrates by the method routed or drained, nothing is copied. Then the records of the origin from the agreed
    end offset on are looked for on the target: mirrored, missing or doubled. Nothing reads those that are missing.

    All records are read, some tens of thousands a second, in at most some 200 MB of memory. Nothing is changed. The
    exit code is 1 if a record is missing, doubled, differing, out of order or foreign.

    \b
    Example:  headroom migration verify orders
              headroom migration verify orders --committed --format json
    """  # noqa: D301
    silence_clients()
    settings = load_settings(config)
    own = require_unshielded(settings, (topic,))
    # Where nothing is copied, only records from the end offset on are to be on the target.
    agreed = {one.partition: one for one in own if one.method in METHODS_WITHOUT_COPIES}
    with migration_clusters(settings) as clusters:
        if agreed:
            result = verify_moved(clusters, topic, agreed, committed, progress_view(), print_note)
        else:
            result = verify_mirror(clusters, topic, committed, progress_view(), print_note)
    return CommandOutcome(lambda: _json(result), lambda: _print(result), exit_code=int(not result.total().is_whole()))


def _print(result: VerifiedMirror) -> None:
    shown = _moved_counts(result) if result.from_end else _SHOWN
    header = ("partition", *(name.replace("_", " ") for name in shown))
    rows = [(str(one.name), *(count_text(getattr(one.counts, name)) for name in shown)) for one in result.partitions]
    of_origin = "on the origin from the end offsets on" if result.from_end else "on the origin"
    print_rows(f"{result.topic} {of_origin}, {result.target_topic} on the target", header, rows)
    total = result.total()
    echo()
    if result.from_end:
        _print_moved(result)
        return
    pending = f"; {total.pending:,} are not mirrored yet" if total.pending else ""
    if total.is_whole():
        echo(f"{total.mirrored:,} records are on the target once, unchanged and in order{pending}.")
        return
    faults = [f"{getattr(total, name):,} {name.replace('_', ' ')}" for name in _SHOWN[2:] if getattr(total, name)]
    echo(f"Not a whole mirror: {', '.join(faults)}; {total.mirrored:,} records have a copy{pending}.")


def _moved_counts(result: VerifiedMirror) -> tuple[str, ...]:
    """Return the counts of what clients moved; those that are doubled are known by their timestamps alone."""
    return _MOVED if result.with_timestamps else _MOVED[:2]


def _print_moved(result: VerifiedMirror) -> None:
    total = result.total()
    moved = f"{total.mirrored:,} records of the origin from the end offsets on are on the target"
    if total.is_whole():
        echo(f"{moved}{', each once' if result.with_timestamps else ''}.")
        return
    faults = [f"{getattr(total, name):,} {name}" for name in _moved_counts(result)[1:] if getattr(total, name)]
    echo(f"Not all are moved: {', '.join(faults)}; {moved}.")


def _json(result: VerifiedMirror) -> dict[str, Any]:
    return {
        "topic": result.topic,
        "target_topic": result.target_topic,
        "with_timestamps": result.with_timestamps,
        "from_end_offset": result.from_end,
        "whole": result.total().is_whole(),
        "total": vars(result.total()),
        "partitions": [_partition_json(one) for one in result.partitions],
    }


def _partition_json(one: VerifiedPartition) -> dict[str, Any]:
    (origin_begin, origin_end), (target_begin, target_end) = one.origin, one.target
    return {
        **partition_json(one.name),
        "origin": {"begin": origin_begin, "end": origin_end},
        "target": {"begin": target_begin, "end": target_end},
        "counts": vars(one.counts),
    }
