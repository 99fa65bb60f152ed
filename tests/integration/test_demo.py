"""The demo passes on real brokers, and leaves nothing behind."""

from __future__ import annotations

from pathlib import Path

from tests.integration.demo_process import nothing_works_in, start_demo, working_in
from tests.integration.support import output_of, wait_until

# Three minutes on an idle machine of two cores.
_DEADLINE_S = 600


def test_all_of_the_demo_comes_true_and_nothing_is_left(tmp_path: Path) -> None:
    folder = tmp_path / "demo"
    demo = start_demo(folder)
    try:
        output, _ = output_of(demo, _DEADLINE_S)
    finally:
        demo.terminate()
    assert demo.returncode == 0, output
    assert "[FIRING] warning throttle_below_leader_write" in output
    assert "[RESOLVED] warning throttle_below_leader_write" in output
    # Times are those of the machine, and benchmarks measure them.
    assert "All checks passed." in output or "All of it came true" in output
    wait_until(lambda: nothing_works_in(folder), 30, "processes of the demo ended", lambda: working_in(folder))
    assert not folder.exists()
