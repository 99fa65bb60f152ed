"""Group ``balance``: time, memory and bytes of proposals on synthetic clusters, compared with other planners.

**Time.** ``balance_plan_200k_s`` is the CPU time of a proposal with all goals for 200,000 partitions, RF 3, 200 brokers
and 24 hours; 10 % of the brokers have replicas of all others. ``balance_plan_100k_s`` is AutoMQ's published case with
its network goals (``benchmarks.groups.balance.clusters.published_case``); ``balance_in_band_100k_ratio`` is the share
of its brokers and goals in band. Both include the sums of all brokers, not the sorting of the input.
``--partitions`` sets another size than 200,000, with a broker per 1,000 partitions.
``balance_growth_ratio`` is the time per partition of the large case over that of a tenth of it.
``balance_memory_bytes_200k`` is the largest resident memory of a process that does nothing else, and
``balance_command_s_200k`` the time of the command (``benchmarks.groups.balance.large_command``). From a saved state,
``balance_explain_200k_s`` is that of ``headroom balance explain`` for the large cluster with its saved proposal, and
``balance_command_100k_s`` that of ``headroom balance propose --dir`` for the published case.

**Known answers.** 60 clusters (``--clusters``) are made by displacing replicas of balanced ones, so the
bytes that put them back are known. ``balance_in_band_ratio`` is the share of brokers and goals in band after the
proposal, ``balance_bytes_over_known_ratio`` the greatest ratio of bytes to the known ones,
``balance_hard_goals_broken`` the number of hard goals broken by a prefix, and ``balance_second_plan_actions`` the
actions of a second proposal after the first was carried out. With network in alone and one hour,
``balance_bytes_over_bound_ratio`` compares with the bound of ``benchmarks.groups.balance.bound``.

**Other planners** (``benchmarks.groups.balance.rivals``) work on the same clusters with the same bands. Ratios are our
bytes over theirs, as medians; ``..._max`` is the greatest. ``balance_moves_over_..._ratio`` compares copied replicas.
LinkedIn's kafka-assigner (``benchmarks.groups.balance.assigner``) runs in an environment of its own, which needs a
package index the first time. ``balance_bytes_over_assigner_rate_ratio`` compares our network goals with its balance by
rate; ``..._size_ratio`` compares our disk goal with its balance by size, at the spread of disk that it reached, on
clusters whose spread it improved.

**Greedy** (``benchmarks.groups.balance.greedy``) is a plain search of some sixty lines: the worst broker takes the
election or move with the most exact gain per byte. It works on the random clusters of six kinds
(``benchmarks.groups.balance.random_clusters``), seeds 5000 to 5199, to which nothing was tuned.
``balance_left_over_greedy_ratio_median`` and ``..._max`` compare the load that the end states leave outside of their
bands, ``balance_bytes_over_greedy_ratio`` the bytes, as a median. Where neither leaves any, the ratio is 1. Actions of
second proposals on these clusters are ``balance_second_plan_random_actions``, and the replicas that they bring back
``balance_second_plan_returns``. ``balance_heavy_tail_s`` is the CPU time of a proposal for 100 brokers, 6,000 replicas
and a few partitions with most of the load, ``balance_plan_1000_brokers_s`` that for 100,000 partitions, 1,000 brokers.

**Weeks** (``benchmarks.groups.balance.week``) are 168 hours with daily cycles, with a plan every hour that is carried
out at once; 20 weeks are drawn, each with partitions of its own. Plans by percentiles of 24 hours are compared with
plans by the last hour. ``balance_week_bytes_ratio`` is the ratio of their bytes. ``balance_week_hours_ratio`` is the
ratio of the hours after which the load of the coming day is out of band. Both are medians over the weeks.
``balance_week_returns`` is the number of replicas that returned to a broker which they had left.

**Limits** (``benchmarks.groups.balance.limits``) are counted apart from the product, while the batches of proposals for
1,000 random clusters (``--limit-clusters``) are replayed: racks, disks, each log directory, network in and out, the
throttle, half of a topic, and brokers that are to take or give nothing, at every moment of every batch, of all actions
and of every prefix. Brokers cannot be read, are dead, cordoned, slow or full, and racks are unequal.
``balance_limits_broken`` is the number of times that one is broken. One that stood broken before its batch, and is not
made worse, does not count. Nor does a leader beyond its limit of network out that sends copies of partitions whose lead
it gives, because nothing else relieves it.

``--parts`` chooses some of the parts ``time``, ``clusters``, ``greedy``, ``bound``, ``weeks`` and ``limits``.
"""

from __future__ import annotations

import gc
import resource
import subprocess
import sys
import time
from collections.abc import Callable
from dataclasses import dataclass, field, replace
from pathlib import Path
from statistics import median
from tempfile import TemporaryDirectory

import numpy as np

from benchmarks.fixtures.bench_cluster import OnProgress, failure
from benchmarks.groups.balance.assigner import (
    SpreadBand,
    assigner_python,
    assigner_replicas,
    copied_bytes,
    disk_spread,
)
from benchmarks.groups.balance.bound import bytes_bound
from benchmarks.groups.balance.clusters import KnownCluster, large_cluster, published_case, wide_cluster
from benchmarks.groups.balance.greedy import greedy
from benchmarks.groups.balance.limits.clusters import limit_cluster
from benchmarks.groups.balance.limits.replay import broken_limits
from benchmarks.groups.balance.random_clusters import SEEDS, heavy_tail, random_cluster
from benchmarks.groups.balance.rivals import generated, goal_by_goal, load_first
from benchmarks.groups.balance.scenarios import scenarios
from benchmarks.groups.balance.week import simulated_week, week_cluster
from benchmarks.options.fields import AT_LEAST_ONE, FOLDER, PARTITIONS, option, parts_option
from benchmarks.results import Figure
from headroom.planning.balance.goals.bands import MIB
from headroom.planning.balance.goals.catalogue import built_in_goals
from headroom.planning.balance.model import ClusterModel, Resource
from headroom.planning.balance.scoring.goal_set import GoalSet
from headroom.planning.balance.scoring.loads import ClusterLoads
from headroom.planning.balance.search.proposal import Proposal, propose
from headroom.planning.balance.search.trajectory import breaks_limits, load_events

_NETWORK = ("network_in", "network_out")
_RIVALS = ("load_first", "goal_by_goal", "generate")
_HOURS = 6
_WEEKS = 20
_ROUNDING = 1e-6


@dataclass(frozen=True)
class BalanceOptions:
    """Options of the group ``balance``."""

    parts: tuple[str, ...] = parts_option("time", "clusters", "greedy", "bound", "weeks", "limits")
    partitions: int = option(200_000, PARTITIONS, "Partitions of the large cluster.")
    clusters: int = option(60, AT_LEAST_ONE, "Clusters with known answers.")
    assigner_folder: str | None = option(None, FOLDER, "Environment of kafka-assigner; default: a temporary folder.")
    limit_clusters: int = option(1000, AT_LEAST_ONE, "Random clusters on which limits are counted.")


def measure(on_progress: OnProgress, options: BalanceOptions) -> list[Figure]:
    """Return the figures of the chosen parts.

    Raises:
        HeadroomError: the process that measures memory failed.
    """
    return [figure for name in options.parts for figure in _PARTS[name](options, on_progress)]


def _times(options: BalanceOptions, on_progress: OnProgress) -> list[Figure]:
    size = options.partitions
    seconds = [_plan_s(large_cluster(count).model, on_progress) for count in (size, size // 10)]
    published = published_case()
    goals = [goal for goal in built_in_goals() if goal.name in _NETWORK]
    gc.collect()
    began_s = time.process_time()
    proposal = propose(published, goals)
    published_s = time.process_time() - began_s
    in_band = _in_band(proposal)
    on_progress(f"published case: {published_s:.2f} s, {len(proposal.actions)} moves, {in_band:.0%} in band")
    return [
        Figure("balance_plan_200k_s", seconds[0], "s", 1),
        Figure("balance_growth_ratio", seconds[0] / (10 * seconds[1]), "ratio", 1),
        Figure("balance_plan_100k_s", published_s, "s", 1),
        Figure("balance_in_band_100k_ratio", in_band, "ratio", len(published.brokers)),
        Figure("balance_plan_1000_brokers_s", _plan_s(wide_cluster().model, on_progress), "s", 1),
        Figure("balance_heavy_tail_s", _plan_s(heavy_tail(100, 2000, 1), on_progress), "s", 1),
        Figure("balance_memory_bytes_200k", _memory_bytes(size), "bytes", 1),
        Figure("balance_command_s_200k", _command_s(size, on_progress), "s", 1),
        Figure("balance_explain_200k_s", _command_s(size, on_progress, "explain"), "s", 1),
        Figure("balance_command_100k_s", _command_s(size, on_progress, "published"), "s", 1),
    ]


def _plan_s(model: ClusterModel, on_progress: OnProgress) -> float:
    gc.collect()
    began_s = time.process_time()
    proposal = propose(model, built_in_goals())
    seconds = time.process_time() - began_s
    on_progress(
        f"{model.partitions} partitions, {len(model.brokers)} brokers: {seconds:.2f} s, "
        f"{len(proposal.actions)} actions, {_in_band(proposal):.2%} in band"
    )
    return seconds


def _memory_bytes(partitions: int) -> float:
    """Return the largest resident memory of a process that makes one proposal."""
    return _printed_number("benchmarks.groups.balance.group", str(partitions))


def _command_s(partitions: int, on_progress: OnProgress, *case: str) -> float:
    with TemporaryDirectory(prefix="headroom-bench-") as folder:
        seconds = _printed_number("benchmarks.groups.balance.large_command", folder, str(partitions), *case)
    on_progress(f"{case[0] if case else partitions}: the command takes {seconds:.2f} s")
    return seconds


def _printed_number(module: str, *words: str) -> float:
    """Return the number that a module prints in a process of its own."""
    command = [sys.executable, "-m", module, *words]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    if done.returncode:
        raise failure(f"{module} failed: {done.stderr[-300:]}")
    return float(done.stdout)


@dataclass
class _Measured:
    """Measurements on all clusters with known answers."""

    in_band: list[float] = field(default_factory=list)
    over_known: list[float] = field(default_factory=list)
    broken: int = 0
    again: int = 0
    load_first: list[float] = field(default_factory=list)
    goal_by_goal: list[float] = field(default_factory=list)
    generate: list[float] = field(default_factory=list)
    assigner_rate: list[float] = field(default_factory=list)
    assigner_size: list[float] = field(default_factory=list)
    moves: dict[str, list[float]] = field(default_factory=dict)


def _known_answers(options: BalanceOptions, on_progress: OnProgress) -> list[Figure]:
    measured, python = _Measured(), assigner_python(options.assigner_folder)
    count = options.clusters
    for number, cluster in enumerate(scenarios(count, _HOURS)):
        _measure_cluster(number, cluster, measured, on_progress)
        _measure_assigner(cluster.model, python, measured, on_progress)
    figures = [
        Figure("balance_in_band_ratio", min(measured.in_band), "ratio", count),
        Figure("balance_bytes_over_known_ratio", max(measured.over_known), "ratio", count),
        Figure("balance_hard_goals_broken", measured.broken, "goals", count),
        Figure("balance_second_plan_actions", measured.again, "actions", count),
    ]
    for name in (*_RIVALS, "assigner_rate", "assigner_size"):
        ratios = getattr(measured, name)
        if ratios:
            figures.append(Figure(f"balance_bytes_over_{name}_ratio", median(ratios), "ratio", len(ratios)))
            figures.append(Figure(f"balance_bytes_over_{name}_ratio_max", max(ratios), "ratio", len(ratios)))
    figures += [
        Figure(f"balance_moves_over_{name}_ratio", median(ratios), "ratio", count)
        for name, ratios in measured.moves.items()
    ]
    return figures


def _measure_cluster(number: int, cluster: KnownCluster, measured: _Measured, on_progress: OnProgress) -> None:
    goals = built_in_goals()
    proposal = propose(cluster.model, goals)
    ours = float(proposal.copied_bytes[-1])
    measured.in_band.append(_in_band(proposal))
    measured.over_known.append(ours / cluster.known_bytes)
    events = load_events(ClusterLoads(cluster.model), proposal.actions)
    measured.broken += int(breaks_limits(proposal.goals, events).sum())
    again = len(propose(_carried_out(proposal), goals).actions)
    measured.again += again
    network = [goal for goal in goals if goal.hard or goal.name in _NETWORK]
    by_network = propose(cluster.model, network)
    ours_network = float(by_network.copied_bytes[-1])
    rivals = load_first(cluster.model, network), goal_by_goal(cluster.model, goals), generated(cluster.model)
    measured.load_first.append(ours_network / max(1.0, rivals[0].bytes_copied))
    measured.goal_by_goal.append(ours / max(1.0, rivals[1].bytes_copied))
    measured.generate.append(ours / rivals[2].bytes_copied)
    for name, mine, rival in zip(_RIVALS, (by_network, proposal, proposal), rivals, strict=True):
        measured.moves.setdefault(name, []).append(float(mine.copied_replicas[-1]) / max(1, rival.moves))
    on_progress(
        f"{number} {cluster.name}: {measured.in_band[-1]:.1%} in band, {ours / 1e12:.2f} TB in "
        f"{int(proposal.copied_replicas[-1])} copies, known {cluster.known_bytes / 1e12:.2f} TB in "
        f"{cluster.known_moves}; second plan {again}; over load first {measured.load_first[-1]:.2f}, "
        f"goal by goal {measured.goal_by_goal[-1]:.2f} (left {rivals[1].outside:.3f}), "
        f"generate {measured.generate[-1]:.3f}"
    )


def _measure_assigner(model: ClusterModel, python: Path, measured: _Measured, on_progress: OnProgress) -> None:
    goals = built_in_goals()
    hard = [goal for goal in goals if goal.hard]
    rate, size = (assigner_replicas(model, module, python) for module in ("rate", "size"))
    network = [goal for goal in goals if goal.name in _NETWORK]
    ours_rate = float(propose(model, [*hard, *network]).copied_bytes[-1])
    measured.assigner_rate.append(ours_rate / max(1.0, copied_bytes(model, rate)))
    on_progress(f"  over kafka-assigner: rate {measured.assigner_rate[-1]:.3f}")
    spread = disk_spread(model, size)
    if spread >= disk_spread(model, model.replicas):
        # It knows no capacities: where these differ, it takes brokers away from their shares.
        return
    by_disk = propose(model, [*hard, SpreadBand("disk", Resource.DISK, "disk", ratio=spread)])
    reached = disk_spread(model, by_disk.state(len(by_disk.actions)).replicas)
    measured.assigner_size.append(float(by_disk.copied_bytes[-1]) / max(1.0, copied_bytes(model, size)))
    on_progress(f"  size {measured.assigner_size[-1]:.3f} at a spread of {spread:.3%} (ours {reached:.3%})")


def _carried_out(proposal: Proposal) -> ClusterModel:
    state = proposal.state(len(proposal.actions))
    return replace(proposal.model, replicas=state.replicas, leader=state.leader)


def _in_band(proposal: Proposal) -> float:
    """Return the share of brokers and soft goals in band, by the bands of the cluster before the proposal."""
    model = proposal.model
    bands = GoalSet([g for g in proposal.goals.goals if not g.hard], ClusterLoads(model))
    after = proposal.loads_after[bands.resources]
    bounds = [b for b, goal in zip(bands.bounds, bands.goals, strict=True) if goal in bands.resource_goals]
    lower = np.array([b.reachable_lower for b in bounds])
    upper = np.array([b.reachable_upper for b in bounds])
    quiet = (after < bands.detect_below[:, None]) & (bands.mean < bands.detect_below[:, None])
    return float((quiet | ((after >= lower * (1 - 1e-9)) & (after <= upper * (1 + 1e-9)))).mean())


def _over_greedy(_options: BalanceOptions, on_progress: OnProgress) -> list[Figure]:
    goals, left, copied, again, returns = built_in_goals(), [], [], 0, 0
    for seed in SEEDS:
        kind, model = random_cluster(seed)
        proposal, rival = propose(model, goals), greedy(model, goals)
        second = propose(_carried_out(proposal), goals)
        gone = {(action.partition, action.source) for action in proposal.actions if action.copies}
        again += len(second.actions)
        returns += sum((action.partition, action.target) in gone for action in second.actions if action.copies)
        ours = GoalSet(goals, proposal.state(len(proposal.actions))).start_outside
        # What either leaves below this is rounding.
        left.append(1.0 if max(ours, rival.outside) < _ROUNDING else ours / max(rival.outside, _ROUNDING))
        copied.append(float(proposal.copied_bytes[-1]) / max(1.0, rival.bytes_copied))
        on_progress(
            f"{seed} {kind}: left {ours:.4f}, greedy {rival.outside:.4f}; bytes over greedy {copied[-1]:.3f}; "
            f"second plan {len(second.actions)}"
        )
    return [
        Figure("balance_left_over_greedy_ratio_median", median(left), "ratio", len(left)),
        Figure("balance_left_over_greedy_ratio_max", max(left), "ratio", len(left)),
        Figure("balance_bytes_over_greedy_ratio", median(copied), "ratio", len(copied)),
        Figure("balance_second_plan_random_actions", again, "actions", len(left)),
        Figure("balance_second_plan_returns", returns, "replicas", len(left)),
    ]


def _bounds(options: BalanceOptions, on_progress: OnProgress) -> list[Figure]:
    goals = [goal for goal in built_in_goals() if goal.name == "network_in"]
    ratios = []
    for cluster in scenarios(options.clusters, 1):
        bound = bytes_bound(cluster.model, float(MIB))
        if bound:
            ratios.append(float(propose(cluster.model, goals).copied_bytes[-1]) / bound)
    on_progress(f"bytes over bound: {min(ratios):.2f} to {max(ratios):.2f}")
    return [Figure("balance_bytes_over_bound_ratio", median(ratios), "ratio", len(ratios))]


def _weeks(_options: BalanceOptions, on_progress: OnProgress) -> list[Figure]:
    goals = [goal for goal in built_in_goals() if goal.hard or goal.name in _NETWORK]
    copied, hours_out, returns = [], [], 0
    for seed in range(1, _WEEKS + 1):
        model = week_cluster(seed, goals)
        day, last = (simulated_week(model, goals, hours) for hours in (24, 1))
        on_progress(f"week {seed} by percentiles: {day}; by the last hour: {last}")
        copied.append(day.bytes_copied / max(1.0, last.bytes_copied))
        hours_out.append(day.hours_out_of_band / max(1, last.hours_out_of_band))
        returns += day.returns
    return [
        Figure("balance_week_bytes_ratio", median(copied), "ratio", _WEEKS),
        Figure("balance_week_hours_ratio", median(hours_out), "ratio", _WEEKS),
        Figure("balance_week_returns", returns, "replicas", _WEEKS),
    ]


def _limits(options: BalanceOptions, on_progress: OnProgress) -> list[Figure]:
    broken, count = 0, options.limit_clusters
    for seed in range(count):
        found = broken_limits(limit_cluster(seed), seed)
        broken += len(found)
        if found or seed % 100 == 99:
            on_progress(f"limits, {seed + 1} clusters: {broken} broken {found[:3]}")
    return [Figure("balance_limits_broken", broken, "limits", count)]


_PARTS: dict[str, Callable[[BalanceOptions, OnProgress], list[Figure]]] = {
    "time": _times,
    "clusters": _known_answers,
    "greedy": _over_greedy,
    "bound": _bounds,
    "weeks": _weeks,
    "limits": _limits,
}

if __name__ == "__main__":
    propose(large_cluster(int(sys.argv[1])).model, built_in_goals())
    # Linux reports kilobytes.
    print(resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024)
