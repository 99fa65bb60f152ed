"""Durations as people read them, and ranges of them."""

from __future__ import annotations

from typing import Any

import pytest

from alerts.text.formatting import finish_text, span


@pytest.mark.parametrize(
    ("low_s", "high_s", "text"),
    [
        (50.2, 59.4, "50 to 59 s"),
        (50.0, 70.0, "50 s to 1 min 10 s"),
        (3600.0, 5400.0, "1 h 0 min to 1 h 30 min"),
        # What is rounded to the same is no range, and what is rounded to a minute is not 60 s.
        (50.2, 50.4, "50 s"),
        (50.0, 59.7, "50 s to 1 min 0 s"),
        (50.0, None, "50 s or more"),
        (None, 60.0, "at most 1 min 0 s"),
        (None, None, "unknown"),
    ],
)
def test_a_range_names_both_ends(low_s: float | None, high_s: float | None, text: str) -> None:
    assert span(low_s, high_s) == text


@pytest.mark.parametrize(
    ("advice", "text"),
    [
        ({"finish_s": 55.0, "finish_low_s": 50.0, "finish_high_s": 58.0}, "50 to 58 s"),
        # Events of an older version have the middle alone.
        ({"finish_s": 55.0}, "about 55 s"),
        ({"finish_s": None, "finish_low_s": None, "finish_high_s": None}, None),
    ],
)
def test_a_finish_is_a_range_where_the_alert_has_one(advice: dict[str, Any], text: str | None) -> None:
    assert finish_text(advice) == text
