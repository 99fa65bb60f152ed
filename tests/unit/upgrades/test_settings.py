"""A settings file of an earlier version loads, and each of its values is that setting's."""

from __future__ import annotations

import sys
from typing import Any

from headroom.cli.config.load import load_settings
from headroom.schemas.config import Settings
from tests.unit.upgrades.saved import SAVED

if sys.version_info >= (3, 11):
    import tomllib
else:
    import tomli as tomllib

FILE = SAVED / "settings.toml"
# Read as other types.
PARSED = {"endpoints", "conf", "maintenance"}


def value_of(settings: Settings, section: str, key: str) -> Any:
    found: Any = settings
    for name in (*section.split("."), key):
        found = getattr(found, name)
    return found


def test_every_setting_is_read() -> None:
    settings = load_settings(str(FILE), {})
    written = tomllib.loads(FILE.read_text())
    receivers = {f"notify.{name}": table for name, table in written["notify"].items() if isinstance(table, dict)}
    tables = {**written, **receivers}
    for section, table in tables.items():
        values = {key: value for key, value in table.items() if not isinstance(value, dict) and key not in PARSED}
        assert {key: value_of(settings, section, key) for key in values} == values, section
    assert settings.collect.endpoints == {"1": "broker1:9999"}
    assert settings.spark.conf == {"spark.executor.memory": "2g"}
    (window,) = settings.alerts.maintenance
    assert (window.days, window.at, window.lasts) == (("sat", "sun"), "22:00", 4 * 3600)
