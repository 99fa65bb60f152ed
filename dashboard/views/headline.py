"""The headline: whether the move will finish, when, what is in its way, and what puts it right."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import dataclass, replace

from headroom.alerts.inputs.throttle_status import ThrottleStatus
from headroom.alerts.recommendations.recommendation import Action, Recommendation
from headroom.alerts.text.finish import finish_text
from headroom.alerts.text.terminal import event_commands
from headroom.alerts.watched_cluster import WatchedCluster
from headroom.dashboard.address import Address
from headroom.dashboard.data.moment import ClusterMoment, moment_after
from headroom.dashboard.site import Site, ViewTime
from headroom.dashboard.views.blocks import Commands, Paragraph, Term, Tone
from headroom.operations.evaluation import fresh_ms
from headroom.schemas.alerts import AlertKind, AlertState, Severity, Verdict
from headroom.schemas.text.amounts import clock_text, moment_text, rate_text, size_text
from headroom.streaming.tables.current_alerts import CurrentAlert

SEVERITY_TONES = {Severity.CRITICAL: Tone.CRITICAL, Severity.WARNING: Tone.WARNING, Severity.INFO: Tone.QUIET}
# The most alerts that the headline names.
_NAMED = 3
_THROTTLE_KINDS = (AlertKind.THROTTLE_BELOW_LEADER_WRITE.value, AlertKind.THROTTLE_BELOW_INBOUND.value)
_OVER = "Not so any more, and resolved if that lasts"


@dataclass(frozen=True)
class Headline:
    """The first thing that is read.

    Attributes:
        tone: how good it is.
        text: one sentence.
        terms: finish by the clock, what is left, and where it is tight.
        alerts: summaries of the most severe alerts.
        commands: what puts it right; None if nothing is to be done, or known.
        view_time: whether it is the state of now.
        tick_ms: tick that it is of, epoch milliseconds; None if there is none.
    """

    tone: Tone
    text: str
    view_time: ViewTime
    terms: Sequence[Term] = ()
    alerts: Sequence[Term] = ()
    commands: Commands | None = None
    tick_ms: int | None = None


def headline(site: Site, address: Address) -> Headline:
    """Return the headline of an address.

    Raises:
        HeadroomError: a table cannot be read.
    """
    view_time, moment = site.view_time(address), site.moment(address)
    if moment is None:
        text = view_time.text
        if view_time.is_past:
            name = site.cluster(address)
            text = f"There is no verdict on cluster {name} up to {moment_text(view_time.at_ms)}."
        return Headline(Tone.UNKNOWN, text, view_time)
    firing = [a for a in site.alerts(address) or () if a.event.state == AlertState.FIRING.value]
    firing.sort(key=lambda a: (Severity.of(a.event.severity).rank, -a.event.tick_ms))
    watched = site.watched(moment.cluster)
    ends = {s.subject for s in moment.statuses if _ends_alerts(s, watched)}
    over = [alert for alert in firing if _is_over(alert, moment, ends)]
    firing = [alert for alert in firing if not _is_over(alert, moment, ends)]
    verdict = _of_moment(moment, view_time, firing)
    commands = next((c for alert in firing if (c := _commands_of_alert(alert))), None)
    if commands is None:
        commands = _commands_of_recommendation(site, address, moment)
    terms = tuple(_terms(moment))
    named = [Term(a.event.kind, f"{a.event.summary}.", _tone(a)) for a in firing[:_NAMED]]
    if len(firing) > _NAMED:
        more = len(firing) - _NAMED
        named.append(Term("", f"{more} more {'alert is' if more == 1 else 'alerts are'} firing.", Tone.WARNING))
    named += [Term(a.event.kind, f"{_OVER}: {a.event.summary}.", Tone.QUIET) for a in over[:_NAMED]]
    whole = replace(verdict, terms=terms, alerts=named, commands=commands, tick_ms=moment.tick_ms)
    not_evaluated = _why_not_evaluated(watched, view_time, moment.tick_ms)
    if not_evaluated is None:
        return whole
    # What was good then says nothing of the moment that is shown.
    return replace(whole, tone=Tone.UNKNOWN, text=not_evaluated, terms=(Term("Then", verdict.text), *terms))


def state_of_then(site: Site, address: Address, tick_ms: int) -> list[Paragraph]:
    """Return what comes before the rows of a tick that is not the state of the moment that is shown; nothing if it is.

    Args:
        site: tables and settings.
        address: what is shown.
        tick_ms: the tick, epoch milliseconds.

    Raises:
        HeadroomError: the tables cannot be read.
    """
    # The headline says why.
    if _why_not_evaluated(site.watched(site.cluster(address)), site.view_time(address), tick_ms) is None:
        return []
    return [Paragraph(f"What follows is the state of {moment_text(tick_ms)}.", Tone.UNKNOWN)]


def _why_not_evaluated(watched: WatchedCluster, view_time: ViewTime, tick_ms: int) -> str | None:
    """Return that the cluster was not evaluated at the moment that is shown; None if it was."""
    if not view_time.is_past:
        return None if view_time.is_current else view_time.text
    if view_time.at_ms - tick_ms <= fresh_ms(watched.settings):
        return None
    return f"Not evaluated at {moment_text(view_time.at_ms)}: the last verdict before it is of {moment_text(tick_ms)}."


def _of_moment(moment: ClusterMoment, view_time: ViewTime, firing: Sequence[CurrentAlert]) -> Headline:
    """Return tone and sentence of a tick; the worst of the move and of the alerts decides on the tone."""
    worst = _tone(firing[0]) if firing else Tone.GOOD
    # An info says nothing of what is not known.
    unknown = Tone.UNKNOWN if worst in (Tone.GOOD, Tone.QUIET) else worst
    finish, unread = moment.finish, [s for s in moment.statuses if s.reason is not None]
    too_low = [s for s in moment.statuses if s.too_low]
    is_late = moment.finish is None or moment.replicas_ms < moment.tick_ms
    if too_low and is_late:
        text = f"The throttle of {_subjects(too_low)} is too low: replicas behind it never get in sync."
        return Headline(Tone.CRITICAL, text, view_time)
    # A throttle that was too low for the new replicas of an earlier tick, and is not any more, has been raised.
    if finish is None or (is_late and finish.never):
        if moment.is_moving:
            text = "Partitions are in a reassignment; when they are done is not in the tables yet."
            return Headline(unknown, text, view_time)
        if unread:
            text = f"Nothing is known to move; there is no verdict on {_subjects(unread)}."
            return Headline(unknown, text, view_time)
        text = "No partition is in a reassignment."
        return Headline(Tone.QUIET if worst is Tone.GOOD else worst, text, view_time)
    # What was expected then is not moved on to now.
    text = finish.text(view_time.at_ms if view_time.is_current else moment.tick_ms if is_late else None)
    if finish.never:
        return Headline(Tone.CRITICAL, text, view_time)
    if finish.unknown:
        return Headline(unknown, text, view_time)
    return Headline(worst if worst is not Tone.QUIET else Tone.GOOD, text, view_time)


def _ends_alerts(status: ThrottleStatus, watched: WatchedCluster) -> bool:
    """Return whether a throttle is enough for the alerts on it to end."""
    if status.verdict not in (Verdict.CATCHING_UP, Verdict.IDLE):
        return False
    return bool(watched.recommender().policy.is_enough(status.load, watched.settings.alerts.exit_ratio))


def _is_over(alert: CurrentAlert, moment: ClusterMoment, ends: Collection[str]) -> bool:
    """Return whether a throttle has become enough since its alert, which ends only some ticks later.

    Args:
        alert: a firing alert.
        moment: the tick that is shown.
        ends: subjects whose throttle is enough by that tick.
    """
    event = alert.event
    return event.kind in _THROTTLE_KINDS and event.tick_ms < moment.tick_ms and event.subject in ends


def _subjects(statuses: Sequence[ThrottleStatus]) -> str:
    return ", ".join(status.subject for status in statuses[:_NAMED])


def _tone(alert: CurrentAlert) -> Tone:
    return SEVERITY_TONES[Severity.of(alert.event.severity)]


def _terms(moment: ClusterMoment) -> list[Term]:
    if not moment.replicas or moment.finish is None:
        return []
    remaining = [r.remaining_bytes for r in moment.replicas if not r.in_sync]
    known = [one for one in remaining if one is not None]
    unknown = len(remaining) - len(known)
    # Of no known one, 0 bytes would read as an end.
    left = size_text(sum(known) if known or not unknown else None)
    left += f" and what {unknown} replicas lack" if known and unknown else ""
    partitions = len({replica.name for replica in moment.replicas})
    terms = [
        Term("Partitions moving", f"{partitions} with {moment.finish.replicas} new replicas"),
        Term("Left to copy", left),
    ]
    finish_ms = moment_after(moment.replicas_ms, moment.finish.eta_s)
    # A throttle may have become too low since the tick of the new replicas.
    is_outdated = moment.replicas_ms < moment.tick_ms and any(status.too_low for status in moment.statuses)
    if finish_ms is not None and not moment.finish.never and not moment.finish.unknown and not is_outdated:
        terms.insert(0, Term("Finish", clock_text(finish_ms, moment.replicas_ms)))
    tight = tightest(moment.statuses)
    if tight is not None:
        terms.append(Term("Bottleneck", bottleneck_text(tight)))
    return terms


def tightest(statuses: Sequence[ThrottleStatus]) -> ThrottleStatus | None:
    """Return the broker and role that decides on the finish: one that never ends, or the last; None if none limits."""
    limiting = [s for s in statuses if s.load.limited_replicas]
    never = [s for s in limiting if s.too_low]
    if never:
        return max(never, key=lambda s: s.load.least_required_bytes_per_s - (s.load.throttle_bytes_per_s or 0.0))
    timed = [s for s in limiting if s.eta_s is not None]
    return max(timed, key=lambda s: s.eta_s or 0.0, default=None)


def bottleneck_text(status: ThrottleStatus) -> str:
    """Return what a throttle is, beside what it must exceed."""
    load = status.load
    return (
        f"{status.subject}: throttle {rate_text(load.throttle_bytes_per_s)}, in-sync followers use "
        f"{rate_text(load.in_sync_bytes_per_s)}, all followers require {rate_text(load.required_bytes_per_s)}"
    )


def _commands_of_alert(alert: CurrentAlert) -> Commands | None:
    commands = event_commands(alert.event)
    return Commands(f"Recommended by {alert.event.kind} on {alert.event.subject}", commands) if commands else None


def _commands_of_recommendation(site: Site, address: Address, moment: ClusterMoment) -> Commands | None:
    """Return what to do where a throttle is too low and no alert is firing yet."""
    if not any(status.below_required for status in moment.statuses):
        return None
    advice: Recommendation = site.watched(site.cluster(address)).recommender().raise_throttle(moment.statuses)
    if advice.action is not Action.RAISE_THROTTLE or advice.throttle_bytes_per_s is None:
        return None
    finish = finish_text(vars(advice.finish))
    then = "" if finish is None else f"; the move then finishes in {finish}"
    return Commands(f"Raise the throttle to {rate_text(advice.throttle_bytes_per_s)}{then}", advice.commands)
