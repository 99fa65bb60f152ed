"""The end of a tick has the columns that its readers know."""

from __future__ import annotations

import re

from cluster.publisher import Sent, tick_end
from schemas.messages import TICK_END


def test_the_end_of_a_tick_says_all_that_its_message_holds() -> None:
    flat = TICK_END
    while "<" in flat:
        flat = re.sub(r"<[^<>]*>", "", flat)
    columns = [column.split(" ")[0] for column in flat.split(", ")]
    end = tick_end(
        Sent({"brokers": 1}, 7, 1),
        started_ms=1,
        ended_ms=2,
        interval_ms=1000,
        rate_window_ms=10_000,
        metadata_age_ms=20_000,
    )
    assert sorted(end) == sorted(columns)
    assert end["metadata_age_ms"] == 20_000
    assert (end["first_offset"], end["lane_messages"], end["messages"]) == (7, 1, {"brokers": 1})
