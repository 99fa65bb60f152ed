"""Group ``precision``: precision and recall of Headroom's alerts, compared with the stock rules for Kafka.

**Faults.** Faults of eight classes are injected one after another, in a fixed order. A fault lasts until Headroom and
all stock rules have an alert about it, at most 90 seconds (`--fault-s`). Then it is reverted.

**Healthy moves.** Half an hour of healthy moves follows, on the same cluster: throttled, with preferred leader
elections, leader switches and changing loads. Every alert in that time is false.

**Scoring.** An alert counts when it begins to fire.

- An alert of Headroom is true if it begins during a fault and its kind belongs to that fault.
- Headroom detects a fault if an alert of its kind names the right broker.
- An alert of a stock rule is true if it begins during any fault, and it detects that fault.
- Alerts of one stock rule that begin within 30 s count as one, because Alertmanager sends them together.
- A tool without any alert has precision 1.
- A fault of Headroom's own collector counts only for Headroom. The collector runs apart from the watch, as on another
  machine, because a watch restarts its own one within seconds.

**Stock rules.** The rules come with Strimzi, Grafana's Kafka mixin and Confluent's monitoring stacks, with their own
thresholds and times ([benchmarks/stock/rules.yml](../benchmarks/stock/rules.yml)). A Prometheus scrapes jmx_exporter on
the same brokers and evaluates every 5 s. Stock set-ups evaluate every 30 to 60 s, which only delays their alerts. A
rule misses a fault that is shorter than the rule's `for`. `--stock-for-ratio` shortens these times.

**Headroom** runs at one tick a second, with shorter times than its defaults: `alerts.stalled_s` 15 s,
`under_replicated_s` and `left_behind_s` 20 s. `build/precision.json` has all faults and alerts with their times.
"""

from __future__ import annotations

import json
import random
import time
from collections.abc import Sequence
from dataclasses import asdict, dataclass, field, replace

import psutil
from kafka.errors import KafkaError

from benchmarks.fixtures.bench_cluster import SHORT_ALERT_TIMES, BenchCluster, OnProgress
from benchmarks.fixtures.prometheus import EXPORTER_CONFIG, INTERVAL_S, Prometheus, rules
from benchmarks.fixtures.throttled_move import MovedPartition, ThrottledMove
from benchmarks.groups.precision.faults import Fault, FaultContext, schedule
from benchmarks.groups.precision.scoring import (
    HEADROOM,
    AlertPage,
    Window,
    figures,
    first_detection,
    grouped,
    is_page,
    is_true,
)
from benchmarks.options.fields import AT_LEAST_ONE, RATIO, SECONDS, option
from benchmarks.results import CHECKOUT, Figure
from headroom.cli.common.output import print_table
from headroom.cli.common.watch_process import WatchProcess
from headroom.cluster.embedded import BrokerOptions
from headroom.schemas.alerts import AlertState
from headroom.schemas.errors import HeadroomError

# All faults and alerts with their times, from which the figures can be computed again.
RECORD = CHECKOUT / "build" / "precision.json"
_MB = 1_000_000
_POLL_S = 2.0
_QUIET_S = 90.0
_MOVE_END_S = 600.0
_SEED = 7


@dataclass(frozen=True)
class PrecisionOptions:
    """Options of the group ``precision``."""

    faults: int = option(32, AT_LEAST_ONE, "Injected faults.")
    fault_s: float = option(90.0, SECONDS, "Longest time of a fault, seconds.")
    healthy_s: float = option(1800.0, SECONDS, "Time of healthy moves, seconds.")
    stock_for_ratio: float = option(1.0, RATIO, "Factor for the times of stock rules.")


def measure(on_progress: OnProgress, options: PrecisionOptions) -> list[Figure]:
    """Return precision, recall and delay of each tool over faults and healthy moves.

    Raises:
        HeadroomError: Prometheus is not available, a fault could not be prepared, or the watch ended.
    """
    with BenchCluster(4, BrokerOptions(agents=True, exporter_config=EXPORTER_CONFIG)) as bench:
        bench.add_section("alerts", SHORT_ALERT_TIMES)
        on_progress(f"alerts: {asdict(bench.settings.alerts)}")
        on_progress(f"stock rules evaluated every {INTERVAL_S:g} s, their times x {options.stock_for_ratio:g}")
        targets = [f"{bench.broker(b).host}:{bench.broker(b).exporter_port}" for b in bench.brokers]
        with (
            Prometheus(bench.folder / "prometheus", targets, options.stock_for_ratio) as stock,
            bench.watch(options=["--without-collector"]) as watch,
            bench.collecting() as collector,
        ):
            run = _Run(bench, watch, collector, stock, options.fault_s, on_progress)
            watch.wait(lambda: watch.verdicts() is not None, 180, "the first evaluated tick")
            windows = [run.play(number, fault) for number, fault in enumerate(schedule(options.faults))]
            healthy_from_s = time.time()
            run.move_healthily(options.healthy_s)
            pages = run.pages()
    _write_record(windows, pages, healthy_from_s)
    _print(windows, pages, healthy_from_s)
    return _figures(windows, pages, options.healthy_s)


@dataclass
class _Run:
    """Faults and healthy moves on a cluster that both tools watch.

    Attributes:
        bench: cluster of the run.
        watch: Headroom.
        collector: its collector.
        stock: Prometheus with the stock rules.
        fault_s: longest time of a fault, seconds.
        on_progress: prints the progress.
        void_spans_s: times of failed attempts, epoch seconds.
    """

    bench: BenchCluster
    watch: WatchProcess
    collector: psutil.Process
    stock: Prometheus
    fault_s: float
    on_progress: OnProgress
    void_spans_s: list[tuple[float, float]] = field(default_factory=list)

    def pages(self) -> list[AlertPage]:
        """Return all alerts so far, ordered by their beginning, without those of failed attempts."""
        detections = [
            AlertPage(f.group, f.name, f.about, f.severity, f.from_s, f.until_s) for f in self.stock.firings()
        ]
        pages = sorted([*grouped(detections), *_headroom_pages(self.watch)], key=lambda page: page.at_s)
        return [page for page in pages if not any(began <= page.at_s <= ended for began, ended in self.void_spans_s)]

    def move_healthily(self, length_s: float) -> None:
        """Make healthy moves one after another for a number of seconds."""
        draw, until_s, number = random.Random(_SEED), time.monotonic() + length_s, 0
        while time.monotonic() < until_s:
            self._healthy_move(number, draw)
            number += 1

    def _healthy_move(self, number: int, draw: random.Random) -> None:
        a, b, c = draw.sample(self.bench.brokers, 3)
        rate = draw.choice((0.5, 1.0, 1.5)) * _MB
        change = draw.choice(("none", "election", "load", "election and load"))
        partitions = [MovedPartition((a, b), (b, c), rate, 50 * _MB), MovedPartition((b, a), (c, a), rate, 50 * _MB)]
        with ThrottledMove(self.bench, f"healthy-{number}", partitions) as move:
            # After an election one leader sends both partitions, at 1.2 x the rate each: 4.8 x the rate.
            move.start_move(6 * rate)
            time.sleep(draw.uniform(2, 8))
            if "election" in change:
                move.elect_preferred(0)
            for factor in (1.2, 0.8) if "load" in change else ():
                for partition in range(len(partitions)):
                    move.write(partition, factor * rate)
                time.sleep(3)
            self.watch.wait(lambda: not move.moving(), _MOVE_END_S, f"the end of healthy move {number}")
        self.on_progress(f"healthy move {number + 1}, change: {change}")

    def play(self, number: int, fault: Fault) -> Window:
        """Inject and revert a fault, and return its window. A failed attempt is repeated once."""
        began_s = time.time()
        try:
            return self._play(f"fault-{number}", fault)
        except (HeadroomError, KafkaError) as error:
            self.on_progress(f"fault-{number}, {fault.name}: failed, repeated once ({error})")
            self._await_quiet()
            self.void_spans_s.append((began_s, time.time()))
            return self._play(f"fault-{number}-again", fault)

    def _play(self, topic: str, fault: Fault) -> Window:
        with ThrottledMove(self.bench, topic, fault.partitions()) as move:
            context = FaultContext(self.bench, self.watch, self.collector, move)
            fault.prepare(context)
            from_s = time.time()
            try:
                fault.inject(context)
                self._await_detected(fault, from_s)
            finally:
                fault.revert(context)
        window = _window(fault, from_s, time.time())
        self._await_quiet()
        tools = [HEADROOM, *_origins()]
        pages = self.pages()
        detections = [f"{tool} {_detection(tool, window, pages)}" for tool in tools if window.concerns(tool)]
        self.on_progress(f"{topic}, {fault.name}: {'; '.join(detections)}")
        return window

    def _await_detected(self, fault: Fault, from_s: float) -> None:
        """Return once every tool has detected the fault, or after its longest time."""
        tools = [HEADROOM, *_origins()] if fault.of_cluster else [HEADROOM]
        while (now_s := time.time()) < from_s + self.fault_s:
            self.watch.require_running()
            window, pages = _window(fault, from_s, now_s), self.pages()
            if all(first_detection(tool, window, pages) for tool in tools):
                return
            time.sleep(_POLL_S)

    def _await_quiet(self) -> None:
        """Return once no alert of Headroom fires, infos included, so that the next one is about the next fault."""
        deadline = time.monotonic() + _QUIET_S
        while self.watch.firing(informing=True):
            self.watch.require_running()
            if time.monotonic() > deadline:
                self.on_progress(f"still firing {_QUIET_S:.0f} s later: {self.watch.summary()}")
                return
            time.sleep(_POLL_S)


def _headroom_pages(watch: WatchProcess) -> list[AlertPage]:
    """Return Headroom's alerts from the time of their first line, or of the first line above severity info."""
    epoch_s = time.time() - time.monotonic()
    pages: dict[str, AlertPage] = {}
    for line in watch.firing_events(informing=True):
        event = line.fields
        page = AlertPage(HEADROOM, event["kind"], event["subject"], event["severity"], epoch_s + line.at_s)
        known = pages.get(event["alert_id"])
        if known is None or (is_page(page) and not is_page(known)):
            pages[event["alert_id"]] = page
    ended_s = {
        line.fields["alert_id"]: epoch_s + line.at_s
        for line in watch.events()
        if line.fields["state"] == AlertState.RESOLVED.value
    }
    return [replace(page, until_s=ended_s.get(alert_id)) for alert_id, page in pages.items()]


def _origins() -> list[str]:
    return [group["name"] for group in rules()["groups"]]


def _window(fault: Fault, from_s: float, right_s: float) -> Window:
    return Window(fault.name, fault.expects, fault.also, fault.of_cluster, from_s, right_s)


def _figures(windows: Sequence[Window], pages: Sequence[AlertPage], healthy_s: float) -> list[Figure]:
    measured = figures(HEADROOM, "alert", windows, pages)
    for origin in _origins():
        measured += figures(origin, f"stock_{origin}", windows, pages)
    return [*measured, Figure("precision_healthy_s", healthy_s, "s", 1)]


def _write_record(windows: Sequence[Window], pages: Sequence[AlertPage], healthy_from_s: float) -> None:
    RECORD.parent.mkdir(exist_ok=True)
    record = {
        "healthy_from_s": healthy_from_s,
        "faults": [{**vars(window), "also": sorted(window.also)} for window in windows],
        "pages": [vars(page) for page in pages],
    }
    RECORD.write_text(json.dumps(record, indent=2) + "\n", encoding="utf-8")


def _print(windows: Sequence[Window], pages: Sequence[AlertPage], healthy_from_s: float) -> None:
    tools = [HEADROOM, *_origins()]
    began_s = min([window.from_s for window in windows], default=healthy_from_s)
    rows = [
        (
            window.fault,
            f"{window.from_s - began_s:.0f}",
            f"{window.right_s - began_s:.0f}",
            *(_detection(tool, window, pages) if window.concerns(tool) else "-" for tool in tools),
        )
        for window in windows
    ]
    print_table(
        "Detection of each fault by each tool, s after its injection", ("fault", "at s", "reverted s", *tools), rows
    )
    false = [page for page in pages if is_page(page) and not is_true(page, windows)]
    wrong = [
        (
            page.tool,
            page.name,
            page.subject,
            page.severity,
            "healthy moves" if page.at_s >= healthy_from_s else f"{page.at_s - began_s:.0f} s",
        )
        for page in false
    ]
    print_table("False alerts", ("tool", "alert", "about", "severity", "when"), wrong)


def _detection(tool: str, window: Window, pages: Sequence[AlertPage]) -> str:
    page = first_detection(tool, window, pages)
    return f"{page.at_s - window.from_s:.1f} {page.name}" if page else "missed"
