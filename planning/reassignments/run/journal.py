"""Rows of the journal of changes: which step, of which subject, from what to what, and how far it has come."""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from enum import Enum
from typing import Any, NamedTuple

from headroom.schemas.keys import BrokerRate, BrokerRole, DirectoryRole, LogDirsRate, ReplicaKey, Role, TopicPartition

# Partition and broker of one entry in a throttled replica list.
Entry = tuple[int, int]
# Subjects of elections: before the copies, of leads that are given up, and after the last batch.
FIRST_ELECTIONS, LAST_ELECTIONS = "leads given up before the copies", "preferred leaders"
_LIST = re.compile(r"topic (?P<topic>\S+) as (?P<role>leader|follower)")
_RATE = re.compile(r"broker (?P<broker>\d+) as (?P<role>leader|follower|log_dirs)")
_REPLICA = re.compile(r"(?P<partition>\S+) on broker (?P<broker>\d+)")


class StepKind(str, Enum):
    """What a step changes.

    Attributes:
        RUN: the run of a plan as a whole; subject: fingerprint of the plan.
        LIST: entries of a throttled replica list; before: the list, after: the entries.
        RATE: throttle rate of a broker; before and after: its own rate in bytes per second, null for none.
        SUBMIT: reassignment of a partition; before and after: its replicas.
        FINISH: end of the reassignment of a partition; before: its target, after: its replicas.
        CANCEL: cancellation of the reassignment of a partition; before and after: its replicas.
        PLACE: log directory of a replica; before: its path, null for a new replica; after: the path that it gets, null
            for a replica that the plan removes.
        ELECT: preferred leader elections; after: number of partitions.
        OFFSET: committed offset of a consumer group; before and after: the offset, null for none.
        AGREE: terms of a partition in a migration; before and after: those that change, as JSON, null for none.
        TOPIC: a topic that is created or deleted; before and after: its partitions, null for none.
    """

    RUN = "run"
    LIST = "list"
    RATE = "rate"
    SUBMIT = "submit"
    FINISH = "finish"
    CANCEL = "cancel"
    PLACE = "place"
    ELECT = "elect"
    OFFSET = "offset"
    AGREE = "agree"
    TOPIC = "topic"


class StepState(str, Enum):
    """How far a step has come.

    Attributes:
        INTENDED: about to be taken; after a crash it may have been taken.
        DONE: taken.
        UNDONE: taken back, or no longer in force.
        FAILED: not taken, or without the intended effect.
    """

    INTENDED = "intended"
    DONE = "done"
    UNDONE = "undone"
    FAILED = "failed"


class ThrottledList(NamedTuple):
    """The throttled replica list of a topic for one role."""

    topic: str
    role: Role

    def __str__(self) -> str:
        return f"topic {self.topic} as {self.role.value}"


@dataclass(frozen=True)
class JournalStep:
    """One step, as a run writes it.

    Attributes:
        step: what it changes.
        state: how far it has come.
        subject: partition, list, or broker and role.
        before: value before; None if there was none.
        after: value after; None if there is none.
    """

    step: StepKind
    state: StepState
    subject: str
    before: str | None = None
    after: str | None = None


@dataclass(frozen=True)
class JournalRow:
    """One row of the journal; the columns are those of ``schemas.tables.actions.ACTION_JOURNAL``."""

    run_id: str
    seq: int
    cluster: str
    command: str
    step: str
    state: str
    subject: str
    before: str | None
    after: str | None
    by: str
    at_ms: int


def in_time_order(rows: Iterable[JournalRow]) -> list[JournalRow]:
    """Return the rows of a journal in the order of time, those of one run in the order in which it wrote them.

    A clock that is set back during a run gives its later rows earlier times.
    """
    latest_ms: dict[str, int] = {}
    timed: list[tuple[int, JournalRow]] = []
    for row in sorted(rows, key=lambda row: (row.run_id, row.seq)):
        latest_ms[row.run_id] = max(row.at_ms, latest_ms.get(row.run_id, row.at_ms))
        timed.append((latest_ms[row.run_id], row))
    return [row for _, row in sorted(timed, key=lambda item: (item[0], item[1].run_id, item[1].seq))]


def rate_subject(rate: BrokerRate) -> str:
    """Return the subject of a rate: ``broker 2 as leader``, ``broker 2 as log_dirs``."""
    return f"broker {rate.broker} as {rate.role.value}"


def rate_of_subject(subject: str) -> BrokerRate | None:
    """Return the rate of a subject; None if it is no rate of a broker."""
    match = _RATE.fullmatch(subject)
    if match is None:
        return None
    broker, role = int(match["broker"]), match["role"]
    return LogDirsRate(broker) if role == DirectoryRole.LOG_DIRS.value else BrokerRole(broker, Role(role))


def rates_by_subject(rates: Mapping[BrokerRate, int | None]) -> dict[str, int | None]:
    """Return rates by their subject, for the options of a run."""
    return {rate_subject(name): rate for name, rate in sorted(rates.items())}


def rates_of_subjects(rates: Mapping[str, int | None]) -> dict[BrokerRate, int | None]:
    """Return the rates of ``rates_by_subject``."""
    by_rate = ((rate_of_subject(subject), rate) for subject, rate in rates.items())
    return {name: rate for name, rate in by_rate if name is not None}


def list_of_subject(subject: str) -> ThrottledList | None:
    """Return the list of a subject; None if it is not a list."""
    match = _LIST.fullmatch(subject)
    return None if match is None else ThrottledList(match["topic"], Role(match["role"]))


def partition_of_subject(subject: str) -> TopicPartition:
    """Return the partition of a subject such as ``orders-0``."""
    topic, _, partition = subject.rpartition("-")
    return TopicPartition(topic, int(partition))


def replica_of_subject(subject: str) -> ReplicaKey | None:
    """Return the replica of a subject such as ``orders-0 on broker 1``; None if it is no replica."""
    match = _REPLICA.fullmatch(subject)
    return None if match is None else ReplicaKey(partition_of_subject(match["partition"]), int(match["broker"]))


def options_of(row: JournalRow) -> dict[str, Any]:
    """Return the options with which a run began; empty if its row has none, as of older versions."""
    return options_of_text(row.after)


def options_of_text(text: str | None) -> dict[str, Any]:
    """Return the options of ``options_of`` from the text of that row; None: there is no row."""
    try:
        options = json.loads(text or "{}")
    except ValueError:
        return {}
    return options if isinstance(options, dict) else {}


def numbers_by_topic(names: Iterable[TopicPartition]) -> dict[str, list[int]]:
    """Return the numbers of some partitions by topic, for the options of a run."""
    numbers: dict[str, list[int]] = {}
    for name in sorted(names):
        numbers.setdefault(name.topic, []).append(name.partition)
    return numbers


def partitions_of_numbers(numbers: Mapping[str, Iterable[int]]) -> frozenset[TopicPartition]:
    """Return the partitions of ``numbers_by_topic``."""
    return frozenset(TopicPartition(topic, number) for topic, of_topic in numbers.items() for number in of_topic)


def replicas_text(replicas: tuple[int, ...]) -> str:
    """Return replicas as text: ``[1,2]``."""
    return json.dumps(replicas, separators=(",", ":"))


def replicas_of_text(text: str | None) -> tuple[int, ...]:
    """Return the replicas of a text; none for None."""
    return tuple(json.loads(text or "[]"))
