"""Workers of the integration tier: a module stays in one of them, and no three of them fill the machine."""

from __future__ import annotations

from collections import OrderedDict
from typing import Any
from unittest.mock import MagicMock

import pytest

from tests.support.by_module import ByModule

TESTS = [f"tests/test_{name}.py::test_{n}" for name in ("watch", "demo", "bands", "plan", "cli") for n in (0, 1)]


def scheduler() -> ByModule:
    """A scheduler whose queue has the modules above, two tests in each; the first three are heavy."""
    config = MagicMock()
    config.getvalue.return_value = ["popen"] * 3
    made = ByModule(config, MagicMock())
    made.heavy, made.spread = frozenset({"test_watch", "test_demo", "test_bands"}), frozenset({"test_cli"})
    made.collection = TESTS
    queue: OrderedDict[str, dict[str, bool]] = OrderedDict()
    for test in TESTS:
        queue.setdefault(made._split_scope(test), {})[test] = False
    made.workqueue = queue
    return made


def given(made: ByModule, node: Any) -> list[str]:
    """What a worker is given next."""
    made.registered_collections.setdefault(node, TESTS)
    made.assigned_work.setdefault(node, OrderedDict())
    before = set(made.assigned_work[node])
    made._assign_work_unit(node)
    return [scope for scope in made.assigned_work[node] if scope not in before]


def finish(made: ByModule, node: Any) -> None:
    for unit in made.assigned_work[node].values():
        unit.update(dict.fromkeys(unit, True))


def test_a_third_worker_gets_a_light_module_while_two_run_heavy_ones() -> None:
    made, nodes = scheduler(), [MagicMock() for _ in range(3)]
    assert [given(made, node) for node in nodes] == [
        ["tests/test_watch.py"],
        ["tests/test_demo.py"],
        ["tests/test_plan.py"],
    ]
    finish(made, nodes[0])
    assert given(made, nodes[0]) == ["tests/test_bands.py"]


def test_when_only_heavy_ones_are_left_they_are_run_all_the_same() -> None:
    made, nodes = scheduler(), [MagicMock() for _ in range(3)]
    for node in nodes:
        given(made, node)
    assert [given(made, nodes[2]) for _ in range(3)] == [
        ["tests/test_cli.py::test_0"],
        ["tests/test_cli.py::test_1"],
        ["tests/test_bands.py"],
    ]


@pytest.mark.parametrize(
    ("test", "scope"),
    [("tests/test_watch.py::test_0", "tests/test_watch.py"), ("tests/test_cli.py::test_0[a::b]",) * 2],
)
def test_a_module_stays_together_unless_its_tests_have_nothing_in_common(test: str, scope: str) -> None:
    assert scheduler()._split_scope(test) == scope
