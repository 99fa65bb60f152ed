"""What one check of ``headroom check`` says, and checks that cannot hang."""

from __future__ import annotations

import threading
from collections.abc import Callable
from dataclasses import dataclass
from enum import Enum

from schemas.errors import HeadroomError


class CheckStatus(str, Enum):
    """Whether what Headroom needs is there."""

    OK = "ok"
    NO = "no"
    UNKNOWN = "unknown"


@dataclass(frozen=True)
class Check:
    """One row of the table.

    Attributes:
        name: what is needed.
        answer: whether it is there; unknown: it could not be found out.
        found: what was tried and seen.
        remedy: what to do about a no or unknown; empty for ok.
    """

    name: str
    answer: CheckStatus
    found: str
    remedy: str = ""


def ok(name: str, found: str) -> Check:
    """Return a check that passed."""
    return Check(name, CheckStatus.OK, found)


def no(name: str, found: str, remedy: str) -> Check:
    """Return a check that failed."""
    return Check(name, CheckStatus.NO, found, remedy)


def unknown(name: str, found: str, remedy: str) -> Check:
    """Return a check that could not be made."""
    return Check(name, CheckStatus.UNKNOWN, found, remedy)


def bounded(name: str, timeout_s: float, checks: Callable[[], list[Check]]) -> list[Check]:
    """Return what the checks say, or a single no if they raise or take longer than ``timeout_s`` seconds."""
    said: list[Check] = []

    def work() -> None:
        said.extend(_caught(name, checks))

    # A daemon: what hangs for ever must not keep the command from ending.
    thread = threading.Thread(target=work, name=f"check {name}", daemon=True)
    thread.start()
    thread.join(timeout_s)
    if thread.is_alive():
        return [no(name, f"no answer within {timeout_s:g} s", "Look whether it hangs, or a firewall swallows packets.")]
    return said


def _caught(name: str, checks: Callable[[], list[Check]]) -> list[Check]:
    try:
        return checks()
    except HeadroomError as error:
        return [no(name, f"{error.subject}: {error.rule}", error.remedy)]
    # A check that breaks is told as a row, so that the others are still seen.
    except Exception as error:
        return [no(name, f"{type(error).__name__}: {error}", "Put that right and check again.")]
