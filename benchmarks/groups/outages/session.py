"""One watch with its move, brokers and receivers around it, for some scenarios after one another."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from pathlib import Path

from benchmarks.fixtures.bench_cluster import Say
from benchmarks.fixtures.leaders_in_turn import INBOUND_BYTES_PER_S, PARTS, LeadersInTurn
from benchmarks.fixtures.receivers.receiver_process import Receivers
from benchmarks.fixtures.throttled_move import Scene
from benchmarks.groups.outages.scenarios.arrangement import Arrangement
from benchmarks.groups.outages.stage.brokers import BrokerFaults, TicksTopic
from benchmarks.groups.outages.stage.damage import newest_tick_ms
from benchmarks.groups.outages.stage.disk import OwnDisk
from benchmarks.groups.outages.stage.ground import OutageGround
from benchmarks.groups.outages.stage.proxies import Proxies
from benchmarks.groups.outages.stage.stage import Stage
from benchmarks.groups.outages.watching.freshness import Freshness
from benchmarks.groups.outages.watching.live import LiveWatch
from benchmarks.groups.outages.watching.notices import Notices
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
        ground: the brokers.
        fresh: when fresh verdicts came.
        say: prints how it goes.
    """

    ground: OutageGround
    fresh: Freshness
    say: Say


def configure(ground: OutageGround) -> None:
    """Set what the watches of all scenarios have in common."""
    ground.add_section("alerts", _ALERTS)
    ground.add_section("metrics", {"listen": f"127.0.0.1:{ground.metrics_port}"})
    Receivers(ground.folder, ground.receivers_port).configure(ground, _NOTIFY)


@contextmanager
def session(tools: Tools, arrangement: Arrangement, number: int) -> Iterator[Stage]:
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
        stage = _build(stack, tools, arrangement, number)
        # Before the move is called off, for which all brokers have to be there.
        stack.callback(stage.recover)
        stage.scene.start_move(ENOUGH_BYTES_PER_S, INBOUND_BYTES_PER_S)
        stage.await_fresh(_FIRST_VERDICT_S)
        table = THROTTLE_HEADROOM.path
        stage.await_true(lambda: newest_tick_ms(stage.store, table) >= 0, _FIRST_ROWS_S, f"first rows in {table}")
        yield stage


def _build(stack: ExitStack, tools: Tools, arrangement: Arrangement, number: int) -> Stage:
    """Return a running watch with all around it, and the topic of the move under load; the stack ends them."""
    ground = tools.ground
    folder = ground.folder / f"session-{number}"
    folder.mkdir()
    disk = _disk(stack, folder / "disk") if arrangement is Arrangement.OWN_DISK else None
    store = folder / "store" if disk is None else disk.store
    ticks = TicksTopic(ground)
    ticks.renew()
    receivers = stack.enter_context(Receivers(folder, ground.receivers_port))
    proxies = _proxies(stack, ground) if arrangement is Arrangement.PROXIED else None
    config = ground.config if proxies is None else ground.proxied_config()
    live = LiveWatch(config, store, folder, arrangement is Arrangement.OWN_CLOCKS)
    stack.callback(live.close)
    tools.fresh.forget()
    live.start()
    scene = stack.enter_context(Scene(ground, f"outages-{number}", PARTS))
    return Stage(
        ground=ground,
        scene=scene,
        live=live,
        receivers=receivers,
        notices=Notices(str(store), live, receivers),
        leaders=LeadersInTurn(ground.settings, ENOUGH_BYTES_PER_S),
        brokers=BrokerFaults(ground, scene.topic),
        ticks=ticks,
        fresh=tools.fresh,
        store=store,
        say=tools.say,
        proxies=proxies,
        disk=disk,
    )


def _disk(stack: ExitStack, place: Path) -> OwnDisk:
    disk = OwnDisk(place)
    stack.callback(disk.close)
    disk.mount()
    return disk


def _proxies(stack: ExitStack, ground: OutageGround) -> Proxies:
    proxies = Proxies(ground.routes())
    stack.callback(proxies.close)
    return proxies
