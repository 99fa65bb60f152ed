"""Workers of the integration tier: a module stays in one of them."""

from __future__ import annotations

from unittest.mock import MagicMock

import pytest

from tests.support.by_module import ByModule


@pytest.mark.parametrize(
    ("test", "scope"),
    [("tests/test_watch.py::test_0", "tests/test_watch.py"), ("tests/test_cli.py::test_0[a::b]",) * 2],
)
def test_a_module_stays_together_unless_its_tests_have_nothing_in_common(test: str, scope: str) -> None:
    config = MagicMock()
    config.getvalue.return_value = ["popen"] * 2
    scheduler = ByModule(config, MagicMock())
    scheduler.spread = frozenset({"test_cli"})
    assert scheduler._split_scope(test) == scope
