"""Part ``amounts``: every reader of quantities against the grammar by hand."""

from __future__ import annotations

from collections.abc import Sequence
from random import Random
from typing import Any

from benchmarks.fixtures.bench_cluster import OnProgress
from benchmarks.groups.fuzz.amounts.targets import Target, targets
from benchmarks.groups.fuzz.amounts.texts import near
from benchmarks.results import Figure

_SEED = 1126
_SHOWN = 20
_UNKNOWN = object()


def measure_amounts(count: int, on_progress: OnProgress) -> list[Figure]:
    """Return the figure. Each text that was read wrongly is reported, up to a number.

    Args:
        count: number of texts, divided among the readers.
        on_progress: gets the texts that were read wrongly.
    """
    all_targets = list(targets())
    read = wrong = 0
    for number, target in enumerate(all_targets):
        texts = texts_of(target, count * (number + 1) // len(all_targets) - count * number // len(all_targets), number)
        mistakes = [mistake for text in texts if (mistake := mistake_of(target, text)) is not None]
        for mistake in mistakes[: max(0, _SHOWN - wrong)]:
            on_progress(mistake)
        read, wrong = read + len(texts), wrong + len(mistakes)
    on_progress(f"{read} texts for {len(all_targets)} readers, {wrong} read wrongly")
    return [Figure("amounts_accepted_wrong", wrong, "texts", read)]


def texts_of(target: Target, count: int, number: int) -> Sequence[str]:
    """Return texts near the kind of a reader, the same in every run."""
    random = Random(_SEED + number)
    texts: list[str] = []
    while len(texts) < count:
        text = near(target.kind, random)
        # A variable that is empty is not set, and a broker reports no text for a rate that is not set.
        if text or target.kind == "replica list":
            texts.append(text)
    return texts


def mistake_of(target: Target, text: str) -> str | None:
    """Return how a text was read wrongly; None if it was read rightly."""
    expected = target.expected(text)
    value = _read(target, text)
    if value is _UNKNOWN:
        return f"{target.name}: {text!r} ends with an error that is not documented"
    if value == expected and type(value) is type(expected):
        return None
    return f"{target.name}: {text!r} is {_show(value)}, and should be {_show(expected)}"


def _show(value: Any) -> str:
    return "refused" if value is None else repr(value)


def _read(target: Target, text: str) -> Any:
    """Return the value of a text; None if it was refused as documented."""
    try:
        return target.read(text)
    except target.refusals:
        return None
    except Exception:
        return _UNKNOWN
