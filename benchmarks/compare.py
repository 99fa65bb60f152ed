"""``python -m benchmarks.compare``: every figure of results.json beside the one before it, and what got worse.

The figures before are those of earlier commits of results.json. A figure got worse if it changed for the worse by more
than its noise: the spread of repeated runs of the same code on the same machine, as far as such runs are on record.
"""

from __future__ import annotations

import json
import subprocess
import sys
from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from enum import Enum
from typing import Any

import click

from benchmarks.goals import GOALS
from benchmarks.results import CHECKOUT, RESULTS, read
from headroom.cli.common.output import echo, print_json, print_table

# Repeated runs of figures without a record of their own differed by up to this on a shared machine.
DEFAULT_NOISE_RATIO = 0.1
# Units of which less is better; of the others more is better, or the goal tells.
_LESS_IS_BETTER = frozenset({"s", "bytes", "ticks", "files", "events", "alerts", "ratio/h", "rates"})
_MORE_IS_BETTER = frozenset({"rows/s"})
_DEPENDS_ON_MACHINE = frozenset({"s", "rows/s"})


class FigureChange(str, Enum):
    """Change of a figure from one measurement to the next."""

    BETTER = "better"
    WORSE = "worse"
    SAME = "within noise"
    # No rule tells which direction is better.
    OTHER = "changed"
    # On another processor, which times depend on.
    MACHINE = "other machine"
    NEW = "new"


@dataclass(frozen=True)
class Measurement:
    """One measurement of a figure.

    Attributes:
        value: measured value.
        unit: its unit.
        n: number of single measurements in it.
        machine: cores and processor.
        commit: commit of the code.
        date: ISO 8601 UTC.
    """

    value: float
    unit: str
    n: int
    machine: str
    commit: str
    date: str


@dataclass(frozen=True)
class Comparison:
    """A figure beside the one before it.

    Attributes:
        name: name of the figure.
        now: its newest measurement.
        before: the newest measurement of other code; None if there is none.
        noise_ratio: greatest change that counts as noise.
        repeated: number of repeated runs that the noise was taken from; 0: it is the default.
        change: the change.
    """

    name: str
    now: Measurement
    before: Measurement | None
    noise_ratio: float
    repeated: int
    change: FigureChange

    @property
    def ratio(self) -> float | None:
        """New value divided by the one before; None if there is none, or it was 0."""
        return self.now.value / self.before.value if self.before is not None and self.before.value else None


def measurements(versions: Iterable[Sequence[Mapping[str, Any]]]) -> dict[str, list[Measurement]]:
    """Return all measurements of each figure, the newest first, each once.

    Args:
        versions: contents of results.json at different times.
    """
    by_figure: dict[str, dict[tuple[str, str], Measurement]] = defaultdict(dict)
    for version in versions:
        for result in version:
            of = Measurement(
                float(result["value"]),
                result["unit"],
                result["n"],
                _processor(result["machine"]),
                result["commit"],
                result["date"],
            )
            by_figure[result["name"]].setdefault((of.date, of.commit), of)
    return {
        name: sorted(by_date.values(), key=lambda one: one.date, reverse=True) for name, by_date in by_figure.items()
    }


def compare(name: str, history: Sequence[Measurement]) -> Comparison:
    """Return the newest measurement of a figure beside the one before it.

    Args:
        name: name of the figure.
        history: its measurements, the newest first.
    """
    now = history[0]
    before = next((one for one in history if one.commit != now.commit), None)
    noise_ratio, repeated = noise(history)
    return Comparison(name, now, before, noise_ratio, repeated, _change(name, now, before, noise_ratio))


def noise(history: Sequence[Measurement]) -> tuple[float, int]:
    """Return the greatest relative change between repeated runs of the same code, and the number of these runs.

    Args:
        history: measurements of one figure.
    """
    by_code: dict[tuple[str, str], list[float]] = defaultdict(list)
    for one in history:
        by_code[one.commit, one.machine].append(one.value)
    repeated = [values for values in by_code.values() if len(values) > 1 and min(values) > 0]
    if not repeated:
        return DEFAULT_NOISE_RATIO, 0
    return max(max(values) / min(values) - 1 for values in repeated), sum(map(len, repeated))


def _change(name: str, now: Measurement, before: Measurement | None, noise_ratio: float) -> FigureChange:
    if before is None:
        return FigureChange.NEW
    if now.machine != before.machine and now.unit in _DEPENDS_ON_MACHINE:
        return FigureChange.MACHINE
    # A figure that was 0, such as lost events, has no noise.
    if abs(now.value - before.value) <= noise_ratio * abs(before.value):
        return FigureChange.SAME
    less_is_better = _less_is_better(name, now.unit)
    if less_is_better is None:
        return FigureChange.OTHER
    return FigureChange.BETTER if (now.value < before.value) == less_is_better else FigureChange.WORSE


def _less_is_better(name: str, unit: str) -> bool | None:
    if name in GOALS:
        return GOALS[name].sign != "at least"
    if unit in _LESS_IS_BETTER:
        return True
    return False if unit in _MORE_IS_BETTER else None


def _processor(machine: str) -> str:
    """Return the part of a machine's description that figures depend on: its cores and processor."""
    return machine.split(",")[0]


def stored_versions() -> Iterable[Sequence[Mapping[str, Any]]]:
    """Yield results.json as it is, and as it was in each commit that changed it."""
    yield read()
    path = RESULTS.relative_to(CHECKOUT).as_posix()
    for commit in _git("log", "--format=%H", "--", path).split():
        yield json.loads(_git("show", f"{commit}:{path}"))


def _git(*arguments: str) -> str:
    return subprocess.run(["git", *arguments], cwd=CHECKOUT, capture_output=True, text=True, check=True).stdout


@click.command()
@click.option("--only", metavar="TEXT", default="", help="Only figures with this text in their names, such as 200k.")
@click.option("--all", "every", is_flag=True, help="Also figures that stayed within noise.")
@click.option("--format", "output_format", type=click.Choice(["text", "json"]), default="text", show_default=True)
def main(only: str, every: bool, output_format: str) -> None:
    """Print every figure beside the one before it, and exit with 1 if one got worse by more than noise.

    The noise of a figure is the greatest change between repeated runs of the same commit on the same processor. Without
    such runs it is 10 %. Times on different processors are not compared.

    \b
    Example:
      python -m benchmarks.compare --only 200k
    """  # noqa: D301
    now = {result["name"] for result in read()}
    history = measurements(stored_versions())
    compared = [compare(name, history[name]) for name in sorted(now) if only in name]
    shown = [one for one in compared if every or one.change not in (FigureChange.SAME, FigureChange.NEW)]
    if output_format == "json":
        print_json([_as_json(one) for one in shown])
    else:
        header = ("figure", "before", "now", "now / before", "noise", "change", "commits")
        print_table("Figures", header, [_row(one) for one in shown])
        echo(
            f"{len(compared) - len(shown)} more stayed within noise, or are new." if len(compared) > len(shown) else ""
        )
    worse = [one.name for one in compared if one.change is FigureChange.WORSE]
    if worse:
        echo(f"Worse by more than noise: {', '.join(worse)}", err=True)
        sys.exit(1)


def _row(one: Comparison) -> tuple[str, ...]:
    ratio = "" if one.ratio is None else f"{one.ratio:.2f}"
    repeated = f"{one.repeated} runs" if one.repeated else "default"
    before = one.before
    return (
        one.name,
        "" if before is None else f"{before.value:.4g} (n {before.n})",
        f"{one.now.value:.4g} {one.now.unit} (n {one.now.n})",
        ratio,
        f"{one.noise_ratio:.0%}, {repeated}",
        one.change.value,
        f"{'' if before is None else before.commit[:7]} to {one.now.commit[:7]}",
    )


def _as_json(one: Comparison) -> dict[str, Any]:
    return {
        "name": one.name,
        "now": vars(one.now),
        "before": None if one.before is None else vars(one.before),
        "ratio": one.ratio,
        "noise_ratio": one.noise_ratio,
        "repeated": one.repeated,
        "change": one.change.value,
    }


if __name__ == "__main__":
    main()
