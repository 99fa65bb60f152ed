"""docs/tables.md is up to date with its generator."""

from __future__ import annotations

from pathlib import Path

from headroom.schemas.tables import ALL_TABLES
from scripts.docs.tables import markdown

REPOSITORY = Path(__file__).resolve().parents[3]


def test_the_page_of_tables_is_the_one_that_the_code_writes() -> None:
    page = (REPOSITORY / "docs" / "tables.md").read_text(encoding="utf-8")
    assert page == markdown(), "write it anew: python -m scripts.docs.tables > docs/tables.md"


def test_the_page_names_every_column_with_its_meaning() -> None:
    page = markdown()
    missing = [(t.path, c.name) for t in ALL_TABLES for c in t.columns if f"| `{c.name}` |" not in page]
    assert missing == []
    assert [(t.path, c.name) for t in ALL_TABLES for c in t.columns if not c.meaning] == []


def test_the_readme_names_every_table() -> None:
    readme = (REPOSITORY / "README.md").read_text(encoding="utf-8")
    assert [t.path for t in ALL_TABLES if f"`{t.path}`" not in readme] == []
