"""What the numbers of tick messages can be: what lies outside of this no broker means, and no sum has room for.

A petabyte, or a quadrillion of records, in one log; an exabyte, or as many records, since a broker started; a time
before the next century. Differences of such numbers, and sums over all partitions of a cluster, stay within 64 bits.
Numbers of 32 bits need no bounds: what is larger is no number of its column's type.
"""

from __future__ import annotations

from types import MappingProxyType

# Most that a log, a count and a time can be.
MOST_OF_LOG, MOST_COUNTED, LATEST_MS = 2**50, 2**60, 2**42
_TIME_MS = (0, LATEST_MS)
# Of a clock that was set back meanwhile, it is negative.
_DURATION_MS = (-LATEST_MS, LATEST_MS)
# Neither a log nor a count is negative, but a sum of such has room: the collector believes none.
_LOG = (-MOST_OF_LOG, MOST_OF_LOG)
_COUNT = (-MOST_COUNTED, MOST_COUNTED)
_RATE = (0, 2**63 - 1)

# Most values of an array in a row. A partition has a replica on a broker once at most, while it moves those of before
# and of after, and nobody keeps a hundred copies. Every replica becomes a row that has all arrays of its partition with
# it: of 20,000 in one row that is gigabytes.
MOST_IN_ARRAY = 256

_BY_NAME = {
    **dict.fromkeys(("read_ms", "unchanged_since_ms", "switch_tick_ms"), _TIME_MS),
    **dict.fromkeys(("started_ms", "ended_ms", "collector_started_ms"), _TIME_MS),
    **dict.fromkeys(("interval_ms", "lateness_ms", "rate_window_ms", "metadata_age_ms"), _DURATION_MS),
    **dict.fromkeys(("log_end_offset", "log_start_offset", "size_bytes", "lag_offsets"), _LOG),
    **dict.fromkeys(("first_offset", "end_offset"), _LOG),
    **dict.fromkeys(("bytes_in", "messages_in", "count_total"), _COUNT),
    **dict.fromkeys(("leader_quota_bytes_per_s", "follower_quota_bytes_per_s"), _LOG),
    "gauge_value": (-1, MOST_OF_LOG),
    # Kafka's own default is the greatest number that there is.
    **dict.fromkeys(
        ("leader_throttle_bytes_per_s", "follower_throttle_bytes_per_s", "log_dirs_throttle_bytes_per_s"), _RATE
    ),
    **dict.fromkeys(("replica_fetch_max_bytes", "replica_fetch_response_max_bytes"), _LOG),
    "leader_imbalance_check_s": _TIME_MS,
    # Their product is a time.
    **dict.fromkeys(("quota_window_num", "quota_window_size_s"), (1, 2**15)),
    **dict.fromkeys(("lane_messages", "skipped_ticks"), (0, 2**31 - 1)),
}
# By column: least and most that it can be.
BOUNDS = MappingProxyType(
    _BY_NAME
    | {f"prev_{name}": of for name, of in _BY_NAME.items() if of in (_TIME_MS, _LOG, _COUNT) and "quota" not in name}
)
# How far a tick's time may be from that of its record, either way, and how far ahead of who reads it, seconds. Clocks
# that nobody set are off by less; a tick from the future would keep the ticks of now from being judged.
TICK_OFF_S = 600
