"""Arithmetic of the group ``proposals``."""

from __future__ import annotations

from typing import Any

import pytest

from benchmarks.groups.proposals.arithmetic import batch_times, figures, load_errors, promise_figures


def broker(number: int, network_in: float, network_out: float, disk: float) -> dict[str, Any]:
    loads = {"network_in": network_in, "network_out": network_out, "disk": disk}
    return {"broker": number, "loads": {name: {"load": load} for name, load in loads.items()}}


def test_writes_since_the_proposal_are_part_of_the_promised_disk() -> None:
    promised = [broker(1, 10.0, 0.0, 1000.0), broker(2, 10.0, 100.0, 1000.0)]
    found = [broker(2, 11.0, 90.0, 1200.0), broker(1, 10.0, 3.0, 1050.0)]
    errors = load_errors(
        {"read_ms": 1_000, "after": {"brokers": promised}},
        {"read_ms": 21_000, "brokers": found},
    )
    # 1000 and 20 s of 10 bytes/s. Broker 1 was promised to send nothing, so what it sends has no ratio.
    assert errors == pytest.approx(
        {
            "network_in of broker 1": 0.0,
            "network_in of broker 2": 0.1,
            "network_out of broker 2": 0.1,
            "disk of broker 1": 0.125,
            "disk of broker 2": 0.0,
        }
    )


def test_only_batches_that_copy_have_a_time() -> None:
    batches = [{"kind": "elections", "duration_s": 0.0}, {"kind": "copies", "duration_s": 20.0}]
    assert batch_times(batches, [0.3, 25.0]) == [(20.0, 25.0)]


def test_figures_count_copies_only_of_proposals_that_may_only_elect() -> None:
    elected = {"elections_only": True, "copied_replicas": 0, "load_errors": {"a": 0.02}, "batch_times": []}
    copied = {"elections_only": False, "copied_replicas": 5, "load_errors": {"a": 0.04}, "batch_times": [[20.0, 25.0]]}
    found = {figure.name: (figure.value, figure.n) for figure in figures([elected, copied])}
    assert found == {
        "balance_load_error_ratio_median": (pytest.approx(0.03), 2),
        "balance_load_error_ratio_max": (0.04, 2),
        "balance_duration_error_ratio_median": (0.25, 1),
        "balance_duration_error_ratio_max": (0.25, 1),
        "balance_elections_copied_replicas": (0, 1),
        "balance_proposals": (2, 2),
    }
    assert figures([]) == promise_figures([]) == []
    (differing,) = promise_figures([{"differences": ["a", "b"]}, {"differences": []}])
    assert (differing.name, differing.value, differing.n) == ("balance_promise_differs", 2, 2)
