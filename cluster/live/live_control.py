"""A running cluster as a run needs it: reads partitions and throttles, and changes them."""

from __future__ import annotations

import threading
from collections.abc import Callable, Collection, Iterable, Mapping
from dataclasses import replace
from types import TracebackType

from headroom.cluster.elections.executor import ElectionExecutor, ExecutionPolicy
from headroom.cluster.live.live_cluster import LiveCluster
from headroom.cluster.live.plan_state import placement_of
from headroom.cluster.live.write_rates import WriteRates
from headroom.cluster.log_dirs.alter import UnansweredDirectoryError, alter_log_dirs
from headroom.cluster.log_dirs.describe import LogDirsReading
from headroom.cluster.model import BrokerThrottles, Snapshot, rebalances_leaders
from headroom.cluster.reassignment.execution.control import PlaceAnswers
from headroom.cluster.reassignment.submit import submit_reassignments
from headroom.cluster.throttles.broker_rates import KEY_OF, rate_of
from headroom.cluster.throttles.list_entries import ThrottledListEntries
from headroom.cluster.throttles.rate_change import RateChange
from headroom.planning.elections.limits import limits_of
from headroom.planning.elections.planner import WHY, Reason, plan_elections
from headroom.planning.reassignments.run.journal import Entry, ThrottledList
from headroom.planning.reassignments.run.snapshot import RateInForce, RunSnapshot
from headroom.schemas.config import Settings
from headroom.schemas.keys import BrokerRate, BrokerRole, DirectoryRole, LogDirsRate, ReplicaKey, Role, TopicPartition


class LiveClusterControl:
    """Controls a cluster on its own connections.

    Args:
        settings: the cluster, its metrics source, and how long changes may take (``reassign.settle_s``).
        topics: topics of the plan, whose throttled replica lists are read at every look.
        measured: whether to measure write rates in the background.
        placed: partitions with a named log directory, whose logs are read at every look.
    """

    def __init__(
        self,
        settings: Settings,
        topics: Iterable[str] = (),
        measured: bool = False,
        placed: Iterable[TopicPartition] = (),
    ) -> None:
        self._settings = settings
        self._topics = set(topics)
        self._placed = frozenset(placed)
        self._cluster = LiveCluster(settings)
        self._connection, self._timeout_s = self._cluster.connection, self._cluster.timeout_s
        self._lists = ThrottledListEntries(self._connection, self._timeout_s, settings.reassign.settle_s)
        self._rates = WriteRates(settings) if measured else None

    def __enter__(self) -> LiveClusterControl:
        """Connect, measure write rates for the first time if they are wanted, and return this object.

        Raises:
            HeadroomError: no broker could be reached.
        """
        self._cluster.__enter__()
        if self._rates is not None:
            self._rates.start()
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, at: TracebackType | None) -> None:
        """Close the connections."""
        if self._rates is not None:
            self._rates.stop()
        self._cluster.__exit__(kind, error, at)

    def read(self) -> RunSnapshot:
        """Return the state of the cluster now.

        Raises:
            HeadroomError: the metadata or the lists of the plan's topics could not be read.
        """
        snapshot = self._cluster.snapshot()
        alive = frozenset(broker for broker, info in snapshot.brokers.items() if info.alive)
        written, cluster_written = self._rates.now() if self._rates is not None else ({}, None)
        placed = [name for name in sorted(self._placed) if name in snapshot.partitions]
        configs = self._cluster.configs(sorted(alive))
        hosts = {broker for name in placed for broker in snapshot.partitions[name].replicas}
        return RunSnapshot(
            {name: placement_of(partition, written.get(name)) for name, partition in snapshot.partitions.items()},
            alive,
            _rates_by_role({broker: of_broker.throttles for broker, of_broker in configs.items()}),
            {**_lists_of(snapshot), **self._lists.read(self._topics & snapshot.topic_ids.keys())},
            snapshot.topic_ids,
            frozenset(name for name, partition in snapshot.partitions.items() if partition.offline),
            cluster_written,
            self.read_logs(sorted(hosts & alive), placed).brokers if placed else {},
            rebalances_leaders(of_broker.balancing for of_broker in configs.values()),
            self._cluster.waits_for_kept(snapshot),
            snapshot.reassignments_read,
        )

    def refresh(self, topics: Collection[str]) -> None:
        """Let the next look read these topics again: in a large cluster it takes most of them from its cache."""
        self._cluster.mark_stale(topics)

    def read_logs(self, brokers: Collection[int], names: Collection[TopicPartition] | None) -> LogDirsReading:
        """Return the log directories of brokers with the logs of some partitions, or of all if None."""
        return self._cluster.log_dirs(brokers, names)

    def append_entries(self, entries: Mapping[ThrottledList, Collection[Entry]]) -> None:
        """Append entries to throttled replica lists, and wait until they read back.

        Raises:
            HeadroomError: a topic refused, or did not read them back in time.
        """
        self._lists.append(entries)

    def subtract_entries(self, entries: Mapping[ThrottledList, Collection[Entry]]) -> None:
        """Remove entries as far as they are listed, and delete lists that are empty then.

        Raises:
            HeadroomError: a topic refused, or did not read the change back in time.
        """
        self._lists.subtract(entries)

    def set_rates(self, rates: Mapping[BrokerRate, int | None]) -> dict[int, str]:
        """Set or clear brokers' own rates, wait until each broker reads its own back, and return why one failed."""
        wanted: dict[int, dict[str, int | None]] = {}
        for (broker, role), rate in sorted(rates.items()):
            wanted.setdefault(broker, {})[role.value] = rate
        values = {
            broker: {KEY_OF[role]: None if rate is None else str(rate) for role, rate in by_role.items()}
            for broker, by_role in wanted.items()
        }

        def is_in_force(broker: int, now: BrokerThrottles) -> bool:
            return all(_own_rate(now, role) == rate for role, rate in wanted[broker].items())

        change = RateChange(values, is_in_force, "rates changed on {}; waiting until they are in force")
        return change.make(self._connection, self._timeout_s, self._settings.reassign.settle_s).reasons()

    def reassign(
        self, targets: Mapping[TopicPartition, tuple[int, ...] | None], change_factor: bool
    ) -> dict[TopicPartition, str]:
        """Submit reassignments, or cancel those with target None; return by partition why it was refused.

        Raises:
            HeadroomError: no broker accepted the request, or the user lacks the permission.
        """
        self._cluster.mark_stale({name.topic for name in targets})
        return submit_reassignments(self._connection, targets, self._timeout_s, change_factor)

    def place(self, directories: Mapping[ReplicaKey, str]) -> PlaceAnswers:
        """Request the log directories of replicas, those that do not exist yet too; return why some are not there."""
        errors = alter_log_dirs(self._connection, directories, self._timeout_s).errors
        unanswered = {r: error.rule for r, error in errors.items() if isinstance(error, UnansweredDirectoryError)}
        return PlaceAnswers({r: error.rule for r, error in errors.items() if r not in unanswered}, unanswered)

    def elect(self, names: Collection[TopicPartition], on_step: Callable[[str], None]) -> dict[TopicPartition, str]:
        """Elect preferred leaders in the batches of ``headroom elections``; return why an election was left out.

        Raises:
            HeadroomError: the cluster deviates from the plan of the elections; no further batch was started.
        """
        elections = self._settings.elections
        limits = limits_of(elections)
        # Write rates are measured meanwhile too: copies may follow, whose need is known from before the leader switch.
        with LiveCluster(self._settings) as live:
            leadership = live.leadership_with_traffic()
            constraints = replace(leadership.cluster_constraints(), chosen_partitions=frozenset(names))
            plan = plan_elections(leadership.partitions.values(), limits, constraints)
            policy = ExecutionPolicy(limits, settle_s=elections.settle_s, pause_s=elections.pause_s)
            executor = ElectionExecutor(live, plan.batches, leadership, policy, threading.Event(), on_step)
            # Each result is one batch that was carried out.
            for _ in executor.run():
                pass
        chosen = [left for left in plan.left_out if left.name in names and left.reason is not Reason.DELETING]
        return {left.name: WHY[left.reason] for left in chosen}


def _rates_by_role(rates: Mapping[int, BrokerThrottles]) -> dict[BrokerRate, RateInForce]:
    """Return the rates of the brokers that reported them."""
    rates_by_role: dict[BrokerRate, RateInForce] = {}
    for broker, throttles in rates.items():
        if throttles.known:
            rates_by_role.update({BrokerRole(broker, role): _in_force(throttles, role) for role in Role})
            rates_by_role[LogDirsRate(broker)] = _in_force(throttles, DirectoryRole.LOG_DIRS)
    return rates_by_role


def _in_force(throttles: BrokerThrottles, role: Role | DirectoryRole) -> RateInForce:
    rate, source = rate_of(throttles, role.value)
    own = source == "broker"
    return RateInForce(rate if own else None, None if own else rate)


def _own_rate(throttles: BrokerThrottles, role: str) -> int | None:
    rate, source = rate_of(throttles, role)
    return rate if source == "broker" else None


def _lists_of(snapshot: Snapshot) -> dict[ThrottledList, str]:
    lists = {}
    for topic, config in snapshot.topic_configs.items():
        for role, text in ((Role.LEADER, config.leader_list), (Role.FOLLOWER, config.follower_list)):
            if text is not None:
                lists[ThrottledList(topic, role)] = text
    return lists
