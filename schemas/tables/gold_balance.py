"""The gold tables of load balance: proposals and their actions."""

from __future__ import annotations

from headroom.schemas.tables.table import Table, columns_of

_PROPOSAL_COLUMNS = (
    ("proposal_id", "STRING", "digest of the cluster, of read_ms and of the actions"),
    ("cluster", "STRING", "name of the cluster"),
    ("read_ms", "BIGINT", "when the cluster was read, epoch milliseconds UTC"),
)

BALANCE_PROPOSAL = Table(
    "gold/balance_proposal",
    "one proposal of headroom balance propose on a running cluster",
    ("proposal_id",),
    (),
    columns_of(
        *_PROPOSAL_COLUMNS,
        ("by", "STRING", "user and host"),
        ("goals", "STRING", "names of the goals in their order, comma-separated"),
        ("lost_goals", "STRING", "names of the goals that are not scored, comma-separated; empty if none"),
        ("hours", "BIGINT", "number of hours of history that the loads rest on; 0: one reading"),
        ("wanted_hours", "BIGINT", "number of hours that balance.history asks for"),
        ("brokers", "BIGINT", "number of brokers that count: alive, with known metrics"),
        ("partitions", "BIGINT", "number of partitions"),
        ("actions", "BIGINT", "number of actions that the batches carry out"),
        ("elections", "BIGINT", "number of these that copy nothing"),
        ("copied_replicas", "BIGINT", "number of replicas that the actions copy"),
        ("copied_bytes", "BIGINT", "bytes that the actions copy"),
        (
            "outside_before",
            "DOUBLE",
            "load outside of bands and beyond limits before the actions, in shares of the means by weight",
        ),
        ("outside_after", "DOUBLE", "the same after the actions"),
        ("in_band_before", "BIGINT", "number of brokers in all bands and limits before the actions"),
        ("in_band_after", "BIGINT", "the same after the actions"),
        ("batches", "BIGINT", "number of batches"),
        ("throttle_bytes_per_s", "BIGINT", "throttle that the batches are priced at, bytes/s; null: nothing is copied"),
        (
            "duration_s",
            "DOUBLE",
            "time of all batches one after another, with the readings and pauses of a run, seconds; null: one of them "
            "never ends",
        ),
    ),
)

BALANCE_ACTION = Table(
    "gold/balance_action",
    "proposal, action that its batches carry out",
    ("proposal_id", "number"),
    (),
    columns_of(
        *_PROPOSAL_COLUMNS,
        ("number", "BIGINT", "number of the action in the proposal, from 1"),
        ("batch", "BIGINT", "number of its batch, from 1"),
        (
            "kind",
            "STRING",
            "elect: a replica becomes the preferred leader and is elected; move: a replica moves; swap: replicas of "
            "two partitions change places",
        ),
        ("topic", "STRING", "topic"),
        ("partition", "INT", "partition"),
        ("from_broker", "BIGINT", "broker that gives the lead or the replica"),
        ("to_broker", "BIGINT", "broker that takes it"),
        ("leads", "BOOLEAN", "whether the lead goes over"),
        ("swapped_topic", "STRING", "topic of the replica that goes back in a swap; null: no swap"),
        ("swapped_partition", "INT", "partition of that replica; null: no swap"),
        ("copied_bytes", "BIGINT", "bytes that new replicas copy; 0 for an election"),
        ("gain", "DOUBLE", "fall of load outside of bands by the action, in shares of the means by weight"),
    ),
)
