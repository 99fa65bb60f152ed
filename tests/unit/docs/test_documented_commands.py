"""Every command and option in the pages exists, and every link leads to a file."""

from __future__ import annotations

import re
import shlex
from pathlib import Path

import click
import pytest

from headroom.cli.main import headroom

REPOSITORY = Path(__file__).resolve().parents[3]
PAGES = [
    *(REPOSITORY / page for page in ("README.md", "CHANGELOG.md", "docker/README.md", "benchmarks/README.md")),
    *sorted((REPOSITORY / "docs").rglob("*.md")),
]
# A command in a block or in backquotes, to the end of the line, the backquote, or what is not its own.
_COMMAND = re.compile(r"^headroom [a-z][^#;&|\n]*|(?<=`)headroom [a-z][^`\n]*(?=`)", re.MULTILINE)
_LINK = re.compile(r"\]\(([^)#:]+)(?:#[^)]*)?\)")


def commands() -> list[str]:
    return sorted({shown.strip() for page in PAGES for shown in _COMMAND.findall(page.read_text(encoding="utf-8"))})


def missing(shown: str) -> list[str]:
    """Return the words of a command line that the command does not know."""
    context = click.Context(headroom)
    command: click.Command = headroom
    unknown = []
    words = iter(shlex.split(shown)[1:])
    for word in words:
        if isinstance(command, click.Group) and not word.startswith("-"):
            found = [command.get_command(context, name) for name in word.split("|")]
            if None in found:
                unknown.append(word)
                break
            assert found[0] is not None
            command = found[0]
        elif word.startswith("--"):
            option = next((p for p in command.params if word in p.opts), None)
            if option is None:
                unknown.append(word)
            elif isinstance(option, click.Option) and not option.is_flag:
                next(words, None)
    return unknown


@pytest.mark.parametrize("shown", commands())
def test_every_command_and_option_that_a_page_shows_is_there(shown: str) -> None:
    assert missing(shown) == []


def test_an_unknown_command_or_option_is_found() -> None:
    assert missing("headroom throttle appply") == ["appply"]
    assert missing("headroom watch --forever") == ["--forever"]


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)
def test_every_link_to_a_file_leads_to_one(page: Path) -> None:
    links = _LINK.findall(page.read_text(encoding="utf-8"))
    assert [link for link in links if not (page.parent / link).exists()] == []
