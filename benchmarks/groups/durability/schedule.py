"""The damages of the group ``damages``, in rounds: those of a round are in different tables, checkpoints and locks."""

from __future__ import annotations

from benchmarks.faults.store_files import DamagedPlace, PlannedDamage
from headroom.schemas.tables import (
    ACTION_JOURNAL,
    ALERT_DELIVERIES,
    ALERT_EVENTS,
    BRONZE_TICKS,
    LOG_END_OFFSETS,
    REASSIGNMENT_PROGRESS,
    REPLICA_SIZES,
    THROTTLE_HEADROOM,
    Table,
)

_COMMIT, _DATA, _LOG_CHECKPOINT, _HINT = "newest commit", "data file", "checkpoint of the log", "_last_checkpoint"


def _table(table: Table, file: str, harm: str) -> PlannedDamage:
    return PlannedDamage(DamagedPlace.TABLE, table.path, file, harm)


def _checkpoint(name: str, file: str, harm: str) -> PlannedDamage:
    return PlannedDamage(DamagedPlace.CHECKPOINT, name, file, harm)


def _lock(name: str, harm: str) -> PlannedDamage:
    return PlannedDamage(DamagedPlace.LOCK, name, "lock", harm)


# Not among them: the removal of a newest commit, of an undamaged hint, or of the newest commits of a checkpoint. After
# it a store is as if they had never been written, and there is nothing to repair.
ROUNDS: tuple[tuple[PlannedDamage, ...], ...] = (
    (
        _table(ALERT_EVENTS, _COMMIT, "emptied"),
        _table(ACTION_JOURNAL, _COMMIT, "cut"),
        _table(THROTTLE_HEADROOM, _DATA, "removed"),
        _table(LOG_END_OFFSETS, _COMMIT, "zeroed"),
        _checkpoint("alert_path", "newest offsets", "emptied"),
        _lock("alerts", "zeroed"),
    ),
    (
        _table(ALERT_EVENTS, _DATA, "cut"),
        _table(ACTION_JOURNAL, _DATA, "zeroed"),
        _table(REASSIGNMENT_PROGRESS, _COMMIT, "flipped"),
        _table(BRONZE_TICKS, _LOG_CHECKPOINT, "cut"),
        _checkpoint("gold", "metadata", "emptied"),
        _lock("record", "a folder"),
    ),
    (
        _table(ALERT_EVENTS, _LOG_CHECKPOINT, "zeroed"),
        _table(ACTION_JOURNAL, _HINT, "flipped"),
        _table(THROTTLE_HEADROOM, _HINT, "a folder"),
        _table(LOG_END_OFFSETS, _DATA, "flipped"),
        _checkpoint("silver", "newest commits", "cut"),
        _table(ALERT_DELIVERIES, _DATA, "removed"),
    ),
    (
        _table(ALERT_EVENTS, "_delta_log", "a file"),
        _table(ACTION_JOURNAL, "_delta_log", "removed"),
        _table(REASSIGNMENT_PROGRESS, _LOG_CHECKPOINT, "a folder"),
        _table(BRONZE_TICKS, _COMMIT, "a folder"),
        _checkpoint("bronze", "newest offsets", "zeroed"),
        _table(ALERT_DELIVERIES, _COMMIT, "emptied"),
    ),
    (
        _table(ALERT_EVENTS, _COMMIT, "a folder"),
        _table(ACTION_JOURNAL, _DATA, "flipped"),
        _table(THROTTLE_HEADROOM, "folder", "a file"),
        _table(REPLICA_SIZES, "_delta_log", "a file"),
        _checkpoint("alert_path", "offsets", "a file"),
        _lock("alerts", "a folder"),
    ),
)
