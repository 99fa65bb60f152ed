"""A topic with hundreds of partitions: history, steady load, move, and throttles by broker and role."""

from __future__ import annotations

import os
import random
from collections.abc import Collection, Mapping, Sequence
from contextlib import suppress
from itertools import cycle
from pathlib import Path
from types import TracebackType
from typing import Any

from kafka import KafkaProducer
from kafka.errors import KafkaError

from benchmarks.fixtures.bench_cluster import BenchCluster, await_true, failure
from benchmarks.groups.large_moves.stage.groups import Group, partitions
from benchmarks.groups.large_moves.stage.logs import TopicLogs
from headroom.cluster.embedded.paced_producer import PacedProducer
from headroom.cluster.throttles.rates import apply_rates, clear_rates
from headroom.cluster.throttles.replica_lists import apply_lists, clear_lists
from headroom.planning.throttles.replica_lists import Move, lists_of_plan
from headroom.schemas.keys import Role, TopicPartition

# Broker and role to bytes per second; one that is missing has no rate.
Rates = Mapping[tuple[int, Role], float]
RECORD_BYTES = 10_000
# Small batches as in cluster.embedded.paced_producer: a fetch that ends within a batch sends its beginning twice.
_BATCH_BYTES = 32_768
_BATCH_RECORDS = 3
_VALUES = 16
_FILL_S = 180.0


class LargeTopic:
    """A topic with a history and a load. Its exit removes topic, move and throttles.

    Args:
        bench: cluster of the topic.
        name: name of the topic.
        groups: its partitions, numbered in the order of the groups.
        draw: random source of the partitions' sizes.
        down: brokers that are down; shared with the code that changes it.
        log_dirs: log directory of replicas with a fixed one, by partition and broker.

    Attributes:
        partitions: group of each partition, by number.
        logs: its logs on the brokers' disks.
    """

    def __init__(
        self,
        bench: BenchCluster,
        name: str,
        groups: Sequence[Group],
        draw: random.Random,
        down: set[int],
        log_dirs: Mapping[tuple[int, int], Path] | None = None,
    ) -> None:
        self.name = name
        self.groups = groups
        self.partitions = partitions(groups)
        self.down = down
        self._bench = bench
        self._sizes = [size for group in groups for size in group.sizes(draw)]
        self._log_dirs = log_dirs or {}
        self.logs = TopicLogs(bench, name, self.partitions, down)
        self._started: set[int] = set()
        written = [(number, group.write_bytes_per_s) for number, group in enumerate(self.partitions)]
        rates = {(name, number): rate for number, rate in written if rate > 0}
        self._load = PacedProducer(bench.bootstrap_servers, rates, RECORD_BYTES)

    def __enter__(self) -> LargeTopic:
        """Create and fill the topic, start its load, and return it."""
        self.logs.assign_log_dirs(self._log_dirs)
        self._create()
        self._fill()
        self._load.start()
        return self

    def _create(self) -> None:
        """Create the topic with leaders only, and add the other replicas while it is empty.

        A request to create a topic must give all partitions the same number of replicas.

        Source: Kafka 4.3.1, ``ReplicationControlManager.createTopic``.
        """
        replicas = {number: list(group.before) for number, group in enumerate(self.partitions)}
        leaders = {number: before[:1] for number, before in replicas.items()}
        self._bench.admin.create_topics({self.name: {"assignments": leaders}}, wait_for_metadata=True)
        refused = self._reassign({number: before for number, before in replicas.items() if len(before) > 1})
        if refused:
            raise failure(f"replicas were not added: {refused}")
        await_true(lambda: not self.moving(), _FILL_S, f"replicas of {self.name}")

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, at: TracebackType | None) -> None:
        """Stop the load, cancel the move, clear the throttles, delete the topic. All brokers must be up."""
        self._load.stop()
        with suppress(KafkaError):
            self.cancel()
        self.clear_throttles()
        self._bench.retry(lambda: self._bench.admin.delete_topics([self.name]))

    def _fill(self) -> None:
        """Write the history in rounds of the same number of batches for every partition."""
        producer = KafkaProducer(
            bootstrap_servers=self._bench.bootstrap_servers,
            acks=1,
            enable_idempotence=False,
            linger_ms=20,
            batch_size=_BATCH_BYTES,
        )
        values = cycle([os.urandom(RECORD_BYTES) for _ in range(_VALUES)])
        remaining = {number: size // RECORD_BYTES for number, size in enumerate(self._sizes)}
        while remaining:
            for number in remaining:
                for _ in range(min(_BATCH_RECORDS, remaining[number])):
                    producer.send(self.name, next(values), partition=number)
            remaining = {number: left - _BATCH_RECORDS for number, left in remaining.items() if left > _BATCH_RECORDS}
        producer.flush(timeout=_FILL_S)
        producer.close()

    def start_move(self, rates: Rates, chosen: Collection[int] | None = None) -> None:
        """Set lists and rates as ``kafka-reassign-partitions --execute --additional`` does, and start the move.

        Args:
            rates: rates by broker and role; those of brokers that are down are ignored.
            chosen: partitions that begin to move now; all moving ones if None.

        Raises:
            HeadroomError: the brokers refused the move.
        """
        moving = [n for n, group in enumerate(self.partitions) if group.moves and (chosen is None or n in chosen)]
        self._started.update(moving)
        groups = {number: self.partitions[number] for number in sorted(self._started)}
        plan = [Move(TopicPartition(self.name, number), group.before, group.after) for number, group in groups.items()]
        apply_lists(self._bench.settings, lists_of_plan(plan))
        self.set_rates(rates)
        refused = self._reassign({number: list(self.partitions[number].after) for number in moving})
        if refused:
            raise failure(f"the move was refused: {refused}")

    def set_rates(self, rates: Rates) -> None:
        """Set rates by broker and role, and wait until they are in force. Other rates stay."""
        for role in Role:
            chosen = {b: round(rate) for (b, of), rate in rates.items() if of is role and b not in self.down}
            if chosen:
                apply_rates(self._bench.settings, chosen, (role.value,))

    def clear_rates(self) -> None:
        """Clear both rates of every live broker; the lists stay."""
        clear_rates(self._bench.settings, [b for b in self._bench.brokers if b not in self.down])

    def clear_throttles(self) -> None:
        """Clear the rates of every live broker, and the lists of the topic."""
        self.clear_rates()
        clear_lists(self._bench.settings, [self.name])

    def cancel(self) -> None:
        """Cancel the move of every partition that is still moving."""
        self._reassign(dict.fromkeys(self.moving()))

    def moving(self) -> list[int]:
        """Return the partitions that are being reassigned."""
        reassignments = self._bench.retry(lambda: self._bench.admin.list_partition_reassignments())
        return sorted(one.partition for one in reassignments if one.topic == self.name)

    def metadata(self) -> list[dict[str, Any]]:
        """Return the partitions in Kafka's metadata, ordered by number."""
        topics = self._bench.retry(lambda: self._bench.admin.describe_topics([self.name]))
        return sorted(topics[0]["partitions"], key=lambda one: one["partition_index"])

    def out_of_sync(self, broker: int) -> list[int]:
        """Return the partitions whose replica on a broker is out of sync, except for adding replicas."""
        moving = set(self.moving())
        affected = [one for one in self.metadata() if broker in one["replica_nodes"] and broker not in one["isr_nodes"]]
        numbers = [int(one["partition_index"]) for one in affected]
        return [n for n in numbers if not (n in moving and broker in self.partitions[n].adding)]

    def leaders(self) -> list[int]:
        """Return the leader of each partition, -1 if it has none."""
        return [int(one["leader_id"]) for one in self.metadata()]

    def _reassign(self, replicas: Mapping[int, list[int] | None]) -> dict[TopicPartition, object]:
        if not replicas:
            return {}
        targets = {TopicPartition(self.name, number): wanted for number, wanted in replicas.items()}
        answers = self._bench.admin.alter_partition_reassignments(targets)
        return {key: error for key, error in answers.items() if error}
