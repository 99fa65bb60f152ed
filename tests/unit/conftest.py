"""What holds for tests of this tier: a command that one of them runs changes nothing for the others."""

from __future__ import annotations

import logging
from collections.abc import Iterator

import pytest

from headroom.cli.common.logs import CLIENTS

# Loggers whose level a command sets for its process, which here is that of many tests: the root and these.
_SET_BY_COMMANDS = (None, *CLIENTS)


@pytest.fixture(autouse=True)
def levels_of_logs() -> Iterator[None]:
    """Give each test the levels that a new process has."""
    levels = {name: logging.getLogger(name).level for name in _SET_BY_COMMANDS}
    yield
    for name, level in levels.items():
        logging.getLogger(name).setLevel(level)
