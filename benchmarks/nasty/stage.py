"""One scene as it happens: what is done to the cluster, and what is true of it meanwhile."""

from __future__ import annotations

import time
from collections.abc import Collection, Iterable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path

from benchmarks.harness import Ground, Say, await_true, failure
from benchmarks.nasty.advice import Followed, Turns
from benchmarks.nasty.damage import Damage
from benchmarks.nasty.groups import Group
from benchmarks.nasty.shell import Shell
from benchmarks.nasty.topic import LargeTopic, Rates
from benchmarks.nasty.truth import Announcement, Cause, Claim, announcements
from cli.watch_process import WatchProcess
from schemas.errors import HeadroomError
from schemas.findings import Role

_POLL_S = 0.5
_MOVE_END_S = 150.0
_IN_SYNC_S = 150.0
# Far above what any scene writes: what is left of a move is copied within a minute.
FAST_BYTES_PER_S = 60e6


@dataclass
class Tools:
    """What all scenes of a run share.

    Attributes:
        ground: the brokers.
        damage: what is broken of them.
        shell: where the lines of alerts run.
        turns: whose turn it is, Headroom's commands or Kafka's.
        say: prints how it goes.
    """

    ground: Ground
    damage: Damage
    shell: Shell
    turns: Turns
    say: Say


@dataclass
class Stage:
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
    followed: list[Followed] = field(default_factory=list)
    notes: list[tuple[float, str]] = field(default_factory=list)
    checked: int = 0
    wrong_numbers: list[str] = field(default_factory=list)

    @property
    def ground(self) -> Ground:
        """Return the brokers."""
        return self.tools.ground

    @property
    def groups(self) -> Sequence[Group]:
        """Return the partitions of the scene's topic."""
        return self.topic.groups

    def note(self, text: str) -> None:
        """Keep what was done, with its time."""
        at_s = time.monotonic() - self.began_s
        self.notes.append((at_s, text))
        self.tools.say(f"    {at_s:6.1f}  {text}")

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

    def over(self, *causes: Cause) -> None:
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

    def start_move(self, rates: Rates, chosen: Collection[int] | None = None) -> None:
        """Start the move under rates by broker and role.

        Args:
            rates: those of brokers that are down are left out.
            chosen: partitions that begin to move; None: all that are to move.
        """
        shown = _shown(rates)
        count = sum(group.count for group in self.groups if group.moves) if chosen is None else len(chosen)
        self.note(f"move of {count} partition(s) starts; rates in MB/s: {shown}")
        self.topic.start_move(rates, chosen)

    def require_losing(self, length_s: float, chosen: Collection[Group] | None = None) -> None:
        """Let the scene go on for a time, in which new replicas have to fall further behind or get nothing.

        Args:
            length_s: for how long.
            chosen: groups of which this holds; None: all.

        Raises:
            HeadroomError: they gained: what the scene calls true did not happen.
        """
        before = self.topic.missing_bytes(chosen)
        self.observe(length_s)
        after = self.topic.missing_bytes(chosen)
        self.note(f"{before / 1e6:.1f} MB to copy, {length_s:.0f} s later {after / 1e6:.1f} MB")
        if after < before:
            raise failure(f"new replicas gained, though the throttle is too low: {before} to {after} bytes")

    def await_end(self, deadline_s: float) -> bool:
        """Return whether the move ended in time."""
        with suppress(HeadroomError):
            await_true(lambda: not self.topic.moving(), deadline_s, "the end of the move")
            self.note("the move has ended")
            return True
        return False

    def finish_fast(self, rates: Mapping[tuple[int, Role], float] | None = None) -> None:
        """Raise rates so far that the move ends soon, and return when it has; a planned act.

        Args:
            rates: by broker and role; None: of both roles of all brokers that are up.

        Raises:
            HeadroomError: it did not end.
        """
        alive = [broker for broker in self.ground.brokers if broker not in self.topic.down]
        self.topic.set_rates(rates or {(b, role): FAST_BYTES_PER_S for b in alive for role in Role})
        self.note("rates raised for the end of the move")
        await_true(lambda: not self.topic.moving(), _MOVE_END_S, f"the end of the move of {self.topic.name}")
        self.note("the move has ended")

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

    def restart_in_order(self, broker: int) -> None:
        """Stop a broker as a rolling restart does, start it, and return when its replicas are in sync."""
        self.note(f"broker {broker} is stopped")
        self.tools.damage.stop(broker)
        self.start(broker)
        self.await_in_sync(broker)

    def fail_second_log_dir(self, broker: int) -> None:
        """Make the second log directory of a broker fail."""
        self.note(f"the second log directory of broker {broker} fails")
        self.tools.damage.fail_second_log_dir(broker)

    def start(self, broker: int) -> None:
        """Start a broker, with all its log directories."""
        self.tools.damage.start(broker)
        self.note(f"broker {broker} is started")

    def await_in_sync(self, broker: int) -> None:
        """Return once every replica of a broker is in sync, but for those that a move adds."""
        await_true(lambda: not self.topic.out_of_sync(broker), _IN_SYNC_S, f"replicas of broker {broker} in sync")
        self.note(f"the replicas of broker {broker} are in sync")


def _shown(rates: Rates) -> str:
    """Return rates in MB/s, those that are the same for all brokers once."""
    by_role = {role: {b: f"{rate / 1e6:.2f}" for (b, of), rate in sorted(rates.items()) if of is role} for role in Role}
    texts = []
    for role, found in by_role.items():
        same = len(found) > 1 and len(set(found.values())) == 1
        each = next(iter(found.values())) if same else ", ".join(f"{b}: {rate}" for b, rate in found.items())
        texts.append(f"{role.value} {each or 'none'}")
    return "; ".join(texts)
