"""What an application noted of its records: when they were acknowledged, and in which order they were read."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import pairwise
from typing import NamedTuple


class AnsweredRecord(NamedTuple):
    """Answer to one record.

    Attributes:
        offset: its client offset.
        at_s: time of the answer, epoch seconds.
    """

    offset: int
    at_s: float


class Read(NamedTuple):
    """One record that was read.

    Attributes:
        number: its number, as the writer gave it.
        offset: its client offset.
    """

    number: int
    offset: int


@dataclass
class RecordAnswers:
    """RecordAnswers to the records of one partition.

    Attributes:
        sent: how many were sent: those with the numbers below it.
        acknowledged: answer to each record that was acknowledged, by its number.
        failed: errors of those that were not.
    """

    sent: int = 0
    acknowledged: dict[int, AnsweredRecord] = field(default_factory=dict)
    failed: list[str] = field(default_factory=list)

    def switched_s(self, end_offset: int) -> float | None:
        """Return when the first record from an end offset on was acknowledged, epoch seconds; None if none was."""
        return min((answer.at_s for answer in self.acknowledged.values() if answer.offset >= end_offset), default=None)

    def longest_pause_s(self, from_s: float, to_s: float) -> float | None:
        """Return the longest time without an answer, seconds; None with fewer than two answers."""
        return longest_pause_s((answer.at_s for answer in self.acknowledged.values()), from_s, to_s)


def longest_pause_s(answered_s: Iterable[float], from_s: float, to_s: float) -> float | None:
    """Return the longest time without an answer within a time, seconds; None with fewer than two answers in it.

    Args:
        answered_s: times of answers, seconds, in any order.
        from_s: begin of the time.
        to_s: end of the time, exclusive.
    """
    times = sorted(at_s for at_s in answered_s if from_s <= at_s < to_s)
    return max((later - earlier for earlier, later in pairwise(times)), default=None)


@dataclass(frozen=True)
class RecordCounts:
    """What became of all records.

    Attributes:
        acknowledged: records that were acknowledged.
        failed: records that were not.
        read: different records that were read.
        lost: acknowledged records that were not read.
        doubled: further reads of a record.
        out_of_order: records that were read behind a later one of their partition.
        misplaced: records that were read at another client offset than the acknowledged one.
    """

    acknowledged: int
    failed: int
    read: int
    lost: int
    doubled: int
    out_of_order: int
    misplaced: int


def count_records(written: Mapping[int, RecordAnswers], read: Mapping[int, Sequence[Read]]) -> RecordCounts:
    """Return what became of the records of all partitions.

    Args:
        written: what the writer noted, by partition.
        read: what was read of each partition, in this order.
    """
    counts = [_count(answers, read.get(partition, ())) for partition, answers in written.items()]
    return RecordCounts(*(sum(column) for column in zip(*counts, strict=True)))


def _count(answers: RecordAnswers, read: Sequence[Read]) -> tuple[int, ...]:
    seen: set[int] = set()
    doubled = out_of_order = misplaced = last = 0
    for number, offset in read:
        answer = answers.acknowledged.get(number)
        if number in seen:
            doubled += 1
        elif number < last:
            out_of_order += 1
        misplaced += answer is not None and answer.offset != offset
        seen.add(number)
        last = max(last, number)
    acknowledged = answers.acknowledged.keys()
    lost = len(acknowledged - seen)
    return len(acknowledged), len(answers.failed), len(seen), lost, doubled, out_of_order, misplaced
