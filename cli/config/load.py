"""Settings from ``headroom.toml`` and the environment, validated; an error names the key and the remedy."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable, Mapping
from pathlib import Path
from typing import Any, NamedTuple

from pydantic import TypeAdapter, ValidationError

from headroom.cli.config.problem import SettingError
from headroom.cli.config.sources import Key, all_sections, from_environment, from_file
from headroom.cli.config.validation import require_cluster, require_rules
from headroom.cli.config.values import parsed_value
from headroom.cluster.connection.key_files import require_readable
from headroom.schemas.config import Settings
from headroom.schemas.errors import HeadroomError

DEFAULT_FILE = "headroom.toml"

_SETTINGS: TypeAdapter[Settings] = TypeAdapter(Settings)


class LoadedFile(NamedTuple):
    """The settings of a file and the environment.

    Attributes:
        settings: all settings; those that are not set have their defaults.
        origins: keys that are set -> the key and its file or variable, as an error names them.
    """

    settings: Settings
    origins: Mapping[Key, str]


def load_settings(path: str | None, environ: Mapping[str, str] | None = None) -> Settings:
    """Return the settings of a file and the environment, including the cluster to watch.

    Args:
        path: a TOML file; ``headroom.toml`` in the working directory, if it exists, if None.
        environ: environment variables; those of this process if None.

    Raises:
        HeadroomError: a key is unknown, a value is not allowed, ``cluster.bootstrap_servers`` is missing, or a file of
            certificates or keys cannot be used.
    """
    return load_file(path, environ).settings


def load_file(path: str | None, environ: Mapping[str, str] | None = None) -> LoadedFile:
    """Return the settings as ``load_settings`` does, and which of them are set.

    Raises:
        HeadroomError: as ``load_settings``.
    """
    settings, origins = _read(path, os.environ if environ is None else environ)
    _with_origin(lambda: require_cluster(settings), origins)
    # Spark reads only the cluster of the ticks topic, so only its key files must be readable by Java.
    own_ticks = bool(settings.ticks.bootstrap_servers.strip())
    require_readable(settings.cluster, "cluster", by_spark=not own_ticks)
    require_readable(settings.ticks, "ticks", by_spark=own_ticks)
    require_readable(settings.migration.origin, "migration.origin", by_spark=False)
    return LoadedFile(settings, origins)


def read_settings(path: str | None, environ: Mapping[str, str] | None = None) -> Settings:
    """Return the settings without requiring a cluster, for commands that only read tables.

    Raises:
        HeadroomError: a key is unknown or a value is not allowed.
    """
    return _read(path, os.environ if environ is None else environ)[0]


def _read(path: str | None, environ: Mapping[str, str]) -> tuple[Settings, dict[Key, str]]:
    if path == "":
        raise HeadroomError("--config", "is empty", "Name a settings file, or leave the option out.")
    file = Path(path or DEFAULT_FILE)
    # A link to a file that is gone is no missing file: its settings would be missing silently.
    raw = from_file(file) if path or os.path.lexists(file) else {}
    raw.update(from_environment(environ))
    origins = {key: value.origin for key, value in raw.items()}
    settings = _settings_of({key: parsed_value(key, value) for key, value in raw.items()}, origins)
    _with_origin(lambda: require_rules(settings), origins)
    return settings, origins


def _settings_of(values: Mapping[Key, Any], origins: Mapping[Key, str]) -> Settings:
    tables: dict[str, Any] = {}
    for (section, name), value in values.items():
        table = tables
        for part in section.split("."):
            table = table.setdefault(part, {})
        table[name] = value
    try:
        return _SETTINGS.validate_python(tables)
    except ValidationError as error:
        # Only the message is used: pydantic's full text contains the value, which may be a secret.
        first = error.errors(include_url=False, include_input=False, include_context=False)[0]
        key = _key(str(part) for part in first["loc"])
        rule = first["msg"].replace("Input should be", "must be")
        raise HeadroomError(origins[key], rule, "Correct the value.") from None


def _key(location: Iterable[str]) -> Key:
    """Return the key of a validation error's location, which may lie within a key that is a table itself."""
    section, *names = location
    while f"{section}.{names[0]}" in all_sections():
        section = f"{section}.{names.pop(0)}"
    return section, names[0]


def _with_origin(validate: Callable[[], None], origins: Mapping[Key, str]) -> None:
    """Run a validation, and add to its error the file or variable that the value comes from."""
    try:
        validate()
    except SettingError as error:
        subject = origins.get(error.key, ".".join(error.key))
        raise HeadroomError(subject, error.rule, error.remedy) from None
