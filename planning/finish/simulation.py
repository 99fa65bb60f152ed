"""Simulation of throttled copies, fetch by fetch, with the rules of followers and leaders.

A copy uses all room in its quotas at once. It then waits until that traffic leaves the quota windows, and the lag grows
between its bursts. The end of a copy therefore depends on the samples of both quotas, the leader's and the
destination's.

The rules of the brokers are:
- A destination above its quota omits out-of-sync partitions from its fetches and checks again later
(``RemoteLeaderEndPoint.shouldFollowerThrottle``).
- A leader above its quota returns no data until there is room (``ReplicaManager.shouldLeaderThrottle``,
``DelayedFetch``).
- Neither cuts a response.
- Partitions that got data move to the end of the fetch session (``FetchSession.PartitionIterator``).
"""

from __future__ import annotations

import heapq
import math
from collections.abc import Iterable
from dataclasses import dataclass
from itertools import count
from random import Random

from headroom.planning.finish.copies import CopyStream, QuotaEndpoint

# Latency of a response, in addition to the transfer time of its bytes.
_ROUND_TRIP_S = 0.01
# Minimum ratio of link speed to throttle; with a slower link, the throttle would not limit the copy.
_FAST_RATIO = 5.0
# Responses within this time are combined, to simulate fewer events.
_TOGETHER_S = 0.02
# A fetch that waits at its leader is checked again with every record appended to one of its partitions.
_APPEND_INTERVAL_S = 0.04
_SERVED_FIRST = 0.5
# Some fetcher threads get more than others, permanently or in one burst: standard deviations, as ratios. A pause of
# _BURST_S ends a burst.
_LASTING_RATIO, _PASSING_RATIO, _BURST_S = 0.5, 0.3, 1.0
# Multiples of this ratio modulo 1 are evenly spread over an interval, for any number of points.
_GOLDEN_RATIO = (math.sqrt(5) - 1) / 2


@dataclass(frozen=True)
class Conditions:
    """Assumptions of a simulation about values that brokers do not report.

    Attributes:
        batch_bytes: size of producer batches; a fetch ends in the middle of one, which is then sent again.
        burst_bytes_per_s: rate of a copy that no quota limits.
        retry_ratio: time until a destination checks its quota again, as a ratio of the longest time. It checks with
            every fetch of other partitions.
        seed: seed of the choice between copies that wait for a quota. Half of the choices are the copy served last,
            which asks first; the other half are random.
    """

    batch_bytes: float = 16_384.0
    burst_bytes_per_s: float = 60e6
    retry_ratio: float = 0.5
    seed: int = 0


class Simulation:
    """Running copies, simulated event by event. Times are in seconds from now.

    Args:
        copies: copy streams; they and their quotas are changed.
        applied_s: time at which the rates change.
        conditions: assumptions.
        most_events: maximum number of events.

    Attributes:
        open: unfinished copy streams, in their order; a dict, because thousands are removed one by one.
        ended_s: time of the last copied byte; None if not yet.
        events: number of events so far.
        at_s: time of the last event.
    """

    def __init__(
        self, copies: Iterable[CopyStream], applied_s: float, conditions: Conditions, most_events: int = 1_000_000
    ) -> None:
        self.open = dict.fromkeys(copy for copy in copies if copy.parts)
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
            # Fetcher threads do not run in step with each other.
            self._plan(number * _GOLDEN_RATIO % 1 * copy.limits.retry_s, copy)
        self._plan(applied_s, None)

    def run(self, until_s: float) -> float | None:
        """Return the time of the last copied byte; None if it is later, or needs more events than allowed.

        Args:
            until_s: end of the simulated time.
        """
        while self.open and self._events[0][0] <= until_s and self.events < self._most_events:
            at_s, _, target = heapq.heappop(self._events)
            self.at_s = at_s
            self.events += 1
            if isinstance(target, CopyStream):
                self._continue(target, at_s)
            elif target is None:
                for end in self._ends:
                    self._check_at(end, at_s)
            elif target.check_s == at_s:
                target.check_s = math.inf
                self._check(target, at_s)
        return self.ended_s

    def left_bytes(self, at_s: float) -> float:
        """Return the bytes still to copy at a time that is not before the last event."""
        return sum(part.left_bytes(at_s) for copy in self.open for part in copy.parts)

    def _plan(self, at_s: float, target: CopyStream | QuotaEndpoint | None) -> None:
        heapq.heappush(self._events, (at_s, next(self._order), target))

    def _check_at(self, end: QuotaEndpoint, at_s: float) -> None:
        if end.waiting and at_s < end.check_s:
            end.check_s = at_s
            self._plan(at_s, end)

    def _continue(self, copy: CopyStream, at_s: float) -> None:
        """Count the response that has arrived, and send the next fetch."""
        if copy.arriving_bytes:
            if copy.destination is not None:
                copy.destination.record(at_s, copy.arriving_bytes)
            copy.arriving_bytes = 0.0
            copy.close(at_s)
            if not copy.parts:
                del self.open[copy]
                self.ended_s = None if self.open else at_s
                return
        if copy.destination is None or self._has_room(copy, copy.destination, at_s):
            self._fetch(copy, at_s)

    def _has_room(self, copy: CopyStream, end: QuotaEndpoint, at_s: float) -> bool:
        """Return whether a quota has room; if not, add the copy to those that wait."""
        open_at_s = end.open_at_s(at_s, at_s >= self._applied_s)
        if open_at_s <= at_s:
            return True
        end.waiting.append(copy)
        self._check_at(end, open_at_s + self._gap_s(end))
        return False

    def _gap_s(self, end: QuotaEndpoint) -> float:
        """Return the time until one of the copies that wait for a quota checks it."""
        copy = end.waiting[0]
        if end is copy.leader:
            return _APPEND_INTERVAL_S
        return self._conditions.retry_ratio * copy.limits.retry_s / len(end.waiting)

    def _fetch(self, copy: CopyStream, at_s: float) -> None:
        copy.asked_s = at_s
        if copy.leader is None or self._has_room(copy, copy.leader, at_s):
            self._respond(copy, at_s)

    def _check(self, end: QuotaEndpoint, at_s: float) -> None:
        """Resume one of the copies that wait for a quota if it has room; the others check again soon."""
        open_at_s = end.open_at_s(at_s, at_s >= self._applied_s)
        if open_at_s > at_s:
            self._check_at(end, open_at_s + self._gap_s(end))
            return
        if self._random.random() < _SERVED_FIRST:
            copy = max(end.waiting, key=lambda one: one.served_s)
        else:
            copy = self._random.choices(end.waiting, [one.luck for one in end.waiting])[0]
        end.waiting.remove(copy)
        if end is copy.destination:
            self._fetch(copy, at_s)
        elif at_s - copy.asked_s > copy.limits.wait_s:
            # The wait is over: the fetch has returned without data, and the destination checks its own quota again.
            self._continue(copy, at_s)
        else:
            self._respond(copy, at_s)
        if end.waiting:
            self._check_at(end, at_s + self._gap_s(end))

    def _respond(self, copy: CopyStream, at_s: float) -> None:
        """Send a response, and plan its arrival."""
        bytes_per_s = max(self._conditions.burst_bytes_per_s, *(_FAST_RATIO * end.fastest for end in copy.ends))
        full = min(copy.limits.response_bytes, len(copy.parts) * copy.limits.partition_bytes)
        times = int(bytes_per_s * _TOGETHER_S / full)
        if times > 1:
            applied = at_s >= self._applied_s
            room_bytes = min(end.room_bytes(at_s, applied) for end in copy.ends)
            # Without a rate on either end the room is infinite.
            times = times if math.isinf(room_bytes) else min(times, int(room_bytes / full) + 1)
        sent = copy.respond(at_s, max(1, times), self._conditions.batch_bytes)
        if copy.leader is not None:
            copy.leader.record(at_s, sent)
        if at_s - copy.served_s > _BURST_S:
            copy.pace = copy.luck * math.exp(_PASSING_RATIO * self._random.gauss(0.0, 1.0))
        copy.served_s = at_s
        copy.arriving_bytes = max(sent, 1.0)
        self._plan(at_s + (_ROUND_TRIP_S + sent / bytes_per_s) / copy.pace, copy)
