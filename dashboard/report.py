"""The report of a range of time: one HTML file without script, that opens without a network."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path

from headroom.dashboard.address import Address, View
from headroom.dashboard.data.moment import ClusterMoment
from headroom.dashboard.data.timeline import TickRange, alert_steps
from headroom.dashboard.rendering import ENVIRONMENT
from headroom.dashboard.site import Site
from headroom.dashboard.views.alerts import alert_card
from headroom.dashboard.views.blocks import Block, Chart, Commands, DataTable, Facts, Paragraph, Row, Term, Tone
from headroom.dashboard.views.headline import headline
from headroom.dashboard.views.runs import steps_table
from headroom.dashboard.views.throttles import charts_of
from headroom.dashboard.views.timeline import timeline_of
from headroom.schemas.errors import HeadroomError
from headroom.schemas.keys import BrokerRole, Role
from headroom.schemas.tables import THROTTLE_HEADROOM
from headroom.schemas.text import one_line
from headroom.schemas.text.amounts import moment_text

# Charts of throttles: of those that were too low, then of those that had to carry most.
_MOST_CHARTS = 12
# Rows of each table, and of each beside a chart.
_MOST_ROWS, _MOST_CHART_ROWS = 1000, 60
# Of each text in a table: a list of replicas in the journal has any length, and quotes of terms are five bytes each.
_MOST_CHARACTERS = 300
# Alerts with their evidence.
_MOST_ALERTS = 100
# Of the file, so that a ticket takes it. A chart of an hour has up to some hundred kB.
_MOST_BYTES = 3_000_000
# Title, and what it is about.
_Section = tuple[str, Sequence[Block]]
_STYLE = Path(__file__).parent / "static" / "style.css"
_THROTTLES_SQL = """SELECT broker, role FROM data WHERE {condition} AND moving_replicas > 0 GROUP BY broker, role
    ORDER BY bool_or(verdict IN ('starved', 'losing', 'slow')) DESC, max(required_bytes_per_s) DESC NULLS LAST,
    broker, role"""


def report(site: Site, ticks: TickRange) -> str:
    """Return the report of a range.

    Args:
        site: tables and settings.
        ticks: cluster, start and end; a topic narrows down what is said of partitions.

    Raises:
        HeadroomError: there is no tick in the range, or a table cannot be read.
    """
    address = Address(cluster=ticks.cluster, at=ticks.last_ms, topic=ticks.topic, rows=_MOST_ROWS)
    moment = site.moment(address)
    if moment is None or moment.tick_ms < ticks.first_ms:
        raise HeadroomError(
            f"cluster {ticks.cluster} in {site.tables.store_path}",
            f"has no tick from {moment_text(ticks.first_ms)} to {moment_text(ticks.last_ms)}",
            "Give another --from and --to, or the store and cluster by --config.",
        )
    sections: list[_Section] = [
        ("At the end", _at_the_end(site, address, moment)),
        ("How it went", timeline_of(site, ticks, address)),
        ("Throttles", _throttles(site, ticks)),
        ("Alerts", _alerts(site, address, ticks)),
        ("What commands changed", [steps_table(site, ticks)]),
    ]
    sections = [(title, [_shorten(block) for block in blocks]) for title, blocks in sections]
    text = _render(site, ticks, address, sections)
    while (excess_bytes := len(text.encode()) - _MOST_BYTES) > 0 and _has_chart(sections):
        sections = _without_last_charts(sections, excess_bytes)
        text = _render(site, ticks, address, sections)
    return text


def _render(site: Site, ticks: TickRange, address: Address, sections: Sequence[_Section]) -> str:
    return ENVIRONMENT.get_template("report.html").render(
        cluster=ticks.cluster,
        ticks=ticks,
        version=_version(),
        made_ms=site.clock_ms(),
        store=site.tables.store_path,
        style=_STYLE.read_text(encoding="utf-8"),
        sections=sections,
        address=address,
        view=View.TIMELINE,
        is_static=True,
        error=None,
    )


def _at_the_end(site: Site, address: Address, moment: ClusterMoment) -> list[Block]:
    summary = headline(site, address)
    terms = [Term("Tick", moment_text(moment.tick_ms)), *summary.terms]
    blocks: list[Block] = [Paragraph(summary.text, summary.tone), Facts(terms)]
    if summary.commands is not None:
        blocks.append(Commands(summary.commands.lead, summary.commands.commands))
    return blocks


def _throttles(site: Site, ticks: TickRange) -> list[Block]:
    rows = site.tables.rows(THROTTLE_HEADROOM, _THROTTLES_SQL.format(condition=ticks.condition)) or []
    shown = [BrokerRole(row["broker"], Role(row["role"])) for row in rows[:_MOST_CHARTS]]
    blocks: list[Block] = [*charts_of(site, ticks, shown)] if shown else []
    if len(rows) > len(shown):
        blocks.append(Paragraph(f"{len(rows) - len(shown)} more throttles had replicas behind them, and are left out."))
    return blocks or [Paragraph("No throttle had replicas behind it.")]


def _alerts(site: Site, address: Address, ticks: TickRange) -> list[Block]:
    """Return the alerts that fired or ended in the range, as they were at its end, those that are active first."""
    ids = {step.alert_id for step in alert_steps(site.tables, ticks)}
    own = [alert for alert in site.alerts(address) or () if alert.event.alert_id in ids or alert.is_active]
    own.sort(key=lambda alert: not alert.is_active)
    blocks: list[Block] = [alert_card(alert) for alert in own[:_MOST_ALERTS]]
    if len(own) > len(blocks):
        blocks.append(Paragraph(f"{len(own) - len(blocks)} more alerts fired or ended, and are left out."))
    return blocks or [Paragraph("No alert fired or ended.", Tone.QUIET)]


def _shorten(block: Block) -> Block:
    """Return a block, a table of it with a note if rows or ends of texts are left out."""
    if isinstance(block, Chart):
        return replace(block, table=_thin(block.table))
    if not isinstance(block, DataTable):
        return block
    first = block.rows[:_MOST_ROWS]
    rows, notes = [_with_short_texts(row) for row in first], [block.note]
    if len(first) < len(block.rows):
        notes.append(f"The first {_MOST_ROWS} of {len(block.rows)} rows.")
    if any(row is not whole for row, whole in zip(rows, first, strict=True)):
        notes.append(f"The first {_MOST_CHARACTERS} characters of each text.")
    return replace(block, rows=rows, note=" ".join(notes).strip())


def _with_short_texts(row: Row) -> Row:
    """Return a row with the beginnings of its long texts; the row itself if it has none."""
    long = [key for key, value in row.items() if isinstance(value, str) and len(value) > _MOST_CHARACTERS]
    return {**row, **{key: one_line(row[key], _MOST_CHARACTERS) for key in long}} if long else row


def _thin(table: DataTable) -> DataTable:
    """Return the table beside a chart, with one of some rows that follow each other."""
    step = -(-len(table.rows) // _MOST_CHART_ROWS)
    if step <= 1:
        return table
    note = f"{table.note} One row in {step} of {len(table.rows)}; the chart has all.".strip()
    return replace(table, rows=table.rows[::step], note=note)


def _has_chart(sections: Sequence[_Section]) -> bool:
    return any(isinstance(block, Chart) for _, blocks in sections for block in blocks)


def _without_last_charts(sections: Sequence[_Section], excess_bytes: int) -> list[_Section]:
    """Return sections in which sentences take the place of the last charts, of as many as have some bytes together."""
    smaller: list[_Section] = []
    for title, blocks in reversed(sections):
        kept: list[Block] = []
        for block in reversed(blocks):
            if isinstance(block, Chart) and excess_bytes > 0:
                excess_bytes -= len(block.svg.encode())
                kept.append(Paragraph(f"{block.title}: left out, so that this file stays below 3 MB."))
            else:
                kept.append(block)
        smaller.append((title, kept[::-1]))
    return smaller[::-1]


def _version() -> str:
    try:
        return version("headroom")
    except PackageNotFoundError:
        return "unknown"
