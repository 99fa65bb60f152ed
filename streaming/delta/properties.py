"""The Delta properties that tables are kept with."""

from __future__ import annotations

from schemas.tables import BRONZE_TICKS, Table

# The silver job reads bronze as a stream, its log and its files, and may be behind by as much as that.
_STREAMED = {
    "delta.logRetentionDuration": "interval 2 days",
    "delta.deletedFileRetentionDuration": "interval 1 day",
}
# A file that compaction replaced stays for whoever reads it just then; until it goes, every checkpoint of the log names
# it. The log is cleaned up to a midnight, so that it holds up to a day more than it says here.
_READ = {
    "delta.logRetentionDuration": "interval 6 hours",
    "delta.deletedFileRetentionDuration": "interval 2 hours",
}


def properties(table: Table) -> dict[str, str]:
    """Return the Delta properties that a table is kept with."""
    return {
        # With a commit every few seconds and one at every tenth, Delta's default, checkpoints would outgrow the rows.
        "delta.checkpointInterval": "50",
        # What queries pick files by. Of any other column most files hold every value, which the log need not say.
        "delta.dataSkippingStatsColumns": ",".join(table.skip_by),
        **(_STREAMED if table is BRONZE_TICKS else _READ),
    }
