"""Looks for tests that fail by chance: whole runs in random order, every second one beside a busy process.

Standard library only, as run_tests.py.
"""

import argparse
import json
import random
import sys
from collections import Counter
from pathlib import Path

import child
import run_tests


def main() -> int:
    """Run the tiers several times, print what failed how often, and return 1 if anything did, 130 if interrupted."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("runs", type=int, nargs="?", default=6, help="number of runs")
    parser.add_argument("--tiers", nargs="+", default=[], metavar="TIER", help="all if none is given")
    arguments = parser.parse_args()
    if arguments.runs < 1:
        parser.error("at least one run is needed")
    child.take_signals_for_ctrl_c()
    records, without_record, code = [], 0, 0
    try:
        for number in range(arguments.runs):
            seed, beside = random.randrange(10**6), number % 2
            print(f"\n==== run {number + 1} of {arguments.runs}: order {seed}, beside {beside}", flush=True)
            own, record = _run(["--order", str(seed), "--beside", str(beside), *arguments.tiers])
            if own == run_tests.INTERRUPTED:
                raise KeyboardInterrupt
            code = code or own
            records += [record] if record else []
            if record is None:
                print(f"==== run {number + 1} left no record: exit code {own}", flush=True)
                without_record += 1
    except KeyboardInterrupt:
        code = run_tests.INTERRUPTED
    print("\n" + summary(records, without_record), flush=True)
    return code


def _run(arguments: "list[str]") -> "tuple[int, dict[str, object] | None]":
    """Return the exit code of one run, and its record; None if it wrote none."""
    before = set(run_tests.RECORDS.glob("*.json"))
    process = child.start([sys.executable, str(Path(run_tests.__file__)), "--keep-going", *arguments])
    code = child.finish(process)
    # Others may run in this checkout.
    new = set(run_tests.RECORDS.glob(f"*-{process.pid}.json")) - before
    return code, json.loads(new.pop().read_text()) if new else None


def summary(records: "list[dict[str, object]]", without_record: int = 0) -> str:
    """Return as text which tests failed in which runs, and the minutes of each run.

    Args:
        records: of runs that were not interrupted.
        without_record: number of runs that left none, so that it is unknown what failed in them.
    """
    lines = [f"{len(records)} runs" + (f", and {without_record} without a record" if without_record else "")]
    lines += [
        "  order {order}, beside {beside}: {minutes:.1f} minutes, exit code {code}".format(
            minutes=record["machine"]["seconds"] / 60, **record
        )
        for record in records
    ]
    failed = Counter(one["test"] for record in records for one in run_tests.failures(record))
    lines += [f"{count} of {len(records)} runs: {test}" for test, count in failed.most_common()]
    if records and not failed and not without_record:
        lines.append("No test failed.")
    return "\n".join(lines)


if __name__ == "__main__":
    sys.exit(main())
