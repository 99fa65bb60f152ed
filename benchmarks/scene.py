"""A throttled move under a steady load, from its first record to the removal of its topic."""

from __future__ import annotations

import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from types import TracebackType

from kafka import TopicPartition

from benchmarks.harness import Ground, failure
from cluster.load import PacedLoad
from cluster.throttles import apply_lists, apply_rates, clear_lists, clear_rates
from planning.lists import Move, TopicLists, lists_of_plan

RECORD_BYTES = 10_000
_PREFERRED = 0
# History is written as fast as that to a partition, and to all of them: a producer's thread does little more.
_FILL_BYTES_PER_S, _FILL_ALL_BYTES_PER_S = 8e6, 40e6
# The rate window is 10 s: by then every write rate is that of the live load alone.
_LIVE_BEFORE_S = 14.0


@dataclass(frozen=True)
class Part:
    """One partition of a move.

    Attributes:
        before: replicas where the move begins, preferred leader first.
        after: replicas where it ends.
        live_bytes_per_s: what is written to it all the time.
        history_bytes: what it holds before the move begins, over and above what is written meanwhile.
    """

    before: tuple[int, ...]
    after: tuple[int, ...]
    live_bytes_per_s: float
    history_bytes: int = 0


class Scene:
    """A topic under steady load, whose move can be started, switched and ended; all of it is removed at the end.

    Args:
        ground: the brokers.
        topic: its name.
        parts: its partitions, numbered in this order.
        record_bytes: size of a record's value.
    """

    def __init__(self, ground: Ground, topic: str, parts: Sequence[Part], record_bytes: int = RECORD_BYTES) -> None:
        self.topic = topic
        self.parts = parts
        self._ground = ground
        fill_bytes_per_s = min(_FILL_BYTES_PER_S, _FILL_ALL_BYTES_PER_S / len(parts))
        rates = {(topic, number): fill_bytes_per_s for number in range(len(parts))}
        self._load = PacedLoad(ground.bootstrap_servers, rates, record_bytes)

    def __enter__(self) -> Scene:
        """Return this scene when its history is written and its write rates are steady."""
        replicas = {number: list(part.before) for number, part in enumerate(self.parts)}
        self._ground.admin.create_topics({self.topic: {"assignments": replicas}}, wait_for_metadata=True)
        self._load.start()
        try:
            self._write_history()
            time.sleep(_LIVE_BEFORE_S)
        except BaseException:
            self._load.stop()
            raise
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, at: TracebackType | None) -> None:
        """End load and move, clear the throttles, delete the topic."""
        self._load.stop()
        if self.moving():
            self._reassign({self._key(number): None for number in range(len(self.parts))})
        self.clear_rates()
        self.clear_lists()
        self._ground.admin.delete_topics([self.topic])

    def _write_history(self) -> None:
        filling = dict(enumerate(self.parts))
        give_up = time.monotonic() + 300
        while filling:
            sent = self._load.sent_bytes
            for number in [n for n, part in filling.items() if sent[(self.topic, n)] >= part.history_bytes]:
                self._load.set_rate(self.topic, number, filling.pop(number).live_bytes_per_s)
            if time.monotonic() > give_up:
                raise failure(f"history not written within 300 s; so far {sent}")
            time.sleep(0.05)

    def start_move(
        self,
        throttle_bytes_per_s: float,
        inbound_bytes_per_s: float | None = None,
        lists: Mapping[str, TopicLists] | None = None,
    ) -> None:
        """Throttle all brokers and start the move, as ``kafka-reassign-partitions --execute --throttle`` does.

        Args:
            throttle_bytes_per_s: rate of all brokers.
            inbound_bytes_per_s: their rate as destinations; None: the same.
            lists: throttled replica lists by topic; None: those that Kafka's own tool makes.

        Raises:
            HeadroomError: the brokers refused the move.
        """
        moves = [Move(self.topic, number, part.before, part.after) for number, part in enumerate(self.parts)]
        apply_lists(self._ground.settings, lists or lists_of_plan(moves))
        self.throttle(throttle_bytes_per_s)
        if inbound_bytes_per_s is not None:
            rates = dict.fromkeys(self._ground.brokers, round(inbound_bytes_per_s))
            apply_rates(self._ground.settings, rates, ("follower",))
        refused = self._reassign({self._key(move.partition): list(move.after) for move in moves})
        if refused:
            raise failure(f"the move was refused: {refused}")

    def write(self, partition: int, bytes_per_s: float) -> None:
        """Change what is written to one partition from now on."""
        self._load.set_rate(self.topic, partition, bytes_per_s)

    def clear_rates(self) -> None:
        """Clear the rates of all brokers; the lists stay."""
        clear_rates(self._ground.settings, self._ground.brokers)

    def clear_lists(self) -> None:
        """Clear the lists of the topic; the rates stay."""
        clear_lists(self._ground.settings, [self.topic])

    def throttle(self, bytes_per_s: float) -> None:
        """Set one rate on all brokers, and wait until it is in force."""
        apply_rates(self._ground.settings, dict.fromkeys(self._ground.brokers, round(bytes_per_s)))

    def elect_preferred(self, partition: int) -> None:
        """Ask for a preferred leader election of one partition."""
        self._ground.admin.elect_leaders(_PREFERRED, {self.topic: [partition]})

    def moving(self) -> bool:
        """Return whether the move is still running."""
        return any(found.topic == self.topic for found in self._ground.admin.list_partition_reassignments())

    def missing_bytes(self) -> int:
        """Return how much smaller the new logs are than the largest of their partitions, as the brokers tell."""
        sizes = {
            (found["partition_index"], broker["broker"]): found["partition_size"]
            for broker in self._ground.admin.describe_log_dirs()
            for folder in broker["log_dirs"]
            for topic in folder["topics"]
            if topic["name"] == self.topic
            for found in topic["partitions"]
        }
        return sum(_missing(number, part, sizes) for number, part in enumerate(self.parts))

    def _key(self, number: int) -> TopicPartition:
        return TopicPartition(self.topic, number)

    def _reassign(self, replicas: dict[TopicPartition, list[int] | None]) -> dict[TopicPartition, object]:
        return {
            key: error for key, error in self._ground.admin.alter_partition_reassignments(replicas).items() if error
        }


def _missing(number: int, part: Part, sizes: Mapping[tuple[int, int], int]) -> int:
    whole = max(sizes.get((number, broker), 0) for broker in part.before)
    return sum(whole - sizes.get((number, b), 0) for b in part.after if b not in part.before)
