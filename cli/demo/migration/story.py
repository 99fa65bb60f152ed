"""Sequence of the migration's demo, from the applications on the origin to the count of their records."""

from __future__ import annotations

import re
import shlex
import time
from collections.abc import Callable, Sequence
from contextlib import closing
from dataclasses import replace
from pathlib import Path
from typing import TypeVar

from headroom.cli.common.output import echo, echo_lines
from headroom.cli.common.progress import ProgressView
from headroom.cli.common.watch_process import WatchProcess
from headroom.cli.demo.beside import CommandBeside
from headroom.cli.demo.migration.answers import count_records
from headroom.cli.demo.migration.applications import BillingReader, OrderWriter
from headroom.cli.demo.migration.clients import ApplicationClients
from headroom.cli.demo.migration.outcome import KilledBroker, MigrationOutcome, SwitchedPartition
from headroom.cli.demo.migration.scenario import (
    BROKERS,
    GROUP,
    MIGRATION,
    ORIGIN,
    PREPARE_S,
    READER,
    RECORDS_PER_S,
    TARGET,
    TOPIC,
    WRITER,
    MigrationKafka,
)
from headroom.cli.demo.migration.seen import SeenProgress, newest_progress
from headroom.cli.demo.steps import STEP_TIMEOUT_S, await_watch, run_headroom
from headroom.cluster.embedded import EmbeddedCluster
from headroom.cluster.embedded.patience import Patience
from headroom.cluster.migration.agreements import new_agreement_reader
from headroom.operations.migration.running.agreements import READ_S, own_agreements
from headroom.planning.migration.progress.progress import MigrationVerdict
from headroom.schemas.config import Settings
from headroom.schemas.errors import HeadroomError
from headroom.schemas.keys import TopicPartition
from headroom.schemas.migrations import MigrationStatus, PartitionAgreement

T = TypeVar("T")
# Up to the switch, and what a broker that was just killed may add.
_RUN_S = PREPARE_S + STEP_TIMEOUT_S
# Half of the time around a switch in which a pause counts, and the time after a new leader.
_AROUND_S = 5.0
_POLL_S = 0.1
# To read a table, or the agreements, takes some of what the processes that write them want of two cores.
_TABLE_POLL_S = 1.0
_AFTER_LAST_S = 1.0
# Time without a record after which those that are not read count as lost.
_QUIET_S = 30.0
# Clock of a command that runs beside: the demo has its own.
_CLOCK = re.compile(r"^\d+:\d\d  ")


class MigrationStory:
    """The steps of the demo, in order.

    Args:
        origin: brokers of the origin, of which one is killed.
        kafka: requests to both clusters.
        watch: the running ``headroom watch`` of the target.
        progress: progress output.
        settings: settings of both clusters and the tables.
        config: the file of these settings.
    """

    def __init__(
        self,
        origin: EmbeddedCluster,
        kafka: MigrationKafka,
        watch: WatchProcess,
        progress: ProgressView,
        settings: Settings,
        config: Path,
    ) -> None:
        self._origin = origin
        self._kafka = kafka
        self._watch = watch
        self._progress = progress
        self._settings = settings
        self._config = config
        self._clients = ApplicationClients(settings)
        self._writer = OrderWriter(WRITER, self._clients.plain_producer, RECORDS_PER_S)
        self._reader = BillingReader(READER, self._clients.plain_consumer)
        self._seen: Sequence[SeenProgress] = ()

    def play(self) -> MigrationOutcome:
        """Run all steps and return the measurements.

        Raises:
            HeadroomError: a step did not complete in time.
        """
        self._kafka.create_topic()
        with self._writer, self._reader:
            self._begin()
            self._plan()
            words = ["migration", "run", TOPIC, "--name", MIGRATION, "--method", "routed"]
            words += ["--router", WRITER, "--router", READER, "--execute", "--config", str(self._config)]
            self._progress.print_line(f"$ {shlex.join(['headroom', *words])}")
            with CommandBeside(words, self._print_line_of_run) as run:
                self._start(run)
                killed = self._kill_leader()
                self._await_switch(run)
            self._await_removable()
            self._count()
        return self._outcome(killed)

    def _begin(self) -> None:
        rate = sum(RECORDS_PER_S.values())
        topic = f"{TOPIC} has {len(RECORDS_PER_S)} partitions with {BROKERS} replicas"
        text = f"On {ORIGIN}, {topic}; {WRITER} writes {rate:,.0f} records/s, {READER} of the group {GROUP} reads them"
        with self._progress.step(text):
            self._wait(lambda: self._are_restarted() and self._reader.count > 0, "the first records")
        with self._progress.step(f"Starting headroom watch of {TARGET}, which does not have {TOPIC} yet"):
            self._wait(lambda: self._watch.verdicts() is not None, "a first verdict")
        await_watch(self._watch, self._progress, self._settings)

    def _plan(self) -> None:
        words = ["migration", "plan", TOPIC, "--method", "routed", "--config", str(self._config)]
        with self._progress.step(f"$ {shlex.join(['headroom', *words])}"):
            text = run_headroom(words)
        echo()
        echo_lines(text.strip())
        echo()

    def _print_line_of_run(self, line: str) -> None:
        if line:
            self._progress.print_line(f"run: {_CLOCK.sub('', line)}")

    def _start(self, run: CommandBeside) -> None:
        """Wait for the end offsets, restart the applications with the library, and wait until the target is in use."""
        with self._progress.step("Waiting until it has created the topics and agreed on end offsets"):
            self._wait(lambda: _has_ended(run) or self._is_agreed(), "an agreement", _TABLE_POLL_S)
        with self._progress.step(
            f"It waits for its routers: {WRITER} and {READER} are restarted with headroom.routing"
        ):
            self._writer.restart(self._clients.routed_producer)
            self._reader.restart(self._clients.routed_consumer)
            self._wait(self._are_restarted, "the restart")
        with self._progress.step("Waiting until both have agreed, and the target is in use"):
            self._wait(lambda: _has_ended(run) or self._is_started(), "the start", _TABLE_POLL_S)

    def _are_restarted(self) -> bool:
        return self._writer.is_restarted and self._reader.is_restarted

    def _agreements(self) -> dict[TopicPartition, PartitionAgreement]:
        """Return what is agreed about each partition; nothing before there is a topic for it."""
        with closing(new_agreement_reader(self._settings.cluster)) as reader:
            if not reader.exists():
                return {}
            reader.read_to_end(READ_S)
            return own_agreements(reader, MIGRATION)

    def _is_agreed(self) -> bool:
        return len(self._agreements()) == len(RECORDS_PER_S)

    def _is_started(self) -> bool:
        return all(one.status != MigrationStatus.PLANNED for one in self._agreements().values())

    def _kill_leader(self) -> KilledBroker:
        """Kill the leader of a partition on the origin, and return what was measured up to the next leader."""
        ends = {name.partition: one.end_offset or 0 for name, one in self._agreements().items()}
        partition = self._kafka.victim(ends)
        name, leader = TopicPartition(TOPIC, partition), self._kafka.leaders()[partition]
        with self._progress.step(f"Killing broker {leader} of {ORIGIN}, which leads {name}; waiting for a new leader"):
            self._origin.kill(leader)
            killed_s = time.time()

            def new_leader() -> int | None:
                now = self._kafka.leaders()[partition]
                return None if now in (-1, leader) else now

            new = self._wait(new_leader, f"a new leader of {name}")
            took_s = time.time() - killed_s
        self._progress.print_line(f"Broker {new} leads {name} after {took_s:.1f} s")
        return KilledBroker(name, leader, new, killed_s, took_s, None)

    def _await_switch(self, run: CommandBeside) -> None:
        with self._progress.step("Waiting for the switch of each partition, which headroom watch follows"):
            shown: dict[TopicPartition, str] = {}

            def is_over() -> bool:
                self._seen = newest_progress(self._settings, MIGRATION)
                for one in self._seen:
                    if shown.get(one.name) != one.verdict:
                        self._progress.print_line(f"watch: {one.name} {one.verdict}: {one.reason}")
                        shown[one.name] = one.verdict
                return _has_ended(run)

            self._wait(is_over, "the end of the migration", _TABLE_POLL_S, _RUN_S)

    def _await_removable(self) -> None:
        with self._progress.step(f"Clients use {TARGET} alone; waiting until headroom watch sees no need of {ORIGIN}"):

            def is_removable() -> bool:
                self._seen = newest_progress(self._settings, MIGRATION)
                return bool(self._seen) and self._needing() is None

            self._wait(is_removable, f"the end of {TOPIC} on {ORIGIN}", _TABLE_POLL_S)
        for one in self._seen:
            self._progress.print_line(f"watch: {one.name} {one.verdict}: {one.reason}")

    def _needing(self) -> SeenProgress | None:
        """Return the first partition that the watch has not seen removable; None if there is none."""
        return next((one for one in self._seen if one.verdict != MigrationVerdict.REMOVABLE), None)

    def _note_text(self) -> str:
        counts = f"{self._writer.acknowledged:,} records acknowledged, {self._reader.count:,} read"
        needing = self._needing()
        return counts if needing is None else f"{counts}; {needing.name} {needing.verdict}: {needing.reason}"

    def _count(self) -> None:
        """End the applications once all acknowledged records are read."""
        with self._progress.step("Ending the applications, and counting their records"):
            self._writer.end()

            last, quiet = -1, Patience(_QUIET_S)

            def is_read() -> bool:
                nonlocal last, quiet
                if self._reader.count != last:
                    last, quiet = self._reader.count, Patience(_QUIET_S)
                # A record that is lost is a result, which the table has to show.
                return self._reader.count >= self._writer.acknowledged or quiet.is_over()

            self._wait(is_read, "the last records", deadline_s=_RUN_S)
            # A record that comes twice comes by then.
            until_s = time.monotonic() + _AFTER_LAST_S
            self._wait(lambda: time.monotonic() > until_s, "further records")
            self._reader.end()

    def _wait(
        self, condition: Callable[[], T | None], what: str, poll_s: float = _POLL_S, deadline_s: float = STEP_TIMEOUT_S
    ) -> T:
        """Wait until the condition returns a true value, and return it; the watch and both applications have to run."""

        def checked() -> T | None:
            self._writer.require_running()
            self._reader.require_running()
            if found := condition():
                return found
            self._progress.note(self._note_text())
            return None

        return self._watch.wait(checked, deadline_s, what, poll_s)

    def _outcome(self, killed: KilledBroker) -> MigrationOutcome:
        predicted_ms = {one.name: one.expected_ms for one in self._seen}
        on_target = self._kafka.log_ends(self._kafka.target)
        partitions = [
            self._switched(one, predicted_ms.get(one.name), on_target[one.partition])
            for one in self._agreements().values()
        ]
        answers = self._writer.answers[killed.name.partition]
        after_s = killed.killed_s + killed.led_again_s + _AROUND_S
        return MigrationOutcome(
            partitions,
            replace(killed, pause_s=answers.longest_pause_s(killed.killed_s - _AROUND_S, after_s)),
            count_records(self._writer.answers, self._reader.read),
            [line.event for line in self._watch.firing_events(informing=True)],
        )

    def _switched(self, agreed: PartitionAgreement, predicted_ms: int | None, target_end: int) -> SwitchedPartition:
        end, answers = agreed.end_offset or 0, self._writer.answers[agreed.partition]
        switched_s = answers.switched_s(end)
        around_s = None if switched_s is None else (switched_s - _AROUND_S, switched_s + _AROUND_S)
        return SwitchedPartition(
            agreed.name,
            agreed.status,
            end,
            predicted_s=None if predicted_ms is None else predicted_ms / 1000,
            switched_s=switched_s,
            pause_s=None if around_s is None else answers.longest_pause_s(*around_s),
            on_target=target_end - (agreed.target_base_offset or 0),
        )


def _has_ended(run: CommandBeside) -> bool:
    """Return whether the run has ended with success.

    Raises:
        HeadroomError: it has failed.
    """
    if run.code:
        raise HeadroomError("headroom migration run", f"ended with code {run.code}", "See its lines above")
    return run.code == 0
