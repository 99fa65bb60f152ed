"""The Delta tables and their retention."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class StoreSettings:
    """The Delta tables.

    Attributes:
        path: folder or Hadoop file system URL of all tables.
        checkpoint_path: folder or URL of the streaming checkpoints. Empty: ``_checkpoints`` under ``path``.
        bronze_keep_days: retention of the bronze tables, in days. 0: unlimited.
        silver_keep_days: retention of the silver tables, in days. 0: unlimited.
        gold_keep_days: retention of the gold tables, in days. 0: unlimited.
        partition_load_keep_days: retention of gold/partition_load, in days. 0: unlimited.
        broker_load_keep_days: retention of gold/broker_load, in days. 0: unlimited.
        migration_syncs_keep_days: retention of silver/migration_syncs, in days. 0: unlimited. Consumer groups that have
            not moved yet need those from the start of the migration on.
        maintain_every_s: interval between maintenance runs in the record job, in seconds. 0: never.
    """

    path: str = "headroom-data"
    checkpoint_path: str = ""
    bronze_keep_days: int = 3
    silver_keep_days: int = 30
    gold_keep_days: int = 90
    partition_load_keep_days: int = 35
    broker_load_keep_days: int = 35
    migration_syncs_keep_days: int = 365
    maintain_every_s: float = 3600.0

    def keep_days(self, table: str) -> int:
        """Return the retention of the table with this path in days; 0: unlimited."""
        own = {
            "gold/partition_load": self.partition_load_keep_days,
            "gold/broker_load": self.broker_load_keep_days,
            "silver/migration_syncs": self.migration_syncs_keep_days,
        }
        if table in own:
            return own[table]
        layer = table.split("/")[0]
        days = {"bronze": self.bronze_keep_days, "silver": self.silver_keep_days, "gold": self.gold_keep_days}
        return days.get(layer, 0)

    def checkpoints(self) -> str:
        """Return the folder or URL of the streaming checkpoints."""
        return self.checkpoint_path or f"{self.path.rstrip('/')}/_checkpoints"
