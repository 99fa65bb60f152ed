"""Generates the commented headroom.toml and docs/configuration.md from the dataclasses of the settings."""

from __future__ import annotations

import inspect
import json
import re
import textwrap
from dataclasses import MISSING, dataclass, fields
from enum import Enum
from typing import Any

from headroom.cli.config.sources import LISTS, all_keys, all_sections, env_name

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
        SettingDoc(key[0], key[1], default, _plain_meaning(meanings[key[0]][key[1]], key[0]), env_name(key))
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
        lines.append(f"| `{item.name}` | {default} | {_code(_plain_meaning(meanings[item.name], ''))} |")
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

Amounts: a number is in bytes per second or in seconds; a text may carry a unit: `"100MB"`, `"30m"`, `"1h30m"`.

## Amounts, times and lists

Settings, variables and options of commands read a text in the same way, always as a whole. A text of another form is
refused with what was probably meant: `12,5MB` is not 12 bytes, but an error that says `12.5MB`.

| kind | form |
|---|---|
| whole number | 1 to 19 digits (0 to 9): `200` |
| number, percentage | a whole number, or one with a point and 1 to 19 more digits: `12.5`. No sign, exponent or percent sign, and no commas, spaces or underscores between digits |
| amount of bytes | a number alone, in bytes; or a number with a unit, and spaces between them if you like: `B`, `kB`, `MB`, `GB`, `TB`, `PB` (powers of 1,000), `KiB`, `MiB`, `GiB`, `TiB`, `PiB` (powers of 1,024). The unit may be all in small letters or all in capitals. `50M` and `50Mb` are refused, because b may be bits |
| rate | an amount of bytes, in bytes per second; `/s` may follow: `12500000`, `12.5MB`, `12 MiB/s` |
| duration | a number alone, in seconds; or numbers with the units `d`, `h`, `m`, `s`, in this order, each at most once, in small letters or capitals, with spaces if you like: `90s`, `1h30m`, `2d`. Only the last number may have a point: `1.5h` |
| switch | `true` or `false`; as text also `yes`, `no`, `on`, `off`, `1`, `0`; in small letters or capitals |
| date and time | `2026-11-22T22:00Z`. A space may be in place of `T`; seconds may follow (`:30` or `:30.5`, at most 3 digits), and then `Z` or a distance from UTC such as `+02:00` or `+0200`. Without it the time is UTC; a date alone is its first minute. `t` and `z` may be small |
| time of day | `22:00`, from `00:00` to `23:59` |
| window of the day | two different times of day, and a time zone if it is not UTC: `22:00-06:00 Europe/Berlin` |
| broker ids | separated by commas, with spaces if you like, each once: `1,2`. An id is 0 to 2147483647 |
| topics, goals | names separated by commas in the same way. A topic has 1 to 249 letters, digits, `.`, `_` and `-` |
| address | `host:port`, or `[::1]:9092`; several are separated by commas. The port is 1 to 65535. No scheme, such as `http://` |
| heap size | at most 9 digits and `k`, `m`, `g` or `t`, or a capital, without any spaces: `1g` |

Otherwise spaces before and after a text do not count. In the file, a number or switch may also be one of TOML: `5`, `0.5`, `true`.
`4.0` is no whole number, and `true` and `1` are not the same there.

This page is written by `python -m headroom.cli.config.template > docs/configuration.md` from `schemas/config/settings.py`.
"""  # noqa: E501


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


def _plain_meaning(meaning: str, section: str) -> str:
    """Return a meaning without Python's terms, and with the section's own variables for inherited keys."""
    text = re.sub(r"\bNone\b", "not set", meaning).replace("HEADROOM_CLUSTER__", env_name((section, "")))
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
