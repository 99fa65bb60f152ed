"""A session: one watch with its move, brokers and receivers for several scenarios."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import ExitStack, closing, contextmanager
from dataclasses import dataclass

from benchmarks.faults.disks import OwnDisk
from benchmarks.faults.leaders_in_turn import INBOUND_BYTES_PER_S, PARTITIONS, LeadersInTurn
from benchmarks.faults.live_watch import LiveWatch
from benchmarks.faults.proxies import ProxyProcess
from benchmarks.faults.store_files import newest_tick_ms
from benchmarks.fixtures.bench_cluster import OnProgress
from benchmarks.fixtures.freshness import Freshness
from benchmarks.fixtures.receivers.notifications import Notifications
from benchmarks.fixtures.receivers.receiver_process import Receivers
from benchmarks.fixtures.throttled_move import ThrottledMove
from benchmarks.groups.outages.brokers import OutageBrokers, ReplicatedTicksTopic
from benchmarks.groups.outages.context import ScenarioContext
from benchmarks.groups.outages.outage_cluster import OutageCluster
from benchmarks.groups.outages.scenarios.scenario import Arrangement
from headroom.schemas.tables import THROTTLE_HEADROOM

# A leader that took over from another one requires 4 MB/s, and a broker that was down also has to catch up.
ENOUGH_BYTES_PER_S = 8e6
_FIRST_VERDICT_S = 240.0
_FIRST_ROWS_S = 180.0
# Half a second instead of five, because the resolve time doubles each time an alert fires again.
_ALERTS = {"resolve_s": 0.5}
# Receivers then have to show all alerts, infos included.
_NOTIFY = {"least_severity": "info"}


@dataclass(frozen=True)
class ScenarioTools:
    """Tools that all scenarios share.

    Attributes:
        bench: cluster of the scenarios.
        fresh: times of fresh verdicts.
        on_progress: prints the progress.
    """

    bench: OutageCluster
    fresh: Freshness
    on_progress: OnProgress


def configure(bench: OutageCluster) -> None:
    """Add the common settings of all watches to the configuration file."""
    bench.add_section("alerts", _ALERTS)
    bench.add_section("metrics", {"listen": f"127.0.0.1:{bench.metrics_port}"})
    Receivers(bench.folder, bench.receivers_port).configure(bench, _NOTIFY)


@contextmanager
def session(tools: ScenarioTools, arrangement: Arrangement, number: int) -> Iterator[ScenarioContext]:
    """Yield a context with a watch that evaluates the endless move and writes history. Its exit removes all of it.

    Args:
        tools: shared tools.
        arrangement: arrangement of the watch.
        number: unique number of the session.

    Raises:
        Void: this machine cannot provide the arrangement.
        HeadroomError: the watch does not start, or the brokers do not recover afterwards.
    """
    with ExitStack() as stack:
        context = _build(stack, tools, arrangement, number)
        # All brokers have to be up when the move is cancelled.
        stack.callback(context.recover)
        context.move.start_move(ENOUGH_BYTES_PER_S, INBOUND_BYTES_PER_S)
        context.await_fresh(_FIRST_VERDICT_S)
        table = context.store / THROTTLE_HEADROOM.path
        context.await_true(lambda: newest_tick_ms(table) >= 0, _FIRST_ROWS_S, f"first rows in {table}")
        yield context


def _build(stack: ExitStack, tools: ScenarioTools, arrangement: Arrangement, number: int) -> ScenarioContext:
    """Start a watch with its surroundings and the topic of the move. The stack stops them."""
    bench = tools.bench
    folder = bench.folder / f"session-{number}"
    folder.mkdir()
    disk = stack.enter_context(OwnDisk(folder / "disk")) if arrangement is Arrangement.OWN_DISK else None
    store = folder / "store" if disk is None else disk.store
    ticks = ReplicatedTicksTopic(bench)
    ticks.renew()
    receivers = stack.enter_context(Receivers(folder, bench.receivers_port))
    routes = bench.routes() if arrangement is Arrangement.PROXIED else {}
    proxies = {name: stack.enter_context(closing(ProxyProcess(own))) for name, own in routes.items()}
    config = bench.proxied_config() if proxies else bench.config
    live = LiveWatch(config, store, folder, arrangement is Arrangement.OWN_CLOCKS)
    stack.callback(live.close)
    tools.fresh.reset()
    live.start()
    move = stack.enter_context(ThrottledMove(bench, f"outages-{number}", PARTITIONS))
    return ScenarioContext(
        bench=bench,
        move=move,
        live=live,
        receivers=receivers,
        notifications=Notifications(str(store), live, receivers),
        leaders=LeadersInTurn(bench.settings, ENOUGH_BYTES_PER_S),
        brokers=OutageBrokers(bench),
        ticks=ticks,
        fresh=tools.fresh,
        store=store,
        on_progress=tools.on_progress,
        proxies=proxies,
        disk=disk,
    )
