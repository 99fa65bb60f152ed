"""Files that commands read and write."""

from __future__ import annotations

import errno
import os
import stat
import tempfile
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Any

from headroom.schemas.errors import HeadroomError
from headroom.schemas.text.json_text import decode_text, parse_json

_OTHER = "Name another file."


def read_bytes(file: Path) -> bytes:
    """Return the content of a file or pipe.

    Raises:
        OSError: it cannot be read, or is a device, which may have no end.
    """
    with file.open("rb") as opened:
        kind = os.fstat(opened.fileno()).st_mode
        if stat.S_ISCHR(kind) or stat.S_ISBLK(kind):
            raise OSError(errno.EINVAL, "it is a device")
        return opened.read()


def read_text(file: Path, remedy: str = _OTHER) -> str:
    """Return the text in a file.

    Args:
        file: the file.
        remedy: remedy if it cannot be read.

    Raises:
        HeadroomError: the file cannot be read, or is no text.
    """
    try:
        return decode_text(read_bytes(file))
    except OSError as error:
        raise HeadroomError(str(file), f"cannot be read ({error.strerror})", remedy) from None
    except ValueError as error:
        raise HeadroomError(str(file), f"cannot be read ({error})", "Save it as UTF-8, or name another file.") from None


def read_json(file: Path, remedy: str, unreadable: str = _OTHER) -> Any:
    """Return the JSON value in a file.

    Args:
        file: the file.
        remedy: remedy if it is not valid JSON.
        unreadable: remedy if it cannot be read.

    Raises:
        HeadroomError: the file cannot be read, or is not valid JSON.
    """
    text = read_text(file, unreadable)
    try:
        return parse_json(text)
    except ValueError as error:
        raise HeadroomError(str(file), f"is not valid JSON ({error})", remedy) from None


def write_own(file: Path, text: str, is_own: Callable[[bytes], bool], what: str) -> None:
    """Write a file atomically; an existing one is replaced only if it is of the same kind.

    Args:
        file: the file.
        text: its new content.
        is_own: whether the content of an existing file is of the same kind.
        what: the kind, for the error.

    Raises:
        HeadroomError: another kind of file exists there, or it cannot be written.
    """
    try:
        if file.exists() and not (file.is_file() and is_own(read_bytes(file))):
            raise HeadroomError(str(file), f"exists and is not {what}", "Name another file, or remove it.")
        replace_file(file, text)
    except OSError as error:
        raise HeadroomError(str(file), f"cannot be written ({error.strerror})", _OTHER) from None


def is_object_with(content: bytes, keys: Iterable[str]) -> bool:
    """Return whether a file has one JSON object with these keys, for ``write_own``."""
    try:
        document = parse_json(decode_text(content))
    except ValueError:
        return False
    return isinstance(document, dict) and set(keys) <= document.keys()


def replace_file(path: Path, text: str) -> None:
    """Write a file atomically.

    Raises:
        OSError: it cannot be written.
    """
    # A tool that reads the file meanwhile sees the old or the new one, never a part.
    descriptor, name = tempfile.mkstemp(dir=path.resolve().parent, prefix=f".{path.name}.")
    try:
        with os.fdopen(descriptor, "w", encoding="utf-8") as output:
            output.write(text)
        # The usual permissions of new files: a temporary file is readable by its owner only.
        mask = os.umask(0)
        os.umask(mask)
        os.chmod(name, 0o666 & ~mask)
        os.replace(name, path.resolve())
    except BaseException:
        Path(name).unlink(missing_ok=True)
        raise
