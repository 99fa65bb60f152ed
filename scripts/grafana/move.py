"""Dashboard of the lag of moving replicas."""

from __future__ import annotations

from grafana.panels import BYTES, BYTES_PER_S, COUNT, Json, Panel, Query, stat, time_series
from grafana.queries import (
    BAD_FROM_ONE,
    BROKER_LEGEND,
    CLUSTERS,
    DESTINATIONS,
    GOOD_ABOVE_ZERO,
    PARTITION_LEGEND,
    finish_stat,
    headroom_dashboard,
)

_CLOSING = f"-deriv(headroom_remaining_bytes{{{DESTINATIONS}}}[$__rate_interval])"


def move() -> Json:
    """Return the dashboard of the lag of moving replicas."""
    rows = [_summary(), _left_to_copy(), _out_of_sync(), _busiest_partitions(), _replicas(), _migrations()]
    about = "How far is the move, does it make progress, and which partitions delay it?"
    return headroom_dashboard("headroom-move", "Headroom: replication lag of the move", about, rows)


def _summary() -> list[Panel]:
    """Bytes left, progress and expected finish of each cluster's move."""
    return [
        stat(
            "Left to copy",
            "Bytes of their leaders' logs that moving replicas still have to copy, over all destinations.",
            Query(f"sum by (cluster) (headroom_remaining_bytes{{{DESTINATIONS}}})"),
            BYTES,
            empty="nothing moves",
        ),
        stat(
            "Lag closes by",
            "Rate at which the remaining bytes decrease. At or below zero the move makes no progress.",
            Query(
                f"sum by (cluster) ({_CLOSING}) "
                f"and on (cluster) sum by (cluster) (headroom_moving_replicas{{{DESTINATIONS}}}) > 0"
            ),
            BYTES_PER_S,
            steps=GOOD_ABOVE_ZERO,
            empty="nothing moves",
        ),
        finish_stat(),
        stat(
            "Stalled replicas",
            "Adding replicas that copy nothing. Check the disk and the log of the destination.",
            Query(f"sum by (cluster) (headroom_stalled_replicas{{{DESTINATIONS}}})"),
            COUNT,
            steps=BAD_FROM_ONE,
            empty="unknown",
        ),
    ]


def _left_to_copy() -> list[Panel]:
    """Bytes left per destination, and the rate at which they decrease."""
    return [
        time_series(
            "Left to copy, by destination",
            "A rising line: replicas fall further behind, and the move will not end. A gap: unknown.",
            [Query(f"headroom_remaining_bytes{{{DESTINATIONS}}}", BROKER_LEGEND)],
            BYTES,
        ),
        time_series(
            "Lag closes by, by destination",
            "Rate at which the remaining bytes decrease. Below zero they grow.",
            [Query(_CLOSING, BROKER_LEGEND)],
            BYTES_PER_S,
            steps=GOOD_ABOVE_ZERO,
            custom={"thresholdsStyle": {"mode": "line"}},
        ),
    ]


def _out_of_sync() -> list[Panel]:
    """Replicas that are out of sync because of the move, and for other reasons."""
    return [
        time_series(
            "Under-replicated as planned, by leader",
            "Partitions in which only adding replicas are out of sync. A move causes this; its end resolves it.",
            [Query(f"headroom_planned_under_replicated_partitions{{{CLUSTERS}}}", BROKER_LEGEND)],
            COUNT,
        ),
        time_series(
            "Lost replicas, by broker",
            "Out-of-sync replicas that no move explains: the broker is down, or has fallen behind.",
            [Query(f"headroom_lost_replicas{{{CLUSTERS}}}", BROKER_LEGEND)],
            COUNT,
        ),
    ]


def _busiest_partitions() -> list[Panel]:
    """Partitions that delay the move."""
    return [
        time_series(
            "Partitions with most left to copy",
            "The 20 partitions with the most bytes left, among those with series (metrics.top_n).",
            [Query(f"topk(20, headroom_partition_remaining_bytes{{{CLUSTERS}}})", PARTITION_LEGEND)],
            BYTES,
        ),
        time_series(
            "Write rate of moving partitions",
            "Write rate of producers to the 20 busiest moving partitions. Each follower needs the same rate.",
            [Query(f"topk(20, headroom_partition_write_bytes_per_second{{{CLUSTERS}}})", PARTITION_LEGEND)],
            BYTES_PER_S,
        ),
    ]


def _replicas() -> list[Panel]:
    """Replicas per destination: moving, stalled and waiting."""
    return [
        time_series(
            "Replicas that move, by destination",
            "Out-of-sync replicas that each broker receives.",
            [Query(f"headroom_moving_replicas{{{DESTINATIONS}}}", BROKER_LEGEND)],
            COUNT,
        ),
        time_series(
            "Stalled and waiting replicas, by destination",
            "Adding replicas that copy nothing, and those that wait for their turn.",
            [
                Query(f"headroom_stalled_replicas{{{DESTINATIONS}}}", f"stalled, {BROKER_LEGEND}"),
                Query(f"headroom_waiting_replicas{{{DESTINATIONS}}}", f"waiting, {BROKER_LEGEND}"),
            ],
            COUNT,
            steps=BAD_FROM_ONE,
            custom={"thresholdsStyle": {"mode": "line"}},
        ),
    ]


def _migrations() -> list[Panel]:
    """Migrations of topics to the cluster: partitions by status, what is left to write, and what was lost."""
    legend = "{{cluster}} {{migration}}"
    return [
        time_series(
            "Migrating partitions, by status",
            "Partitions of topics that migrate to the cluster, by agreed status. No line: there is no migration.",
            [Query(f"headroom_migration_partitions{{{CLUSTERS}}}", f"{legend} {{{{status}}}}")],
            COUNT,
            width=9,
        ),
        time_series(
            "Left to write before the switches",
            "Offsets below the agreed end offsets that the origin does not have yet. A gap: unknown.",
            [Query(f"headroom_migration_left_offsets{{{CLUSTERS}}}", legend)],
            COUNT,
            width=9,
        ),
        stat(
            "Lost on the origin",
            "Acknowledged offsets below the agreed end offsets that the origin no longer has.",
            Query(f"headroom_migration_lost_offsets{{{CLUSTERS}}}", legend),
            COUNT,
            steps=BAD_FROM_ONE,
            empty="unknown, or no migration",
        ),
    ]
