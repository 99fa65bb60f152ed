"""Names of Headroom's modules from before they were parts of ``headroom``, for goals of operators that import them."""

from __future__ import annotations

import importlib
import importlib.util
import sys
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from importlib.abc import Loader, MetaPathFinder
from importlib.machinery import ModuleSpec
from pathlib import Path
from types import ModuleType

_LAYERS = ("planning", "schemas")
_PACKAGE = Path(__file__).resolve().parents[3]


class _EarlierNames(MetaPathFinder, Loader):
    """Imports ``planning.balance.model`` as the module ``headroom.planning.balance.model``."""

    def __init__(self) -> None:
        self._specs: dict[str, ModuleSpec | None] = {}

    def find_spec(
        self, fullname: str, path: Sequence[str] | None, target: ModuleType | None = None
    ) -> ModuleSpec | None:
        """Return a spec for the earlier name of a module; None for other names."""
        return ModuleSpec(fullname, self) if fullname.split(".")[0] in _LAYERS else None

    def create_module(self, spec: ModuleSpec) -> ModuleType:
        """Return the module of today, so that both names stand for one class."""
        module = importlib.import_module(f"headroom.{spec.name}")
        self._specs[module.__name__] = module.__spec__
        return module

    def exec_module(self, module: ModuleType) -> None:
        """Give the module, which is loaded, its own spec back: Python has set that of the earlier name."""
        module.__spec__ = self._specs[module.__name__]


@contextmanager
def earlier_names() -> Iterator[None]:
    """Let imports by the earlier names find the modules of today, unless another package has one of these names."""
    if any(_is_of_others(layer) for layer in _LAYERS):
        yield
        return
    finder, before = _EarlierNames(), set(sys.modules)
    sys.meta_path.insert(0, finder)
    try:
        yield
    finally:
        sys.meta_path.remove(finder)
        # What a goal imported keeps its modules. Others that ask for these names are not to get Headroom's.
        for name in sys.modules.keys() - before:
            if name.split(".")[0] in _LAYERS:
                del sys.modules[name]


def _is_of_others(layer: str) -> bool:
    spec = importlib.util.find_spec(layer)
    if spec is None or spec.origin is None:
        return False
    return Path(spec.origin).resolve() != (_PACKAGE / layer / "__init__.py").resolve()
