"""Chart of the gain of a proposal over the bytes that it copies."""

from __future__ import annotations

from pathlib import Path

from headroom.cli.common.output import write_chart, xy_chart
from headroom.planning.balance.reports.prefixes import gain_ratio
from headroom.planning.balance.search.proposal import Proposal
from headroom.schemas.errors import HeadroomError

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
    chart = xy_chart("Gain by bytes copied", "copied, GB", "load brought into bands, %", range=(0, 100))
    count = len(proposal.actions)
    if not count:
        raise HeadroomError("--plot", "has no action to draw", "See the notes of the proposal.")
    step = max(1, count // _MOST_POINTS)
    shown = [*range(0, count, step), count]
    points = [(float(proposal.copied_bytes[n]) / 1e9, 100 * gain_ratio(proposal, n)) for n in shown]
    chart.add("proposal", points)
    write_chart(file, chart)
