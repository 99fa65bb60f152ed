"""Cause of a failure in one line, from the errors of Spark, its JVM and the Delta library.

Their texts begin with what all failures have in common: a Python function that Java called, or a call that did not
return. The cause comes a hundred lines later, after two tracebacks.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from itertools import takewhile

from headroom.schemas.errors import HeadroomError
from headroom.schemas.text import one_line

# Remedy of a failure of Spark.
AGAIN = "Start it again: it goes on where it stopped. If it stops again, the log says more."
# Longest cause, characters.
_MOST = 300
# Begins the plans that Spark appends to a query's error.
_QUERY = "\n=== Streaming Query ==="
# First line of an exception: Java's after "Caused by:", Py4J's after a colon, Python's without a prefix. Those of the
# Delta library may be bare.
_BEGIN = re.compile(
    r"(?:(?P<caused>Caused by): |: )?(?P<of>(?:[\w$]+\.)*)(?P<name>[\w$]+(?:Error|Exception)|Exception)"
    r"(?:: (?P<text>.*)|$)"
)
_COLOUR = re.compile(r"\x1b\[[0-9;]*m")
# Prefixes of the lines in which the Delta library continues an error: its source, and an error of the system.
_CONTINUED = ("↳", "Error: Os ")
# Headroom's own error, whose text needs no class name; a bare Exception needs none either.
_OURS = HeadroomError.__name__


class JvmEnded(HeadroomError):
    """Spark's JVM has ended; the process needs a new one."""

    def __init__(self) -> None:
        super().__init__("Spark", "its JVM has ended", AGAIN)


def cause_of(error: BaseException | str) -> str:
    """Return the cause of a failure in one printable line of bounded length, without a full stop.

    Args:
        error: an exception of Spark, Py4J or the Delta library, or its text.
    """
    text = _COLOUR.sub("", str(error)).partition(_QUERY)[0].strip()
    lines = [line.rstrip() for line in text.split("\n") if line.strip()]
    if not lines:
        return "unknown" if isinstance(error, str) else type(error).__name__
    at, cause = _cause(lines)
    more = (line.strip() for line in takewhile(lambda line: line.strip().startswith(_CONTINUED), lines[at + 1 :]))
    parts = (cause, *(line.removeprefix(_CONTINUED[0]).strip() for line in more))
    return one_line(": ".join(parts), _MOST).rstrip(". ")


def _cause(lines: Sequence[str]) -> tuple[int, str]:
    """Return the index of the line with the cause, and the cause."""
    causes = [(at, match) for at, line in enumerate(lines) if (match := _BEGIN.match(line))]
    if not causes:
        return 0, lines[0]
    # The last cause of a Java exception; otherwise the last exception, because Python prints the relevant one last.
    at, last = next((one for one in reversed(causes) if one[1]["caused"]), causes[-1])
    if last["name"] == _OURS or (last["name"] == "Exception" and last["text"]):
        return at, last["text"]
    return at, f"{last['name']}: {last['text']}" if last["text"] else last["name"]
