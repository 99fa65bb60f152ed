"""A run of a migration: small steps, each of which follows from the agreement topic and both clusters alone."""

from __future__ import annotations

import threading
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace

from headroom.operations.migration.running.agreements import (
    READ_S,
    JournalledAgreements,
    agreement_reader,
    journalled_agreements,
    next_number,
    own_agreements,
)
from headroom.operations.migration.running.clusters import RunningClusters
from headroom.operations.migration.running.dropping import ComparisonStoppedError, drop, droppable, without_origin
from headroom.operations.migration.running.preparation import (
    COMMAND,
    Preparation,
    create_agreement_topic,
    new_topics,
    partly_agreed,
    plan_preparation,
    prepare,
    require_all_agreed,
    require_allowed,
)
from headroom.operations.migration.running.progress import migration_note, step_line
from headroom.operations.migration.running.status import EvaluatedPartition, migration_status
from headroom.operations.migration.running.watch import MigrationWatch, SeenMigration, UnansweredError
from headroom.operations.progress import OnText, ProgressReceiver
from headroom.planning.migration.agreement import agreed_numbers
from headroom.planning.migration.run.next_step import RunGoal, is_done, next_step
from headroom.planning.migration.run.seen import RunStep, RunTerms
from headroom.routing.agreement import MigrationFencedError
from headroom.schemas.config import Settings
from headroom.schemas.errors import HeadroomError
from headroom.schemas.keys import TopicPartition
from headroom.schemas.migrations import PartitionAgreement

# Interval of two looks, and how often in a row the target may fail before the run ends.
_POLL_S, _MOST_FAILURES = 1.0, 60


@dataclass(frozen=True)
class MigrationRunRequest:
    """What a run is asked for.

    Attributes:
        topics: names on the origin.
        terms: name, method, routers, and what may be given up.
        goal: how far it brings the partitions.
        drop: whether the origin's topics are deleted in the end.
    """

    topics: Sequence[str]
    terms: RunTerms
    goal: RunGoal = RunGoal.MIGRATED
    drop: bool = False


@dataclass(frozen=True)
class MigrationPreview:
    """What a run would do.

    Attributes:
        preparation: what comes before its loop.
        agreements: partitions that were agreed about.
        seen: both clusters, of these; None without any.
        steps: their next steps.
    """

    preparation: Preparation
    agreements: Mapping[TopicPartition, PartitionAgreement]
    seen: SeenMigration | None
    steps: Mapping[TopicPartition, RunStep]


@dataclass(frozen=True)
class MigrationRunResult:
    """How a run has ended.

    Attributes:
        request: what it was asked for.
        agreements: partitions, as they were agreed about in the end.
        seen: both clusters, as they were read last; None if the run ended before that.
        dropped: topics of the origin that were deleted.
        stopped: whether a signal ended it.
        error: why it ended before its goal; None if it did not, or by a signal.
    """

    request: MigrationRunRequest
    agreements: Mapping[TopicPartition, PartitionAgreement]
    seen: SeenMigration | None = None
    dropped: tuple[str, ...] = ()
    stopped: bool = False
    error: HeadroomError | None = None


def preview_run(
    running: RunningClusters,
    settings: Settings,
    request: MigrationRunRequest,
    watch: MigrationWatch,
    progress: ProgressReceiver,
    stop: threading.Event,
) -> MigrationPreview:
    """Return what a run would do; nothing is changed.

    Args:
        running: the two clusters.
        settings: all settings.
        request: what the run is asked for.
        watch: reads both clusters.
        progress: gets the steps.
        stop: ends waits when set.

    Raises:
        HeadroomError: a topic belongs to another migration, or a cluster did not answer.
    """
    with agreement_reader(settings, running.target.topics().names) as reader:
        agreed = [] if reader is None else list(reader.agreements.values())
        begun = new_topics(request.topics, agreed, request.terms), partly_agreed(running, request.topics, agreed)
        preparation = _plan_partitions(running, settings, request, begun, watch, progress, stop)
        name = request.terms.migration
        own = {} if reader is None else _of_topics(own_agreements(reader, name), request.topics)
        if reader is None or not own:
            return MigrationPreview(preparation, own, None, {})
        seen = watch.see(own, lambda: agreed_numbers(reader.reports, name))
        return MigrationPreview(preparation, own, seen, _steps(own, seen, request, next_number(reader, name)))


def run_migration(
    running: RunningClusters,
    settings: Settings,
    request: MigrationRunRequest,
    watch: MigrationWatch,
    progress: ProgressReceiver,
    stop: threading.Event,
    on_note: OnText,
) -> MigrationRunResult:
    """Bring the partitions of a migration to their goal, step by step; run again, it continues.

    Args:
        running: the two clusters.
        settings: all settings.
        request: what the run is asked for.
        watch: reads both clusters.
        progress: gets the steps.
        stop: ends the run when set.
        on_note: gets a sentence if a change is not in the journal.

    Raises:
        HeadroomError: the run could not begin.
    """
    terms = request.terms
    with agreement_reader(settings, running.target.topics().names) as reader:
        agreed = [] if reader is None else list(reader.agreements.values())
    fresh = new_topics(request.topics, agreed, terms)
    begun = fresh, partly_agreed(running, request.topics, agreed)
    preparation = _plan_partitions(running, settings, request, begun, watch, progress, stop)
    require_allowed(preparation.plan)
    if stop.is_set():
        return MigrationRunResult(request, {}, stopped=True)
    if create_agreement_topic(running, settings, on_note):
        progress.print_line("Created the agreement topic on the target")
    with journalled_agreements(settings, terms.migration, COMMAND, on_note) as agreements:
        # Another run may have agreed about them until this one was the only writer.
        now = agreements.reader.agreements.values()
        if new_topics(request.topics, now, terms) != fresh or preparation.names() & {one.name for one in now}:
            raise HeadroomError(f"migration {terms.migration}", "was begun by another run", "Run the command again.")
        prepare(running, settings, preparation, terms, agreements, on_note)
        loop = _RunLoop(request, agreements, watch, progress, stop)
        with progress.step(f"Migration {terms.migration}: {', '.join(request.topics)}, until {request.goal.value}"):
            result = loop.run()
        if result.error is not None or result.stopped or not request.drop:
            return result

        def read_status(topics: Collection[str]) -> Sequence[EvaluatedPartition]:
            clock_ms = watch.clock_ms
            return migration_status(
                running, settings, topics, terms.migration, progress, stop.wait, clock_ms
            ).partitions

        return _drop_topics(running, settings, result, agreements, read_status, progress, stop, on_note)


def _plan_partitions(
    running: RunningClusters,
    settings: Settings,
    request: MigrationRunRequest,
    begun: tuple[Sequence[str], Mapping[str, Collection[int]]],
    watch: MigrationWatch,
    progress: ProgressReceiver,
    stop: threading.Event,
) -> Preparation:
    fresh, partly = begun
    return plan_preparation(
        running, settings, [*fresh, *partly], request.terms, progress, stop.wait, watch.clock_ms, partly
    )


def _drop_topics(
    running: RunningClusters,
    settings: Settings,
    result: MigrationRunResult,
    agreements: JournalledAgreements,
    read_status: Callable[[Collection[str]], Iterable[EvaluatedPartition]],
    progress: ProgressReceiver,
    stop: threading.Event,
    on_note: OnText,
) -> MigrationRunResult:
    try:
        topics = droppable(running, settings, result.agreements, read_status, progress, stop, on_note)
        if stop.is_set():
            return replace(result, stopped=True)
        drop(running, settings, topics, on_note)
        # What is deleted is not watched any more.
        if over := without_origin(running, result.agreements, topics):
            agreements.write(over)
    except ComparisonStoppedError:
        return replace(result, stopped=True)
    except HeadroomError as error:
        return MigrationRunResult(result.request, result.agreements, result.seen, error=error)
    return MigrationRunResult(
        result.request, _of_topics(agreements.own(), result.request.topics), result.seen, tuple(topics)
    )


def _of_topics(
    own: Mapping[TopicPartition, PartitionAgreement], topics: Sequence[str]
) -> dict[TopicPartition, PartitionAgreement]:
    return {name: one for name, one in own.items() if name.topic in topics}


def _steps(
    own: Mapping[TopicPartition, PartitionAgreement], seen: SeenMigration, request: MigrationRunRequest, number: int
) -> dict[TopicPartition, RunStep]:
    return {
        name: next_step(one, seen.partitions[name], seen.agreed, request.terms, number)
        for name, one in own.items()
        if not is_done(one, seen.partitions[name], request.terms, request.goal)
    }


class _RunLoop:
    """Looks at both clusters, and writes what follows, until all partitions are where they are to be."""

    def __init__(
        self,
        request: MigrationRunRequest,
        agreements: JournalledAgreements,
        watch: MigrationWatch,
        progress: ProgressReceiver,
        stop: threading.Event,
    ) -> None:
        self._request = request
        self._agreements = agreements
        self._watch = watch
        self._progress = progress
        self._stop = stop
        self._seen: SeenMigration | None = None
        self._failures = 0
        self._is_closed = False
        self._names = frozenset(self._own())

    def run(self) -> MigrationRunResult:
        while True:
            try:
                is_done = self._turn()
            except HeadroomError as error:
                return self._result(error=error)
            if is_done:
                return self._result()
            if self._stop.wait(_POLL_S):
                return self._result(stopped=True)

    def _turn(self) -> bool:
        """Take the steps that follow from one look, and return whether the goal is reached."""
        seen = self._look()
        if seen is None:
            return False
        own = self._own()
        self._require_all(own, seen)
        steps = _steps(own, seen, self._request, self._agreements.next_number())
        changes = [step.after for step in steps.values() if step.after is not None]
        if changes and self._write(changes):
            for after in changes:
                self._progress.print_line(step_line(own[after.name], after))
        refusal = next((step.refusal for step in steps.values() if step.refusal is not None), None)
        if refusal is not None:
            raise refusal
        own = self._own()
        self._progress.note(migration_note(own, seen, steps))
        return all(
            is_done(own[name], at, self._request.terms, self._request.goal) for name, at in seen.partitions.items()
        )

    def _require_all(self, own: Mapping[TopicPartition, PartitionAgreement], seen: SeenMigration) -> None:
        """Check that the migration has all partitions that it had, and those that its topics have on the origin."""
        if gone := sorted(self._names - own.keys()):
            more = f" and {len(gone) - 1} more partitions are" if len(gone) > 1 else " is"
            rule = f"{gone[0]}{more} not in it any more: withdrawn, or agreed about by another migration"
            remedy = "See headroom migration status, and run the command again if they are to migrate."
            raise HeadroomError(f"migration {self._request.terms.migration}", rule, remedy)
        require_all_agreed(own, seen.origin_topics or {})

    def _look(self) -> SeenMigration | None:
        """Return what both clusters show; None if the target did not answer."""
        reader, name = self._agreements.reader, self._request.terms.migration

        def read_agreed() -> Mapping[str, int]:
            try:
                reader.read_to_end(READ_S)
            except HeadroomError as error:
                # A record that cannot be read stays one.
                raise error if reader.failure is not None else UnansweredError.of(error) from None
            return agreed_numbers(reader.reports, name)

        try:
            if self._is_closed:
                self._agreements.open()
                self._is_closed = False
            self._seen = self._watch.see(self._own(), read_agreed)
        except UnansweredError as error:
            self._note_failure(error)
            return None
        except HeadroomError as error:
            if not self._is_closed:
                raise
            self._note_failure(error)
            return None
        self._failures = 0
        return self._seen

    def _write(self, changes: Sequence[PartitionAgreement]) -> bool:
        """Write changes, and return whether they are written; if not, they are read before the next look."""
        try:
            self._agreements.write(changes)
        except MigrationFencedError:
            raise
        except HeadroomError as error:
            # It may be written: it is read again by a new writer before anything follows from it.
            self._is_closed = True
            self._note_failure(error)
            return False
        return True

    def _note_failure(self, error: HeadroomError) -> None:
        self._failures += 1
        if self._failures >= _MOST_FAILURES:
            raise error
        self._progress.note(f"tried again: {error}")

    def _own(self) -> dict[TopicPartition, PartitionAgreement]:
        return _of_topics(self._agreements.own(), self._request.topics)

    def _result(self, stopped: bool = False, error: HeadroomError | None = None) -> MigrationRunResult:
        return MigrationRunResult(self._request, self._own(), self._seen, stopped=stopped, error=error)
