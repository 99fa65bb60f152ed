"""Number of quarantined messages, from the log of their table, without reading rows."""

from __future__ import annotations

import logging
import time
from collections.abc import Callable

from deltalake import DeltaTable
from deltalake.exceptions import TableNotFoundError

from headroom.schemas.tables import QUARANTINE
from headroom.streaming.delta.query import table_url
from headroom.streaming.supervision.failure import cause_of

log = logging.getLogger(__name__)

_EVERY_S = 10.0


class QuarantineCount:
    """Number of rows in ``silver/quarantine``, read on demand, at most every ten seconds.

    Args:
        store_path: ``store.path``: a folder or URL.
        now_s: monotonic clock, seconds.
    """

    def __init__(self, store_path: str, now_s: Callable[[], float] = time.monotonic) -> None:
        self._url = table_url(store_path, QUARANTINE.path)
        self._now_s = now_s
        self._table: DeltaTable | None = None
        self._expires_s: float | None = None
        self._count: int | None = None

    def __call__(self) -> int | None:
        """Return the number of rows; None if the table does not exist yet, or cannot be read."""
        now_s = self._now_s()
        if self._expires_s is None or now_s >= self._expires_s:
            self._count = self._read_count()
            self._expires_s = self._now_s() + _EVERY_S
        return self._count

    def _read_count(self) -> int | None:
        try:
            if self._table is None:
                self._table = DeltaTable(self._url)
            else:
                self._table.update_incremental()
            rows: list[int | None] = list(self._table.get_add_actions().column("num_records").to_pylist())
        except TableNotFoundError:
            return None
        # Any error of the storage: a scrape of /metrics must not fail because of it.
        except Exception as error:
            log.debug("%s cannot be read: %s", self._url, cause_of(error))
            self._table = None
            return None
        return sum(count or 0 for count in rows)
