"""All Delta tables, with columns, units and keys: one module per layer, their order in the catalogue."""

from headroom.schemas.tables.actions import ACTION_JOURNAL
from headroom.schemas.tables.alerts import ALERT_DELIVERIES, ALERT_EVENTS, ALERT_MARKS
from headroom.schemas.tables.bronze import BRONZE_TICKS
from headroom.schemas.tables.catalogue import ALL_TABLES, DURABLE_TABLES, PROMPT_TABLES, TABLES
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
from headroom.schemas.tables.table import Column, Table

__all__ = [
    "ACTION_JOURNAL",
    "ALERT_DELIVERIES",
    "ALERT_EVENTS",
    "ALERT_MARKS",
    "ALL_TABLES",
    "BALANCE_ACTION",
    "BALANCE_PROPOSAL",
    "BROKER_LOAD",
    "BROKER_PERFORMANCE",
    "BRONZE_TICKS",
    "BYTES_PER_SEC",
    "DURABLE_TABLES",
    "ELECTION_PLAN",
    "FETCHER_LAG",
    "LEADER_DISTRIBUTION",
    "LEADER_IMBALANCE",
    "LOG_DIRS",
    "LOG_END_OFFSETS",
    "MESSAGES",
    "MIGRATION_GROUPS",
    "MIGRATION_OFFSETS",
    "MIGRATION_PROGRESS",
    "MIGRATION_SYNCS",
    "PARTITION_LOAD",
    "PARTITION_WRITE_RATE",
    "PROMPT_TABLES",
    "QUARANTINE",
    "REASSIGNMENT_PROGRESS",
    "REPLICATION_LAG",
    "REPLICA_SIZES",
    "TABLES",
    "THROTTLES",
    "THROTTLE_HEADROOM",
    "Column",
    "Table",
]
