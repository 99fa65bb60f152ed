"""Runs the tests in tiers, the fast ones first, and prints what each took; run by make, standard library only.

It runs before the virtual environment exists, because set-up is part of what a fresh clone takes. Each run leaves a
record in build/test-runs: minutes and failed tests of each tier, and how busy the machine was. Several runs may share a
checkout. One that is interrupted or killed leaves nothing running.
"""

import argparse
import json
import os
import signal
import subprocess
import sys
import tempfile
from contextlib import ExitStack
from datetime import datetime, timezone
from pathlib import Path
from xml.etree import ElementTree

import child
import preflight
from runs.folder import RunFolder
from runs.machine_load import MachineLoad

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
INTERRUPTED = 130
# Of pytest: for failed tests, and for other reasons.
_FAILED, _NO_TEST = 1, 5
_EXIT_CODES = {2: "pytest was interrupted", 3: "internal error of pytest", _NO_TEST: "no test was found"}
# Compiled modules are kept, whatever the shell says: each process of pytest and each headroom that a test starts would
# compile all modules again. Options for pytest, such as -k, would leave tests out unnoticed, and an optimized Python
# assertions. In another path Headroom and PySpark would be found before those of the checkout, and jars are those that
# set-up fetches.
_NOT_INHERITED = (
    "HEADROOM_JARS",
    "PYTHONDONTWRITEBYTECODE",
    "PYTHONOPTIMIZE",
    "PYTHONPATH",
    "PYTHONWARNINGS",
    "PYTEST_ADDOPTS",
    "PYTEST_PLUGINS",
    "PYTEST_DISABLE_PLUGIN_AUTOLOAD",
)


def main() -> int:
    """Run tiers, and return the exit code: 0 if all passed, 1 if one failed, 130 if interrupted, also by a signal."""
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
    preflight.use_utf8()
    child.take_signals_for_ctrl_c()
    busy = [child.start([sys.executable, "-c", "while True: pass"]) for _ in range(arguments.beside)]
    try:
        record = run(names, options, arguments.keep_going)
    except OSError as error:
        print(f"tests: {error}. Make {RECORDS} and the folder for temporary files writable", file=sys.stderr)
        return 1
    finally:
        for process in busy:
            child.stop(process, signal.SIGKILL)
    record.update(beside=arguments.beside, order=arguments.order)
    code = record["code"]
    # Two runs may begin in the same second.
    name = "{}-{}".format(record["date"].replace(":", "").replace("-", ""), os.getpid())
    try:
        (RECORDS / name).write_text(json.dumps(record, indent=1) + "\n")
        # Not half of a record on a full disk.
        (RECORDS / name).rename(RECORDS / (name + ".json"))
    except OSError as error:
        print(f"tests: the record of the run cannot be written: {error}", file=sys.stderr)
        code = code or 1
    # Last: nobody may read it any more.
    print("\n" + table(record), flush=True)
    return code


def run(names: "list[str]", options: "list[str]", keep_going: bool) -> "dict[str, object]":
    """Run tiers with options of pytest, and return the record of the run.

    Args:
        names: the tiers.
        options: options of pytest.
        keep_going: run the next tiers of tests although one has failed.

    Raises:
        OSError: a folder of the run cannot be written.
    """
    began, done, code = datetime.now(timezone.utc), [], 0
    # Nothing of an earlier set-up: also no jars.
    fresh = not any((ROOT / name).exists() for name in (".venv", ".jars"))
    load = MachineLoad()
    folder = RunFolder(RECORDS)
    try:
        for name, commands in steps(names, options, folder.folder):
            print("\n== " + name, flush=True)
            done.append(_run_step(name, commands, folder))
            own = done[-1]["code"]
            if own == INTERRUPTED:
                code = INTERRUPTED
                break
            if own != 0:
                code = 1
                if not (keep_going and name in _PYTEST):
                    break
    except KeyboardInterrupt:
        code = INTERRUPTED
    finally:
        folder.close(keep=code == 1)
    changes = _git("status", "--porcelain")
    record = {
        "date": began.strftime("%Y-%m-%dT%H:%M:%SZ"),
        "commit": _git("rev-parse", "--short=12", "HEAD") or "",
        "changed": None if changes is None else bool(changes),
        "fresh": fresh,
        "python": preflight.venv_python(ROOT / ".venv"),
        "tiers": names,
        "code": code,
        "machine": load.figures(),
        "steps": done,
    }
    if code == 1:
        record["temporary"] = str(folder.temporary)
    return record


def steps(names: "list[str]", options: "list[str]", folder: Path) -> "list[tuple[str, list[list[str]]]]":
    """Return the steps of a run in their order, each with its commands: tiers, and before them the set-up they need.

    Args:
        names: the tiers.
        options: options of pytest.
        folder: folder of results.
    """
    setup = [sys.executable, str(ROOT / "scripts" / "setup.py")]
    commands = {
        "lint": [[PYTHON, "-m", "ruff", "check", "."], [PYTHON, "-m", "ruff", "format", "--check", "."]],
        # All tests are imported beside it: one that cannot be is known before minutes have passed.
        "types": [[PYTHON, "-m", "mypy"], [PYTHON, "-m", "pytest", "tests", "--collect-only", "-v"]],
    }
    for name, arguments in _PYTEST.items():
        commands[name] = [[PYTHON, "-m", "pytest", *arguments, "--junitxml", str(_results(folder, name)), *options]]
    heavy = [name for name in names if name in _NEED_JAVA]
    # Jars arrive beside the packages. The archives keep both cores busy, so they wait until what is fast has passed.
    # Unit tests start no JVM, but some look at the jars: what is packed, and where Kafka's tools are.
    with_jars = bool(heavy) or "unit" in names
    run_steps = [("set-up", [[*setup, "all-jars" if "integration" in heavy else "jars" if with_jars else "packages"]])]
    run_steps += [(name, commands[name]) for name in names if name not in heavy]
    if heavy:
        run_steps += [("class archives", [[*setup, "tests" if "integration" in heavy else "spark"]])]
    return run_steps + [(name, commands[name]) for name in heavy]


def _run_step(name: str, commands: "list[list[str]]", folder: RunFolder) -> "dict[str, object]":
    """Run the commands of a step, and return its part of the record; code 130 if it was interrupted."""
    environment = {key: value for key, value in os.environ.items() if key not in _NOT_INHERITED}
    # Set-up keeps what Java prints about itself, and tests of its errors look at it.
    environment.update(folder.environment(with_java=name in _NEED_JAVA))
    load = MachineLoad()
    try:
        if len(commands) == 1:
            code = child.finish(child.start(commands[0], cwd=str(ROOT), env=environment))
        else:
            code = _run_side_by_side(commands, environment)
    except KeyboardInterrupt:
        code = INTERRUPTED
    step = {"name": name, "code": code, "machine": load.figures()}
    if name in _PYTEST:
        step.update(results(_results(folder.folder, name)))
        if code == 0 and not step["tests"]:
            step["code"] = _NO_TEST
    step["left_running"] = folder.end_processes()
    return step


def _run_side_by_side(commands: "list[list[str]]", environment: "dict[str, str]") -> int:
    """Run commands at the same time, print the last line of each, or all if it failed, and return the first failure."""
    code = 0
    with ExitStack() as stack:
        outputs = [stack.enter_context(tempfile.TemporaryFile("w+", errors="replace")) for _ in commands]
        processes = []
        for command, output in zip(commands, outputs, strict=True):
            process = child.start(command, cwd=str(ROOT), env=environment, stdout=output, stderr=subprocess.STDOUT)
            stack.callback(child.stop, process)
            processes.append(process)
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
        # That of a test that was interrupted has no name.
        cases = [case for case in ElementTree.parse(str(file)).iter("testcase") if case.get("name")]
    except (OSError, ElementTree.ParseError):
        return {"tests": None, "failed": [], "slowest": []}
    failed = [(case, element) for case in cases for element in case if element.tag in ("failure", "error")]
    skipped = [(case, element) for case in cases for element in case if element.tag == "skipped"]
    slowest = sorted(cases, key=lambda case: -float(case.get("time", 0)))[:_SLOWEST]
    return {
        "tests": len(cases),
        "skipped": len(skipped),
        "skipped_tests": [{"test": _test_id(case), "reason": _first_line(element)} for case, element in skipped],
        "failed": [{"test": _test_id(case), "reason": _first_line(element)} for case, element in failed],
        "slowest": [{"test": _test_id(case), "seconds": float(case.get("time", 0))} for case in slowest],
    }


def _test_id(case: ElementTree.Element) -> str:
    """Return the name by which pytest can run a test, without its class if it has one."""
    module = case.get("classname", "")
    # A module that cannot be imported has only its name.
    file = (module or case.get("name", "")).replace(".", "/") + ".py"
    return file + "::" + case.get("name", "") if module else file


def _first_line(element: ElementTree.Element) -> str:
    message, text = (element.get("message") or "").strip(), (element.text or "").strip()
    # Of a process of pytest that has crashed, or that was ended because its test hangs.
    crash = next((line for line in text.splitlines() if line.startswith("worker ")), "")
    if message == "collection failure":
        message = next((line[1:].strip() for line in text.splitlines() if line.startswith("E ")), message)
    return ((crash or message or text).splitlines() or ["no reason"])[0][:300]


def failures(record: "dict[str, object]") -> "list[dict[str, str]]":
    """Return the failed tests of a run; a step that failed without any, or not for them alone, counts as one."""
    failed_tests = []
    for step in record["steps"]:
        failed = step.get("failed", [])
        failed_tests += failed
        if step["code"] not in (0, INTERRUPTED) and not (failed and step["code"] == _FAILED):
            failed_tests.append(
                {"test": step["name"], "reason": _EXIT_CODES.get(step["code"], _exit_text(step["code"]))}
            )
    return failed_tests


def _exit_text(code: int) -> str:
    return f"killed by signal {-code}" if code < 0 else f"exit code {code}"


def table(record: "dict[str, object]") -> str:
    """Return the table of a run as text: minutes by tier, what failed, the slowest tests, and how busy it was."""
    lines = ["{:<16} {:>8} {:>7} {:>7} {:>7}".format("tier", "minutes", "tests", "failed", "skipped")]
    for step in record["steps"]:
        tests = "" if step.get("tests") is None else step["tests"]
        failed = len(step["failed"]) if "failed" in step else ""
        minutes = step["machine"]["seconds"] / 60
        outcome = {0: "", INTERRUPTED: "  INTERRUPTED"}.get(step["code"], "  FAILED")
        counts = (tests, failed, step.get("skipped", ""))
        lines.append("{:<16} {:>8.1f} {:>7} {:>7} {:>7}{}".format(step["name"], minutes, *counts, outcome))
    missing = [name for name in record["tiers"] if name not in {step["name"] for step in record["steps"]}]
    lines += ["{:<16} {:>8}".format(name, "not run") for name in missing]
    machine = record["machine"]
    lines.append("{:<16} {:>8.1f}".format("all", machine["seconds"] / 60))
    lines += ["", _load_text(machine), "Python {} ran the tests.".format(record.get("python") or "of unknown version")]
    slowest = [one for step in record["steps"] for one in step.get("slowest", [])]
    if slowest:
        lines += ["", "slowest tests, seconds"]
        slowest.sort(key=lambda one: -one["seconds"])
        lines += ["{:>8.1f}  {}".format(one["seconds"], one["test"]) for one in slowest[:_SLOWEST]]
    left = [command for step in record["steps"] for command in step.get("left_running", [])]
    if left:
        lines += ["", "left running by tests, and killed"] + ["  " + command for command in left]
    skipped = [one for step in record["steps"] for one in step.get("skipped_tests", [])]
    if skipped:
        lines += ["", "skipped tests"] + ["  {}: {}".format(one["test"], one["reason"]) for one in skipped]
    failed = failures(record)
    if failed:
        lines += ["", "failed tests"] + ["  {}: {}".format(one["test"], one["reason"]) for one in failed]
        if "temporary" in record:
            lines.append("Until the next run, their files are in {}.".format(record["temporary"]))
    return "\n".join(lines)


def _load_text(machine: "dict[str, float]") -> str:
    if machine["busy_cores"] is None:
        return "How busy the machine was is unknown."
    text = "{busy_cores:.1f} of {cores} cores were busy".format(**machine)
    if machine["waiting_ratio"] is not None:
        text += "; some program waited for a core in {:.0%} of the time".format(machine["waiting_ratio"])
    return text + "."


def _results(folder: Path, name: str) -> Path:
    return folder / (name + ".xml")


def _git(*arguments: str) -> "str | None":
    """Return what git prints; None where it does not answer, as in an unpacked archive or for another user's files."""
    try:
        completed = subprocess.run(
            ["git", *arguments], cwd=str(ROOT), stdout=subprocess.PIPE, stderr=subprocess.DEVNULL
        )
    except OSError:
        return None
    return completed.stdout.decode().strip() if completed.returncode == 0 else None


if __name__ == "__main__":
    sys.exit(main())
