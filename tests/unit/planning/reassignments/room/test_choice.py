"""Shares of directories, beside brokers that choose the one with the fewest logs, and any one of equals."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from random import Random

from hypothesis import given
from hypothesis import strategies as st

from headroom.planning.reassignments.room.choice import DirectoryShare, directory_shares

LOGS = st.dictionaries(st.sampled_from("abcde"), st.integers(0, 6), min_size=1)


def chosen(logs: Mapping[str, int], copies: int, tie: Callable[[list[str]], str]) -> dict[str, int]:
    """Return the new replicas of each directory: ``LogManager.nextLogDirs`` for one after the other."""
    now = dict(logs)
    for _ in range(copies):
        fewest = min(now.values())
        now[tie([path for path, number in now.items() if number == fewest])] += 1
    return {path: number - logs[path] for path, number in now.items()}


@given(LOGS, st.integers(0, 30), st.randoms(use_true_random=False))
def test_no_choice_is_beyond_the_shares(logs: dict[str, int], copies: int, chance: Random) -> None:
    shares = directory_shares(logs, copies)
    for path, number in chosen(logs, copies, chance.choice).items():
        assert shares[path].least <= number <= shares[path].most


@given(LOGS, st.integers(0, 30), st.data())
def test_both_ends_are_possible(logs: dict[str, int], copies: int, data: st.DataObject) -> None:
    path = data.draw(st.sampled_from(sorted(logs)))
    first = chosen(logs, copies, lambda tied: path if path in tied else tied[0])
    last = chosen(logs, copies, lambda tied: next((other for other in tied if other != path), path))
    assert directory_shares(logs, copies)[path] == DirectoryShare(last[path], first[path])


def test_directories_get_what_evens_them_out() -> None:
    # b gets 10 until both have 200, and then each one of two, or b the odd one.
    assert directory_shares({"a": 200, "b": 190}, 12) == {"a": DirectoryShare(1, 1), "b": DirectoryShare(11, 11)}
    assert directory_shares({"a": 200, "b": 190}, 11) == {"a": DirectoryShare(0, 1), "b": DirectoryShare(10, 11)}
