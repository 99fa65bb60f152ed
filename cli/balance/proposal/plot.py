"""Chart of the gain of a proposal over the bytes that it copies."""

from __future__ import annotations

from pathlib import Path

from planning.balance.reports.prefixes import gain_ratio
from planning.balance.search.proposal import Proposal
from schemas.errors import HeadroomError

# Points of a curve; more are not visible.
_MOST_POINTS = 500


def write_gain_plot(file: Path, proposal: Proposal) -> None:
    """Write the gain over the bytes copied as an SVG file, a point for each prefix.

    Args:
        file: file to write.
        proposal: the proposal.

    Raises:
        HeadroomError: the chart library is not installed, nothing is proposed, or the file cannot be written.
    """
    # Only here, because it is not installed with Headroom unless asked for.
    try:
        import pygal
    except ImportError:
        raise HeadroomError("--plot", "needs the package pygal", "Install it: pip install 'headroom[plot]'.") from None
    count = len(proposal.actions)
    if not count:
        raise HeadroomError("--plot", "has no action to draw", "See the notes of the proposal.")
    step = max(1, count // _MOST_POINTS)
    shown = [*range(0, count, step), count]
    chart = pygal.XY(
        title="Gain by bytes copied",
        x_title="copied, GB",
        y_title="load brought into bands, %",
        width=900,
        height=450,
        include_x_axis=True,
        range=(0, 100),
    )
    points = [(float(proposal.copied_bytes[n]) / 1e9, 100 * gain_ratio(proposal, n)) for n in shown]
    chart.add("proposal", points)
    try:
        file.write_bytes(chart.render())
    except OSError as error:
        raise HeadroomError(str(file), f"cannot be written ({error.strerror})", "Name another file.") from None
