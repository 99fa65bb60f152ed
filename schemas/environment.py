"""Headroom's environment variables: settings, which may be secrets, and the folder of the jars."""

from __future__ import annotations

import getpass
import os
from collections.abc import Iterator
from contextlib import contextmanager

PREFIX = "HEADROOM_"
# Folder of the jars that set-up fetches; it replaces .jars in the checkout.
JARS = "HEADROOM_JARS"
# Process id of the process of Headroom that started this one.
STARTED_BY = "HEADROOM_STARTED_BY"
# User who has this process carry out a command, if that is not the user of the process: one of the page.
USER = "HEADROOM_USER"
# Prefix of the settings that are about this machine, not about a cluster or receivers.
OF_MACHINE = "HEADROOM_SPARK__"


def is_setting(name: str) -> bool:
    """Return whether a variable is a setting: ``HEADROOM_CLUSTER__NAME`` is one, ``HEADROOM_JARS`` is not."""
    return name.startswith(PREFIX) and "__" in name


def user_name() -> str | None:
    """Return who has this process carry out a command: a user of the page, or the login name; None without a name."""
    given = os.environ.get(USER)
    if given:
        return given
    try:
        return getpass.getuser()
    # The user id has no name, as in containers. Which of the two errors is raised depends on the version of Python.
    except (OSError, KeyError):
        return None


@contextmanager
def without_settings(but: str | None = None) -> Iterator[None]:
    """Hide all settings from this block and from processes started in it.

    JVMs need none, and some are secrets. A cluster that Headroom starts has its settings in a file, and the environment
    would win, which may name the operator's cluster.

    Args:
        but: prefix of those that stay.
    """
    names = [name for name in os.environ if is_setting(name) and not (but and name.startswith(but))]
    hidden = {name: os.environ.pop(name) for name in names}
    try:
        yield
    finally:
        os.environ.update(hidden)
