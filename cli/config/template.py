"""Generates the commented headroom.toml and docs/configuration.md from the dataclasses of the settings."""

from __future__ import annotations

import inspect
import json
import re
import textwrap
from dataclasses import MISSING, dataclass, fields
from enum import Enum
from typing import Any

from cli.config.sources import LISTS, all_keys, all_sections, env_name

_ATTRIBUTE = re.compile(r"^(\w+): (.*)$")


@dataclass(frozen=True)
class SettingDoc:
    """Documentation of one setting.

    Attributes:
        section: section in the file.
        name: key in the section.
        default: default value; None if not set.
        meaning: description with unit.
        environment: variable that overrides the file.
    """

    section: str
    name: str
    default: Any
    meaning: str
    environment: str


def setting_docs() -> list[SettingDoc]:
    """Return the documentation of every setting, in the order of the file.

    Raises:
        KeyError: a setting's meaning is missing in the docstring of its class.
    """
    meanings = {section: _meanings(kind) for section, kind in all_sections().items()}
    return [
        SettingDoc(key[0], key[1], default, _reworded(meanings[key[0]][key[1]], key[0]), env_name(key))
        for key, default in all_keys().items()
    ]


def section_meaning(section: str) -> str:
    """Return the first line of a section's docstring."""
    return inspect.cleandoc(all_sections()[section].__doc__ or "").splitlines()[0]


def commented_toml(name: str, bootstrap_servers: str) -> str:
    """Return a headroom.toml that sets the cluster and has every other key as a comment with its default."""
    chosen = {("cluster", "name"): name, ("cluster", "bootstrap_servers"): bootstrap_servers}
    lines = [_FILE_HEAD]
    docs = setting_docs()
    for section in all_sections():
        lines += ["", "", f"# {section_meaning(section)}", f"[{section}]"]
        own = [doc for doc in docs if doc.section == section]
        # A sub-table such as [collect.endpoints] ends its section, so the plain keys come first.
        for doc in sorted(own, key=lambda doc: isinstance(doc.default, (dict, tuple))):
            meaning = doc.meaning.replace("``", "")
            lines += ["", *textwrap.wrap(meaning, 110, initial_indent="# ", subsequent_indent="# ")]
            lines += _assignment(doc, chosen.get((doc.section, doc.name)))
    return "\n".join(lines) + "\n"


def markdown() -> str:
    """Return docs/configuration.md: every key with its variable, default and meaning."""
    lines = [_INTRODUCTION]
    docs = setting_docs()
    for section in all_sections():
        lines += [f"## [{section}]", "", section_meaning(section), "", "| key | default | meaning |", "|---|---|---|"]
        own = [doc for doc in docs if doc.section == section]
        lines += [f"| `{doc.name}` | {_default(doc.default)} | {_code(doc.meaning)} |" for doc in own] + [""]
        for (_, name), kind in ((key, kind) for key, kind in LISTS.items() if key[0] == section):
            lines += _list_markdown(f"[[{section}.{name}]]", kind)
    return "\n".join(lines)


def _list_markdown(title: str, kind: type) -> list[str]:
    """Return the part of the page about a list of tables."""
    first = inspect.cleandoc(kind.__doc__ or "").splitlines()[0]
    lines = [f"### {title}", "", f"{first} There may be several.", "", "| key | default | meaning |", "|---|---|---|"]
    meanings = _meanings(kind)
    for item in fields(kind):
        default = "has to be set" if item.default is MISSING else _default(item.default)
        lines.append(f"| `{item.name}` | {default} | {_code(_reworded(meanings[item.name], ''))} |")
    return [*lines, ""]


_FILE_HEAD = """# Settings of Headroom. A line that begins with # shows a default.
# Every key can be given in the environment too, as HEADROOM_<SECTION>__<KEY>; passwords belong there, or in a file."""

_INTRODUCTION = """# Configuration

Headroom reads one TOML file: the one that `--config` names, else `headroom.toml` in the working directory, else none.
`headroom init` writes one with every key, its meaning and its default.

Every key can be given in the environment too, and the environment wins: `HEADROOM_<SECTION>__<KEY>`, for example
`HEADROOM_CLUSTER__BOOTSTRAP_SERVERS=broker1:9092`. A dot in a section's name is `__` too:
`HEADROOM_NOTIFY__SLACK__TOKEN`. There, write tables and lists of tables as JSON:
`HEADROOM_COLLECT__ENDPOINTS='{"1": "broker1:9999"}'`. An empty variable counts as not set.

Passwords come from the environment, or from a file named by a `*_file` key, which is read at each use. They are never
printed. Relative paths start at the working directory. Only `cluster.bootstrap_servers` has to be set.

Amounts: a number is in bytes per second or in seconds; a text may carry a unit: `"100MB"` (1 MB is 10^6 bytes, 1 MiB is
2^20), `"30m"`, `"1h30m"`.

This page is written by `python -m cli.config.template > docs/configuration.md` from `schemas/config/settings.py`.
"""


def _meanings(kind: type) -> dict[str, str]:
    meanings: dict[str, str] = {}
    # A subclass documents its own keys, and may document an inherited one again.
    for base in reversed(kind.__mro__[:-1]):
        block = inspect.cleandoc(base.__doc__ or "").partition("Attributes:\n")[2]
        name = ""
        for line in textwrap.dedent(block).splitlines():
            match = _ATTRIBUTE.match(line)
            name = match[1] if match else name
            meanings[name] = match[2] if match else f"{meanings[name]} {line.strip()}".strip()
    return meanings


def _reworded(meaning: str, section: str) -> str:
    """Return a meaning without Python's terms, and with the section's own variables for inherited keys."""
    text = re.sub(r"\bNone\b", "not set", meaning).replace("HEADROOM_CLUSTER__", f"HEADROOM_{section.upper()}__")
    return text[:1].upper() + text[1:]


def _code(meaning: str) -> str:
    return meaning.replace("``", "`").replace("|", "\\|")


def _assignment(doc: SettingDoc, chosen: str | None) -> list[str]:
    if chosen is not None:
        return [f"{doc.name} = {_toml(chosen)}"]
    if isinstance(doc.default, tuple):
        return [f"# [[{doc.section}.{doc.name}]]", '# days = ["sat", "sun"]', '# at = "22:00"', '# lasts = "4h"']
    if isinstance(doc.default, dict):
        example = {"endpoints": '1 = "broker1:9999"', "conf": '"spark.executor.memory" = "2g"'}[doc.name]
        return [f"# [{doc.section}.{doc.name}]", f"# {example}"]
    return [f"# {doc.name} =" if doc.default is None else f"# {doc.name} = {_toml(doc.default)}"]


def _toml(value: Any) -> str:
    # JSON writes booleans, numbers and quoted text as TOML does.
    return json.dumps(value.value if isinstance(value, Enum) else value)


def _default(value: Any) -> str:
    return "not set" if value is None or value in ("", {}, ()) else f"`{_toml(value)}`"


if __name__ == "__main__":
    print(markdown(), end="")
