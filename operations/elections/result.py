"""What ``headroom elections`` found and did, as data; text_view.py and json_view.py print it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from headroom.alerts.recommendations.commands import headroom_apply, headroom_elections, kafka_elect
from headroom.cluster.elections.executor import BatchResult
from headroom.cluster.elections.leadership import LeadershipSnapshot
from headroom.planning.elections.planner import Balance, ElectionPlan, out_of_balance, why_not_electable
from headroom.planning.throttles.recommendation import ThrottlePolicy
from headroom.schemas.config import Settings
from headroom.schemas.errors import HeadroomError
from headroom.schemas.keys import TopicPartition
from headroom.schemas.text import shell_quoted


@dataclass(frozen=True)
class ElectionScope:
    """Partitions to which the operator restricts a plan.

    Attributes:
        topics: only partitions of these topics; all if None.
        brokers: only partitions whose preferred leader is one of these brokers; all if None.
        file: only the partitions in this file; all if None.
        partitions: the partitions in it; None without a file.
    """

    topics: Sequence[str] | None = None
    brokers: Sequence[int] | None = None
    file: Path | None = None
    partitions: frozenset[TopicPartition] | None = None

    def options(self) -> list[str]:
        """Return the options of ``headroom elections`` that restrict a plan in the same way."""
        chosen = [f"--topics {','.join(self.topics)}"] if self.topics else []
        chosen += [f"--brokers {','.join(map(str, self.brokers))}"] if self.brokers else []
        return chosen + ([f"--file {shell_quoted(str(self.file))}"] if self.file else [])


@dataclass(frozen=True)
class PlannedElections:
    """An election plan and its inputs.

    Attributes:
        settings: all settings.
        config: settings file as given on the command line; the default one if None.
        leadership: state of the cluster for which the plan was made.
        plan: the plan.
        thresholds: by broker, the share of leadership elsewhere above which it is out of balance.
        scope: partitions to which the plan is restricted.
    """

    settings: Settings
    config: str | None
    leadership: LeadershipSnapshot
    plan: ElectionPlan
    thresholds: Mapping[int, float]
    scope: ElectionScope = ElectionScope()

    def over(self, balance: Balance) -> bool:
        """Return whether a broker is out of balance."""
        return out_of_balance(balance, self.thresholds[balance.broker])

    def not_electable(self, balance: Balance) -> str | None:
        """Return why a broker whose imbalance exceeds its limit is not out of balance; None for any other broker."""
        is_alive = balance.broker in self.leadership.alive
        return why_not_electable(balance, self.thresholds[balance.broker], is_alive)

    def partitions(self) -> int:
        """Return the number of partitions in all batches."""
        return sum(len(batch.partitions) for batch in self.plan.batches)

    def raise_command(self) -> str | None:
        """Return the command that raises the throttles; None if none is too low, or none would be enough."""
        if not self.plan.raise_first:
            return None
        policy = ThrottlePolicy(self.settings.alerts.margin_ratio, None, self.settings.cluster.replication_capacity)
        # One rate for all: it has to be enough for the broker that needs most. None if it exceeds the capacity.
        rate = policy.throttle_above(max(increase.required_bytes_per_s for increase in self.plan.raise_first))
        brokers = sorted({increase.broker_role[0] for increase in self.plan.raise_first})
        return None if rate is None else headroom_apply(rate, brokers, self.config)

    def execute_command(self) -> str:
        """Return the command that runs the elections of this plan."""
        return " ".join([headroom_elections(self.config), *self.scope.options()])


@dataclass(frozen=True)
class ElectionRun:
    """Results of executing a plan.

    Attributes:
        results: results of the batches that were started.
        stopped: the deviation from the plan that stopped the run; None if there was none.
    """

    results: tuple[BatchResult, ...]
    stopped: HeadroomError | None

    def elected_count(self) -> int:
        """Return the number of elected leaders."""
        return sum(len(result.answers.elected) for result in self.results)

    def done(self) -> int:
        """Return how many of the plan's partitions have their preferred leader now."""
        return self.elected_count() + sum(len(result.answers.not_needed) for result in self.results)


@dataclass(frozen=True)
class ElectionsResult:
    """Result of the command.

    Attributes:
        planned: the plan.
        batch_files: files that were written for ``kafka-leader-election``, one per batch; empty if none were asked for.
        run: results of the execution; None if nothing was executed.
        blocked_reason: why elections may not run now; None if they may.
    """

    planned: PlannedElections
    batch_files: Sequence[Path]
    run: ElectionRun | None
    blocked_reason: str | None

    def batch_commands(self) -> list[str]:
        """Return Kafka's commands that run the batch files, in order."""
        settings = self.planned.settings
        servers = settings.alerts.bootstrap_servers or settings.cluster.bootstrap_servers
        return [kafka_elect(str(file), servers) for file in self.batch_files]

    def left_partitions(self) -> int:
        """Return how many of the plan's partitions do not have their preferred leader yet."""
        return self.planned.partitions() - (self.run.done() if self.run is not None else 0)
