"""Definition of the dashboards in docker/grafana. Regenerate them with: python scripts/dashboards.py."""

from __future__ import annotations

import json
from collections.abc import Sequence
from pathlib import Path

from grafana.panels import (
    BLUE,
    BYTES,
    BYTES_PER_S,
    COUNT,
    GREEN,
    GREY,
    ORANGE,
    PER_S,
    PURPLE,
    RATIO,
    RED,
    SECONDS,
    SHARE,
    YELLOW,
    Json,
    Panel,
    Query,
    bar_gauge,
    dashboard,
    stat,
    state_timeline,
    table,
    time_series,
    variable,
)

FOLDER = Path(__file__).resolve().parent.parent / "docker" / "grafana" / "dashboards"

_IN = 'cluster=~"$cluster"'
_SELECTED = f'{_IN},broker=~"$broker"'
# Remaining bytes add up to the same by leader and by destination. Destinations show where replicas are copied to.
_DESTINATIONS = f'{_IN},role="follower"'
_LEADERS = f'{_IN},role="leader"'
_BROKER = "{{cluster}}: broker {{broker}}"
_BROKER_ROLE = "{{cluster}}: broker {{broker}} as {{role}}"
_PARTITION = "{{cluster}}: {{topic}}-{{partition}}"

_CLUSTER = variable("cluster", "Cluster", "label_values(headroom_alert_events_total, cluster)")
_BROKERS = variable("broker", "Broker", f"label_values(headroom_verdict{{{_IN}}}, broker)")
_FIRED = Query(
    f'sum by (cluster, kind) (increase(headroom_alert_events_total{{{_IN},state="firing"}}[$__rate_interval])) > 0',
    "{{cluster}}: {{kind}}",
)

_BAD_FROM_ONE = ((GREEN, None), (RED, 1))
_GOOD_ABOVE_ZERO = ((RED, None), (GREEN, 1))
_VERDICTS = {
    "idle": GREY,
    "catching_up": GREEN,
    "losing": ORANGE,
    "starved": RED,
    "unthrottled": BLUE,
    "no_data": PURPLE,
    # Last, so that the numbers of the other verdicts do not change.
    "slow": YELLOW,
}
_TOO_LOW = "losing|starved"


def _verdict_numbers() -> str:
    """Return an expression with a number per verdict: Grafana colours values, but a verdict is a label."""
    each = (f'headroom_verdict{{{_SELECTED},verdict="{name}"}} * {number}' for number, name in enumerate(_VERDICTS))
    return f"sum without (verdict) ({' or '.join(each)})"


def _longest_eta() -> str:
    """Return the expression of a cluster's longest ETA; no series if a move never ends or a verdict is unknown."""
    return (
        f"max by (cluster) (headroom_eta_seconds{{{_IN}}}) "
        f'unless on (cluster) headroom_verdict{{{_IN},verdict=~"{_TOO_LOW}|no_data"}}'
    )


def _skew(metric: str) -> str:
    """Return the expression of maximum divided by mean over a cluster's brokers; no series if all are 0."""
    return f"max by (cluster) ({metric}) / (avg by (cluster) ({metric}) > 0)"


def _finish(**more: int) -> Panel:
    return stat(
        "Finished in",
        "Longest time until all moving replicas are in sync, at the throttles in force. None: nothing moves, or the "
        "move of a broker never ends or is unknown; see its verdict.",
        Query(_longest_eta()),
        SECONDS,
        empty="none",
        **more,
    )


def move() -> Json:
    """Return the dashboard of the lag of moving replicas."""
    closing = f"-deriv(headroom_remaining_bytes{{{_DESTINATIONS}}}[$__rate_interval])"
    rows = [
        [
            stat(
                "Left to copy",
                "Bytes of their leaders' logs that moving replicas still have to copy, over all destinations.",
                Query(f"sum by (cluster) (headroom_remaining_bytes{{{_DESTINATIONS}}})"),
                BYTES,
                empty="nothing moves",
            ),
            stat(
                "Lag closes by",
                "Rate at which the remaining bytes decrease. At or below zero the move makes no progress.",
                Query(
                    f"sum by (cluster) ({closing}) "
                    f"and on (cluster) sum by (cluster) (headroom_moving_replicas{{{_DESTINATIONS}}}) > 0"
                ),
                BYTES_PER_S,
                steps=_GOOD_ABOVE_ZERO,
                empty="nothing moves",
            ),
            _finish(),
            stat(
                "Stalled replicas",
                "Adding replicas that copy nothing. Check the disk and the log of the destination.",
                Query(f"sum by (cluster) (headroom_stalled_replicas{{{_DESTINATIONS}}})"),
                COUNT,
                steps=_BAD_FROM_ONE,
                empty="unknown",
            ),
        ],
        [
            time_series(
                "Left to copy, by destination",
                "A rising line: replicas fall further behind, and the move will not end. A gap: unknown.",
                [Query(f"headroom_remaining_bytes{{{_DESTINATIONS}}}", _BROKER)],
                BYTES,
            ),
            time_series(
                "Lag closes by, by destination",
                "Rate at which the remaining bytes decrease. Below zero they grow.",
                [Query(closing, _BROKER)],
                BYTES_PER_S,
                steps=_GOOD_ABOVE_ZERO,
                custom={"thresholdsStyle": {"mode": "line"}},
            ),
        ],
        [
            time_series(
                "Under-replicated as planned, by leader",
                "Partitions in which only adding replicas are out of sync. A move causes this; its end resolves it.",
                [Query(f"headroom_planned_under_replicated_partitions{{{_IN}}}", _BROKER)],
                COUNT,
            ),
            time_series(
                "Lost replicas, by broker",
                "Out-of-sync replicas that no move explains: the broker is down, or has fallen behind.",
                [Query(f"headroom_lost_replicas{{{_IN}}}", _BROKER)],
                COUNT,
            ),
        ],
        [
            time_series(
                "Partitions with most left to copy",
                "The 20 partitions with the most bytes left, among those with series (metrics.top_n).",
                [Query(f"topk(20, headroom_partition_remaining_bytes{{{_IN}}})", _PARTITION)],
                BYTES,
            ),
            time_series(
                "Write rate of moving partitions",
                "Write rate of producers to the 20 busiest moving partitions. Each follower needs the same rate.",
                [Query(f"topk(20, headroom_partition_write_bytes_per_second{{{_IN}}})", _PARTITION)],
                BYTES_PER_S,
            ),
        ],
        [
            time_series(
                "Replicas that move, by destination",
                "Out-of-sync replicas that each broker receives.",
                [Query(f"headroom_moving_replicas{{{_DESTINATIONS}}}", _BROKER)],
                COUNT,
            ),
            time_series(
                "Stalled and waiting replicas, by destination",
                "Adding replicas that copy nothing, and those that wait for their turn.",
                [
                    Query(f"headroom_stalled_replicas{{{_DESTINATIONS}}}", f"stalled, {_BROKER}"),
                    Query(f"headroom_waiting_replicas{{{_DESTINATIONS}}}", f"waiting, {_BROKER}"),
                ],
                COUNT,
                steps=_BAD_FROM_ONE,
                custom={"thresholdsStyle": {"mode": "line"}},
            ),
        ],
    ]
    about = "How far is the move, does it make progress, and which partitions delay it?"
    return _dashboard("headroom-move", "Headroom: replication lag of the move", about, rows)


def throttle() -> Json:
    """Return the dashboard of throttles compared with their required rates."""
    columns = {
        "throttle": ("headroom_throttle_bytes_per_second", BYTES_PER_S),
        "required": ("headroom_required_bytes_per_second", BYTES_PER_S),
        "in-sync use": ("headroom_in_sync_bytes_per_second", BYTES_PER_S),
        "headroom": ("headroom_throttle_headroom_bytes_per_second", BYTES_PER_S),
        "left to copy": ("headroom_remaining_bytes", BYTES),
        "finished in": ("headroom_eta_seconds", SECONDS),
    }
    rows = [
        [
            stat(
                "Least headroom",
                "Smallest difference of throttle and required rate, over brokers and roles that take part in moves. "
                "Red: that move will not end.",
                Query(
                    f"min by (cluster, role) (headroom_throttle_headroom_bytes_per_second{{{_SELECTED}}} "
                    f'and ignoring (verdict) headroom_verdict{{{_SELECTED},verdict!="idle"}})',
                    "{{cluster}}: as {{role}}",
                ),
                BYTES_PER_S,
                steps=_GOOD_ABOVE_ZERO,
                empty="no throttle at work",
                width=8,
            ),
            stat(
                "Throttles that are too low",
                "Brokers and roles that are losing or starved.",
                Query(f'sum by (cluster) (headroom_verdict{{{_SELECTED},verdict=~"{_TOO_LOW}"}})'),
                COUNT,
                steps=_BAD_FROM_ONE,
                empty="none",
                width=8,
            ),
            _finish(width=8),
        ],
        [
            table(
                "Now, by broker and role",
                "As leader a broker sends, as follower it receives. An empty field: none, or unknown.",
                {
                    name: (f"sum by (cluster, broker, role) ({metric}{{{_SELECTED}}})", unit)
                    for name, (metric, unit) in columns.items()
                },
            )
        ],
        [
            state_timeline(
                "Verdicts",
                "idle: no replica is out of sync. catching_up: replicas get in sync. slow: they do, but only by "
                "responses that exceed the quota. losing: they fall further behind. starved: they get nothing. "
                "unthrottled: no rate or list limits them. no_data: an input is unknown.",
                Query(_verdict_numbers(), _BROKER_ROLE),
                dict(enumerate(_VERDICTS.items())),
                width=24,
            )
        ],
        [
            _throttle_panel("leader", "Leaders: throttle and required rate", "Throttle of each broker as leader"),
            _throttle_panel("follower", "Destinations: throttle and required rate", "Throttle of each destination"),
        ],
        [
            time_series(
                "Headroom",
                "Throttle minus required rate. At or below zero the move of that broker will not end.",
                [Query(f"headroom_throttle_headroom_bytes_per_second{{{_SELECTED}}}", _BROKER_ROLE)],
                BYTES_PER_S,
                steps=_GOOD_ABOVE_ZERO,
                custom={"thresholdsStyle": {"mode": "line+area"}},
            ),
            time_series(
                "Finished in, by broker and role",
                "Time until the moving replicas are in sync, at the throttle in force. A gap: nothing moves, never, or "
                "unknown.",
                [Query(f"headroom_eta_seconds{{{_SELECTED}}}", _BROKER_ROLE)],
                SECONDS,
            ),
        ],
    ]
    about = "Is each throttle above its required rate, by how much, and when does the move finish?"
    return _dashboard("headroom-throttle", "Headroom: throttle headroom", about, rows, [_BROKERS])


def _throttle_panel(role: str, title: str, description: str) -> Panel:
    of = f'{_SELECTED},role="{role}"'
    queries = [
        Query(f"headroom_throttle_bytes_per_second{{{of}}}", f"{_BROKER}, throttle"),
        Query(f"headroom_required_bytes_per_second{{{of}}}", f"{_BROKER}, required"),
        Query(f"headroom_in_sync_bytes_per_second{{{of}}}", f"{_BROKER}, in-sync use"),
    ]
    reading = (
        f"{description}, with its two thresholds. Below in-sync use, new replicas get nothing. Between the two they "
        "fall further behind. Above required they catch up."
    )
    return time_series(title, reading, queries, BYTES_PER_S)


def _preferred_ratio(partitions: str) -> str:
    """Return the expression of partitions per preferred partition of a broker; no series if it has none."""
    return f"headroom_leader_{partitions}_partitions{{{_IN}}} / (headroom_leader_preferred_partitions{{{_IN}}} > 0)"


def _leader_rows() -> list[list[Panel]]:
    """Return the panels of leaders compared with preferred leaders."""
    columns = {
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
    over = f"({_preferred_ratio('electable')} > headroom_leader_imbalance_threshold_ratio{{{_IN}}})"
    return [
        [
            stat(
                "Brokers out of balance",
                "Brokers to which an election would return more preferred partitions than the threshold allows.",
                Query(f"count by (cluster) ({over})"),
                COUNT,
                steps=_BAD_FROM_ONE,
                empty="none",
            ),
            stat(
                "Electable now",
                "Partitions not led by their preferred leader that an election would give back to it now.",
                Query(f"sum by (cluster) (headroom_leader_electable_partitions{{{_IN}}})"),
                COUNT,
                empty="unknown",
            ),
            stat(
                "Wait for the move",
                "Partitions whose preferred leader leads only after the move: planned, no imbalance.",
                Query(f"sum by (cluster) (headroom_leader_waiting_partitions{{{_IN}}})"),
                COUNT,
                empty="unknown",
            ),
            stat(
                "Preferred leader unavailable",
                "Partitions whose preferred leader is down or out of sync.",
                Query(f"sum by (cluster) (headroom_leader_unavailable_partitions{{{_IN}}})"),
                COUNT,
                steps=_BAD_FROM_ONE,
                empty="unknown",
            ),
        ],
        [
            table(
                "Leaders now, by broker",
                "Partitions that each broker leads, and is the preferred leader of. An empty field: unknown.",
                {
                    name: (f"sum by (cluster, broker) ({metric}{{{_IN}}})", unit)
                    for name, (metric, unit) in columns.items()
                },
            )
        ],
        [
            time_series(
                "Share that an election would return",
                "Share of each broker's preferred partitions. An alert fires if it stays above the threshold.",
                [
                    Query(_preferred_ratio("electable"), _BROKER),
                    Query(f"max by (cluster) ({columns['threshold'][0]}{{{_IN}}})", "{{cluster}}: threshold"),
                ],
                SHARE,
            ),
            time_series(
                "Partitions that each broker leads",
                "When leadership switches, one line falls and another rises by as much.",
                [Query(f"headroom_leader_partitions{{{_IN}}}", _BROKER)],
                COUNT,
            ),
        ],
        [
            _traffic_panel("write", "Written to leaders", "Write rate of producers to each broker"),
            _traffic_panel("read", "Read from leaders", "Read rate of consumers from each broker"),
        ],
    ]


def _traffic_panel(what: str, title: str, description: str) -> Panel:
    queries = [
        Query(f"headroom_leader_{what}_bytes_per_second{{{_IN}}}", _BROKER),
        Query(f"headroom_leader_preferred_{what}_bytes_per_second{{{_IN}}}", f"{_BROKER}, preferred"),
    ]
    return time_series(title, f"{description}, now and with all preferred leaders.", queries, BYTES_PER_S)


def balance() -> Json:
    """Return the dashboard of the distribution of leaders and of replication traffic over brokers."""
    uneven = ((GREEN, None), (ORANGE, 1.5), (RED, 2))
    required = "headroom_required_bytes_per_second"
    rows = [
        *_leader_rows(),
        [
            stat(
                "Busiest leader, times the mean",
                "Highest required send rate of a broker, divided by the mean. 1: balanced. A leader switch makes it "
                "jump.",
                Query(_skew(f"{required}{{{_LEADERS}}}")),
                RATIO,
                steps=uneven,
                empty="nothing counts",
                width=12,
            ),
            stat(
                "Busiest destination, times the mean",
                "Highest required receive rate of a broker, divided by the mean.",
                Query(_skew(f"{required}{{{_DESTINATIONS}}}")),
                RATIO,
                steps=uneven,
                empty="nothing counts",
                width=12,
            ),
        ],
        [
            bar_gauge(
                "Leaders must send, now",
                "Traffic to all followers that counts against each leader's throttle.",
                Query(f"{required}{{{_LEADERS}}}", _BROKER),
                BYTES_PER_S,
            ),
            bar_gauge(
                "Destinations must receive, now",
                "Traffic that counts against each destination's throttle.",
                Query(f"{required}{{{_DESTINATIONS}}}", _BROKER),
                BYTES_PER_S,
            ),
        ],
        [
            time_series(
                "Leaders must send",
                "When leadership switches, one line falls and another rises by as much.",
                [Query(f"{required}{{{_LEADERS}}}", _BROKER)],
                BYTES_PER_S,
            ),
            time_series(
                "Leaders send to in-sync followers",
                "Part of each throttle that in-sync followers use; new replicas get the rest.",
                [Query(f"headroom_in_sync_bytes_per_second{{{_LEADERS}}}", _BROKER)],
                BYTES_PER_S,
            ),
        ],
        [
            time_series(
                "Busiest leader, times the mean, over time",
                "1: balanced.",
                [Query(_skew(f"{required}{{{_LEADERS}}}"))],
                RATIO,
                steps=uneven,
                custom={"thresholdsStyle": {"mode": "line"}},
            ),
            time_series(
                "Moving replicas, by leader",
                "Out-of-sync replicas that each leader serves.",
                [Query(f"headroom_moving_replicas{{{_LEADERS}}}", _BROKER)],
                COUNT,
            ),
        ],
        [
            time_series(
                "Left to send, by leader",
                "Bytes that out-of-sync replicas still have to copy from each leader.",
                [Query(f"headroom_remaining_bytes{{{_LEADERS}}}", _BROKER)],
                BYTES,
            ),
            time_series(
                "Written to moving partitions, by topic",
                "Write rate by topic, of the partitions with series (metrics.top_n).",
                [
                    Query(
                        f"topk(10, sum by (cluster, topic) (headroom_partition_write_bytes_per_second{{{_IN}}}))",
                        "{{cluster}}: {{topic}}",
                    )
                ],
                BYTES_PER_S,
            ),
        ],
    ]
    about = (
        "Does each broker lead its preferred partitions, and how evenly is the replication traffic of the move "
        "distributed over leaders and destinations? Only partitions in throttled replica lists count."
    )
    return _dashboard("headroom-balance", "Headroom: leader balance", about, rows)


def health() -> Json:
    """Return the dashboard of Headroom itself."""
    interval = "[$__rate_interval]"
    decisions = f"sum by (cluster, le) (rate(headroom_decision_seconds_bucket{{{_IN}}}{interval}))"
    collections = f"sum by (cluster, le) (rate(headroom_collect_seconds_bucket{{{_IN}}}{interval}))"
    batches = f"sum by (le) (rate(headroom_batch_seconds_bucket{interval}))"
    # The limits of /health and of the alert rules, at an interval of 5 s.
    age = ((GREEN, None), (ORANGE, 15), (RED, 30))
    waiting = ((GREEN, None), (ORANGE, 1), (RED, 10))
    rows = [
        [
            stat(
                "Answers",
                "Whether the last scrape of Headroom succeeded.",
                Query('up{job="headroom"}', "{{instance}}"),
                COUNT,
                steps=((RED, None), (GREEN, 1)),
                values={0: ("down", RED), 1: ("up", GREEN)},
                empty="no target",
            ),
            stat(
                "Age of the last tick",
                "From 30 s on (metrics.stale_after_s) the cluster has no other series, and /health returns 503.",
                Query(f"headroom_tick_age_seconds{{{_IN}}}"),
                SECONDS,
                steps=age,
                empty="no tick yet",
            ),
            stat(
                "Verdicts unknown",
                "Brokers and roles with the verdict no_data. `headroom check` shows what cannot be reached.",
                Query(f'sum by (cluster) (headroom_verdict{{{_IN},verdict="no_data"}})'),
                COUNT,
                steps=_BAD_FROM_ONE,
                empty="none",
            ),
            stat(
                "Version",
                "Running version of Headroom.",
                Query("headroom_build_info", "{{version}}"),
                COUNT,
                options={"textMode": "name"},
            ),
        ],
        [
            time_series(
                "Age of the last tick, by two clocks",
                "By Headroom's clock, and by Prometheus' clock. If the lines differ, the clocks do.",
                [
                    Query(f"headroom_tick_age_seconds{{{_IN}}}"),
                    Query(f"time() - headroom_tick_timestamp_seconds{{{_IN}}}", "{{cluster}}, by Prometheus' clock"),
                ],
                SECONDS,
                steps=age,
                custom={"thresholdsStyle": {"mode": "line"}},
            ),
            time_series(
                "From a tick to its verdict",
                "Median and 95th percentile of the time from a tick to its verdict, including collection.",
                [
                    Query(f"histogram_quantile(0.5, {decisions})", "{{cluster}}, median"),
                    Query(f"histogram_quantile(0.95, {decisions})", "{{cluster}}, 95 %"),
                ],
                SECONDS,
            ),
        ],
        [
            time_series(
                "Work on a batch",
                "Duration of a micro-batch of the alert path. Longer than the interval of ticks: it falls behind.",
                [
                    Query(f"histogram_quantile(0.5, {batches})", "median"),
                    Query(f"histogram_quantile(0.95, {batches})", "95 %"),
                ],
                SECONDS,
            ),
            time_series(
                "Verdicts",
                "Verdicts per second, one per tick, broker and role. Zero: no ticks arrive.",
                [Query(f"sum by (cluster) (rate(headroom_rows_total{{{_IN}}}{interval}))")],
                PER_S,
            ),
        ],
        [
            time_series(
                "Brokers that did not answer",
                "In the last tick, and missed reads per second. Their verdicts are unknown; see `headroom check`.",
                [
                    Query(f"headroom_unanswered_brokers{{{_IN}}}", "{{cluster}}, now"),
                    Query(
                        f"rate(headroom_collector_errors_total{{{_IN}}}{interval})",
                        "{{cluster}}, missed per second",
                    ),
                ],
                COUNT,
            ),
            time_series(
                "Collecting a tick",
                "Median and 95th percentile of the time to read and write a tick; skipped ticks per second.",
                [
                    Query(f"histogram_quantile(0.5, {collections})", "{{cluster}}, median"),
                    Query(f"histogram_quantile(0.95, {collections})", "{{cluster}}, 95 %"),
                    Query(
                        f"rate(headroom_skipped_ticks_total{{{_IN}}}{interval})",
                        "{{cluster}}, skipped per second",
                    ),
                ],
                SECONDS,
            ),
        ],
        [
            time_series(
                "Active alerts",
                "Headroom's pending and firing alerts, by kind.",
                [
                    Query(
                        f"sum by (cluster, kind, severity, state) (headroom_alerts{{{_IN}}})",
                        "{{cluster}}: {{kind}}, {{severity}}, {{state}}",
                    )
                ],
                COUNT,
            ),
            time_series(
                "Changes of alerts",
                "Events since the previous sample: pending, firing, resolved.",
                [
                    Query(
                        f"sum by (cluster, kind, state) (increase(headroom_alert_events_total{{{_IN}}}{interval})) > 0",
                        "{{cluster}}: {{kind}}, {{state}}",
                    )
                ],
                COUNT,
                custom={"drawStyle": "bars", "fillOpacity": 60},
            ),
        ],
        [
            time_series(
                "Undelivered events, by receiver",
                "`headroom alerts --undelivered` shows them with the receiver's last response.",
                [Query("sum by (receiver) (headroom_undelivered_events)", "{{receiver}}")],
                COUNT,
                steps=waiting,
                custom={"thresholdsStyle": {"mode": "line"}},
            ),
            time_series(
                "Time since the last delivery, by receiver",
                "A long time is normal without events. With undelivered events, the receiver is unreachable.",
                [Query("time() - headroom_last_delivery_timestamp_seconds", "{{receiver}}")],
                SECONDS,
            ),
        ],
        [
            time_series(
                "Quarantined messages",
                "Rejected messages of the ticks topic within retention. `silver/quarantine` has the reasons.",
                [Query("headroom_quarantined_messages", "{{instance}}")],
                COUNT,
            ),
        ],
    ]
    about = "Does Headroom collect, evaluate and notify in time?"
    return _dashboard("headroom-health", "Headroom: its own health", about, rows)


def _dashboard(uid: str, title: str, about: str, rows: list[list[Panel]], variables: Sequence[Json] = ()) -> Json:
    written = f"{about} Written by scripts/dashboards.py."
    return dashboard(uid, title, written, rows, [_CLUSTER, *variables], _FIRED)


def files() -> dict[Path, str]:
    """Return the text of every dashboard by its file."""
    dashboards = (move(), throttle(), balance(), health())
    return {FOLDER / f"{built['uid']}.json": json.dumps(built, indent=2) + "\n" for built in dashboards}


if __name__ == "__main__":
    FOLDER.mkdir(parents=True, exist_ok=True)
    for file, text in files().items():
        file.write_text(text, encoding="utf-8")
