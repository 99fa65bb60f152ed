"""The state of the running cluster that a plan is estimated on."""

from __future__ import annotations

from collections.abc import Set

from headroom.cluster.live.live_cluster import LiveCluster
from headroom.cluster.metrics.mbeans import TICK
from headroom.operations.plans.rates import busy_hour_rates, known_rates, with_busy_hour
from headroom.planning.log_dirs.broker_logs import with_log_dirs
from headroom.planning.reassignments.cluster_state import ClusterState
from headroom.planning.reassignments.plan import ReassignmentPlan
from headroom.schemas.config import Settings
from headroom.schemas.keys import TopicPartition


def read_live_state(settings: Settings, wanted: ReassignmentPlan | None, every_partition: bool) -> ClusterState:
    """Return the state of the running cluster; its write rates are those of the busy hour where there are any.

    Args:
        settings: all settings.
        wanted: plan whose partitions are read; None: those that are being reassigned, with their rates of now.
        every_partition: whether all partitions are read, because the plan is yet to be made.

    Raises:
        HeadroomError: the cluster cannot be read.
    """
    with LiveCluster(settings, TICK) as reader:
        if wanted is None and not every_partition:
            # What runs now writes at the rates of now.
            return _with_log_dirs(reader.state(None), reader)
        busy_hour = busy_hour_rates(settings)
        names: Set[TopicPartition] = frozenset() if wanted is None else wanted.by_name.keys()
        if every_partition:
            # A plan that is yet to be made may change any of them.
            names = reader.partitions()
        if names <= busy_hour.write_bytes_per_s.keys():
            return _with_log_dirs(reader.state(names, known_rates(busy_hour)), reader)
        return _with_log_dirs(with_busy_hour(reader.state(names), busy_hour), reader)


def _with_log_dirs(state: ClusterState, reader: LiveCluster) -> ClusterState:
    """Return the state with the log directories of the brokers that report them; the output names the others."""
    return with_log_dirs(state, reader.log_dirs(sorted(state.alive)).brokers)
