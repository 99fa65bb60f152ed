"""Division of copies into a number of batches, so that no broker is loaded unevenly."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Iterator, Sequence
from enum import Enum
from itertools import count
from math import ceil, fsum, inf

from planning.reassignments.batches.copy_need import CopyNeed
from schemas.keys import BrokerRole

# Share of the number of copies in the load of a batch: enough to use every batch where no broker is in two copies.
_COUNT_SHARE = 0.5

_Roles = tuple[int, ...]
_Rates = tuple[float, ...]


class Packing(str, Enum):
    """Rule by which a copy is put into a batch.

    Attributes:
        EVEN: where its brokers have least to do, by rates and bytes.
        EVEN_RATES: the same by rates alone.
        FIRST_FIT: into the first batch with room, which often needs fewer batches.
    """

    EVEN = "even"
    EVEN_RATES = "even_rates"
    FIRST_FIT = "first_fit"


class Packer:
    """Divides copies into batches.

    Args:
        needs: copies, in the order of the names of their partitions.
    """

    def __init__(self, needs: Sequence[CopyNeed]) -> None:
        self._needs = needs
        numbering: Iterator[int] = count()
        # Brokers and roles as numbers, because these loops run over every copy for every number of batches.
        self._numbers: dict[BrokerRole, int] = defaultdict(lambda: next(numbering))
        self._roles = [tuple(self._numbers[br] for br in need.required_bytes_per_s) for need in needs]
        self._rates = [tuple(need.required_bytes_per_s.values()) for need in needs]
        sizes = [tuple(need.copied_bytes.get(br, 0) for br in need.required_bytes_per_s) for need in needs]
        self._most_bytes_per_s = self._largest_sum(self._rates)
        by_rate = self._shares(self._rates, self._most_bytes_per_s)
        by_size = self._shares(sizes, self._largest_sum(sizes))
        both = [tuple(map(sum, zip(*own, strict=True))) for own in zip(by_rate, by_size, strict=True)]
        self._weights = {Packing.EVEN: both, Packing.EVEN_RATES: by_rate, Packing.FIRST_FIT: by_rate}

    def _largest_sum(self, amounts: Iterable[Iterable[float]]) -> float:
        """Return the sum of the broker and role that has most."""
        parts: dict[int, list[float]] = defaultdict(list)
        for roles, own in zip(self._roles, amounts, strict=True):
            for role, amount in zip(roles, own, strict=True):
                parts[role].append(amount)
        return max(map(fsum, parts.values()), default=0.0)

    @staticmethod
    def _shares(amounts: Iterable[tuple[float, ...]], most: float) -> list[tuple[float, ...]]:
        return [tuple(amount / most if most else 0.0 for amount in own) for own in amounts]

    def fewest(self, limit_bytes_per_s: float) -> int:
        """Return the number of batches below which no division fits a limit."""
        return max(1, ceil(self._most_bytes_per_s / limit_bytes_per_s))

    def divide(self, batches: int, packing: Packing, limit_bytes_per_s: float) -> list[list[CopyNeed]] | None:
        """Return the copies of each batch, without empty batches; None if they do not fit the limit.

        Args:
            batches: largest number of batches.
            packing: rule for each copy.
            limit_bytes_per_s: largest required rate of a broker and role in one batch; infinity if there is no limit.
        """
        room = _Room(len(self._numbers), batches, limit_bytes_per_s)
        weights = self._weights[packing]
        loads = [[0.0] * batches for _ in self._numbers]
        counts = [0.0] * batches
        members: list[list[CopyNeed]] = [[] for _ in range(batches)]
        for at in sorted(range(len(self._needs)), key=lambda at: -max(weights[at])):
            roles, rates = self._roles[at], self._rates[at]
            if packing is Packing.FIRST_FIT:
                batch = room.first(range(batches), roles, rates)
            else:
                scores = list(map(max, counts, *(loads[role] for role in roles)))
                batch = scores.index(min(scores))
                if not room.has(batch, roles, rates):
                    batch = room.first(sorted(range(batches), key=scores.__getitem__), roles, rates)
            if batch is None:
                return None
            members[batch].append(self._needs[at])
            counts[batch] += _COUNT_SHARE / len(self._needs)
            room.take(batch, roles, rates)
            for role, weight in zip(roles, weights[at], strict=True):
                loads[role][batch] += weight
        return [own for own in members if own]


class _Room:
    """Rate that is left of a limit, for each broker and role in each batch."""

    def __init__(self, brokers_and_roles: int, batches: int, limit_bytes_per_s: float) -> None:
        self._limit = limit_bytes_per_s
        self._used = [[0.0] * batches for _ in range(brokers_and_roles)]

    def has(self, batch: int, roles: _Roles, rates: _Rates) -> bool:
        used, limit = self._used, self._limit
        return limit == inf or all(used[role][batch] + rate <= limit for role, rate in zip(roles, rates, strict=True))

    def first(self, batches: Iterable[int], roles: _Roles, rates: _Rates) -> int | None:
        return next((batch for batch in batches if self.has(batch, roles, rates)), None)

    def take(self, batch: int, roles: _Roles, rates: _Rates) -> None:
        if self._limit < inf:
            for role, rate in zip(roles, rates, strict=True):
                self._used[role][batch] += rate
