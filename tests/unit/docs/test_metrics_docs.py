"""docs/metrics.md is up to date with its generator."""

from __future__ import annotations

from pathlib import Path

from headroom.schemas.metrics import METRICS
from scripts.docs.metrics import markdown

REPOSITORY = Path(__file__).resolve().parents[3]


def test_the_page_of_metrics_is_the_one_that_the_code_writes() -> None:
    page = (REPOSITORY / "docs" / "metrics.md").read_text(encoding="utf-8")
    assert page == markdown(), "write it anew: python -m scripts.docs.metrics > docs/metrics.md"


def test_the_page_names_every_metric_with_its_meaning() -> None:
    page = markdown()
    assert [spec.name for spec in METRICS if f"| `{spec.name}` |" not in page or not spec.meaning] == []


def test_no_meaning_breaks_the_table() -> None:
    assert [spec.name for spec in METRICS if "|" in spec.meaning or "\n" in spec.meaning] == []
