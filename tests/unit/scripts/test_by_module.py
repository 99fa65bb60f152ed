"""Workers of a tier: a module stays in one of them, heavy ones run alone, and no test is left out."""

from __future__ import annotations

import random
from unittest.mock import MagicMock

import pytest

from tests.conftest import NotRun
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
def test_heavy_modules_run_alone_and_no_test_is_left_out(workers: int, seed: int) -> None:
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
        assert len(running) == 1 or not any(f"/{name}.py" in test for name in heavy for test in running), running
        n = rng.choice(able)
        done[n].append(nodes[n].given[len(done[n])])
        scheduler.mark_test_complete(nodes[n], tests.index(done[n][-1]))
    assert sorted(test for ran in done.values() for test in ran) == sorted(tests)


def test_a_test_that_ends_its_worker_is_not_given_to_the_next_one() -> None:
    tests = [f"tests/test_a.py::test_{n}" for n in range(3)] + ["tests/test_b.py::test_0"]
    scheduler, (crashing, _) = scheduled(tests, 2, frozenset())
    scheduler.mark_test_complete(crashing, 0)
    assert scheduler.remove_node(crashing) == tests[1]
    replacement = Worker(tests)
    scheduler.add_node(replacement)
    scheduler.add_node_collection(replacement, tests)
    scheduler.schedule()
    assert replacement.given == tests[2:3]


@pytest.mark.parametrize(("ran", "code"), [(["a", "b", "c"], 0), (["b"], 1)])
def test_a_run_in_which_a_collected_test_was_not_run_is_red(ran: list[str], code: int) -> None:
    session, watched = MagicMock(shouldstop=False, shouldfail=False, exitstatus=0), NotRun()
    session.config.option.collectonly = False
    for _ in range(2):
        watched.pytest_xdist_node_collection_finished(ids=["a", "b", "c"])
    for test in ran:
        watched.pytest_runtest_logreport(MagicMock(nodeid=test))
    watched.pytest_sessionfinish(session, 0)
    assert session.exitstatus == code
    reports = [call.kwargs["report"] for call in session.config.hook.pytest_runtest_logreport.call_args_list]
    assert [(report.nodeid, report.longrepr) for report in reports] == (
        [("a", "collected and not run, nor were 1 more")] if code else []
    )


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
