"""One scene as it happens: what is done to the cluster, and what is true of it meanwhile."""

from __future__ import annotations

import time
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from benchmarks.fixtures.bench_cluster import BenchCluster, OnProgress
from benchmarks.groups.nasty.scoring.advice import CommandRotation, FollowedAdvice
from benchmarks.groups.nasty.scoring.truth import Announcement, Cause, Claim, announcements
from benchmarks.groups.nasty.stage.damage import Damage
from benchmarks.groups.nasty.stage.groups import Group
from benchmarks.groups.nasty.stage.shell import Shell
from benchmarks.groups.nasty.stage.topic import LargeTopic
from cli.common.watch_process import WatchProcess

_POLL_S = 0.5


@dataclass
class Tools:
    """What all scenes of a run share.

    Attributes:
        bench: the brokers.
        damage: what is broken of them.
        shell: where the lines of alerts run.
        rotation: whose turn it is, Headroom's commands or Kafka's.
        on_progress: prints how it goes.
    """

    bench: BenchCluster
    damage: Damage
    shell: Shell
    rotation: CommandRotation
    on_progress: OnProgress


@dataclass
class SceneContext:
    """A scene under way.

    Attributes:
        tools: what all scenes share.
        watch: the watch that is tried.
        store: folder of its tables.
        topic: the scene's topic, under load.
        began_s: when the scene began, seconds of the monotonic clock.
        causes: what is true, those that matter most first.
        followed: advice that was followed.
        notes: what was done, each with the seconds since the beginning.
        checked: numbers that were compared with what was counted by hand.
        wrong_numbers: those of them that were wrong, in a sentence each.
    """

    tools: Tools
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
        """Return the brokers."""
        return self.tools.bench

    @property
    def groups(self) -> Sequence[Group]:
        """Return the partitions of the scene's topic."""
        return self.topic.groups

    def note(self, text: str) -> None:
        """Keep what was done, with its time."""
        at_s = time.monotonic() - self.began_s
        self.notes.append((at_s, text))
        self.tools.on_progress(f"    {at_s:6.1f}  {text}")

    def announcements(self) -> list[Announcement]:
        """Return every firing event so far."""
        return announcements(list(self.watch.lines))

    def expect(
        self, name: str, claims: Iterable[Claim], within_s: float, required: bool = True, from_s: float | None = None
    ) -> Cause:
        """Return a cause that holds from now on, or from an earlier time, until it is ended.

        Args:
            name: what is wrong.
            claims: what alerts may say of it.
            within_s: time in which one has to.
            required: whether one has to; else one may.
            from_s: when it began, seconds of the monotonic clock; None: now.
        """
        cause = Cause(name, tuple(claims), time.monotonic() if from_s is None else from_s, within_s, required)
        self.causes.append(cause)
        return cause

    def end_causes(self, *causes: Cause) -> None:
        """Note that causes have ended now."""
        for cause in causes:
            cause.until_s = time.monotonic()

    def observe(self, length_s: float) -> None:
        """Let the scene go on for a time."""
        until_s = time.monotonic() + length_s
        while time.monotonic() < until_s:
            self.watch.require_running()
            time.sleep(_POLL_S)

    def await_announced(self, *causes: Cause) -> None:
        """Return once every cause is announced, or has had its time."""
        for cause in causes:
            while not self._announced(cause) and time.monotonic() <= cause.from_s + cause.within_s:
                self.watch.require_running()
                time.sleep(_POLL_S)
            self.note(f"{cause.name}: {'announced' if self._announced(cause) else 'NOT ANNOUNCED'}")

    def _announced(self, cause: Cause) -> bool:
        return any(cause.announced_by(one) for one in self.announcements())

    def compare(self, name: str, found: float | None, expected: float, tolerance_ratio: float) -> None:
        """Keep whether a number is what was counted by hand; one that is not known is not compared."""
        if found is None:
            return
        self.checked += 1
        if abs(found - expected) > tolerance_ratio * expected:
            self.wrong_numbers.append(f"{name}: {found:.0f}, not {expected:.0f}")

    def clear(self) -> None:
        """Clear rates and lists, as whoever has moved partitions does at the end."""
        self.topic.clear_throttles()
        self.note("throttles cleared")

    def kill(self, broker: int) -> None:
        """Kill a broker."""
        self.note(f"broker {broker} is killed")
        self.tools.damage.kill(broker)

    def stop(self, broker: int) -> None:
        """Stop a broker in order."""
        self.note(f"broker {broker} is stopped")
        self.tools.damage.stop(broker)

    def fail_second_log_dir(self, broker: int) -> None:
        """Make the second log directory of a broker fail."""
        self.note(f"the second log directory of broker {broker} fails")
        self.tools.damage.fail_second_log_dir(broker)

    def start(self, broker: int) -> None:
        """Start a broker, with all its log directories."""
        self.tools.damage.start(broker)
        self.note(f"broker {broker} is started")
