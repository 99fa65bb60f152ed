"""Needs of all throttles: from a running watch, otherwise measured."""

from __future__ import annotations

from headroom.cluster.live.throttle_state import ThrottleState
from headroom.cluster.log_dirs.describe import LogDirsReading
from headroom.operations.progress import OnText
from headroom.operations.throttles.needs.directory_needs import directory_needs
from headroom.operations.throttles.needs.live_needs import live_needs
from headroom.operations.throttles.needs.throttle_need import NeedsSource, ThrottleNeeds
from headroom.operations.throttles.needs.watch_needs import watch_needs
from headroom.schemas.config import Settings
from headroom.schemas.errors import HeadroomError


def read_needs(
    settings: Settings, view: ThrottleState, reading: LogDirsReading, measure: bool, on_step: OnText
) -> ThrottleNeeds:
    """Return the need of each broker and role that a running move uses.

    Args:
        settings: settings of the cluster.
        view: throttles and moves.
        reading: log directories of the brokers with a rate for moves between them.
        measure: whether to measure write rates for some seconds if no watch is running.
        on_step: gets one sentence when it measures.
    """
    of_moves = _of_moves(settings, measure, on_step) if view.moving() else ThrottleNeeds()
    problems = [*of_moves.problems, *(str(error) for _, error in sorted(reading.errors.items()))]
    needs = (*of_moves.needs, *directory_needs(view, reading))
    return ThrottleNeeds(of_moves.source, of_moves.tick_ms, needs, problems)


def _of_moves(settings: Settings, measure: bool, on_step: OnText) -> ThrottleNeeds:
    problems = []
    try:
        of_watch = watch_needs(settings)
        if of_watch is not None:
            return of_watch
    except HeadroomError as error:
        problems.append(str(error))
    # By the tables alone: a watch with another store.path, or in another folder, is not seen.
    none_runs = f"no headroom watch is running that writes to {settings.store.path}"
    if not measure:
        return ThrottleNeeds(problems=[*problems, f"Required rates are unknown: {none_runs}."])
    on_step(f"{none_runs}; measuring write rates for {settings.collect.measure_s:g} s")
    try:
        measured = live_needs(settings)
    except HeadroomError as error:
        return ThrottleNeeds(problems=[*problems, f"Required rates are unknown: {error}"])
    return ThrottleNeeds(NeedsSource.LIVE, None, measured.needs, [*problems, *measured.problems])
