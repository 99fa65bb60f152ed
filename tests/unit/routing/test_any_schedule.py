"""Random schedules of producers, clusters, readers and agreements: nothing is lost, doubled or out of order."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from hypothesis import HealthCheck, settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, rule
from kafka import TopicPartition

from headroom.planning.migration import end_offset
from headroom.planning.migration.readings import LogOffsets
from headroom.planning.migration.run.next_step import next_step
from headroom.planning.migration.run.planned_step import planned_step
from headroom.planning.migration.run.seen import RunTerms, SeenPartition
from headroom.planning.migration.run.used_step import used_step
from headroom.schemas.migrations import MigrationMethod, PartitionAgreement
from tests.unit.builders.agreements import TOPIC, agreement
from tests.unit.builders.routing import Consuming, Router, Stage
from tests.unit.fakes.kafka_clients import Stored

PARTITIONS = (0, 1)
NAMES = ("a", "b")
READER = "reader"
BEFORE = b"from before the migration"

PARTITION = st.sampled_from(PARTITIONS)
NAME = st.sampled_from(NAMES)


class Sent:
    """A record and its future."""

    def __init__(self, partition: int, producer: str, value: bytes, future: Any) -> None:
        self.partition = partition
        self.producer = producer
        self.value = value
        self.future = future

    @property
    def is_acknowledged(self) -> bool:
        return bool(self.future.is_done and self.future.exception is None)


class Migrations(RuleBasedStateMachine):
    """Two producers, one reader, and the process that agrees on end offsets."""

    @initialize(in_use=st.booleans())
    def begin(self, in_use: bool) -> None:
        self.stage = Stage(len(PARTITIONS))
        if in_use:
            for partition in PARTITIONS:
                self.stage.target.logs[TopicPartition(TOPIC, partition)] += [Stored(b"", BEFORE)] * 3
        self.sent: list[Sent] = []
        # Metadata in the order in which callbacks got it, by producer and partition.
        self.called: dict[tuple[str, int], list[Any]] = {}
        self.generations = dict.fromkeys(NAMES, 0)
        self.routers = {name: self.stage.producer(name) for name in NAMES}
        self.reader = self.new_reader()
        self.read: dict[int, list[tuple[int, bytes]]] = {partition: [] for partition in PARTITIONS}
        # Values that the origin has lost below an end offset, and partitions of which it has lost some.
        self.gone: set[bytes | None] = set()
        self.cut: set[int] = set()

    def new_reader(self) -> Consuming:
        return self.stage.consumer(READER, [TopicPartition(TOPIC, partition) for partition in PARTITIONS])

    def planned(self) -> dict[int, PartitionAgreement]:
        return {agreed.partition: agreed for agreed in self.stage.writer._reader.agreements.values()}

    @rule(name=NAME, partition=PARTITION, count=st.integers(1, 4))
    def send(self, name: str, partition: int, count: int) -> None:
        router = self.routers[name]
        router.origin.config["max_block_ms"] = 0
        for _ in range(count):
            value = f"{len(self.sent)}".encode()
            future = router.routed.send(TOPIC, value, partition=partition)
            producer = f"{name}{self.generations[name]}"
            if len(self.sent) % 3 == 0:
                future.add_callback(self.called.setdefault((producer, partition), []).append)
            self.sent.append(Sent(partition, producer, value, future))

    @rule(name=NAME, partition=PARTITION, before=st.integers(2, 5), answered=st.integers(1, 4), after=st.integers(1, 4))
    def send_while_some_are_answered(self, name: str, partition: int, before: int, answered: int, after: int) -> None:
        self.send(name, partition, before)
        self.answer_on_the_origin(name, partition, answered)
        self.send(name, partition, after)

    @rule(name=NAME, partition=PARTITION, count=st.integers(1, 6))
    def answer_on_the_origin(self, name: str, partition: int, count: int) -> None:
        for _ in range(count):
            self.routers[name].origin.answer(TopicPartition(TOPIC, partition))

    @rule(name=NAME, records=st.integers(1, 5), on_target=st.booleans())
    def batch(self, name: str, records: int, on_target: bool) -> None:
        """From now on, batches have up to so many records."""
        router = self.routers[name]
        (router.target if on_target else router.origin).batch_records = records

    @rule(name=NAME, partition=PARTITION, size=st.integers(1, 2))
    def split_a_batch(self, name: str, partition: int, size: int) -> None:
        origin = self.routers[name].origin
        if origin.waiting[TopicPartition(TOPIC, partition)]:
            origin.split(TopicPartition(TOPIC, partition), size)

    @rule(name=NAME, partition=PARTITION, count=st.integers(1, 6))
    def answer_on_the_target(self, name: str, partition: int, count: int) -> None:
        for _ in range(count):
            self.routers[name].target.answer(TopicPartition(TOPIC, partition))

    @rule(name=NAME, partition=PARTITION, stored=st.booleans(), on_target=st.booleans())
    def lose(self, name: str, partition: int, stored: bool, on_target: bool) -> None:
        router = self.routers[name]
        (router.target if on_target else router.origin).lose(TopicPartition(TOPIC, partition), stored)

    @rule(partition=PARTITION)
    def switch_leader(self, partition: int) -> None:
        self.stage.origin.epochs[TopicPartition(TOPIC, partition)] += 1

    @rule(name=NAME, partition=PARTITION, count=st.integers(0, 4))
    def hang_a_follower(self, name: str, partition: int, count: int) -> None:
        """From now on only the leader has what it acknowledges, as with acks=1."""
        hung = TopicPartition(TOPIC, partition)
        self.stage.origin.watermarks.setdefault(hung, len(self.stage.origin.logs[hung]))
        self.send(name, partition, count)
        self.answer_on_the_origin(name, partition, count)

    @rule(partition=PARTITION)
    def let_a_follower_catch_up(self, partition: int) -> None:
        self.stage.origin.watermarks.pop(TopicPartition(TOPIC, partition), None)

    @rule(partition=PARTITION, lost=st.integers(0, 3))
    def come_to_the_end(self, partition: int, lost: int) -> None:
        """A whole switch of one producer, after which the end of the origin may be lost."""
        for _ in range(2):
            self.agree(partition, 2)
            self.let_all_follow()
        agreed = self.planned()[partition]
        log = self.stage.origin.logs[TopicPartition(TOPIC, partition)]
        if agreed.status == "migrating" and agreed.end_offset is not None:
            self.send("a", partition, max(0, agreed.end_offset - len(log)) + 1)
            self.flush(self.routers["a"])
            if lost:
                self.lose_the_end_of_the_origin(partition, lost)

    @rule(partition=PARTITION, count=st.integers(1, 3))
    def lose_the_end_of_the_origin(self, partition: int, count: int) -> None:
        """At a leader switch. What readers have read or passed by then is no matter of the migration."""
        name, agreed = TopicPartition(TOPIC, partition), self.planned().get(partition)
        log = self.stage.origin.logs[name]
        if agreed is None or agreed.status == "planned" or agreed.end_offset is None or len(log) < agreed.end_offset:
            return
        kept = max(0, agreed.end_offset - count)
        places = [self.stage.origin.committed.get(name, 0), self.reader.origin.position(name)]
        places += [offset + 1 for offset, _ in self.read[partition]]
        if max(places) > kept or agreed.origin_end is not None:
            return
        self.gone |= {stored.value for stored in log[kept : agreed.end_offset]}
        self.cut.add(partition)
        del log[kept:]
        self.stage.origin.watermarks.pop(name, None)
        self.stage.origin.epochs[name] += 1

    @rule(name=NAME)
    def let_a_producer_follow(self, name: str) -> None:
        self.routers[name].routed.follow()

    @rule()
    def let_the_reader_follow(self) -> None:
        self.reader.routed.follow()

    @rule()
    def let_all_follow(self) -> None:
        for name in NAMES:
            self.let_a_producer_follow(name)
        self.let_the_reader_follow()

    @rule(name=NAME, stored=st.integers(0, 5))
    def kill_a_producer(self, name: str, stored: int) -> None:
        """Of what was on its way, the clusters take the first records, and the rest is gone."""
        dead = self.routers[name]
        dead.end()
        for producer in (dead.origin, dead.target):
            for waiting in producer.waiting.values():
                for sent in list(waiting)[:stored]:
                    producer._cluster.logs[sent.partition].append(sent.stored)
                waiting.clear()
        self.generations[name] += 1
        self.routers[name] = self.stage.producer(name)

    @rule(partition=PARTITION, ahead=st.integers(0, 6))
    def agree(self, partition: int, ahead: int) -> None:
        """Plan a migration, start it, or agree on another end offset, as `run` does."""
        agreed = self.planned().get(partition)
        if agreed is not None and (agreed.status != "planned" or agreed.reopened_end is not None):
            return
        known = self.stage.agreed()
        seen = self.seen(partition)
        number = 1 + max((a.number for a in self.planned().values()), default=0)
        if agreed is not None:
            terms = RunTerms("move", MigrationMethod.ROUTED, prepare_s=ahead)
            after = planned_step(agreed, seen, known, terms, number).after
            if after is not None:
                self.stage.agree(after)
            return
        new = agreement(
            partition=partition,
            number=number,
            end_offset=end_offset(seen.log.end, 1.0, ahead),
            target_base_offset=None,
            routers=(*NAMES, READER),
        )
        self.stage.agree(new)

    def seen(self, partition: int) -> SeenPartition:
        name = TopicPartition(TOPIC, partition)
        origin, target = self.stage.origin, self.stage.target
        watermark, end = origin.watermark(name), len(target.logs[name])
        log = LogOffsets(0, watermark, watermark)
        return SeenPartition(log, LogOffsets(0, end, end), 0, 1.0, leader_end=len(origin.logs[name]))

    @rule(partition=PARTITION)
    def withdraw(self, partition: int) -> None:
        agreed = self.planned().get(partition)
        if agreed is not None and agreed.status == "planned" and agreed.reopened_end is None:
            self.stage.writer.write([], withdrawn=[agreed])

    @rule(partition=PARTITION)
    def seal(self, partition: int) -> None:
        """Note that the origin is full, or accept that it has lost its end, as `run` does."""
        agreed = self.planned().get(partition)
        if agreed is None or agreed.status == "planned":
            return
        known, seen = self.stage.agreed(), self.seen(partition)
        rests = replace(seen, is_quiet=seen.log.end == seen.leader_end)
        terms = RunTerms("move", MigrationMethod.ROUTED, accept_loss=True)
        number = 1 + max(a.number for a in self.planned().values())
        after = used_step(agreed, rests, known, terms, number).after
        if after is not None:
            self.stage.agree(after)

    @rule(partition=PARTITION, ahead=st.integers(0, 3))
    def end_here(self, partition: int, ahead: int) -> None:
        """Agree on a nearer end offset, as `run --end-here` does, also of producers that have not stopped."""
        agreed = self.planned().get(partition)
        if agreed is None or (agreed.status == "planned" and agreed.reopened_end is None):
            return
        known, seen = self.stage.agreed(), self.seen(partition)
        terms = RunTerms("move", MigrationMethod.ROUTED, prepare_s=ahead, end_here=True)
        number = 1 + max(a.number for a in self.planned().values())
        after = next_step(agreed, seen, known, terms, number).after
        if after is not None and after.status != "migrated":
            self.stage.agree(after)

    @rule(partition=PARTITION)
    def stop_below_the_end(self, partition: int) -> None:
        """A whole nearer end: all routers agree to it, or the one before holds."""
        self.agree(partition, 6)
        for _ in range(3):
            self.let_all_follow()
            self.agree(partition, 6)
        self.end_here(partition, 0)
        for _ in range(2):
            self.let_all_follow()
            self.end_here(partition, 0)

    @rule(max_records=st.integers(1, 8))
    def poll(self, max_records: int) -> None:
        for partition, records in self.reader.routed.poll(max_records=max_records).items():
            self.read[partition.partition] += [(record.offset, record.value) for record in records]

    @rule()
    def restart_the_reader(self) -> None:
        self.reader.routed.commit()
        self.reader.routed.close()
        self.reader = self.new_reader()

    @rule()
    def commit(self) -> None:
        self.reader.routed.commit()

    def teardown(self) -> None:
        if not hasattr(self, "reader"):
            return
        try:
            self.finish()
            self.check()
        finally:
            self.stage.end()

    def finish(self) -> None:
        """Withdraw what has not started, answer everything, and read all."""
        for _ in range(4):
            for partition in PARTITIONS:
                self.end_here(partition, 0)
            self.let_all_follow()
            for router in self.routers.values():
                self.flush(router)
        assert all(agreed.reopened_end is None for agreed in self.planned().values())
        planned = [agreed for agreed in self.planned().values() if agreed.status == "planned"]
        if planned:
            self.stage.writer.write([], withdrawn=planned)
        self.stage.origin.watermarks.clear()
        for _ in range(3):
            for router in self.routers.values():
                router.routed.follow()
                self.flush(router)
        self.fill_up()
        for _ in range(4):
            for partition in PARTITIONS:
                self.seal(partition)
            self.let_all_follow()
            for router in self.routers.values():
                self.flush(router)
        self.reader.routed.follow()
        for _ in range(40):
            self.poll(500)

    def flush(self, router: Router) -> None:
        for partition in PARTITIONS:
            name = TopicPartition(TOPIC, partition)
            while router.origin.answer(name) or router.target.answer(name):
                pass

    def fill_up(self) -> None:
        """Write to started partitions until their origins are full."""
        for agreed in self.planned().values():
            log = self.stage.origin.logs[TopicPartition(TOPIC, agreed.partition)]
            route = self.routers["a"].routed._routes[TOPIC][agreed.partition]
            end = agreed.end_offset or 0
            # Of an origin that has lost its end, the run gets to know by what comes to the target.
            for _ in range(max(0, end - len(log)) + 1 if len(log) < end else 0):
                self.send("a", agreed.partition, 1)
                self.flush(self.routers["a"])
            assert len(log) >= end or (route.shift is not None and agreed.partition in self.cut)

    def check(self) -> None:
        for router in self.routers.values():
            for route in router.routed._all_routes():
                assert route.flush(0)
        for (_, partition), called in self.called.items():
            offsets = [metadata.offset for metadata in called]
            assert partition in self.cut or offsets == sorted(offsets)
        for partition, found in self.read.items():
            values = [value for _, value in found if value != BEFORE]
            assert len(values) == len(set(values)), f"doubled: {values}"
            acknowledged = [sent for sent in self.sent if sent.partition == partition and sent.is_acknowledged]
            missing = {sent.value for sent in acknowledged} - set(values) - self.gone
            assert not missing, f"lost: {missing}"
            offset_of = {value: offset for offset, value in found}
            assert [offset for offset, _ in found] == sorted(offset for offset, _ in found)
            acknowledged = [sent for sent in acknowledged if sent.value not in self.gone]
            for sent in acknowledged:
                assert sent.future.value.offset == offset_of[sent.value]
            # What is in flight at such a loss may land below the end offset, behind what was moved.
            for producer in {sent.producer for sent in acknowledged} if partition not in self.cut else ():
                order = [offset_of[sent.value] for sent in acknowledged if sent.producer == producer]
                assert order == sorted(order), f"out of order: {producer}"


TestAnySchedule = Migrations.TestCase
TestAnySchedule.settings = settings(
    max_examples=150, stateful_step_count=60, deadline=None, suppress_health_check=list(HealthCheck)
)
