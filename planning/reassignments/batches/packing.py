"""Division of copies into a number of batches, so that no broker is loaded unevenly."""

from __future__ import annotations

from collections.abc import Iterable
from enum import Enum
from math import ceil, inf

import numpy as np

from headroom.planning.reassignments.batches.copy_need import CopyNeeds, Floats, Ints

# Share of the number of copies in the load of a batch: enough to use every batch where no broker is in two copies.
_COUNT_SHARE = 0.5
# Of more copies, all but the heaviest and the lightest are put into batches a block at a time. The lightest ones then
# even out what blocks, whose copies do not see each other, have left uneven.
MANY = 20_000
_HEAVIEST, _LIGHTEST, _BLOCKS = 1_000, 4_000, 200

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
        many: number of copies above which they are put into batches in blocks, and the first fit is not tried.
    """

    def __init__(self, needs: CopyNeeds, many: int = MANY) -> None:
        self._count = len(needs)
        self._many = many
        # The entries of a copy as a row. Rows are filled up with a role that no copy has.
        rates = np.where(needs.limits, needs.most_bytes_per_s, 0.0)
        sizes = needs.copied_bytes.astype(np.float64)
        self._most_bytes_per_s, most_bytes = (self._largest_sum(needs, amounts) for amounts in (rates, sizes))
        by_rate, by_size = self._shares(rates, self._most_bytes_per_s), self._shares(sizes, most_bytes)
        at = needs.copy, np.arange(len(needs.copy)) - np.searchsorted(needs.copy, needs.copy)
        shape = self._count, int(at[1].max(initial=0)) + 1
        self._roles = np.full(shape, len(needs.roles), np.int64)
        # What limits nothing takes no room.
        self._roles[at] = np.where(needs.limits, needs.role, len(needs.roles))
        self._besides = np.append(needs.besides_bytes_per_s, 0.0)
        self._rates = np.zeros(shape)
        self._rates[at] = rates
        rate_shares, shares = np.zeros(shape), np.zeros(shape)
        rate_shares[at], shares[at] = by_rate, by_rate + by_size
        self._weights = {Packing.EVEN: shares, Packing.EVEN_RATES: rate_shares, Packing.FIRST_FIT: rate_shares}
        # Copies, the heaviest first.
        self._orders = {
            packing: np.argsort(-own.max(axis=1, initial=0.0), kind="stable") for packing, own in self._weights.items()
        }

    @staticmethod
    def _largest_sum(needs: CopyNeeds, amounts: Floats) -> float:
        """Return the sum of the broker and role that has most."""
        return float(np.bincount(needs.role, amounts).max(initial=0.0))

    @staticmethod
    def _shares(amounts: Floats, most: float) -> Floats:
        return amounts / most if most else np.zeros(len(amounts))

    def fewest(self, limit_bytes_per_s: float) -> int:
        """Return the number of batches below which no division fits a limit."""
        return max(1, ceil(self._most_bytes_per_s / limit_bytes_per_s))

    def divide(self, batches: int, packing: Packing, limit_bytes_per_s: float) -> Ints | None:
        """Return the number of the batch of each copy; None if they do not fit the limit.

        Args:
            batches: largest number of batches.
            packing: rule for each copy.
            limit_bytes_per_s: largest required rate of a broker and role in one batch; infinity if there is no limit.
        """
        weights, order = self._weights[packing], self._orders[packing]
        filling = _Filling(self._roles, self._rates, weights, self._besides, batches, limit_bytes_per_s)
        if self._count <= self._many:
            fits = filling.add_each(order, packing is Packing.FIRST_FIT)
            return filling.batch if fits else None
        if packing is Packing.FIRST_FIT:
            return None
        heaviest, middle, lightest = np.split(order, [_HEAVIEST, max(_HEAVIEST, self._count - _LIGHTEST)])
        blocks = np.array_split(middle, min(_BLOCKS, len(middle))) if len(middle) else ()
        fits = filling.add_each(heaviest) and all(filling.add_block(block) for block in blocks)
        return filling.batch if fits and filling.add_each(lightest) else None


class _Filling:
    """Batches that are being filled with copies.

    Args:
        roles: brokers and roles of each copy, (copies, entries).
        rates: required rates there, bytes per second.
        weights: shares of the whole load there.
        besides: rate at each broker and role that counts in every batch, bytes per second.
        batches: number of batches.
        limit_bytes_per_s: largest required rate of a broker and role in one batch.

    Attributes:
        batch: number of the batch of each copy.
    """

    def __init__(
        self, roles: Ints, rates: Floats, weights: Floats, besides: Floats, batches: int, limit_bytes_per_s: float
    ) -> None:
        self._roles, self._rates, self._weights = roles, rates, weights
        self._batches = batches
        self._limit = limit_bytes_per_s
        self._loads = np.zeros((len(besides), batches))
        self._used = np.repeat(besides[:, None], batches, axis=1)
        self._counts = np.zeros(batches)
        self.batch = np.zeros(len(roles), np.int64)

    def add_each(self, order: Ints, first_fit: bool = False) -> bool:
        """Put copies one by one where their brokers have least to do, and return whether all have found room.

        Args:
            order: copies, the heaviest first.
            first_fit: whether to put them into the first batch with room instead.
        """
        # Lists, because these loops run over every copy.
        room, loads, counts = _Room(self._used, self._limit), self._loads.tolist(), self._counts.tolist()
        share = _COUNT_SHARE / len(self._roles) if len(self._roles) else 0.0
        chosen = []
        rows = (rows[order].tolist() for rows in (self._roles, self._rates, self._weights))
        for roles, rates, weights in zip(*rows, strict=True):
            if first_fit:
                batch = room.first(range(self._batches), roles, rates)
            else:
                scores = list(map(max, counts, *(loads[role] for role in roles)))
                batch = scores.index(min(scores))
                if not room.has(batch, roles, rates):
                    batch = room.first(sorted(range(self._batches), key=scores.__getitem__), roles, rates)
            if batch is None:
                return False
            chosen.append(batch)
            counts[batch] += share
            room.take(batch, roles, rates)
            for role, weight in zip(roles, weights, strict=True):
                loads[role][batch] += weight
        self.batch[order] = chosen
        self._loads, self._used, self._counts = np.array(loads), room.required_rates, np.array(counts)
        return True

    def add_block(self, order: Ints) -> bool:
        """Put copies of much the same weight into batches at once, and return whether all have found room.

        Copies that share their heaviest broker and role get different batches in turn, the least loaded one first. If a
        batch gets too full by that, the copies are put one by one.
        """
        roles, rates, weights = self._roles[order], self._rates[order], self._weights[order]
        every = np.arange(len(order))
        scores = np.maximum(self._loads[roles].max(axis=1), self._counts)
        turn = _turns(roles[every, weights.argmax(axis=1)]) % self._batches
        batch = np.argsort(scores, axis=1, kind="stable")[every, turn]
        key = (roles * self._batches + batch[:, None]).ravel()
        used = self._used + np.bincount(key, rates.ravel(), self._used.size).reshape(self._used.shape)
        if used[roles, batch[:, None]].max() > self._limit:
            return self.add_each(order)
        self.batch[order] = batch
        self._used = used
        self._loads += np.bincount(key, weights.ravel(), self._loads.size).reshape(self._loads.shape)
        self._counts += _COUNT_SHARE / len(self._roles) * np.bincount(batch, minlength=self._batches)
        return True


def _turns(keys: Ints) -> Ints:
    """Return for each key how many equal ones come before it."""
    order = np.argsort(keys, kind="stable")
    ordered = keys[order]
    turns = np.empty(len(keys), np.int64)
    turns[order] = np.arange(len(keys)) - np.searchsorted(ordered, ordered)
    return turns


class _Room:
    """Rate that is left of a limit, for each broker and role in each batch."""

    def __init__(self, used: Floats, limit_bytes_per_s: float) -> None:
        self._limit = limit_bytes_per_s
        self._used = used.tolist()

    @property
    def required_rates(self) -> Floats:
        """Return the required rate by broker and role, and batch."""
        return np.array(self._used)

    def has(self, batch: int, roles: _Roles, rates: _Rates) -> bool:
        used, limit = self._used, self._limit
        return limit == inf or all(used[role][batch] + rate <= limit for role, rate in zip(roles, rates, strict=True))

    def first(self, batches: Iterable[int], roles: _Roles, rates: _Rates) -> int | None:
        return next((batch for batch in batches if self.has(batch, roles, rates)), None)

    def take(self, batch: int, roles: _Roles, rates: _Rates) -> None:
        if self._limit < inf:
            for role, rate in zip(roles, rates, strict=True):
                self._used[role][batch] += rate
