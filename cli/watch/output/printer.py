"""Output of ``headroom watch``: verdicts and alerts whenever they change, as text or JSON lines."""

from __future__ import annotations

import os
import sys
from collections.abc import Sequence
from typing import Any

from headroom.alerts.inputs.throttle_status import ThrottleStatus
from headroom.alerts.text.terminal import render_event
from headroom.cli.common.output import echo, echo_lines, print_json_line
from headroom.schemas.alerts import AlertEvent, AlertState, Verdict
from headroom.schemas.text.amounts import clock_text, duration_range_text, rate_text
from headroom.schemas.text.names import broker_names

_COLOURS = {AlertState.FIRING.value: "red", AlertState.RESOLVED.value: "green"}


class VerdictPrinter:
    """Prints the verdicts and events of the alert path. Create it before standard output is relayed.

    Args:
        output_format: text or json.
    """

    def __init__(self, output_format: str) -> None:
        self._json = output_format == "json"
        # A relay is no terminal, but may lead to one. By these variables rich leaves out colours too.
        is_plain = bool(os.environ.get("NO_COLOR")) or os.environ.get("TERM") in ("dumb", "unknown")
        self._in_colour = sys.stdout.isatty() and not is_plain
        self._last_printed: dict[str, object] = {}
        self._fired: set[str] = set()

    def print_events(self, events: Sequence[AlertEvent]) -> None:
        """Print events. As text, only firing events and the resolution of alerts that fired are printed."""
        for event in events:
            if self._json:
                print_json_line({"type": "event", **event.as_objects()})
                continue
            if event.state == AlertState.FIRING.value:
                self._fired.add(event.alert_id)
            # The end of an alert that was never announced would only puzzle.
            if event.alert_id in self._fired:
                echo_lines(render_event(event), colour=_COLOURS.get(event.state), in_colour=self._in_colour)

    def print_active(self, events: Sequence[AlertEvent]) -> None:
        """Print the alerts that are still firing from an earlier run."""
        firing = [event for event in events if event.state == AlertState.FIRING.value]
        if firing and not self._json:
            echo(f"{len(firing)} alert(s) fired before this start and are not resolved:")
        self.print_events(firing)

    def print_tick(self, cluster: str, tick_ms: int, statuses: Sequence[ThrottleStatus]) -> None:
        """Print the verdicts of a tick, if they differ from those last printed for the cluster."""
        active = [status for status in statuses if status.verdict is not Verdict.IDLE]
        behind = sorted({status.broker for status in statuses if status.lost_replicas})
        verdicts = [(status.broker, status.role, status.verdict, status.load.throttle_bytes_per_s) for status in active]
        # Rates and finish change with every tick: only a new verdict or throttle is worth a line.
        printed = verdicts or behind
        if self._last_printed.get(cluster) == printed:
            return
        self._last_printed[cluster] = printed
        if self._json:
            sides = [_status_json(status) for status in active]
            print_json_line({"type": "verdicts", "cluster": cluster, "tick_ms": tick_ms, "sides": sides})
            return
        at = clock_text(tick_ms).removesuffix(" UTC")
        if not active:
            echo(f"{at} {cluster}: {len({status.broker for status in statuses})} brokers, {_idle_text(behind)}")
        for status in active:
            echo(f"{at} {cluster}: {_status_text(status)}")


def _idle_text(behind: Sequence[int]) -> str:
    """Return what is out of sync although no move or throttle is the reason.

    Args:
        behind: brokers with replicas out of the ISR.
    """
    if not behind:
        return "no replica is out of sync"
    return f"no copy of a move or behind a throttle, but replicas of {broker_names(behind)} are out of sync"


def _status_text(status: ThrottleStatus) -> str:
    load = status.load
    has_none = load.throttle_bytes_per_s is None and not status.is_rate_unread
    throttle = "none" if has_none else rate_text(load.throttle_bytes_per_s)
    eta = f", in sync in {duration_range_text(status.eta_low_s, status.eta_high_s)}" if status.eta_s is not None else ""
    reason = f" ({status.reason})" if status.reason else ""
    return (
        f"broker {status.broker} as {status.role.value:8} {status.verdict.value:11} throttle {throttle}, "
        f"requires {rate_text(load.required_bytes_per_s)}, "
        f"in sync {rate_text(load.in_sync_bytes_per_s)}{eta}{reason}"
    )


def _status_json(status: ThrottleStatus) -> dict[str, Any]:
    load = status.load
    return {
        "broker": status.broker,
        "role": status.role.value,
        "verdict": status.verdict.value,
        "throttle_bytes_per_s": load.throttle_bytes_per_s,
        "in_sync_bytes_per_s": load.in_sync_bytes_per_s,
        "required_bytes_per_s": load.required_bytes_per_s,
        "eta_s": status.eta_s,
        "eta_low_s": status.eta_low_s,
        "eta_high_s": status.eta_high_s,
        "reason": status.reason,
    }
