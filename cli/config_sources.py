"""What the settings' file and the environment give, key by key, before it is checked; unknown keys are errors."""

from __future__ import annotations

import difflib
import json
import sys
from collections.abc import Iterable, Mapping
from dataclasses import MISSING, dataclass, fields
from pathlib import Path
from typing import Any

from schemas.config import Settings
from schemas.errors import HeadroomError

if sys.version_info >= (3, 11):
    import tomllib
else:
    import tomli as tomllib

PREFIX = "HEADROOM_"

Key = tuple[str, str]


@dataclass(frozen=True)
class Given:
    """A value as it was given, and where: the words that an error names it by."""

    value: Any
    place: str


def env_name(key: Key) -> str:
    """Return the environment variable that overrides a key, e.g. ``HEADROOM_CLUSTER__NAME``."""
    return f"{PREFIX}{key[0].upper()}__{key[1].upper()}"


def all_keys() -> dict[Key, Any]:
    """Return every key of the settings with its default, in the order of the file."""
    return {
        (section.name, item.name): item.default if item.default_factory is MISSING else item.default_factory()
        for section in fields(Settings)
        # Settings' own fields all have a dataclass as their factory.
        for item in fields(section.default_factory)  # type: ignore[arg-type]
    }


def from_file(file: Path) -> dict[Key, Given]:
    """Return what a TOML file sets.

    Raises:
        HeadroomError: it cannot be read, or a section or key of it is unknown.
    """
    known = all_keys()
    given: dict[Key, Given] = {}
    for section, table in _toml(file).items():
        names = [name for (known_section, name) in known if known_section == section]
        if not names or not isinstance(table, dict):
            sections = list(dict.fromkeys(s for s, _ in known))
            raise HeadroomError(f"[{section}] in {file}", "is no section of the settings", _nearest(section, sections))
        for name, value in table.items():
            if name not in names:
                raise HeadroomError(f"{section}.{name} in {file}", "is no setting", _nearest(name, names))
            given[section, name] = Given(value, f"{section}.{name} in {file}")
    return given


def _toml(file: Path) -> dict[str, Any]:
    try:
        return tomllib.loads(file.read_text(encoding="utf-8"))
    except FileNotFoundError:
        raise HeadroomError(str(file), "is not there", "Write one with: headroom init") from None
    except OSError as error:
        raise HeadroomError(str(file), f"cannot be read ({error.strerror})", "Give another by --config.") from None
    except UnicodeDecodeError:
        raise HeadroomError(str(file), "is not UTF-8 text", "Save it as UTF-8.") from None
    except tomllib.TOMLDecodeError as error:
        raise HeadroomError(str(file), f"is not TOML: {error}", "Put that line right.") from None


def from_environment(environ: Mapping[str, str]) -> dict[Key, Given]:
    """Return what the environment sets; an empty variable counts as not set.

    Raises:
        HeadroomError: a variable that begins like a setting is none, or is not the JSON that it should be.
    """
    known = {env_name(key): (key, default) for key, default in all_keys().items()}
    given: dict[Key, Given] = {}
    for name, text in environ.items():
        if not name.startswith(PREFIX) or "__" not in name or not text:
            continue
        if name not in known:
            raise HeadroomError(f"environment variable {name}", "is no setting", _nearest(name, known))
        key, default = known[name]
        place = f"{'.'.join(key)} in the environment ({name})"
        given[key] = Given(_json(text, place) if isinstance(default, dict) else text, place)
    return given


def _json(text: str, place: str) -> Any:
    try:
        return json.loads(text)
    except ValueError:
        raise HeadroomError(place, "must be a JSON object", """Write it as {"name": "value"}.""") from None


def _nearest(name: str, names: Iterable[str]) -> str:
    names = list(names)
    near = difflib.get_close_matches(name, names, n=1)
    return f"Did you mean {near[0]}?" if near else f"There are: {', '.join(names)}."
