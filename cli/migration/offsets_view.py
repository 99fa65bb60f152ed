"""Output of ``headroom migration translate`` and ``headroom migration offsets``, as text and as JSON."""

from __future__ import annotations

from typing import Any

from headroom.cli.common.output import echo, partition_json
from headroom.cli.migration.options import count_text, print_rows
from headroom.operations.migration.translation import TranslationResult
from headroom.planning.migration.mirrors.reader_offsets import OffsetBasis, ReaderOffset
from headroom.schemas.text.amounts import join_names

_BASIS = {
    OffsetBasis.NEXT: "its next record",
    OffsetBasis.BEFORE: "the last record that it has read",
    OffsetBasis.SYNC: "the nearest sync",
    OffsetBasis.SAME: "the same offset",
}


def print_translation(result: TranslationResult) -> None:
    """Print one row per partition, and what the group has not read of it."""
    echo(f"Group {result.request.group}, from {result.origin} to {result.target}, {result.request.method.value}.")
    header = ("partition", "committed", "on the target", "offset", "by", "may read again", "there now")
    print_rows("", header, [_row(one) for one in result.offsets])
    reasons = [(str(one.name), one.reason) for one in result.offsets if one.reason]
    if reasons:
        print_rows("No offset, or a rougher one than asked for", ("partition", "because"), reasons)
    skipped = [one for one in result.offsets if one.skipped]
    if skipped:
        echo()
        names = join_names([f"{one.skipped:,} of {one.target_name}" for one in skipped])
        echo(f"The target has deleted records that the group has not read: {names}.")
    if result.uncommitted:
        echo()
        names = join_names([str(name) for name in result.uncommitted])
        echo(f"Without a committed offset on the origin, so consumers begin by auto.offset.reset: {names}.")
    if result.is_read is not False:
        echo()
        state = "has consumers on the origin" if result.is_read else "may have consumers on the origin"
        echo(f"The group {state}: what they read from now on is read again. Stop them before the offsets are set.")


def _row(one: ReaderOffset) -> tuple[str, ...]:
    return (
        str(one.name),
        count_text(one.committed),
        str(one.target_name),
        count_text(one.target_offset),
        "" if one.basis is None else _BASIS[one.basis],
        "" if one.target_offset is None else count_text(one.may_repeat),
        "nothing" if one.now is None else count_text(one.now),
    )


def translation_json(result: TranslationResult) -> dict[str, Any]:
    """Return the offsets as a JSON object."""
    return {
        "group": result.request.group,
        "origin": result.origin,
        "target": result.target,
        "method": result.request.method.value,
        "exact": result.request.exact,
        "active_on_target": result.is_active,
        "active_on_origin": result.is_read,
        "partitions": [_offset_json(one) for one in result.offsets],
        "uncommitted": [partition_json(name) for name in result.uncommitted],
    }


def _offset_json(one: ReaderOffset) -> dict[str, Any]:
    return {
        **partition_json(one.name),
        "target_topic": one.target_name.topic,
        "committed": one.committed,
        "target_offset": one.target_offset,
        "basis": None if one.basis is None else one.basis.value,
        "sync": None if one.sync is None else {"origin": one.sync[0], "target": one.sync[1]},
        "may_repeat": one.may_repeat,
        "skipped": one.skipped,
        "now": one.now,
        "reason": one.reason or None,
    }
