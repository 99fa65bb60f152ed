"""Throttled copies simulated fetch by fetch, as followers and leaders run them.

A copy takes all the room of its quotas at once, then waits until what it took leaves the windows; between its bursts
the lag grows. When a copy ends therefore depends on the samples of both quotas, the leader's and the destination's.
The simulation does what the brokers do: a destination that has exceeded its quota leaves the out-of-sync partitions out
of its fetches and checks again later (``RemoteLeaderEndPoint.shouldFollowerThrottle``); a leader that has exceeded its
own answers with nothing until it has room (``ReplicaManager.shouldLeaderThrottle``, ``DelayedFetch``); neither cuts a
response; partitions that got data go to the end of the fetch session (``FetchSession.PartitionIterator``).
"""

from __future__ import annotations

import heapq
import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from itertools import count
from random import Random

from planning.finish.copies import CopyStream, QuotaEndpoint

# A response takes that long besides the time of its bytes.
_ROUND_TRIP_S = 0.01
# A link is that much faster than the throttle at least: else the throttle would not be what limits the copy.
_FAST_RATIO = 5.0
# Responses that follow each other within this time count as one: their number would only cost time.
_TOGETHER_S = 0.02
# A fetch that waits at its leader is checked again with every record that is appended to one of its partitions.
_APPEND_INTERVAL_S = 0.04
_SERVED_FIRST = 0.5
# Some fetcher threads get more than others, all the time or in one burst: as a ratio, on average. A pause of so many
# seconds ends a burst.
_LASTING_RATIO, _PASSING_RATIO, _BURST_S = 0.5, 0.3, 1.0
# Spreads points over an interval as evenly as can be, however many there are.
_GOLDEN_RATIO = (math.sqrt(5) - 1) / 2


@dataclass(frozen=True)
class Conditions:
    """What brokers do not report, and a simulation has to assume.

    Attributes:
        batch_bytes: size of producers' batches; a fetch ends in the middle of one, whose beginning was sent in vain.
        burst_bytes_per_s: speed of a copy that no quota holds back.
        retry_ratio: how soon a destination checks its quota again, against the longest time: it does so with every
            fetch of other partitions.
        seed: decides which of several copies that wait for a quota is first: half of the times the one that was served
            last, which asks soonest, half of the times any.
    """

    batch_bytes: float = 16_384.0
    burst_bytes_per_s: float = 60e6
    retry_ratio: float = 0.5
    seed: int = 0


class Simulation:
    """Copies under way, event by event. Times in seconds from now.

    Args:
        copies: what is to be copied; they and their quotas are used up.
        applied_s: when the rates change.
        conditions: what is assumed.
        most_events: ends a simulation that would take too long.

    Attributes:
        open: copies that are not done.
        ended_s: when the last part was copied; None: not yet.
        events: how many events it has taken.
        at_s: time of the last event.
    """

    def __init__(
        self, copies: Iterable[CopyStream], applied_s: float, conditions: Conditions, most_events: int = 1_000_000
    ) -> None:
        self.open = [copy for copy in copies if copy.parts]
        self.ended_s: float | None = None if self.open else 0.0
        self.at_s = 0.0
        self._applied_s = applied_s
        self._conditions = conditions
        self._random = Random(conditions.seed)
        self._order = count()
        self.events = 0
        self._most_events = most_events
        self._events: list[tuple[float, int, CopyStream | QuotaEndpoint | None]] = []
        self._ends = list({id(end): end for copy in self.open for end in copy.ends}.values())
        for number, copy in enumerate(self.open):
            copy.luck = math.exp(_LASTING_RATIO * self._random.gauss(0.0, 1.0))
            # Fetcher threads do not run in step.
            self._plan(number * _GOLDEN_RATIO % 1 * copy.limits.retry_s, copy)
        self._plan(applied_s, None)

    def run(self, until_s: float) -> float | None:
        """Return when the last part was copied; None: not until then, or not with so few events.

        Args:
            until_s: simulated to here at most.
        """
        while self.open and self._events[0][0] <= until_s and self.events < self._most_events:
            at_s, _, what = heapq.heappop(self._events)
            self.at_s = at_s
            self.events += 1
            if isinstance(what, CopyStream):
                self._go_on(what, at_s)
            elif what is None:
                for end in self._ends:
                    self._check_at(end, at_s)
            elif what.check_s == at_s:
                what.check_s = math.inf
                self._check(what, at_s)
        return self.ended_s

    def left_bytes(self, at_s: float) -> float:
        """Return what is still to be copied at a time not before the last event."""
        return sum(part.left_bytes(at_s) for copy in self.open for part in copy.parts)

    def _plan(self, at_s: float, what: CopyStream | QuotaEndpoint | None) -> None:
        heapq.heappush(self._events, (at_s, next(self._order), what))

    def _check_at(self, end: QuotaEndpoint, at_s: float) -> None:
        if end.waiting and at_s < end.check_s:
            end.check_s = at_s
            self._plan(at_s, end)

    def _go_on(self, copy: CopyStream, at_s: float) -> None:
        """Take in the response that has arrived, and build the next fetch."""
        if copy.arriving_bytes:
            if copy.destination is not None:
                copy.destination.record(at_s, copy.arriving_bytes)
            copy.arriving_bytes = 0.0
            copy.close(at_s)
            if not copy.parts:
                self.open.remove(copy)
                self.ended_s = None if self.open else at_s
                return
        if copy.destination is None or self._may_pass(copy, copy.destination, at_s):
            self._ask(copy, at_s)

    def _may_pass(self, copy: CopyStream, end: QuotaEndpoint, at_s: float) -> bool:
        """Return whether a quota has room; if not, the copy waits for it."""
        free_s = end.free_s(at_s, at_s >= self._applied_s)
        if free_s <= at_s:
            return True
        end.waiting.append(copy)
        self._check_at(end, free_s + self._gap_s(end))
        return False

    def _gap_s(self, end: QuotaEndpoint) -> float:
        """Return the time until one of the copies that wait for a quota checks it."""
        copy = end.waiting[0]
        if end is copy.leader:
            return _APPEND_INTERVAL_S
        return self._conditions.retry_ratio * copy.limits.retry_s / len(end.waiting)

    def _ask(self, copy: CopyStream, at_s: float) -> None:
        copy.asked_s = at_s
        if copy.leader is None or self._may_pass(copy, copy.leader, at_s):
            self._respond(copy, at_s)

    def _check(self, end: QuotaEndpoint, at_s: float) -> None:
        """Let one of the copies that wait for a quota go on if it has room; the others check again soon."""
        free_s = end.free_s(at_s, at_s >= self._applied_s)
        if free_s > at_s:
            self._check_at(end, free_s + self._gap_s(end))
            return
        copy = self._first(end.waiting)
        end.waiting.remove(copy)
        if end is copy.destination:
            self._ask(copy, at_s)
        elif at_s - copy.asked_s > copy.limits.wait_s:
            # A fetch that has waited longest has returned empty, and the destination has checked its own quota again.
            self._go_on(copy, at_s)
        else:
            self._respond(copy, at_s)
        if end.waiting:
            self._check_at(end, at_s + self._gap_s(end))

    def _first(self, waiting: Sequence[CopyStream]) -> CopyStream:
        if self._random.random() < _SERVED_FIRST:
            return max(waiting, key=lambda copy: copy.served_s)
        return self._random.choices(waiting, [copy.luck for copy in waiting])[0]

    def _respond(self, copy: CopyStream, at_s: float) -> None:
        """Send a response, which arrives after a while."""
        bytes_per_s = max(self._conditions.burst_bytes_per_s, *(_FAST_RATIO * end.fastest for end in copy.ends))
        full = min(copy.limits.response_bytes, len(copy.parts) * copy.limits.partition_bytes)
        times = int(bytes_per_s * _TOGETHER_S / full)
        if times > 1:
            applied = at_s >= self._applied_s
            times = min(times, int(min(end.room_bytes(at_s, applied) for end in copy.ends) / full) + 1)
        sent = copy.respond(at_s, max(1, times), self._conditions.batch_bytes)
        if copy.leader is not None:
            copy.leader.record(at_s, sent)
        if at_s - copy.served_s > _BURST_S:
            copy.pace = copy.luck * math.exp(_PASSING_RATIO * self._random.gauss(0.0, 1.0))
        copy.served_s = at_s
        copy.arriving_bytes = max(sent, 1.0)
        self._plan(at_s + (_ROUND_TRIP_S + sent / bytes_per_s) / copy.pace, copy)
