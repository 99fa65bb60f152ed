"""Views as HTML, and their tables as values for the API and as CSV."""

from __future__ import annotations

import csv
import html
import io
from collections.abc import Callable, Mapping, Sequence
from datetime import datetime, timezone
from enum import Enum
from pathlib import Path
from typing import Any, NamedTuple

from jinja2 import Environment, FileSystemLoader, StrictUndefined

from headroom.dashboard.address import Address, View
from headroom.dashboard.site import Site
from headroom.dashboard.views.alerts import alerts
from headroom.dashboard.views.blocks import AlertCard, Block, DataTable, Kind, tables_of
from headroom.dashboard.views.headline import Headline, headline
from headroom.dashboard.views.health import health
from headroom.dashboard.views.lag import lag
from headroom.dashboard.views.leaders import leaders
from headroom.dashboard.views.migration import migration
from headroom.dashboard.views.moves import moves
from headroom.dashboard.views.runs import runs
from headroom.dashboard.views.throttles import throttles
from headroom.dashboard.views.timeline import timeline
from headroom.planning.migration.progress.progress import VERDICTS
from headroom.schemas.errors import HeadroomError
from headroom.schemas.text import printable

VIEWS: Mapping[View, Callable[[Site, Address], Sequence[Block]]] = {
    View.MOVES: moves,
    View.THROTTLES: throttles,
    View.LEADERS: leaders,
    View.LAG: lag,
    View.MIGRATION: migration,
    View.ALERTS: alerts,
    View.TIMELINE: timeline,
    View.RUNS: runs,
    View.HEALTH: health,
}
_TEMPLATES = Path(__file__).parent / "templates"
# Before the paths of the pages.
API = "/api/v1"
# With what a text begins that a spreadsheet takes for a formula; where these signs are wide, the wide ones too.
_FORMULAS = ("=", "+", "-", "@", "\uff1d", "\uff0b", "\uff0d", "\uff20", "\t", "\r", "\n")


class Regions(NamedTuple):
    """The parts of a page that follow the ticks, as HTML.

    Attributes:
        said: what is read out: tone, sentence and alerts of the headline.
        headline: the headline.
        views: links to all views at the same moment.
        times: what leads to other moments; empty for now.
        content: the view.
    """

    said: str
    headline: str
    views: str
    times: str
    content: str


def _environment() -> Environment:
    # Everything that others wrote enters as text; only the charts are markup, which this program makes.
    environment = Environment(
        loader=FileSystemLoader(_TEMPLATES), autoescape=True, undefined=StrictUndefined, trim_blocks=True
    )
    environment.lstrip_blocks = True
    environment.filters["iso"] = _iso
    environment.filters["printable"] = printable
    environment.filters["printable_lines"] = _printable_lines
    environment.globals.update(Kind=Kind, View=View, verdicts=list(VERDICTS))
    environment.tests["kind"] = lambda block, name: type(block).__name__ == name
    return environment


def _iso(epoch_ms: int) -> str | None:
    """Return a moment for the attribute of a time; None beyond the range of dates, as of a copy that hardly gains."""
    try:
        return datetime.fromtimestamp(epoch_ms / 1000, timezone.utc).isoformat()
    except (ValueError, OverflowError, OSError):
        return None


def _printable_lines(text: str) -> str:
    return "\n".join(printable(line) for line in text.splitlines())


ENVIRONMENT = _environment()


def render_page(site: Site, view: View, address: Address) -> str:
    """Return a whole page.

    Args:
        site: tables and settings.
        view: the view.
        address: what it shows.
    """
    return ENVIRONMENT.get_template("page.html").render(
        view=view,
        address=address,
        cluster=site.cluster(address),
        events=address.url(f"/events/{view.value}"),
        back=address.of_cluster(View.MOVES),
        clusters=_clusters(site),
        can_act=site.can_act(address),
        can_migrate=site.can_migrate(address),
        regions=render_regions(site, view, address),
        now_ms=site.clock_ms(),
    )


def render_regions(site: Site, view: View, address: Address) -> Regions:
    """Return the parts of a page that follow the ticks; a table that cannot be read is said in its part."""
    first: Headline | HeadroomError
    try:
        first = headline(site, address)
        said = " ".join([f"{first.tone.value}: {first.text}", *(term.text for term in first.alerts)])
    except HeadroomError as error:
        first = error
        said = f"The tables cannot be read: {error}"
    content: Sequence[Block] | HeadroomError
    try:
        content = VIEWS[view](site, address)
    except HeadroomError as error:
        content = error

    is_current = not isinstance(first, HeadroomError) and first.view_time.is_current

    def offer(text: str) -> str | None:
        return site.offer(address, text, is_current)

    return Regions(
        html.escape(printable(said)),
        ENVIRONMENT.get_template("headline.html").render(
            headline=first, is_error=isinstance(first, HeadroomError), said=said, offer=offer
        ),
        ENVIRONMENT.get_template("views.html").render(address=address, view=view),
        ENVIRONMENT.get_template("times.html").render(
            address=address, view=view, replay_ms=address.replay_ms(site.clock_ms())
        ),
        ENVIRONMENT.get_template("content.html").render(
            blocks=() if isinstance(content, HeadroomError) else content,
            error=content if isinstance(content, HeadroomError) else None,
            address=address,
            view=view,
            is_static=False,
            offer=offer,
        ),
    )


def render_message(title: str, text: str) -> str:
    """Return a page that only says something, such as why a request is refused, with a link to the first page."""
    return ENVIRONMENT.get_template("message.html").render(title=title, text=text)


def view_json(site: Site, view: View, address: Address) -> dict[str, Any]:
    """Return the tables of a view: the same values as on the page, by name. Alerts that have not ended are ``active``.

    A table that does not have its oldest rows has their address as ``older``.

    Raises:
        HeadroomError: a table cannot be read.
    """
    blocks = VIEWS[view](site, address)
    tables = {
        table.name: {
            "rows": [
                {column.key: _plain(row.get(column.key)) for column in table.columns if column.is_value}
                for row in table.page(address.paging)
            ],
            "total": len(table.rows),
            "page": address.page,
            "pages": table.pages(address.paging),
            **({} if table.older is None else {"older": f"{API}{table.older}"}),
        }
        for table in tables_of(blocks)
    }
    active = [{**vars(block), "tone": block.tone.value} for block in blocks if isinstance(block, AlertCard)]
    return {**tables, "active": {"rows": active, "total": len(active)}} if view is View.ALERTS else tables


def headline_json(site: Site, address: Address) -> dict[str, Any]:
    """Return the headline.

    Raises:
        HeadroomError: a table cannot be read.
    """
    one = headline(site, address)
    return {
        "tone": one.tone.value,
        "text": one.text,
        "tick_ms": one.tick_ms,
        "is_current": one.view_time.is_current,
        "terms": {term.name: term.text for term in one.terms},
        "alerts": [{"kind": term.name, "summary": term.text, "tone": term.tone.value} for term in one.alerts],
        "commands": [] if one.commands is None else list(one.commands.commands),
    }


def table_csv(table: DataTable, sort: str | None) -> str:
    """Return all rows of a table as CSV, with the keys of the API as the first line."""
    text = io.StringIO()
    writer = csv.writer(text)
    keys = [column.key for column in table.columns if column.is_value]
    writer.writerow(keys)
    for row in table.sorted_rows(sort):
        writer.writerow([_cell(row.get(key)) for key in keys])
    return text.getvalue()


def _plain(value: Any) -> Any:
    return value.value if isinstance(value, Enum) else value


def _cell(value: Any) -> Any:
    """Return a value of CSV; a text that a spreadsheet would take for a formula is quoted as text."""
    value = _plain(value)
    if isinstance(value, str) and value[:1] in _FORMULAS:
        return f"'{value}"
    return value


def _clusters(site: Site) -> list[str]:
    try:
        return site.clusters()
    except HeadroomError:
        # The headline says why.
        return []
