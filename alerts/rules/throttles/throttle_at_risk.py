"""Rule ``throttle_at_risk``: the throttle would be too low after the next leader switch."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from headroom.alerts.evidence.throttle_evidence import ThrottleEvidence
from headroom.alerts.finding import Finding, Subject
from headroom.alerts.inputs.migrations import ArrivingWrites, MigrationInputs
from headroom.alerts.inputs.throttle_status import LeadershipRisk, ThrottleStatus
from headroom.alerts.recommendations.recommendation import Recommendation
from headroom.alerts.rules.rule import Assessment, Rule, RuleInputs
from headroom.planning.migration.progress.progress import MigrationProgress
from headroom.schemas.alerts import AlertKind, Severity
from headroom.schemas.keys import Role, TopicPartition
from headroom.schemas.text.amounts import clock_text, join_names, rate_text

_NOT_URGENT = "not urgent: the move goes on as long as no leader switches"
_NOT_URGENT_BEFORE_A_SWITCH = "before the migration switches: the throttle is enough until then, if no leader switches"


@dataclass(frozen=True)
class Takeover:
    """A partition that a broker would lead after a leader switch.

    Attributes:
        topic: topic.
        partition: partition.
        leader: current leader; None if there is none.
    """

    topic: str
    partition: int
    leader: int | None


@dataclass(frozen=True, kw_only=True)
class TakeoverEvidence(ThrottleEvidence):
    """Evidence on a throttle that would be too low after a leader switch.

    Attributes:
        takeover: partition whose leader switch adds most traffic.
        takeover_bytes_per_s: traffic that it adds.
        required_then_bytes_per_s: rate that the throttle would have to exceed.
    """

    takeover: Takeover
    takeover_bytes_per_s: float
    required_then_bytes_per_s: float


@dataclass(frozen=True, kw_only=True)
class ArrivalEvidence(ThrottleEvidence):
    """Evidence on a throttle that would be too low after the switches of migrations.

    Attributes:
        migration: name of the migration that brings most.
        migrations: names of all that bring writes, the one that brings most first.
        arriving_partitions: number of partitions whose writes come to the broker.
        arriving_bytes_per_s: traffic to followers that they add.
        switch_ms: when the first of them switches, epoch milliseconds; None if unknown.
        required_then_bytes_per_s: rate that the throttle would have to exceed.
    """

    migration: str
    migrations: Sequence[str]
    arriving_partitions: int
    arriving_bytes_per_s: float
    switch_ms: int | None
    required_then_bytes_per_s: float


@dataclass(frozen=True)
class _Arrival:
    """Writes that the switches of all migrations bring to a throttled leader.

    Attributes:
        migrations: names of the migrations, the one that brings most first.
        partitions: number of their partitions that the leader's throttle counts.
        write_bytes_per_s: rate at which clients will write to them, beyond what is written to them now.
        bytes_per_s: the same times the followers that are throttled.
        followers: most followers of one partition.
        switch_in_s: seconds until the first of them switches; None if unknown.
    """

    migrations: tuple[str, ...]
    partitions: int
    write_bytes_per_s: float
    bytes_per_s: float
    followers: int
    switch_in_s: float | None


_Risk = tuple[ThrottleStatus, LeadershipRisk | _Arrival, float]


class ThrottleAtRisk(Rule):
    """A broker's throttle would be too low if it led one more moving partition, or once migrations switch to it."""

    kind = AlertKind.THROTTLE_AT_RISK

    def evaluate(self, tick: RuleInputs) -> Assessment:
        """Return a finding for each broker whose throttle would be too low after a switch.

        A switch is that of a leader, so that the broker leads one more moving partition, or that of migrations, whose
        writes come to partitions that the throttle counts. The worse of the two is given. Writes of all migrations
        count together, as those of one migration's partitions do, whenever each of them switches.

        Every in-sync replica may become the leader of its partition. There is no finding while a throttle is too low,
        which matters more, or a required rate is unknown: alerts then keep firing.
        """
        leaders = {status.broker: status for status in tick.statuses if status.role is Role.LEADER}
        if tick.too_low or tick.has_unknown_verdict:
            return Assessment(keep_firing={(self.kind, leader.subject) for leader in leaders.values()})
        unknown = self._unknown_arrivals(tick)
        takeovers = [
            (leader, status.takeover, need)
            for status in tick.statuses
            if status.takeover is not None
            and (leader := leaders.get(status.broker)) is not None
            and (need := _exceeding_rate(leader, status.takeover.bytes_per_s)) is not None
        ]
        arrivals = [
            (leader, arrival, need)
            for leader in leaders.values()
            if (arrival := _arrival(leader, tick.migrations)) is not None
            and (need := _exceeding_rate(leader, arrival.bytes_per_s)) is not None
        ]
        risks = _worst_of_each_leader([*takeovers, *arrivals])
        if not risks:
            return Assessment(keep_firing=unknown)
        recommendation = tick.recommender.raise_to(
            tick.statuses,
            max(need for _, _, need in risks),
            _NOT_URGENT if not arrivals else _NOT_URGENT_BEFORE_A_SWITCH,
        )
        return Assessment([self._finding(*risk, recommendation, tick) for risk in risks], unknown)

    def _unknown_arrivals(self, tick: RuleInputs) -> set[Subject]:
        """Return the alerts on switches of migrations that cannot be evaluated now."""
        partitions = () if tick.migrations is None else tick.migrations.partitions
        unread = {
            partition.migration
            for partition in partitions
            if _is_unread(partition) or partition.target_name is None or _is_list_unread(partition)
        }
        return {
            subject
            for subject, migrations in tick.active_resources.items()
            if subject[0] is self.kind and (tick.migrations is None or not unread.isdisjoint(migrations))
        }

    def _finding(
        self,
        leader: ThrottleStatus,
        risk: LeadershipRisk | _Arrival,
        need_bytes_per_s: float,
        recommendation: Recommendation,
        tick: RuleInputs,
    ) -> Finding:
        throttle = leader.load.throttle_bytes_per_s or 0.0
        too_low = (
            f"its throttle of {rate_text(throttle)} would be {rate_text(math.ceil(need_bytes_per_s - throttle))} too "
            f"low: it would have to send {rate_text(need_bytes_per_s)}"
        )
        evidence: ThrottleEvidence
        if isinstance(risk, LeadershipRisk):
            summary = f"If broker {leader.broker} came to lead {risk.topic}-{risk.partition}, {too_low}"
            evidence = _takeover_evidence(leader, risk, need_bytes_per_s)
        else:
            read = tick.migrations
            at_ms = tick.tick_ms if read is None or read.tick_ms is None else read.tick_ms
            summary = _arrival_text(leader, risk, too_low, at_ms)
            evidence = _arrival_evidence(leader, risk, need_bytes_per_s, at_ms)
        return Finding(
            kind=self.kind,
            subject=leader.subject,
            severity=Severity.INFO,
            summary=summary,
            evidence=evidence,
            recommendation=recommendation,
            hold_s=tick.settings.hold_s,
            cause="throttle at risk",
            weight=need_bytes_per_s - throttle,
        )


def _exceeding_rate(leader: ThrottleStatus, more_bytes_per_s: float) -> float | None:
    """Return the rate that the broker would have to send, bytes/s; None if its throttle exceeds it or is unknown."""
    throttle, required = leader.load.throttle_bytes_per_s, leader.load.required_bytes_per_s
    if throttle is None or required is None or throttle > required + more_bytes_per_s:
        return None
    return required + more_bytes_per_s


def _worst_of_each_leader(risks: Sequence[_Risk]) -> list[_Risk]:
    """Return of each broker the risk that needs the highest rate, in the order of their brokers' first risks."""
    worst: dict[int, _Risk] = {}
    for risk in risks:
        broker = risk[0].broker
        worst[broker] = max(worst.get(broker, risk), risk, key=lambda one: one[2])
    return list(worst.values())


def _arrival(leader: ThrottleStatus, migrations: MigrationInputs | None) -> _Arrival | None:
    """Return what the switches of migrations bring to partitions that a leader's throttle counts; None if nothing."""
    if migrations is None:
        return None
    own = migrations.arriving.get(leader.broker, {})
    coming = {migration: list(writes) for migration, writes in own.items()}
    for migration, writes in _of_evidence(leader, migrations):
        coming.setdefault(migration, []).append(writes)
    if not coming:
        return None
    parts = [part for writes in coming.values() for part in writes]
    return _Arrival(
        migrations=tuple(sorted(coming, key=lambda name: (-_traffic(coming[name]), name))),
        partitions=len(parts),
        write_bytes_per_s=sum(part.bytes_per_s for part in parts),
        bytes_per_s=_traffic(parts),
        followers=max(part.followers for part in parts),
        switch_in_s=min((part.switch_in_s for part in parts if part.switch_in_s is not None), default=None),
    )


def _traffic(parts: Sequence[ArrivingWrites]) -> float:
    """Return what a leader sends to followers of these writes, bytes per second."""
    return sum(part.bytes_per_s * part.followers for part in parts)


def _of_evidence(leader: ThrottleStatus, migrations: MigrationInputs) -> Iterator[tuple[str, ArrivingWrites]]:
    """Yield what comes to the partitions of the evidence, of those of which only that shows what counts them."""
    if not migrations.unplaced:
        return
    for partition in leader.partitions:
        progress = migrations.unplaced.get(TopicPartition(partition.topic, partition.partition))
        if progress is None or progress.write_bytes_per_s is None or not partition.followers:
            continue
        # A mirror writes the same records already, and stops at the switch.
        more = progress.write_bytes_per_s - (partition.write_bytes_per_s or 0.0)
        if more > 0:
            yield progress.migration, ArrivingWrites(more, partition.followers, progress.switch_eta_s)


def _is_unread(partition: MigrationProgress) -> bool:
    """Return whether it is unknown what clients have yet to bring to the target."""
    if partition.brings_writes:
        return partition.left_offsets is None and partition.write_bytes_per_s is None
    return partition.left_offsets is None


def _is_list_unread(partition: MigrationProgress) -> bool:
    """Return whether a leader's list could not be read; a collector of an earlier version names no leader."""
    is_unread = partition.target_leader is not None and partition.throttled_followers is None
    return is_unread and partition.brings_writes


def _switch_ms(arrival: _Arrival, tick_ms: int) -> int | None:
    return None if arrival.switch_in_s is None else tick_ms + round(1000 * arrival.switch_in_s)


def _arrival_text(leader: ThrottleStatus, arrival: _Arrival, too_low: str, tick_ms: int) -> str:
    at_ms = _switch_ms(arrival, tick_ms)
    when = "" if at_ms is None else f" from {clock_text(at_ms, tick_ms)} on"
    first, *others = arrival.migrations
    names = f"migrations {join_names([first, *others])} have" if others else f"migration {first} has"
    return (
        f"Once {names} switched, clients write {rate_text(arrival.write_bytes_per_s)} with "
        f"{arrival.followers} follower(s) to {arrival.partitions} partition(s) of broker {leader.broker}{when}, and "
        f"{too_low}"
    )


def _arrival_evidence(
    leader: ThrottleStatus, arrival: _Arrival, need_bytes_per_s: float, tick_ms: int
) -> ArrivalEvidence:
    return ArrivalEvidence(
        **vars(ThrottleEvidence.of(leader)),
        migration=arrival.migrations[0],
        migrations=arrival.migrations,
        arriving_partitions=arrival.partitions,
        arriving_bytes_per_s=arrival.bytes_per_s,
        switch_ms=_switch_ms(arrival, tick_ms),
        required_then_bytes_per_s=need_bytes_per_s,
    )


def _takeover_evidence(leader: ThrottleStatus, takeover: LeadershipRisk, need_bytes_per_s: float) -> TakeoverEvidence:
    return TakeoverEvidence(
        **vars(ThrottleEvidence.of(leader)),
        takeover=Takeover(takeover.topic, takeover.partition, takeover.leader),
        takeover_bytes_per_s=takeover.bytes_per_s,
        required_then_bytes_per_s=need_bytes_per_s,
    )
