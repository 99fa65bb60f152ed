"""Parser of the Prometheus text format that parses only the needed lines.

The parser of prometheus_client creates an object per sample and groups them into families. For a broker with 4,000
replicas that takes many times as long, and most lines are not needed here. This parser looks up each metric name once
and skips the labels of all other lines.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from typing import TypeVar

_Meaning = TypeVar("_Meaning")
# Meaning, labels, value, and own time in epoch milliseconds by the writer's clock; None if it has none.
Sample = tuple[_Meaning, dict[str, str], float, int | None]
_LABEL = re.compile(r'([a-zA-Z_][a-zA-Z0-9_]*)\s*=\s*"((?:[^"\\]|\\.)*)"')
# Maximum characters of an invalid line in an error.
_MAX_SHOWN_CHARACTERS = 4096
_ESCAPED = re.compile(r"\\(.)")


def read_samples(text: str, meaning_of: Callable[[str], _Meaning | None]) -> Iterator[Sample[_Meaning]]:
    """Yield each sample whose metric has a meaning.

    Args:
        text: the whole answer.
        meaning_of: returns the meaning of a metric name; None to skip its samples.

    Raises:
        ValueError: the text ends within a line, or a needed line is not in the format.
    """
    if text and not text.endswith("\n"):
        raise ValueError("it ends in the middle of a line")
    meanings: dict[str, _Meaning | None] = {}
    # Cached, because the three metrics of a log have the same labels.
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
            value, *time_ms = line[end:].split()
            # Python's numbers may have underscores and digits of other scripts.
            if "_" in value or not value.isascii():
                raise ValueError
            yield meaning, labels, float(value), int(time_ms[0]) if time_ms else None
        except (ValueError, IndexError):
            raise ValueError(f"line {number} is not a sample: {line[:_MAX_SHOWN_CHARACTERS]!r}") from None


def _labels(braced: str) -> dict[str, str]:
    labels = dict(_LABEL.findall(braced))
    if "\\" in braced:
        labels = {label: _ESCAPED.sub(_plain, value) for label, value in labels.items()}
    return labels


def _plain(match: re.Match[str]) -> str:
    return "\n" if match[1] == "n" else match[1]
