"""Proposals and capacity risks for alerts on load, made by ``headroom balance`` in processes of low priority."""

from __future__ import annotations

import logging
import time
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from headroom.alerts.engine import AlertEngine
from headroom.alerts.inputs.broker_load import BalanceAdvice
from headroom.alerts.watched_cluster import WatchedCluster
from headroom.cli.config.several_files import ConfiguredClusters
from headroom.cli.watch.balance.child_command import ChildCommand, CommandResult, RunningCommand
from headroom.planning.balance.broker_loads.capacity_risk import CapacityRisk
from headroom.schemas.alerts import AlertEvent, AlertKind, AlertState

log = logging.getLogger(__name__)

OnProposal = Callable[[str, BalanceAdvice], None]

_UNEVEN = {AlertKind.LOAD_OUT_OF_BAND.value, AlertKind.HOT_BROKER.value}
# A pending alert has a proposal before it fires, unless it is over soon.
_PENDING_MS = 150_000
# The first estimate of risks waits until the watch has started.
_FIRST_RISKS_S = 120.0
# The model of a very large cluster takes half a minute. A process that hangs must not keep others from running.
_TIMEOUT_S = 900.0


@dataclass(frozen=True)
class _Task:
    """A command for a cluster, and what is done with its JSON.

    Attributes:
        key: cluster and purpose.
        arguments: arguments of ``headroom``.
        use: gets the JSON.
    """

    key: tuple[str, str]
    arguments: tuple[str, ...]
    use: Callable[[Mapping[str, Any]], None]


@dataclass
class BalanceWorker:
    """Runs at most one command at a time, so that no tick waits for a proposal, and gives its result to the engine.

    While an alert on uneven load is active, it proposes every ``balance.propose_every_s``; the command stores the
    proposal. Where ``balance.network_out_capacity`` is set, it estimates as often what a lost broker would do.

    Attributes:
        clusters: watched clusters.
        start: starts a command.
        clock_s: monotonic clock, seconds.
        clock_ms: time, epoch milliseconds.
    """

    clusters: ConfiguredClusters
    start: Callable[[tuple[str, ...]], RunningCommand] = ChildCommand
    clock_s: Callable[[], float] = time.monotonic
    clock_ms: Callable[[], int] = lambda: time.time_ns() // 1_000_000

    def __post_init__(self) -> None:
        """Begin without a command."""
        self._engine: AlertEngine | None = None
        self._on_proposal: OnProposal = lambda cluster, advice: None
        self._running: tuple[_Task, RunningCommand] | None = None
        self._started_s: dict[tuple[str, str], float] = {}
        self._failed: set[tuple[str, str]] = set()
        self._begin_s = self.clock_s()

    def follow(self, engine: AlertEngine, on_proposal: OnProposal) -> None:
        """Serve an engine from now on: the pipeline may have been built again.

        Args:
            engine: gets all results.
            on_proposal: called with each proposal and the name of its cluster.
        """
        self._engine, self._on_proposal = engine, on_proposal

    def check(self) -> None:
        """Use the result of the command that has ended, or start the next one that is due; call it once a second."""
        if self._engine is None:
            return
        if self._running is not None:
            self._finish(*self._running)
            return
        task = next(self._due(self._engine), None)
        if task is not None:
            self._started_s[task.key] = self.clock_s()
            try:
                self._running = task, self.start(task.arguments)
            # No room for the files of its output, no memory for a process.
            except OSError as error:
                self._log_failure(task, error.strerror or type(error).__name__)

    def stop(self) -> None:
        """End the command that runs."""
        if self._running is not None:
            self._running[1].stop()
            self._running = None

    def _due(self, engine: AlertEngine) -> Iterator[_Task]:
        active = engine.active()
        own = WatchedCluster(self.clusters.settings, self.clusters.config)
        for watched in (own, *self.clusters.others):
            name, balance = watched.settings.cluster.name, watched.settings.balance
            task = self._proposal(engine, watched, active)
            if task is not None and self._is_due(task.key, balance.propose_every_s):
                yield task
            key = (name, "risks")
            is_wanted = balance.network_out_capacity is not None and self.clock_s() - self._begin_s >= _FIRST_RISKS_S
            if is_wanted and self._is_due(key, balance.propose_every_s):
                yield _Task(key, ("balance", *_options(watched)), lambda result: _use_risks(engine, result))

    def _proposal(self, engine: AlertEngine, watched: WatchedCluster, active: list[AlertEvent]) -> _Task | None:
        """Return the proposal for a cluster with an active alert on uneven load; None without one."""
        name = watched.settings.cluster.name
        alerts = [event for event in active if event.cluster == name and event.kind in _UNEVEN]
        loads = engine.inputs(name).loads
        # Those that are uneven now: an alert lasts for a while after its broker is even.
        brokers = () if loads is None else loads.uneven
        if not brokers or not any(map(self._lasts, alerts)):
            return None
        listed = ",".join(map(str, brokers))
        arguments = ("balance", "propose", "--until-in-band", listed, *_options(watched))
        return _Task((name, "proposal"), arguments, lambda result: self._use_proposal(engine, result))

    def _use_proposal(self, engine: AlertEngine, proposal: Mapping[str, Any]) -> None:
        advice = _advice_of(proposal)
        engine.inputs(proposal["cluster"]).advice = advice
        self._on_proposal(proposal["cluster"], advice)

    def _lasts(self, event: AlertEvent) -> bool:
        return event.state == AlertState.FIRING.value or self.clock_ms() - event.tick_ms >= _PENDING_MS

    def _is_due(self, key: tuple[str, str], every_s: float) -> bool:
        started_s = self._started_s.get(key)
        return started_s is None or self.clock_s() - started_s >= every_s

    def _finish(self, task: _Task, command: RunningCommand) -> None:
        """Use the result of a command if it has ended; one that fails is logged once until it succeeds."""
        result = command.result()
        if result is None:
            # A cluster that does not answer must not keep those of the others waiting.
            if self.clock_s() - self._started_s[task.key] < _TIMEOUT_S:
                return
            command.stop()
            result = CommandResult(None, f"no result after {_TIMEOUT_S:.0f} s")
        self._running = None
        if result.output is not None:
            self._failed.discard(task.key)
            task.use(result.output)
        else:
            self._log_failure(task, result.error)

    def _log_failure(self, task: _Task, reason: str) -> None:
        if task.key not in self._failed:
            self._failed.add(task.key)
            log.warning("headroom %s failed: %s", " ".join(task.arguments), reason)


def _options(watched: WatchedCluster) -> tuple[str, ...]:
    config = ("--config", watched.config) if watched.config else ()
    return ("--format", "json", *config)


def _advice_of(proposal: Mapping[str, Any]) -> BalanceAdvice:
    chosen = proposal["actions"][: proposal["chosen_actions"]]
    before, after = proposal["outside_before"], chosen[-1]["outside_after"] if chosen else proposal["outside_before"]
    return BalanceAdvice(
        proposal_id=proposal["proposal_id"],
        read_ms=proposal["read_ms"],
        brokers=frozenset(proposal["until_in_band"]["brokers"]),
        reached=proposal["until_in_band"]["reached"],
        actions=len(chosen),
        elections=sum(action["kind"] == "elect" for action in chosen),
        copied_bytes=chosen[-1]["copied_bytes_after"] if chosen else 0.0,
        duration_s=proposal["duration_s"],
        gain_ratio=(before - after) / before if before else 0.0,
        promised={
            (broker["broker"], resource): values["load"]
            for broker in proposal["after"]["brokers"]
            for resource, values in broker["loads"].items()
            if values["load"] is not None
        },
    )


def _use_risks(engine: AlertEngine, result: Mapping[str, Any]) -> None:
    engine.update_capacity_risks(result["cluster"], [CapacityRisk(**risk) for risk in result["at_risk"]])
