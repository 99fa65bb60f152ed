"""Expressions, legends and panels that several dashboards share."""

from __future__ import annotations

from collections.abc import Sequence

from grafana.panels import GREEN, RED, SECONDS, Json, Panel, Query, dashboard, stat, variable

# Label selectors of the clusters and brokers that are chosen at the top of a dashboard.
CLUSTERS = 'cluster=~"$cluster"'
BROKERS = f'{CLUSTERS},broker=~"$broker"'
# Remaining bytes add up to the same by leader and by destination. Destinations show where replicas are copied to.
DESTINATIONS = f'{CLUSTERS},role="follower"'
LEADERS = f'{CLUSTERS},role="leader"'
BROKER_LEGEND = "{{cluster}}: broker {{broker}}"
BROKER_ROLE_LEGEND = "{{cluster}}: broker {{broker}} as {{role}}"
PARTITION_LEGEND = "{{cluster}}: {{topic}}-{{partition}}"

CLUSTER_VARIABLE = variable("cluster", "Cluster", "label_values(headroom_alert_events_total, cluster)")
BROKER_VARIABLE = variable("broker", "Broker", f"label_values(headroom_verdict{{{CLUSTERS}}}, broker)")
FIRED = Query(
    "sum by (cluster, kind) "
    f'(increase(headroom_alert_events_total{{{CLUSTERS},state="firing"}}[$__rate_interval])) > 0',
    "{{cluster}}: {{kind}}",
)

BAD_FROM_ONE = ((GREEN, None), (RED, 1))
GOOD_ABOVE_ZERO = ((RED, None), (GREEN, 1))

TOO_LOW = "losing|starved"


# The number of a time that never comes, and its text.
NEVER = {-1: ("never", RED)}


def eta_or_never(labels: str, selector: str, unknown: str = "") -> str:
    """Return the expression of the longest ETA, or -1 where a throttle is too low, so that it never comes.

    Args:
        labels: labels that stay.
        selector: selector of the brokers.
        unknown: condition on the ETA.
    """
    never = f'max by ({labels}) (headroom_verdict{{{selector},verdict=~"{TOO_LOW}"}})'
    return f"(max by ({labels}) (headroom_eta_seconds{{{selector}}}){unknown}) or (-1 * {never})"


def _longest_eta() -> str:
    """Return the expression of a cluster's longest ETA; no series if one is unknown and none of the others is never."""
    unknown = f' unless on (cluster) headroom_verdict{{{CLUSTERS},verdict=~"{TOO_LOW}|no_data"}}'
    return eta_or_never("cluster", CLUSTERS, unknown)


def finish_stat(**more: int) -> Panel:
    """Return the panel of each cluster's expected finish; ``more``: its width, if not the usual one."""
    return stat(
        "Finished in",
        "Longest time until all moving replicas are in sync, at the throttles in force. Never: a throttle is too low. "
        "None: nothing moves, or a verdict is unknown.",
        Query(_longest_eta()),
        SECONDS,
        values=NEVER,
        empty="none",
        **more,
    )


def headroom_dashboard(
    uid: str, title: str, about: str, rows: Sequence[Sequence[Panel]], variables: Sequence[Json] = ()
) -> Json:
    """Return a dashboard with the variable for clusters and with an annotation for every alert that fires.

    Args:
        uid: id in links.
        title: title.
        about: question that the dashboard answers.
        rows: panels, from left to right and from top to bottom.
        variables: variables in addition to the one for clusters.
    """
    written = f"{about} Written by scripts/dashboards.py."
    return dashboard(uid, title, written, rows, [CLUSTER_VARIABLE, *variables], FIRED)
