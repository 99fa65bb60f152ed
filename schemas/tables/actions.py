"""The table of changes that commands make to a cluster."""

from __future__ import annotations

from headroom.schemas.tables.table import Table, columns_of

ACTION_JOURNAL = Table(
    "actions/journal",
    "one step of one command that changes a cluster, each time its state changes",
    ("run_id", "seq"),
    (),
    columns_of(
        ("run_id", "STRING", "id of the run of a plan, or of one execution of another command"),
        ("seq", "BIGINT", "number of the row in its run, from 1"),
        ("cluster", "STRING", "name of the cluster"),
        ("command", "STRING", "command that makes the change: reassign run, throttle apply, ..."),
        (
            "step",
            "STRING",
            "run: the run as a whole; list: entries of a throttled replica list; rate: throttle rate of a broker; "
            "submit, finish and cancel: reassignment of a partition; place: log directory of a replica; elect: "
            "preferred leader elections; offset: committed offset of a consumer group; agree: terms of a partition in "
            "a migration; topic: a topic that is created or deleted",
        ),
        (
            "state",
            "STRING",
            "intended: about to be taken, durable before it is; done; undone: taken back, or no longer in force; "
            "failed",
        ),
        (
            "subject",
            "STRING",
            "what it changes: orders-0, orders-0 on broker 1, topic orders as leader, broker 2 as follower, "
            "broker 2 as log_dirs, group billing at orders-0, topic orders on cluster old; run: fingerprint",
        ),
        (
            "before",
            "STRING",
            "value before: replicas as [1,2], a list, a path, an offset, a rate in bytes per second, terms as JSON, or "
            "a number of partitions; null: none",
        ),
        (
            "after",
            "STRING",
            "value after: replicas, list entries, a path, an offset, a rate, terms, or a number of partitions; after a "
            "failure its reason; null: none",
        ),
        ("by", "STRING", "user and host"),
        ("at_ms", "BIGINT", "time of writing, epoch milliseconds UTC"),
    ),
)
