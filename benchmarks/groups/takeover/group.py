"""Group ``takeover``: required rate in the first verdict after a leader switch, and time to the alert after a death.

Four brokers run a throttled move of two partitions under steady producers. One broker leads both of them after the
switch. Half of the switches are preferred leader elections. In the other half the leader's broker is killed with
SIGKILL, and restarted after the alert. The throttle is enough before the switch and too low after it. All settings of
Headroom and Kafka are the defaults, and each switch has a move of its own.

`required_error_ratio_max` and `_median`: relative error of `required_bytes_per_s` of the new leader in the first tick
that shows it. The true value is computed from what the producers wrote: the bytes that Kafka acknowledged in the
seconds before the switch, times the followers that each partition has after it. `linger.ms` is 0 to 100. The producers
hold all records while there is no leader, and send them at once when there is one. A required rate that is unknown in
that tick counts as an error of 1.

`death_to_throttle_alert_s_median`, `_p95` and `_max`: from Kafka's own switch after a death until the alert about the
throttle of the new leader is printed. Kafka's metadata is read fifty times a second, and the time before the request
counts. The time from the kill to the switch is not part of it; `death_to_switch_s_median` is its median.
`election_to_throttle_alert_s_median` and `_p95` are of the elections, with the same move.

There are 20 elections (`--elections`) and 20 deaths (`--deaths`). A run can be made in parts. Switches recorded in
`benchmarks/parts/takeover` with the same code count and are not repeated.
"""

from __future__ import annotations

import os
import random
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import asdict, dataclass
from pathlib import Path

from benchmarks.fixtures.bench_cluster import BenchCluster, OnProgress
from benchmarks.fixtures.part_records import PartRecords
from benchmarks.fixtures.throttled_move import LoadSettings, MovedPartition, ThrottledMove
from benchmarks.groups.alert_latency import LeaderWatcher, catching_up, find_alert
from benchmarks.options.fields import COUNT, option
from benchmarks.results import Figure, parts, percentile
from headroom.cli.common.watch_process import WatchProcess
from headroom.schemas.tables import THROTTLE_HEADROOM
from headroom.streaming.clock import now_ms
from headroom.streaming.delta.query_table import query

# Before the switch each leader has three followers, and requires 3.3 MB/s. After it one leader requires 4.4 MB/s, and
# 6.6 MB/s if the earlier leader still follows.
_WRITE_BYTES_PER_S = 1.1e6
THROTTLE_BYTES_PER_S = 3.9e6
# A new replica copies about 40 MB with the first burst under the throttle, and up to 2 MB/s more afterwards.
_HISTORY_BYTES = 80_000_000
# Longer than Kafka needs for a switch after a death (8 to 14 s), so that producers lose no record.
_HELD_S = 40.0
_LINGERS_MS = (0, 100, 20, 50, 5, 80, 10, 35)
# Time over which the written bytes are counted. It is as long as the rate window.
_WRITTEN_S = 10.0
_ALERT_S = 90.0
_GOLD_S, _POLL_S = 60.0, 0.5
# An alert that fires again takes twice as long to resolve. Each broker takes over once in two elections and two deaths.
_SWITCHES_PER_WATCH = 4


@dataclass(frozen=True)
class TakeoverCase:
    """One switch to measure.

    Attributes:
        number: number among those of its cause.
        dies: whether the leader's broker is killed; otherwise another replica is elected.
    """

    number: int
    dies: bool

    @property
    def name(self) -> str:
        """Return its name in messages and record files."""
        return f"{'death' if self.dies else 'election'}-{self.number}"

    @property
    def linger_ms(self) -> int:
        """Return ``linger.ms`` of the producers, milliseconds."""
        return _LINGERS_MS[self.number % len(_LINGERS_MS)]

    @property
    def brokers(self) -> tuple[int, int, int, int]:
        """Return the leader before the switch, the one after it, another follower, and the destination."""
        a, b, c, d = ((1, 2, 3, 4), (2, 3, 4, 1), (3, 4, 1, 2), (4, 1, 2, 3))[(self.number + 2 * self.dies) % 4]
        return a, b, c, d

    def partitions(self) -> list[MovedPartition]:
        """Return the partition whose leader switches, and one that the new leader leads all the time."""
        a, b, c, d = self.brokers
        return [
            MovedPartition((a, b, c), (b, c, d), _WRITE_BYTES_PER_S, _HISTORY_BYTES),
            MovedPartition((b, c, a), (b, c, d), _WRITE_BYTES_PER_S, _HISTORY_BYTES),
        ]

    def real_required_bytes_per_s(self, written_bytes_per_s: Mapping[int, float]) -> float:
        """Return the true required rate of the new leader, from the write rate of each partition."""
        a, b, *_ = self.brokers
        followers = [{*moved.before, *moved.after} - {b} - ({a} if self.dies else set()) for moved in self.partitions()]
        return sum(written_bytes_per_s[number] * len(own) for number, own in enumerate(followers))


@dataclass(frozen=True)
class MeasuredSwitch:
    """One switch that was measured.

    Attributes:
        dies: whether the leader's broker was killed.
        linger_ms: ``linger.ms`` of the producers, milliseconds.
        required_bytes_per_s: required rate of the new leader in the first tick that shows it; None if unknown.
        real_bytes_per_s: true required rate.
        switch_s: seconds from the kill, or from the request of an election, to Kafka's switch.
        alert_s: seconds from Kafka's switch to the printed alert.
        load_average: load average of the machine over the last minute.
    """

    dies: bool
    linger_ms: int
    required_bytes_per_s: float | None
    real_bytes_per_s: float
    switch_s: float
    alert_s: float
    load_average: float

    @property
    def error_ratio(self) -> float:
        """Return the relative error of the required rate, negative if it was too low; 1 if it was unknown."""
        if self.required_bytes_per_s is None:
            return 1.0
        return self.required_bytes_per_s / self.real_bytes_per_s - 1


@dataclass(frozen=True)
class TakeoverOptions:
    """Options of the group ``takeover``."""

    elections: int = option(20, COUNT, "Preferred leader elections.")
    deaths: int = option(20, COUNT, "Deaths of the leader's broker.")


def measure(on_progress: OnProgress, options: TakeoverOptions) -> list[Figure]:
    """Return the figures of elections and of deaths.

    Raises:
        HeadroomError: a move was not healthy before its switch, an alert did not fire, or a tick is not in the table.
    """
    cases = schedule(options.elections, options.deaths)
    folder = parts("takeover", __name__)
    records: PartRecords[TakeoverCase] = PartRecords(lambda case: folder)
    if left := records.without_record(cases):
        with BenchCluster(4) as bench:
            for first in range(0, len(left), _SWITCHES_PER_WATCH):
                _record_switches(bench, left[first : first + _SWITCHES_PER_WATCH], records, on_progress)
    return figures([MeasuredSwitch(**record) for record in records.read_all(cases)])


def schedule(elections: int, deaths: int) -> list[TakeoverCase]:
    """Return that many elections and deaths, in turn, so that both have the same conditions."""
    numbers = range(max(elections, deaths))
    pairs = ((TakeoverCase(number, False), TakeoverCase(number, True)) for number in numbers)
    return [case for pair in pairs for case in pair if case.number < (deaths if case.dies else elections)]


def figures(switches: Sequence[MeasuredSwitch]) -> list[Figure]:
    """Return the figures of switches. Those of a cause without any switch are left out."""
    measured: list[Figure] = []
    if switches:
        errors = [abs(switch.error_ratio) for switch in switches]
        measured += [
            Figure("required_error_ratio_median", percentile(errors, 0.5), "ratio", len(errors)),
            Figure("required_error_ratio_max", max(errors), "ratio", len(errors)),
        ]
    if deaths := [switch for switch in switches if switch.dies]:
        measured += _alert_figures("death", deaths)
        switch_s = percentile([switch.switch_s for switch in deaths], 0.5)
        measured.append(Figure("death_to_switch_s_median", switch_s, "s", len(deaths)))
    if elections := [switch for switch in switches if not switch.dies]:
        measured += _alert_figures("election", elections)
    return measured


def _alert_figures(cause: str, switches: Sequence[MeasuredSwitch]) -> list[Figure]:
    alert_s, name = [switch.alert_s for switch in switches], f"{cause}_to_throttle_alert_s"
    return [
        Figure(f"{name}_median", percentile(alert_s, 0.5), "s", len(alert_s)),
        Figure(f"{name}_p95", percentile(alert_s, 0.95), "s", len(alert_s)),
        Figure(f"{name}_max", max(alert_s), "s", len(alert_s)),
    ]


def _record_switches(
    bench: BenchCluster, cases: Sequence[TakeoverCase], records: PartRecords[TakeoverCase], on_progress: OnProgress
) -> None:
    """Record switches one after another, with one watch and new tables."""
    store = bench.folder / f"store-{cases[0].name}"
    with bench.watch(store) as watch:
        for case in cases:
            measured = _measure_switch(bench, watch, store, case)
            records.write(case, asdict(measured))
            required = measured.required_bytes_per_s
            text = "unknown" if required is None else f"{required / 1e6:.2f} MB/s"
            on_progress(
                f"{case.name}, linger {case.linger_ms} ms: required {text} of really "
                f"{measured.real_bytes_per_s / 1e6:.2f} MB/s ({measured.error_ratio:+.1%}), switched after "
                f"{measured.switch_s:.1f} s, alert {measured.alert_s:.2f} s later, load {measured.load_average:.1f}"
            )


def _measure_switch(bench: BenchCluster, watch: WatchProcess, store: Path, case: TakeoverCase) -> MeasuredSwitch:
    a, b, _, d = case.brokers
    topic = f"takeover-{case.name}"
    producers = LoadSettings(linger_ms=case.linger_ms, held_s=_HELD_S)
    with ThrottledMove(bench, topic, case.partitions(), producers) as move:
        move.start_move(THROTTLE_BYTES_PER_S)
        counted = move.sent_bytes(), time.monotonic()
        healthy = {(a, "leader"), (b, "leader"), (d, "follower")}
        watch.wait(lambda: catching_up(watch) == healthy, 90, f"{case.name}: all brokers and roles catching up")
        time.sleep(max(0.0, counted[1] + _WRITTEN_S - time.monotonic()) + random.uniform(0, 1))
        written = _written_bytes_per_s(counted, (move.sent_bytes(), time.monotonic()))
        earlier, began_ms = len(watch.events()), now_ms()
        with LeaderWatcher(bench, topic, before=a, node=b) as leader:
            began_s = time.monotonic()
            with _switched(bench, move, case):
                alert = watch.wait(lambda: find_alert(watch, earlier, b), _ALERT_S, f"{case.name}: alert on broker {b}")
                load_average = os.getloadavg()[0]
            switched_s = leader.switched_s()
        required = _first_required_bytes_per_s(watch, store, (topic, b), began_ms)
    watch.wait(lambda: not watch.firing(), 180, f"{case.name}: alerts resolved after the move")
    return MeasuredSwitch(
        case.dies,
        case.linger_ms,
        required,
        case.real_required_bytes_per_s(written),
        switched_s - began_s,
        alert.at_s - switched_s,
        load_average,
    )


@contextmanager
def _switched(bench: BenchCluster, move: ThrottledMove, case: TakeoverCase) -> Iterator[None]:
    """Make the leader of partition 0 switch. A broker that is killed for this is down for the length of the block."""
    if not case.dies:
        move.elect_preferred(0)
        yield
        return
    bench.kill(case.brokers[0])
    try:
        yield
    finally:
        bench.restart(case.brokers[0])


def _written_bytes_per_s(
    before: tuple[Mapping[int, int], float], after: tuple[Mapping[int, int], float]
) -> dict[int, float]:
    """Return the write rate of each partition between two pairs of acknowledged bytes and monotonic seconds."""
    (sent_before, before_s), (sent_after, after_s) = before, after
    return {number: (sent - sent_before[number]) / (after_s - before_s) for number, sent in sent_after.items()}


def _first_required_bytes_per_s(
    watch: WatchProcess, store: Path, topic_leader: tuple[str, int], since_ms: int
) -> float | None:
    """Return the required rate of the new leader in the first tick that shows it, once that tick is written."""
    topic, leader = topic_leader
    sql = (
        "SELECT required_bytes_per_s, partitions FROM data "
        f"WHERE tick_ms >= {since_ms} AND broker = {leader} AND role = 'leader' ORDER BY tick_ms"
    )

    def first() -> list[float | None] | None:
        for row in query(str(store), THROTTLE_HEADROOM.path, sql) or ():
            if any(p["topic"] == topic and p["partition"] == 0 and p["leader"] == leader for p in row["partitions"]):
                return [row["required_bytes_per_s"]]
        return None

    return watch.wait(first, _GOLD_S, f"the first verdict of broker {leader} as leader of {topic}-0", _POLL_S)[0]
