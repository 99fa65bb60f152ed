"""What the dashboards of docker/grafana show. Writes them anew: python scripts/dashboards.py."""

from __future__ import annotations

import json
from collections.abc import Sequence
from pathlib import Path

from grafana import (
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
    bars,
    dashboard,
    lines,
    stat,
    states,
    table,
    variable,
)

FOLDER = Path(__file__).resolve().parent.parent / "docker" / "grafana" / "dashboards"

_IN = 'cluster=~"$cluster"'
_OF = f'{_IN},broker=~"$broker"'
# What is left is the same by leaders and by destinations; a destination tells where a move ends.
_TO = f'{_IN},role="follower"'
_FROM = f'{_IN},role="leader"'
_BROKER = "{{cluster}}: broker {{broker}}"
_SIDE = "{{cluster}}: broker {{broker}} as {{role}}"
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
    # Last, so that the others keep their numbers.
    "slow": YELLOW,
}
_TROUBLE = "losing|starved"


def _verdict_numbers() -> str:
    """Return an expression that gives each verdict its number: Grafana colours numbers, and a verdict is a label."""
    each = (f'headroom_verdict{{{_OF},verdict="{name}"}} * {number}' for number, name in enumerate(_VERDICTS))
    return f"sum without (verdict) ({' or '.join(each)})"


def _longest() -> str:
    """Return the expression of the longest time to the end, where none of the cluster's sides will never end."""
    return (
        f"max by (cluster) (headroom_eta_seconds{{{_IN}}}) "
        f'unless on (cluster) headroom_verdict{{{_IN},verdict=~"{_TROUBLE}|no_data"}}'
    )


def _skew(metric: str) -> str:
    """Return how many times the mean of a cluster's brokers the greatest has; where all have nothing, nothing."""
    return f"max by (cluster) ({metric}) / (avg by (cluster) ({metric}) > 0)"


def _finish(**more: int) -> Panel:
    return stat(
        "Finished in",
        "Longest time until the replicas that move are in sync, at the throttles in force. None: nothing moves, or a "
        "broker's move will never end or is not known; its verdict says which.",
        Query(_longest()),
        SECONDS,
        empty="none",
        **more,
    )


def move() -> Json:
    """Return the dashboard of the lag of replicas that move."""
    closing = f"-deriv(headroom_remaining_bytes{{{_TO}}}[$__rate_interval])"
    rows = [
        [
            stat(
                "Left to copy",
                "What the replicas that move still lack of their leaders' logs, all destinations together.",
                Query(f"sum by (cluster) (headroom_remaining_bytes{{{_TO}}})"),
                BYTES,
                empty="nothing moves",
            ),
            stat(
                "Lag closes by",
                "How fast what is left becomes less, while something moves. At or below zero the move does not get on.",
                Query(
                    f"sum by (cluster) ({closing}) "
                    f"and on (cluster) sum by (cluster) (headroom_moving_replicas{{{_TO}}}) > 0"
                ),
                BYTES_PER_S,
                steps=_GOOD_ABOVE_ZERO,
                empty="nothing moves",
            ),
            _finish(),
            stat(
                "Stalled replicas",
                "Replicas being added that are seen to copy nothing. Look at the disk and the log of the destination.",
                Query(f"sum by (cluster) (headroom_stalled_replicas{{{_TO}}})"),
                COUNT,
                steps=_BAD_FROM_ONE,
                empty="unknown",
            ),
        ],
        [
            lines(
                "Left to copy, by destination",
                "A line that rises: its replicas fall further behind, the move will not end. A gap: not known.",
                [Query(f"headroom_remaining_bytes{{{_TO}}}", _BROKER)],
                BYTES,
            ),
            lines(
                "Lag closes by, by destination",
                "How fast what is left becomes less. Below zero it grows.",
                [Query(closing, _BROKER)],
                BYTES_PER_S,
                steps=_GOOD_ABOVE_ZERO,
                custom={"thresholdsStyle": {"mode": "line"}},
            ),
        ],
        [
            lines(
                "Under-replicated as planned, by leader",
                "Partitions of which none but replicas being added are out of sync. A move brings it, and ends it.",
                [Query(f"headroom_planned_under_replicated_partitions{{{_IN}}}", _BROKER)],
                COUNT,
            ),
            lines(
                "Lost replicas, by broker",
                "Replicas that no move brings, and that are out of the ISR: the broker is down, or has fallen behind.",
                [Query(f"headroom_lost_replicas{{{_IN}}}", _BROKER)],
                COUNT,
            ),
        ],
        [
            lines(
                "Partitions with most left to copy",
                "The twenty that have most left, of those that have series (metrics.top_n).",
                [Query(f"topk(20, headroom_partition_remaining_bytes{{{_IN}}})", _PARTITION)],
                BYTES,
            ),
            lines(
                "Write rate of moving partitions",
                "What producers write to the twenty busiest partitions that move: each follower needs as much.",
                [Query(f"topk(20, headroom_partition_write_bytes_per_second{{{_IN}}})", _PARTITION)],
                BYTES_PER_S,
            ),
        ],
        [
            lines(
                "Replicas that move, by destination",
                "Out-of-sync replicas that each broker receives.",
                [Query(f"headroom_moving_replicas{{{_TO}}}", _BROKER)],
                COUNT,
            ),
            lines(
                "Stalled and waiting replicas, by destination",
                "Replicas being added that are seen to copy nothing; and those that wait while others have their turn.",
                [
                    Query(f"headroom_stalled_replicas{{{_TO}}}", f"stalled, {_BROKER}"),
                    Query(f"headroom_waiting_replicas{{{_TO}}}", f"waiting, {_BROKER}"),
                ],
                COUNT,
                steps=_BAD_FROM_ONE,
                custom={"thresholdsStyle": {"mode": "line"}},
            ),
        ],
    ]
    about = "How far is the move, does it get on, and which partitions hold it up?"
    return _dashboard("headroom-move", "Headroom: replication lag of the move", about, rows)


def throttle() -> Json:
    """Return the dashboard of throttles against what they must carry."""
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
                "Throttle minus required, of the broker and role that has least, where something moves. Red: that move "
                "will not end.",
                Query(
                    f"min by (cluster, role) (headroom_throttle_headroom_bytes_per_second{{{_OF}}} "
                    f'and ignoring (verdict) headroom_verdict{{{_OF},verdict!="idle"}})',
                    "{{cluster}}: as {{role}}",
                ),
                BYTES_PER_S,
                steps=_GOOD_ABOVE_ZERO,
                empty="no throttle at work",
                width=8,
            ),
            stat(
                "Throttles that are too small",
                "Brokers and roles that are losing or starved.",
                Query(f'sum by (cluster) (headroom_verdict{{{_OF},verdict=~"{_TROUBLE}"}})'),
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
                "As leader a broker sends, as follower it receives. An empty field: none, or not known.",
                {
                    name: (f"sum by (cluster, broker, role) ({metric}{{{_OF}}})", unit)
                    for name, (metric, unit) in columns.items()
                },
            )
        ],
        [
            states(
                "Verdicts",
                "idle: nothing is out of sync. catching_up: it gets there. slow: it does by responses that no quota "
                "cuts. losing: it falls further behind. starved: it gets nothing. unthrottled: no rate or list limits "
                "it. no_data: something is not known.",
                Query(_verdict_numbers(), _SIDE),
                dict(enumerate(_VERDICTS.items())),
                width=24,
            )
        ],
        [
            _marks("leader", "Leaders: throttle and what it must carry", "What each broker may send as leader"),
            _marks("follower", "Destinations: throttle and what it must carry", "What each broker may receive"),
        ],
        [
            lines(
                "Headroom",
                "Throttle minus required. At or below zero the move of that broker will not end.",
                [Query(f"headroom_throttle_headroom_bytes_per_second{{{_OF}}}", _SIDE)],
                BYTES_PER_S,
                steps=_GOOD_ABOVE_ZERO,
                custom={"thresholdsStyle": {"mode": "line+area"}},
            ),
            lines(
                "Finished in, by broker and role",
                "Time until the replicas that move are in sync, at the throttle in force. A gap: nothing moves, never, "
                "or not known.",
                [Query(f"headroom_eta_seconds{{{_OF}}}", _SIDE)],
                SECONDS,
            ),
        ],
    ]
    about = "Is each throttle above what it must carry, by how much, and when is the move done?"
    return _dashboard("headroom-throttle", "Headroom: throttle headroom", about, rows, [_BROKERS])


def _marks(role: str, title: str, description: str) -> Panel:
    of = f'{_OF},role="{role}"'
    queries = [
        Query(f"headroom_throttle_bytes_per_second{{{of}}}", f"{_BROKER}, throttle"),
        Query(f"headroom_required_bytes_per_second{{{of}}}", f"{_BROKER}, required"),
        Query(f"headroom_in_sync_bytes_per_second{{{of}}}", f"{_BROKER}, in-sync use"),
    ]
    reading = (
        f"{description}, against the two marks: below in-sync use new replicas get nothing, up to required they "
        "fall further behind, above it they catch up."
    )
    return lines(title, reading, queries, BYTES_PER_S)


def _of_preferred(partitions: str) -> str:
    """Return which share of the partitions that prefer a broker these are; a broker preferred for nothing has none."""
    return f"headroom_leader_{partitions}_partitions{{{_IN}}} / (headroom_leader_preferred_partitions{{{_IN}}} > 0)"


def _leaders() -> list[list[Panel]]:
    """Return the panels of who leads what, against who is preferred to."""
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
    over = f"({_of_preferred('electable')} > headroom_leader_imbalance_threshold_ratio{{{_IN}}})"
    return [
        [
            stat(
                "Brokers out of balance",
                "An election would give back to each more of the partitions that prefer it than the threshold allows.",
                Query(f"count by (cluster) ({over})"),
                COUNT,
                steps=_BAD_FROM_ONE,
                empty="none",
            ),
            stat(
                "Electable now",
                "Partitions that another than their preferred broker leads, and that an election would put right.",
                Query(f"sum by (cluster) (headroom_leader_electable_partitions{{{_IN}}})"),
                COUNT,
                empty="unknown",
            ),
            stat(
                "Wait for the move",
                "Partitions whose preferred leader is that of the move's end: planned, and no imbalance.",
                Query(f"sum by (cluster) (headroom_leader_waiting_partitions{{{_IN}}})"),
                COUNT,
                empty="unknown",
            ),
            stat(
                "Preferred leader unavailable",
                "Partitions whose preferred broker is down, or out of sync.",
                Query(f"sum by (cluster) (headroom_leader_unavailable_partitions{{{_IN}}})"),
                COUNT,
                steps=_BAD_FROM_ONE,
                empty="unknown",
            ),
        ],
        [
            table(
                "Leaders now, by broker",
                "What each broker leads, and would lead if every preferred leader did. An empty field: not known.",
                {
                    name: (f"sum by (cluster, broker) ({metric}{{{_IN}}})", unit)
                    for name, (metric, unit) in columns.items()
                },
            )
        ],
        [
            lines(
                "Share that an election would give back",
                "Of the partitions that prefer each broker. Above its threshold, for long enough, it is an alert.",
                [
                    Query(_of_preferred("electable"), _BROKER),
                    Query(f"max by (cluster) ({columns['threshold'][0]}{{{_IN}}})", "{{cluster}}: threshold"),
                ],
                SHARE,
            ),
            lines(
                "Partitions that each broker leads",
                "When leadership switches, one line falls and another rises by as much.",
                [Query(f"headroom_leader_partitions{{{_IN}}}", _BROKER)],
                COUNT,
            ),
        ],
        [
            _load("write", "Written to leaders", "What producers write to each broker"),
            _load("read", "Read of leaders", "What consumers read of each broker"),
        ],
    ]


def _load(what: str, title: str, description: str) -> Panel:
    queries = [
        Query(f"headroom_leader_{what}_bytes_per_second{{{_IN}}}", _BROKER),
        Query(f"headroom_leader_preferred_{what}_bytes_per_second{{{_IN}}}", f"{_BROKER}, preferred"),
    ]
    return lines(title, f"{description}, and what would be if every preferred leader led.", queries, BYTES_PER_S)


def balance() -> Json:
    """Return the dashboard of how leaders, and the work of a move, lie on brokers."""
    uneven = ((GREEN, None), (ORANGE, 1.5), (RED, 2))
    required = "headroom_required_bytes_per_second"
    rows = [
        *_leaders(),
        [
            stat(
                "Busiest leader, times the mean",
                "What the broker that must send most must send, over the mean of all. 1: all alike; a leader switch "
                "makes it jump.",
                Query(_skew(f"{required}{{{_FROM}}}")),
                RATIO,
                steps=uneven,
                empty="nothing counts",
                width=12,
            ),
            stat(
                "Busiest destination, times the mean",
                "The same of what brokers must receive.",
                Query(_skew(f"{required}{{{_TO}}}")),
                RATIO,
                steps=uneven,
                empty="nothing counts",
                width=12,
            ),
        ],
        [
            bars(
                "Leaders must send, now",
                "Traffic of all followers that counts against each leader's throttle.",
                Query(f"{required}{{{_FROM}}}", _BROKER),
                BYTES_PER_S,
            ),
            bars(
                "Destinations must receive, now",
                "Traffic that counts against each destination's throttle.",
                Query(f"{required}{{{_TO}}}", _BROKER),
                BYTES_PER_S,
            ),
        ],
        [
            lines(
                "Leaders must send",
                "When leadership switches, one line falls and another rises by as much.",
                [Query(f"{required}{{{_FROM}}}", _BROKER)],
                BYTES_PER_S,
            ),
            lines(
                "Leaders send to in-sync followers",
                "What is used of each throttle before a new replica gets anything.",
                [Query(f"headroom_in_sync_bytes_per_second{{{_FROM}}}", _BROKER)],
                BYTES_PER_S,
            ),
        ],
        [
            lines(
                "Busiest leader, times the mean, over time",
                "1: all alike.",
                [Query(_skew(f"{required}{{{_FROM}}}"))],
                RATIO,
                steps=uneven,
                custom={"thresholdsStyle": {"mode": "line"}},
            ),
            lines(
                "Moving replicas, by leader",
                "Out-of-sync replicas that each leader serves.",
                [Query(f"headroom_moving_replicas{{{_FROM}}}", _BROKER)],
                COUNT,
            ),
        ],
        [
            lines(
                "Left to send, by leader",
                "What out-of-sync replicas still have to copy from each leader.",
                [Query(f"headroom_remaining_bytes{{{_FROM}}}", _BROKER)],
                BYTES,
            ),
            lines(
                "Written to moving partitions, by topic",
                "Of the partitions that have series (metrics.top_n): which topics make a leader busy.",
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
        "Does each broker lead what it is preferred to, and how evenly does the replication traffic of the move lie on "
        "leaders and destinations? Of that traffic only partitions in throttled replica lists count."
    )
    return _dashboard("headroom-balance", "Headroom: leader balance", about, rows)


def health() -> Json:
    """Return the dashboard of Headroom itself."""
    interval = "[$__rate_interval]"
    decisions = f"sum by (cluster, le) (rate(headroom_decision_seconds_bucket{{{_IN}}}{interval}))"
    collections = f"sum by (cluster, le) (rate(headroom_collect_seconds_bucket{{{_IN}}}{interval}))"
    batches = f"sum by (le) (rate(headroom_batch_seconds_bucket{interval}))"
    # As /health and the rules have it, of an interval of 5 s.
    age = ((GREEN, None), (ORANGE, 15), (RED, 30))
    waiting = ((GREEN, None), (ORANGE, 1), (RED, 10))
    rows = [
        [
            stat(
                "Answers",
                "Whether the last scrape of Headroom brought an answer.",
                Query('up{job="headroom"}', "{{instance}}"),
                COUNT,
                steps=((RED, None), (GREEN, 1)),
                values={0: ("down", RED), 1: ("up", GREEN)},
                empty="no target",
            ),
            stat(
                "Age of the last tick",
                "From 30 s on (metrics.stale_after_s) the numbers of that cluster are gone, and /health is red.",
                Query(f"headroom_tick_age_seconds{{{_IN}}}"),
                SECONDS,
                steps=age,
                empty="no tick yet",
            ),
            stat(
                "Verdicts unknown",
                "Brokers and roles whose verdict is no_data. `headroom check` names what is out of reach.",
                Query(f'sum by (cluster) (headroom_verdict{{{_IN},verdict="no_data"}})'),
                COUNT,
                steps=_BAD_FROM_ONE,
                empty="none",
            ),
            stat(
                "Version",
                "Of Headroom that runs.",
                Query("headroom_build_info", "{{version}}"),
                COUNT,
                options={"textMode": "name"},
            ),
        ],
        [
            lines(
                "Age of the last tick, by two clocks",
                "By Headroom's clock, and by Prometheus' of the tick's own time: where they differ, clocks do.",
                [
                    Query(f"headroom_tick_age_seconds{{{_IN}}}"),
                    Query(f"time() - headroom_tick_timestamp_seconds{{{_IN}}}", "{{cluster}}, by Prometheus' clock"),
                ],
                SECONDS,
                steps=age,
                custom={"thresholdsStyle": {"mode": "line"}},
            ),
            lines(
                "From a tick to its verdict",
                "Half and nineteen in twenty of the ticks were told within so long, the collector's reading included.",
                [
                    Query(f"histogram_quantile(0.5, {decisions})", "{{cluster}}, half"),
                    Query(f"histogram_quantile(0.95, {decisions})", "{{cluster}}, 19 in 20"),
                ],
                SECONDS,
            ),
        ],
        [
            lines(
                "Work on a batch",
                "How long the alert path works on one micro-batch. Longer than the interval of ticks: it falls behind.",
                [
                    Query(f"histogram_quantile(0.5, {batches})", "half"),
                    Query(f"histogram_quantile(0.95, {batches})", "19 in 20"),
                ],
                SECONDS,
            ),
            lines(
                "Verdicts",
                "Of every tick one for each broker and role: a line that falls to nothing, ticks that stay away.",
                [Query(f"sum by (cluster) (rate(headroom_rows_total{{{_IN}}}{interval}))")],
                PER_S,
            ),
        ],
        [
            lines(
                "Brokers that did not answer",
                "In the last tick, and missed a second: what they know has no verdict. `headroom check` says why.",
                [
                    Query(f"headroom_unanswered_brokers{{{_IN}}}", "{{cluster}}, now"),
                    Query(f"rate(headroom_collector_errors_total{{{_IN}}}{interval})", "{{cluster}}, missed a second"),
                ],
                COUNT,
            ),
            lines(
                "Collecting a tick",
                "Half and nineteen in twenty of the ticks took so long to read and write; ticks left out a second.",
                [
                    Query(f"histogram_quantile(0.5, {collections})", "{{cluster}}, half"),
                    Query(f"histogram_quantile(0.95, {collections})", "{{cluster}}, 19 in 20"),
                    Query(f"rate(headroom_skipped_ticks_total{{{_IN}}}{interval})", "{{cluster}}, left out a second"),
                ],
                SECONDS,
            ),
        ],
        [
            lines(
                "Alerts that stand",
                "Of Headroom's own, by kind.",
                [
                    Query(
                        f"sum by (cluster, kind, severity, state) (headroom_alerts{{{_IN}}})",
                        "{{cluster}}: {{kind}}, {{severity}}, {{state}}",
                    )
                ],
                COUNT,
            ),
            lines(
                "Changes of alerts",
                "Events since the sample before: pending, firing, resolved.",
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
            lines(
                "Events that a receiver has not got",
                "`headroom alerts --undelivered` shows them with the receiver's last answer.",
                [Query("sum by (receiver) (headroom_undelivered_events)", "{{receiver}}")],
                COUNT,
                steps=waiting,
                custom={"thresholdsStyle": {"mode": "line"}},
            ),
            lines(
                "Since a receiver last got one",
                "Long is well where nothing has happened; beside events that wait, the receiver is away.",
                [Query("time() - headroom_last_delivery_timestamp_seconds", "{{receiver}}")],
                SECONDS,
            ),
        ],
        [
            lines(
                "Messages that were not believed",
                "Of the ticks topic, as far as they are kept. `silver/quarantine` has each with the reason.",
                [Query("headroom_quarantined_messages", "{{instance}}")],
                COUNT,
            ),
        ],
    ]
    about = "Does Headroom see, judge and tell in time?"
    return _dashboard("headroom-health", "Headroom: its own health", about, rows)


def _dashboard(uid: str, title: str, about: str, rows: list[list[Panel]], variables: Sequence[Json] = ()) -> Json:
    written = f"{about} Written by scripts/dashboards.py."
    return dashboard(uid, title, written, rows, [_CLUSTER, *variables], _FIRED)


def files() -> dict[Path, str]:
    """Return the text of every dashboard by its file."""
    every = (move(), throttle(), balance(), health())
    return {FOLDER / f"{made['uid']}.json": json.dumps(made, indent=2) + "\n" for made in every}


if __name__ == "__main__":
    FOLDER.mkdir(parents=True, exist_ok=True)
    for file, text in files().items():
        file.write_text(text, encoding="utf-8")
