"""How ``headroom watch`` tells what it sees: verdicts when they change, alerts when they do, as text or JSON lines."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from alerts.inputs.throttle_status import ThrottleStatus
from alerts.text.formatting import clock, format_rate, span
from alerts.text.terminal import render_event
from cli.common.output import echo, echo_lines, print_json_line
from schemas.alerts import AlertEvent, AlertState, Verdict

_COLOURS = {AlertState.FIRING.value: "red", AlertState.RESOLVED.value: "green"}


class VerdictPrinter:
    """Prints what the alert path says.

    Args:
        output_format: text or json.
    """

    def __init__(self, output_format: str) -> None:
        self._json = output_format == "json"
        self._shown: dict[str, object] = {}
        self._fired: set[str] = set()

    def events(self, events: Sequence[AlertEvent]) -> None:
        """Print events; as text only what fires, and the end of what has fired."""
        for event in events:
            if self._json:
                print_json_line({"type": "event", **event.as_objects()})
                continue
            if event.state == AlertState.FIRING.value:
                self._fired.add(event.alert_id)
            if event.alert_id in self._fired:
                echo_lines(render_event(event), colour=_COLOURS.get(event.state))

    def standing(self, events: Sequence[AlertEvent]) -> None:
        """Print the alerts that a former run left firing."""
        firing = [event for event in events if event.state == AlertState.FIRING.value]
        if firing and not self._json:
            echo(f"{len(firing)} alert(s) fired before this start and are not resolved:")
        self.events(firing)

    def tick(self, cluster: str, tick_ms: int, sides: Sequence[ThrottleStatus]) -> None:
        """Print the verdicts of a tick, if they differ from those last printed for the cluster."""
        taking_part = [side for side in sides if side.verdict is not Verdict.IDLE]
        picture = [(side.broker, side.role, side.verdict, side.load.throttle_bytes_per_s) for side in taking_part]
        if self._shown.get(cluster) == picture:
            return
        self._shown[cluster] = picture
        if self._json:
            verdicts = [_side_json(side) for side in taking_part]
            print_json_line({"type": "verdicts", "cluster": cluster, "tick_ms": tick_ms, "sides": verdicts})
            return
        at = clock(tick_ms).removesuffix(" UTC")
        if not taking_part:
            echo(f"{at} {cluster}: {len({side.broker for side in sides})} brokers, no replica is out of sync")
        for side in taking_part:
            echo(f"{at} {cluster}: {_side_text(side)}")


def _side_text(side: ThrottleStatus) -> str:
    demand = side.load
    throttle = "none" if demand.throttle_bytes_per_s is None else format_rate(demand.throttle_bytes_per_s)
    eta = f", in sync in {span(side.eta_low_s, side.eta_high_s)}" if side.eta_s is not None else ""
    why = f" ({side.reason})" if side.reason else ""
    return (
        f"broker {side.broker} as {side.role.value:8} {side.verdict.value:11} throttle {throttle}, "
        f"requires {format_rate(demand.required_bytes_per_s)}, "
        f"in sync {format_rate(demand.in_sync_bytes_per_s)}{eta}{why}"
    )


def _side_json(side: ThrottleStatus) -> dict[str, Any]:
    demand = side.load
    return {
        "broker": side.broker,
        "role": side.role.value,
        "verdict": side.verdict.value,
        "throttle_bytes_per_s": demand.throttle_bytes_per_s,
        "in_sync_bytes_per_s": demand.in_sync_bytes_per_s,
        "required_bytes_per_s": demand.required_bytes_per_s,
        "eta_s": side.eta_s,
        "eta_low_s": side.eta_low_s,
        "eta_high_s": side.eta_high_s,
        "reason": side.reason,
    }
