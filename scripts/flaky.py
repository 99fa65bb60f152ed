"""Looks for tests that fail by chance: whole runs in random order, every second one beside a busy process.

Standard library only, as run_tests.py.
"""

import argparse
import json
import random
import subprocess
import sys
from collections import Counter
from pathlib import Path

import run_tests


def main() -> int:
    """Run the tiers several times, print what failed and how often, and return 1 if anything did."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("runs", type=int, nargs="?", default=6, help="number of runs")
    parser.add_argument("--tiers", nargs="+", default=[], metavar="TIER", help="all if none is given")
    arguments = parser.parse_args()
    records = []
    try:
        for number in range(arguments.runs):
            seed, beside = random.randrange(10**6), number % 2
            print(f"\n==== run {number + 1} of {arguments.runs}: order {seed}, beside {beside}", flush=True)
            command = [sys.executable, str(Path(run_tests.__file__)), *arguments.tiers]
            before = set(run_tests.RECORDS.glob("*.json"))
            subprocess.run([*command, "--keep-going", "--order", str(seed), "--beside", str(beside)])
            records += [json.loads(file.read_text()) for file in set(run_tests.RECORDS.glob("*.json")) - before]
    except KeyboardInterrupt:
        return 130
    print("\n" + summary(records), flush=True)
    return int(any(record["code"] for record in records))


def summary(records: "list[dict[str, object]]") -> str:
    """Return as text which tests failed in which runs, and the minutes of each run."""
    lines = [f"{len(records)} runs"]
    lines += [
        "  order {order}, beside {beside}: {minutes:.1f} minutes, exit code {code}".format(
            minutes=record["machine"]["seconds"] / 60, **record
        )
        for record in records
    ]
    failed = Counter(one["test"] for record in records for one in failures(record))
    lines += [f"{count} of {len(records)} runs: {test}" for test, count in failed.most_common()]
    return "\n".join([*lines, "No test failed."] if not failed else lines)


def failures(record: "dict[str, object]") -> "list[dict[str, str]]":
    """Return the failed tests of a run; a step that failed without any counts as one."""
    found = []
    for step in record["steps"]:
        failed = step.get("failed", [])
        found += failed
        if step["code"] != 0 and not failed:
            found.append({"test": step["name"], "reason": "exit code {}".format(step["code"])})
    return found


if __name__ == "__main__":
    sys.exit(main())
