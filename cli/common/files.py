"""Files that commands read."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from schemas.errors import HeadroomError

_OTHER = "Name another file."


def read_text(file: Path) -> str:
    """Return the text in a file.

    Raises:
        HeadroomError: the file cannot be read, or is no text.
    """
    try:
        return file.read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError) as error:
        reason = error.strerror if isinstance(error, OSError) else "it is no text"
        raise HeadroomError(str(file), f"cannot be read ({reason})", _OTHER) from None


def read_json(file: Path, remedy: str, unreadable: str = _OTHER) -> Any:
    """Return the JSON value in a file.

    Args:
        file: the file.
        remedy: remedy if it is no JSON.
        unreadable: remedy if it cannot be read.

    Raises:
        HeadroomError: the file cannot be read, or is no JSON.
    """
    try:
        return json.loads(file.read_text(encoding="utf-8"))
    except OSError as error:
        raise HeadroomError(str(file), f"cannot be read ({error.strerror})", unreadable) from None
    # RecursionError: the text is nested too deeply for Python's parser.
    except (ValueError, RecursionError) as error:
        raise HeadroomError(str(file), f"is no JSON ({error})", remedy) from None
