"""What commands make in the folder of an action, and the commands that carry it out."""

from __future__ import annotations

import json
import shlex
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path

_BATCHES, _RESULT, _PROPOSAL = "batches", "result.json", "proposal"


@dataclass(frozen=True)
class Making:
    """How what a command makes is carried out.

    Attributes:
        options: its options that name what it makes, and the names of that in the folder of its action.
        carried_out_by: returns the arguments that carry out what is in a folder, with those for the settings file, and
            with ``--execute``; None if there is nothing to carry out.
    """

    options: Mapping[str, str]
    carried_out_by: Callable[[Path, Sequence[str]], Sequence[str] | None]

    def arguments(self, folder: Path) -> list[str]:
        """Return the arguments of the command that makes it."""
        return [word for option, name in self.options.items() for word in (option, str(folder / name))]


def _run_of_plan(folder: Path, _: Sequence[str]) -> Sequence[str] | None:
    """Return the command that ``headroom plan`` names, for exactly that plan and the replicas that it has read."""
    file = folder / _RESULT
    try:
        status = file.stat()
        command, fingerprint = _command_of_plan(file, status.st_mtime_ns, status.st_size)
        words = shlex.split(command)
    except (OSError, ValueError, LookupError, TypeError):
        # Nothing has to change, it does not fit, or its throttle is not known.
        return None
    run = ["headroom", "reassign", "run", "--batches-dir", str(folder / _BATCHES)]
    return [*words[1:], "--fingerprint", fingerprint] if words[: len(run)] == run else None


# The result of a large plan has millions of lines, and all actions are read again and again.
@lru_cache(maxsize=1000)
def _command_of_plan(file: Path, _modified_ns: int, _size: int) -> tuple[str, str]:
    result = json.loads(file.read_text(encoding="utf-8"))
    return str(result["next_commands"][0]), str(result["fingerprint"])


def _run_of_proposal(folder: Path, config: Sequence[str]) -> Sequence[str] | None:
    made = folder / _PROPOSAL
    return ["balance", "run", str(made), *config, "--execute"] if any(made.glob("batch-*.json")) else None


MADE_PLAN = Making({"--batches-dir": _BATCHES, "--save-result": _RESULT}, _run_of_plan)
MADE_PROPOSAL = Making({"--dir": _PROPOSAL}, _run_of_proposal)
