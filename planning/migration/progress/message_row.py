"""Rows of the message kind ``migrations``: what the collector read, as a judgement takes it.

A tick may have tens of thousands of rows with a hundred values each. So values are checked by columns, over all rows of
a message, and what many partitions of a topic have in common is made once.
"""

from __future__ import annotations

from collections.abc import Hashable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from math import isfinite
from typing import Any

from headroom.planning.migration.log_size import LogSize, written_bytes_per_s
from headroom.planning.migration.progress.reading import SLIP_RATIO, GroupReading, MigrationReading
from headroom.planning.migration.readings import LogOffsets, TopicRules, growth_per_s
from headroom.schemas.bounds import MOST_COUNTED
from headroom.schemas.migrations import METHODS, STATUSES, PartitionAgreement
from headroom.schemas.tick_messages import REQUIRED, typed_columns

Row = Mapping[str, Any]
_KIND = "migrations"
_NUMBERS = {"INT": (-(2**31), 2**31 - 1), "BIGINT": (-MOST_COUNTED, MOST_COUNTED)}
_NONE = type(None)
# Python's types of the values of each column type; names may be members of a str enum.
_ALLOWED: Mapping[str, set[type]] = {
    "INT": {int, _NONE},
    "BIGINT": {int, _NONE},
    "STRING": {str, _NONE},
    "DOUBLE": {int, float, _NONE},
    "BOOLEAN": {bool, _NONE},
}
_TYPES = dict(column.split(" ", 1) for column in typed_columns(_KIND))
_RULES = (
    *("cleanup_policy", "retention_ms", "retention_bytes", "min_insync_replicas", "unclean_elections"),
    "remote_storage",
)
_NO_LOG, _NO_RULES = LogOffsets(), (None,) * len(_RULES)


class _ScalarColumns:
    """Columns of rows or of one of their objects by their types.

    Args:
        types: type by column; those of arrays and objects are left out.
    """

    def __init__(self, types: Mapping[str, str]) -> None:
        self._names = tuple(types)
        self._types = tuple(types.items())

    def require(self, structs: Sequence[Row]) -> None:
        """Check the values that are there.

        Args:
            structs: rows, or the same object of each.

        Raises:
            ValueError: one is none of its column.
        """
        names = self._names
        # One tuple of values per column.
        columns = zip(*[map(struct.get, names) for struct in structs], strict=True)
        for (name, of), values in zip(self._types, columns, strict=False):
            kinds = set(map(type, values))
            if not (kinds <= _ALLOWED[of] or (of == "STRING" and all(issubclass(k, (str, _NONE)) for k in kinds))):
                raise ValueError(f"{name} is not of type {of}")
            if of not in _NUMBERS and of != "DOUBLE":
                continue
            known = [value for value in values if value is not None] if _NONE in kinds else values
            if known and not (all(map(isfinite, known)) if of == "DOUBLE" else _are_within(known, *_NUMBERS[of])):
                raise ValueError(f"{name} is not of type {of}")


def _are_within(values: Sequence[int], least: int, most: int) -> bool:
    return least <= min(values) and max(values) <= most


_SCALARS = _ScalarColumns({name: of for name, of in _TYPES.items() if "<" not in of})
_STRUCTS = {
    name: _ScalarColumns(
        dict(field.split(" ") for field in of[of.index("STRUCT<") + len("STRUCT<") :].rstrip(">").split(", "))
    )
    for name, of in _TYPES.items()
    if "STRUCT<" in of
}


@dataclass(frozen=True)
class _Common:
    """What partitions of a message have in common, each made once.

    Attributes:
        names: lists of names, as tuples.
        rules: settings of topics by their columns.
        agreed: number of the agreement by router, by routers, missing routers and that number.
    """

    names: dict[tuple[Any, ...], tuple[str, ...]] = field(default_factory=dict)
    rules: dict[tuple[Hashable, ...], TopicRules] = field(default_factory=dict)
    agreed: dict[tuple[Hashable, ...], Mapping[str, int]] = field(default_factory=dict)

    def names_of(self, column: str, names: Iterable[Any] | None) -> tuple[str, ...]:
        """Return a list of names.

        Raises:
            ValueError: one is no text.
        """
        own = tuple(names or ())
        known = self.names.get(own)
        if known is None:
            if not all(isinstance(name, str) for name in own):
                raise ValueError(f"{column} has something else than names")
            known = self.names[own] = own
        return known

    def rules_of(self, row: Row) -> TopicRules | None:
        """Return the settings of the topic of a row; None if none is known."""
        own = tuple(map(row.get, _RULES))
        if own == _NO_RULES:
            return None
        rules = self.rules.get(own)
        if rules is None:
            rules = self.rules[own] = TopicRules(**dict(zip(_RULES, own, strict=True)))
        return rules

    def agreed_of(self, routers: tuple[str, ...], missing: tuple[str, ...], number: int) -> Mapping[str, int]:
        """Return the number of the agreement that each router keeps to."""
        key = routers, missing, number
        agreed = self.agreed.get(key)
        if agreed is None:
            agreed = self.agreed[key] = {router: number for router in routers if router not in missing}
        return agreed


def readings_of_rows(rows: Sequence[Row], tick_ms: int) -> list[MigrationReading | None]:
    """Return the reading of each partition; None for a row of a newer Headroom, whose words this one does not know.

    Args:
        rows: rows of the kind ``migrations``, as parsed JSON.
        tick_ms: time of their tick, epoch milliseconds.

    Raises:
        ValueError: a value is none of its column, so that other values may be wrong too.
        KeyError: a column that every row has is missing.
    """
    _require_values(rows)
    common = _Common()
    return [_reading(row, tick_ms, common) for row in rows]


def _reading(row: Row, tick_ms: int, common: _Common) -> MigrationReading | None:
    get = row.get
    routers = common.names_of("routers", get("routers"))
    missing = common.names_of("missing_routers", get("missing_routers"))
    acks = common.names_of("acks", get("acks"))
    if row["status"] not in STATUSES or row["method"] not in METHODS:
        return None
    origin, target = get("origin"), get("target")
    of_origin, of_target = origin or {}, target or {}
    epochs = [epoch for epoch in get("epochs") or () if epoch.get("leader_epoch") is not None]
    groups, synced, copied = get("groups"), get("sync_origin_offset"), get("sync_target_offset")
    rules, slip_ratio = common.rules_of(row), get("slip_ratio")
    agreement = _agreement(row, routers)
    return MigrationReading(
        agreement,
        tick_ms,
        _log(origin),
        _log(target),
        get("earlier_target_end"),
        origin is not None,
        get("origin_error") or "",
        of_origin.get("topic_id"),
        of_target.get("topic_id"),
        _end_rate(origin),
        _end_rate(target),
        of_origin.get("leader_end_offset"),
        rules,
        acks,
        common.agreed_of(routers, missing, agreement.number),
        _numbers(epochs, "acknowledged_end"),
        _numbers(epochs, "epoch_end"),
        None if synced is None or copied is None else (synced, copied),
        None if groups is None else tuple([_group(group) for group in groups]),
        SLIP_RATIO if slip_ratio is None else slip_ratio,
        _write_rate(get("origin_size"), rules),
        get("target_topic"),
        get("end_newest_ms"),
        _numbers(epochs, "unreported_end"),
        of_origin.get("leader_epoch"),
        get("incomplete_reports") or False,
        get("target_leader"),
        get("throttled_followers"),
    )


def _require_values(rows: Sequence[Row]) -> None:
    """Check rows by the columns of their kind, because the topic may have records of others.

    Raises:
        ValueError: a value is none of its column, or a required one is missing.
    """
    if not all(isinstance(row, dict) and None not in map(row.get, REQUIRED[_KIND]) for row in rows):
        raise ValueError("a row lacks a required column")
    _SCALARS.require(rows)
    for name, columns in _STRUCTS.items():
        values = [value for row in rows if (value := row.get(name)) is not None]
        structs = [one for value in values for one in (value if isinstance(value, list) else (value,))]
        if not all(isinstance(struct, dict) for struct in structs):
            raise ValueError(f"{name} is not an object")
        columns.require(structs)


def _agreement(row: Row, routers: tuple[str, ...]) -> PartitionAgreement:
    get = row.get
    return PartitionAgreement(
        row["migration"],
        get("number") or 0,
        # Names are only counted and shown here.
        get("origin_cluster_id") or "",
        get("target_cluster_id") or "",
        row["topic"],
        row["partition"],
        get("origin_topic_id"),
        get("target_topic_id"),
        get("end_offset"),
        get("target_base_offset"),
        row["status"],
        get("ignore_origin") or False,
        get("origin_end"),
        row["method"],
        routers,
        get("shielded") or False,
        get("origin_position"),
        get("origin_offsets_per_s"),
        get("origin_read_ms"),
        get("sealed_ms"),
        reopened_end=get("reopened_end"),
    )


def _log(side: Row | None) -> LogOffsets:
    if side is None:
        return _NO_LOG
    get = side.get
    return LogOffsets(
        get("log_start_offset"), get("log_end_offset"), get("stable_offset"), get("newest_ms"), get("newest_offset")
    )


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
    get = side.get
    return rate_of(get("prev_log_end_offset"), get("log_end_offset"), get("prev_read_ms"), get("read_ms"))


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
    before = get("prev_target_offset")
    return GroupReading(
        group["group"],
        origin,
        target,
        on_origin if is_on_origin else on_target,
        get("active"),
        None if target is None or before is None else target > before,
        get("target_active"),
    )
