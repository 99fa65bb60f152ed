"""Progress of a reassignment: remaining bytes, state and expected finish of each adding replica."""

from __future__ import annotations

from pyspark.sql import DataFrame

from headroom.streaming.transforms.moves.long_run import MEASURED_RATIO
from headroom.streaming.transforms.moves.throttle_headroom import AT_THROTTLE, TOO_LOW_VERDICTS
from headroom.streaming.transforms.steps import with_columns

_REPLACED = ("leader_listed", "follower_listed", "leader_verdict", "follower_verdict")
_JOINED = {
    # Whether the throttle of the leader counts this replica.
    "leader_listed": "coalesce(array_contains(leader_listed, leader), false)",
    # Whether the throttle of the destination counts this replica.
    "follower_listed": "coalesce(array_contains(follower_listed, follower), false)",
    # Verdict on the throttle of the leader; no_data if the broker has no row.
    "leader_verdict": "coalesce(leader_verdict, 'no_data')",
    # Verdict on the throttle of the destination; no_data if the broker has no row.
    "follower_verdict": "coalesce(follower_verdict, 'no_data')",
    # Bytes per second by which the remaining bytes shrink; null if unknown.
    "catch_up_bytes_per_s": "copied_bytes_per_s - write_bytes_per_s",
}
# The slower of the two throttles that limit a replica decides when it is in sync. An unlimited replica continues at its
# measured rate. While it waits for its turn, the expected finish is that of its whole destination.
_LIMITS = {
    # Verdict on the leader's throttle if it limits this replica, otherwise unthrottled.
    "leader_limit": "CASE WHEN leader_listed AND leader_throttle IS NOT NULL THEN leader_verdict "
    "ELSE 'unthrottled' END",
    # Verdict on the destination's throttle if it limits this replica, otherwise unthrottled.
    "follower_limit": "CASE WHEN follower_listed AND follower_throttle IS NOT NULL THEN follower_verdict "
    "ELSE 'unthrottled' END",
}
_THROTTLED = "leader_limit != 'unthrottled' OR follower_limit != 'unthrottled'"
# Whether a throttle that binds limits the replica. What is measured at its other end then says nothing.
_BOUND = "leader_limit != 'unthrottled' AND leader_binds OR follower_limit != 'unthrottled' AND follower_binds"
_STATE = f"""CASE
    WHEN in_sync THEN 'in_sync'
    WHEN NOT alive OR leader IS NULL THEN 'never'
    WHEN 'no_data' IN (leader_verdict, follower_verdict) OR remaining_bytes IS NULL THEN 'no_data'
    WHEN leader_limit IN ({TOO_LOW_VERDICTS}) OR follower_limit IN ({TOO_LOW_VERDICTS}) THEN 'never'
    WHEN throttled OR (waiting AND follower_eta_s IS NOT NULL) THEN 'catching_up'
    WHEN catch_up_bytes_per_s IS NULL THEN 'no_data'
    WHEN catch_up_bytes_per_s <= 0 THEN 'never'
    ELSE 'catching_up' END"""


def _eta(name: str, measured_ratio: float) -> str:
    """Return the seconds until a replica is in sync, as an expression; null if unknown.

    Args:
        name: ``eta_s``, or one end of its range: ``eta_low_s``, ``eta_high_s``.
        measured_ratio: factor on the time at the measured rate of a replica that no throttle limits.
    """
    return f"""CASE
    WHEN state = 'in_sync' THEN 0D
    WHEN state != 'catching_up' THEN NULL
    WHEN NOT throttled AND waiting THEN follower_{name}
    WHEN NOT throttled THEN {measured_ratio}D * remaining_bytes / catch_up_bytes_per_s
    ELSE greatest(CASE WHEN leader_limit != 'unthrottled' AND (leader_binds OR NOT bound) THEN leader_{name} END,
        CASE WHEN follower_limit != 'unthrottled' AND (follower_binds OR NOT bound) THEN follower_{name} END) END"""


# Seconds until the replica is in sync: earliest, expected, latest.
_ETAS = {
    "eta_low_s": _eta("eta_low_s", 1 - MEASURED_RATIO),
    "eta_s": _eta("eta_s", 1.0),
    "eta_high_s": _eta("eta_high_s", 1 + MEASURED_RATIO),
}


def reassignment_progress(replicas: DataFrame, headroom: DataFrame) -> DataFrame:
    """Return the rows of ``gold/reassignment_progress`` without ``date``, one per tick, partition and adding replica.

    Args:
        replicas: rows of ``streaming.transforms.moves.replicas.replicas``.
        headroom: rows of ``streaming.transforms.moves.throttle_headroom.throttle_headroom`` for the same ticks, with
            the extra column ``AT_THROTTLE``.
    """
    joined = (
        replicas.where("is_adding")
        .join(_headroom_of(headroom, "leader"), ["cluster", "tick_ms", "leader"], "left")
        .join(_headroom_of(headroom, "follower"), ["cluster", "tick_ms", "follower"], "left")
    )
    known = with_columns(joined, _JOINED, without=_REPLACED)
    # Whether a throttle limits the replica.
    limited = with_columns(with_columns(known, _LIMITS), {"throttled": _THROTTLED, "bound": _BOUND})
    # in_sync, catching_up, never or no_data.
    evaluated = with_columns(limited, {"state": _STATE})
    return with_columns(evaluated, {**_ETAS, "adding_replica": "follower", "rate_window_ms": "window_ms"})


def _headroom_of(headroom: DataFrame, role: str) -> DataFrame:
    """Return verdict, expected finish and rate of the brokers in one role, in columns that begin with the role."""
    return headroom.where(f"role = '{role}'").selectExpr(
        "cluster",
        "tick_ms",
        f"broker AS {role}",
        f"verdict AS {role}_verdict",
        # Only the replica's own source counts here, not another source of the same destination with a low throttle.
        *[f"{AT_THROTTLE}.{eta} AS {role}_{eta}" for eta in _ETAS],
        f"{AT_THROTTLE}.binds AS {role}_binds",
        f"throttle_bytes_per_s AS {role}_throttle",
    )
