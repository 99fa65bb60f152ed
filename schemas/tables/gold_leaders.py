"""The gold tables about leadership: imbalance of brokers, and plans of elections."""

from __future__ import annotations

from headroom.schemas.tables.table import TICK_COLUMNS, Table, columns_of

LEADER_IMBALANCE = Table(
    "gold/leader_imbalance",
    "tick, broker that is the preferred leader of a partition",
    ("cluster", "tick_ms", "broker"),
    ("date",),
    columns_of(
        *TICK_COLUMNS,
        ("broker", "INT", "broker"),
        ("alive", "BOOLEAN", "true if the broker is registered with the cluster"),
        ("preferred_partitions", "INT", "partitions whose preferred leader it is (first of their replicas)"),
        ("non_preferred_partitions", "INT", "partitions of these that another broker leads, by Kafka's count"),
        (
            "electable_now",
            "INT",
            "partitions of non_preferred_partitions that an election would return: it is alive and in sync, and "
            "the partition is in no reassignment",
        ),
        (
            "waiting_for_move",
            "INT",
            "partitions of non_preferred_partitions in a reassignment, whose replicas already have their final order",
        ),
        (
            "unavailable",
            "INT",
            "partitions of non_preferred_partitions that it cannot lead, because it is down or out of sync",
        ),
        ("leaderless", "INT", "partitions of preferred_partitions without a leader; they count in no other column"),
        ("leader_partitions", "INT", "partitions that it leads, preferred or not"),
        (
            "imbalance_ratio",
            "DOUBLE",
            "non_preferred_partitions / preferred_partitions, 0 to 1; not compared with threshold_ratio, because some "
            "cannot be elected now",
        ),
        (
            "threshold_ratio",
            "DOUBLE",
            "threshold, 0 to 1: leader.imbalance.per.broker.percentage or the setting; an imbalance is reported if "
            "electable_now / preferred_partitions is greater",
        ),
        (
            "threshold_source",
            "STRING",
            "source of the threshold: broker (its own configuration) or setting (alerts.leader_imbalance_percentage)",
        ),
        ("write_bytes_per_s", "DOUBLE", "write rate of the partitions that it leads, bytes/s; null: unknown"),
        (
            "preferred_write_bytes_per_s",
            "DOUBLE",
            "write rate if every preferred leader led, bytes/s, from the growth of logs; null: unknown",
        ),
        ("read_bytes_per_s", "DOUBLE", "read rate of its consumers, bytes/s; null: unknown"),
        (
            "preferred_read_bytes_per_s",
            "DOUBLE",
            "read rate if every preferred leader led, bytes/s, with a leader's reads distributed like its writes; "
            "null: unknown",
        ),
        ("auto_leader_rebalance", "BOOLEAN", "auto.leader.rebalance.enable of the broker; null: not reported"),
        ("check_interval_s", "BIGINT", "leader.imbalance.check.interval.seconds of the broker; null: not reported"),
        ("metadata_age_ms", "BIGINT", "age of its oldest partition metadata at the tick, ms; null: not reported"),
        ("rate_window_ms", "BIGINT", "time over which the rates were measured, ms; null: unknown"),
    ),
)

ELECTION_PLAN = Table(
    "gold/election_plan",
    "tick with a plan of elections, made while a broker is out of balance: when leaders change, otherwise every minute",
    ("cluster", "tick_ms"),
    ("date",),
    columns_of(
        *TICK_COLUMNS,
        ("batches", "INT", "batches of preferred leader elections; 0: no election is possible now"),
        ("elections", "INT", "partitions in all batches"),
        ("write_bytes_per_s", "DOUBLE", "write rate of these partitions, bytes/s; null: a rate is unknown"),
        (
            "first_batch",
            "ARRAY<STRUCT<topic STRING, partition INT>>",
            "partitions of the first batch, in order",
        ),
        ("first_batch_write_bytes_per_s", "DOUBLE", "write rate of these partitions, bytes/s; null: a rate is unknown"),
        (
            "outlooks",
            "ARRAY<STRUCT<broker INT, first_batch_ratio DOUBLE, last_batch_ratio DOUBLE>>",
            "imbalance of every preferred broker after the first and after the last batch, 0 to 1",
        ),
        (
            "left_out",
            "ARRAY<STRUCT<reason STRING, partitions INT>>",
            "number of partitions that their preferred broker does not lead and that are in no batch, by reason",
        ),
        (
            "raise_first",
            "ARRAY<STRUCT<broker INT, role STRING, throttle_bytes_per_s DOUBLE, required_bytes_per_s DOUBLE>>",
            "throttles to raise before the other partitions can be elected: rate in force, and rate to exceed",
        ),
    ),
)
