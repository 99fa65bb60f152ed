"""Dashboard of the distribution of leaders and of replication traffic over brokers."""

from __future__ import annotations

from grafana.load import load_summary, loads_in_bands, promised, proposal_summary
from grafana.panels import (
    BYTES,
    BYTES_PER_S,
    COUNT,
    GREEN,
    ORANGE,
    RATIO,
    RED,
    SHARE,
    Json,
    Panel,
    Query,
    bar_gauge,
    stat,
    table,
    time_series,
)
from grafana.queries import BAD_FROM_ONE, BROKER_LEGEND, CLUSTERS, DESTINATIONS, LEADERS, headroom_dashboard

_UNEVEN = ((GREEN, None), (ORANGE, 1.5), (RED, 2))
_REQUIRED = "headroom_required_bytes_per_second"
_COLUMNS = {
    "share away": ("headroom_leader_imbalance_ratio", SHARE),
    "threshold": ("headroom_leader_imbalance_threshold_ratio", SHARE),
    "prefer it": ("headroom_leader_preferred_partitions", COUNT),
    "leads": ("headroom_leader_partitions", COUNT),
    "electable now": ("headroom_leader_electable_partitions", COUNT),
    "wait for the move": ("headroom_leader_waiting_partitions", COUNT),
    "unavailable": ("headroom_leader_unavailable_partitions", COUNT),
    "writes": ("headroom_leader_write_bytes_per_second", BYTES_PER_S),
    "writes, preferred": ("headroom_leader_preferred_write_bytes_per_second", BYTES_PER_S),
    "reads": ("headroom_leader_read_bytes_per_second", BYTES_PER_S),
    "reads, preferred": ("headroom_leader_preferred_read_bytes_per_second", BYTES_PER_S),
}


def balance() -> Json:
    """Return the dashboard of the distribution of leaders and of replication traffic over brokers."""
    rows = [
        _leader_summary(),
        _leader_table(),
        _leader_partitions(),
        _leader_traffic(),
        load_summary(),
        loads_in_bands(),
        proposal_summary(),
        promised(),
        _busiest(),
        _replication_now(),
        _replication(),
        _unevenness(),
        _written(),
    ]
    about = (
        "Does each broker lead its preferred partitions, are loads in their bands, and how evenly is the replication "
        "traffic of the move distributed over leaders and destinations? Of that, only partitions in throttled replica "
        "lists count."
    )
    return headroom_dashboard("headroom-balance", "Headroom: leader balance", about, rows)


def _leader_summary() -> list[Panel]:
    """Number of leaders that are not the preferred ones, by reason."""
    over = f"({_preferred_ratio('electable')} > headroom_leader_imbalance_threshold_ratio{{{CLUSTERS}}})"
    return [
        stat(
            "Brokers out of balance",
            "Brokers to which an election would return more preferred partitions than the threshold allows.",
            Query(f"count by (cluster) ({over})"),
            COUNT,
            steps=BAD_FROM_ONE,
            empty="none",
        ),
        stat(
            "Electable now",
            "Partitions not led by their preferred leader that an election would give back to it now.",
            Query(f"sum by (cluster) (headroom_leader_electable_partitions{{{CLUSTERS}}})"),
            COUNT,
            empty="unknown",
        ),
        stat(
            "Wait for the move",
            "Partitions whose preferred leader leads only after the move: planned, no imbalance.",
            Query(f"sum by (cluster) (headroom_leader_waiting_partitions{{{CLUSTERS}}})"),
            COUNT,
            empty="unknown",
        ),
        stat(
            "Preferred leader unavailable",
            "Partitions whose preferred leader is down or out of sync.",
            Query(f"sum by (cluster) (headroom_leader_unavailable_partitions{{{CLUSTERS}}})"),
            COUNT,
            steps=BAD_FROM_ONE,
            empty="unknown",
        ),
    ]


def _leader_table() -> list[Panel]:
    """All figures of each broker as a leader."""
    return [
        table(
            "Leaders now, by broker",
            "Partitions that each broker leads, and is the preferred leader of. An empty field: unknown.",
            {
                name: (f"sum by (cluster, broker) ({metric}{{{CLUSTERS}}})", unit)
                for name, (metric, unit) in _COLUMNS.items()
            },
        )
    ]


def _leader_partitions() -> list[Panel]:
    """Partitions of each broker over time."""
    return [
        time_series(
            "Share that an election would return",
            "Share of each broker's preferred partitions. An alert fires if it stays above the threshold.",
            [
                Query(_preferred_ratio("electable"), BROKER_LEGEND),
                Query(f"max by (cluster) ({_COLUMNS['threshold'][0]}{{{CLUSTERS}}})", "{{cluster}}: threshold"),
            ],
            SHARE,
        ),
        time_series(
            "Partitions that each broker leads",
            "When leadership switches, one line falls and another rises by as much.",
            [Query(f"headroom_leader_partitions{{{CLUSTERS}}}", BROKER_LEGEND)],
            COUNT,
        ),
    ]


def _leader_traffic() -> list[Panel]:
    """Traffic of producers and consumers per leader."""
    return [
        _traffic_panel("write", "Written to leaders", "Write rate of producers to each broker"),
        _traffic_panel("read", "Read from leaders", "Read rate of consumers from each broker"),
    ]


def _busiest() -> list[Panel]:
    """Busiest broker of each cluster compared with the mean."""
    return [
        stat(
            "Busiest leader, times the mean",
            "Highest required send rate of a broker, divided by the mean. 1: balanced. A leader switch makes it jump.",
            Query(_skew(f"{_REQUIRED}{{{LEADERS}}}")),
            RATIO,
            steps=_UNEVEN,
            empty="nothing counts",
            width=12,
        ),
        stat(
            "Busiest destination, times the mean",
            "Highest required receive rate of a broker, divided by the mean.",
            Query(_skew(f"{_REQUIRED}{{{DESTINATIONS}}}")),
            RATIO,
            steps=_UNEVEN,
            empty="nothing counts",
            width=12,
        ),
    ]


def _replication_now() -> list[Panel]:
    """Replication traffic of each broker now."""
    return [
        bar_gauge(
            "Leaders must send, now",
            "Traffic to all followers that counts against each leader's throttle.",
            Query(f"{_REQUIRED}{{{LEADERS}}}", BROKER_LEGEND),
            BYTES_PER_S,
        ),
        bar_gauge(
            "Destinations must receive, now",
            "Traffic that counts against each destination's throttle.",
            Query(f"{_REQUIRED}{{{DESTINATIONS}}}", BROKER_LEGEND),
            BYTES_PER_S,
        ),
    ]


def _replication() -> list[Panel]:
    """Replication traffic of each leader over time."""
    return [
        time_series(
            "Leaders must send",
            "When leadership switches, one line falls and another rises by as much.",
            [Query(f"{_REQUIRED}{{{LEADERS}}}", BROKER_LEGEND)],
            BYTES_PER_S,
        ),
        time_series(
            "Leaders send to in-sync followers",
            "Part of each throttle that in-sync followers use; new replicas get the rest.",
            [Query(f"headroom_in_sync_bytes_per_second{{{LEADERS}}}", BROKER_LEGEND)],
            BYTES_PER_S,
        ),
    ]


def _unevenness() -> list[Panel]:
    """Busiest leader compared with the mean over time, and replicas that each leader serves."""
    return [
        time_series(
            "Busiest leader, times the mean, over time",
            "1: balanced.",
            [Query(_skew(f"{_REQUIRED}{{{LEADERS}}}"))],
            RATIO,
            steps=_UNEVEN,
            custom={"thresholdsStyle": {"mode": "line"}},
        ),
        time_series(
            "Moving replicas, by leader",
            "Out-of-sync replicas that each leader serves.",
            [Query(f"headroom_moving_replicas{{{LEADERS}}}", BROKER_LEGEND)],
            COUNT,
        ),
    ]


def _written() -> list[Panel]:
    """Bytes left per leader, and write rates of the topics that move."""
    return [
        time_series(
            "Left to send, by leader",
            "Bytes that out-of-sync replicas still have to copy from each leader.",
            [Query(f"headroom_remaining_bytes{{{LEADERS}}}", BROKER_LEGEND)],
            BYTES,
        ),
        time_series(
            "Written to moving partitions, by topic",
            "Write rate by topic, of the partitions with series (metrics.top_n).",
            [
                Query(
                    f"topk(10, sum by (cluster, topic) (headroom_partition_write_bytes_per_second{{{CLUSTERS}}}))",
                    "{{cluster}}: {{topic}}",
                )
            ],
            BYTES_PER_S,
        ),
    ]


def _traffic_panel(what: str, title: str, description: str) -> Panel:
    queries = [
        Query(f"headroom_leader_{what}_bytes_per_second{{{CLUSTERS}}}", BROKER_LEGEND),
        Query(f"headroom_leader_preferred_{what}_bytes_per_second{{{CLUSTERS}}}", f"{BROKER_LEGEND}, preferred"),
    ]
    return time_series(title, f"{description}, now and with all preferred leaders.", queries, BYTES_PER_S)


def _preferred_ratio(partitions: str) -> str:
    """Return the expression of partitions per preferred partition of a broker; no series if it has none."""
    preferred = f"headroom_leader_preferred_partitions{{{CLUSTERS}}}"
    return f"headroom_leader_{partitions}_partitions{{{CLUSTERS}}} / ({preferred} > 0)"


def _skew(metric: str) -> str:
    """Return the expression of maximum divided by mean over a cluster's brokers; no series if all are 0."""
    return f"max by (cluster) ({metric}) / (avg by (cluster) ({metric}) > 0)"
