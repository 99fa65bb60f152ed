"""Workers of the integration tier: a module stays in one of them, and heavy ones do not run side by side."""

from __future__ import annotations

import random
from unittest.mock import MagicMock

import pytest

from tests.support.by_module import ByModule


class Worker:
    """Runs what it is given, one test after the other, as a worker of pytest-xdist does: the last one at shutdown."""

    def __init__(self, tests: list[str]) -> None:
        self.tests = tests
        self.given: list[str] = []
        self.shutting_down = False
        self.gateway = MagicMock()

    def send_runtest_some(self, indexes: list[int]) -> None:
        self.given += [self.tests[index] for index in indexes]

    def shutdown(self) -> None:
        self.shutting_down = True


def scheduled(tests: list[str], workers: int, heavy: frozenset[str]) -> tuple[ByModule, list[Worker]]:
    config = MagicMock()
    config.getvalue.return_value = ["popen"] * workers
    config.option.loadscopereorder = False
    scheduler = ByModule(config, MagicMock())
    scheduler.heavy = heavy
    nodes = [Worker(tests) for _ in range(workers)]
    for node in nodes:
        scheduler.add_node(node)
        scheduler.add_node_collection(node, tests)
    scheduler.schedule()
    return scheduler, nodes


@pytest.mark.parametrize("seed", range(20))
@pytest.mark.parametrize("workers", [1, 2, 3])
def test_heavy_modules_run_one_at_a_time_and_no_test_is_left_out(workers: int, seed: int) -> None:
    rng = random.Random(seed)
    heavy = frozenset({"test_h0", "test_h1", "test_h2"})
    modules = [*sorted(heavy), *(f"test_l{n}" for n in range(rng.randint(0, 6)))]
    rng.shuffle(modules)
    tests = [f"tests/{module}.py::test_{n}" for module in modules for n in range(rng.randint(1, 5))]
    scheduler, nodes = scheduled(tests, workers, heavy)
    done: dict[int, list[str]] = {n: [] for n in range(workers)}

    def runnable(n: int) -> bool:
        left = len(nodes[n].given) - len(done[n])
        return left > 1 or (left == 1 and nodes[n].shutting_down)

    while able := [n for n in range(workers) if runnable(n)]:
        running = [nodes[n].given[len(done[n])] for n in able]
        assert sum(any(f"/{name}.py" in test for name in heavy) for test in running) <= 1, running
        n = rng.choice(able)
        done[n].append(nodes[n].given[len(done[n])])
        scheduler.mark_test_complete(nodes[n], tests.index(done[n][-1]))
    assert sorted(test for ran in done.values() for test in ran) == sorted(tests)


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
