"""Handling of tables that a disk has damaged or lost: readers continue with what is left, writers wait for a repair."""

from __future__ import annotations

import logging
import time
from collections.abc import Callable, Sequence
from typing import TypeVar

from headroom.schemas.tables import Table
from headroom.streaming.delta.damage import LAYER, Damage, damages, describe_damage, log_damages
from headroom.streaming.store.store import Store

log = logging.getLogger(__name__)

# Interval of checks while a table is damaged.
_EVERY_S = 30.0
_T = TypeVar("_T")


def damage_of(store: Store, tables: Sequence[Table], *, thorough: bool = False) -> str | None:
    """Return a description of the damage to the first of some tables; None if no table has damage that can be repaired.

    Damage that cannot be repaired is ignored: another program may have put something else there.

    Args:
        store: tables.
        tables: tables to check.
        thorough: whether data files are decoded.
    """
    for table in tables:
        damaged = _of_table(damages(store.location(table), thorough=thorough))
        if damaged and all(damage.can_be_mended for damage in damaged):
            return describe_damage(table.path, damaged)
    return None


def _of_table(damaged: Sequence[Damage]) -> list[Damage]:
    return [damage for damage in damaged if damage.file != LAYER]


def read_undamaged(store: Store, tables: Sequence[Table], read: Callable[[], _T], empty: _T) -> _T:
    """Return what ``read`` returns; without damaged files, or nothing if the store can be neither read nor written.

    Args:
        store: tables.
        tables: tables that ``read`` reads.
        read: reads them by Spark.
        empty: result if nothing can be read.
    """
    try:
        result = read()
        for table in tables:
            # Readers skip an empty commit silently.
            if lost := _of_table(log_damages(store.location(table))):
                log.error("%s", describe_damage(table.path, lost))
        return result
    except Exception:
        damage = damage_of(store, tables, thorough=True)
        if damage is None:
            trouble = store.trouble()
            if trouble is None:
                raise
            log.error("%s, and nothing can be read there: Headroom starts without it", trouble)
            return empty
    log.error("%s; Headroom continues with the undamaged files", damage)
    try:
        with store.skipping_damage():
            return read()
    except Exception:
        log.error("no undamaged files could be read")
        return empty


class DamageCheck:
    """Check of the tables that a job writes. While one is damaged the job waits, and is not counted as failing.

    Args:
        store: tables.
        tables: tables of the job.
        now_s: monotonic clock, seconds.
    """

    def __init__(self, store: Store, tables: Sequence[Table], now_s: Callable[[], float] = time.monotonic) -> None:
        self._store = store
        self._tables = tables
        self._now_s = now_s
        self._damage: str | None = None
        self._again_s = 0.0

    def is_damaged(self) -> bool:
        """Return whether a table is damaged. It is logged once, and checked every 30 s while it lasts."""
        if self._damage is not None and self._now_s() < self._again_s:
            return True
        before, self._damage = self._damage, damage_of(self._store, self._tables)
        self._again_s = self._now_s() + _EVERY_S
        if self._damage is not None and self._damage != before:
            log.error("%s; the job waits for the repair, and then continues", self._damage)
        return self._damage is not None
