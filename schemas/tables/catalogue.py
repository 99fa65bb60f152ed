"""All Delta tables, in the order of docs/tables.md."""

from __future__ import annotations

from headroom.schemas.tables.actions import ACTION_JOURNAL
from headroom.schemas.tables.alerts import ALERT_DELIVERIES, ALERT_EVENTS, ALERT_MARKS
from headroom.schemas.tables.bronze import BRONZE_TICKS
from headroom.schemas.tables.gold_balance import BALANCE_ACTION, BALANCE_PROPOSAL
from headroom.schemas.tables.gold_lag import REPLICATION_LAG
from headroom.schemas.tables.gold_leaders import ELECTION_PLAN, LEADER_IMBALANCE
from headroom.schemas.tables.gold_load import BROKER_LOAD, PARTITION_LOAD
from headroom.schemas.tables.gold_migrations import MIGRATION_GROUPS, MIGRATION_PROGRESS
from headroom.schemas.tables.gold_moves import PARTITION_WRITE_RATE, REASSIGNMENT_PROGRESS, THROTTLE_HEADROOM
from headroom.schemas.tables.silver import (
    BROKER_PERFORMANCE,
    BYTES_PER_SEC,
    FETCHER_LAG,
    LEADER_DISTRIBUTION,
    LOG_DIRS,
    LOG_END_OFFSETS,
    MESSAGES,
    MIGRATION_OFFSETS,
    MIGRATION_SYNCS,
    QUARANTINE,
    REPLICA_SIZES,
    THROTTLES,
)
from headroom.schemas.tables.table import Table

# Tables that jobs write and maintenance compacts. The others are missing: commands write them with another library, and
# on a path or S3 concurrent commits by Spark and that library could lose rows.
TABLES: tuple[Table, ...] = (
    BRONZE_TICKS,
    MESSAGES,
    FETCHER_LAG,
    BYTES_PER_SEC,
    LOG_END_OFFSETS,
    LEADER_DISTRIBUTION,
    THROTTLES,
    BROKER_PERFORMANCE,
    LOG_DIRS,
    REPLICA_SIZES,
    MIGRATION_OFFSETS,
    MIGRATION_SYNCS,
    QUARANTINE,
    THROTTLE_HEADROOM,
    REASSIGNMENT_PROGRESS,
    PARTITION_WRITE_RATE,
    LEADER_IMBALANCE,
    ELECTION_PLAN,
    PARTITION_LOAD,
    BROKER_LOAD,
    REPLICATION_LAG,
    MIGRATION_PROGRESS,
    MIGRATION_GROUPS,
    ALERT_EVENTS,
    ALERT_DELIVERIES,
)
# All tables: bronze first, those that commands write last.
ALL_TABLES: tuple[Table, ...] = (*TABLES, ALERT_MARKS, ACTION_JOURNAL, BALANCE_PROPOSAL, BALANCE_ACTION)
# Tables whose rows are on the disk, synced, before the step that they record: a change by a command, or a sent alert.
DURABLE_TABLES: tuple[Table, ...] = (ALERT_EVENTS, ALERT_DELIVERIES, ALERT_MARKS, ACTION_JOURNAL)
# Tables whose commits Spark does not make if the store is a local disk; they must then be maintained without Spark too.
PROMPT_TABLES: tuple[Table, ...] = (
    THROTTLE_HEADROOM,
    REASSIGNMENT_PROGRESS,
    PARTITION_WRITE_RATE,
    LEADER_IMBALANCE,
    BROKER_LOAD,
    REPLICATION_LAG,
    MIGRATION_PROGRESS,
    MIGRATION_GROUPS,
    ALERT_EVENTS,
    ALERT_DELIVERIES,
)
