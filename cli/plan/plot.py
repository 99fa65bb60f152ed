"""Chart of the time of a move over its throttle."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from planning.reassignments.timing import TimeEstimate
from schemas.errors import HeadroomError


def write_plot(file: Path, times: Sequence[TimeEstimate]) -> None:
    """Write the time over the throttle as an SVG file; throttles with which the move never ends are left out.

    Args:
        file: file to write.
        times: times by throttle.

    Raises:
        HeadroomError: the chart library is not installed, nothing can be drawn, or the file cannot be written.
    """
    # Only here, because it is not installed with Headroom unless asked for.
    try:
        import pygal
    except ImportError:
        raise HeadroomError("--plot", "needs the package pygal", "Install it: pip install 'headroom[plot]'.") from None
    found = [(time.throttle_bytes_per_s / 1e6, time.finish) for time in times]
    known = [(throttle, finish) for throttle, finish in found if finish is not None]
    if not known:
        raise HeadroomError("--plot", "has no known time to draw", "See the notes of the plan.")
    chart = pygal.XY(
        title="Time of the move by throttle",
        x_title="throttle, MB/s",
        y_title="minutes",
        width=900,
        height=450,
        include_x_axis=True,
    )
    for name, seconds in (("latest", "high_s"), ("expected", "middle_s"), ("earliest", "low_s")):
        chart.add(name, [(throttle, getattr(finish, seconds) / 60) for throttle, finish in known])
    try:
        file.write_bytes(chart.render())
    except OSError as error:
        raise HeadroomError(str(file), f"cannot be written ({error.strerror})", "Name another file.") from None
