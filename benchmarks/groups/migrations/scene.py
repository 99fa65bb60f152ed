"""A leader dies whose only follower was paused: what is lost with each ``acks``, and what Headroom reports as lost."""

from __future__ import annotations

import time
from collections.abc import Mapping
from contextlib import ExitStack
from dataclasses import dataclass
from random import Random

from kafka.errors import KafkaError

from benchmarks.fixtures.bench_cluster import OnProgress, await_true
from benchmarks.fixtures.migrations.brokers import BROKERS
from benchmarks.fixtures.migrations.clients import end_offsets
from benchmarks.fixtures.migrations.processes import ReaderProcess, WriterProcess
from benchmarks.groups.migrations.clusters import TwoClusters, leaders, switch_leader
from benchmarks.groups.migrations.record import SceneRecord
from benchmarks.groups.migrations.run_process import RunProcess
from benchmarks.groups.migrations.tally import Tally, tally
from headroom.schemas.errors import HeadroomError

# How far ahead the end offsets are agreed: no scene gets there.
PREPARE_S = 1_800.0
_PER_S = 500.0
# For less than Kafka needs to notice that a broker is gone (9 s).
_PAUSED_S = (1.0, 3.0)
_BEGUN_S, _STARTED_S, _ELECTED_S, _WRITTEN_S, _REPORTED_S = 120.0, 240.0, 120.0, 240.0, 60.0
# After the first records of another leader: its epoch is reported as soon as it is known.
_AFTER_S = 3.0


@dataclass(frozen=True)
class PlannedScene:
    """A scene that is to be measured.

    Attributes:
        number: its number, from 0.
    """

    number: int

    @property
    def name(self) -> str:
        """Return its name, which its topics and its record have."""
        return f"acks-{self.number:02d}"

    def play(self, clusters: TwoClusters, on_progress: OnProgress) -> SceneRecord:
        """Kill the leader of two new topics, and return what was lost and reported."""
        record, began_s = SceneRecord(self.number), time.monotonic()
        try:
            with ExitStack() as stack:
                _play(clusters, self, stack, record, on_progress)
        except (HeadroomError, KafkaError) as error:
            record.failed = str(error)
        record.played_s = round(time.monotonic() - began_s, 1)
        return record


def _play(
    clusters: TwoClusters, scene: PlannedScene, stack: ExitStack, record: SceneRecord, on_progress: OnProgress
) -> None:
    chance = Random(f"scene {scene.number}")
    leader, follower = chance.sample(range(1, BROKERS + 1), 2)
    folder = clusters.folder / scene.name
    folder.mkdir()
    with_one, with_all = f"{scene.name}-1", f"{scene.name}-all"
    writers = {}
    for topic, acks, min_insync in ((with_one, "1", 1), (with_all, "all", 2)):
        clusters.create(topic, {0: [leader, follower]}, min_insync)
        name = f"{topic}-writer"
        writers[topic] = WriterProcess(name, clusters.servers, topic, 1, _PER_S, folder, acks)
        stack.callback(writers[topic].kill)
        writers[topic].start()
    await_true(lambda: all(w.noted() for w in writers.values()), _BEGUN_S, f"{scene.name}: records are written")
    routers = [writer.name for writer in writers.values()]
    command = clusters.run_command(list(writers), scene.name, routers, "--until", "started")
    run = RunProcess(command, folder / "run.log")
    stack.callback(run.kill)
    run.start()
    await_true(run.has_succeeded, _STARTED_S, f"{scene.name}: the migration has started")

    clusters.origin.pause(follower)
    # Whatever fails, the next scene needs all brokers.
    stack.callback(clusters.origin.resume, follower)
    time.sleep(chance.uniform(*_PAUSED_S))
    clusters.origin.kill(leader)
    clusters.origin.resume(follower)
    record.notes.append(f"broker {leader} was killed while broker {follower} was paused")
    await_true(
        lambda: leaders(clusters.origin, with_one) == {0: follower}, _ELECTED_S, f"{with_one}: led by {follower}"
    )
    clusters.origin.restart(leader)
    _await_written(writers, scene.name)
    # What the leader before had acknowledged is known to the producer alone, until it is reported.
    lossy = writers[with_one]
    await_true(lambda: clusters.has_noted_leaders(lossy.name), _REPORTED_S, f"{lossy.name} has reported")
    lossy.kill()
    lossy.start()
    _await_written(writers, scene.name)
    switch_leader(clusters.origin, with_one, 0)
    _await_written(writers, scene.name)
    time.sleep(_AFTER_S)
    for writer in writers.values():
        writer.require_running()
        writer.end()
    status = clusters.status(scene.name)
    found = {topic: _found(clusters, topic, writer, stack) for topic, writer in writers.items()}
    record.acknowledged, record.lost = found[with_one].acknowledged, found[with_one].lost
    record.acknowledged_all, record.lost_all = found[with_all].acknowledged, found[with_all].lost
    record.reported, record.reported_all = (status[topic]["lost_offsets"] for topic in (with_one, with_all))
    on_progress(
        f"    {record.notes[-1]}; {record.lost:,} lost, {record.reported} reported; {record.lost_all} lost of all"
    )


def _await_written(writers: Mapping[str, WriterProcess], name: str) -> None:
    before = {topic: writer.noted() for topic, writer in writers.items()}

    def is_written() -> bool:
        return all(writer.noted() > before[topic] for topic, writer in writers.items())

    await_true(is_written, _WRITTEN_S, f"{name}: records are written again")


def _found(clusters: TwoClusters, topic: str, writer: WriterProcess, stack: ExitStack) -> Tally:
    """Return what a new reader finds of what a writer had acknowledged; all of it is on the origin."""
    reader = ReaderProcess(f"{topic}-new", clusters.servers, topic, clusters.folder)
    stack.callback(reader.kill)
    reader.start()
    return tally(writer.acknowledged()[0], reader.read_to(end_offsets(clusters.servers[0], topic)))
