"""Names of modules, and of their members, in docstrings and comments exist."""

from __future__ import annotations

import dataclasses
import re
from collections.abc import Iterator
from pathlib import Path

from headroom.schemas.config import Settings
from tests.support.paths import REPOSITORY

LAYERS = (
    *("schemas", "planning", "cluster", "routing", "alerts", "streaming", "operations", "dashboard", "cli"),
    *("benchmarks", "scripts"),
)
NAME = re.compile(rf"``((?:{'|'.join(LAYERS)})\.[A-Za-z_][\w.]*)``")


def sources() -> Iterator[Path]:
    for folder in (*LAYERS, "tests"):
        yield from sorted((REPOSITORY / folder).rglob("*.py"))


def is_setting(name: str) -> bool:
    section, _, key = name.partition(".")
    settings = getattr(Settings(), section, None)
    return dataclasses.is_dataclass(settings) and key.split(".")[0] in {f.name for f in dataclasses.fields(settings)}


def leads_somewhere(name: str) -> bool:
    """Return whether a name is a module, a package, or a member of one."""
    parts = name.split(".")
    at = next(n for n in range(len(parts), 0, -1) if n == 1 or exists(parts[:n]))
    if at == 1:
        return False
    path = REPOSITORY.joinpath(*parts[:at])
    text = (path / "__init__.py" if path.is_dir() else path.with_suffix(".py")).read_text(encoding="utf-8")
    return at == len(parts) or re.search(rf"\b{parts[at]}\b", text) is not None


def exists(parts: list[str]) -> bool:
    path = REPOSITORY.joinpath(*parts)
    return path.is_dir() or path.with_suffix(".py").is_file()


def test_every_module_that_is_named_is_there() -> None:
    wrong = {
        f"{path.relative_to(REPOSITORY)}: {name}"
        for path in sources()
        for name in NAME.findall(path.read_text(encoding="utf-8"))
        if not is_setting(name) and not leads_somewhere(name)
    }
    assert wrong == set()


def test_an_unknown_module_or_setting_is_found() -> None:
    assert not leads_somewhere("cluster.nowhere.Nothing")
    assert not leads_somewhere("cluster.java.no_such_function")
    assert leads_somewhere("cluster.java.java_command")
    assert is_setting("alerts.no_data_s")
    assert not is_setting("alerts.nothing")
