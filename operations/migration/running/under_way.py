"""Whether a run of a migration is under way, as far as the store shows it: its process has a lock there."""

from __future__ import annotations

import hashlib
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager

from headroom.operations.progress import OnText
from headroom.schemas.config import Settings
from headroom.schemas.errors import HeadroomError
from headroom.streaming.store.single_instance import SHARED_S, SecondProcess, exclusive_jobs, running_process

_SECOND = SecondProcess("the second run would end the first at its next change", "Let that run go on, or stop it.")


def run_under_way(settings: Settings, migration: str) -> str | None:
    """Return the process that carries on a run of a migration now, as text; None if none does, or if that is unknown.

    It is unknown if the run has another store, or if the store is on no disk of this machine.

    Args:
        settings: all settings.
        migration: name of the migration.
    """
    process = running_process(settings.store, _job(settings, migration))
    if process is None:
        return None
    return f"{process} ({process.command})" if process.command else str(process)


def require_none_under_way(settings: Settings, migration: str) -> None:
    """Check that no run of a migration is under way.

    Args:
        settings: all settings.
        migration: name of the migration.

    Raises:
        HeadroomError: one is.
    """
    process = run_under_way(settings, migration)
    if process is not None:
        rule = f"a run of it is under way, {process}, and a second one would end it at its next change"
        raise HeadroomError(f"migration {migration}", rule, _SECOND.remedy)


@contextmanager
def noted_run(settings: Settings, migration: str, unless_running: bool, on_note: OnText) -> Iterator[None]:
    """Let other processes know of this run until the block ends.

    A run that is under way already ends at its next change, as the agreement topic has one writer. Until then it keeps
    the lock, and this one has none.

    Args:
        settings: all settings.
        migration: name of the migration.
        unless_running: whether nothing may be done while another run is under way.
        on_note: gets a sentence about a run that is under way.

    Raises:
        HeadroomError: another run is under way, and ``unless_running`` is set.
    """
    if unless_running:
        require_none_under_way(settings, migration)
    with ExitStack() as stack:
        try:
            locks = exclusive_jobs(settings.store, [_job(settings, migration)], SHARED_S, second=_SECOND)
            stack.enter_context(locks)
        except HeadroomError:
            if unless_running:
                raise
            process = run_under_way(settings, migration) or "an unknown process"
            on_note(f"Another run of migration {migration} is under way, and ends at its next change: {process}.")
        yield


def _job(settings: Settings, migration: str) -> str:
    # Names of migrations are any text, and those of files are not.
    names = f"{settings.cluster.name}\0{migration}".encode()
    return f"migration-{hashlib.sha256(names).hexdigest()[:16]}"
