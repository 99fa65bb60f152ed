"""Raw values of the settings file and the environment, by key, before validation; an unknown key is an error."""

from __future__ import annotations

import sys
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import MISSING, Field, dataclass, fields, is_dataclass
from pathlib import Path
from typing import Any

from headroom.cli.config.nearest import suggestion
from headroom.operations.files import read_bytes
from headroom.schemas.config import MaintenanceWindow, Settings
from headroom.schemas.environment import PREFIX, is_setting
from headroom.schemas.errors import HeadroomError
from headroom.schemas.text.json_text import decode_text, parse_json

if sys.version_info >= (3, 11):
    import tomllib
else:
    import tomli as tomllib

# Section and name; a nested section has dots in its name.
Key = tuple[str, str]

# Keys whose value is a list of tables, with the dataclass of one table.
LISTS: dict[Key, type] = {("alerts", "maintenance"): MaintenanceWindow}


@dataclass(frozen=True)
class RawValue:
    """A value before parsing, and its origin: the key and the file or variable, as an error names it."""

    value: Any
    origin: str


def env_name(key: Key) -> str:
    """Return the environment variable that overrides a key, e.g. ``HEADROOM_NOTIFY__SLACK__TOKEN``."""
    return f"{PREFIX}{'__'.join((*key[0].split('.'), key[1])).upper()}"


def all_sections() -> dict[str, type]:
    """Return the dataclass of every section, in the order of the file; a nested section has a dot in its name."""
    return dict(_sections(Settings, ""))


def _sections(kind: type, prefix: str) -> Iterator[tuple[str, type]]:
    for item in fields(kind):
        if is_section(item):
            factory = item.default_factory
            yield f"{prefix}{item.name}", factory  # type: ignore[misc]
            yield from _sections(factory, f"{prefix}{item.name}.")  # type: ignore[arg-type]


def is_section(item: Field[Any]) -> bool:
    """Return whether a field of the settings is a section rather than a key."""
    return isinstance(item.default_factory, type) and is_dataclass(item.default_factory)


def all_keys() -> dict[Key, Any]:
    """Return every key of the settings with its default, in the order of the file."""
    return {
        (section, item.name): item.default if item.default_factory is MISSING else item.default_factory()
        for section, kind in all_sections().items()
        for item in fields(kind)
        if not is_section(item)
    }


def from_file(file: Path) -> dict[Key, RawValue]:
    """Return the raw values of a TOML file.

    Raises:
        HeadroomError: the file cannot be read, or one of its sections or keys is unknown.
    """
    values: dict[Key, RawValue] = {}
    for section, table in _toml(file).items():
        values.update(_from_table(section, table, file))
    return values


def _not_a_table(name: str, sections: Sequence[str], file: Path) -> HeadroomError:
    """Return the error of a value, or of an array of tables, where only a section may be."""
    if name in sections:
        remedy = f"Write [{name}] in a line of its own, and its settings below it."
        return HeadroomError(f"{name} in {file}", "is a section, and was given like a setting", remedy)
    homes = [section for section, key in all_keys() if key == name]
    remedy = f"Write it below [{'] or ['.join(homes)}]." if homes else suggestion(name, sections)
    return HeadroomError(f"{name} in {file}", "is in no section", remedy)


def _from_table(section: str, table: Any, file: Path) -> dict[Key, RawValue]:
    sections = list(all_sections())
    if not isinstance(table, dict):
        raise _not_a_table(section, sections, file)
    if section not in sections:
        raise HeadroomError(f"[{section}] in {file}", "is not a section of the settings", suggestion(section, sections))
    names = [name for (known_section, name) in all_keys() if known_section == section]
    inner = [name.removeprefix(f"{section}.") for name in sections if name.startswith(f"{section}.")]
    values: dict[Key, RawValue] = {}
    for name, value in table.items():
        if name in inner:
            values.update(_from_table(f"{section}.{name}", value, file))
        elif name in names:
            values[section, name] = RawValue(value, f"{section}.{name} in {file}")
        else:
            raise HeadroomError(f"{section}.{name} in {file}", "is not a setting", suggestion(name, [*names, *inner]))
    return values


def _toml(file: Path) -> dict[str, Any]:
    try:
        text = decode_text(read_bytes(file))
    except FileNotFoundError:
        raise HeadroomError(str(file), "is not there", "Write one with: headroom init") from None
    except OSError as error:
        raise HeadroomError(str(file), f"cannot be read ({error.strerror})", "Name another with --config.") from None
    except ValueError as error:
        raise HeadroomError(str(file), f"cannot be read ({error})", "Save it as UTF-8.") from None
    try:
        return tomllib.loads(text)
    except RecursionError:
        raise HeadroomError(str(file), "is nested too deeply", "Settings are two tables deep at most.") from None
    # Errors of TOML, and Python's own for a number with too many digits.
    except ValueError as error:
        raise HeadroomError(str(file), f"is not TOML: {error}", "Correct that line.") from None


def from_environment(environ: Mapping[str, str]) -> dict[Key, RawValue]:
    """Return the raw values of the environment; an empty variable counts as not set.

    Raises:
        HeadroomError: a variable with Headroom's prefix is unknown, or its value is not the JSON that it must be.
    """
    known = {env_name(key): (key, default) for key, default in all_keys().items()}
    # Other variables with the prefix belong to others: Kubernetes sets HEADROOM_PORT for a service of that name.
    one_underscore = {name.replace("__", "_"): name for name in known}
    values: dict[Key, RawValue] = {}
    for name, text in environ.items():
        if text and name in one_underscore:
            raise HeadroomError(f"environment variable {name}", "is not a setting", f"Write {one_underscore[name]}.")
        if not is_setting(name) or not text:
            continue
        if name not in known:
            raise HeadroomError(f"environment variable {name}", "is not a setting", suggestion(name, known))
        key, default = known[name]
        origin = f"{'.'.join(key)} in the environment ({name})"
        if isinstance(default, dict):
            values[key] = RawValue(_json(text, origin, "object", '{"name": "value"}'), origin)
        elif key in LISTS:
            values[key] = RawValue(_json(text, origin, "array of objects", '[{"name": "value"}]'), origin)
        else:
            values[key] = RawValue(text, origin)
    return values


def _json(text: str, origin: str, what: str, example: str) -> Any:
    try:
        return parse_json(text)
    except ValueError:
        raise HeadroomError(origin, f"must be a JSON {what}", f"Write it as {example}.") from None
