"""Leader switches of partitions: the previous leader and the last samples under it."""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping
from dataclasses import dataclass, replace

from headroom.cluster.collector.rows.columns import Row
from headroom.cluster.collector.rows.message_rows import shift_times
from headroom.cluster.model import Partition
from headroom.schemas.keys import TopicPartition

# A switch of a partition that is not watched is kept this long, in case the partition is watched later.
_MEMORY_MS = 600_000


@dataclass(frozen=True)
class PreviousLeader:
    """Last sample of a leader's log, and of the topic's counters on that broker (None if unknown)."""

    log: Row
    topic_counters: Row | None

    def shift_times(self, step_ms: int) -> PreviousLeader:
        """Return the same samples with their times shifted by ``step_ms``."""
        return PreviousLeader(
            shift_times(self.log, step_ms), self.topic_counters and shift_times(self.topic_counters, step_ms)
        )


@dataclass(frozen=True)
class Switch:
    """One leader switch, or the return of a leader.

    Attributes:
        previous_leader: broker id of the previous leader; None if the same leader has come back.
        switch_tick_ms: first tick with the new leader, epoch milliseconds; None if there is no new leader yet.
        before: last samples under the previous leader; None if unknown, or no longer reported.
    """

    previous_leader: int | None
    switch_tick_ms: int | None
    before: PreviousLeader | None

    def shift_times(self, step_ms: int) -> Switch:
        """Return the same switch with its times shifted by ``step_ms``."""
        return Switch(
            self.previous_leader,
            None if self.switch_tick_ms is None else self.switch_tick_ms + step_ms,
            self.before and self.before.shift_times(step_ms),
        )


@dataclass(slots=True)
class _LeaderState:
    leader: int | None
    leaderless: bool
    before: PreviousLeader | None = None
    switch: Switch | None = None
    # First tick in which the same leader was back after a time without one, and the samples from before that time.
    returned: tuple[int, PreviousLeader] | None = None


class LeaderSwitches:
    """Tracks the leader of every partition from tick to tick.

    Args:
        reported_ms: time after a switch during which the samples before it are reported, milliseconds.
    """

    def __init__(self, reported_ms: int) -> None:
        self._reported_ms = reported_ms
        self._states: dict[TopicPartition, _LeaderState] = {}

    def observe(
        self,
        tick_ms: int,
        partitions: Mapping[TopicPartition, Partition],
        watched: Collection[TopicPartition],
        last_sample: Callable[[TopicPartition, int], PreviousLeader | None] = lambda name, leader: None,
    ) -> None:
        """Update the leaders with those of a tick, and drop deleted partitions.

        Args:
            tick_ms: time of the tick, epoch milliseconds.
            partitions: all partitions.
            watched: partitions whose last switch does not expire.
            last_sample: returns the last samples of a partition under a leader, None if there are none.
        """
        for name in self._states.keys() - partitions.keys():
            del self._states[name]
        for name, partition in partitions.items():
            state = self._states.get(name)
            if state is None:
                self._states[name] = _LeaderState(partition.leader, partition.leader is None)
            elif partition.leader != state.leader or state.leaderless or state.switch is not None:
                if partition.leader != state.leader and state.leader is not None and not state.leaderless:
                    state.before = last_sample(name, state.leader) or state.before
                self._apply(state, partition.leader, tick_ms)
                _expire(state, tick_ms, name in watched)

    def remember(self, name: TopicPartition, before: PreviousLeader) -> None:
        """Keep samples under the current leader, for the rates before a later switch."""
        state = self._states.get(name)
        if state is not None and not state.leaderless:
            state.before = before

    def forget(self, names: Collection[TopicPartition]) -> None:
        """Drop the given partitions, whose topic was deleted and created again."""
        for name in names:
            self._states.pop(name, None)

    def shift(self, step_ms: int) -> None:
        """Shift the times of all switches and of their earlier samples after a clock step."""
        for state in self._states.values():
            state.before = state.before and state.before.shift_times(step_ms)
            state.switch = state.switch and state.switch.shift_times(step_ms)
            if state.returned is not None:
                state.returned = state.returned[0] + step_ms, state.returned[1].shift_times(step_ms)

    def of(self, name: TopicPartition, tick_ms: int) -> Switch | None:
        """Return the partition's last switch as a tick reports it; None if none is known."""
        state = self._states.get(name)
        if state is None:
            return None
        if state.leaderless:
            return Switch(state.leader, None, state.before) if state.leader is not None else None
        before = self._steady_samples(state, tick_ms)
        if state.switch is not None:
            return replace(state.switch, before=before)
        return None if before is None else Switch(None, None, before)

    def _apply(self, state: _LeaderState, leader: int | None, tick_ms: int) -> None:
        was_leaderless, state.leaderless = state.leaderless, leader is None
        # Two switches in a row: the samples of the leader in between, if there are any, reach back over the first one.
        before = self._steady_samples(state, tick_ms) or state.before
        if leader is None:
            return
        if leader == state.leader:
            if was_leaderless and before is not None:
                state.returned = tick_ms, before
            return
        if state.leader is not None:
            state.switch = Switch(state.leader, tick_ms, before)
        state.leader, state.before, state.returned = leader, None, None

    def _steady_samples(self, state: _LeaderState, tick_ms: int) -> PreviousLeader | None:
        """Return the samples from before the last switch or return of a leader, while they are reported."""
        if state.returned is not None and self._is_recent(state.returned[0], tick_ms):
            return state.returned[1]
        switch = state.switch
        is_recent = switch is not None and self._is_recent(switch.switch_tick_ms, tick_ms)
        return switch.before if switch is not None and is_recent else None

    def _is_recent(self, at_ms: int | None, tick_ms: int) -> bool:
        return at_ms is not None and tick_ms - at_ms <= self._reported_ms


def _expire(state: _LeaderState, tick_ms: int, watched: bool) -> None:
    switched_ms = state.switch.switch_tick_ms if state.switch is not None else None
    if switched_ms is not None and not watched and tick_ms - switched_ms > _MEMORY_MS:
        state.switch = None
