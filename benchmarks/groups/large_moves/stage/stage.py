"""Context of a running scene: actions on the cluster, and the causes that are true."""

from __future__ import annotations

import time
from collections.abc import Iterable
from dataclasses import dataclass, field
from pathlib import Path

from benchmarks.faults.brokers import BrokerFaults
from benchmarks.fixtures.bench_cluster import BenchCluster, OnProgress
from benchmarks.groups.large_moves.scoring.advice import CommandRotation, FollowedAdvice
from benchmarks.groups.large_moves.scoring.truth import Cause, Claim, PrintedAlert
from benchmarks.groups.large_moves.stage.shell import Shell
from benchmarks.groups.large_moves.stage.topic import LargeTopic
from headroom.cli.common.watch_process import WatchProcess

_POLL_S = 0.5


@dataclass
class SceneTools:
    """Tools that all scenes of a run share.

    Attributes:
        bench: cluster of the scenes.
        brokers: faults of its brokers.
        shell: shell for the lines of alerts.
        rotation: selects Headroom's commands or Kafka's.
        on_progress: prints the progress.
    """

    bench: BenchCluster
    brokers: BrokerFaults
    shell: Shell
    rotation: CommandRotation
    on_progress: OnProgress


@dataclass
class SceneContext:
    """Context of a running scene.

    Attributes:
        tools: shared tools.
        watch: the measured watch.
        store: folder of its tables.
        topic: the scene's topic, under load.
        began_s: beginning of the scene, monotonic seconds.
        causes: true causes, the most important first.
        followed: advice that was followed.
        notes: actions, each with the seconds since the beginning.
        checked: number of numbers compared with those computed by hand.
        wrong_numbers: a sentence for each wrong one.
    """

    tools: SceneTools
    watch: WatchProcess
    store: Path
    topic: LargeTopic
    began_s: float = field(default_factory=time.monotonic)
    causes: list[Cause] = field(default_factory=list)
    followed: list[FollowedAdvice] = field(default_factory=list)
    notes: list[tuple[float, str]] = field(default_factory=list)
    checked: int = 0
    wrong_numbers: list[str] = field(default_factory=list)

    @property
    def bench(self) -> BenchCluster:
        """Return the cluster."""
        return self.tools.bench

    def note(self, text: str) -> None:
        """Record an action with its time."""
        at_s = time.monotonic() - self.began_s
        self.notes.append((at_s, text))
        self.tools.on_progress(f"    {at_s:6.1f}  {text}")

    def announcements(self) -> list[PrintedAlert]:
        """Return all firing events so far."""
        return [PrintedAlert.of(line) for line in self.watch.firing_events(informing=True)]

    def expect(self, name: str, claims: Iterable[Claim], within_s: float, required: bool = True) -> Cause:
        """Add a cause that holds from now on, and return it.

        Args:
            name: name of the cause.
            claims: claims of alerts about it.
            within_s: seconds within which an alert has to announce it.
            required: whether an alert has to announce it; otherwise one may.
        """
        cause = Cause(name, tuple(claims), time.monotonic(), within_s, required)
        self.causes.append(cause)
        return cause

    def end_causes(self, *causes: Cause) -> None:
        """Set the end of causes to now."""
        for cause in causes:
            cause.until_s = time.monotonic()

    def observe(self, length_s: float) -> None:
        """Wait for a number of seconds while the watch runs."""
        until_s = time.monotonic() + length_s
        while time.monotonic() < until_s:
            self.watch.require_running()
            time.sleep(_POLL_S)

    def await_announced(self, *causes: Cause) -> None:
        """Return once every cause is announced, or its time is over."""
        for cause in causes:
            while not self._is_announced(cause) and time.monotonic() <= cause.from_s + cause.within_s:
                self.watch.require_running()
                time.sleep(_POLL_S)
            self.note(f"{cause.name}: {'announced' if self._is_announced(cause) else 'NOT ANNOUNCED'}")

    def _is_announced(self, cause: Cause) -> bool:
        return any(cause.announced_by(one) for one in self.announcements())

    def compare(self, name: str, number: float | None, expected: float, tolerance_ratio: float) -> None:
        """Compare a number with the one computed by hand. An unknown number is skipped."""
        if number is None:
            return
        self.checked += 1
        if abs(number - expected) > tolerance_ratio * expected:
            self.wrong_numbers.append(f"{name}: {number:.0f}, not {expected:.0f}")

    def clear(self) -> None:
        """Clear rates and lists, as an operator does at the end of a move."""
        self.topic.clear_throttles()
        self.note("throttles cleared")

    def kill(self, broker: int) -> None:
        """Kill a broker."""
        self.note(f"broker {broker} is killed")
        self.tools.brokers.kill(broker)

    def stop(self, broker: int) -> None:
        """Stop a broker with a controlled shutdown."""
        self.note(f"broker {broker} is stopped")
        self.tools.brokers.stop(broker)

    def fail_second_log_dir(self, broker: int) -> None:
        """Make the second log directory of a broker fail."""
        self.note(f"the second log directory of broker {broker} fails")
        self.tools.brokers.fail_second_log_dir(broker)

    def start(self, broker: int) -> None:
        """Start a broker with all its log directories."""
        self.tools.brokers.start(broker)
        self.note(f"broker {broker} is started")
