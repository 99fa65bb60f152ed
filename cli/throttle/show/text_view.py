"""Text of ``headroom throttle show`` about needs and leftovers."""

from __future__ import annotations

from collections.abc import Sequence

from headroom.cli.common.output import echo, print_table
from headroom.operations.throttles.left_behind import LeftBehind, LeftList, LeftRate
from headroom.operations.throttles.needs.throttle_need import MoveNeed, NeedsSource, ThrottleNeeds
from headroom.operations.throttles.without_effect import ThrottleWithoutEffect
from headroom.schemas.alerts import Verdict
from headroom.schemas.text.amounts import UNKNOWN, duration_text, rate_text, size_text

_NAMED = 3
_ROLES = {"log_dirs": "log directories"}


def print_needs(needs: ThrottleNeeds, at_ms: int) -> None:
    """Print one row per broker and role that a running move needs, and why needs are missing.

    Args:
        needs: the needs.
        at_ms: current time, epoch milliseconds.
    """
    if needs.needs:
        echo()
        header = ("broker", "role", "rate in force", "required", "moving alone", "verdict", "needed by")
        print_table(f"Required rates{_from(needs, at_ms)}", header, [_row(need) for need in needs.needs])
    for need in needs.needs:
        if need.down_required_bytes_per_s and need.required_bytes_per_s is not None:
            echo(
                f"Broker {need.broker} as {need.role} requires {rate_text(need.lasting_required_bytes_per_s)} once the "
                "brokers that are down are back."
            )
    for problem in needs.problems:
        echo(problem)


def print_without_effect(throttles: Sequence[ThrottleWithoutEffect]) -> None:
    """Print a line for each throttle that limits nothing, or not all, of a move; nothing if there are none."""
    for throttle in throttles:
        echo(throttle.text)


def print_left_behind(left: LeftBehind) -> None:
    """Print one row per rate and list that no running move uses; nothing if there are none."""
    if not left.rates and not left.lists:
        return
    rows = [
        ("cluster default" if rate.broker is None else f"broker {rate.broker}", rate.key, rate_text(rate.bytes_per_s))
        for rate in left.rates
    ]
    rows += [(f"topic {entries.topic}", entries.key, entries.entries) for entries in left.lists]
    # Without any known run the column would only repeat that it is unknown.
    runs = [_set_by(rate) for rate in left.rates] + [_set_by(entries) for entries in left.lists]
    echo()
    header = ("what", "key", "value")
    if not any(runs):
        print_table("Left behind: no running move uses", header, rows)
        return
    with_runs = [(*row, run or "unknown") for row, run in zip(rows, runs, strict=True)]
    print_table("Left behind: no running move uses", (*header, "set by"), with_runs)


def _set_by(left: LeftRate | LeftList) -> str | None:
    if left.run_id is None:
        return None
    # A run pauses between its batches, and removes it itself when it ends.
    running = "" if left.process is None else f", running: {left.process}"
    return f"{left.run_id} ({left.command}{running})"


def _from(needs: ThrottleNeeds, at_ms: int) -> str:
    if needs.source is NeedsSource.LIVE:
        return ", measured now"
    if needs.tick_ms is None:
        return ""
    return f", by the tick of {duration_text(max(0, at_ms - needs.tick_ms) / 1000)} ago"


def _row(need: MoveNeed) -> Sequence[str]:
    # A rate that is not set gives the verdict unthrottled.
    absent = UNKNOWN if need.verdict == Verdict.NO_DATA.value else "none"
    rate = absent if need.throttle_bytes_per_s is None else rate_text(need.throttle_bytes_per_s)
    if need.role in _ROLES:
        left = f"{size_text(need.remaining_bytes)} left"
        return (str(need.broker), _ROLES[need.role], rate, left, "", "", _needed_by(need))
    required, moving = rate_text(need.required_bytes_per_s), rate_text(need.moving_bytes_per_s)
    return (str(need.broker), need.role, rate, required, moving, need.verdict or "", _needed_by(need))


def _needed_by(need: MoveNeed) -> str:
    names = ", ".join(str(partition.name) for partition in need.partitions[:_NAMED])
    more = need.moving_partitions - min(_NAMED, len(need.partitions))
    if not names:
        return f"{more} partition{'s' if more > 1 else ''}"
    return f"{names} and {more} more" if more else names
