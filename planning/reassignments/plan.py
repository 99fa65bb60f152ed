"""A reassignment plan: target replicas of partitions, in the format of ``kafka-reassign-partitions.sh``, version 1."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Collection, Iterable, Iterator, Mapping
from dataclasses import dataclass
from functools import cached_property
from hashlib import sha256
from typing import Any

from headroom.schemas.errors import HeadroomError
from headroom.schemas.keys import TopicPartition
from headroom.schemas.quantities import is_id
from headroom.schemas.text.amounts import join_names
from headroom.schemas.text.json_text import parse_json

PLAN_VERSION = 1
# A partition and the replicas that it is to have.
Target = tuple[TopicPartition, tuple[int, ...]]
# Digits of the two parts of a fingerprint.
_PLAN_DIGITS, _REPLICAS_DIGITS = 16, 8
# Kafka's text for "the broker chooses the log directory".
ANY_LOG_DIR = "any"
_FIX = "Correct the file; its format is that of kafka-reassign-partitions.sh."
_SHOWN_NAMES = 5
_KEYS = {"topic", "partition", "replicas", "log_dirs"}
# Headings of the output of kafka-reassign-partitions.sh --generate.
_CURRENT_HEADING = "Current partition replica assignment"
_PROPOSED_HEADING = "Proposed partition reassignment configuration"


@dataclass(frozen=True, slots=True)
class TargetAssignment:
    """Replicas that one partition is to have.

    Attributes:
        name: topic and number of the partition.
        replicas: target replicas; the first is the preferred leader.
        log_dirs: log directory of each target replica, ``any`` where the broker chooses; None: not given.
    """

    name: TopicPartition
    replicas: tuple[int, ...]
    log_dirs: tuple[str, ...] | None = None

    @property
    def named_log_dirs(self) -> Mapping[int, str]:
        """The log directories by broker, in the order of the replicas; without ``any``, which is no name."""
        if self.log_dirs is None:
            return {}
        by_broker = zip(self.replicas, self.log_dirs, strict=True)
        return {broker: path for broker, path in by_broker if path != ANY_LOG_DIR}

    def as_json(self) -> dict[str, Any]:
        """Return the entry of the plan file."""
        topic, partition = self.name
        entry: dict[str, Any] = {"topic": topic, "partition": partition, "replicas": list(self.replicas)}
        return entry if self.log_dirs is None else {**entry, "log_dirs": list(self.log_dirs)}


@dataclass(frozen=True)
class ReassignmentPlan:
    """Target replicas of partitions, each partition once.

    Attributes:
        assignments: the target replicas, in the order of the file.
    """

    assignments: tuple[TargetAssignment, ...]

    def __iter__(self) -> Iterator[TargetAssignment]:
        """Iterate over the target replicas."""
        return iter(self.assignments)

    def __len__(self) -> int:
        """Return the number of partitions."""
        return len(self.assignments)

    @cached_property
    def by_name(self) -> Mapping[TopicPartition, TargetAssignment]:
        """The target replicas by partition."""
        return {assignment.name: assignment for assignment in self.assignments}

    @property
    def targets(self) -> frozenset[Target]:
        """The target replicas as a set."""
        return frozenset((assignment.name, assignment.replicas) for assignment in self.assignments)

    def without_passed(
        self, later: Collection[Target], replicas: Mapping[TopicPartition, tuple[int, ...]]
    ) -> ReassignmentPlan:
        """Return the plan without the partitions that have the target replicas of a later batch already.

        Carried out again, an earlier batch would move them back.

        Args:
            later: target replicas of the later batches.
            replicas: replicas of each partition, while it moves those after that; a missing partition stays.
        """
        return ReassignmentPlan(tuple(a for a in self if (a.name, replicas.get(a.name)) not in later))

    def fingerprint(
        self, topic_ids: Mapping[str, str], before: Mapping[TopicPartition, tuple[int, ...]] | None = None
    ) -> str:
        """Return a digest of the assignments and of the ids of their topics, and a second one of the present replicas.

        It does not depend on the order of the partitions. A topic that was deleted and made again has another id, and
        so the plan another fingerprint. So has a plan whose partitions have other replicas than when it was estimated.

        Args:
            topic_ids: id of each topic; a missing one counts as unknown.
            before: replicas of each partition before the plan; None: the digest of the plan alone, which does not
                change while it is carried out.
        """
        of_plan = _digest(
            (*a.name, list(a.replicas), list(a.log_dirs or ()), topic_ids.get(a.name.topic, ""))
            for a in self.assignments
        )[:_PLAN_DIGITS]
        if before is None:
            return of_plan
        of_replicas = _digest((*a.name, list(before.get(a.name, ()))) for a in self.assignments)
        return f"{of_plan}-{of_replicas[:_REPLICAS_DIGITS]}"


@dataclass(frozen=True)
class BatchNumbers:
    """Numbers of the batches of a run, which may carry out one batch of a proposal.

    Attributes:
        first: number of its first batch.
        total: number of all batches; None: those of the run.
    """

    first: int = 1
    total: int | None = None


def plan_part(fingerprint: str) -> str:
    """Return the part of a fingerprint that does not depend on the present replicas."""
    return fingerprint.partition("-")[0]


def _digest(rows: Iterable[tuple[Any, ...]]) -> str:
    return sha256(json.dumps(sorted(rows), separators=(",", ":")).encode()).hexdigest()


def plan_json(assignments: Iterable[TargetAssignment]) -> dict[str, Any]:
    """Return the object of a plan file, which ``kafka-reassign-partitions.sh`` reads too."""
    return {"version": PLAN_VERSION, "partitions": [assignment.as_json() for assignment in assignments]}


def plan_text(assignments: Iterable[TargetAssignment]) -> str:
    """Return the text of a plan file."""
    return json.dumps(plan_json(assignments), separators=(",", ":")) + "\n"


def proposed_part(text: str, subject: str) -> str | None:
    """Return the proposed plan in the output of ``kafka-reassign-partitions.sh --generate``; None for other texts.

    The tool prints two plans under a heading each: the current replicas first, for a rollback, and then the proposal.

    Args:
        text: contents of the file.
        subject: name of the file, for errors.

    Raises:
        HeadroomError: the text has the current replicas alone, or more than one output.

    Source: Kafka 4.3.1, ``ReassignPartitionsCommand.generateAssignment``.
    """
    currents, proposals = text.count(_CURRENT_HEADING), text.count(_PROPOSED_HEADING)
    if not currents + proposals or text.lstrip().startswith("{"):
        return None
    remedy = f'Keep in the file only the JSON that follows "{_PROPOSED_HEADING}".'
    if not proposals:
        rule = "has the current replicas of kafka-reassign-partitions.sh --generate, and not its proposal"
        raise HeadroomError(subject, rule, remedy)
    before, _, proposal = text.partition(_PROPOSED_HEADING)
    if proposals > 1 or currents > before.count(_CURRENT_HEADING):
        raise HeadroomError(subject, "has more than one output of kafka-reassign-partitions.sh --generate", remedy)
    return proposal


def given_plan(text: str, subject: str) -> tuple[ReassignmentPlan, bool]:
    """Return the plan that somebody gives, and whether it is the proposal in the output of ``--generate``.

    Args:
        text: the plan, or the output of ``kafka-reassign-partitions.sh --generate``.
        subject: name of the file, for errors.

    Raises:
        HeadroomError: the text is neither.
    """
    proposal = proposed_part(text, subject)
    return parse_plan(text if proposal is None else proposal, subject), proposal is not None


def parse_plan(text: str, subject: str) -> ReassignmentPlan:
    """Return the plan in a text.

    Checks the format alone; whether topics, brokers and directories exist is a question to the cluster.

    Args:
        text: contents of the file.
        subject: name of the file, for errors.

    Raises:
        HeadroomError: the text is no plan of version 1, or names a partition twice, no replica or a replica twice.

    Source: Kafka 4.3.1, ``ReassignPartitionsCommand.parsePartitionReassignmentData``.
    """
    try:
        document = parse_json(text)
    except ValueError as error:
        raise HeadroomError(subject, f"is not valid JSON ({error})", _FIX) from None
    if not isinstance(document, dict):
        raise HeadroomError(subject, "is not a JSON object", _FIX)
    # Kafka reads a file without a version as version 1.
    version = document.get("version", PLAN_VERSION)
    if version != PLAN_VERSION or not is_id(version):
        raise HeadroomError(subject, f"has version {version!r}, and only version {PLAN_VERSION} is known", _FIX)
    entries = document.get("partitions")
    if not isinstance(entries, list):
        raise HeadroomError(subject, 'has no list "partitions"', _FIX)
    assignments = tuple(_assignment(entry, number, subject) for number, entry in enumerate(entries))
    counts = Counter(assignment.name for assignment in assignments)
    twice = [str(name) for name, count in counts.items() if count > 1]
    if twice:
        raise HeadroomError(subject, f"names {join_names(twice, most=_SHOWN_NAMES)} more than once", _FIX)
    return ReassignmentPlan(assignments)


def _assignment(entry: Any, number: int, subject: str) -> TargetAssignment:
    if not isinstance(entry, dict):
        raise HeadroomError(subject, f"entry {number} of partitions is not an object", _FIX)
    topic: Any = entry.get("topic")
    partition: Any = entry.get("partition")
    replicas: Any = entry.get("replicas")
    if not isinstance(topic, str) or not topic:
        raise HeadroomError(subject, f"entry {number} of partitions has no topic", _FIX)
    if not is_id(partition):
        raise HeadroomError(subject, f"entry {number} of partitions (topic {topic}) has no partition number", _FIX)
    name = TopicPartition(topic, partition)
    # A mistyped log_dirs would have no effect.
    if unknown := sorted(entry.keys() - _KEYS):
        raise HeadroomError(subject, f"{name} has the key {unknown[0]!r}, which no plan has", _FIX)
    if not isinstance(replicas, list) or not replicas or not all(map(is_id, replicas)):
        raise HeadroomError(subject, f"{name} needs a list of broker ids as replicas", _FIX)
    if len(set(replicas)) < len(replicas):
        raise HeadroomError(subject, f"{name} names a replica more than once", _FIX)
    log_dirs = entry.get("log_dirs")
    if log_dirs is None:
        return TargetAssignment(name, tuple(replicas))
    if not isinstance(log_dirs, list) or not all(isinstance(path, str) and path for path in log_dirs):
        raise HeadroomError(subject, f'{name} needs a list of paths or "any" as log_dirs', _FIX)
    if len(log_dirs) != len(replicas):
        raise HeadroomError(subject, f"{name} has {len(replicas)} replicas and {len(log_dirs)} log_dirs", _FIX)
    return TargetAssignment(name, tuple(replicas), tuple(log_dirs))
