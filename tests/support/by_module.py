"""Which tests a worker of a tier gets together: those of a module."""

from __future__ import annotations

from pathlib import Path

from xdist.scheduler import LoadScopeScheduling


class ByModule(LoadScopeScheduling):
    """Keeps the tests of a module in one worker, which then starts their cluster once.

    Attributes:
        spread: modules whose tests have nothing in common: any worker gets any of them.
    """

    spread: frozenset[str] = frozenset()

    def _split_scope(self, nodeid: str) -> str:
        """Return what is kept together: the test's module, or the test itself."""
        module = nodeid.partition("::")[0]
        return nodeid if Path(module).stem in self.spread else module
