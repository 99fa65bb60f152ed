"""Files that commands read."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from schemas.errors import HeadroomError
from schemas.json_text import decoded, parse_json

_OTHER = "Name another file."


def read_text(file: Path, remedy: str = _OTHER) -> str:
    """Return the text in a file.

    Args:
        file: the file.
        remedy: remedy if it cannot be read.

    Raises:
        HeadroomError: the file cannot be read, or is no text.
    """
    try:
        return decoded(file.read_bytes())
    except OSError as error:
        raise HeadroomError(str(file), f"cannot be read ({error.strerror})", remedy) from None
    except ValueError as error:
        raise HeadroomError(str(file), f"cannot be read ({error})", "Save it as UTF-8, or name another file.") from None


def read_json(file: Path, remedy: str, unreadable: str = _OTHER) -> Any:
    """Return the JSON value in a file.

    Args:
        file: the file.
        remedy: remedy if it is no JSON.
        unreadable: remedy if it cannot be read.

    Raises:
        HeadroomError: the file cannot be read, or is no JSON.
    """
    text = read_text(file, unreadable)
    try:
        return parse_json(text)
    except ValueError as error:
        raise HeadroomError(str(file), f"is no JSON ({error})", remedy) from None
