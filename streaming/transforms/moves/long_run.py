"""Long-run copy rate behind a throttle, and expected finish of its copies, as SQL expressions.

The formulas are those of ``planning.quotas.long_run``; a property test compares the two. The expressions use columns of
``gold/throttle_headroom``.
"""

from __future__ import annotations

from headroom.planning.quotas.limits import DEFAULT_FETCH, DEFAULT_WINDOW
from headroom.planning.quotas.long_run import YIELD_RATIOS

# New bytes per byte that counts against the quota: lowest, usual, highest.
_LEAST, _USUAL, _MOST = YIELD_RATIOS
# Length of one sample of the quota, seconds, and number of samples; Kafka's defaults if they are not reported.
_SAMPLE_S = f"coalesce(quota_window_size_s, {DEFAULT_WINDOW.sample_s}D)"
_SAMPLES = f"coalesce(quota_window_num, {DEFAULT_WINDOW.samples})"
# Time that the quota's mean covers on average, seconds; then the least time that an amount counts.
_MEAN_S = f"(({_SAMPLES} + 0.5D) * {_SAMPLE_S})"
_LENGTH_S = f"({_SAMPLES} * {_SAMPLE_S})"
# If a broker measures less than this share of its throttle, something else limits the copies.
_BINDS_RATIO = 0.8
# Whether the throttle limits the copies: they then come in bursts, about one in a quota window.
BINDS = f"""verdict = 'slow' OR verdict = 'catching_up' AND (
    quota_bytes_per_s IS NULL OR quota_bytes_per_s >= {_BINDS_RATIO} * throttle_bytes_per_s)"""
# A copy rate that was measured over one rate window continues within this relative range.
MEASURED_RATIO = 0.15

# Bytes of a full response to a peer ``p``. The limits are settings of the fetching broker; all brokers of a cluster are
# assumed to have the same ones.
_RESPONSE_BYTES = f"""least(
    least(coalesce(num_replica_fetchers, {DEFAULT_FETCH.fetchers}), p.replicas)
        * CAST(coalesce(replica_fetch_response_max_bytes, {DEFAULT_FETCH.response_bytes}) AS DOUBLE),
    p.replicas * CAST(coalesce(replica_fetch_max_bytes, {DEFAULT_FETCH.partition_bytes}) AS DOUBLE))"""
_RESPONSES = f"transform(peers, p -> {_RESPONSE_BYTES})"

# Bytes that one check of the quota lets through; 0 if nothing copies. A leader checks after each response. Every
# fetcher of a destination checks by itself, so all of their responses may pass.
BURST_BYTES = f"""CASE WHEN role = 'leader' THEN coalesce(array_max({_RESPONSES}), 0D)
    ELSE aggregate({_RESPONSES}, 0D, (sum, bytes) -> sum + bytes) END"""


def _rest_of_throttle(in_sync: str) -> str:
    """Return the bytes per second that in-sync followers leave of the throttle, as an expression."""
    return f"(throttle_bytes_per_s - {in_sync})"


def copy_rate(in_sync: str) -> str:
    """Return the expected rate of new bytes for out-of-sync replicas, bytes per second; null if bursts are unknown.

    Args:
        in_sync: column with the traffic of in-sync followers, bytes per second. The throttle exceeds it.
    """
    # A quota cuts no response, so the room per window is rounded up to whole responses.
    responses = f"(floor({_rest_of_throttle(in_sync)} * {_MEAN_S} / burst_bytes) + 1)"
    return f"CASE WHEN burst_bytes > 0 THEN {_USUAL}D * ({responses} * burst_bytes / {_MEAN_S}) END"


# Expected, lowest and highest rate of new bytes for out-of-sync replicas, bytes per second. At least one response
# passes per window; at most one response more than there is room for.
_MIDDLE = f"coalesce({copy_rate('in_sync_bytes_per_s')}, {_USUAL}D * {_rest_of_throttle('in_sync_bytes_per_s')})"
_LOW = f"({_LEAST}D * greatest({_rest_of_throttle('in_sync_bytes_per_s')}, burst_bytes / ({_LENGTH_S} + {_SAMPLE_S})))"
_HIGH = f"({_MOST}D * ({_rest_of_throttle('in_sync_bytes_per_s')} + burst_bytes / {_LENGTH_S}))"
# Bytes per second that producers write to the out-of-sync replicas meanwhile.
_WRITTEN = "greatest(required_bytes_per_s - in_sync_bytes_per_s, 0D)"
# Bytes that pass at once, because the quota of the last window is not used up.
_ROOM = f"(throttle_bytes_per_s - coalesce(quota_bytes_per_s, throttle_bytes_per_s)) * {_MEAN_S}"
_AT_ONCE = f"least(greatest({_ROOM}, 0D), CAST(remaining_bytes AS DOUBLE))"


def _after_s(copied_bytes_per_s: str, half_windows: int) -> str:
    """Return the seconds until the remaining bytes are copied; see ``planning.quotas.long_run.catch_up``.

    Args:
        copied_bytes_per_s: rate of new bytes.
        half_windows: half quota windows by which the last burst comes later (negative: earlier) than on average.
    """
    burst = f"IF({_AT_ONCE} < remaining_bytes, {half_windows / 2}D, 0D)" if half_windows else "0D"
    full = f"least(1D, {_AT_ONCE} / ({copied_bytes_per_s} * {_MEAN_S}))"
    return f"""CASE
        WHEN remaining_bytes <= 0 THEN 0D
        WHEN {copied_bytes_per_s} > {_WRITTEN} THEN greatest(0D,
            (remaining_bytes - {_AT_ONCE}) / ({copied_bytes_per_s} - {_WRITTEN}) + ({full} / 2 + {burst}) * {_MEAN_S})
        END"""


def _eta_s(copied_bytes_per_s: str, half_windows: int, measured_ratio: float) -> str:
    """Return the seconds until the copies behind a throttle are done, as an expression; null if unknown.

    If the throttle binds, they come from the quota's rate. Otherwise they come from the measured copy rate. That rate
    says nothing while a throttle at the other end binds: a reading between two bursts has seen almost no copy.

    Args:
        copied_bytes_per_s: rate of new bytes at the throttle.
        half_windows: of ``_after_s``.
        measured_ratio: factor on the time at the measured copy rate.
    """
    return f"""CASE
        WHEN moving_replicas = 0 OR remaining_bytes IS NULL THEN NULL
        WHEN binds OR verdict = 'catching_up' AND coalesce(catch_up_bytes_per_s, 0) <= 0
            THEN {_after_s(copied_bytes_per_s, half_windows)}
        WHEN verdict IN ('catching_up', 'unthrottled') AND catch_up_bytes_per_s > 0
            THEN {measured_ratio}D * remaining_bytes / catch_up_bytes_per_s
        END"""


# Seconds until the copies behind a throttle are done: earliest, expected, latest.
ETAS = {
    "eta_low_s": _eta_s(_HIGH, -1, 1 - MEASURED_RATIO),
    "eta_s": _eta_s(_MIDDLE, 0, 1.0),
    "eta_high_s": _eta_s(_LOW, 1, 1 + MEASURED_RATIO),
}
