"""How many messages were not believed: counted in their table's log, without a look at a row."""

from __future__ import annotations

import logging
import time
from collections.abc import Callable

from deltalake import DeltaTable
from deltalake.exceptions import TableNotFoundError

from schemas.tables import QUARANTINE
from streaming.delta.query import table_url
from streaming.supervision.failure import cause_of

log = logging.getLogger(__name__)

_EVERY_S = 10.0


class QuarantineCount:
    """Rows of ``silver/quarantine``, looked up when they are asked for, and not more often than every ten seconds.

    Args:
        store_path: ``store.path``: a folder or URL.
        now_s: gives seconds that pass evenly.
    """

    def __init__(self, store_path: str, now_s: Callable[[], float] = time.monotonic) -> None:
        self._url = table_url(store_path, QUARANTINE.path)
        self._now_s = now_s
        self._table: DeltaTable | None = None
        self._again_s: float | None = None
        self._count: int | None = None

    def __call__(self) -> int | None:
        """Return how many there are; None: there is no such table yet, or it cannot be read."""
        now_s = self._now_s()
        if self._again_s is None or now_s >= self._again_s:
            self._count = self._looked_up()
            self._again_s = self._now_s() + _EVERY_S
        return self._count

    def _looked_up(self) -> int | None:
        try:
            if self._table is None:
                self._table = DeltaTable(self._url)
            else:
                self._table.update_incremental()
            rows: list[int | None] = self._table.get_add_actions().column("num_records").to_pylist()
        except TableNotFoundError:
            return None
        # The library raises what its storage does wrong, and a scrape must not fail for it.
        except Exception as error:
            log.debug("%s cannot be read: %s", self._url, cause_of(error))
            self._table = None
            return None
        return sum(count or 0 for count in rows)
