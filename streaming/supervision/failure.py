"""Why something failed, in one line: the cause in what Spark, its JVM and the Delta library raise.

Their texts begin with what every failure has: a function of Python's that Java called, or a call that did not return.
The cause comes a hundred lines later, after two tracebacks.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from itertools import takewhile

from schemas.errors import HeadroomError
from schemas.text import one_line

_MOST = 300
# What Spark adds to a query's error: its plans.
_QUERY = "\n=== Streaming Query ==="
# A line that begins an exception: Java's after "Caused by:", Py4J's after a colon, Python's as it is.
_BEGIN = re.compile(
    r"(?:(?P<caused>Caused by): |: )?(?P<of>(?:[\w$]+\.)*)(?P<name>[\w$]+(?:Error|Exception))(?:: (?P<text>.*)|$)"
)
_COLOUR = re.compile(r"\x1b\[[0-9;]*m")
# How the Delta library goes on with what lies behind an error, and with an error of the system.
_BEHIND = ("↳", "Error: Os ")
# Of our own, whose text needs no name.
_OURS = HeadroomError.__name__


def cause_of(error: BaseException | str) -> str:
    """Return the cause of a failure in one printable line of bounded length, without a full stop.

    Args:
        error: an exception of Spark's, Py4J's or the Delta library's, or its text.
    """
    text = _COLOUR.sub("", str(error)).partition(_QUERY)[0].strip()
    lines = [line.rstrip() for line in text.split("\n") if line.strip()]
    if not lines:
        return "unknown" if isinstance(error, str) else type(error).__name__
    at, cause = _cause(lines)
    behind = (line.strip() for line in takewhile(lambda line: line.strip().startswith(_BEHIND), lines[at + 1 :]))
    return one_line(": ".join((cause, *(line.removeprefix(_BEHIND[0]).strip() for line in behind))), _MOST).rstrip(". ")


def _cause(lines: Sequence[str]) -> tuple[int, str]:
    """Return the number of the line with the cause, and the cause."""
    found = [(at, match) for at, line in enumerate(lines) if (match := _BEGIN.match(line))]
    if not found:
        return 0, lines[0]
    # The last cause of Java's exception; else the last exception, for Python shows the one that counts at the end.
    at, last = next((one for one in reversed(found) if one[1]["caused"]), found[-1])
    if last["name"] == _OURS:
        return at, last["text"]
    return at, f"{last['name']}: {last['text']}" if last["text"] else last["name"]
