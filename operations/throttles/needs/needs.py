"""Needs of all throttles: from a running watch, otherwise measured."""

from __future__ import annotations

from cli.common.changing import print_step
from cluster.log_dirs.describe import LogDirsReading
from operations.throttles.needs.directory_needs import directory_needs
from operations.throttles.needs.live_needs import live_needs
from operations.throttles.needs.throttle_need import NeedsSource, ThrottleNeeds
from operations.throttles.needs.watch_needs import watch_needs
from operations.throttles.throttle_view import ThrottleView
from schemas.config import Settings
from schemas.errors import HeadroomError


def read_needs(settings: Settings, view: ThrottleView, reading: LogDirsReading, measure: bool) -> ThrottleNeeds:
    """Return the need of each broker and role that a running move uses.

    Args:
        settings: settings of the cluster.
        view: throttles and moves.
        reading: log directories of the brokers with a rate for moves between them.
        measure: whether to measure write rates for some seconds if no watch is running.
    """
    found = _of_moves(settings, measure) if view.moving() else ThrottleNeeds()
    problems = [*found.problems, *(str(error) for _, error in sorted(reading.errors.items()))]
    return ThrottleNeeds(found.source, found.tick_ms, (*found.needs, *directory_needs(view, reading)), problems)


def _of_moves(settings: Settings, measure: bool) -> ThrottleNeeds:
    problems = []
    try:
        found = watch_needs(settings)
        if found is not None:
            return found
    except HeadroomError as error:
        problems.append(str(error))
    if not measure:
        return ThrottleNeeds(problems=[*problems, "Required rates are unknown: no headroom watch is running."])
    print_step(f"no headroom watch is running; measuring write rates for {settings.collect.measure_s:g} s")
    try:
        measured = live_needs(settings)
    except HeadroomError as error:
        return ThrottleNeeds(problems=[*problems, f"Required rates are unknown: {error}"])
    return ThrottleNeeds(NeedsSource.LIVE, None, measured.needs, [*problems, *measured.problems])
