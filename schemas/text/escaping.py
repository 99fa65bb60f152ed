"""Escaping of external text for terminals, log lines and shells."""

from __future__ import annotations

import json
import shlex


def printable(text: str) -> str:
    r"""Return text with every character that controls a terminal escaped, such as ``\x1b``.

    Escaped are control characters, line breaks, characters that change the writing direction, and halves of surrogate
    pairs: everything that ``str.isprintable`` rejects. Other text is unchanged in any script.
    """
    return text if text.isprintable() else "".join(map(_escape, text))


def one_line(text: str, most: int | None = None) -> str:
    """Return text as one printable line, with runs of white space replaced by one space.

    Args:
        text: any text.
        most: maximum length in characters; None: unlimited.
    """
    line = printable(" ".join(text.split()))
    return line if most is None or len(line) <= most else f"{line[: most - 1]}…"


def printable_json(text: str) -> str:
    r"""Return JSON text with unprintable characters as JSON escapes, such as ``\u007f``.

    The parsed value is the same. Line breaks occur only between values and are kept.
    """
    return "\n".join(line if line.isprintable() else "".join(map(_escape_json, line)) for line in text.split("\n"))


def shell_quoted(text: str) -> str:
    r"""Return text quoted as one shell word in one line; control characters become ``$'...'`` escapes.

    Bash, zsh, ksh and POSIX 2024 read ``$'a\nb'``. With plain quotes, a line break would start a new line that looks
    like a command.
    """
    if text.isprintable():
        return shlex.quote(text)
    escaped = "".join(_escape_shell(character) for character in text)
    return f"$'{escaped}'"


def _escape(character: str) -> str:
    return character if character.isprintable() else character.encode("unicode_escape").decode("ascii")


def _escape_json(character: str) -> str:
    return character if character.isprintable() else json.dumps(character)[1:-1]


def _escape_shell(character: str) -> str:
    if character in "\\'":
        return f"\\{character}"
    if character.isprintable():
        return character
    # Three octal digits per byte, so that a following digit is not read as part of the escape.
    return "".join(f"\\{byte:03o}" for byte in character.encode("utf-8", "surrogateescape"))
