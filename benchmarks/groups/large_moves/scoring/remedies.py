"""Remedies of a scene's alerts: their lines as printed, or the operator's action, until the alerts resolve."""

from __future__ import annotations

import time
from collections.abc import Callable, Collection, Sequence

from benchmarks.groups.large_moves.scoring.advice import BY_HAND, FollowedAdvice, RatesInForce, resolve_limit_s
from benchmarks.groups.large_moves.scoring.truth import Cause, PrintedAlert
from benchmarks.groups.large_moves.stage.acts import await_end, await_in_sync, require_losing, start_move
from benchmarks.groups.large_moves.stage.groups import Group
from benchmarks.groups.large_moves.stage.stage import SceneContext
from benchmarks.groups.large_moves.stage.topic import Rates
from headroom.cluster.live.live_cluster import read_throttles
from headroom.planning.finish.finish_time import QUOTA_CYCLE_S
from headroom.schemas.alerts import Severity
from headroom.schemas.keys import Role

# Bursts into the empty window of a new throttle are over by then.
BURST_S = 15.0
# Whole cycles, so that bursts of the quota average out.
_LOSING_S = 2 * QUOTA_CYCLE_S
_POLL_S = 0.25


def lose_until_advised(
    context: SceneContext, rates: Rates, causes: Sequence[Cause], chosen: Collection[Group] | None = None
) -> None:
    """Start a move whose new replicas, those of all groups if none is chosen, fall behind, and follow its advice.

    Raises:
        HeadroomError: the new replicas gained, so the fault did not happen.
    """
    start_move(context, rates)
    context.observe(BURST_S)
    context.await_announced(*causes)
    require_losing(context, _LOSING_S, chosen)
    follow_advice(context)


def restart_by_hand(context: SceneContext, broker: int) -> None:
    """Start a broker as its alerts ask, and return once its replicas are in sync and the alerts have resolved."""
    repair_by_hand(context, lambda: context.start(broker), lambda: await_in_sync(context, broker))


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
    """Do the operator's action for the alerts that ask for it, and wait until Kafka shows that, and they resolve."""
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
    known = {broker: own for broker, own in read_throttles(context.bench.settings).rates.items() if own.known}
    leaders = {(broker, Role.LEADER): own.leader_bytes_per_s for broker, own in known.items()}
    return {**leaders, **{(broker, Role.FOLLOWER): own.follower_bytes_per_s for broker, own in known.items()}}


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
    return [PrintedAlert.of(line) for line in context.watch.firing(informing=True)]


def _limit_s(context: SceneContext) -> float:
    settings = context.bench.settings
    return resolve_limit_s(settings.alerts.resolve_s, settings.collect.interval_s)
