"""The curve of a proposal of a balance, by which it is cut: what its first actions gain and copy."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass, replace
from functools import lru_cache
from pathlib import Path
from typing import Any, NamedTuple

from headroom.dashboard.acting.allowed import AllowedCommand
from headroom.dashboard.acting.made import proposal_file
from headroom.schemas.keys import TopicPartition
from headroom.schemas.text.amounts import percent_text, size_text

# Actions with a row of their own; a cut after a later one is asked for by the form.
_MOST_ROWS = 200
# Options that say where a proposal is cut; each has a value.
_CUTS = ("--prefix", "--until-in-band")


class CurveRow(NamedTuple):
    """An action of a proposal, and what it gains and copies with all before it.

    Attributes:
        number: its number, from 1.
        kind: kind of the action.
        partition: its partition.
        from_broker: broker that gives something up.
        to_broker: broker that gets it.
        gained: share of the load outside of bands that is gone after it, as text.
        copied: bytes that are copied up to it, as text.
    """

    number: int
    kind: str
    partition: str
    from_broker: int
    to_broker: int
    gained: str
    copied: str


@dataclass(frozen=True)
class ProposalCurve:
    """The curve.

    Attributes:
        gained: share of the load outside of bands that is gone after no action, and after each further one, 0 to 1.
        copied: share of all bytes that are copied up to it, likewise.
        rows: its first actions.
        chosen: number of the first actions that would be carried out.
    """

    gained: tuple[float, ...]
    copied: tuple[float, ...]
    rows: tuple[CurveRow, ...]
    chosen: int

    @property
    def actions(self) -> int:
        """Return the number of all actions."""
        return len(self.gained) - 1


def curve_of(folder: Path) -> ProposalCurve | None:
    """Return the curve of the proposal in the folder of an action; None if there is none, or it has no action."""
    file = proposal_file(folder)
    try:
        status = file.stat()
    except OSError:
        return None
    return _curve(file, status.st_mtime_ns, status.st_size)


def cut_at(command: AllowedCommand, actions: int) -> AllowedCommand:
    """Return the command that proposes the first actions alone.

    Args:
        command: the command that proposes.
        actions: how many.
    """
    words: list[str] = []
    rest = iter(command.words)
    for word in rest:
        if word in _CUTS:
            next(rest)
        else:
            words.append(word)
    return replace(command, words=(*words, "--prefix", str(actions)))


# A proposal of a large cluster has megabytes, and an open page asks for it twice a second.
@lru_cache(maxsize=32)
def _curve(file: Path, _modified_ns: int, _size: int) -> ProposalCurve | None:
    try:
        return _curve_in(json.loads(file.read_text(encoding="utf-8")))
    except (OSError, ValueError, LookupError, TypeError, AttributeError, OverflowError, RecursionError):
        # Not written as a whole, or by another version.
        return None


def _curve_in(proposal: Mapping[str, Any]) -> ProposalCurve | None:
    actions, chosen, outside = proposal["actions"], int(proposal["chosen_actions"]), float(proposal["outside_before"])
    if not actions or not 0 < chosen <= len(actions):
        return None
    gained = [0.0, *(_share(outside - float(one["outside_after"]), outside) for one in actions)]
    copied = [0.0, *(float(one["copied_bytes_after"]) for one in actions)]
    rows = (
        CurveRow(
            number,
            str(one["kind"]),
            str(TopicPartition(one["topic"], one["partition"])),
            one["from_broker"],
            one["to_broker"],
            percent_text(gained[number]),
            size_text(copied[number]),
        )
        for number, one in enumerate(actions[:_MOST_ROWS], start=1)
    )
    shares = tuple(_share(one, copied[-1]) for one in copied)
    return ProposalCurve(tuple(gained), shares, tuple(rows), chosen)


def _share(part: float, whole: float) -> float:
    return min(1.0, max(0.0, part / whole)) if whole > 0 else 0.0
