"""Which tests a worker of a tier gets together, those of a module, and which run beside them."""

from __future__ import annotations

from pathlib import Path

from xdist.scheduler import LoadScopeScheduling
from xdist.workermanage import WorkerController


class ByModule(LoadScopeScheduling):
    """Keeps the tests of a module in one worker, which then starts their cluster once.

    Attributes:
        spread: modules whose tests have nothing in common: any worker gets any of them.
        heavy: modules that keep all cores busy by themselves: one at a time, alone, after all others.
    """

    spread: frozenset[str] = frozenset()
    heavy: frozenset[str] = frozenset()

    def _split_scope(self, nodeid: str) -> str:
        """Return what is kept together: the test's module, or the test itself."""
        module = nodeid.partition("::")[0]
        return nodeid if Path(module).stem in self.spread else module

    def remove_node(self, node: WorkerController) -> str | None:
        """Give the tests that an ended worker has left to others, without the one that ended it, and return that one.

        The scheduler of pytest-xdist gives that one to the next worker too. A test that hangs would hang again in each.
        """
        workload = self.assigned_work.pop(node)
        left = [(unit, test) for unit in workload.values() for test, is_done in unit.items() if not is_done]
        if not left:
            return None
        unit, crashed = left[0]
        unit[crashed] = True
        self.workqueue.update({scope: rest for scope, rest in workload.items() if not all(rest.values())})
        for other in self.assigned_work:
            self._reschedule(other)
        return crashed

    def mark_test_complete(self, node: WorkerController, item_index: int, duration: float = 0) -> None:
        """Note that a test has ended; the last worker may have waited for that with the heavy ones."""
        super().mark_test_complete(node, item_index, duration)
        for other in self.assigned_work:
            if other is not node:
                self._reschedule(other)

    def _reschedule(self, node: WorkerController) -> None:
        """Give a worker its next tests; once only heavy ones are left, end it, or let the last one wait for others."""
        if not self.workqueue or self._next_for(node) is not None:
            super()._reschedule(node)
        elif not node.shutting_down and any(not o.shutting_down for o in self.assigned_work if o is not node):
            node.shutdown()

    def _assign_work_unit(self, node: WorkerController) -> None:
        """Give a worker the first tests in the queue that may run now."""
        if (scope := self._next_for(node)) is not None:
            self.workqueue.move_to_end(scope, last=False)
            super()._assign_work_unit(node)

    def _next_for(self, node: WorkerController) -> str | None:
        light = next((scope for scope in self.workqueue if not self._is_heavy(scope)), None)
        if light is not None:
            return light
        others = (work for other, work in self.assigned_work.items() if other is not node)
        is_alone = all(all(unit.values()) for work in others for unit in work.values())
        return next(iter(self.workqueue), None) if is_alone else None

    def _is_heavy(self, scope: str) -> bool:
        return Path(scope.partition("::")[0]).stem in self.heavy
