"""Runs of commands in this process."""

from __future__ import annotations

import json
from typing import Any

from click.testing import CliRunner, Result

from headroom.cli.main import headroom


def run_headroom(*arguments: str) -> Result:
    """Run ``headroom`` with some arguments."""
    return CliRunner().invoke(headroom, list(arguments))


def succeed(*arguments: str) -> Result:
    """Run ``headroom``, which must succeed."""
    done = run_headroom(*arguments)
    assert done.exit_code == 0, (done.output, done.exception)
    return done


def json_of(*arguments: str) -> dict[str, Any]:
    """Return what ``headroom`` prints as JSON."""
    values: dict[str, Any] = json.loads(succeed(*arguments, "--format", "json").stdout)
    return values
