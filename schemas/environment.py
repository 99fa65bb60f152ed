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


def is_setting(name: str) -> bool:
    """Return whether a variable is a setting: ``HEADROOM_CLUSTER__NAME`` is one, ``HEADROOM_JARS`` is not."""
    return name.startswith(PREFIX) and "__" in name


@contextmanager
def without_settings() -> Iterator[None]:
    """Hide all settings from processes started in this block, such as JVMs: they need none, and some are secrets."""
    hidden = {name: os.environ.pop(name) for name in [name for name in os.environ if is_setting(name)]}
    try:
        yield
    finally:
        os.environ.update(hidden)
