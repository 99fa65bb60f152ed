"""Result of one check of ``headroom check``, and a time limit for checks that may hang."""

from __future__ import annotations

from collections.abc import Callable
from concurrent.futures import TimeoutError as NotInTime
from dataclasses import dataclass
from enum import Enum
from functools import partial

from headroom.schemas.errors import HeadroomError
from headroom.schemas.threads import run_in_daemon_thread


class CheckStatus(str, Enum):
    """Answer of a check: passed, failed, or not known."""

    OK = "ok"
    FAILED = "no"
    UNKNOWN = "unknown"


@dataclass(frozen=True)
class Check:
    """One row of the table.

    Attributes:
        name: requirement that was checked.
        answer: ok, no, or unknown if it could not be checked.
        found: observation, such as a version, an address or an error.
        remedy: fix for a no or unknown; empty for ok.
    """

    name: str
    answer: CheckStatus
    found: str
    remedy: str = ""


def ok(name: str, finding: str) -> Check:
    """Return a check that passed."""
    return Check(name, CheckStatus.OK, finding)


def failure(name: str, finding: str, remedy: str) -> Check:
    """Return a check that failed."""
    return Check(name, CheckStatus.FAILED, finding, remedy)


def unknown(name: str, finding: str, remedy: str) -> Check:
    """Return a check that could not be carried out."""
    return Check(name, CheckStatus.UNKNOWN, finding, remedy)


def with_timeout(name: str, timeout_s: float, checks: Callable[[], list[Check]]) -> list[Check]:
    """Return the results of checks, or a single failed one if they raise or take longer than ``timeout_s`` seconds."""
    try:
        return run_in_daemon_thread(f"check {name}", partial(_run, name, checks)).result(timeout_s)
    except NotInTime:
        return [
            failure(name, f"no answer within {timeout_s:g} s", "Look whether it hangs, or a firewall swallows packets.")
        ]


def _run(name: str, checks: Callable[[], list[Check]]) -> list[Check]:
    try:
        return checks()
    except HeadroomError as error:
        return [failure(name, f"{error.subject}: {error.rule}", error.remedy)]
    # An unexpected error becomes a row of the table, so that the other checks are still shown.
    except Exception as error:
        return [failure(name, f"{type(error).__name__}: {error}", "Fix this and check again.")]
