"""``python -m benchmarks.report``: writes docs/performance.md and its pictures from benchmarks/results.json."""

from __future__ import annotations

import inspect
import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from benchmarks.catalogue import GROUPS, BenchGroup
from benchmarks.goals import GOALS, Goal
from benchmarks.plot import cost_per_tick, precision_and_recall
from benchmarks.results import CHECKOUT, read

PAGE = CHECKOUT / "docs" / "performance.md"
_IMAGES = PAGE.parent / "images"
Result = Mapping[str, Any]
Groups = Mapping[str, BenchGroup[Any]]


@dataclass(frozen=True)
class Picture:
    """A picture of some figures.

    Attributes:
        path: path of its file.
        title: title and alternative text.
        draw: returns the picture as SVG, or None if the results have none of its figures.
    """

    path: Path
    title: str
    draw: Callable[[Iterable[Result]], str | None]


PICTURES = (
    Picture(_IMAGES / "cost.svg", "Seconds per tick against the partitions of the cluster", cost_per_tick),
    Picture(_IMAGES / "precision.svg", "Precision and recall of Headroom and of stock rules", precision_and_recall),
)

_NOT_YET = "not measured yet"
_INTRODUCTION = f"""# Performance

`make bench` measures all figures, on real brokers where brokers matter. `make bench ONLY=NAME` runs one of the groups
below. `python -m benchmarks.run NAME --help` lists its options, for shorter runs.
[benchmarks/README.md](../benchmarks/README.md) has the question of each group and about how long it takes.

[benchmarks/results.json](../benchmarks/results.json) has each figure with its command, machine, date and commit. This
page is generated from that file after each group, or by `python -m benchmarks.report`. *{_NOT_YET}* marks figures
without a value. `python -m benchmarks.compare` prints each figure beside the one before it, and names those that got
worse by more than their noise. Whoever changes the pipeline, the collector or its messages runs `make bench ONLY=guard`
before and after, and then the comparison.
"""


def write(groups: Groups) -> None:
    """Write the page and its pictures. A picture without any figure is removed."""
    results = read()
    for picture in PICTURES:
        drawn = picture.draw(results)
        picture.path.unlink(missing_ok=True)
        if drawn is not None:
            picture.path.parent.mkdir(exist_ok=True)
            picture.path.write_text(drawn, encoding="utf-8")
    PAGE.write_text(markdown(results, groups), encoding="utf-8")


def markdown(results: Sequence[Result], groups: Groups) -> str:
    """Return the page as Markdown: the goals and whether they are met, then a section with the figures of each group.

    Args:
        results: entries of ``benchmarks/results.json``.
        groups: groups by name. The docstring of its module becomes the text of a section.
    """
    parts = [_INTRODUCTION, "## Goals\n", _goals({result["name"]: result for result in results})]
    for name, group in groups.items():
        own = [result for result in results if re.search(rf"\bONLY={name}( |$)", result["command"])]
        parts += [f"## {name}\n", _description(group), *_pictures(own), _figures(own)]
    return "\n".join(parts)


def _pictures(results: Sequence[Result]) -> list[str]:
    drawn = [picture for picture in PICTURES if picture.draw(results) is not None]
    return [f"![{picture.title}]({picture.path.relative_to(PAGE.parent)})\n" for picture in drawn]


def _description(group: BenchGroup[Any]) -> str:
    """Return the docstring of a group's module, without the group's name."""
    docstring = inspect.getdoc(group.module) or ""
    text = docstring.removeprefix(f"Group ``{group.name}``: ").replace("``", "`")
    return f"{text[:1].upper()}{text[1:]}\n"


def _goals(by_name: Mapping[str, Result]) -> str:
    rows = [_goal_row(name, goal, by_name.get(name)) for name, goal in GOALS.items()]
    return _table(("figure", "goal", "measured", ""), rows)


def _goal_row(name: str, goal: Goal, result: Result | None) -> tuple[str, ...]:
    wanted = f"{goal.sign} {goal.limit:g}"
    if result is None:
        return f"`{name}`", wanted, _NOT_YET, ""
    return f"`{name}`", wanted, _amount(result), "reached" if goal.is_met(result["value"]) else "**falls short**"


def _figures(results: Sequence[Result]) -> str:
    if not results:
        return f"{_NOT_YET.capitalize()}.\n"
    sized = {result["name"]: re.fullmatch(r"(\w+)_(\d+)k", result["name"]) for result in results}
    plain = [result for result in results if sized[result["name"]] is None]
    by_size = {(match[1], int(match[2])): result for result in results if (match := sized[result["name"]])}
    tables = [_by_size(by_size)] if by_size else []
    if plain:
        rows = [(f"`{r['name']}`", _amount(r), str(r["n"]), r["commit"]) for r in plain]
        tables.append(_table(("figure", "value", "n", "commit"), rows))
    commands = sorted({f"`{result['command']}`, {result['date'][:10]}, {result['machine']}" for result in results})
    return "\n".join([*tables, *(f"Measured by {command}.\n" for command in commands)])


def _by_size(results: Mapping[tuple[str, int], Result]) -> str:
    sizes = sorted({size for _, size in results})
    rows = [
        (f"`{name}`", *(_amount(results[name, size]) if (name, size) in results else _NOT_YET for size in sizes))
        for name in sorted({name for name, _ in results})
    ]
    return _table(("figure, by partitions", *(f"{size * 1000:,}" for size in sizes)), rows)


def _amount(result: Result) -> str:
    value, unit = result["value"], result["unit"]
    if unit == "bytes":
        return f"{value / 1e6:,.1f} MB"
    text = f"{value:.3g}" if abs(value) < 1000 else f"{value:,.0f}"
    return text if unit == "ratio" else f"{text} {unit}"


def _table(header: Sequence[str], rows: Iterable[Sequence[str]]) -> str:
    lines = [header, ["---"] * len(header), *rows]
    return "\n".join(f"| {' | '.join(cells)} |".replace("|  |", "| |") for cells in lines) + "\n"


if __name__ == "__main__":
    write(GROUPS)
