"""What the keys of the alert partition's records show: whether something moves, and how many records wait."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from kafka import TopicPartition

from headroom.cluster.collector import activity
from headroom.cluster.collector.activity import AlertPartitionActivity, RecordedActivity
from headroom.cluster.collector.rows.encoder import encode_end, encode_rows
from headroom.schemas.config import ClusterSettings, CollectSettings, Settings

MOVES_KEY, BROKERS_KEY = (
    next(m.key for m in encode_rows("c1", 1000, {"moves": [{"topic": "moves"}], "brokers": []}) if m.kind == kind)
    for kind in ("moves", "brokers")
)
END_KEY = encode_end("c1", 1000, 2, {}).key
PARTITION = TopicPartition("ticks", 0)


class Seconds:
    """A clock that is set."""

    now_s = 0.0

    def __call__(self) -> float:
        return self.now_s


def test_it_is_quiet_from_the_first_tick_on_if_that_has_no_move() -> None:
    activity = RecordedActivity(Seconds())
    assert not activity.is_quiet()
    activity.add(0, BROKERS_KEY)
    assert not activity.is_quiet()
    activity.add(1, END_KEY)
    assert activity.is_quiet()


def test_it_is_quiet_again_a_minute_after_the_last_move() -> None:
    seconds = Seconds()
    activity = RecordedActivity(seconds)
    for offset, key in enumerate((BROKERS_KEY, MOVES_KEY, END_KEY)):
        activity.add(offset, key)
    for seconds.now_s, quiet in ((0.0, False), (59.0, False), (60.0, True)):
        assert activity.is_quiet() is quiet
    activity.add(3, MOVES_KEY)
    assert not activity.is_quiet()


def test_activity_is_unknown_after_records_may_have_been_missed() -> None:
    activity = RecordedActivity(Seconds())
    activity.add(0, END_KEY)
    activity.forget()
    assert (activity.is_quiet(), activity.records_from(0)) == (False, None)


@given(st.lists(st.sampled_from([BROKERS_KEY, MOVES_KEY, END_KEY]), min_size=1), st.integers(0, 1000))
def test_records_are_counted_from_any_offset_on(keys: list[bytes], offset: int) -> None:
    activity = RecordedActivity(Seconds())
    for number, key in enumerate(keys):
        activity.add(500 + number, key)
    # Records 500 to 500 + n - 1 were read.
    assert activity.records_from(offset) == max(0, 500 + len(keys) - offset)


@pytest.mark.parametrize("key", [None, b"", b"{", b"[1]", b'{"kind": ["moves"]}', b"\xff\xfe", b"5"])
def test_a_foreign_key_is_no_move_and_no_error(key: bytes | None) -> None:
    activity = RecordedActivity(Seconds())
    activity.add(0, END_KEY)
    activity.add(1, key)
    assert activity.is_quiet()


def test_a_key_with_just_the_kind_counts_too() -> None:
    activity = RecordedActivity(Seconds())
    activity.add(0, b"tick_end")
    assert activity.is_quiet()
    activity.add(1, b"moves")
    assert not activity.is_quiet()


class Partition:
    """A consumer that gets the given records, one per poll, and then none; ``RuntimeError`` in their place is raised.

    Attributes:
        polls: number of polls.
        closed: whether it was closed.
    """

    def __init__(self, seconds: Seconds, *records: Any) -> None:
        self._seconds = seconds
        self._records = list(records)
        self.polls, self.closed = 0, False

    def poll(self, timeout_ms: int) -> dict[Any, list[Any]]:
        self.polls += 1
        self._seconds.now_s += timeout_ms / 1000
        record = self._records.pop(0) if self._records else None
        if isinstance(record, Exception):
            raise record
        return {} if record is None else {PARTITION: [record]}

    def close(self) -> None:
        self.closed = True


def followed(
    monkeypatch: pytest.MonkeyPatch, seconds: Seconds, consumers: list[Partition], interval_s: float = 1.0
) -> list[tuple[bool, int | None]]:
    """Follow the alert partition by these consumers, and return what is known after each."""
    settings = Settings(
        cluster=ClusterSettings(bootstrap_servers="b:1"), collect=CollectSettings(interval_s=interval_s)
    )
    monkeypatch.setattr(activity, "time", SimpleNamespace(monotonic=seconds))
    following, known, waiting = AlertPartitionActivity(settings), [], iter(consumers)
    monkeypatch.setattr(activity, "alert_partition_consumer", lambda *_, **__: (next(waiting), PARTITION))

    def wait(timeout_s: float) -> bool:
        known.append((following.is_quiet(), following.records_from(0)))
        if len(known) == len(consumers):
            following.stop()
        return False

    monkeypatch.setattr(following._ended, "wait", wait)
    following._run()
    return known


@pytest.mark.parametrize(("interval_s", "silence_s"), [(1.0, 120), (60.0, 300)])
def test_after_a_silence_nothing_is_known_and_another_consumer_follows(
    monkeypatch: pytest.MonkeyPatch, interval_s: float, silence_s: int
) -> None:
    seconds = Seconds()
    silent, next_one = Partition(seconds, SimpleNamespace(offset=7, key=END_KEY)), Partition(seconds)
    assert followed(monkeypatch, seconds, [silent, next_one], interval_s) == [(False, None)] * 2
    # A poll takes a second. The first one had a record.
    assert (silent.polls, silent.closed, next_one.closed) == (1 + silence_s, True, True)


@pytest.mark.parametrize("error", [RuntimeError("loop closed"), AssertionError()])
def test_an_unexpected_error_ends_no_following(monkeypatch: pytest.MonkeyPatch, error: Exception) -> None:
    seconds = Seconds()
    failing = Partition(seconds, SimpleNamespace(offset=7, key=END_KEY), error)
    assert followed(monkeypatch, seconds, [failing, Partition(seconds)]) == [(False, None)] * 2
    assert failing.closed
