"""Charts as pictures without script and style: the page's own style sheet gives them their colours, light and dark."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from itertools import pairwise
from typing import Any, NamedTuple

import pygal

from headroom.schemas.text.amounts import clock_text, percent_text, rate_text

_WIDTH, _HEIGHT = 900, 280
# Distances of labels on the time axis, and how many there are at most.
_STEPS_MS = tuple(s * 1000 for s in (5, 10, 30, 60, 300, 600, 1800, 3600, 10_800, 21_600, 43_200, 86_400))
_MOST_LABELS = 8
# Annotations of a kind along the axis.
_MOST_ANNOTATIONS = 120
# Points of a line over actions; more are not seen.
_MOST_POINTS = 500
# What is this near to the first or last point is annotated there.
_NEAR_MS = 30_000
# Beyond any rate, size and time.
_GREATEST = 1e18
_NOT_IN_A_PAGE = ("defs", "script", "style")


class ChartLine(NamedTuple):
    """A line of a chart.

    Attributes:
        title: title in the legend.
        values: a value for each point of time; None: a gap.
        is_area: whether the area below it is filled.
        has_dots: whether each value has a dot, so that one between two gaps is seen.
    """

    title: str
    values: Sequence[float | None]
    is_area: bool = False
    has_dots: bool = False


class ChartAnnotations(NamedTuple):
    """Points of the axis that a chart annotates, of one kind.

    Attributes:
        title: title in the legend.
        at: the points: of time, epoch milliseconds.
    """

    title: str
    at: Sequence[int]


class ChartAxis(NamedTuple):
    """The lower axis of a chart.

    Attributes:
        values: the points at which lines have values, in order.
        labels: points that are named.
        text: returns the name of a point.
    """

    values: Sequence[int]
    labels: Sequence[int]
    text: Callable[[float], str]


def over_time(
    title: str,
    times_ms: Sequence[int],
    lines: Sequence[ChartLine],
    text: Callable[[float], str] = rate_text,
    annotations: Sequence[ChartAnnotations] = (),
    *,
    from_zero: bool = True,
    bridged_ms: int | None = None,
) -> str:
    """Return the picture of values over time as SVG.

    Args:
        title: what it shows, for those who do not see it.
        times_ms: points of time, epoch milliseconds, in order.
        lines: lines with as many values, the one in front last.
        text: returns a value as text.
        annotations: points of time that get upright lines; those far beyond the values are left out.
        from_zero: whether the picture begins at 0; if not, the values are points of time too.
        bridged_ms: longest time between two points that a line bridges, milliseconds; None: any. Beyond it nothing is
            known, and the line has a gap.
    """
    lines = [line._replace(values=[_finite(value) for value in line.values]) for line in lines]
    values = [value for line in lines for value in line.values if value is not None]
    least, most = min(values, default=0.0), max(values, default=1.0)
    bounds = (0.0, 1.05 * most) if from_zero else (least, most)
    axis = ChartAxis(times_ms, _labels(times_ms), axis_clock)
    y_labels = None if from_zero else _labels([round(least), round(most)])
    return _drawn(title, axis, lines, text, _within(annotations, times_ms), bounds, y_labels, bridged_ms)


def has_gap(times_ms: Sequence[int], bridged_ms: int) -> bool:
    """Return whether two points of time that follow each other are further apart than a line bridges.

    Args:
        times_ms: points of time, epoch milliseconds, in order.
        bridged_ms: as of ``over_time``.
    """
    return any(later - earlier > bridged_ms for earlier, later in pairwise(times_ms))


def over_actions(title: str, lines: Sequence[ChartLine], chosen: int) -> str:
    """Return the picture of shares over the number of actions, from none on, as SVG.

    Args:
        title: what it shows, for those who do not see it.
        lines: lines of shares, 0 to 1, the one in front last; a value for no action, and for each further one.
        chosen: number of actions that are chosen, which gets an upright line.
    """
    most = len(lines[0].values) - 1
    step, thin = max(1, round(most / _MOST_LABELS)), max(1, most // _MOST_POINTS)
    shown = sorted({*range(0, most, thin), most, chosen})
    thinned = [line._replace(values=[line.values[n] for n in shown]) for line in lines]
    axis = ChartAxis(shown, list(range(0, most + 1, step)), lambda number: f"{number:,.0f}")
    return _drawn(title, axis, thinned, percent_text, [ChartAnnotations("chosen", [chosen])], (0.0, 1.0), None)


def _drawn(
    title: str,
    axis: ChartAxis,
    lines: Sequence[ChartLine],
    text: Callable[[float], str],
    shown: Sequence[ChartAnnotations],
    bounds: tuple[float, float],
    y_labels: Sequence[int] | None,
    bridged: int | None = None,
) -> str:
    lowest, highest = bounds
    chart = pygal.XY(
        width=_WIDTH,
        height=_HEIGHT,
        js=[],
        css=[],
        classes=["chart"],
        no_prefix=True,
        disable_xml_declaration=True,
        pretty_print=False,
        show_dots=False,
        include_x_axis=y_labels is None,
        legend_at_bottom=True,
        legend_at_bottom_columns=len(lines) + len(shown),
        truncate_legend=-1,
        value_formatter=text,
        x_value_formatter=axis.text,
        x_labels=axis.labels,
        range=bounds,
        y_labels=y_labels,
        margin=4,
    )
    for line in lines:
        points = _with_gaps(axis.values, line, bridged)
        chart.add(line.title, points, fill=line.is_area, allow_interruptions=True, show_dots=line.has_dots)
    for annotation in shown:
        upright = [point for x in annotation.at for point in ((x, lowest), (x, highest), (x, None))]
        chart.add(annotation.title, upright, allow_interruptions=True)
    # The library numbers the colours by the order of the lines; annotations have those of their kind in every chart.
    classes = {
        f"color-{len(lines) + n}": f"annotation-{annotation.title.replace(' ', '-')}"
        for n, annotation in enumerate(shown)
    }
    chart.add_xml_filter(lambda root: _plain(root, title, classes))
    rendered: str = chart.render(is_unicode=True)
    return rendered


def _with_gaps(values: Sequence[int], line: ChartLine, bridged: int | None) -> list[tuple[int, float | None]]:
    """Return the points of a line: at a gap it ends, and an area ends and begins at its base.

    Args:
        values: points of the axis, in order.
        line: the line.
        bridged: longest distance of two points that it bridges; None: any.
    """
    points: list[tuple[int, float | None]] = []
    last: int | None = None
    for x, y in zip(values, line.values, strict=True):
        if last is not None and (y is None or (bridged is not None and x - last > bridged)):
            points += [*([(last, 0.0)] if line.is_area else []), (last, None)]
            last = None
        if y is not None:
            if line.is_area and last is None and points:
                points.append((x, 0.0))
            last = x
        points.append((x, y))
    # The library pads lines, and then leaves out the end of an area.
    return [*points, (last, 0.0)] if line.is_area and last is not None else points


def _within(annotations: Sequence[ChartAnnotations], times_ms: Sequence[int]) -> list[ChartAnnotations]:
    """Return the annotations between the first and the last time, or near, one for each distance that can be seen."""
    if not times_ms:
        return []
    first_ms, last_ms = times_ms[0], times_ms[-1]
    step_ms = max(1, (last_ms - first_ms) // _MOST_ANNOTATIONS)
    shown = []
    for title, of_kind in annotations:
        # What began a move came just before its first point.
        near = (min(max(ms, first_ms), last_ms) for ms in of_kind if first_ms - _NEAR_MS <= ms <= last_ms + _NEAR_MS)
        apart = {(ms - first_ms) // step_ms: ms for ms in sorted(near, reverse=True)}
        if apart:
            shown.append(ChartAnnotations(title, sorted(apart.values())))
    return shown


def _finite(value: float | None) -> float | None:
    """Return a value that a picture can have; None for others."""
    return value if value is not None and abs(value) < _GREATEST else None


def axis_clock(epoch_ms: float, read_ms: int | None = None) -> str:
    """Return a time of day as an axis has it: ``clock_text`` without its zone."""
    return clock_text(round(epoch_ms), read_ms).removesuffix(" UTC")


def _labels(times_ms: Sequence[int]) -> list[int]:
    """Return round times within a range, a few of them."""
    if not times_ms:
        return []
    first_ms, last_ms = times_ms[0], times_ms[-1]
    step_ms = next((s for s in _STEPS_MS if (last_ms - first_ms) / s <= _MOST_LABELS), _STEPS_MS[-1])
    # A copy that hardly gains is expected in years.
    step_ms *= max(1, -(-(last_ms - first_ms) // (step_ms * _MOST_LABELS)))
    return list(range(-(-first_ms // step_ms) * step_ms, last_ms + 1, step_ms))


def _plain(root: Any, title: str, classes: Mapping[str, str]) -> Any:
    """Return the picture without its script, style sheet and inline styles, which the page's policy forbids.

    Args:
        root: the picture.
        title: what it shows.
        classes: new names of classes.
    """
    for node in list(root.iter()):
        for child in list(node):
            # A comment has a function as its tag.
            if not isinstance(child.tag, str) or _name(child) in _NOT_IN_A_PAGE:
                node.remove(child)
        node.attrib.pop("style", None)
        if "class" in node.attrib:
            node.set("class", " ".join(classes.get(name, name) for name in node.get("class").split()))
    root.attrib.pop("id", None)
    root.set("role", "img")
    root.set("aria-label", title)
    # A title of the whole picture, in the library's own name, would be shown wherever the pointer rests.
    for child in list(root):
        if _name(child) == "title":
            root.remove(child)
    return root


def _name(node: Any) -> str:
    return str(node.tag).rpartition("}")[2]
