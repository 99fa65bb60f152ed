"""Group ``cuts``: does a power cut lose anything that Headroom had announced, and does the watch start again?

A live watch writes its tables to a disk of its own, notifies a webhook and a Slack bot, and writes its history. Three
leaders take turns to starve behind their throttle, so that alerts fire and resolve. Meanwhile `headroom reassign run`
moves four partitions between two other brokers, plan after plan. The data of the brokers are on another disk.

20 times (`--cuts`), at fixed random moments after a change of a throttle, the power of that disk is cut: from
one moment on nothing reaches it, and what the kernel still held in memory is lost. All processes of Headroom are killed
then. The disk is mounted again, as after a restart of the machine, and the same commands are started on it.

**Lost.** `power_cut_lost_durable` is the number of announcements from before a cut that the tables do not have after
one, before any repair:

- an event that the watch had printed, in `alerts/events`,
- an event that a receiver had got, in `alerts/deliveries`,
- a move that Kafka had begun for a run, in `actions/journal`: the newest submission of its partition.

Announcements of all earlier cuts are checked again after each cut. n is the number of all announcements. A table that
cannot be read has lost all of them.

**Not started.** `power_cut_not_started` is the number of cuts after which the watch did not evaluate a tick within two
minutes (it is given no help for that), or the run that was under way did not end with the same command, or the history
process wrote no newer tick within five minutes of `headroom maintain --repair`.

**Cuts that cut.** Right before each cut the benchmark writes a file of its own without syncing it. If that is still
there after the cut, the cut is void, and counts only for what it lost; `power_cut_count` is the number of the others.
In every second cut the disk writes names early and contents late, so that files come back empty.
`power_cut_emptied_files` is the number of files of tables and checkpoints that came back so.

The disk is an ext4 file system in a file: it needs Linux, root and a loop device. Where one of these is missing the
group ends with an error, and its figures stay unknown.
"""

from __future__ import annotations

import random
import time
from collections.abc import Callable, Collection
from contextlib import ExitStack
from dataclasses import dataclass, field
from typing import TypeVar

from benchmarks.faults.disks import OPTIONS, CutDisk
from benchmarks.faults.leaders_in_turn import INBOUND_BYTES_PER_S, PARTITIONS, LeadersInTurn
from benchmarks.faults.store_files import repair_store_of, row_count
from benchmarks.fixtures.bench_cluster import BenchCluster, OnProgress, await_true, failure
from benchmarks.fixtures.processes import kill_watch
from benchmarks.fixtures.receivers.alert_events import stored_events
from benchmarks.fixtures.receivers.receiver_process import Receivers
from benchmarks.fixtures.throttled_move import ThrottledMove
from benchmarks.groups.durability.runs import TOPIC, EndlessRuns
from benchmarks.options.fields import AT_LEAST_ONE, option
from benchmarks.results import Figure
from headroom.alerts.delivery.delivery_log import event_key
from headroom.planning.reassignments.run.journal import StepKind
from headroom.schemas.errors import HeadroomError
from headroom.schemas.tables import ALERT_DELIVERIES, BRONZE_TICKS
from headroom.streaming.delta.query_table import query
from headroom.streaming.tables.journal import ActionJournal

T = TypeVar("T")
# Fixed, so that every run cuts at the same moments.
_SEED = 23
_BROKERS = 5
_RUN_BROKERS = (4, 5)
_ENOUGH_BYTES_PER_S = 4e6
_ALERTS = {"resolve_s": 0.5}
# The commands beside it leave a history that gives way too little time.
_SPARK = {"history_nice": 0}
_FIRST_S, _START_S, _RUN_S, _HISTORY_S, _REPAIR_S = 240.0, 120.0, 180.0, 300.0, 180.0
_MOST_DELAY_S = 5.0


@dataclass
class Announced:
    """What Headroom has announced so far.

    Attributes:
        events: keys of the events that a watch has printed.
        delivered: keys of the events that a receiver has got.
        moved: by partition of the runs the broker to which Kafka was last seen to move it.
    """

    events: set[str] = field(default_factory=set)
    delivered: set[str] = field(default_factory=set)
    moved: dict[int, int] = field(default_factory=dict)


@dataclass(frozen=True)
class Stored:
    """What the tables have. None: the table cannot be read.

    Attributes:
        events: keys of the events in ``alerts/events``.
        delivered: keys of the events in ``alerts/deliveries``.
        submitted: by partition of the runs the target of its newest submission in ``actions/journal``.
    """

    events: Collection[str] | None
    delivered: Collection[str] | None
    submitted: dict[int, str] | None


@dataclass
class CutOutcome:
    """What was found after all cuts.

    Attributes:
        lost: announcements that the tables did not have after a cut.
        announcements: number of announcements.
        not_started: number of cuts after which something did not start again.
        cuts: number of cuts that lost what was not synced.
        emptied: number of files that came back empty.
    """

    lost: set[str] = field(default_factory=set)
    announcements: int = 0
    not_started: int = 0
    cuts: int = 0
    emptied: int = 0


@dataclass(frozen=True)
class CutsOptions:
    """Options of the group ``cuts``."""

    cuts: int = option(20, AT_LEAST_ONE, "Power cuts.")


def measure(on_progress: OnProgress, options: CutsOptions) -> list[Figure]:
    """Return the figures.

    Raises:
        HeadroomError: this machine cannot cut the power of a disk, or nothing ran before the first cut.
    """
    with ExitStack() as stack:
        bench = stack.enter_context(BenchCluster(_BROKERS))
        disk = CutDisk(bench.folder)
        stack.callback(disk.close)
        disk.make()
        bench.move_store(disk.store)
        receivers = stack.enter_context(Receivers(bench.folder))
        receivers.configure(bench, {"least_severity": "info"})
        bench.add_section("alerts", _ALERTS)
        bench.add_section("spark", _SPARK)
        move = stack.enter_context(ThrottledMove(bench, "cuts", PARTITIONS))
        watched = stack.enter_context(CutWatch(bench, disk, receivers))
        move.start_move(_ENOUGH_BYTES_PER_S, INBOUND_BYTES_PER_S)
        watched.await_work(_FIRST_S)
        outcome = _cuts(watched, options.cuts, on_progress)
    if not outcome.cuts:
        raise failure("no cut has lost what was not synced: this disk writes everything at once")
    return figures(outcome)


def figures(outcome: CutOutcome) -> list[Figure]:
    """Return the figures of some cuts."""
    return [
        Figure("power_cut_lost_durable", len(outcome.lost), "announcements", outcome.announcements),
        Figure("power_cut_not_started", outcome.not_started, "cuts", outcome.cuts),
        Figure("power_cut_count", outcome.cuts, "cuts", outcome.cuts),
        Figure("power_cut_emptied_files", outcome.emptied, "files", outcome.cuts),
    ]


def _cuts(watched: CutWatch, count: int, on_progress: OnProgress) -> CutOutcome:
    draw, outcome, moves = random.Random(_SEED), CutOutcome(), 0
    for number in range(count):
        watched.change_throttle()
        time.sleep(draw.uniform(0, _MOST_DELAY_S))
        is_effective, emptied = watched.cut(OPTIONS[(number + 1) % len(OPTIONS)])
        lost = lost_announcements(watched.announced, watched.stored())
        about = "" if is_effective else "; void: the file that was not synced is still there"
        on_progress(f"cut {number + 1}: {emptied} files came back empty; {len(lost)} announcements lost{about}")
        for one in sorted(lost):
            on_progress(f"    lost: {one}")
        fault = watched.start_again()
        on_progress(f"    {fault or 'started'}")
        outcome.lost |= {f"{number}: {one}" for one in lost}
        outcome.cuts += is_effective
        outcome.not_started += is_effective and fault is not None
        outcome.emptied += emptied
        moves += len(watched.announced.moved)
    outcome.announcements = len(watched.announced.events) + len(watched.announced.delivered) + moves
    return outcome


def lost_announcements(announced: Announced, stored: Stored) -> set[str]:
    """Return what was announced and is not stored, one text each."""
    events = {f"event {key}" for key in announced.events - set(stored.events or ())}
    delivered = {f"delivery of {key}" for key in announced.delivered - set(stored.delivered or ())}
    submitted = stored.submitted or {}
    moved = {
        f"move of {TOPIC}-{partition} to broker {broker}"
        for partition, broker in announced.moved.items()
        if submitted.get(partition) != f"[{broker}]"
    }
    return events | delivered | moved


class CutWatch:
    """A watch and runs on a disk whose power is cut.

    Args:
        bench: the cluster.
        disk: disk of the tables, mounted.
        receivers: receivers of the watch.

    Attributes:
        announced: all that Headroom had announced before the last cut.
    """

    def __init__(self, bench: BenchCluster, disk: CutDisk, receivers: Receivers) -> None:
        self.announced = Announced()
        self._bench = bench
        self._disk = disk
        self._receivers = receivers
        self._leaders = LeadersInTurn(bench.settings, _ENOUGH_BYTES_PER_S)
        self._starving = False
        self._runs = EndlessRuns(bench, _RUN_BROKERS)
        self._watch = bench.watch()

    def __enter__(self) -> CutWatch:
        """Start the runs beside the watch."""
        self._runs.__enter__()
        return self

    def __exit__(self, *_: object) -> None:
        """Kill watch and runs: their tables are not used again."""
        self._runs.__exit__(None, None, None)
        kill_watch(self._watch)

    def await_work(self, deadline_s: float) -> None:
        """Return once verdicts are printed, a run has ended, and the history is written.

        Raises:
            HeadroomError: one of these did not happen in time.
        """
        self._watch.wait(self._watch.verdicts, deadline_s, "first verdicts")
        await_true(lambda: self._runs.done, deadline_s, "the end of a run")
        await_true(self._history_rows, deadline_s, "rows of the history")

    def change_throttle(self) -> None:
        """Let the next leader starve, or give the current one enough."""
        self._starving = not self._starving
        self._leaders.turn(self._starving)

    def cut(self, options: str) -> tuple[bool, int]:
        """Cut the power, kill all processes of Headroom, and mount the disk again.

        Returns:
            Whether the cut lost what was not synced, and the number of files that came back empty.
        """
        watch = self._watch
        delivered = {key for shown in self._receivers.shown().values() for key in shown}
        moved = self._runs.acted
        self._runs.pause()
        self._disk.write_control()
        cut_s = self._disk.cut()
        self._runs.kill()
        kill_watch(watch)
        self.announced.events |= {event_key(line.event) for line in watch.events() if line.at_s < cut_s}
        self.announced.delivered |= delivered
        self.announced.moved.update(moved)
        self._disk.unmount()
        self._disk.mount(options)
        return self._disk.lost_control(), self._disk.emptied_files()

    def stored(self) -> Stored:
        """Return what the tables have, before any repair."""
        store, cluster = str(self._disk.store), self._bench.settings.cluster.name

        def delivered() -> set[str]:
            return {row["event_key"] for row in query(store, ALERT_DELIVERIES.path, "SELECT event_key FROM data") or []}

        def submitted() -> dict[int, str]:
            rows = ActionJournal(store).rows(cluster, [StepKind.SUBMIT])
            return {int(row.subject.removeprefix(f"{TOPIC}-")): row.after or "" for row in rows}

        return Stored(
            _or_none(lambda: {event_key(event) for event in stored_events(store)}),
            _or_none(delivered),
            _or_none(submitted),
        )

    def start_again(self) -> str | None:
        """Start watch and runs again, repair the tables once the watch evaluates, and return what did not work."""
        failed, done = len(self._runs.failed), self._runs.done
        self._watch = self._bench.watch()
        faults = []
        try:
            self._watch.wait(self._watch.verdicts, _START_S, "verdicts after a cut")
        except HeadroomError as error:
            faults.append(str(error))
        self._runs.resume()
        try:
            repair_store_of(self._bench.config, timeout_s=_REPAIR_S)
        except HeadroomError as error:
            faults.append(str(error))
        written = self._history_rows()
        try:
            await_true(lambda: self._runs.done > done or len(self._runs.failed) > failed, _RUN_S, "the end of a run")
            await_true(lambda: self._history_rows() > written, _HISTORY_S, "further rows of the history")
        except HeadroomError as error:
            faults.append(str(error))
        faults += self._runs.failed[failed:]
        return "; ".join(faults) or None

    def _history_rows(self) -> int:
        """Return the number of rows in ``bronze/ticks``; 0 if it cannot be read."""
        return row_count(self._disk.store / BRONZE_TICKS.path)


def _or_none(read: Callable[[], T]) -> T | None:
    try:
        return read()
    except HeadroomError:
        return None
