"""What the keys of the alert partition's records show: whether something moves, and how many records wait."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from headroom.cluster.collector.activity import RecordedActivity
from headroom.cluster.collector.rows.encoder import encode_end, encode_rows

MOVES_KEY, BROKERS_KEY = (
    next(m.key for m in encode_rows("c1", 1000, {"moves": [{"topic": "moves"}], "brokers": []}) if m.kind == kind)
    for kind in ("moves", "brokers")
)
END_KEY = encode_end("c1", 1000, 2, {}).key


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


def test_what_may_have_been_missed_is_unknown() -> None:
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
