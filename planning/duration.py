"""How long out-of-sync replicas take to catch up under a throttle.

A quota is a mean over a sliding window, and a copy goes as fast as it may. So the copy comes in bursts: when the window
has room, what fits goes at once; then the flow falls back to what it was before, until the burst leaves the window and
there is room again. In between the lag grows, and a copy ends in a burst. On real brokers (required 4, throttle raised
from 1.5 to 4.8 MB/s while in-sync followers used 2) 29 MB went at once, then 8.4 MB were gained in every 11.8 s.
"""

from __future__ import annotations

import math

# Kafka's Rate over replication.quota.window.num (11) samples of replication.quota.window.size.seconds (1): the mean is
# over the ten full samples and what has passed of the newest; a sample leaves eleven seconds after its last record.
QUOTA_WINDOW_S = 10.4
QUOTA_CYCLE_S = 11.6
# The window is a little shorter than the cycle, so that a little less than the throttle passes in the mean.
QUOTA_YIELD_RATIO = 0.98
# What it takes to run the command that applies a throttle, during which the lag goes on growing.
APPLY_S = 2.0
# From the last byte to the end of the reassignment: the ISR grows, the controller drops the replicas that leave.
COMPLETE_S = 1.0
# So many cycles are told apart; later the bursts have spread, and the end may lie anywhere between two.
_SHARP_CYCLES = 2


def finish_s(
    remaining_bytes: float, required_bytes_per_s: float, throttle_bytes_per_s: float, used_bytes_per_s: float | None
) -> float | None:
    """Return seconds from when a throttle is raised until ``remaining_bytes`` are copied; None: never.

    Args:
        remaining_bytes: bytes that out-of-sync replicas still have to copy.
        required_bytes_per_s: live traffic of all listed followers.
        throttle_bytes_per_s: the rate in force from then on.
        used_bytes_per_s: traffic that counted against the quota in the window before; None: as much as the throttle,
            so that the window has no room.
    """
    if remaining_bytes <= 0:
        return 0.0
    gained_per_cycle = (throttle_bytes_per_s * QUOTA_YIELD_RATIO - required_bytes_per_s) * QUOTA_CYCLE_S
    if gained_per_cycle <= 0:
        return None
    used = throttle_bytes_per_s if used_bytes_per_s is None else min(used_bytes_per_s, throttle_bytes_per_s)
    grown = max(0.0, required_bytes_per_s - used) * APPLY_S
    after_first_burst = remaining_bytes + grown - (throttle_bytes_per_s - used) * QUOTA_WINDOW_S
    return _cycles(after_first_burst / gained_per_cycle) * QUOTA_CYCLE_S + COMPLETE_S


def _cycles(gains: float) -> float:
    """Return after how many cycles so many gains of a cycle are made."""
    if gains <= _SHARP_CYCLES:
        return float(max(0, math.ceil(gains)))
    return gains + 0.5


def throttle_for(
    remaining_bytes: float, required_bytes_per_s: float, used_bytes_per_s: float | None, within_s: float
) -> float:
    """Return the least throttle in bytes per second of which ``finish_s`` says that it is done within ``within_s``.

    Args:
        remaining_bytes: bytes that out-of-sync replicas still have to copy.
        required_bytes_per_s: live traffic of all listed followers.
        used_bytes_per_s: traffic that counted against the quota in the window before; None: as much as the throttle.
        within_s: seconds; infinity is returned where nothing ends so soon.

    Raises:
        ValueError: ``within_s`` is not positive.
    """
    if within_s <= 0 or math.isnan(within_s):
        raise ValueError(f"within_s must be positive, not {within_s}")
    cycles = (within_s - COMPLETE_S) / QUOTA_CYCLE_S
    gains = cycles - 0.5 if cycles - 0.5 > _SHARP_CYCLES else float(min(_SHARP_CYCLES, math.floor(cycles)))
    room_s = 0.0 if used_bytes_per_s is None else QUOTA_WINDOW_S
    if gains < 0 or (gains == 0 and not room_s):
        return math.inf
    used = used_bytes_per_s or 0.0
    # finish_s() solved for the throttle: what is behind has to fit into the first burst and the gains.
    grown = 0.0 if used_bytes_per_s is None else max(0.0, required_bytes_per_s - used) * APPLY_S
    behind = remaining_bytes + grown + used * room_s + gains * QUOTA_CYCLE_S * required_bytes_per_s
    enough = behind / (room_s + gains * QUOTA_CYCLE_S * QUOTA_YIELD_RATIO)
    return max(enough, used, required_bytes_per_s / QUOTA_YIELD_RATIO * (1 + 1e-9))
