"""Places of tables: a folder of this machine, or a URL; whether it can be read and written before a library tries.

The Delta library says of a table that may not be read, and of a URL that it does not know, that there is none.
"""

from __future__ import annotations

import errno
import os
from pathlib import Path
from urllib.parse import urlparse

from schemas.errors import HeadroomError

_REMEDY = "Look at store.path and the rights on it."
_LOG = "_delta_log"
# As large as a commit with some rows: with a few bytes left on a disk nothing goes on.
_PROBE_BYTES = 65_536


def local_path(location: str) -> str | None:
    """Return the path of a location on this machine; None: it is a URL of another file system."""
    url = urlparse(location)
    if url.scheme == "file":
        return url.path
    return None if url.scheme else location


def require_absent(location: str, error: Exception) -> None:
    """Check that a table that was not found is not there.

    Args:
        location: folder or URL of the table.
        error: what the library says of it.

    Raises:
        HeadroomError: it may be there: it cannot be seen, or its URL is of a kind that is not known.
    """
    path = local_path(location)
    if path is None:
        if "Unknown scheme" in str(error):
            rule = f"cannot be read: {urlparse(location).scheme}:// is of no storage that is known without Spark"
            raise HeadroomError(location, rule, _REMEDY)
        return
    folder = Path(path).absolute()
    for place in (*reversed(folder.parents), folder, folder / _LOG):
        if not _is_folder(place):
            return


def _is_folder(place: Path) -> bool:
    """Return whether a folder is there.

    Raises:
        HeadroomError: that cannot be seen, or something else is at its place.
    """
    try:
        with os.scandir(place):
            return True
    except FileNotFoundError:
        return False
    except NotADirectoryError:
        raise _not_a_folder(place) from None
    except OSError as error:
        # Of a folder above a table it is enough to go through.
        if place.name != _LOG and _may(place, os.X_OK):
            return True
        raise HeadroomError(str(place), f"cannot be read ({error.strerror})", _REMEDY) from None


def _may(place: Path, right: int) -> bool:
    # By the user that opens files, whoever started the process.
    return os.access(place, right, effective_ids=os.access in os.supports_effective_ids)


def _not_a_folder(place: Path) -> HeadroomError:
    return HeadroomError(str(place), "is a file, and must be a folder", "Set store.path to a folder.")


def trouble_of(location: str) -> str | None:
    """Return why nothing can be written to a folder, in a few words; None: it can be, or it is a URL.

    Rights do not tell of a disk that is full, or was mounted anew for reading alone: a file is written and removed.

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
    except OSError as error:
        return f"{probe.parent} cannot be written ({error.strerror})"
    return None


def require_writable(location: str) -> None:
    """Check that a table, or what is to become one, can be written; of a URL nothing is known before it is tried.

    The Delta library lets a thread of its own panic, on standard error, where it cannot.

    Args:
        location: folder or URL of a table, or of all.

    Raises:
        HeadroomError: it is a file, or this user may not write there.
    """
    path = local_path(location)
    if path is None:
        return
    folder = Path(path).absolute()
    for place in (folder / _LOG, folder):
        if _is_there(place):
            _require_writable(place)
    if not _is_there(folder):
        _require_writable(next(place for place in folder.parents if _is_there(place)))


def _is_there(place: Path) -> bool:
    try:
        os.stat(place)
    except OSError as error:
        if error.errno in (errno.ENOENT, errno.ENOTDIR):
            return False
        raise HeadroomError(str(place), f"cannot be read ({error.strerror})", _REMEDY) from None
    return True


def _require_writable(place: Path) -> None:
    if not place.is_dir():
        raise _not_a_folder(place)
    if not _may(place, os.W_OK | os.X_OK):
        remedy = "Give this user the right to write there, or set store.path."
        raise HeadroomError(str(place), "cannot be written", remedy)
