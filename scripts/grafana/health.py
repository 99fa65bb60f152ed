"""Dashboard of Headroom itself."""

from __future__ import annotations

from grafana.panels import COUNT, GREEN, ORANGE, PER_S, RED, SECONDS, Json, Panel, Query, stat, time_series
from grafana.queries import BAD_FROM_ONE, CLUSTERS, headroom_dashboard

_DECISIONS = f"sum by (cluster, le) (rate(headroom_decision_seconds_bucket{{{CLUSTERS}}}[$__rate_interval]))"
_COLLECTIONS = f"sum by (cluster, le) (rate(headroom_collect_seconds_bucket{{{CLUSTERS}}}[$__rate_interval]))"
_BATCHES = "sum by (le) (rate(headroom_batch_seconds_bucket[$__rate_interval]))"
# The limits of /health and of the alert rules, at an interval of 5 s.
_AGE = ((GREEN, None), (ORANGE, 15), (RED, 30))
_WAITING = ((GREEN, None), (ORANGE, 1), (RED, 10))


def health() -> Json:
    """Return the dashboard of Headroom itself."""
    rows = [_summary(), _timeliness(), _alert_path(), _collection(), _alerts(), _deliveries(), _quarantine()]
    about = "Does Headroom collect, evaluate and notify in time?"
    return headroom_dashboard("headroom-health", "Headroom: its own health", about, rows)


def _summary() -> list[Panel]:
    """State of Headroom: scrape, last tick, unknown verdicts and version."""
    return [
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
            Query(f"headroom_tick_age_seconds{{{CLUSTERS}}}"),
            SECONDS,
            steps=_AGE,
            empty="no tick yet",
        ),
        stat(
            "Verdicts unknown",
            "Brokers and roles with the verdict no_data. `headroom check` shows what cannot be reached.",
            Query(f'sum by (cluster) (headroom_verdict{{{CLUSTERS},verdict="no_data"}})'),
            COUNT,
            steps=BAD_FROM_ONE,
            empty="none",
        ),
        stat(
            "Version",
            "Running version of Headroom.",
            Query("headroom_build_info", "{{version}}"),
            COUNT,
            options={"textMode": "name"},
        ),
    ]


def _timeliness() -> list[Panel]:
    """Age of ticks, and time until their verdicts."""
    return [
        time_series(
            "Age of the last tick, by two clocks",
            "By Headroom's clock, and by Prometheus' clock. If the lines differ, the clocks do.",
            [
                Query(f"headroom_tick_age_seconds{{{CLUSTERS}}}"),
                Query(f"time() - headroom_tick_timestamp_seconds{{{CLUSTERS}}}", "{{cluster}}, by Prometheus' clock"),
            ],
            SECONDS,
            steps=_AGE,
            custom={"thresholdsStyle": {"mode": "line"}},
        ),
        time_series(
            "From a tick to its verdict",
            "Median and 95th percentile of the time from a tick to its verdict, including collection.",
            [
                Query(f"histogram_quantile(0.5, {_DECISIONS})", "{{cluster}}, median"),
                Query(f"histogram_quantile(0.95, {_DECISIONS})", "{{cluster}}, 95 %"),
            ],
            SECONDS,
        ),
    ]


def _alert_path() -> list[Panel]:
    """Duration of micro-batches, and number of verdicts."""
    return [
        time_series(
            "Work on a batch",
            "Duration of a micro-batch of the alert path. Longer than the interval of ticks: it falls behind.",
            [
                Query(f"histogram_quantile(0.5, {_BATCHES})", "median"),
                Query(f"histogram_quantile(0.95, {_BATCHES})", "95 %"),
            ],
            SECONDS,
        ),
        time_series(
            "Verdicts",
            "Verdicts per second, one per tick, broker and role. Zero: no ticks arrive.",
            [Query(f"sum by (cluster) (rate(headroom_rows_total{{{CLUSTERS}}}[$__rate_interval]))")],
            PER_S,
        ),
    ]


def _collection() -> list[Panel]:
    """Brokers that did not answer, and duration of a collection."""
    return [
        time_series(
            "Brokers that did not answer",
            "In the last tick, and missed reads per second. Their verdicts are unknown; see `headroom check`.",
            [
                Query(f"headroom_unanswered_brokers{{{CLUSTERS}}}", "{{cluster}}, now"),
                Query(
                    f"rate(headroom_collector_errors_total{{{CLUSTERS}}}[$__rate_interval])",
                    "{{cluster}}, missed per second",
                ),
            ],
            COUNT,
        ),
        time_series(
            "Collecting a tick",
            "Median and 95th percentile of the time to read and write a tick; skipped ticks per second.",
            [
                Query(f"histogram_quantile(0.5, {_COLLECTIONS})", "{{cluster}}, median"),
                Query(f"histogram_quantile(0.95, {_COLLECTIONS})", "{{cluster}}, 95 %"),
                Query(
                    f"rate(headroom_skipped_ticks_total{{{CLUSTERS}}}[$__rate_interval])",
                    "{{cluster}}, skipped per second",
                ),
            ],
            SECONDS,
        ),
    ]


def _alerts() -> list[Panel]:
    """Active alerts, and changes of their states."""
    return [
        time_series(
            "Active alerts",
            "Headroom's pending and firing alerts, by kind.",
            [
                Query(
                    f"sum by (cluster, kind, severity, state) (headroom_alerts{{{CLUSTERS}}})",
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
                    "sum by (cluster, kind, state) "
                    f"(increase(headroom_alert_events_total{{{CLUSTERS}}}[$__rate_interval])) > 0",
                    "{{cluster}}: {{kind}}, {{state}}",
                )
            ],
            COUNT,
            custom={"drawStyle": "bars", "fillOpacity": 60},
        ),
    ]


def _deliveries() -> list[Panel]:
    """Delivery to receivers."""
    return [
        time_series(
            "Undelivered events, by receiver",
            "`headroom alerts --undelivered` shows them with the receiver's last response.",
            [Query("sum by (receiver) (headroom_undelivered_events)", "{{receiver}}")],
            COUNT,
            steps=_WAITING,
            custom={"thresholdsStyle": {"mode": "line"}},
        ),
        time_series(
            "Time since the last delivery, by receiver",
            "A long time is normal without events. With undelivered events, the receiver is unreachable.",
            [Query("time() - headroom_last_delivery_timestamp_seconds", "{{receiver}}")],
            SECONDS,
        ),
    ]


def _quarantine() -> list[Panel]:
    """Messages of the ticks topic that were rejected."""
    return [
        time_series(
            "Quarantined messages",
            "Rejected messages of the ticks topic within retention. `silver/quarantine` has the reasons.",
            [Query("headroom_quarantined_messages", "{{instance}}")],
            COUNT,
        ),
    ]
