"""The page of figures and its pictures match the results file."""

from __future__ import annotations

import xml.etree.ElementTree as ET
from typing import Any

import pytest

from benchmarks.catalogue import GROUPS
from benchmarks.goals import Goal
from benchmarks.plot import cost_per_tick, points, precision_and_recall
from benchmarks.report import PAGE, PICTURES, Picture, markdown
from benchmarks.results import read

SVG = "{http://www.w3.org/2000/svg}"


def result(name: str, value: float, group: str = "scale", unit: str = "s") -> dict[str, Any]:
    origin = {"command": f"make bench ONLY={group}", "machine": "m", "date": "2027-01-15T08:00:00Z", "commit": "abc"}
    return {"name": name, "value": value, "unit": unit, "n": 5} | origin


# The time of the pipeline is proportional to the partitions.
SCALED = [
    result("sustained_interval_s_2k", 0.5),
    result("sustained_interval_s_200k", 50.0),
    result("sustained_interval_s_20k", 5.0),
    result("ceiling_s_2k", 0.25),
    result("ceiling_s_20k", 2.0),
    result("sustained_interval_s_max", 70.0),
]


def test_the_page_is_generated_from_the_results() -> None:
    assert PAGE.read_text(encoding="utf-8") == markdown(read(), GROUPS), "write it anew: python -m benchmarks.report"


@pytest.mark.parametrize("picture", PICTURES)
def test_there_is_a_picture_where_there_are_figures_to_draw_and_only_there(picture: Picture) -> None:
    assert picture.path.exists() == (picture.draw(read()) is not None)


def test_points_are_the_sizes_of_one_figure_in_order() -> None:
    assert points(SCALED, "sustained_interval_s") == [(2000, 0.5), (20_000, 5.0), (200_000, 50.0)]
    assert points(SCALED, "sustained_interval") == []


def test_the_picture_has_a_line_for_each_figure_and_both_axes_are_logarithmic() -> None:
    picture = cost_per_tick(SCALED)
    assert picture is not None
    root = ET.fromstring(picture)
    series = [g for g in root.iter(f"{SVG}g") if g.get("class", "").startswith("series serie-")]
    dots = [[(float(c.get("cx", "nan")), float(c.get("cy", "nan"))) for c in g.iter(f"{SVG}circle")] for g in series]
    pipeline, ceiling = [line for line in dots if line]
    assert (len(pipeline), len(ceiling)) == (3, 2)
    (x0, y0), (x1, y1), (x2, y2) = pipeline
    # Equal factors are equal distances; y grows downwards.
    assert (x1 - x0, y1 - y0) == pytest.approx((x2 - x1, y2 - y1), abs=0.1)
    assert x0 < x1
    assert y0 > y1
    texts = "".join(root.itertext())
    assert all(shown in texts for shown in ("pipeline", "ceiling", "2,000", "200,000", "Seconds per tick"))


def test_each_tool_has_a_bar_of_its_precision_and_of_its_recall_where_they_are_known() -> None:
    known = {"alert_precision": 1.0, "alert_recall": 0.75, "stock_strimzi_precision": 0.5, "stock_strimzi_recall": 0.25}
    picture = precision_and_recall([result(name, value, "precision", "ratio") for name, value in known.items()])
    assert picture is not None
    root = ET.fromstring(picture)
    heights = [float(bar.get("height", "nan")) for bar in root.iter(f"{SVG}rect") if "rect" in bar.get("class", "")]
    # Precision of both, then recall of both.
    assert [height / heights[0] for height in heights] == pytest.approx([1.0, 0.5, 0.75, 0.25], abs=0.01)
    assert all(shown in "".join(root.itertext()) for shown in ("Headroom", "Confluent's rules", "precision", "recall"))


def test_the_same_figures_make_the_same_picture() -> None:
    assert cost_per_tick(SCALED) == cost_per_tick(reversed(SCALED))


def test_without_figures_there_is_no_picture() -> None:
    assert cost_per_tick([result("memory_peak_bytes", 1.0)]) is None
    assert precision_and_recall([result("memory_peak_bytes", 1.0)]) is None


def test_the_page_shows_goals_that_are_reached_missed_and_not_measured() -> None:
    # The goals: at most 3.5, at least 0.4, at most 0.05.
    measured = [
        result("sustained_interval_s_200k", 12.3),
        result("ceiling_rows_ratio_200k", 0.5, unit="ratio"),
        result("memory_growth_ratio_per_hour", 0.05, "memory", "ratio/h"),
    ]
    page = markdown(measured, {name: GROUPS[name] for name in ("scale", "memory")})
    assert "| `sustained_interval_s_200k` | at most 3.5 | 12.3 s | **falls short** |" in page
    assert "| `ceiling_rows_ratio_200k` | at least 0.4 | 0.5 | reached |" in page
    assert "| `memory_growth_ratio_per_hour` | at most 0.05 | 0.05 ratio/h | reached |" in page
    assert "| `cost_growth_ratio` | at most 1.2 | not measured yet | |" in page


def test_the_page_has_a_section_for_every_group_with_its_own_figures() -> None:
    page = markdown([*SCALED, result("memory_peak_bytes", 1.25e9, "memory", "bytes")], GROUPS)
    sections = {text.partition("\n")[0]: text for text in page.split("\n## ")}
    assert [name for name in GROUPS if name not in sections] == []
    assert "| `ceiling_s` | 0.25 s | 2 s | not measured yet |" in sections["scale"]
    assert "![" in sections["scale"]
    assert "| `memory_peak_bytes` | 1,250.0 MB | 5 | abc |" in sections["memory"]
    assert "Not measured yet." in sections["smallest"]


def test_figures_that_were_measured_with_options_are_in_the_section_of_their_group() -> None:
    known = result("sustained_interval_s_200k", 12.3)
    page = markdown([{**known, "command": 'make bench ONLY=scale OPTIONS="--partitions 200000"'}], GROUPS)
    section = next(text for text in page.split("\n## ") if text.startswith("scale\n"))
    assert 'Measured by `make bench ONLY=scale OPTIONS="--partitions 200000"`' in section


@pytest.mark.parametrize(
    ("sign", "met"),
    [("at most", [True, True, False]), ("at least", [False, True, True]), ("under", [True, False, False])],
)
def test_a_goal_is_met_within_its_limit(sign: str, met: list[bool]) -> None:
    assert [Goal(sign, 1.0).is_met(value) for value in (0.9, 1.0, 1.1)] == met


def test_a_goal_may_limit_the_distance_from_zero() -> None:
    assert [Goal("within", 1.0).is_met(value) for value in (-1.1, -1.0, 0.0, 1.0, 1.1)] == [
        False,
        True,
        True,
        True,
        False,
    ]
