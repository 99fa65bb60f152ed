"""Which worker of a tier gets which tests next: a module stays together, and few modules fill the machine at a time."""

from __future__ import annotations

from pathlib import Path

from xdist.scheduler import LoadScopeScheduling
from xdist.workermanage import WorkerController


class ByModule(LoadScopeScheduling):
    """Keeps the tests of a module in one worker, which then starts their cluster once.

    Attributes:
        spread: modules whose tests have nothing in common: any worker gets any of them.
        heavy: modules each of which keeps a core busy by itself.
        most_heavy: so many workers at most run one of them at the same time, while there is anything else to run.
            Three of them would only wait for each other on two cores; beside two of them another worker fills the gaps.
    """

    spread: frozenset[str] = frozenset()
    heavy: frozenset[str] = frozenset()
    most_heavy = 2

    def _split_scope(self, nodeid: str) -> str:
        """Return what is kept together: the test's module, or the test itself."""
        module = nodeid.partition("::")[0]
        return nodeid if Path(module).stem in self.spread else module

    def _assign_work_unit(self, node: WorkerController) -> None:
        """Give a worker what is next in the queue, or what is next of the light modules."""
        others = [units for other, units in self.assigned_work.items() if other is not node]
        running = sum(
            any(self._is_heavy(s) and not all(unit.values()) for s, unit in units.items()) for units in others
        )
        if running >= self.most_heavy:
            light = next((scope for scope in self.workqueue if not self._is_heavy(scope)), None)
            if light is not None:
                self.workqueue.move_to_end(light, last=False)
        super()._assign_work_unit(node)

    def _has_heavy(self, units: dict[str, dict[str, bool]]) -> bool:
        """Return whether tests of a heavy module are still to be run, of what a worker was given."""
        return any(self._is_heavy(scope) and not all(done.values()) for scope, done in units.items())

    def _is_heavy(self, scope: str) -> bool:
        return Path(scope.partition("::")[0]).stem in self.heavy
