"""The beginning of a run: what forbids it, the topics that the target needs, and the first agreement."""

from __future__ import annotations

import time
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial

from kafka.errors import KafkaError

from headroom.cluster.migration.topic_changes import NewMigrationTopic
from headroom.operations.journal.journalled_change import make_journalled_change
from headroom.operations.migration.clusters import MigrationClusters
from headroom.operations.migration.plan import MigrationPlan, plan_migration
from headroom.operations.migration.running.agreements import JournalledAgreements
from headroom.operations.migration.running.clusters import RunningClusters
from headroom.operations.progress import OnText, ProgressReceiver
from headroom.planning.migration.plan.planned import PlannedPartition, TopicOnBoth
from headroom.planning.migration.readings import MigratingTopic, TopicRules
from headroom.planning.migration.run.seen import RunTerms
from headroom.planning.reassignments.run.journal import JournalStep, StepKind, StepState
from headroom.routing.agreement import create_migrations_topic
from headroom.schemas.config import Settings
from headroom.schemas.errors import HeadroomError
from headroom.schemas.keys import TopicPartition
from headroom.schemas.migrations import MIGRATIONS_TOPIC, MigrationMethod, PartitionAgreement
from headroom.schemas.text.amounts import join_names

COMMAND = "migration run"
_MAX_REPLICAS = 3
_PATIENCE_S, _PAUSE_S = 15.0, 0.2
_MIN_INSYNC = "min.insync.replicas"
# The others need a mirror or a link, which creates them.
_CREATED_BY_RUN = (MigrationMethod.ROUTED, MigrationMethod.DRAINED)


@dataclass(frozen=True)
class Preparation:
    """What a run does before its loop.

    Attributes:
        plan: plan of the topics that nothing was agreed about; None without such topics.
        created: topics that the target does not have.
    """

    plan: MigrationPlan | None = None
    created: tuple[NewMigrationTopic, ...] = ()

    def names(self) -> set[TopicPartition]:
        """Return the partitions that are to be agreed about."""
        return set() if self.plan is None else {planned.name for planned in self.plan.forecast.partitions}


def new_topics(topics: Sequence[str], agreed: Iterable[PartitionAgreement], terms: RunTerms) -> list[str]:
    """Return the topics that nothing was agreed about, in their order.

    Args:
        topics: all topics of the run.
        agreed: all that was agreed on this cluster.
        terms: what the run is asked for.

    Raises:
        HeadroomError: a topic belongs to another migration, or has another method.
    """
    known: set[str] = set()
    for one in agreed:
        if one.topic not in topics:
            continue
        known.add(one.topic)
        if one.migration != terms.migration:
            rule = f"belongs to the migration {one.migration} already"
            raise HeadroomError(f"topic {one.topic}", rule, f"Continue that one: --name {one.migration}.")
        if one.method != terms.method.value:
            rule = f"was agreed to migrate by the method {one.method}"
            remedy = f"Give --method {one.method}. If nothing was started: headroom migration cancel, then run again."
            raise HeadroomError(f"topic {one.topic}", rule, remedy)
    return [topic for topic in dict.fromkeys(topics) if topic not in known]


def partly_agreed(
    running: RunningClusters, topics: Sequence[str], agreed: Iterable[PartitionAgreement]
) -> dict[str, set[int]]:
    """Return the partitions that were agreed about, of topics that have others too: withdrawn, or added since.

    Args:
        running: the two clusters; of an origin that does not answer, or is shielded, there are none.
        topics: all topics of the run.
        agreed: all that was agreed on this cluster.
    """
    own = {topic: [one for one in agreed if one.topic == topic] for topic in dict.fromkeys(topics)}
    called = {
        topic: of_topic
        for topic, of_topic in own.items()
        if of_topic and not any(one.shielded or one.origin_dropped for one in of_topic)
    }
    if not called:
        return {}
    try:
        on_origin = running.origin.topics()
    except HeadroomError:
        return {}
    partly = {}
    for topic, of_topic in called.items():
        there, first = on_origin.topics.get(topic), of_topic[0]
        # One that was replaced ends the run, later.
        is_same = on_origin.cluster_id == first.origin_cluster_id and there and there.topic_id == first.origin_topic_id
        known = {one.partition for one in of_topic}
        if there and is_same and there.leaders.keys() - known:
            partly[topic] = known
    return partly


def require_all_agreed(own: Mapping[TopicPartition, PartitionAgreement], topics: Mapping[str, MigratingTopic]) -> None:
    """Check that topics of the origin have no partition that nothing was agreed about.

    Args:
        own: partitions of the migration.
        topics: their topics on the origin.

    Raises:
        HeadroomError: one has, because it was added since.
    """
    for topic, described in topics.items():
        others = [
            str(TopicPartition(topic, p)) for p in sorted(described.leaders) if TopicPartition(topic, p) not in own
        ]
        if others:
            rule = f"has partitions on the origin that nothing was agreed about: {join_names(others)}"
            remedy = "Give the topic as many on the target, and run the command again."
            raise HeadroomError(f"topic {topic}", rule, remedy)


def plan_preparation(
    running: RunningClusters,
    settings: Settings,
    topics: Sequence[str],
    terms: RunTerms,
    progress: ProgressReceiver,
    sleep: Callable[[float], object],
    clock_ms: Callable[[], int],
    agreed: Mapping[str, Collection[int]] | None = None,
) -> Preparation:
    """Return what has to be done for topics that nothing was agreed about; nothing is changed.

    Args:
        running: the two clusters.
        settings: all settings.
        topics: the topics.
        terms: what the run is asked for.
        progress: gets the steps.
        sleep: waits for the given seconds.
        clock_ms: time now, epoch milliseconds.
        agreed: partitions that were agreed about already, by topic.

    Raises:
        HeadroomError: no router is named for routed clients, a topic is not on the origin, or a cluster did not answer.
    """
    if not topics:
        return Preparation()
    if terms.method is MigrationMethod.ROUTED and not terms.routers:
        rule = "has no routers, so that nothing shows that all clients keep to the end offset"
        remedy = "Name every process that uses headroom.routing: --router NAME, as in its RoutedProducer or Consumer."
        raise HeadroomError(f"migration {terms.migration}", rule, remedy)
    clusters = running.both()
    require_cluster_ids(clusters)
    plan = plan_migration(clusters, settings, topics, terms.method, progress, sleep, clock_ms, agreed or {})
    missing = [both for both in plan.topics.values() if both.target is None]
    return Preparation(plan, _new_topics(clusters, missing) if terms.method in _CREATED_BY_RUN else ())


def require_cluster_ids(clusters: MigrationClusters) -> tuple[str, str]:
    """Return the ids of both clusters.

    Raises:
        HeadroomError: one is unknown.
    """
    ids = clusters.origin_topics.cluster_id, clusters.target_topics.cluster_id
    for cluster, cluster_id in zip((clusters.origin, clusters.target), ids, strict=True):
        if cluster_id is None:
            raise HeadroomError(cluster.subject, "reports no cluster id", "See that its brokers are up; run it again.")
    return str(ids[0]), str(ids[1])


def _new_topics(clusters: MigrationClusters, missing: Sequence[TopicOnBoth]) -> tuple[NewMigrationTopic, ...]:
    settings = clusters.origin.copied_settings([both.topic for both in missing]) if missing else {}
    brokers = clusters.target.broker_count()
    return tuple(_new_topic(both, settings.get(both.topic, {}), brokers) for both in missing)


def _new_topic(both: TopicOnBoth, settings: Mapping[str, str], brokers: int) -> NewMigrationTopic:
    replicas = max(1, min(both.origin.least_replicas, brokers))
    own = dict(settings)
    # With more in-sync replicas than there are, no write would be acknowledged.
    if own.get(_MIN_INSYNC, "").isdigit() and int(own[_MIN_INSYNC]) > replicas:
        own[_MIN_INSYNC] = str(replicas)
    return NewMigrationTopic(both.topic, len(both.origin.leaders), replicas, own)


def require_allowed(plan: MigrationPlan | None) -> None:
    """Check that nothing forbids a migration.

    Raises:
        HeadroomError: something does; the first finding.
    """
    forbidding = [] if plan is None else [finding for finding in plan.forecast.findings if finding.forbids]
    if forbidding:
        first, rest = forbidding[0], len(forbidding) - 1
        more = f" and {rest} more findings forbid the migration" if rest else ""
        raise HeadroomError(first.subject, f"{first.rule}{more}", first.remedy)


def create_agreement_topic(running: RunningClusters, settings: Settings, on_note: OnText) -> bool:
    """Create the agreement topic on the target unless it exists, and return whether it was created.

    Args:
        running: the two clusters.
        settings: all settings.
        on_note: gets a sentence if the change is not in the journal.

    Raises:
        HeadroomError: it was not created, or another one of its name does not keep what is agreed.
    """
    target = running.target
    if MIGRATIONS_TOPIC in (on_target := target.topics()).names:
        _require_kept(target.rules([MIGRATIONS_TOPIC]).get(MIGRATIONS_TOPIC), on_target.topics[MIGRATIONS_TOPIC])
        return False
    replicas = min(_MAX_REPLICAS, target.broker_count())
    step = _topic_step(MIGRATIONS_TOPIC, target.subject, None, 1)
    make_journalled_change(settings, COMMAND, [step], lambda: _create_agreement_topic(running, replicas), on_note)
    return True


def _require_kept(rules: TopicRules | None, topic: MigratingTopic) -> None:
    subject = f"topic {MIGRATIONS_TOPIC}"
    if len(topic.leaders) != 1:
        rule = f"has {len(topic.leaders)} partitions, so the order of its records is unknown"
        raise HeadroomError(subject, rule, "Delete it, if nothing is agreed there, and run the command again.")
    if rules is not None and rules.cleanup_policy is not None and (rules.deletes() or not rules.compacts()):
        rule = f"would forget what is agreed: its cleanup.policy is {rules.cleanup_policy}"
        raise HeadroomError(subject, rule, "Set its cleanup.policy to compact, and run the command again.")


def _create_agreement_topic(running: RunningClusters, replicas: int) -> None:
    try:
        create_migrations_topic(running.target.admin(), replicas)
        running.target.admin().wait_for_topics([MIGRATIONS_TOPIC])
    # kafka-python raises a bare RuntimeError if the cluster has no controller.
    except (KafkaError, RuntimeError) as error:
        rule = f"was not created on the {running.target.subject} ({type(error).__name__})"
        remedy = "Grant CREATE on it to this user, then run the command again."
        raise HeadroomError(f"topic {MIGRATIONS_TOPIC}", rule, remedy) from None


def prepare(
    running: RunningClusters,
    settings: Settings,
    preparation: Preparation,
    terms: RunTerms,
    agreements: JournalledAgreements,
    on_note: OnText,
) -> None:
    """Create the topics that are missing, and agree about all partitions of a plan, in one change.

    Args:
        running: the two clusters.
        settings: all settings.
        preparation: what has to be done.
        terms: what the run is asked for.
        agreements: writer of the migration.
        on_note: gets a sentence if a change is not in the journal.

    Raises:
        HeadroomError: something forbids the migration, or a change failed.
    """
    plan = preparation.plan
    if plan is None:
        return
    require_allowed(plan)
    target = running.target
    for topic in preparation.created:
        step = _topic_step(topic.name, target.subject, None, topic.partitions)
        make_journalled_change(settings, COMMAND, [step], partial(target.create_topic, topic), on_note)
    clusters = _clusters_with(running, [topic.name for topic in preparation.created])
    on_both = clusters.mirrored_topics(list(plan.topics), terms.method is MigrationMethod.MIRRORED, on_note)
    clusters.require_same_topics(plan.topics.values())
    number, ids = agreements.next_number(), require_cluster_ids(clusters)
    agreements.write([_agreement(one, on_both, ids, terms, number, plan) for one in plan.forecast.partitions])


def _clusters_with(running: RunningClusters, created: Sequence[str]) -> MigrationClusters:
    """Return both clusters once the target shows the created topics: a broker may know them a moment later."""
    until_s = time.monotonic() + _PATIENCE_S
    while True:
        clusters = running.both()
        if clusters.target_topics.names.issuperset(created) or time.monotonic() > until_s:
            return clusters
        time.sleep(_PAUSE_S)


def _agreement(
    planned: PlannedPartition,
    topics: Mapping[str, TopicOnBoth],
    ids: tuple[str, str],
    terms: RunTerms,
    number: int,
    plan: MigrationPlan,
) -> PartitionAgreement:
    both = topics[planned.name.topic]
    is_routed = terms.method is MigrationMethod.ROUTED
    return PartitionAgreement(
        terms.migration,
        number,
        *ids,
        *planned.name,
        both.origin.topic_id,
        None if both.target is None else both.target.topic_id,
        # Without routers it is known only once producers have left the origin.
        end_offset=planned.end_offset if is_routed else None,
        # Producers that are drained begin there as they leave the origin: before the start.
        target_base_offset=_empty_end(planned) if terms.method is MigrationMethod.DRAINED else None,
        method=terms.method.value,
        routers=terms.routers if is_routed else (),
        origin_position=planned.log.end,
        origin_offsets_per_s=planned.write_offsets_per_s,
        origin_read_ms=plan.read_ms,
    )


def _empty_end(planned: PlannedPartition) -> int | None:
    """Return the log end of a target that is empty: of one that was just created, 0."""
    return 0 if planned.target is None else planned.target.end


def _topic_step(name: str, subject: str, before: int | None, after: int | None) -> JournalStep:
    texts = (None if count is None else str(count) for count in (before, after))
    return JournalStep(StepKind.TOPIC, StepState.INTENDED, f"topic {name} on {subject}", *texts)


def drop_steps(topics: Mapping[str, int], subject: str) -> list[JournalStep]:
    """Return the journal's steps for topics that are deleted, by name with their number of partitions."""
    return [_topic_step(name, subject, count, None) for name, count in topics.items()]
