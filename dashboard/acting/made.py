"""What commands make in the folder of an action, and the commands that carry it out."""

from __future__ import annotations

import json
import shlex
import shutil
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path
from typing import Any

from headroom.planning.throttles.rate_options import LOW_RATE, is_low

_BATCHES, _RESULT, _PROPOSAL = "batches", "result.json", "proposal"
_UNREADABLE = (OSError, ValueError, LookupError, TypeError)


@dataclass(frozen=True)
class Making:
    """How what a command makes is carried out.

    Attributes:
        options: its options that name what it makes, and the names of that in the folder of its action.
        carried_out_by: returns the arguments that carry out what is in a folder, without settings file and
            ``--execute``; None if there is nothing to carry out.
    """

    options: Mapping[str, str]
    carried_out_by: Callable[[Path], Sequence[str] | None]

    def arguments(self, folder: Path) -> list[str]:
        """Return the arguments of the command that makes it."""
        return [word for option, name in self.options.items() for word in (option, str(folder / name))]

    def forget(self, folder: Path) -> None:
        """Remove what was made."""
        for name in self.options.values():
            shutil.rmtree(folder / name, ignore_errors=True)
            with suppress(OSError):
                (folder / name).unlink(missing_ok=True)


def _run_of_plan(folder: Path) -> Sequence[str] | None:
    """Return the run of exactly the plan that was made, on the replicas that it has read."""
    options = _read_once(folder / _RESULT, _options_of_plan)
    return None if options is None else ["reassign", "run", "--batches-dir", str(folder / _BATCHES), *options]


def proposal_file(folder: Path) -> Path:
    """Return the file of the proposal that was made in the folder of an action, if one was."""
    return folder / _PROPOSAL / "proposal.json"


def _run_of_proposal(folder: Path) -> Sequence[str] | None:
    options = _read_once(proposal_file(folder), _options_of_proposal)
    return None if options is None else ["balance", "run", str(folder / _PROPOSAL), *options]


def _options_of_plan(result: Mapping[str, Any]) -> list[str]:
    """Return the options of the command that ``headroom plan`` names; it names none for what does not fit."""
    options: list[str] = []
    words = iter(shlex.split(result["next_commands"][0]))
    for word in words:
        if word in ("--throttle", "--log-dirs-throttle"):
            options += [word, next(words)]
        elif word == LOW_RATE:
            options.append(word)
    return [*options, "--fingerprint", str(result["fingerprint"])]


def _options_of_proposal(proposal: Mapping[str, Any]) -> list[str]:
    copied = [batch["copied_replicas"] for batch in proposal["batches"]]
    if not copied:
        raise LookupError(proposal)
    throttle = proposal["throttle_bytes_per_s"]
    return [LOW_RATE] * (any(copied) and throttle is not None and is_low(throttle))


def _read_once(file: Path, options_of: Callable[[Mapping[str, Any]], list[str]]) -> Sequence[str] | None:
    try:
        status = file.stat()
    except OSError:
        return None
    return _options(file, options_of, status.st_mtime_ns, status.st_size)


# That of a large cluster has millions of lines, and all actions are read again and again.
@lru_cache(maxsize=1000)
def _options(
    file: Path, options_of: Callable[[Mapping[str, Any]], list[str]], _modified_ns: int, _size: int
) -> tuple[str, ...] | None:
    try:
        return tuple(options_of(json.loads(file.read_text(encoding="utf-8"))))
    except _UNREADABLE:
        # Nothing has to change, it does not fit, or its throttle is not known.
        return None


MADE_PLAN = Making({"--batches-dir": _BATCHES, "--save-result": _RESULT}, _run_of_plan)
MADE_PROPOSAL = Making({"--dir": _PROPOSAL}, _run_of_proposal)
