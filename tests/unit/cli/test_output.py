from __future__ import annotations

import pytest

from cli.common.output import duration, mb_per_s, print_table


@pytest.mark.parametrize(
    ("bytes_per_s", "text"),
    [
        (None, "unknown"),
        (0, "0 MB/s"),
        (12, "12 B/s"),
        (6_144, "6.14 kB/s"),
        (512_000, "512 kB/s"),
        (999_900, "999.9 kB/s"),
        (999_960, "1.00 MB/s"),
        (1_048_576, "1.05 MB/s"),
        (12_345_678, "12.35 MB/s"),
        (123_400_000, "123.4 MB/s"),
        (1_250_000_000, "1,250 MB/s"),
    ],
)
def test_rates_are_printed_in_millions_of_bytes_and_small_ones_in_a_smaller_unit(
    bytes_per_s: float | None, text: str
) -> None:
    assert mb_per_s(bytes_per_s) == text


@pytest.mark.parametrize(
    ("seconds", "text"),
    # 200 s = 3 x 60 + 20; 7,500 s = 2 x 3,600 + 5 x 60
    [(None, "unknown"), (0, "0 s"), (59.6, "1 min"), (200, "3 min 20 s"), (7500, "2 h 5 min"), (7200, "2 h")],
)
def test_durations_are_printed_in_their_two_largest_units(seconds: float | None, text: str) -> None:
    assert duration(seconds) == text


def test_a_table_in_a_pipe_cuts_no_words_and_reads_no_markup(capsys: pytest.CaptureFixture[str]) -> None:
    print_table("", ("what", "found"), [("a", "[bold] " + "word " * 100)])
    message = capsys.readouterr().out
    assert message.count("word") == 100
    assert "[bold]" in message
    assert "\x1b" not in message
