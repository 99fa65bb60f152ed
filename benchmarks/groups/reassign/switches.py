"""Part ``switches``: leader switches during runs with ``--auto-throttle-up-to``, until the throttle is enough again.

Broker 2 takes over three partitions, one after the other. Each switch makes its leader throttle too low, even with the
margin that the run added after the switch before. New replicas are on broker 4, whose throttle somebody else has set.
"""

from __future__ import annotations

import signal
import subprocess
import time
from pathlib import Path
from typing import Any

from benchmarks.fixtures.bench_cluster import BenchCluster, OnProgress, await_true, failure
from benchmarks.fixtures.headroom_commands import HeadroomCommands
from benchmarks.fixtures.throttled_move import MovedPartition, ThrottledMove
from benchmarks.groups.reassign.throttle_state import ThrottleValues, difference, throttles_in_force
from headroom.cluster.throttles.rates import apply_rates
from headroom.planning.reassignments.plan import ReassignmentPlan, TargetAssignment, plan_text
from headroom.schemas.keys import TopicPartition

RUNS = 4
_MB = 1_000_000
# The last two are led by broker 2 from the start. The others switch to it in this order.
PARTITIONS = (
    MovedPartition((1, 2), (2, 4), 0.4 * _MB, 40 * _MB),
    MovedPartition((1, 2), (2, 4), 0.6 * _MB, 40 * _MB),
    MovedPartition((3, 2), (2, 4), 1.0 * _MB, 60 * _MB),
    MovedPartition((2, 1), (2, 4), 0.5 * _MB, 40 * _MB),
    MovedPartition((2, 3), (2, 4), 0.5 * _MB, 40 * _MB),
)
SWITCHES = 3
NEXT_LEADER = 2
# Every leader requires 2 MB/s at first.
THROTTLE_BYTES_PER_S = 2.2 * _MB
_UP_TO = "20MB"
_OTHERS = ThrottleValues({(4, "follower"): 5 * _MB})
_FOLLOWERS = 2
_START_S, _RAISED_S, _END_S = 90.0, 60.0, 90.0
_POLL_S, _BETWEEN_S = 0.1, 5.0


def required_bytes_per_s(switched: int) -> float:
    """Return the rate that the leader throttle of broker 2 has to exceed after a number of switches.

    Every partition has two followers: the old or new in-sync replica, and the new replica on broker 4.
    """
    led = PARTITIONS[:switched] + PARTITIONS[SWITCHES:]
    return sum(moved.live_bytes_per_s for moved in led) * _FOLLOWERS


def record_switches(bench: BenchCluster, topic: str, on_progress: OnProgress) -> dict[str, Any]:
    """Make the switches of one run, and return the time of each until the throttle was enough."""
    apply_rates(bench.settings, {(b, role): rate for (b, role), rate in _OTHERS.rates.items()})
    with ThrottledMove(bench, topic, PARTITIONS) as move:
        process = _start(bench, move)
        try:
            await_true(move.moving, _START_S, f"{topic}: the run moves its partitions")
            seconds = [_switch_s(bench, move, number) for number in range(SWITCHES)]
        finally:
            _end(process)
        deviation = difference(throttles_in_force(bench.settings), _OTHERS)
    on_progress(f"{topic}: throttle enough after {', '.join(f'{s:.1f}' for s in seconds)} s; {deviation}")
    return {"seconds": seconds, "foreign": len(_OTHERS), **deviation._asdict()}


def _start(bench: BenchCluster, move: ThrottledMove) -> subprocess.Popen[bytes]:
    file = bench.folder / f"{move.topic}.json"
    targets = (TargetAssignment(TopicPartition(move.topic, n), moved.after) for n, moved in enumerate(move.partitions))
    file.write_text(plan_text(ReassignmentPlan(tuple(targets))), encoding="utf-8")
    options = ("--throttle", str(round(THROTTLE_BYTES_PER_S)), "--auto-throttle-up-to", _UP_TO, "--cancel-on-stop")
    log: Path = bench.folder / "runs.log"
    return HeadroomCommands(bench.config).start("reassign", "run", str(file), *options, "--execute", "--yes", log=log)


def _switch_s(bench: BenchCluster, move: ThrottledMove, number: int) -> float:
    """Give the lead of a partition to broker 2, and return the seconds until its leader throttle is enough."""
    # The meters of the leaders, and the quota windows, settle after the switch before.
    time.sleep(_BETWEEN_S)
    required = required_bytes_per_s(number + 1)
    if _leader_rate(bench) > required:
        raise failure(f"switch {number + 1} makes no throttle too low")
    began_s = time.monotonic()
    move.elect_preferred(number)
    while _leader_rate(bench) <= required:
        if time.monotonic() - began_s > _RAISED_S or not move.moving():
            raise failure(f"the throttle was not raised within {_RAISED_S:.0f} s of switch {number + 1}")
        time.sleep(_POLL_S)
    return time.monotonic() - began_s


def _leader_rate(bench: BenchCluster) -> float:
    return throttles_in_force(bench.settings).rates.get((NEXT_LEADER, "leader"), 0)


def _end(process: subprocess.Popen[bytes]) -> None:
    """Let the run take its batch back."""
    process.send_signal(signal.SIGINT)
    try:
        process.wait(_END_S)
    except subprocess.TimeoutExpired:
        process.kill()
        process.wait()
