"""What a producer that writes steadily notices of the switch of its partitions."""

from __future__ import annotations

import threading
import time
from dataclasses import dataclass, field

from benchmarks.fixtures.bench_cluster import OnProgress, failure
from benchmarks.fixtures.migrations.clients import end_offsets
from benchmarks.groups.routed.routed_topics import PARTITIONS, RoutedTopics
from benchmarks.results import Figure, percentile
from headroom.cli.demo.migration.answers import longest_pause_s
from headroom.planning.migration import end_offset
from headroom.routing import RoutedProducer

# Records of each partition a second.
_PER_S = 200
_VALUE = bytes(1_000)
_STEP_S = 1 / _PER_S
# From the first record to the plan, and from the plan to the end offsets.
_BEFORE_S, _PREPARE_S = 8.0, 10.0
# Half of the time around a switch, and the time before it that it is compared with.
_AROUND_S, _COMPARED_S = 5.0, 10.0
_ANSWER_S = 30.0


@dataclass
class Answers:
    """When each record of a partition was sent and acknowledged, by its client offset.

    Attributes:
        sent_s: monotonic time at which it was sent, seconds.
        acknowledged_s: monotonic time at which it was acknowledged, seconds.
    """

    sent_s: list[float] = field(default_factory=list)
    acknowledged_s: dict[int, float] = field(default_factory=dict)

    def delays_s(self, from_s: float, to_s: float) -> list[float]:
        """Return the time from sending to acknowledging of the records sent within a time."""
        return [
            self.acknowledged_s[number] - sent_s for number, sent_s in enumerate(self.sent_s) if from_s <= sent_s < to_s
        ]

    def longest_pause_s(self, from_s: float, to_s: float) -> float:
        """Return the longest time without an acknowledgement.

        Raises:
            HeadroomError: fewer than two records were acknowledged.
        """
        pause_s = longest_pause_s(self.acknowledged_s.values(), from_s, to_s)
        if pause_s is None:
            raise failure(f"fewer than two records of a partition were acknowledged in {to_s - from_s:g} s")
        return pause_s


def switch_figures(topics: RoutedTopics, switches: int, on_progress: OnProgress) -> list[Figure]:
    """Return the figures of some switches, each of a topic of its own."""
    before: list[float] = []
    around: list[float] = []
    pauses: list[float] = []
    for number in range(switches):
        topic = f"switch-{number}"
        topics.create(topic)
        with topics.producer(topic, acks="all") as producer:
            ends, answers = _switch(topics, topic, producer)
        for partition, answer in enumerate(answers):
            at_s = answer.sent_s[ends[partition]]
            before += answer.delays_s(at_s - _AROUND_S - _COMPARED_S, at_s - _AROUND_S)
            around += answer.delays_s(at_s - _AROUND_S, at_s + _AROUND_S)
            pauses.append(answer.longest_pause_s(at_s - _AROUND_S, at_s + _AROUND_S))
        longest_ms = max(pauses[-PARTITIONS:]) * 1000
        on_progress(f"switch {number + 1} of {PARTITIONS} partitions: longest pause {longest_ms:.0f} ms")
    p99_before, p99_around = percentile(before, 0.99), percentile(around, 0.99)
    return [
        Figure("switch_p99_ratio", p99_around / p99_before, "ratio", switches),
        Figure("switch_produce_p99_ms", p99_around * 1000, "ms", len(around)),
        Figure("switch_produce_p99_before_ms", p99_before * 1000, "ms", len(before)),
        Figure("switch_pause_ms_p99", percentile(pauses, 0.99) * 1000, "ms", len(pauses)),
        Figure("switch_pause_ms_max", max(pauses) * 1000, "ms", len(pauses)),
    ]


def _switch(topics: RoutedTopics, topic: str, producer: RoutedProducer) -> tuple[dict[int, int], list[Answers]]:
    """Write through a switch, and return the end offsets and when each record was acknowledged.

    Raises:
        HeadroomError: a partition did not switch, or did so at another offset.
    """
    answers = [Answers() for _ in range(PARTITIONS)]
    ended = threading.Event()
    writing = threading.Thread(target=_write, args=(producer, topic, answers, ended), daemon=True)
    writing.start()
    time.sleep(_BEFORE_S)
    positions = end_offsets(topics.origin, topic)
    ends = {number: end_offset(position, _PER_S, _PREPARE_S) or 0 for number, position in positions.items()}
    topics.start(topics.plan(topic, ends, (topic,)))
    time.sleep(_PREPARE_S + _AROUND_S + 1)
    ended.set()
    writing.join()
    producer.flush(_ANSWER_S)
    moved = {number: len(answer.sent_s) - ends[number] for number, answer in enumerate(answers)}
    if (on_target := end_offsets(topics.target, topic)) != moved or min(moved.values()) <= 0:
        raise failure(f"{moved} records of {topic} were sent beyond its end offsets, and the target has {on_target}")
    return ends, answers


def _write(producer: RoutedProducer, topic: str, answers: list[Answers], ended: threading.Event) -> None:
    next_s = time.monotonic()
    while not ended.wait(max(0.0, next_s - time.monotonic())):
        next_s += _STEP_S
        for number, answer in enumerate(answers):
            answer.sent_s.append(time.monotonic())
            producer.send(topic, _VALUE, partition=number).add_callback(_note, answer)


def _note(answer: Answers, metadata: object) -> None:
    answer.acknowledged_s[metadata.offset] = time.monotonic()  # type: ignore[attr-defined]
