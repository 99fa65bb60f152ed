"""Earlier samples of many values: the same rules as for few."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from headroom.cluster.collector.samples.history import EarlierSample, SampleHistory
from headroom.cluster.collector.samples.sample_columns import SampleColumns, Samples
from headroom.cluster.model import Reading

WINDOW_MS = 10_000


def tracks() -> SampleColumns[str]:
    return SampleColumns(WINDOW_MS, interval_ms=1000)


def readings(second: int, **values: int) -> dict[str, Reading]:
    return {key: Reading(second * 1000, value) for key, value in values.items()}


def earlier(samples: Samples[str], key: str) -> EarlierSample | None:
    read = samples.of(key)
    assert read is not None
    return read[1]


def test_the_first_sample_has_no_earlier_one() -> None:
    samples = tracks().add(1, readings(0, a=5))
    assert samples.of("a") == (EarlierSample(0, (5,)), None)
    assert samples.columns() == ([0], [5], [None], [None])


def test_a_key_that_was_not_read_has_no_sample() -> None:
    assert tracks().add(1, readings(0, a=5)).of("b") is None


def test_the_earlier_sample_is_the_newest_that_is_a_window_old_and_before_that_the_oldest() -> None:
    kept = tracks()
    given = [earlier(kept.add(1, readings(second, a=second)), "a") for second in range(25)]
    assert given[9] == EarlierSample(0, (0,))
    assert given[24] == EarlierSample(14_000, (14,))


def test_a_value_that_fell_was_reset_and_restarts_alone() -> None:
    kept = tracks()
    kept.add(1, readings(0, a=5, b=5))
    fallen = kept.add(1, readings(1, a=4, b=6))
    assert (earlier(fallen, "a"), earlier(fallen, "b")) == (None, EarlierSample(0, (5,)))
    assert fallen.columns() == ([1000, 1000], [4, 6], [None, 0], [None, 5])
    after = kept.add(1, readings(2, a=9, b=9))
    assert (earlier(after, "a"), earlier(after, "b")) == (EarlierSample(1000, (4,)), EarlierSample(0, (5,)))


def test_a_key_that_was_missing_restarts_when_it_comes_back() -> None:
    kept = tracks()
    kept.add(1, readings(0, a=1, b=1))
    kept.add(1, readings(1, b=2))
    back = kept.add(1, readings(2, a=3, b=3))
    assert (earlier(back, "a"), earlier(back, "b")) == (None, EarlierSample(0, (1,)))


def test_keys_in_another_order_are_the_same_keys() -> None:
    kept = tracks()
    kept.add(1, readings(0, a=1, b=20))
    samples = kept.add(1, readings(1, b=21, a=2, c=0))
    assert [earlier(samples, key) for key in "abc"] == [EarlierSample(0, (1,)), EarlierSample(0, (20,)), None]


def test_a_gap_of_many_windows_gives_no_earlier_sample() -> None:
    kept = tracks()
    kept.add(1, readings(0, a=1))
    assert earlier(kept.add(1, readings(31, a=2)), "a") is None


def test_brokers_and_keys_are_forgotten() -> None:
    kept = tracks()
    for broker in (1, 2, 3):
        kept.add(broker, readings(0, a=1, b=1))
    kept.forget(1)
    kept.keep_brokers([1, 2])
    kept.forget_keys(["a"])
    assert len(kept) == 2
    samples = kept.add(2, readings(1, a=2, b=2))
    assert (earlier(samples, "a"), earlier(samples, "b")) == (None, EarlierSample(0, (1,)))
    assert earlier(kept.add(1, readings(1, a=2)), "a") is None
    assert kept.samples(3, "a") == []


def test_the_samples_of_a_key_are_those_since_it_was_reset() -> None:
    kept = tracks()
    for second, value in enumerate((7, 1, 2)):
        kept.add(1, readings(second, a=value, b=second))
    assert kept.samples(1, "a") == [EarlierSample(1000, (1,)), EarlierSample(2000, (2,))]
    assert len(kept.samples(1, "b")) == 3


def test_samples_move_with_the_clock_and_missing_ones_stay_missing() -> None:
    kept = tracks()
    kept.add(1, readings(100, a=1))
    kept.add(1, readings(101, a=2, b=5))
    kept.shift(-60_000)
    latest = kept.latest(1)
    assert latest.of("a") == (EarlierSample(41_000, (2,)), EarlierSample(40_000, (1,)))
    assert latest.of("b") == (EarlierSample(41_000, (5,)), None)
    later = kept.add(1, readings(42, a=3, b=6))
    assert (earlier(later, "a"), earlier(later, "b")) == (EarlierSample(40_000, (1,)), EarlierSample(41_000, (5,)))


def test_samples_that_move_by_a_window_stay_within_it() -> None:
    kept = tracks()
    for second in range(100, 115):
        kept.add(1, readings(second, a=second))
    kept.shift(3_600_000)
    # By the new clock 115 is 3,715; a window of 10 s before it is what was read at 105.
    assert earlier(kept.add(1, readings(3715, a=115)), "a") == EarlierSample(3_705_000, (105,))


@given(st.lists(st.dictionaries(st.sampled_from("abc"), st.integers(0, 9), min_size=1), min_size=1, max_size=30))
def test_many_values_have_the_earlier_samples_of_few(said: list[dict[str, int]]) -> None:
    many, few = tracks(), SampleHistory[str](WINDOW_MS, interval_ms=1000)
    for second, values in enumerate(said):
        samples = many.add(1, readings(second, **values))
        few.keep_only(1, values)
        for key, value in values.items():
            assert earlier(samples, key) == few.add(1, key, EarlierSample(second * 1000, (value,)))
