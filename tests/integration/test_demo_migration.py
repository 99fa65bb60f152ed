"""The migration's demo passes on real brokers of two clusters, and leaves nothing behind."""

from __future__ import annotations

import re
from pathlib import Path

from tests.integration.demo_process import nothing_works_in, start_demo, working_in
from tests.integration.support import output_of, wait_until

# Three to four minutes on an idle machine of two cores.
_DEADLINE_S = 900


def measured(output: str, name: str) -> str:
    """Return a measurement of the final table."""
    found = re.search(rf"^{name} +(\S.*)$", output, re.MULTILINE)
    assert found is not None, output
    return found[1]


def test_a_migration_loses_doubles_and_reorders_nothing_and_nothing_is_left(tmp_path: Path) -> None:
    folder = tmp_path / "demo"
    demo = start_demo(folder, "--migration")
    try:
        output, _ = output_of(demo, _DEADLINE_S)
    finally:
        demo.terminate()
    assert demo.returncode == 0, output
    # Times are those of the machine.
    assert "All checks passed." in output or "All of it came true" in output
    for fault in ("Lost records", "Doubled records", "Records out of order"):
        assert measured(output, fault) == "0"
    assert measured(output, "Partitions on the target") == "4 of 4"
    acknowledged = re.match(r"([\d,]+), of these ([\d,]+) on new", measured(output, "Acknowledged records"))
    assert acknowledged is not None, output
    assert acknowledged[1] == measured(output, "Read records")
    assert int(acknowledged[2].replace(",", "")) > 0
    wait_until(lambda: nothing_works_in(folder), 30, "processes of the demo ended", lambda: working_in(folder))
    assert not folder.exists()
