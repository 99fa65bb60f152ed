"""Writes the outputs in docs/balance.md again: ``python -m scripts.docs.balance``."""

from __future__ import annotations

import re
from pathlib import Path

from click.testing import CliRunner

from headroom.cli.main import headroom

REPOSITORY = Path(__file__).resolve().parents[2]
PAGE = REPOSITORY / "docs" / "balance.md"
_EXAMPLE = re.compile(r"(```sh\nheadroom (balance [^\n]*--state [^\n]*)\n```\n\n```text\n)(.*?)(```)", re.DOTALL)


def page(text: str) -> str:
    """Return the page with the output of every command on a saved state, as it is now.

    Args:
        text: the page. The working directory must be the repository, without settings in it.
    """
    return _EXAMPLE.sub(lambda match: f"{match[1]}{_output(match[2])}{match[4]}", text)


def _output(command: str) -> str:
    done = CliRunner().invoke(headroom, command.split())
    if done.exception is not None:
        raise done.exception
    return done.stdout


if __name__ == "__main__":
    PAGE.write_text(page(PAGE.read_text(encoding="utf-8")), encoding="utf-8")
