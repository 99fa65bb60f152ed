"""Plausible ranges of the numbers in tick messages. Values outside are corrupt, and sums of them could overflow.

The limits are a petabyte or 2^50 records in one log, an exabyte or 2^60 records since the start of a broker, and a time
before the next century. Differences of such numbers, and sums over all partitions of a cluster, fit in 64 bits. 32-bit
columns need no bounds, because their type rejects larger numbers.
"""

from __future__ import annotations

from types import MappingProxyType

# Upper bounds of a log, a counter and a time.
MOST_OF_LOG, MOST_COUNTED, LATEST_MS = 2**50, 2**60, 2**42
# Upper bound of the time that a request or a log flush takes: a day.
LONGEST_MS = 86_400_000
_TIME_MS = (0, LATEST_MS)
# Negative if a clock was set back in between.
_DURATION_MS = (-LATEST_MS, LATEST_MS)
# Negative values are implausible too, but the collector rejects them itself, and sums of them cannot overflow.
_LOG = (-MOST_OF_LOG, MOST_OF_LOG)
_COUNT = (-MOST_COUNTED, MOST_COUNTED)
_RATE = (0, 2**63 - 1)
# A broker reports a log directory of an unlimited volume as larger than any disk.
_DISK, _REQUEST_MS = (0, MOST_COUNTED), (0, LONGEST_MS)

# Maximum length of an array in a row. A partition has at most one replica per broker, during a move the old and the new
# ones, and a hundred copies are unheard of. Every replica becomes a row with all arrays of its partition, so an array
# of 20,000 values would need gigabytes.
MOST_IN_ARRAY = 256

_BY_NAME = {
    **dict.fromkeys(("read_ms", "unchanged_since_ms", "switch_tick_ms", "written_ms"), _TIME_MS),
    **dict.fromkeys(("started_ms", "ended_ms", "collector_started_ms"), _TIME_MS),
    **dict.fromkeys(("interval_ms", "lateness_ms", "rate_window_ms", "metadata_age_ms"), _DURATION_MS),
    **dict.fromkeys(("log_end_offset", "log_start_offset", "size_bytes", "lag_offsets"), _LOG),
    **dict.fromkeys(("first_offset", "end_offset"), _LOG),
    **dict.fromkeys(("bytes_in", "messages_in", "count_total"), _COUNT),
    **dict.fromkeys(("produce_requests", "fetch_requests", "handler_idle_ns"), _COUNT),
    **dict.fromkeys(("produce_p99_ms", "follower_fetch_p99_ms", "log_flush_p999_ms"), _REQUEST_MS),
    **dict.fromkeys(("total_bytes", "usable_bytes"), _DISK),
    **dict.fromkeys(("leader_quota_bytes_per_s", "follower_quota_bytes_per_s"), _LOG),
    "gauge_value": (-1, MOST_OF_LOG),
    # Kafka's default is the maximum of a 64-bit integer.
    **dict.fromkeys(
        ("leader_throttle_bytes_per_s", "follower_throttle_bytes_per_s", "log_dirs_throttle_bytes_per_s"), _RATE
    ),
    **dict.fromkeys(("replica_fetch_max_bytes", "replica_fetch_response_max_bytes"), _LOG),
    "leader_imbalance_check_s": _TIME_MS,
    # Their product is a duration.
    **dict.fromkeys(("quota_window_num", "quota_window_size_s"), (1, 2**15)),
    **dict.fromkeys(("lane_messages", "skipped_ticks"), (0, 2**31 - 1)),
}
# Minimum and maximum by column.
BOUNDS = MappingProxyType(
    _BY_NAME
    | {
        f"prev_{name}": bounds
        for name, bounds in _BY_NAME.items()
        if bounds in (_TIME_MS, _LOG, _COUNT) and "quota" not in name
    }
)
# Maximum difference between the time of a tick and the timestamp of its record, and maximum lead of a tick over the
# reader's clock, seconds. Unsynchronized clocks differ by less. A tick from the future would block current ticks.
TICK_OFF_S = 600
