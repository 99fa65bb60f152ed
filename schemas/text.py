"""Text from outside, made fit for a terminal, a log line or a shell."""

from __future__ import annotations

import json
import shlex


def printable(text: str) -> str:
    r"""Return text with every character that a terminal would act on written as an escape, such as ``\x1b``.

    These are control characters, line breaks, marks that turn the direction of writing, and halves of surrogate
    pairs: what ``str.isprintable`` refuses. Everything else stays as it is, in any script.
    """
    return text if text.isprintable() else "".join(map(_escaped, text))


def one_line(text: str, most: int | None = None) -> str:
    """Return text in one printable line: white space is a single space.

    Args:
        text: any text.
        most: longest result, in characters; None: any length.
    """
    line = printable(" ".join(text.split()))
    return line if most is None or len(line) <= most else f"{line[: most - 1]}…"


def printable_json(text: str) -> str:
    r"""Return JSON text with every character that is not printable as JSON's own escape, such as ``\u007f``.

    The value stays the same. Line breaks stand between values only, and are kept.
    """
    return "\n".join(line if line.isprintable() else "".join(map(_json_escaped, line)) for line in text.split("\n"))


def shell_quoted(text: str) -> str:
    r"""Return text as one word of a shell, in one line: with a control character in it as ``$'...'``.

    Bash, zsh, ksh and POSIX 2024 read ``$'a\nb'``; a plain quotation would begin a line of its own, which a reader
    takes for a command.
    """
    if text.isprintable():
        return shlex.quote(text)
    escaped = "".join(_shell_escaped(character) for character in text)
    return f"$'{escaped}'"


def _escaped(character: str) -> str:
    return character if character.isprintable() else character.encode("unicode_escape").decode("ascii")


def _json_escaped(character: str) -> str:
    return character if character.isprintable() else json.dumps(character)[1:-1]


def _shell_escaped(character: str) -> str:
    if character in "\\'":
        return f"\\{character}"
    if character.isprintable():
        return character
    # Byte by byte, in octal of three digits: a digit that follows is not taken for a part of it.
    return "".join(f"\\{byte:03o}" for byte in character.encode("utf-8", "surrogateescape"))
