"""Progress of a reassignment: how far each adding replica is, and when it will be there."""

from __future__ import annotations

from pyspark.sql import DataFrame

from streaming.transforms.moves.long_run import SEEN_RATIO
from streaming.transforms.moves.throttle_headroom import AT_THROTTLE
from streaming.transforms.steps import with_columns

# The slower of the two sides that limit a replica says when it is there; an unlimited one goes on as it is seen to, and
# while it waits for its turn as all of its destination do.
_LIMITS = "CASE WHEN {side}_listed AND {side}_throttle IS NOT NULL THEN {side}_verdict ELSE 'unthrottled' END"
_THROTTLED = "leader_limit != 'unthrottled' OR follower_limit != 'unthrottled'"
_MADE_KNOWN = ("leader_listed", "follower_listed", "leader_verdict", "follower_verdict")
_KNOWN = {
    "leader_listed": "coalesce(array_contains(leader_listed, leader), false)",
    "follower_listed": "coalesce(array_contains(follower_listed, follower), false)",
    "leader_verdict": "coalesce(leader_verdict, 'no_data')",
    "follower_verdict": "coalesce(follower_verdict, 'no_data')",
    "catch_up_bytes_per_s": "copied_bytes_per_s - write_bytes_per_s",
}
_STATE = """CASE
    WHEN in_sync THEN 'in_sync'
    WHEN NOT alive OR leader IS NULL THEN 'never'
    WHEN 'no_data' IN (leader_verdict, follower_verdict) OR remaining_bytes IS NULL THEN 'no_data'
    WHEN leader_limit IN ('starved', 'losing') OR follower_limit IN ('starved', 'losing') THEN 'never'
    WHEN throttled OR (waiting AND follower_eta_s IS NOT NULL) THEN 'catching_up'
    WHEN catch_up_bytes_per_s IS NULL THEN 'no_data'
    WHEN catch_up_bytes_per_s <= 0 THEN 'never'
    ELSE 'catching_up' END"""


def _eta(name: str, seen_ratio: float) -> str:
    """Return when a replica is in sync: ``eta_s``, or one end of its range."""
    return f"""CASE
    WHEN state = 'in_sync' THEN 0D
    WHEN state != 'catching_up' THEN NULL
    WHEN NOT throttled AND waiting THEN follower_{name}
    WHEN NOT throttled THEN {seen_ratio}D * remaining_bytes / catch_up_bytes_per_s
    ELSE greatest(CASE WHEN leader_limit != 'unthrottled' THEN leader_{name} END,
        CASE WHEN follower_limit != 'unthrottled' THEN follower_{name} END) END"""


_ETAS = {
    "eta_low_s": _eta("eta_low_s", 1 - SEEN_RATIO),
    "eta_s": _eta("eta_s", 1.0),
    "eta_high_s": _eta("eta_high_s", 1 + SEEN_RATIO),
}


def reassignment_progress(replicas: DataFrame, headroom: DataFrame) -> DataFrame:
    """Return the rows of ``gold/reassignment_progress`` but for ``date``, one per tick, partition and adding replica.

    Args:
        replicas: of ``streaming.transforms.moves.replicas.replicas``.
        headroom: of ``streaming.transforms.moves.throttle_headroom.throttle_headroom``, of the same ticks,
            with ``AT_THROTTLE`` besides.
    """
    joined = (
        replicas.where("is_adding")
        .join(_side(headroom, "leader"), ["cluster", "tick_ms", "leader"], "left")
        .join(_side(headroom, "follower"), ["cluster", "tick_ms", "follower"], "left")
    )
    known = with_columns(joined, _KNOWN, without=_MADE_KNOWN)
    limited = with_columns(known, {f"{side}_limit": _LIMITS.format(side=side) for side in ("leader", "follower")})
    judged = with_columns(with_columns(limited, {"throttled": _THROTTLED}), {"state": _STATE})
    return with_columns(judged, {**_ETAS, "adding_replica": "follower", "rate_window_ms": "window_ms"})


def _side(headroom: DataFrame, role: str) -> DataFrame:
    return headroom.where(f"role = '{role}'").selectExpr(
        "cluster",
        "tick_ms",
        f"broker AS {role}",
        f"verdict AS {role}_verdict",
        # Of a replica its own source counts, not that another one of its destination is short.
        *[f"{AT_THROTTLE}.{eta} AS {role}_{eta}" for eta in _ETAS],
        f"throttle_bytes_per_s AS {role}_throttle",
    )
