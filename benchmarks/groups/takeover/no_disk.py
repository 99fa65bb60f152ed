"""Group ``no_disk``: time to the alert of a leader switch while the disk of the tables cannot be written.

The scene is that of the group `switch`, with a larger history. The tables are on a file system of their own. It is
full in every other run, and read-only in the others. All settings of alerts and Spark are the defaults.

- `disk_full_alert_s_max` and `_median`: the watch is running, the disk becomes full or read-only, and the JVM of the
  watch is killed. The leader switches as soon as the JVM is back. The time is from that moment to the printed alert.
  The JVM is back when the watch has evaluated a new tick, which `/metrics` shows four times a second.
  `disk_full_jvm_back_s_max` is the time from the kill to that moment.
- `disk_full_start_alert_s_max` and `_median`: the watch is started on the full or read-only disk, and the leader
  switches 0 to 5 s later. The time is from the start to the printed alert.

There are 4 kills (`--kills`) and 4 starts (`--starts`). This needs root, and the right to mount.
"""

from __future__ import annotations

import os
import random
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass

from benchmarks.faults.disks import OwnDisk
from benchmarks.fixtures.bench_cluster import BenchCluster, OnProgress, await_true
from benchmarks.fixtures.freshness import Freshness
from benchmarks.fixtures.processes import jvms_of
from benchmarks.fixtures.throttled_move import ThrottledMove
from benchmarks.groups.alert_latency import SWITCH_BYTES_PER_S, catching_up, find_alert, switch_brokers, switch_move
from benchmarks.options.fields import COUNT, option
from benchmarks.results import Figure, percentile
from headroom.cli.common.watch_output import Line
from headroom.cli.common.watch_process import WatchProcess
from headroom.cluster.embedded.layout import free_ports

# Under its throttle the move copies 116 MB at first, and 15 MB more in each 11.4 s. The first bursts and the start of a
# JVM take less than a minute, so it does not end before the switch.
_HISTORY_BYTES = 100_000_000
_SWITCH_WITHIN_S = 5.0
_BACK_S, _ALERT_S = 180.0, 120.0
# A tick that the killed JVM evaluated is shown within this time.
_SHOWN_S = 1.0


@dataclass(frozen=True)
class NoDiskOptions:
    """Options of the group ``no_disk``."""

    kills: int = option(4, COUNT, "Kills of the JVM of a watch.")
    starts: int = option(4, COUNT, "Starts of a watch.")


def measure(on_progress: OnProgress, options: NoDiskOptions) -> list[Figure]:
    """Return the figures of kills and of starts.

    Raises:
        HeadroomError: this user may not mount, a move was not healthy before its switch, or an alert did not fire.
    """
    kills, starts = options.kills, options.starts
    with BenchCluster(3) as bench:
        port = free_ports(1)[1].client
        bench.add_section("metrics", {"listen": f"127.0.0.1:{port}"})
        with Freshness(port, bench.settings.cluster.name) as fresh:
            killed = [_kill(bench, fresh, number, on_progress) for number in range(kills)]
        started_s = [_start(bench, number, on_progress) for number in range(kills, kills + starts)]
    return figures(killed, started_s)


def figures(killed: Sequence[tuple[float, float]], started_s: Sequence[float]) -> list[Figure]:
    """Return the figures; those without a run are left out.

    Args:
        killed: for each kill, seconds from the kill to the JVM that is back, and from there to the alert.
        started_s: for each start, seconds from the start to the alert.
    """
    measured: list[Figure] = []
    if killed:
        measured.append(Figure("disk_full_jvm_back_s_max", max(back_s for back_s, _ in killed), "s", len(killed)))
        measured += _times("disk_full_alert_s", [alert_s for _, alert_s in killed])
    if started_s:
        measured += _times("disk_full_start_alert_s", started_s)
    return measured


def _times(name: str, values_s: Sequence[float]) -> list[Figure]:
    return [
        Figure(f"{name}_median", percentile(values_s, 0.5), "s", len(values_s)),
        Figure(f"{name}_max", max(values_s), "s", len(values_s)),
    ]


def _kill(bench: BenchCluster, fresh: Freshness, number: int, on_progress: OnProgress) -> tuple[float, float]:
    """Return the seconds from the kill of a JVM without a disk until it is back, and from there to the alert."""
    a, b, c = switch_brokers(number)
    healthy = {(a, "leader"), (b, "leader"), (c, "follower")}
    with OwnDisk(bench.folder / f"disk-{number}") as disk, bench.watch(disk.store) as watch:
        fresh.reset()
        # Its first verdict, so that the move does not wait for the start.
        await_true(lambda: fresh.since(watch.started_s), _BACK_S, "a first evaluated tick")
        with switch_move(bench, number, _HISTORY_BYTES) as move:
            move.start_move(SWITCH_BYTES_PER_S)
            watch.wait(lambda: catching_up(watch) == healthy, 60, "all brokers and roles catching up before the switch")
            trouble = _break(disk, number)
            for jvm in jvms_of(watch.processes()[0]):
                jvm.kill()
            killed_s = time.monotonic()
            await_true(lambda: fresh.since(killed_s + _SHOWN_S), _BACK_S, "a tick evaluated by the next JVM")
            back_s = time.monotonic()
            alert = _switch(watch, move, b)
    on_progress(
        f"kill {number + 1}, disk {trouble}: JVM back after {back_s - killed_s:.1f} s, alert "
        f"{alert.at_s - back_s:.2f} s later, load {os.getloadavg()[0]:.1f}"
    )
    return back_s - killed_s, alert.at_s - back_s


def _start(bench: BenchCluster, number: int, on_progress: OnProgress) -> float:
    """Return the seconds from the start of a watch without a disk to the alert of a switch."""
    _, b, _ = switch_brokers(number)
    with OwnDisk(bench.folder / f"disk-{number}") as disk, switch_move(bench, number, _HISTORY_BYTES) as move:
        move.start_move(SWITCH_BYTES_PER_S)
        trouble = _break(disk, number)
        with bench.watch(disk.store) as watch:
            time.sleep(random.uniform(0, _SWITCH_WITHIN_S))
            switched_s = time.monotonic()
            alert = _switch(watch, move, b)
    on_progress(
        f"start {number + 1}, disk {trouble}: switch after {switched_s - watch.started_s:.1f} s, alert "
        f"{alert.at_s - watch.started_s:.2f} s after the start, load {os.getloadavg()[0]:.1f}"
    )
    return alert.at_s - watch.started_s


def _switch(watch: WatchProcess, move: ThrottledMove, new_leader: int) -> Line:
    """Request the election, and return the alert about the new leader."""
    earlier = len(watch.events())
    move.elect_preferred(0)
    return watch.wait(
        lambda: find_alert(watch, earlier, new_leader), _ALERT_S, f"alert on broker {new_leader} as leader"
    )


def _break(disk: OwnDisk, number: int) -> str:
    """Prevent writes to a disk, and return how."""
    ways: dict[str, Callable[[], None]] = {"full": disk.fill, "read-only": disk.turn_read_only}
    name = list(ways)[number % len(ways)]
    ways[name]()
    return name
