"""Earlier samples: the one that a rate is computed from, and when there is none."""

from __future__ import annotations

from headroom.cluster.collector.samples.history import EarlierSample, SampleHistory

WINDOW_MS = 10_000


def history(rising: int = 1) -> SampleHistory[str]:
    return SampleHistory(WINDOW_MS, interval_ms=1000, rising=rising)


def test_the_first_sample_has_no_earlier_one() -> None:
    assert history().add(1, "bytes", EarlierSample(0, (5,))) is None


def test_until_a_window_has_passed_the_oldest_sample_is_given() -> None:
    samples = history()
    given = [samples.add(1, "bytes", EarlierSample(second * 1000, (second,))) for second in range(10)]
    assert [sample.read_ms for sample in given if sample] == [0] * 9


def test_after_a_window_the_newest_sample_that_is_a_window_old_is_given() -> None:
    samples = history()
    for second in range(25):
        earlier = samples.add(1, "bytes", EarlierSample(second * 1000, (second,)))
    # The last was read at 24,000: a window of 10,000 before is 14,000.
    assert earlier == EarlierSample(14_000, (14,))


def test_samples_are_bounded_by_the_window() -> None:
    samples = history()
    for second in range(500):
        samples.add(1, "bytes", EarlierSample(second * 1000, (second,)))
    # 489,000 (the earlier one) to 499,000.
    assert len(samples) == 11


def test_a_counter_that_falls_starts_again() -> None:
    samples = history()
    samples.add(1, "bytes", EarlierSample(0, (100,)))
    assert samples.add(1, "bytes", EarlierSample(1000, (7,))) is None
    assert samples.add(1, "bytes", EarlierSample(2000, (9,))) == EarlierSample(1000, (7,))


def test_only_values_declared_as_rising_reset_the_history() -> None:
    samples = history(rising=1)
    samples.add(1, "log", EarlierSample(0, (100, 50)))
    assert samples.add(1, "log", EarlierSample(1000, (100, 20))) == EarlierSample(0, (100, 50))


def test_a_sample_of_long_ago_gives_no_rate() -> None:
    samples = history()
    samples.add(1, "bytes", EarlierSample(0, (1,)))
    # 30,000 is three windows: the last age that counts.
    assert samples.add(1, "bytes", EarlierSample(30_000, (2,))) == EarlierSample(0, (1,))
    assert samples.add(1, "bytes", EarlierSample(60_001, (3,))) is None


def test_brokers_keep_apart_and_are_forgotten_apart() -> None:
    samples = history()
    samples.add(1, "bytes", EarlierSample(0, (1,)))
    samples.add(2, "bytes", EarlierSample(0, (1,)))
    samples.forget(1)
    assert samples.add(1, "bytes", EarlierSample(1000, (2,))) is None
    assert samples.add(2, "bytes", EarlierSample(1000, (2,))) == EarlierSample(0, (1,))


def test_what_a_broker_no_longer_has_is_dropped() -> None:
    samples = history()
    samples.add(1, "a", EarlierSample(0, (1,)))
    samples.add(1, "b", EarlierSample(0, (1,)))
    samples.keep_only(1, {"b"})
    samples.keep_brokers({1})
    assert len(samples) == 1
    samples.keep_brokers({2})
    assert len(samples) == 0


def test_samples_move_with_the_clock() -> None:
    samples = history()
    for second in (100, 101):
        samples.add(1, "bytes", EarlierSample(second * 1000, (second,)))
    samples.shift(-60_000)
    assert samples.add(1, "bytes", EarlierSample(42_000, (102,))) == EarlierSample(40_000, (100,))
