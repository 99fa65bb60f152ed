"""Dashboard of throttles compared with their required rates."""

from __future__ import annotations

from grafana.panels import (
    BLUE,
    BYTES,
    BYTES_PER_S,
    COUNT,
    GREEN,
    GREY,
    ORANGE,
    PURPLE,
    RED,
    SECONDS,
    YELLOW,
    Json,
    Panel,
    Query,
    stat,
    state_timeline,
    table,
    time_series,
)
from grafana.queries import (
    BAD_FROM_ONE,
    BROKER_LEGEND,
    BROKER_ROLE_LEGEND,
    BROKER_VARIABLE,
    BROKERS,
    GOOD_ABOVE_ZERO,
    NEVER,
    TOO_LOW,
    eta_or_never,
    finish_stat,
    headroom_dashboard,
)

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
_ROLE = "cluster, broker, role"
_COLUMNS = {
    "throttle": ("headroom_throttle_bytes_per_second", BYTES_PER_S),
    "required": ("headroom_required_bytes_per_second", BYTES_PER_S),
    "in-sync use": ("headroom_in_sync_bytes_per_second", BYTES_PER_S),
    "headroom": ("headroom_throttle_headroom_bytes_per_second", BYTES_PER_S),
    "left to copy": ("headroom_remaining_bytes", BYTES),
}


def throttle() -> Json:
    """Return the dashboard of throttles compared with their required rates."""
    rows = [_summary(), _table(), _verdicts(), _throttles(), _headroom()]
    about = "Is each throttle above its required rate, by how much, and when does the move finish?"
    return headroom_dashboard("headroom-throttle", "Headroom: throttle headroom", about, rows, [BROKER_VARIABLE])


def _summary() -> list[Panel]:
    """Least headroom, throttles that are too low, and expected finish of each cluster."""
    return [
        stat(
            "Least headroom",
            "Smallest difference of throttle and required rate, over brokers and roles that take part in moves. "
            "Red: that move will not end.",
            Query(
                f"min by (cluster, role) (headroom_throttle_headroom_bytes_per_second{{{BROKERS}}} "
                f'and ignoring (verdict) headroom_verdict{{{BROKERS},verdict!="idle"}})',
                "{{cluster}}: as {{role}}",
            ),
            BYTES_PER_S,
            steps=GOOD_ABOVE_ZERO,
            empty="no throttle at work",
            width=8,
        ),
        stat(
            "Throttles that are too low",
            "Brokers and roles that are losing or starved.",
            Query(f'sum by (cluster) (headroom_verdict{{{BROKERS},verdict=~"{TOO_LOW}"}})'),
            COUNT,
            steps=BAD_FROM_ONE,
            empty="none",
            width=8,
        ),
        finish_stat(width=8),
    ]


def _table() -> list[Panel]:
    """All figures of each broker and role."""
    return [
        table(
            "Now, by broker and role",
            "As leader a broker sends, as follower it receives. An empty field: none, or unknown.",
            {
                **{
                    name: (f"sum by ({_ROLE}) ({metric}{{{BROKERS}}})", unit)
                    for name, (metric, unit) in _COLUMNS.items()
                },
                "finished in": (eta_or_never(_ROLE, BROKERS), SECONDS),
            },
            values=NEVER,
        )
    ]


def _verdicts() -> list[Panel]:
    """Verdict of each broker and role over time."""
    return [
        state_timeline(
            "Verdicts",
            "idle: no replica is out of sync. catching_up: replicas get in sync. slow: they do, but only by "
            "responses that exceed the quota. losing: they fall further behind. starved: they get nothing. "
            "unthrottled: no rate or list limits them. no_data: an input is unknown.",
            Query(_verdict_numbers(), BROKER_ROLE_LEGEND),
            dict(enumerate(_VERDICTS.items())),
            width=24,
        )
    ]


def _throttles() -> list[Panel]:
    """Throttles compared with their two thresholds."""
    return [
        _throttle_panel("leader", "Leaders: throttle and required rate", "Throttle of each broker as leader"),
        _throttle_panel("follower", "Destinations: throttle and required rate", "Throttle of each destination"),
    ]


def _headroom() -> list[Panel]:
    """Headroom and expected finish per broker and role."""
    return [
        time_series(
            "Headroom",
            "Throttle minus required rate. At or below zero the move of that broker will not end.",
            [Query(f"headroom_throttle_headroom_bytes_per_second{{{BROKERS}}}", BROKER_ROLE_LEGEND)],
            BYTES_PER_S,
            steps=GOOD_ABOVE_ZERO,
            custom={"thresholdsStyle": {"mode": "line+area"}},
        ),
        time_series(
            "Finished in, by broker and role",
            "Time until the moving replicas are in sync, at the throttle in force. A gap: nothing moves, never, or "
            "unknown.",
            [Query(f"headroom_eta_seconds{{{BROKERS}}}", BROKER_ROLE_LEGEND)],
            SECONDS,
        ),
    ]


def _throttle_panel(role: str, title: str, description: str) -> Panel:
    of = f'{BROKERS},role="{role}"'
    queries = [
        Query(f"headroom_throttle_bytes_per_second{{{of}}}", f"{BROKER_LEGEND}, throttle"),
        Query(f"headroom_required_bytes_per_second{{{of}}}", f"{BROKER_LEGEND}, required"),
        Query(f"headroom_in_sync_bytes_per_second{{{of}}}", f"{BROKER_LEGEND}, in-sync use"),
    ]
    reading = (
        f"{description}, with its two thresholds. Below in-sync use, new replicas get nothing. Between the two they "
        "fall further behind. Above required they catch up."
    )
    return time_series(title, reading, queries, BYTES_PER_S)


def _verdict_numbers() -> str:
    """Return an expression with a number per verdict: Grafana colours values, but a verdict is a label."""
    each = (f'headroom_verdict{{{BROKERS},verdict="{name}"}} * {number}' for number, name in enumerate(_VERDICTS))
    return f"sum without (verdict) ({' or '.join(each)})"
