"""What a throttle lets through in the long run, and when what is behind it is in sync, as column expressions.

They are those of ``planning.finish.long_run``; a property test holds the two equal. All of them are of rows of
``gold/throttle_headroom``.
"""

from __future__ import annotations

from planning.finish.limits import DEFAULT_FETCH, DEFAULT_WINDOW
from planning.finish.long_run import YIELD_RATIOS

_LEAST, _USUAL, _MOST = YIELD_RATIOS
_SAMPLE_S = f"coalesce(quota_window_size_s, {DEFAULT_WINDOW.sample_s}D)"
_SAMPLES = f"coalesce(quota_window_num, {DEFAULT_WINDOW.samples})"
_MEAN_S = f"(({_SAMPLES} + 0.5D) * {_SAMPLE_S})"
_LENGTH_S = f"({_SAMPLES} * {_SAMPLE_S})"
# A broker that measures less than this of its throttle is limited by something else.
_BINDS_RATIO = 0.8
# What is seen to be copied over one window goes on within so much.
SEEN_RATIO = 0.15

# Brokers of a cluster are taken to have the same limits of a fetch: of a leader they are those of its followers.
_RESPONSE_BYTES = f"""least(
    least(coalesce(num_replica_fetchers, {DEFAULT_FETCH.fetchers}), p.replicas)
        * CAST(coalesce(replica_fetch_response_max_bytes, {DEFAULT_FETCH.response_bytes}) AS DOUBLE),
    p.replicas * CAST(coalesce(replica_fetch_max_bytes, {DEFAULT_FETCH.partition_bytes}) AS DOUBLE))"""
_RESPONSES = f"transform(peers, p -> {_RESPONSE_BYTES})"

# What one check of the quota lets through; 0: nothing copies.
BURST_BYTES = f"""CASE WHEN role = 'leader' THEN coalesce(array_max({_RESPONSES}), 0D)
    ELSE aggregate({_RESPONSES}, 0D, (sum, bytes) -> sum + bytes) END"""


def _left(in_sync: str) -> str:
    return f"(throttle_bytes_per_s - {in_sync})"


def copied(in_sync: str) -> str:
    """Return new bytes per second for out-of-sync replicas, as expected; null where bursts are not known.

    Args:
        in_sync: column with the traffic of in-sync followers, which the throttle exceeds.
    """
    responses = f"(floor({_left(in_sync)} * {_MEAN_S} / burst_bytes) + 1)"
    return f"CASE WHEN burst_bytes > 0 THEN {_USUAL}D * ({responses} * burst_bytes / {_MEAN_S}) END"


_MIDDLE = f"coalesce({copied('in_sync_bytes_per_s')}, {_USUAL}D * {_left('in_sync_bytes_per_s')})"
_LOW = f"({_LEAST}D * greatest({_left('in_sync_bytes_per_s')}, burst_bytes / ({_LENGTH_S} + {_SAMPLE_S})))"
_HIGH = f"({_MOST}D * ({_left('in_sync_bytes_per_s')} + burst_bytes / {_LENGTH_S}))"
_WRITTEN = "greatest(required_bytes_per_s - in_sync_bytes_per_s, 0D)"
_ROOM = f"(throttle_bytes_per_s - coalesce(quota_bytes_per_s, throttle_bytes_per_s)) * {_MEAN_S}"
_AT_ONCE = f"least(greatest({_ROOM}, 0D), CAST(remaining_bytes AS DOUBLE))"


def _after_s(copied_bytes_per_s: str, half_windows: int) -> str:
    """Return seconds until what remains is copied; see ``planning.finish.long_run.catch_up``."""
    burst = f"IF({_AT_ONCE} < remaining_bytes, {half_windows / 2}D, 0D)" if half_windows else "0D"
    full = f"least(1D, {_AT_ONCE} / ({copied_bytes_per_s} * {_MEAN_S}))"
    return f"""CASE
        WHEN remaining_bytes <= 0 THEN 0D
        WHEN {copied_bytes_per_s} > {_WRITTEN} THEN greatest(0D,
            (remaining_bytes - {_AT_ONCE}) / ({copied_bytes_per_s} - {_WRITTEN}) + ({full} / 2 + {burst}) * {_MEAN_S})
        END"""


def _eta_s(copied_bytes_per_s: str, half_windows: int, seen_ratio: float) -> str:
    """Return the time at a throttle that binds; where it does not, only what is seen to be copied can tell."""
    return f"""CASE
        WHEN moving_replicas = 0 OR remaining_bytes IS NULL THEN NULL
        WHEN verdict = 'slow' OR verdict = 'catching_up' AND (quota_bytes_per_s IS NULL
            OR quota_bytes_per_s >= {_BINDS_RATIO} * throttle_bytes_per_s OR coalesce(catch_up_bytes_per_s, 0) <= 0)
            THEN {_after_s(copied_bytes_per_s, half_windows)}
        WHEN verdict IN ('catching_up', 'unthrottled') AND catch_up_bytes_per_s > 0
            THEN {seen_ratio}D * remaining_bytes / catch_up_bytes_per_s
        END"""


ETAS = {
    "eta_low_s": _eta_s(_HIGH, -1, 1 - SEEN_RATIO),
    "eta_s": _eta_s(_MIDDLE, 0, 1.0),
    "eta_high_s": _eta_s(_LOW, 1, 1 + SEEN_RATIO),
}
