"""Delta properties of the tables."""

from __future__ import annotations

from headroom.schemas.tables import BRONZE_TICKS, Table

# The silver query streams bronze, its log and its files, and may be behind by these times.
_STREAMED = {
    "delta.logRetentionDuration": "interval 2 days",
    "delta.deletedFileRetentionDuration": "interval 1 day",
}
# A file that compaction replaced stays for current readers. Until it is removed, every checkpoint of the log lists it.
# The log is cleaned up to a midnight, so it keeps up to a day more than this.
_READ = {
    "delta.logRetentionDuration": "interval 6 hours",
    "delta.deletedFileRetentionDuration": "interval 2 hours",
}


def properties(table: Table) -> dict[str, str]:
    """Return the Delta properties of a table."""
    return {
        # By default every 10th commit writes a checkpoint. With a commit every few seconds they would outgrow the rows.
        "delta.checkpointInterval": "50",
        # Columns that queries select files by. Statistics of other columns are useless: most files have all values.
        "delta.dataSkippingStatsColumns": ",".join(table.skip_by),
        **(_STREAMED if table is BRONZE_TICKS else _READ),
    }
