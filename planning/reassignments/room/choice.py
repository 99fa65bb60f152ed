"""How many of some new replicas a broker puts into each of its log directories, where a plan names none."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import dataclass


@dataclass(frozen=True)
class DirectoryShare:
    """Number of new replicas that one directory gets.

    Attributes:
        least: number that it gets in any case.
        most: number that it may get.
    """

    least: int
    most: int


def directory_shares(logs: Mapping[str, int], copies: int) -> dict[str, DirectoryShare]:
    """Return how many new replicas each directory gets: each goes to the one that has the fewest logs by then.

    Of directories with equally many logs the broker takes any, so numbers may differ by one. Which replicas these are
    depends on the order in which the broker makes them, and that is unknown.

    Args:
        logs: number of logs in each directory before.
        copies: number of new replicas.

    Source: Kafka 4.3.1, ``LogManager.nextLogDirs``.
    """
    shares = {}
    for path, own in logs.items():
        others = [number for other, number in logs.items() if other != path]
        # Where it wins no tie, all others first get one log more than it has by then.
        shares[path] = DirectoryShare(_number(own, others, copies, 0), _number(own, others, copies, 1))
    return shares


def _number(own: int, others: Collection[int], copies: int, lead: int) -> int:
    """Return the largest number of replicas that a directory gets before all others have caught up with it."""
    low, high = 0, copies
    while low < high:
        middle = (low + high + 1) // 2
        level = own + middle - lead
        if middle + sum(max(0, level - number) for number in others) <= copies:
            low = middle
        else:
            high = middle - 1
    return low
