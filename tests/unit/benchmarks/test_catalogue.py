"""The table of groups in benchmarks/README.md, and the modules that it leads to."""

from __future__ import annotations

import re

import pytest

from benchmarks.catalogue import GROUPS
from benchmarks.readme import README, with_table


def test_the_table_of_the_page_is_that_of_the_catalogue() -> None:
    page = README.read_text(encoding="utf-8")
    assert page == with_table(page, GROUPS.values()), "write it again: python -m benchmarks.readme"
    rows = re.findall(r"^\| \[(\w+)\]\((\S+)\) \| .* \| `make bench ONLY=(\w+)` \|$", page, re.MULTILINE)
    assert [name for name, _, _ in rows] == [name for _, _, name in rows] == list(GROUPS)
    assert [path for _, path, _ in rows if not (README.parent / path).is_file()] == []


def test_a_page_without_a_place_for_the_table_is_an_error() -> None:
    with pytest.raises(ValueError, match="no place"):
        with_table("# Benchmarks\n", GROUPS.values())


@pytest.mark.parametrize("name", GROUPS)
def test_a_group_asks_one_question_and_its_module_describes_it(name: str) -> None:
    group = GROUPS[name]
    assert group.question.count("?") == 1
    assert group.question.endswith("?")
    assert (group.module.__doc__ or "").startswith(f"Group ``{name}``: ")
