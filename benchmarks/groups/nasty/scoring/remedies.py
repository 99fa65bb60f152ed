"""Remedies of a scene's alerts: their lines run as printed, or what a person does, until the alerts resolve."""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence

from benchmarks.groups.nasty.scoring.advice import BY_HAND, Followed, RatesInForce, resolve_limit_s
from benchmarks.groups.nasty.scoring.truth import Announcement, announcement_of
from benchmarks.groups.nasty.stage.acts import await_end
from benchmarks.groups.nasty.stage.stage import Stage
from cluster.throttles.rates import read_throttles
from schemas.alerts import Role, Severity

_POLL_S = 0.25


def follow_advice(stage: Stage) -> None:
    """Run the lines of every alert that fires and has some, the most severe first, one alert after the other.

    Each gets its time to resolve before the next is looked at; an alert that resolves by the advice of another one is
    not followed.
    """
    known = {one.announcement.alert_id for one in stage.followed}
    while waiting := [one for one in _firing(stage) if one.alert_id not in known and _commands(one)]:
        chosen = min(waiting, key=lambda one: (Severity(one.severity).rank, one.at_s))
        known.add(chosen.alert_id)
        stage.followed.append(_follow(stage, chosen))


def put_right(stage: Stage, act: Callable[[], None], await_well: Callable[[], None]) -> None:
    """Do what a person does about the alerts that ask for it, and wait until they resolve.

    Args:
        stage: the scene.
        act: what is done.
        await_well: returns once Kafka itself shows that it has worked.
    """
    asking = [one for one in _firing(stage) if one.recommendation.get("action") in BY_HAND]
    act()
    await_well()
    done_s = time.monotonic()
    for one in asking:
        followed = Followed(one, "person", done_s=done_s, limit_s=_limit_s(stage))
        _await_resolved(stage, followed)
        stage.followed.append(followed)


def await_promised_end(stage: Stage, longest_s: float) -> None:
    """Keep when the move ended, if the last advice promised that within some time; else it is not waited for."""
    promised = [one for one in stage.followed if one.promised_finish_s is not None]
    if promised and (promised[-1].promised_finish_s or 0.0) <= longest_s and await_end(stage, 1.5 * longest_s):
        promised[-1].finished_s = time.monotonic()


def rates_in_force(stage: Stage) -> RatesInForce:
    """Return the rate of every broker that is up in both roles, as the brokers themselves report them."""
    found = read_throttles(stage.ground.settings).rates
    rates: dict[tuple[int, Role], float | None] = {}
    for broker, of_broker in found.items():
        if of_broker.known:
            rates[broker, Role.LEADER] = of_broker.leader_bytes_per_s
            rates[broker, Role.FOLLOWER] = of_broker.follower_bytes_per_s
    return rates


def _follow(stage: Stage, announcement: Announcement) -> Followed:
    way, lines = stage.tools.turns.lines(announcement)
    followed = Followed(announcement, way, before=rates_in_force(stage), limit_s=_limit_s(stage))
    stage.note(f"advice of {announcement.kind}, {announcement.subject}: {len(lines)} line(s) of {way}")
    for line in lines:
        followed.lines.append(stage.tools.shell.run(line))
    followed.done_s = time.monotonic()
    followed.after = rates_in_force(stage)
    followed.promised_finish_s = announcement.recommendation.get("finish_s")
    _await_resolved(stage, followed)
    return followed


def _await_resolved(stage: Stage, followed: Followed) -> None:
    """Return when an alert has resolved, or has had its time."""
    alert_id, give_up_s = followed.announcement.alert_id, followed.done_s + followed.limit_s
    while (line := stage.watch.resolved(alert_id)) is None and time.monotonic() < give_up_s:
        stage.watch.require_running()
        time.sleep(_POLL_S)
    followed.resolved_s = line.at_s if line is not None else None
    outcome = "resolved" if followed.resolves else "NOT RESOLVED"
    stage.note(f"{followed.announcement.kind}, {followed.announcement.subject}: {outcome}")


def _firing(stage: Stage) -> Sequence[Announcement]:
    """Return the last announcement of every alert that fires, infos too."""
    return [announcement_of(line) for line in stage.watch.firing(informing=True)]


def _commands(announcement: Announcement) -> Sequence[str]:
    return announcement.recommendation.get("commands") or []


def _limit_s(stage: Stage) -> float:
    settings = stage.ground.settings
    return resolve_limit_s(settings.alerts.resolve_s, settings.collect.interval_s)
