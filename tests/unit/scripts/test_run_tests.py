"""The run of all tests: fast tiers first, a record of what failed and why, and how busy the machine was."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import flaky
import pytest
import run_tests
from runs.folder import RunFolder
from runs.machine_load import MachineLoad

RESULTS = """<testsuites><testsuite>
<testcase classname="tests.unit.test_a" name="test_quick" time="0.5"/>
<testcase classname="tests.unit.test_a" name="test_slow[x]" time="7.25"/>
<testcase classname="tests.unit.test_b" name="test_wrong" time="1">
<failure message="assert 1 == 2&#10;more">text</failure>
</testcase>
<testcase classname="tests.unit.test_b" name="test_broken" time="0">
<error message="">E  no fixture&#10;</error></testcase>
<testcase classname="tests.unit.test_b" name="test_killed" time="0">
<error message="failed on setup with &quot;worker 'gw0' crashed while">
worker 'gw0' crashed while running 'b'</error></testcase>
<testcase classname="" name="tests.unit.test_c" time="0">
<error message="collection failure">ImportError while importing
E   ModuleNotFoundError: No module 'x'</error></testcase>
<testcase classname="tests.unit.test_d" name="test_skipped" time="0">
<skipped type="pytest.skip" message="no openssl">x</skipped></testcase>
<testcase time="9"/>
</testsuite></testsuites>
"""


def record(**more: object) -> dict[str, object]:
    machine = {
        "seconds": 90.0,
        "cores": 2,
        "busy_cores": 1.9,
        "waiting_ratio": 0.62,
    }
    step = {"name": "unit", "code": 0, "machine": machine, "tests": 4, "failed": [], "slowest": []}
    return {"tiers": ["unit", "spark"], "code": 0, "machine": machine, "steps": [step], **more}


def test_fast_tiers_run_before_those_that_need_java() -> None:
    order = [name for name, _ in run_tests.steps(list(run_tests.TIERS), [], Path("results"))]
    assert order == ["set-up", "lint", "types", "unit", "class archives", "spark", "integration"]


@pytest.mark.parametrize(
    ("tier", "levels"),
    [("types", ["packages"]), ("unit", ["jars"]), ("spark", ["jars", "spark"]), ("integration", ["all-jars", "tests"])],
)
def test_a_tier_fetches_only_what_it_needs(tier: str, levels: list[str]) -> None:
    commands = [command for _, of_step in run_tests.steps([tier], [], Path("results")) for command in of_step]
    assert [command[-1] for command in commands if "setup.py" in command[1]] == levels


def test_results_name_the_failed_tests_with_their_reasons_and_the_slowest(tmp_path: Path) -> None:
    (tmp_path / "unit.xml").write_text(RESULTS)
    found = run_tests.results(tmp_path / "unit.xml")
    assert found["tests"] == 7
    assert found["skipped_tests"] == [{"test": "tests/unit/test_d.py::test_skipped", "reason": "no openssl"}]
    assert found["failed"] == [
        {"test": "tests/unit/test_b.py::test_wrong", "reason": "assert 1 == 2"},
        {"test": "tests/unit/test_b.py::test_broken", "reason": "E  no fixture"},
        {"test": "tests/unit/test_b.py::test_killed", "reason": "worker 'gw0' crashed while running 'b'"},
        {"test": "tests/unit/test_c.py", "reason": "ModuleNotFoundError: No module 'x'"},
    ]
    assert found["slowest"][0] == {"test": "tests/unit/test_a.py::test_slow[x]", "seconds": 7.25}


@pytest.mark.parametrize("text", [None, "<testsuites><testsuite>"])
def test_results_that_are_missing_or_cut_off_are_unknown_not_none(text: str | None, tmp_path: Path) -> None:
    if text is not None:
        (tmp_path / "unit.xml").write_text(text)
    assert run_tests.results(tmp_path / "unit.xml")["tests"] is None


def test_the_table_names_what_failed_and_what_was_not_run() -> None:
    failing = record()
    failing["steps"][0] |= {"code": 1, "failed": [{"test": "t.py::test_x", "reason": "assert False"}]}
    text = run_tests.table(failing)
    assert "unit                  1.5       4       1          FAILED" in text
    assert "spark             not run" in text
    assert "  t.py::test_x: assert False" in text
    assert "1.9 of 2 cores were busy; some program waited for a core in 62%" in text
    assert "Python of unknown version ran the tests." in text


def test_a_tier_that_ended_without_a_failed_test_says_how() -> None:
    found = record(code=1, temporary="/tmp/headroom-tests-x")
    found["steps"] = [found["steps"][0] | {"code": code} for code in (5, -9, 0, 130)]
    reasons = [one["reason"] for one in run_tests.failures(found)]
    assert reasons == ["no test was found", "killed by signal 9"]
    text = run_tests.table(found)
    assert "unit                  1.5       4       0          INTERRUPTED" in text
    assert "their files are in /tmp/headroom-tests-x" in text


def test_servers_and_files_of_tests_are_reached_behind_a_proxy_and_with_a_private_umask() -> None:
    hosts = ("127.0.0.1:80", "localhost", "mirror.example", "far.example")
    shows = "import os, urllib.request, tests.conftest\n"
    shows += f"print(*(bool(urllib.request.proxy_bypass(host)) for host in {hosts}), oct(os.umask(0)))"
    given = {**os.environ, "http_proxy": "http://127.0.0.1:9", "no_proxy": "mirror.example"}
    says = [sys.executable, "-c", shows]
    done = subprocess.run(says, cwd=run_tests.ROOT, env=given, umask=0o077, capture_output=True, text=True, check=True)
    assert done.stdout == "True True True False 0o22\n"


def test_the_table_names_what_was_skipped() -> None:
    found = record()
    found["steps"][0] |= {"skipped": 1, "skipped_tests": [{"test": "t.py::test_x", "reason": "no apt-get"}]}
    text = run_tests.table(found)
    assert "unit                  1.5       4       0       1\n" in text
    assert "skipped tests\n  t.py::test_x: no apt-get" in text


def test_a_tier_that_ended_for_more_than_its_failed_tests_says_so() -> None:
    found = record(code=1)
    failed = [{"test": "t.py::test_x", "reason": "r"}]
    found["steps"] = [found["steps"][0] | {"code": code, "failed": failed} for code in (1, 3)]
    reasons = [one["reason"] for one in run_tests.failures(found)]
    assert reasons == ["r", "r", "internal error of pytest"]


def test_a_tier_without_results_is_red_and_reads_none_of_the_variables_that_leave_checks_out(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("PYTHONOPTIMIZE", "1")
    monkeypatch.setenv("PYTHONPATH", "elsewhere")
    monkeypatch.setenv("HEADROOM_JARS", "elsewhere")
    folder = RunFolder(tmp_path / "records")
    checks = "import os; assert 'elsewhere' not in os.environ.values(); raise SystemExit(0 if __debug__ else 3)"
    step = run_tests._run_step("unit", [[sys.executable, "-c", checks]], folder)
    folder.close(keep=False)
    assert (step["code"], step["tests"]) == (5, None)


def test_the_table_names_what_tests_left_running() -> None:
    found = record()
    found["steps"][0]["left_running"] = ["java kafka.Kafka"]
    assert "left running by tests, and killed\n  java kafka.Kafka" in run_tests.table(found)


def test_a_run_without_a_record_is_no_success(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    script = tmp_path / "run_tests.py"
    script.write_text("raise SystemExit(3)")
    monkeypatch.setattr(flaky.run_tests, "__file__", str(script))
    monkeypatch.setattr(sys, "argv", ["flaky.py", "2"])
    assert flaky.main() == 3


def test_failures_are_counted_over_runs() -> None:
    red = record(code=1, order=7, beside=1)
    red["steps"] = [red["steps"][0] | {"code": 1, "failed": [{"test": "t.py::test_x", "reason": "r"}]}]
    # Without results, as after a crash of pytest, the tier itself has failed.
    crashed = record(code=1, order=8, beside=0)
    crashed["steps"] = [crashed["steps"][0] | {"code": 3}]
    text = flaky.summary([red, crashed, red])
    assert "  order 7, beside 1: 1.5 minutes, exit code 1" in text
    assert "2 of 3 runs: t.py::test_x" in text
    assert "1 of 3 runs: unit" in text
    assert flaky.summary([]) == "0 runs"
    assert flaky.summary([record(order=1, beside=0)], 1).splitlines()[0] == "1 runs, and 1 without a record"
    assert "No test failed" not in flaky.summary([record(order=1, beside=0)], 1)
    assert flaky.summary([record(order=1, beside=0)]).endswith("No test failed.")


def test_the_load_counts_what_programs_compute() -> None:
    load = MachineLoad()
    subprocess.run([sys.executable, "-c", "import time\nwhile time.process_time() < 0.5: pass"], check=True)
    figures = load.figures()
    # Figures have two decimals.
    assert figures["busy_cores"] * figures["seconds"] >= 0.45


def test_without_the_kernels_figures_the_load_is_unknown(tmp_path: Path) -> None:
    figures = MachineLoad(tmp_path).figures()
    assert (figures["busy_cores"], figures["waiting_ratio"]) == (None, None)
    assert "unknown" in run_tests.table(record(machine=figures))
