"""The gate of a query's batches: how long the one within has been there."""

from __future__ import annotations

from typing import Any

import pytest

from streaming.jobs.gate import Gate


def test_it_tells_how_long_a_batch_has_been_within_and_none_when_none_is() -> None:
    gate, seen = Gate(), []

    def batch(rows: Any, batch_id: int) -> None:
        seen.append(gate.batch_s)
        raise ValueError(batch_id)

    assert gate.batch_s is None
    with pytest.raises(ValueError, match="7"):
        gate.through(batch)(None, 7)  # type: ignore[arg-type]
    assert seen[0] is not None
    assert seen[0] >= 0
    assert gate.batch_s is None
