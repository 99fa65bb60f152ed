"""Remedies of a scene's alerts: their lines as printed, or the operator's action, until the alerts resolve."""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence

from benchmarks.groups.nasty.scoring.advice import BY_HAND, FollowedAdvice, RatesInForce, resolve_limit_s
from benchmarks.groups.nasty.scoring.truth import PrintedAlert, announcement_of
from benchmarks.groups.nasty.stage.acts import await_end
from benchmarks.groups.nasty.stage.stage import SceneContext
from cluster.live.live_cluster import read_throttles
from schemas.alerts import Role, Severity

_POLL_S = 0.25


def follow_advice(context: SceneContext) -> None:
    """Run the lines of every firing alert that has some, one alert after another, the most severe first.

    Each alert gets its time to resolve before the next one is followed. An alert that resolves by the advice of another
    one is not followed.
    """
    known = {one.announcement.alert_id for one in context.followed}
    while waiting := [
        one for one in _firing(context) if one.alert_id not in known and one.recommendation.get("commands")
    ]:
        chosen = min(waiting, key=lambda one: (Severity(one.severity).rank, one.at_s))
        known.add(chosen.alert_id)
        context.followed.append(_follow(context, chosen))


def repair_by_hand(context: SceneContext, act: Callable[[], None], await_repaired: Callable[[], None]) -> None:
    """Do the operator's action for the alerts that ask for it, and wait until they resolve.

    Args:
        context: the scene's context.
        act: the action.
        await_repaired: returns once Kafka shows that it has worked.
    """
    waiting = [one for one in _firing(context) if one.recommendation.get("action") in BY_HAND]
    act()
    await_repaired()
    done_s = time.monotonic()
    for one in waiting:
        followed = FollowedAdvice(one, "person", done_s=done_s, limit_s=_limit_s(context))
        _await_resolved(context, followed)
        context.followed.append(followed)


def await_promised_end(context: SceneContext, longest_s: float) -> None:
    """Record the end of the move if the last advice predicted it within ``longest_s``; otherwise do not wait."""
    promised = [one for one in context.followed if one.promised_finish_s is not None]
    if promised and (promised[-1].promised_finish_s or 0.0) <= longest_s and await_end(context, 1.5 * longest_s):
        promised[-1].finished_s = time.monotonic()


def rates_in_force(context: SceneContext) -> RatesInForce:
    """Return the rates of every live broker in both roles, as the brokers report them."""
    found = read_throttles(context.bench.settings).rates
    rates: dict[tuple[int, Role], float | None] = {}
    for broker, of_broker in found.items():
        if of_broker.known:
            rates[broker, Role.LEADER] = of_broker.leader_bytes_per_s
            rates[broker, Role.FOLLOWER] = of_broker.follower_bytes_per_s
    return rates


def _follow(context: SceneContext, announcement: PrintedAlert) -> FollowedAdvice:
    way, lines = context.tools.rotation.lines(announcement)
    followed = FollowedAdvice(announcement, way, before=rates_in_force(context), limit_s=_limit_s(context))
    context.note(f"advice of {announcement.kind}, {announcement.subject}: {len(lines)} line(s) of {way}")
    for line in lines:
        followed.lines.append(context.tools.shell.run(line))
    followed.done_s = time.monotonic()
    followed.after = rates_in_force(context)
    followed.promised_finish_s = announcement.recommendation.get("finish_s")
    _await_resolved(context, followed)
    return followed


def _await_resolved(context: SceneContext, followed: FollowedAdvice) -> None:
    """Return once an alert has resolved, or its time is over."""
    alert_id, deadline_s = followed.announcement.alert_id, followed.done_s + followed.limit_s
    while (line := context.watch.resolving_event(alert_id)) is None and time.monotonic() < deadline_s:
        context.watch.require_running()
        time.sleep(_POLL_S)
    followed.resolved_s = line.at_s if line is not None else None
    outcome = "resolved" if followed.resolves else "NOT RESOLVED"
    context.note(f"{followed.announcement.kind}, {followed.announcement.subject}: {outcome}")


def _firing(context: SceneContext) -> Sequence[PrintedAlert]:
    """Return the last announcement of every firing alert, infos included."""
    return [announcement_of(line) for line in context.watch.firing(informing=True)]


def _limit_s(context: SceneContext) -> float:
    settings = context.bench.settings
    return resolve_limit_s(settings.alerts.resolve_s, settings.collect.interval_s)
