"""Passwords, read whenever they are used, because they may have been changed: from the setting, otherwise its file."""

from __future__ import annotations

from pathlib import Path

from headroom.schemas.config import KafkaSettings, OriginSettings, TicksSettings
from headroom.schemas.errors import HeadroomError
from headroom.schemas.text.json_text import decode_text

# The longest secrets, such as tokens, have some thousand characters; a device file may never end.
_MAX_BYTES = 65_536


def secret(value: str | None, file: str | None, subject: str) -> str | None:
    """Return the password of a setting or its file; None if neither is set.

    Args:
        value: the setting itself; it takes precedence.
        file: path of a file that contains only the password.
        subject: name of the file's setting, for errors.

    Raises:
        HeadroomError: the file cannot be read, or is empty.
    """
    if value is not None or not file:
        return value
    text = _text(file, subject).strip()
    if not text:
        raise HeadroomError(subject, f"{file} is empty", "Write the password into it.")
    return text


def section_of(kafka: KafkaSettings) -> str:
    """Return the section of the settings that errors about a connection name."""
    if isinstance(kafka, OriginSettings):
        return "migration.origin"
    return "ticks" if isinstance(kafka, TicksSettings) else "cluster"


def sasl_password(kafka: KafkaSettings) -> str | None:
    """Return the SASL password of a connection as it is now; None if none is set.

    Raises:
        HeadroomError: its file cannot be read, or is empty.
    """
    return secret(kafka.sasl_password, kafka.sasl_password_file, f"{section_of(kafka)}.sasl_password_file")


def _text(file: str, subject: str) -> str:
    try:
        with Path(file).expanduser().open("rb") as opened:
            data = opened.read(_MAX_BYTES + 1)
        if len(data) > _MAX_BYTES:
            raise HeadroomError(subject, f"{file} is too long for a password", "Name a file that holds nothing else.")
        return decode_text(data)
    # expanduser() raises RuntimeError for an unknown user.
    except RuntimeError:
        raise HeadroomError(subject, f"cannot read {file}: there is no such user", "Name the file in full.") from None
    except (OSError, ValueError) as error:
        reason = getattr(error, "strerror", None) or "not text"
        raise HeadroomError(subject, f"cannot read {file}: {reason}", "Make it readable for this user.") from None
