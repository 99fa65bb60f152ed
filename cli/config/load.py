"""Settings from ``headroom.toml`` and the environment, checked, or one error that names the key and the remedy."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable, Mapping
from pathlib import Path
from typing import Any

from pydantic import TypeAdapter, ValidationError

from cli.common.quantities import parse_bytes_per_s, parse_duration_s, parse_percentage
from cli.config.maintenance_windows import maintenance_windows
from cli.config.problem import SettingError
from cli.config.sources import Key, RawValue, all_sections, from_environment, from_file
from cli.config.validation import require_cluster, require_rules
from cluster.connection.key_files import require_readable
from schemas.config import Settings
from schemas.errors import HeadroomError

DEFAULT_FILE = "headroom.toml"

# Keys that a person may write as an amount in words of their own.
AMOUNTS: dict[Key, Callable[[str], float]] = {
    ("cluster", "replication_capacity"): parse_bytes_per_s,
    ("alerts", "finish_within"): parse_duration_s,
    ("alerts", "leader_imbalance_percentage"): parse_percentage,
    ("elections", "batch_write_bytes_per_s"): parse_bytes_per_s,
    ("elections", "capacity_bytes_per_s"): parse_bytes_per_s,
    ("elections", "quiet_below"): parse_bytes_per_s,
}

_SETTINGS: TypeAdapter[Settings] = TypeAdapter(Settings)


def load_settings(path: str | None, environ: Mapping[str, str] | None = None) -> Settings:
    """Return the settings of a file and the environment, with a cluster to talk to.

    Args:
        path: a TOML file; None: ``headroom.toml`` in the working directory if it is there, else none.
        environ: the environment; None: this process's.

    Raises:
        HeadroomError: a key is unknown, a value is not allowed, ``cluster.bootstrap_servers`` is missing, or a file of
            certificates or keys cannot be used.
    """
    settings, origins = _read(path, os.environ if environ is None else environ)
    _told(lambda: require_cluster(settings), origins)
    # Spark reads the ticks, wherever they are.
    own_ticks = bool(settings.ticks.bootstrap_servers.strip())
    require_readable(settings.cluster, "cluster", by_spark=not own_ticks)
    require_readable(settings.ticks, "ticks", by_spark=own_ticks)
    return settings


def read_settings(path: str | None, environ: Mapping[str, str] | None = None) -> Settings:
    """Return the settings as ``load_settings`` does, for commands that read tables only and need no cluster.

    Raises:
        HeadroomError: a key is unknown or a value is not allowed.
    """
    return _read(path, os.environ if environ is None else environ)[0]


def _read(path: str | None, environ: Mapping[str, str]) -> tuple[Settings, dict[Key, str]]:
    file = Path(path) if path else Path(DEFAULT_FILE)
    given = from_file(file) if path or file.exists() else {}
    given.update(from_environment(environ))
    origins = {key: value.origin for key, value in given.items()}
    settings = _validated({key: _plain(key, value) for key, value in given.items()}, origins)
    _told(lambda: require_rules(settings), origins)
    return settings, origins


def _plain(key: Key, given: RawValue) -> Any:
    """Return a value with amounts and windows read, and the dotted names that TOML took apart put together again."""
    try:
        if key in AMOUNTS and isinstance(given.value, str):
            return AMOUNTS[key](given.value)
        if key == ("spark", "conf") and isinstance(given.value, dict):
            return _flat(given.value)
    except ValueError as error:
        raise HeadroomError(given.origin, str(error), "Put the value right.") from None
    except RecursionError:
        raise HeadroomError(given.origin, "is nested too deeply", "Settings of Spark are names and texts.") from None
    if key == ("alerts", "maintenance"):
        return maintenance_windows(given.value, given.origin)
    return given.value


def _flat(table: Mapping[str, Any], prefix: str = "") -> dict[str, str]:
    flat: dict[str, str] = {}
    for name, value in table.items():
        if isinstance(value, dict):
            flat.update(_flat(value, f"{prefix}{name}."))
        else:
            flat[f"{prefix}{name}"] = str(value).lower() if isinstance(value, bool) else str(value)
    return flat


def _validated(values: Mapping[Key, Any], origins: Mapping[Key, str]) -> Settings:
    tables: dict[str, Any] = {}
    for (section, name), value in values.items():
        table = tables
        for part in section.split("."):
            table = table.setdefault(part, {})
        table[name] = value
    try:
        return _SETTINGS.validate_python(tables)
    except ValidationError as error:
        # Only the message is used: pydantic's own text shows the value, which may be a secret.
        first = error.errors(include_url=False, include_input=False, include_context=False)[0]
        key = _key(str(part) for part in first["loc"])
        rule = first["msg"].replace("Input should be", "must be")
        raise HeadroomError(origins[key], rule, "Put the value right.") from None


def _key(location: Iterable[str]) -> Key:
    """Return the key that a origin in the settings lies at, or within: a key may be a table itself."""
    section, *names = location
    while f"{section}.{names[0]}" in all_sections():
        section = f"{section}.{names.pop(0)}"
    return section, names[0]


def _told(rules: Callable[[], None], origins: Mapping[Key, str]) -> None:
    try:
        rules()
    except SettingError as problem:
        subject = origins.get(problem.key, ".".join(problem.key))
        raise HeadroomError(subject, problem.rule, problem.remedy) from None
