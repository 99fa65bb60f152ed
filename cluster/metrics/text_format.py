"""Prometheus' text format, line by line.

The parser of Prometheus' own client makes an object of every sample and sorts them into families: an answer of a broker
with 4,000 replicas takes it many times as long as this, and most lines are of no use here. What a name means is asked
once for each name, and the labels of other lines are not looked at.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from typing import TypeVar

_Meaning = TypeVar("_Meaning")
_LABEL = re.compile(r'([a-zA-Z_][a-zA-Z0-9_]*)\s*=\s*"((?:[^"\\]|\\.)*)"')
# Of a line that is none, for the error.
_LOOKED_AT = 4096
_ESCAPED = re.compile(r"\\(.)")


def read_samples(
    text: str, meaning_of: Callable[[str], _Meaning | None]
) -> Iterator[tuple[_Meaning, dict[str, str], float]]:
    """Yield meaning, labels and value of each sample whose metric has a meaning.

    Args:
        text: the whole answer.
        meaning_of: what a metric's name means; None: nothing, the sample is left out.

    Raises:
        ValueError: the text ends within a line, or a line that matters is not in the format.
    """
    if text and not text.endswith("\n"):
        raise ValueError("it ends in the middle of a line")
    meanings: dict[str, _Meaning | None] = {}
    # Of the three metrics of a log, the labels are the same.
    labels_of: dict[str, dict[str, str]] = {}
    for number, line in enumerate(text.split("\n"), 1):
        if not line or line[0] == "#":
            continue
        brace = line.find("{")
        name = line[:brace] if brace >= 0 else line.partition(" ")[0]
        if name not in meanings:
            meanings[name] = meaning_of(name)
        meaning = meanings[name]
        if meaning is None:
            continue
        try:
            end = line.rindex("}") + 1 if brace >= 0 else len(name)
            braced = line[len(name) : end]
            labels = labels_of.get(braced)
            if labels is None:
                labels = labels_of[braced] = _labels(braced)
            yield meaning, labels, float(line[end:].split()[0])
        except (ValueError, IndexError):
            raise ValueError(f"line {number} is not a sample: {line[:_LOOKED_AT]!r}") from None


def _labels(braced: str) -> dict[str, str]:
    labels = dict(_LABEL.findall(braced))
    if "\\" in braced:
        labels = {label: _ESCAPED.sub(_plain, value) for label, value in labels.items()}
    return labels


def _plain(match: re.Match[str]) -> str:
    return "\n" if match[1] == "n" else match[1]
