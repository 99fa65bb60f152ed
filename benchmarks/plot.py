"""The picture of docs/performance.md: how the cost of a tick grows with the partitions of a cluster."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from typing import Any

import pygal
from pygal.style import CleanStyle

# What is drawn of results.json: the name of a line, and that of its figures before the size.
_LINES = {
    "pipeline: both paths, until a tick is recorded": "sustained_interval_s",
    "ceiling: Spark and Delta alone": "ceiling_s",
}
Point = tuple[int, float]


def points(results: Iterable[Mapping[str, Any]], name: str) -> list[Point]:
    """Return (partitions, value) of a figure that is measured for several sizes, in the order of size.

    Args:
        results: of ``benchmarks/results.json``.
        name: of the figure without the size: ``ceiling_s`` for ``ceiling_s_2k`` and ``ceiling_s_200k``.
    """
    sized = ((re.fullmatch(rf"{re.escape(name)}_(\d+)k", result["name"]), result["value"]) for result in results)
    return sorted((int(match[1]) * 1000, value) for match, value in sized if match)


def cost_per_tick(results: Iterable[Mapping[str, Any]]) -> str | None:
    """Return the picture as SVG, seconds per tick against partitions, both logarithmic; None: nothing is measured.

    Args:
        results: of ``benchmarks/results.json``.
    """
    known = list(results)
    lines = {title: points(known, name) for title, name in _LINES.items()}
    drawn = sorted({point for line in lines.values() for point in line})
    if not drawn:
        return None
    chart = pygal.XY(
        logarithmic=True,
        title="Seconds per tick",
        x_title="partitions of the cluster",
        x_labels=sorted({partitions for partitions, _ in drawn}),
        x_value_formatter=lambda partitions: f"{partitions:,.0f}",
        value_formatter=lambda seconds: f"{seconds:.3g} s",
        width=720,
        height=420,
        legend_at_bottom=True,
        legend_at_bottom_columns=1,
        style=CleanStyle,
        # The file stands alone.
        js=(),
    )
    # A name of its own at random would change the file each time.
    chart.uuid = "cost"
    for title, line in lines.items():
        chart.add(title, line)
    picture: str = chart.render(is_unicode=True)
    return picture
