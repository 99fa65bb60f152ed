"""The pictures of docs/performance.md: what a tick costs as clusters grow, and what pages are worth, tool by tool."""

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
# The name of a tool, and that of its figures before precision and recall.
_TOOLS = {
    "Headroom": "alert",
    "Strimzi's rules": "stock_strimzi",
    "Grafana's rules": "stock_grafana",
    "Confluent's rules": "stock_confluent",
}
_WORTH = ("precision", "recall")
# The file stands alone, without scripts from elsewhere.
_LOOK = {
    "width": 720,
    "height": 420,
    "legend_at_bottom": True,
    "legend_at_bottom_columns": 1,
    "style": CleanStyle,
    "js": (),
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
        **_LOOK,
    )
    for title, line in lines.items():
        chart.add(title, line)
    return _rendered(chart, "cost")


def precision_and_recall(results: Iterable[Mapping[str, Any]]) -> str | None:
    """Return the picture as SVG, bars of precision and recall for each tool; None: nothing is measured.

    Args:
        results: of ``benchmarks/results.json``.
    """
    known = {result["name"]: result["value"] for result in results}
    bars = {worth: [known.get(f"{prefix}_{worth}") for prefix in _TOOLS.values()] for worth in _WORTH}
    if not any(value is not None for line in bars.values() for value in line):
        return None
    chart = pygal.Bar(
        title="Pages that mean a fault, and faults that make a page",
        x_labels=list(_TOOLS),
        range=(0, 1),
        value_formatter=lambda ratio: f"{ratio:.2f}",
        print_values=True,
        **_LOOK,
    )
    for worth, line in bars.items():
        chart.add(worth, line)
    return _rendered(chart, "precision")


def _rendered(chart: pygal.graph.graph.Graph, name: str) -> str:
    # A name of its own at random would change the file each time.
    chart.uuid = name
    picture: str = chart.render(is_unicode=True)
    return picture
