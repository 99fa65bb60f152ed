"""Journal of the changes that commands make to a cluster, written and read without Spark."""

from __future__ import annotations

import logging
from collections.abc import Collection, Sequence

from headroom.planning.reassignments.run.journal import JournalRow, StepKind
from headroom.schemas.tables import ACTION_JOURNAL
from headroom.streaming.delta.query import sql_text, table_url
from headroom.streaming.delta.query_table import query
from headroom.streaming.delta.small_table import append_or_error
from headroom.streaming.tables.rows import row_records

logger = logging.getLogger(__name__)

_REMEDY = "Check store.path, the free space on its disk and its permissions; nothing is changed without a journal."


class ActionJournal:
    """The journal in a store.

    Args:
        store_path: ``store.path``: a folder or URL.
    """

    def __init__(self, store_path: str) -> None:
        self._store_path = store_path
        self._location = table_url(store_path, ACTION_JOURNAL.path)

    def rows(self, cluster: str, steps: Collection[StepKind] = tuple(StepKind)) -> list[JournalRow]:
        """Return the rows of a cluster, ordered by time, run and number.

        Args:
            cluster: name of the cluster.
            steps: steps whose rows are read; a run of many partitions has a row and more for each of them.

        Raises:
            HeadroomError: the table cannot be read, or a row of it cannot be used.
        """
        # Steps of a newer version are read too, unless some are chosen.
        known = "" if len(steps) == len(StepKind) else f" AND step IN ({', '.join(repr(s.value) for s in steps)})"
        sql = f"SELECT * FROM data WHERE cluster = {sql_text(cluster)}{known} ORDER BY at_ms, run_id, seq"
        return row_records(JournalRow, query(self._store_path, ACTION_JOURNAL.path, sql) or [], ACTION_JOURNAL)

    def append(self, rows: Sequence[JournalRow]) -> None:
        """Append rows; they are durable when this returns.

        Raises:
            HeadroomError: the table cannot be written.
        """
        append_or_error(self._location, rows, ACTION_JOURNAL, _REMEDY)
