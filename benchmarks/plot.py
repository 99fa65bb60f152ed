"""Pictures of docs/performance.md: cost of a tick by cluster size, and precision and recall by tool."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from typing import Any

import pygal
from pygal.style import CleanStyle

# Title of each line, and the name of its figures without the size.
_LINES = {
    "pipeline: both paths, until a tick is recorded": "sustained_interval_s",
    "ceiling: Spark and Delta alone": "ceiling_s",
}
# Name of each tool, and the prefix of its figures.
_TOOLS = {
    "Headroom": "alert",
    "Strimzi's rules": "stock_strimzi",
    "Grafana's rules": "stock_grafana",
    "Confluent's rules": "stock_confluent",
}
_MEASURES = ("precision", "recall")
# No scripts: the SVG must not load anything from the network.
_OPTIONS = {
    "width": 720,
    "height": 420,
    "legend_at_bottom": True,
    "legend_at_bottom_columns": 1,
    "style": CleanStyle,
    "js": (),
}
Point = tuple[int, float]


def points(results: Iterable[Mapping[str, Any]], name: str) -> list[Point]:
    """Return (partitions, value) of a figure with several sizes, ordered by size.

    Args:
        results: entries of ``benchmarks/results.json``.
        name: name of the figure without the size: ``ceiling_s`` for ``ceiling_s_2k`` and ``ceiling_s_200k``.
    """
    sized = ((re.fullmatch(rf"{re.escape(name)}_(\d+)k", result["name"]), result["value"]) for result in results)
    return sorted((int(match[1]) * 1000, value) for match, value in sized if match)


def cost_per_tick(results: Iterable[Mapping[str, Any]]) -> str | None:
    """Return an SVG with seconds per tick by partitions, both axes logarithmic; None without any figure.

    Args:
        results: entries of ``benchmarks/results.json``.
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
        **_OPTIONS,
    )
    for title, line in lines.items():
        chart.add(title, line)
    return _render(chart, "cost")


def precision_and_recall(results: Iterable[Mapping[str, Any]]) -> str | None:
    """Return an SVG with bars of precision and recall by tool; None without any figure.

    Args:
        results: entries of ``benchmarks/results.json``.
    """
    known = {result["name"]: result["value"] for result in results}
    bars = {measure: [known.get(f"{prefix}_{measure}") for prefix in _TOOLS.values()] for measure in _MEASURES}
    if not any(value is not None for line in bars.values() for value in line):
        return None
    chart = pygal.Bar(
        title="Pages that mean a fault, and faults that make a page",
        x_labels=list(_TOOLS),
        range=(0, 1),
        value_formatter=lambda ratio: f"{ratio:.2f}",
        print_values=True,
        **_OPTIONS,
    )
    for measure, line in bars.items():
        chart.add(measure, line)
    return _render(chart, "precision")


def _render(chart: pygal.graph.graph.Graph, name: str) -> str:
    # A random id would change the file in every run.
    chart.uuid = name
    picture: str = chart.render(is_unicode=True)
    return picture
