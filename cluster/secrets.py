"""Passwords at the moment of their use: from the setting itself, else from its file."""

from __future__ import annotations

from pathlib import Path

from schemas.errors import HeadroomError


def secret(value: str | None, file: str | None, subject: str) -> str | None:
    """Return the password that a setting or its file holds; None when neither is set.

    Args:
        value: the setting itself; it wins.
        file: path of a file whose only content is the password.
        subject: name of the file's setting, for the error.

    Raises:
        HeadroomError: the file cannot be read, or is empty.
    """
    if value is not None or not file:
        return value
    try:
        text = Path(file).expanduser().read_text(encoding="utf-8").strip()
    except (OSError, UnicodeDecodeError) as error:
        reason = getattr(error, "strerror", None) or "not text"
        raise HeadroomError(subject, f"cannot read {file}: {reason}", "Make it readable for this user.") from None
    if not text:
        raise HeadroomError(subject, f"{file} is empty", "Write the password into it.")
    return text
