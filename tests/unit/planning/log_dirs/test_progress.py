"""What has become of the directories of a plan."""

from __future__ import annotations

import pytest

from headroom.planning.log_dirs.broker_logs import BrokerLogs
from headroom.planning.log_dirs.progress import DirectoryProgress, DirectoryState, directory_progress
from tests.unit.builders.log_dirs import MB, ORDERS, A, B, logs, plan

TO_B = plan(("orders", 0, (1, 2), (B, "any")))
C = "/disk/c"


@pytest.mark.parametrize(
    ("found", "state", "current", "remaining"),
    [
        (logs(1, {ORDERS: (B, 9 * MB)}), DirectoryState.DONE, B, 0),
        (logs(1, {ORDERS: (A, 9 * MB)}, {ORDERS: (B, 2 * MB)}), DirectoryState.MOVING, A, 7 * MB),
        (logs(1, {ORDERS: (A, 9 * MB)}), DirectoryState.ELSEWHERE, A, None),
        (logs(1, {ORDERS: (A, 9 * MB)}, {ORDERS: (C, 2 * MB)}), DirectoryState.ELSEWHERE, A, None),
        # It is where the plan wants it, but on its way out.
        (logs(1, {ORDERS: (B, 9 * MB)}, {ORDERS: (A, 2 * MB)}), DirectoryState.ELSEWHERE, B, None),
        (logs(1, {}), DirectoryState.ABSENT, None, None),
    ],
)
def test_each_state(found: BrokerLogs, state: DirectoryState, current: str | None, remaining: int | None) -> None:
    (progress,) = directory_progress(TO_B, {1: found, 2: logs(2, {ORDERS: (A, 9 * MB)})})
    assert (progress.state, progress.current, progress.remaining_bytes) == (state, current, remaining)


def test_a_broker_that_was_not_read_is_unknown_and_not_done() -> None:
    assert directory_progress(TO_B, {}) == (DirectoryProgress(ORDERS, 1, B, DirectoryState.UNKNOWN),)


def test_a_plan_without_directories_has_nothing_to_follow() -> None:
    assert directory_progress(plan(("orders", 0, (1, 2), None)), {1: logs(1, {})}) == ()
