"""Memory of leader switches: who led before, and the last samples under that leader."""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping
from dataclasses import dataclass, replace

from cluster.collector.rows.columns import Row
from cluster.collector.rows.message_rows import shifted
from cluster.model import Partition, TopicPartition

# How long a switch is remembered of a partition that nobody watches yet.
_MEMORY_MS = 600_000


@dataclass(frozen=True)
class PreviousLeader:
    """The last rows of a leader's log and of the topic's counters on it; the counters None: not known."""

    log: Row
    topic_counters: Row | None

    def shifted(self, step_ms: int) -> PreviousLeader:
        """Return the same rows by a clock that was set."""
        return PreviousLeader(shifted(self.log, step_ms), self.topic_counters and shifted(self.topic_counters, step_ms))


@dataclass(frozen=True)
class Switch:
    """One leader switch.

    Attributes:
        previous_leader: who led before.
        switch_tick_ms: the tick that showed the new leader first; None: there is no new leader yet.
        before: the last samples under the previous leader; None: not known, or a whole rate window has passed.
    """

    previous_leader: int
    switch_tick_ms: int | None
    before: PreviousLeader | None

    def shifted(self, step_ms: int) -> Switch:
        """Return the same switch by a clock that was set."""
        return Switch(
            self.previous_leader,
            None if self.switch_tick_ms is None else self.switch_tick_ms + step_ms,
            self.before and self.before.shifted(step_ms),
        )


@dataclass(slots=True)
class _State:
    leader: int | None
    leaderless: bool
    before: PreviousLeader | None = None
    switch: Switch | None = None


class Switches:
    """Follows the leader of every partition from tick to tick.

    Args:
        window_ms: how long after a switch its samples from before are told.
    """

    def __init__(self, window_ms: int) -> None:
        self._window_ms = window_ms
        self._states: dict[TopicPartition, _State] = {}

    def observe(
        self,
        tick_ms: int,
        partitions: Mapping[TopicPartition, Partition],
        watched: Collection[TopicPartition],
        last_said: Callable[[TopicPartition, int], PreviousLeader | None] = lambda name, leader: None,
    ) -> None:
        """Take in the leaders of a tick; partitions that are gone are forgotten.

        Args:
            tick_ms: time of the tick.
            partitions: all partitions.
            watched: those whose last switch is not forgotten.
            last_said: returns the last rows of a partition's log under a leader, None: there are none.
        """
        for name in self._states.keys() - partitions.keys():
            del self._states[name]
        for name, partition in partitions.items():
            state = self._states.get(name)
            if state is None:
                self._states[name] = _State(partition.leader, partition.leader is None)
            elif partition.leader != state.leader or state.leaderless or state.switch is not None:
                if partition.leader != state.leader and state.leader is not None and not state.leaderless:
                    state.before = last_said(name, state.leader) or state.before
                self._follow(state, partition.leader, tick_ms)
                _expire(state, tick_ms, name in watched)

    def remember(self, name: TopicPartition, before: PreviousLeader) -> None:
        """Keep rows under the present leader: should it change, they tell the rates from before."""
        state = self._states.get(name)
        if state is not None and not state.leaderless:
            state.before = before

    def forget(self, names: Collection[TopicPartition]) -> None:
        """Drop partitions whose topic was made anew."""
        for name in names:
            self._states.pop(name, None)

    def shift(self, step_ms: int) -> None:
        """Move the times of all switches and of the rows from before them along with a clock that was set."""
        for state in self._states.values():
            state.before = state.before and state.before.shifted(step_ms)
            state.switch = state.switch and state.switch.shifted(step_ms)

    def of(self, name: TopicPartition, tick_ms: int) -> Switch | None:
        """Return the partition's last switch as a tick is to tell it; None: none is known."""
        state = self._states.get(name)
        if state is None:
            return None
        if state.leaderless:
            return Switch(state.leader, None, state.before) if state.leader is not None else None
        switch = state.switch
        if switch is None or self._fresh(switch, tick_ms):
            return switch
        return replace(switch, before=None)

    def _follow(self, state: _State, leader: int | None, tick_ms: int) -> None:
        state.leaderless = leader is None
        if leader is None or leader == state.leader:
            return
        if state.leader is not None:
            state.switch = Switch(state.leader, tick_ms, state.before or self._still_known(state, tick_ms))
        state.leader, state.before = leader, None

    def _still_known(self, state: _State, tick_ms: int) -> PreviousLeader | None:
        # Two switches in a row: the leader between was never sampled, the one before it was.
        switch = state.switch
        return switch.before if switch is not None and self._fresh(switch, tick_ms) else None

    def _fresh(self, switch: Switch, tick_ms: int) -> bool:
        return switch.switch_tick_ms is not None and tick_ms - switch.switch_tick_ms <= self._window_ms


def _expire(state: _State, tick_ms: int, watched: bool) -> None:
    switched_ms = state.switch.switch_tick_ms if state.switch is not None else None
    if switched_ms is not None and not watched and tick_ms - switched_ms > _MEMORY_MS:
        state.switch = None
