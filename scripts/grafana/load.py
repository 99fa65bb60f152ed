"""Panels of the loads of brokers in their bands."""

from __future__ import annotations

from grafana.panels import (
    BYTES,
    BYTES_PER_S,
    COUNT,
    GREEN,
    ORANGE,
    RED,
    SECONDS,
    SHARE,
    Panel,
    Query,
    stat,
    time_series,
)
from grafana.queries import BAD_FROM_ONE, BROKER_LEGEND, CLUSTERS

_LOADS = f'{CLUSTERS},resource=~"network_in|network_out|requests|disk"'
_SCORES = ((RED, None), (ORANGE, 0.5), (GREEN, 0.99))


def load_summary() -> list[Panel]:
    """Number of brokers that are out of band, above a limit or slow."""
    out = f"count by (cluster, broker) (headroom_broker_load_in_band{{{_LOADS}}} == 0)"
    over = f"headroom_broker_load{{{CLUSTERS}}} > headroom_broker_load_limit{{{CLUSTERS}}}"
    return [
        stat(
            "Brokers out of band",
            "Brokers with a load (network, requests or disk) that is more than 10 % from their share.",
            Query(f"count by (cluster) ({out})"),
            COUNT,
            steps=BAD_FROM_ONE,
            empty="none",
        ),
        stat(
            "Worst score of a load",
            "1: in band. The further a load is from its band, the lower.",
            Query(f"min by (cluster) (headroom_broker_load_score{{{_LOADS}}})"),
            SHARE,
            steps=_SCORES,
            empty="unknown",
        ),
        stat(
            "Brokers above a limit",
            "Brokers that use more than 80 % of a known capacity.",
            Query(f"count by (cluster) (count by (cluster, broker) ({over}))"),
            COUNT,
            steps=BAD_FROM_ONE,
            empty="none",
        ),
        stat(
            "Slow brokers",
            "Brokers whose log flushes have been slow for five minutes.",
            Query(f"count by (cluster) (headroom_broker_slow_rounds{{{CLUSTERS}}} >= 5)"),
            COUNT,
            steps=BAD_FROM_ONE,
            empty="none",
        ),
    ]


def loads_in_bands() -> list[Panel]:
    """What brokers receive and send, with the bands."""
    return [
        _in_band("network_in", "Received, with the band", "What each broker receives, without copies of moves."),
        _in_band("network_out", "Sent, with the band", "What each broker sends, without copies of moves."),
    ]


def proposal_summary() -> list[Panel]:
    """What the last proposal of the watch gains and costs."""
    return [
        stat(
            "Proposal: gain",
            "Share of the load outside of bands that the actions of the last proposal remove.",
            Query(f"headroom_balance_proposal_gain_ratio{{{CLUSTERS}}}"),
            SHARE,
            empty="no proposal",
        ),
        stat(
            "Proposal: bytes to copy",
            "Bytes that these actions copy. Elections copy nothing.",
            Query(f"headroom_balance_proposal_copied_bytes{{{CLUSTERS}}}"),
            BYTES,
            empty="no proposal",
        ),
        stat(
            "Proposal: time",
            "Time of the batches one after another, at the throttle of the proposal.",
            Query(f"headroom_balance_proposal_duration_seconds{{{CLUSTERS}}}"),
            SECONDS,
            empty="no proposal",
        ),
        stat(
            "Proposal: actions",
            "Elections, moves and swaps, in the order of their gain per byte.",
            Query(f"headroom_balance_proposal_actions{{{CLUSTERS}}}"),
            COUNT,
            empty="no proposal",
        ),
    ]


def promised() -> list[Panel]:
    """What brokers receive and send beside what the last proposal promised."""
    return [
        _promised("network_in", "Received, and promised", "What each broker receives, and after the last proposal."),
        _promised("network_out", "Sent, and promised", "What each broker sends, and after the last proposal."),
    ]


def _promised(resource: str, title: str, description: str) -> Panel:
    chosen = f'{{{CLUSTERS},resource="{resource}"}}'
    queries = [
        Query(f"headroom_broker_load{chosen}", BROKER_LEGEND),
        Query(f"headroom_broker_load_promised{chosen}", f"{BROKER_LEGEND}, promised"),
    ]
    return time_series(title, description, queries, BYTES_PER_S)


def _in_band(resource: str, title: str, description: str) -> Panel:
    chosen = f'{{{CLUSTERS},resource="{resource}"}}'
    queries = [
        Query(f"headroom_broker_load{chosen}", BROKER_LEGEND),
        Query(f"avg by (cluster) (headroom_broker_load_mean{chosen})", "{{cluster}}: mean"),
        # If capacities differ, so do the bands of the brokers.
        Query(f"min by (cluster) (headroom_broker_load_band_lower{chosen})", "{{cluster}}: lower edge"),
        Query(f"max by (cluster) (headroom_broker_load_band_upper{chosen})", "{{cluster}}: upper edge"),
    ]
    return time_series(title, description, queries, BYTES_PER_S)
