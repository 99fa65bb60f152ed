"""Goals of operators that were written before Headroom's modules were parts of ``headroom`` still load."""

from __future__ import annotations

import importlib
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from headroom.planning.balance import model
from headroom.planning.balance.goals.catalogue import find_goals, known_goals
from headroom.schemas.errors import HeadroomError

GOAL = """
from planning.balance.goals.goal import BrokerUsage
from planning.balance.model import ClusterModel, Resource
from schemas.keys import TopicPartition


class Own:
    name, hard, weight, group = "own", False, 1.0, "own"
    resource = Resource.LEADERS

    def bounds(self, model: ClusterModel, usage: BrokerUsage):
        return None

    def holds(self, bounds, usage):
        return True

    def score(self, bounds, usage):
        return 1.0
"""


@pytest.fixture
def plugins(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    monkeypatch.syspath_prepend(str(tmp_path))
    before = set(sys.modules)
    yield tmp_path
    for name in sys.modules.keys() - before:
        if name.startswith("goal_of_") or name.split(".")[0] == "planning":
            del sys.modules[name]


def test_it_gets_the_classes_of_today_and_nobody_else_does(plugins: Path) -> None:
    (plugins / "goal_of_before.py").write_text(GOAL)
    spec = model.__spec__
    goal = find_goals(["goal_of_before:Own"])[-1]
    assert goal.resource is model.Resource.LEADERS  # type: ignore[attr-defined]
    assert (model.__spec__, [name for name in sys.modules if name.split(".")[0] == "planning"]) == (spec, [])


def test_a_goal_of_an_installed_package_may_use_the_earlier_names(plugins: Path) -> None:
    (plugins / "goal_of_package.py").write_text(GOAL)
    info = plugins / "goal_of_package-1.dist-info"
    info.mkdir()
    (info / "METADATA").write_text("Metadata-Version: 2.1\nName: goal-of-package\nVersion: 1\n")
    # The group is a contract with these packages.
    (info / "entry_points.txt").write_text("[headroom.balance_goals]\nown = goal_of_package:Own\n")
    importlib.invalidate_caches()
    assert "own" in known_goals()
    assert find_goals(["own"])[-1].resource is model.Resource.LEADERS  # type: ignore[attr-defined]


def test_a_package_of_others_with_such_a_name_keeps_it(plugins: Path) -> None:
    (plugins / "planning").mkdir()
    (plugins / "planning" / "__init__.py").write_text("OTHER = True")
    (plugins / "goal_of_before_too.py").write_text(GOAL)
    importlib.invalidate_caches()
    with pytest.raises(HeadroomError, match="No module named"):
        find_goals(["goal_of_before_too:Own"])
    assert importlib.import_module("planning").OTHER
