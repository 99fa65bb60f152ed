"""Places for what is damaged, next to the tables and checkpoints. All that a repair makes stays with their owner."""

from __future__ import annotations

import os
from contextlib import suppress
from datetime import datetime, timezone
from pathlib import Path

# Folder next to the tables and checkpoints for what is damaged.
ASIDE = "_damaged"


def free_place(place: Path) -> Path:
    """Return a place below ``ASIDE``, or one next to it if it is taken. The folders above it are made."""
    missing = [folder for folder in place.parents if not folder.exists()]
    place.parent.mkdir(parents=True, exist_ok=True)
    if missing:
        keep_owner(missing[-1], missing[-1].parent)
    if not os.path.lexists(place):
        return place
    return place.with_name(f"{place.name}-{datetime.now(timezone.utc).strftime('%Y%m%dT%H%M%S%f')}")


def keep_owner(new: Path, like: Path) -> None:
    """Give a file or folder, with all that is in it, to the owner of another one.

    Whoever repairs as root must not shut out the user of the watch process.
    """
    owner = like.stat()
    for path in (new, *new.rglob("*")):
        # Only root may give files away; the others are this user's own.
        with suppress(OSError):
            os.chown(path, owner.st_uid, owner.st_gid)
