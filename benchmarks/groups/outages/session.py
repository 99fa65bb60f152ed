"""One watch with its move, brokers and receivers around it, for some scenarios after one another."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from pathlib import Path

from benchmarks.fixtures.bench_cluster import OnProgress
from benchmarks.fixtures.leaders_in_turn import INBOUND_BYTES_PER_S, PARTITIONS, LeadersInTurn
from benchmarks.fixtures.receivers.receiver_process import Receivers
from benchmarks.fixtures.throttled_move import ThrottledMove
from benchmarks.groups.outages.scenarios.arrangement import Arrangement
from benchmarks.groups.outages.stage.brokers import BrokerFaults, TicksTopic
from benchmarks.groups.outages.stage.damage import newest_tick_ms
from benchmarks.groups.outages.stage.disk import OwnDisk
from benchmarks.groups.outages.stage.outage_cluster import OutageCluster
from benchmarks.groups.outages.stage.proxies import Proxies
from benchmarks.groups.outages.stage.stage import ScenarioContext
from benchmarks.groups.outages.watching.freshness import Freshness
from benchmarks.groups.outages.watching.live import LiveWatch
from benchmarks.groups.outages.watching.notices import Notifications
from schemas.tables import THROTTLE_HEADROOM

# A leader that leads for another as well requires 4 MB/s, and one that was away has to catch up beside that.
ENOUGH_BYTES_PER_S = 8e6
_FIRST_VERDICT_S = 240.0
_FIRST_ROWS_S = 180.0
# Half a second, not five: an alert that came back four times resolves after eight times as long.
_ALERTS = {"resolve_s": 0.5}
# So that everything that fires has to be shown.
_NOTIFY = {"least_severity": "info"}


@dataclass(frozen=True)
class Tools:
    """What all scenarios of a run share.

    Attributes:
        bench: the brokers.
        fresh: when fresh verdicts came.
        on_progress: prints how it goes.
    """

    bench: OutageCluster
    fresh: Freshness
    on_progress: OnProgress


def configure(bench: OutageCluster) -> None:
    """Set what the watches of all scenarios have in common."""
    bench.add_section("alerts", _ALERTS)
    bench.add_section("metrics", {"listen": f"127.0.0.1:{bench.metrics_port}"})
    Receivers(bench.folder, bench.receivers_port).configure(bench, _NOTIFY)


@contextmanager
def session(tools: Tools, arrangement: Arrangement, number: int) -> Iterator[ScenarioContext]:
    """Give a watch that evaluates ticks of the endless move, and writes history; afterwards all of it is gone.

    Args:
        tools: what all scenarios share.
        arrangement: what is around the watch.
        number: of the session, which no other one has.

    Raises:
        Void: the arrangement is not to be had on this machine.
        HeadroomError: the watch does not come that far, or the brokers do not come back afterwards.
    """
    with ExitStack() as stack:
        context = _build(stack, tools, arrangement, number)
        # Before the move is called off, for which all brokers have to be there.
        stack.callback(context.recover)
        context.move.start_move(ENOUGH_BYTES_PER_S, INBOUND_BYTES_PER_S)
        context.await_fresh(_FIRST_VERDICT_S)
        table = THROTTLE_HEADROOM.path
        context.await_true(lambda: newest_tick_ms(context.store, table) >= 0, _FIRST_ROWS_S, f"first rows in {table}")
        yield context


def _build(stack: ExitStack, tools: Tools, arrangement: Arrangement, number: int) -> ScenarioContext:
    """Return a running watch with all around it, and the topic of the move under load; the stack ends them."""
    bench = tools.bench
    folder = bench.folder / f"session-{number}"
    folder.mkdir()
    disk = _disk(stack, folder / "disk") if arrangement is Arrangement.OWN_DISK else None
    store = folder / "store" if disk is None else disk.store
    ticks = TicksTopic(bench)
    ticks.renew()
    receivers = stack.enter_context(Receivers(folder, bench.receivers_port))
    proxies = _proxies(stack, bench) if arrangement is Arrangement.PROXIED else None
    config = bench.config if proxies is None else bench.proxied_config()
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
        brokers=BrokerFaults(bench, move.topic),
        ticks=ticks,
        fresh=tools.fresh,
        store=store,
        on_progress=tools.on_progress,
        proxies=proxies,
        disk=disk,
    )


def _disk(stack: ExitStack, mount_point: Path) -> OwnDisk:
    disk = OwnDisk(mount_point)
    stack.callback(disk.close)
    disk.mount()
    return disk


def _proxies(stack: ExitStack, bench: OutageCluster) -> Proxies:
    proxies = Proxies(bench.routes())
    stack.callback(proxies.close)
    return proxies
