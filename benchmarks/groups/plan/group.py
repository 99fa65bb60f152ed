"""Group ``plan``: time of plans of 200,000 partitions, made plans and lists beside Kafka's, and needs beside a run's.

``plan_200k_s`` is the CPU time for a move of 200,000 partitions, without reading or writing files. Every partition has
3 replicas on 60 brokers and gets a new one in place of one of them; a tenth are not led by their preferred leader. It
includes the checks of the plan, its lists, the need of every broker, the time under seven throttles, the what-ifs, and
the fewest batches that need at most 30 % of the throttle, with the costs of fewer and more batches.
``plan_200k_without_batches_s`` is the part before the batches.

``generated_bytes_over_kafka_generate_ratio`` is the median over drains and growths of synthetic clusters: the bytes of
our plan over those of ``kafka-reassign-partitions.sh --generate``, whose algorithm
``benchmarks.groups.plan.kafka_placer`` repeats. ``generated_loads_spread_worse`` is the number of loads (replicas,
preferred leads and bytes of a cluster) whose highest value over the mean is more than 0.01 above that of
``--generate``.

``plan_lists_differ`` compares random plans with Kafka's own tool on real brokers: entries in the throttled replica
lists of partitions that gain a replica, and replicas in the end, where our twin of the plan was carried out by
``headroom reassign run``.

``plan_run_need_differs`` compares 2,000 random plans for random small clusters, without brokers: what ``headroom plan``
says a throttle has to exceed for every broker and role, and what ``headroom reassign run`` finds before it begins and
when each batch begins. Both are the use cases of the commands. A difference is a need that breaks one of these laws:

- Plan and run find the same need, for the whole and for each batch, before the run, when the batch begins, and while it
  moves.
- A batch as it is cut needs the same where no leader is expected to switch. Otherwise it needs at least that: batches
  count the traffic of such a partition on both leaders.
- A batch needs at most what the whole needs of the same broker and role, in whatever order expected leader switches
  come, once leads that are given up first are given up.
- Without lists in force, a batch needs the same when it begins as before the run.
- A run takes every throttle that the plan recommends, or finds enough.
- Both refuse the same plans for the same reason; a plan that changes nothing is only of no use to estimate.

Clusters have factors 1 to 5, brokers that are down, unknown rates, lists in force, moves of others, leaders that are
not preferred, topics with remote storage, and plans that only reorder. ``plan_run_needs_compared`` is the number of
needs of a broker and role that were compared.

``--parts`` chooses some of the parts ``time``, ``generate``, ``lists`` and ``needs``.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from random import Random

from benchmarks.fixtures.bench_cluster import OnProgress
from benchmarks.groups.plan.kafka_lists import list_figures
from benchmarks.groups.plan.large_plan import large_move, plan_seconds
from benchmarks.groups.plan.made_plans import made_plan_figures
from benchmarks.groups.plan.run_needs import need_figures
from benchmarks.options.fields import AT_LEAST_ONE, option, parts_option
from benchmarks.results import Figure, percentile


@dataclass(frozen=True)
class PlanTimeOptions:
    """Options of the group ``plan``."""

    parts: tuple[str, ...] = parts_option("time", "generate", "lists", "needs")
    plans: int = option(3, AT_LEAST_ONE, "Timed plans.")
    needs: int = option(2_000, AT_LEAST_ONE, "Random plans whose needs are compared.")


def measure(on_progress: OnProgress, options: PlanTimeOptions) -> list[Figure]:
    """Return the figures of the chosen parts.

    Raises:
        HeadroomError: Kafka's tool or a run on the brokers failed.
    """
    measured: dict[str, Callable[[OnProgress], list[Figure]]] = {
        "time": partial(_times, options.plans),
        "generate": made_plan_figures,
        "lists": list_figures,
        "needs": partial(need_figures, options.needs),
    }
    return [figure for name in options.parts for figure in measured[name](on_progress)]


def _times(count: int, on_progress: OnProgress) -> list[Figure]:
    state, plan = large_move(Random(1))
    seconds, estimates = [], []
    for number in range(1, count + 1):
        estimate_s, batches_s = plan_seconds(plan, state)
        seconds.append(estimate_s + batches_s)
        estimates.append(estimate_s)
        on_progress(f"plan {number} of {count}: {estimate_s:.1f} s, and {batches_s:.1f} s for its batches")
    return [
        Figure("plan_200k_s", percentile(seconds, 0.5), "s", count),
        Figure("plan_200k_without_batches_s", percentile(estimates, 0.5), "s", count),
    ]
