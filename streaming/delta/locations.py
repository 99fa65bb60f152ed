"""Locations of tables: folders of this machine, or URLs, with checks of access before a library tries.

The Delta library reports a table without read access, or at an unknown kind of URL, as a missing one.
"""

from __future__ import annotations

import errno
import os
from pathlib import Path
from urllib.parse import urlparse

from headroom.schemas.errors import HeadroomError

# Of a table or folder that cannot be reached.
STORE_REMEDY = "Check store.path and its permissions."
DISK_REMEDY = "Check the free space on its disk, store.path and its permissions."
_LOG = "_delta_log"
# Size of a commit with some rows: a disk with only a few bytes left counts as full.
_PROBE_BYTES = 65_536
# Least room for a start of all queries and tables. With less, one would be restarted only to fail again.
_ROOM_BYTES = 1 << 20


def local_path(location: str) -> str | None:
    """Return the path of a location on this machine; None if it is a URL of another file system."""
    url = urlparse(location)
    if url.scheme == "file":
        return url.path
    return None if url.scheme else location


def is_missing(store_path: str) -> bool:
    """Return whether ``store.path`` is a folder of this machine that does not exist."""
    path = local_path(store_path)
    if path is None:
        return False
    try:
        os.lstat(path)
    except (FileNotFoundError, NotADirectoryError):
        return True
    except OSError:
        # It may be there, in a folder that this user may not search.
        pass
    return False


def require_present(store_path: str) -> None:
    """Check that ``store.path`` exists, if it is a folder of this machine: of a missing one everything would be absent.

    Raises:
        HeadroomError: it does not exist.
    """
    if is_missing(store_path):
        rule, remedy = "is not there", "Correct store.path, or start `headroom watch`, which creates it."
        # A relative path depends on the folder that the command is run in.
        place = store_path if os.path.isabs(store_path) else f"{store_path} (here {os.path.abspath(store_path)})"
        raise HeadroomError(place, rule, remedy)


def is_table(path: str) -> bool:
    """Return whether a folder has the log of a Delta table."""
    return os.path.isdir(os.path.join(path, _LOG))


def mount_of(location: str) -> Path | None:
    """Return where the file system of a folder is mounted, whether the folder exists or not; None at a URL."""
    path = local_path(location)
    if path is None:
        return None
    folder = Path(path).absolute()
    return next((place for place in (folder, *folder.parents) if place.is_mount()), Path(folder.anchor))


def require_absent(location: str, error: Exception) -> None:
    """Check that a table that the library did not find does not exist.

    Args:
        location: folder or URL of the table.
        error: error of the library.

    Raises:
        HeadroomError: the table may exist: its folder cannot be read, or its kind of URL is unknown.
    """
    path = local_path(location)
    if path is None:
        if "Unknown scheme" in str(error):
            rule = f"cannot be read: {urlparse(location).scheme}:// is of no storage that is known without Spark"
            raise HeadroomError(location, rule, STORE_REMEDY)
        return
    folder = Path(path).absolute()
    for path_above in (*reversed(folder.parents), folder, folder / _LOG):
        if not _is_folder(path_above):
            return


def _is_folder(path: Path) -> bool:
    """Return whether a folder exists.

    Raises:
        HeadroomError: it cannot be read, or is a file.
    """
    try:
        with os.scandir(path):
            return True
    except FileNotFoundError:
        return False
    except NotADirectoryError:
        raise _not_a_folder(path) from None
    except OSError as error:
        # In a folder above a table the right to pass through is enough.
        if path.name != _LOG and _has_right(path, os.X_OK):
            return True
        raise HeadroomError(str(path), f"cannot be read ({error.strerror})", STORE_REMEDY) from None


def _has_right(path: Path, right: int) -> bool:
    # Rights of the effective user, who opens files, not of the user who started the process.
    return os.access(path, right, effective_ids=os.access in os.supports_effective_ids)


def _not_a_folder(path: Path) -> HeadroomError:
    return HeadroomError(str(path), "is a file, and must be a folder", "Set store.path to a folder.")


def trouble_of(location: str) -> str | None:
    """Return why nothing can be written to a folder, in a few words; None if it can be written or is a URL.

    The check writes a file and removes it, because rights do not show a full disk, or one that is now read-only.

    Args:
        location: folder or URL of all tables, or of checkpoints.
    """
    path = local_path(location)
    if path is None:
        return None
    probe = Path(path).absolute() / f".probe-{os.getpid()}"
    try:
        probe.parent.mkdir(parents=True, exist_ok=True)
        try:
            with probe.open("wb") as file:
                file.write(bytes(_PROBE_BYTES))
                file.flush()
                os.fsync(file.fileno())
        finally:
            probe.unlink(missing_ok=True)
        if not _has_room(probe.parent):
            return f"{probe.parent} cannot be written ({os.strerror(errno.ENOSPC)})"
    except OSError as error:
        return f"{probe.parent} cannot be written ({error.strerror})"
    return None


def _has_room(path: Path) -> bool:
    space = os.statvfs(path)
    # Some file systems over a network report no size.
    if not space.f_blocks:
        return True
    blocks = space.f_bfree if os.geteuid() == 0 else space.f_bavail
    return blocks * space.f_frsize >= _ROOM_BYTES


def require_writable(location: str, *, on_read_only_disk: bool = False) -> None:
    """Check that a table, present or future, can be written; URLs are not checked.

    Without this check one of the Delta library's threads would panic, and print that to standard error.

    Args:
        location: folder or URL of a table, or of all tables.
        on_read_only_disk: accept a file system that is read-only, for callers that can wait for it.

    Raises:
        HeadroomError: it is a file, or this user may not write there.
    """
    path = local_path(location)
    if path is None:
        return
    folder = Path(path).absolute()
    for existing in (folder / _LOG, folder):
        if _exists(existing):
            _require_writable(existing, on_read_only_disk)
    if not _exists(folder):
        _require_writable(next(parent for parent in folder.parents if _exists(parent)), on_read_only_disk)


def _exists(path: Path) -> bool:
    try:
        os.stat(path)
    except OSError as error:
        if error.errno in (errno.ENOENT, errno.ENOTDIR):
            return False
        raise HeadroomError(str(path), f"cannot be read ({error.strerror})", STORE_REMEDY) from None
    return True


def _require_writable(path: Path, on_read_only_disk: bool) -> None:
    if not path.is_dir():
        raise _not_a_folder(path)
    if on_read_only_disk and os.statvfs(path).f_flag & os.ST_RDONLY:
        return
    if not _has_right(path, os.W_OK | os.X_OK):
        remedy = "Give this user the right to write there, or set store.path."
        raise HeadroomError(str(path), "cannot be written", remedy)
