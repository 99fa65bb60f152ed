"""The cluster whose balance is asked for: read live with its history, or from a saved state."""

from __future__ import annotations

from dataclasses import dataclass, replace
from pathlib import Path

from headroom.cluster.live.live_cluster import LiveCluster
from headroom.cluster.metrics.mbeans import TICK_AND_LOAD
from headroom.operations.balance.saved_actions import SavedActions
from headroom.operations.balance.saved_state import read_loads
from headroom.operations.progress import ProgressReceiver
from headroom.planning.balance.model import ClusterModel
from headroom.planning.balance.observation.cluster import ObservedCluster, observed_cluster, sparing
from headroom.planning.balance.observation.loads import LoadHistory, ObservedLoads, no_history, observed_loads
from headroom.planning.balance.slow_brokers.slow_brokers import NO_ADVICE, SlowAdvice, advice
from headroom.planning.balance.what_if import with_preferred_leaders
from headroom.planning.log_dirs.broker_logs import with_log_dirs
from headroom.planning.reassignments.cluster_state import ClusterState
from headroom.planning.reassignments.room.volumes import with_volumes
from headroom.schemas.config import Settings
from headroom.schemas.errors import HeadroomError
from headroom.streaming.clock import now_ms
from headroom.streaming.tables.load_history import read_load_history
from headroom.streaming.tables.slow_brokers import read_slow_rounds


@dataclass(frozen=True, eq=False)
class BalanceCluster:
    """A cluster with what is known of it.

    Attributes:
        settings: all settings.
        state: brokers and partitions.
        loads: rates of its partitions.
        observed: its model, and what is not known.
        live: whether it was read from the running cluster.
        proposed: actions that were proposed for it before, from a saved state; None if there are none.
    """

    settings: Settings
    state: ClusterState
    loads: ObservedLoads
    observed: ObservedCluster
    live: bool
    proposed: SavedActions | None = None

    @property
    def to_change(self) -> ClusterModel:
        """The model that a proposal rests on: with the leads that Kafka gives back to preferred leaders by itself."""
        model = self.observed.model
        return with_preferred_leaders(model) if self.state.auto_leader_rebalance else model

    @property
    def leads_elsewhere(self) -> int:
        """The number of partitions whose preferred leader is alive and in sync, and does not lead."""
        model = self.observed.model
        return int((with_preferred_leaders(model).leader != model.leader).sum())


def saved_cluster(settings: Settings, state_file: Path) -> BalanceCluster:
    """Return the cluster of a saved state.

    Raises:
        HeadroomError: the file cannot be read, or has no partition.
    """
    saved, loads, proposed = read_loads(state_file)
    state = with_volumes(saved, settings.cluster.log_dir_volumes)
    observed = sparing(observed_cluster(state, loads, settings.balance), loads.slow)
    return BalanceCluster(settings, state, loads, observed, live=False, proposed=proposed)


def running_cluster(settings: Settings, progress: ProgressReceiver) -> BalanceCluster:
    """Return the running cluster, with its history.

    Args:
        settings: all settings.
        progress: gets the steps.

    Raises:
        HeadroomError: the cluster cannot be read, or has no partition.
    """
    state, measured, notes = _read(settings, progress)
    loads = replace(measured, slow=_slow(settings))
    observed = observed_cluster(state, loads, settings.balance)
    observed = sparing(replace(observed, notes=(*notes, *observed.notes)), loads.slow)
    return BalanceCluster(settings, state, loads, observed, live=True)


def _read(settings: Settings, progress: ProgressReceiver) -> tuple[ClusterState, ObservedLoads, list[str]]:
    """Return the running cluster with two readings of its rates, its history, and what could not be read."""
    with progress.step("Reading the cluster"), LiveCluster(settings, TICK_AND_LOAD) as reader:
        history = _history(settings)
        measured, traffic = reader.measured_state(reader.partitions())
        log_dirs = reader.log_dirs(sorted(measured.alive))
    state = with_log_dirs(measured, log_dirs.brokers)
    notes = [f"Broker {broker} was not measured: {reason}." for broker, reason in sorted(traffic.unmeasured.items())]
    notes += [f"{error.subject} {error.rule}." for error in log_dirs.errors.values()]
    loads = observed_loads(state, history, traffic.read, traffic.requested, traffic.read_from_followers_of)
    unmeasured = frozenset(traffic.unmeasured)
    return state, replace(loads, follower_reads=traffic.read_from_followers, unmeasured=unmeasured), notes


def _history(settings: Settings) -> LoadHistory:
    """Return the history; a table that cannot be read stops no score, and the source of the rates names the reason."""
    try:
        return read_load_history(settings, now_ms())
    except HeadroomError as error:
        return no_history(max(1, round(settings.balance.history / 3600)), str(error))


def _slow(settings: Settings) -> SlowAdvice:
    """Return what brokers are to be spared by the minutes of a running watch; nothing if these cannot be read."""
    try:
        return advice(read_slow_rounds(settings, now_ms()))
    except HeadroomError:
        # The tables have already been read for the history, which names what is wrong with them.
        return NO_ADVICE
