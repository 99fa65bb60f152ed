"""Chart of the time of a move over its throttle."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from headroom.cli.common.output import write_chart, xy_chart
from headroom.planning.reassignments.timing import TimeEstimate
from headroom.schemas.errors import HeadroomError


def write_plot(file: Path, times: Sequence[TimeEstimate]) -> None:
    """Write the time over the throttle as an SVG file; throttles with which the move never ends are left out.

    Args:
        file: file to write.
        times: times by throttle.

    Raises:
        HeadroomError: the chart library is not installed, nothing can be drawn, or the file cannot be written.
    """
    chart = xy_chart("Time of the move by throttle", "throttle, MB/s", "minutes")
    points = [(time.throttle_bytes_per_s / 1e6, time.finish) for time in times]
    known = [(throttle, finish) for throttle, finish in points if finish is not None]
    if not known:
        raise HeadroomError("--plot", "has no known time to draw", "See the notes of the plan.")
    for name, seconds in (("latest", "high_s"), ("expected", "middle_s"), ("earliest", "low_s")):
        chart.add(name, [(throttle, getattr(finish, seconds) / 60) for throttle, finish in known])
    write_chart(file, chart)
