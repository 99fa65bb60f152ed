"""Rows of the message kind ``migrations``: what the collector read, as a judgement takes it."""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any

from headroom.planning.migration.log_size import LogSize, written_bytes_per_s
from headroom.planning.migration.progress.reading import GroupReading, MigrationReading
from headroom.planning.migration.readings import LogOffsets, TopicRules, growth_per_s
from headroom.schemas.bounds import MOST_COUNTED
from headroom.schemas.migrations import METHODS, STATUSES, PartitionAgreement
from headroom.schemas.tick_messages import REQUIRED, typed_columns

Row = Mapping[str, Any]
_KIND = "migrations"
_NUMBERS = {"INT": (-(2**31), 2**31 - 1), "BIGINT": (-MOST_COUNTED, MOST_COUNTED)}
_TYPES = dict(column.split(" ", 1) for column in typed_columns(_KIND))
_RULES = (
    *("cleanup_policy", "retention_ms", "retention_bytes", "min_insync_replicas", "unclean_elections"),
    "remote_storage",
)
_NAMES = tuple(name for name, of in _TYPES.items() if of == "ARRAY<STRING>")


class _ScalarColumns:
    """Columns of a row or of one of its objects by their types, for a check of millions of values a tick.

    Args:
        types: type by column; those of arrays and objects are left out.
    """

    def __init__(self, types: Mapping[str, str]) -> None:
        self._types = types
        self._numbers = [(name, *_NUMBERS[of]) for name, of in types.items() if of in _NUMBERS]
        self._texts = [name for name, of in types.items() if of == "STRING"]
        self._ratios = [name for name, of in types.items() if of == "DOUBLE"]
        self._flags = [name for name, of in types.items() if of == "BOOLEAN"]

    def require(self, values: Row) -> None:
        """Check the values that are there.

        Raises:
            ValueError: one is none of its column.
        """
        get = values.get
        for name, least, most in self._numbers:
            value = get(name)
            if value is not None and not (type(value) is int and least <= value <= most):
                raise self._wrong(name)
        for name in self._texts:
            value = get(name)
            if value is not None and not isinstance(value, str):
                raise self._wrong(name)
        for name in self._ratios:
            value = get(name)
            if value is not None and not (type(value) in (int, float) and math.isfinite(value)):
                raise self._wrong(name)
        for name in self._flags:
            value = get(name)
            if value is not None and not isinstance(value, bool):
                raise self._wrong(name)

    def _wrong(self, name: str) -> ValueError:
        return ValueError(f"{name} is no {self._types[name]}")


_SCALARS = _ScalarColumns({name: of for name, of in _TYPES.items() if "<" not in of})
_STRUCTS = {
    name: _ScalarColumns(
        dict(field.split(" ") for field in of[of.index("STRUCT<") + len("STRUCT<") :].rstrip(">").split(", "))
    )
    for name, of in _TYPES.items()
    if "STRUCT<" in of
}


def reading_of_row(row: Row, tick_ms: int) -> MigrationReading | None:
    """Return the reading of a partition; None if the row is of a newer Headroom, whose words this one does not know.

    Args:
        row: a row of the kind ``migrations``, as parsed JSON.
        tick_ms: time of its tick, epoch milliseconds.

    Raises:
        ValueError: a value is none of its column, so that other values may be wrong too.
        KeyError: a column that every row has is missing.
    """
    _require_values(row)
    if row["status"] not in STATUSES or row["method"] not in METHODS:
        return None
    origin, target = row.get("origin"), row.get("target")
    of_origin, of_target = origin or {}, target or {}
    epochs = [epoch for epoch in row.get("epochs") or () if epoch.get("leader_epoch") is not None]
    groups, synced, copied = row.get("groups"), row.get("sync_origin_offset"), row.get("sync_target_offset")
    routers, missing = row.get("routers") or (), frozenset(row.get("missing_routers") or ())
    agreement, rules = _agreement(row), _rules(row)
    return MigrationReading(
        agreement,
        tick_ms,
        _log(origin),
        _log(target),
        row.get("earlier_target_end"),
        origin is not None,
        row.get("origin_error") or "",
        of_origin.get("topic_id"),
        of_target.get("topic_id"),
        _end_rate(origin),
        _end_rate(target),
        of_origin.get("leader_end_offset"),
        rules,
        tuple(row.get("acks") or ()),
        {router: agreement.number for router in routers if router not in missing},
        _numbers(epochs, "acknowledged_end"),
        _numbers(epochs, "epoch_end"),
        None if synced is None or copied is None else (synced, copied),
        None if groups is None else tuple(_group(group) for group in groups),
        write_bytes_per_s=_write_rate(row.get("origin_size"), rules),
        target_topic=row.get("target_topic"),
        **({} if row.get("slip_ratio") is None else {"slip_ratio": row["slip_ratio"]}),
    )


def _require_values(row: Row) -> None:
    """Check a row by the columns of its kind, because the topic may have records of others.

    Raises:
        ValueError: a value is none of its column, or a required one is missing.
    """
    if not isinstance(row, dict) or not all(row.get(name) is not None for name in REQUIRED[_KIND]):
        raise ValueError("a row lacks a required column")
    _SCALARS.require(row)
    for name, columns in _STRUCTS.items():
        value = row.get(name)
        for struct in () if value is None else value if isinstance(value, list) else (value,):
            if not isinstance(struct, dict):
                raise ValueError(f"{name} is no object")
            columns.require(struct)
    for name in _NAMES:
        for text in row.get(name) or ():
            if not isinstance(text, str):
                raise ValueError(f"{name} has something else than names")


def _agreement(row: Row) -> PartitionAgreement:
    get = row.get
    return PartitionAgreement(
        migration=row["migration"],
        number=get("number") or 0,
        # Names are only counted and shown here.
        origin_cluster_id=get("origin_cluster_id") or "",
        target_cluster_id=get("target_cluster_id") or "",
        topic=row["topic"],
        partition=row["partition"],
        origin_topic_id=get("origin_topic_id"),
        target_topic_id=get("target_topic_id"),
        end_offset=get("end_offset"),
        target_base_offset=get("target_base_offset"),
        status=row["status"],
        ignore_origin=get("ignore_origin") or False,
        origin_end=get("origin_end"),
        method=row["method"],
        routers=tuple(get("routers") or ()),
        shielded=get("shielded") or False,
        origin_position=get("origin_position"),
        origin_offsets_per_s=get("origin_offsets_per_s"),
        origin_read_ms=get("origin_read_ms"),
    )


def _log(side: Row | None) -> LogOffsets:
    if side is None:
        return LogOffsets()
    return LogOffsets(
        side.get("log_start_offset"), side.get("log_end_offset"), side.get("stable_offset"), side.get("newest_ms")
    )


def _rules(row: Row) -> TopicRules | None:
    values = {column: row[column] for column in _RULES if row.get(column) is not None}
    return TopicRules(**values) if values else None


def _write_rate(sample: Row | None, rules: TopicRules | None) -> float | None:
    if sample is None or sample.get("read_ms") is None or sample.get("prev_read_ms") is None:
        return None
    now, before = (
        LogSize(
            sample[f"{when}read_ms"],
            sample.get("broker"),
            sample.get(f"{when}log_start_offset"),
            sample.get(f"{when}log_end_offset"),
            sample.get(f"{when}size_bytes"),
        )
        for when in ("", "prev_")
    )
    return written_bytes_per_s(before, now, rules)


def _numbers(epochs: list[Row], column: str) -> dict[int, int]:
    return {epoch["leader_epoch"]: epoch[column] for epoch in epochs if epoch.get(column) is not None}


def _end_rate(side: Row | None) -> float | None:
    if side is None:
        return None
    return rate_of(
        side.get("prev_log_end_offset"), side.get("log_end_offset"), side.get("prev_read_ms"), side.get("read_ms")
    )


def rate_of(before: int | None, after: int | None, before_ms: int | None, after_ms: int | None) -> float | None:
    """Return the growth of an offset per second; None if it is unknown, or if the offset fell.

    Args:
        before: offset at the earlier time.
        after: offset at the later time.
        before_ms: the earlier time, milliseconds.
        after_ms: the later time, milliseconds.
    """
    if before_ms is None or after_ms is None:
        return None
    return growth_per_s(before, after, (after_ms - before_ms) / 1000)


def _group(group: Row) -> GroupReading:
    """Return a group with the rate of the cluster on which it reads: the one on which its offset has grown."""
    get = group.get
    origin, target, before_ms, after_ms = (
        get("origin_offset"),
        get("target_offset"),
        get("prev_read_ms"),
        get("read_ms"),
    )
    on_origin = rate_of(get("prev_origin_offset"), origin, before_ms, after_ms)
    on_target = None if target is None else rate_of(get("prev_target_offset"), target, before_ms, after_ms)
    # A group that has no offset on the target yet reads on the origin.
    is_on_origin = on_target is None or (on_origin is not None and on_origin >= on_target)
    return GroupReading(group["group"], origin, target, on_origin if is_on_origin else on_target, get("active"))
