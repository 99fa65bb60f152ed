"""Rule ``throttle_left_behind``: nothing moves, and rates or throttled replica lists are still set."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import dataclass

from headroom.alerts.evidence.evidence import Evidence
from headroom.alerts.finding import Finding
from headroom.alerts.inputs.throttle_status import ThrottleStatus
from headroom.alerts.rules.rule import Assessment, Rule, RuleInputs
from headroom.alerts.rules.throttles.leftovers import clear_throttle, log_dirs_rates, owners_of, resting_lists
from headroom.planning.reassignments.run.owners import ThrottleOwner
from headroom.schemas.alerts import AlertKind, Severity
from headroom.schemas.keys import Role
from headroom.schemas.text.amounts import join_names, rate_text

_SUBJECT = "throttles"


@dataclass(frozen=True, kw_only=True)
class LeftoverEvidence(Evidence):
    """Evidence on rates and throttled replica lists that are still set; the throttle is the highest rate.

    Attributes:
        brokers: brokers with a rate.
        cluster_default: whether the rate of any of them is the cluster-wide default.
        listed_partitions: listed partitions, as ``topic-partition``; truncated.
        listed_partition_count: number of listed partitions.
        listed_topics: topics with a list; truncated.
        listed_topic_count: number of these topics.
        log_dirs_throttle_brokers: brokers with a broker-level throttle for moves between log directories.
        owners: commands that set them, by the journal of changes; empty if unknown.
    """

    brokers: Sequence[int]
    cluster_default: bool
    listed_partitions: Sequence[str]
    listed_partition_count: int
    listed_topics: Sequence[str]
    listed_topic_count: int
    log_dirs_throttle_brokers: Sequence[int]
    owners: Sequence[ThrottleOwner] = ()


class ThrottleLeftBehind(Rule):
    """Rates or throttled replica lists are still set although nothing moves.

    Together they slow down the next replica that has to catch up, as after a broker restart. One without the other
    limits nothing. A cluster-wide default rate alone is not a leftover, because no move sets it.
    """

    kind = AlertKind.THROTTLE_LEFT_BEHIND

    def evaluate(self, tick: RuleInputs) -> Assessment:
        """Return a finding if nothing moves and something is still set; unread rates keep the alert firing."""
        if tick.has_moves:
            return Assessment()
        listed = resting_lists(tick.statuses)
        rated = [
            status
            for status in tick.statuses
            if status.load.throttle_bytes_per_s is not None and (listed or status.throttle_source != "default")
        ]
        findings = [self._finding(rated, listed, tick)] if rated or listed else []
        is_unread = any(
            status.alive and status.throttle_source is None and status.load.throttle_bytes_per_s is None
            for status in tick.statuses
        )
        return Assessment(findings, {(self.kind, _SUBJECT)} if is_unread else set())

    def _finding(self, rated: Sequence[ThrottleStatus], listed: Collection[str], tick: RuleInputs) -> Finding:
        statuses = tick.statuses
        brokers = sorted({status.broker for status in rated})
        names = sorted({p.name for status in statuses for p in status.partitions if p.followers and not p.moving})
        count, owners = _resting_count(statuses, names), owners_of(tick)
        return Finding(
            kind=self.kind,
            subject=_SUBJECT,
            severity=Severity.WARNING,
            summary=_summary(rated, brokers, listed, names, count) + _set_by(owners),
            evidence=LeftoverEvidence(
                throttle_bytes_per_s=max((s.load.throttle_bytes_per_s or 0.0 for s in rated), default=None),
                brokers=brokers,
                cluster_default=any(status.throttle_source == "default" for status in rated),
                listed_partitions=names,
                listed_partition_count=count,
                listed_topics=sorted(listed),
                listed_topic_count=max((status.resting_topic_count for status in statuses), default=0),
                log_dirs_throttle_brokers=log_dirs_rates(statuses),
                owners=owners,
            ),
            recommendation=clear_throttle(
                tick,
                "remove what is left, or replicas that fall behind later catch up no faster than this"
                if rated and listed
                else "remove what is left: it limits nothing as it is, but together with what a later move sets",
            ),
            hold_s=tick.settings.left_behind_s,
        )


def _summary(
    rated: Sequence[ThrottleStatus], brokers: Sequence[int], listed: Collection[str], names: Sequence[str], count: int
) -> str:
    parts = []
    if rated:
        rates = sorted({status.load.throttle_bytes_per_s or 0.0 for status in rated})
        span = rate_text(rates[0]) if len(rates) == 1 else f"{rate_text(rates[0])} to {rate_text(rates[-1])}"
        parts.append(f"a throttle of {span} on broker(s) {join_names([str(b) for b in brokers], most=10)}")
    if listed:
        # A list may contain only replicas that do not fetch now, as those of a broker that is down.
        entries = f"that name {join_names(names, count)}" if names else f"of {join_names(sorted(listed))}"
        parts.append(f"throttled replica lists {entries}")
    return f"No reassignment is running, but there is still {' and '.join(parts)}"


def _set_by(owners: Sequence[ThrottleOwner]) -> str:
    if not owners:
        return ""
    states = [owner.state_text(moves=False) for owner in owners]
    names = [f"{owner}{', which ' if state else ''}{state}" for owner, state in zip(owners, states, strict=True)]
    return f"; set by {join_names(names, most=2)}"


def _resting_count(statuses: Sequence[ThrottleStatus], names: Sequence[str]) -> int:
    """Return the number of listed partitions that do not move."""
    # Counted on leaders, because each partition has one leader and a follower list may contain only some replicas.
    led = sum(status.resting_listed_partitions for status in statuses if status.role is Role.LEADER)
    return max(led, len(names), *(status.resting_listed_partitions for status in statuses), 0)
