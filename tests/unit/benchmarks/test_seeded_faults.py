"""Seeded faults: each fits the code, and a run counts as caught only if a test failed."""

from __future__ import annotations

import os
from collections import Counter
from dataclasses import replace
from pathlib import Path

import pytest

from benchmarks.groups.seeded_faults import run, tree
from benchmarks.groups.seeded_faults.fault import SeededFault, Tier
from benchmarks.groups.seeded_faults.faults import FAULTS
from benchmarks.groups.seeded_faults.group import chosen_faults
from benchmarks.groups.seeded_faults.outcome import _ERRORS, PytestOutcome, PytestResult, outcome_of
from benchmarks.groups.seeded_faults.record import merged_record, seeded_figures
from benchmarks.groups.seeded_faults.run import FaultResult, clean_error, run_fault
from benchmarks.groups.seeded_faults.tree import CodeTree
from headroom.schemas.errors import HeadroomError
from tests.support.paths import REPOSITORY

FAULT = SeededFault(
    name="wrong-sign",
    layer="planning",
    what="The difference has the wrong sign.",
    path="code.py",
    old="a - b",
    new="b - a",
    tier=Tier.UNIT,
    tests=("test_code.py",),
)
CODE = "def difference(a, b):\n    return a - b\n"


@pytest.fixture
def code(tmp_path: Path) -> CodeTree:
    """A tree with one module and one test of it, and a second test that always passes."""
    made = CodeTree(tmp_path / "code", tmp_path / "scratch")
    for folder in (made.folder, made.scratch):
        folder.mkdir()
    (made.folder / "code.py").write_text(CODE)
    tests = "from code import difference\ndef test_it(): assert difference(3, 1) == 2\ndef test_other(): pass\n"
    (made.folder / "test_code.py").write_text(tests)
    (made.folder / "pyproject.toml").write_text("[tool.pytest.ini_options]\n")
    return made


def test_there_are_forty_faults_with_names_of_their_own_in_every_layer_and_tier() -> None:
    assert len(FAULTS) == len({fault.name for fault in FAULTS}) == 40
    assert {fault.layer for fault in FAULTS} == {
        "schemas",
        "planning",
        "cluster",
        "alerts",
        "streaming",
        "operations",
        "cli",
    }
    assert {fault.path.partition("/")[0] for fault in FAULTS} == {fault.layer for fault in FAULTS}
    assert min(Counter(fault.tier for fault in FAULTS).values()) >= 8


@pytest.mark.parametrize("fault", FAULTS, ids=lambda fault: fault.name)
def test_a_fault_fits_the_code_and_leaves_it_parseable(fault: SeededFault) -> None:
    before = fault.file(REPOSITORY).read_text(encoding="utf-8")
    after = fault.seeded_in(before)
    assert after != before
    compile(after, fault.path, "exec")


@pytest.mark.parametrize("fault", FAULTS, ids=lambda fault: fault.name)
def test_the_tests_of_a_fault_are_there_and_of_its_tier(fault: SeededFault) -> None:
    assert fault.tests
    for target in fault.tests:
        file, _, test = target.partition("::")
        assert file.startswith(f"tests/{fault.tier.value}/")
        path = REPOSITORY / file
        assert path.exists(), target
        assert not test or f"def {test.partition('[')[0]}(" in path.read_text(encoding="utf-8"), target


@pytest.mark.parametrize(("text", "count"), [("", 0), ("a - b, a - b", 2)])
def test_text_that_is_not_there_once_is_refused(text: str, count: int) -> None:
    with pytest.raises(HeadroomError, match=f"wrong-sign: its text occurs {count} times in code.py, not once"):
        FAULT.seeded_in(text)


def test_a_replacement_that_changes_nothing_is_refused() -> None:
    with pytest.raises(HeadroomError, match="its two texts are equal"):
        replace(FAULT, new="a - b").seeded_in("a - b")


def test_a_file_that_is_gone_is_refused(tmp_path: Path) -> None:
    with pytest.raises(HeadroomError, match=r"wrong-sign: there is no file code\.py"):
        FAULT.file(tmp_path)


def test_a_tree_has_the_fault_within_the_block_only(code: CodeTree) -> None:
    path = code.folder / "code.py"
    with code.seeded(FAULT):
        assert "return b - a" in path.read_text()
    assert path.read_text() == CODE


def test_children_import_the_code_of_the_copy(code: CodeTree, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PYTHONPATH", "/elsewhere")
    monkeypatch.delenv("HEADROOM_JARS", raising=False)
    environment = code.environment()
    assert environment["PYTHONPATH"].split(os.pathsep) == [str(code.folder), "/elsewhere"]
    assert "HEADROOM_JARS" not in environment
    assert code.environment(with_jvm=True) == environment | {"HEADROOM_JARS": str(REPOSITORY / ".jars")}


def test_a_copy_whose_code_is_not_imported_is_an_error(code: CodeTree) -> None:
    # It has no layers, so those of the checkout are imported.
    with pytest.raises(HeadroomError, match="the code of the copy is not imported"):
        code.require_own_code()


def test_a_fault_is_caught_by_the_test_that_fails(code: CodeTree) -> None:
    result = run_fault(FAULT, code, FAULT.tests)
    assert (result.caught_by, result.is_missed, result.error) == ("test_code.py::test_it", False, None)
    assert result.reason.startswith("assert -2 == 2")
    # The copy is as before, so the same tests pass now.
    assert clean_error(FAULT, code, FAULT.tests) is None


def test_a_fault_is_missed_if_its_tests_pass(code: CodeTree) -> None:
    result = run_fault(FAULT, code, ["test_code.py::test_other"])
    assert (result.caught_by, result.is_missed, result.error) == ("", True, None)


def test_tests_that_are_not_there_catch_nothing(code: CodeTree) -> None:
    result = run_fault(FAULT, code, ["test_code.py::test_gone"])
    assert (result.caught_by, result.is_missed) == ("", False)
    assert "a test that does not exist" in str(result.error)


def test_tests_that_hang_catch_nothing(code: CodeTree, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(run._TIMEOUT_S, Tier.UNIT, 1.0)
    (code.folder / "test_code.py").write_text("import time\ntime.sleep(600)\n")
    assert run_fault(FAULT, code, FAULT.tests).error == "the tests did not end within 1 s"


REPORT = """<testsuites><testsuite>
<testcase file="tests/a.py" name="test_passes" />
<testcase file="tests/a.py" name="test_waits"><skipped message="no tool" /></testcase>
{}
</testsuite></testsuites>"""
_CASE = '<testcase file="tests/a.py" name="test_fails[a - b]">{}</testcase>'
FAILED = _CASE.format('<failure message="assert 1 == 2&#10;more">x</failure>')
NOT_SET_UP = _CASE.format('<error message="failed on setup">x</error>')
FAILS = "tests/a.py::test_fails[a - b]"
SKIPPED = '<testcase file="tests/a.py" name="test_passes"><skipped message="no tool" /></testcase>'


@pytest.mark.parametrize(
    ("exit_code", "text", "outcome"),
    [
        (0, REPORT.format(""), PytestOutcome(PytestResult.PASSED)),
        (
            1,
            REPORT.format(FAILED),
            PytestOutcome(PytestResult.FAILED, FAILS, "assert 1 == 2"),
        ),
        (1, REPORT.format(NOT_SET_UP), PytestOutcome(PytestResult.FAILED, FAILS, "failed on setup")),
        (0, f"<testsuite>{SKIPPED}</testsuite>", PytestOutcome(PytestResult.ERROR, reason="no test was executed")),
        (1, REPORT.format(""), PytestOutcome(PytestResult.ERROR, reason="it failed without a test that failed")),
        (2, REPORT.format(FAILED), PytestOutcome(PytestResult.ERROR, reason=_ERRORS[2])),
        (3, REPORT.format(FAILED), PytestOutcome(PytestResult.ERROR, reason=_ERRORS[3])),
        (4, None, PytestOutcome(PytestResult.ERROR, reason=_ERRORS[4])),
        (5, REPORT.format(""), PytestOutcome(PytestResult.ERROR, reason=_ERRORS[5])),
        (-9, REPORT.format(FAILED), PytestOutcome(PytestResult.ERROR, reason="it ended with code -9")),
        (1, None, PytestOutcome(PytestResult.ERROR, reason="it failed without a test that failed")),
    ],
)
def test_the_outcome_is_that_of_exit_code_and_report(
    tmp_path: Path, exit_code: int, text: str | None, outcome: PytestOutcome
) -> None:
    report = tmp_path / "report.xml"
    if text is not None:
        report.write_text(text)
    assert outcome_of(exit_code, report) == outcome


def test_faults_are_chosen_by_name_or_tier() -> None:
    faults = [FAULT, replace(FAULT, name="off-by-one", tier=Tier.SPARK), replace(FAULT, name="lost-row")]
    assert chosen_faults(faults, "") == faults
    assert [fault.name for fault in chosen_faults(faults, "lost-row, spark")] == ["off-by-one", "lost-row"]
    with pytest.raises(HeadroomError, match="there is no fault lost-raw"):
        chosen_faults(faults, "lost-row,lost-raw")


def test_tests_of_a_commit_may_have_other_names() -> None:
    moved = replace(FAULT, old_tests=("test_old.py",))
    assert (moved.targets(of_commit=True), moved.targets(of_commit=False)) == (("test_old.py",), ("test_code.py",))
    assert FAULT.targets(of_commit=True) == ("test_code.py",)


def test_the_record_keeps_other_faults_and_the_figures_count_missed_ones() -> None:
    caught = FaultResult(FAULT, "test_code.py::test_it", "assert -2 == 2", 1.26)
    missed = FaultResult(replace(FAULT, name="lost-row"), "", "", 2.0)
    record = merged_record({"off-by-one": {"caught_by": "x"}, "wrong-sign": {"caught_by": "y"}}, [caught, missed])
    assert {name: entry["caught_by"] for name, entry in record.items()} == {
        "lost-row": None,
        "off-by-one": "x",
        "wrong-sign": "test_code.py::test_it",
    }
    assert record["wrong-sign"]["seconds"] == 1.3
    figures = {figure.name: (figure.value, figure.n) for figure in seeded_figures([caught, missed])}
    assert figures == {"seeded_faults": (2, 2), "seeded_faults_missed": (1, 2)}


def test_a_copy_of_the_checkout_has_its_uncommitted_files(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(tree, "_git", lambda *arguments: b"README.md\0cli/main.py\0no/longer/there.py\0")
    tree._copy_checkout(tmp_path)
    copied = sorted(str(path.relative_to(tmp_path)) for path in tmp_path.rglob("*") if path.is_file())
    assert copied == ["README.md", "cli/main.py"]
