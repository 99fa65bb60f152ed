"""Headroom's environment variables: settings, which may be secrets, and the folder of the jars."""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import contextmanager

PREFIX = "HEADROOM_"
# Folder of the jars that set-up fetches; it replaces .jars in the checkout.
JARS = "HEADROOM_JARS"
# Process id of the process of Headroom that started this one.
STARTED_BY = "HEADROOM_STARTED_BY"
# Prefix of the settings that are about this machine, not about a cluster or receivers.
OF_MACHINE = "HEADROOM_SPARK__"


def is_setting(name: str) -> bool:
    """Return whether a variable is a setting: ``HEADROOM_CLUSTER__NAME`` is one, ``HEADROOM_JARS`` is not."""
    return name.startswith(PREFIX) and "__" in name


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
