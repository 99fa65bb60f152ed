"""The promised finish as people read it."""

from __future__ import annotations

from typing import Any

import pytest

from headroom.alerts.text.finish import finish_text


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
