"""Runs the tests in tiers, the fast ones first, and prints what each took; run by make, standard library only.

It runs before the virtual environment exists, because set-up is part of what a fresh clone takes. Each run leaves a
record in build/test-runs: minutes and failed tests of each tier, and how busy the machine was.
"""

import argparse
import json
import os
import subprocess
import sys
import tempfile
from contextlib import ExitStack
from datetime import datetime, timezone
from pathlib import Path
from xml.etree import ElementTree

from machine_load import MachineLoad

ROOT = Path(__file__).resolve().parent.parent
RECORDS = ROOT / "build" / "test-runs"
PYTHON = str(ROOT / ".venv" / "bin" / "python")
TIERS = ("lint", "types", "unit", "spark", "integration")
_NEED_JAVA = ("spark", "integration")
# Processes side by side. Tests that wait, for a timeout or for a broker, leave a core to others.
_PYTEST = {
    "unit": ["tests/unit", "-n", "4", "--dist", "worksteal"],
    # A module's fixtures are made by one process. tests/spark/conftest.py puts the longest modules first.
    "spark": ["tests/spark", "-n", "2", "--dist", "loadfile", "--no-loadscope-reorder"],
    "integration": ["tests/integration", "-n", "2", "--dist", "loadscope", "--no-loadscope-reorder"],
}
_SLOWEST = 20
# Compiled modules are kept, whatever the shell says: each process of pytest and each headroom that a test starts would
# compile all modules again.
_ENVIRONMENT = {name: value for name, value in os.environ.items() if name != "PYTHONDONTWRITEBYTECODE"}


def main() -> int:
    """Run tiers, and return the exit code: 0 if all passed, 1 if one failed, 130 if interrupted."""
    parser = argparse.ArgumentParser(description="Run the tests in tiers, the fast ones first.")
    parser.add_argument("tiers", nargs="*", metavar="TIER", help=", ".join(TIERS) + "; all if none is given")
    parser.add_argument("--keep-going", action="store_true", help="run the next tiers although one has failed")
    parser.add_argument("--order", type=int, metavar="SEED", help="run the tests in a random order")
    parser.add_argument("--beside", type=int, metavar="N", default=0, help="run beside N processes that only compute")
    arguments = parser.parse_args()
    unknown = sorted(set(arguments.tiers) - set(TIERS))
    if unknown:
        parser.error("{}: is no tier; choose from {}".format(", ".join(unknown), ", ".join(TIERS)))
    names = [name for name in TIERS if name in (arguments.tiers or TIERS)]
    options = [] if arguments.order is None else ["--random-order", "--random-order-seed", str(arguments.order)]
    busy = [subprocess.Popen([sys.executable, "-c", "while True: pass"]) for _ in range(arguments.beside)]
    try:
        record = run(names, options, arguments.keep_going)
    finally:
        for process in busy:
            process.kill()
            process.wait()
    record.update(beside=arguments.beside, order=arguments.order)
    print("\n" + table(record), flush=True)
    file = RECORDS / (record["date"].replace(":", "").replace("-", "") + ".json")
    file.write_text(json.dumps(record, indent=1) + "\n")
    return record["code"]


def run(names: "list[str]", options: "list[str]", keep_going: bool) -> "dict[str, object]":
    """Run tiers with options of pytest, and return the record of the run.

    Args:
        names: the tiers.
        options: options of pytest.
        keep_going: run the next tiers of tests although one has failed.
    """
    RECORDS.mkdir(parents=True, exist_ok=True)
    began, done, code = datetime.now(timezone.utc), [], 0
    fresh = not Path(PYTHON).exists()
    load = MachineLoad()
    try:
        for name, commands in steps(names, options):
            print("\n== " + name, flush=True)
            done.append(_run_step(name, commands))
            if done[-1]["code"] != 0:
                code = 1
                if not (keep_going and name in _PYTEST):
                    break
    except KeyboardInterrupt:
        code = 130
    return {
        "date": began.strftime("%Y-%m-%dT%H:%M:%SZ"),
        "commit": _git("rev-parse", "--short=12", "HEAD"),
        "changed": bool(_git("status", "--porcelain")),
        "fresh": fresh,
        "tiers": names,
        "code": code,
        "machine": load.figures(),
        "steps": done,
    }


def steps(names: "list[str]", options: "list[str]") -> "list[tuple[str, list[list[str]]]]":
    """Return the steps of a run in their order, each with its commands: tiers, and before them the set-up they need."""
    setup = [sys.executable, str(ROOT / "scripts" / "setup.py")]
    commands = {
        "lint": [[PYTHON, "-m", "ruff", "check", "."], [PYTHON, "-m", "ruff", "format", "--check", "."]],
        # All tests are imported beside it: one that cannot be is known before minutes have passed.
        "types": [[PYTHON, "-m", "mypy"], [PYTHON, "-m", "pytest", "tests", "--collect-only", "-v"]],
    }
    for name, arguments in _PYTEST.items():
        commands[name] = [[PYTHON, "-m", "pytest", *arguments, "--junitxml", str(_results(name)), *options]]
    heavy = [name for name in names if name in _NEED_JAVA]
    # Jars arrive beside the packages. The archives keep both cores busy, so they wait until what is fast has passed.
    # Unit tests start no JVM, but some look at the jars: what is packed, and where Kafka's tools are.
    with_jars = bool(heavy) or "unit" in names
    found = [("set-up", [[*setup, "all-jars" if "integration" in heavy else "jars" if with_jars else "packages"]])]
    found += [(name, commands[name]) for name in names if name not in heavy]
    if heavy:
        found += [("class archives", [[*setup, "tests" if "integration" in heavy else "spark"]])]
    return found + [(name, commands[name]) for name in heavy]


def _run_step(name: str, commands: "list[list[str]]") -> "dict[str, object]":
    _results(name).unlink() if _results(name).exists() else None
    load = MachineLoad()
    if len(commands) == 1:
        code = subprocess.run(commands[0], cwd=str(ROOT), env=_ENVIRONMENT).returncode
    else:
        code = _run_side_by_side(commands)
    step = {"name": name, "code": code, "machine": load.figures()}
    if name in _PYTEST:
        step.update(results(_results(name)))
    return step


def _run_side_by_side(commands: "list[list[str]]") -> int:
    """Run commands at the same time, print the last line of each, or all if it failed, and return the first failure."""
    code = 0
    with ExitStack() as stack:
        outputs = [stack.enter_context(tempfile.TemporaryFile("w+")) for _ in commands]
        processes = [
            subprocess.Popen(command, cwd=str(ROOT), env=_ENVIRONMENT, stdout=output, stderr=subprocess.STDOUT)
            for command, output in zip(commands, outputs, strict=True)
        ]
        for process, output in zip(processes, outputs, strict=True):
            own = process.wait()
            code = code or own
            output.seek(0)
            lines = output.read().splitlines()
            print("\n".join(lines if own else lines[-1:]), flush=True)
    return code


def results(file: Path) -> "dict[str, object]":
    """Return what pytest's file of results has: number of tests, failed ones with their reasons, and the slowest."""
    try:
        cases = list(ElementTree.parse(str(file)).iter("testcase"))
    except (OSError, ElementTree.ParseError):
        return {"tests": None, "failed": [], "slowest": []}
    failed = [(case, found) for case in cases for found in case if found.tag in ("failure", "error")]
    slowest = sorted(cases, key=lambda case: -float(case.get("time", 0)))[:_SLOWEST]
    return {
        "tests": len(cases),
        "skipped": sum(case.find("skipped") is not None for case in cases),
        "failed": [{"test": _test_id(case), "reason": _first_line(found)} for case, found in failed],
        "slowest": [{"test": _test_id(case), "seconds": float(case.get("time", 0))} for case in slowest],
    }


def _test_id(case: ElementTree.Element) -> str:
    """Return the name by which pytest can run a test, without its class if it has one."""
    return case.get("classname", "").replace(".", "/") + ".py::" + case.get("name", "")


def _first_line(found: ElementTree.Element) -> str:
    return ((found.get("message") or found.text or "").strip().splitlines() or ["no reason"])[0][:300]


def table(record: "dict[str, object]") -> str:
    """Return the table of a run as text: minutes by tier, what failed, the slowest tests, and how busy it was."""
    lines = ["{:<16} {:>8} {:>7} {:>7}".format("tier", "minutes", "tests", "failed")]
    for step in record["steps"]:
        tests = "" if step.get("tests") is None else step["tests"]
        failed = len(step["failed"]) if "failed" in step else ""
        minutes = step["machine"]["seconds"] / 60
        outcome = "" if step["code"] == 0 else "  FAILED"
        lines.append("{:<16} {:>8.1f} {:>7} {:>7}{}".format(step["name"], minutes, tests, failed, outcome))
    missing = [name for name in record["tiers"] if name not in {step["name"] for step in record["steps"]}]
    lines += ["{:<16} {:>8}".format(name, "not run") for name in missing]
    machine = record["machine"]
    lines.append("{:<16} {:>8.1f}".format("all", machine["seconds"] / 60))
    lines += ["", _load_text(machine)]
    slowest = [one for step in record["steps"] for one in step.get("slowest", [])]
    if slowest:
        lines += ["", "slowest tests, seconds"]
        slowest.sort(key=lambda one: -one["seconds"])
        lines += ["{:>8.1f}  {}".format(one["seconds"], one["test"]) for one in slowest[:_SLOWEST]]
    failed = [one for step in record["steps"] for one in step.get("failed", [])]
    if failed:
        lines += ["", "failed tests"] + ["  {}: {}".format(one["test"], one["reason"]) for one in failed]
    return "\n".join(lines)


def _load_text(machine: "dict[str, float]") -> str:
    if machine["busy_cores"] is None:
        return "How busy the machine was is unknown."
    text = "{busy_cores:.1f} of {cores} cores were busy".format(**machine)
    if machine["waiting_ratio"] is not None:
        text += "; some program waited for a core in {:.0%} of the time".format(machine["waiting_ratio"])
    return text + "."


def _results(name: str) -> Path:
    return RECORDS / (name + ".xml")


def _git(*arguments: str) -> str:
    """Return what git prints; empty where there is no git, as in an unpacked archive."""
    try:
        found = subprocess.run(["git", *arguments], cwd=str(ROOT), stdout=subprocess.PIPE, stderr=subprocess.DEVNULL)
    except OSError:
        return ""
    return found.stdout.decode().strip()


if __name__ == "__main__":
    sys.exit(main())
