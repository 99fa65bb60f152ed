from __future__ import annotations

import pytest

from cli.common.output import duration, mb_per_s, print_table
from cli.common.quantities import parse_bytes_per_s, parse_duration_s


@pytest.mark.parametrize(
    ("bytes_per_s", "text"),
    [
        (None, "unknown"),
        (0, "0.000 MB/s"),
        (512_000, "0.512 MB/s"),
        (1_048_576, "1.05 MB/s"),
        (12_345_678, "12.35 MB/s"),
        (1_250_000_000, "1,250 MB/s"),
    ],
)
def test_rates_are_printed_in_millions_of_bytes(bytes_per_s: float | None, text: str) -> None:
    assert mb_per_s(bytes_per_s) == text


@pytest.mark.parametrize(
    ("seconds", "text"),
    # 200 s = 3 x 60 + 20; 7,500 s = 2 x 3,600 + 5 x 60
    [(None, "unknown"), (0, "0 s"), (59.6, "1 min"), (200, "3 min 20 s"), (7500, "2 h 5 min"), (7200, "2 h")],
)
def test_durations_are_printed_in_their_two_largest_units(seconds: float | None, text: str) -> None:
    assert duration(seconds) == text


@pytest.mark.parametrize(
    ("text", "bytes_per_s"),
    [("12500000", 12.5e6), ("12.5MB", 12.5e6), ("12 mb/s", 12e6), ("1MiB", 1_048_576), ("1e6", 1e6), ("2GB/s", 2e9)],
)
def test_rates_are_read_with_and_without_units(text: str, bytes_per_s: float) -> None:
    assert parse_bytes_per_s(text) == bytes_per_s


@pytest.mark.parametrize(
    ("text", "seconds"),
    [("1800", 1800), ("90s", 90), ("30m", 1800), ("1h30m", 5400), ("1h 30m", 5400), ("2d", 172_800), ("1d1h", 90_000)],
)
def test_times_are_read_with_and_without_units(text: str, seconds: float) -> None:
    assert parse_duration_s(text) == seconds


@pytest.mark.parametrize("text", ["", "fast", "12 parsecs", "MB", "-"])
def test_what_is_no_rate_is_refused(text: str) -> None:
    with pytest.raises(ValueError, match="bytes per second"):
        parse_bytes_per_s(text)


@pytest.mark.parametrize("text", ["", "soon", "h", "30 parsecs", "P", "d"])
def test_what_is_no_time_is_refused(text: str) -> None:
    with pytest.raises(ValueError, match="seconds or a time"):
        parse_duration_s(text)


def test_a_table_in_a_pipe_cuts_no_words_and_reads_no_markup(capsys: pytest.CaptureFixture[str]) -> None:
    print_table("", ("what", "found"), [("a", "[bold] " + "word " * 100)])
    message = capsys.readouterr().out
    assert message.count("word") == 100
    assert "[bold]" in message
    assert "\x1b" not in message
