"""What is left of tables that a disk has damaged: who can do with that goes on, and who cannot waits."""

from __future__ import annotations

import logging
import time
from collections.abc import Callable, Sequence
from typing import TypeVar

from schemas.tables import Table
from streaming.delta.damage import damages, describe_damage
from streaming.delta.store import Store

log = logging.getLogger(__name__)

_EVERY_S = 30.0
_T = TypeVar("_T")


def damage_of(store: Store, tables: Sequence[Table]) -> str | None:
    """Return in words what is damaged of the first of some tables that can be mended; None: of none anything is.

    What cannot be mended may be something else that somebody put there.
    """
    for table in tables:
        found = damages(store.location(table))
        if found and all(damage.can_be_mended for damage in found):
            return describe_damage(table.path, found)
    return None


def what_is_left(store: Store, tables: Sequence[Table], read: Callable[[], _T], nothing: _T) -> _T:
    """Return what is read of some tables; where they are damaged, without the damaged files, or else nothing.

    Args:
        store: tables.
        tables: those that are read.
        read: reads them by Spark.
        nothing: what it would return of empty tables.
    """
    try:
        return read()
    except Exception:
        damage = damage_of(store, tables)
        if damage is None:
            raise
    log.error("%s; it goes on with what is left", damage)
    try:
        with store.passing_over_damage():
            return read()
    except Exception:
        log.error("nothing of it could be read")
        return nothing


class Damaged:
    """Whether tables that a job writes are damaged: it waits then, and is not counted as failing.

    Args:
        store: tables.
        tables: those of the job.
        now_s: gives seconds that pass evenly.
    """

    def __init__(self, store: Store, tables: Sequence[Table], now_s: Callable[[], float] = time.monotonic) -> None:
        self._store = store
        self._tables = tables
        self._now_s = now_s
        self._damage: str | None = None
        self._again_s = 0.0

    def look(self) -> bool:
        """Return whether one is damaged; told once, and looked at every half minute while it is."""
        if self._damage is not None and self._now_s() < self._again_s:
            return True
        before, self._damage = self._damage, damage_of(self._store, self._tables)
        self._again_s = self._now_s() + _EVERY_S
        if self._damage is not None and self._damage != before:
            log.error("%s; what needs it waits, and goes on by itself", self._damage)
        return self._damage is not None
