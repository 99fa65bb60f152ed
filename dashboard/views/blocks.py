"""Blocks of a view. The page renders them, the API and files have their values."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from enum import Enum
from typing import Any, NamedTuple

from headroom.schemas.text.amounts import (
    UNKNOWN,
    duration_text,
    moment_text,
    percent_text,
    rate_text,
    size_text,
)

Row = Mapping[str, Any]


class Tone(str, Enum):
    """How good something is. Each has a shape of its own, because not everybody tells the colours apart."""

    GOOD = "good"
    WARNING = "warning"
    CRITICAL = "critical"
    UNKNOWN = "unknown"
    QUIET = "quiet"

    @property
    def shape(self) -> str:
        """Return its shape."""
        return _SHAPES[self]


_SHAPES = {Tone.GOOD: "●", Tone.WARNING: "▲", Tone.CRITICAL: "■", Tone.UNKNOWN: "?", Tone.QUIET: "–"}


class Kind(str, Enum):
    """Kind of the values of a column, which decides on their text."""

    TEXT = "text"
    NUMBER = "number"
    ID = "id"
    RATE = "rate"
    SIZE = "size"
    SHARE = "share"
    DURATION = "duration"
    MOMENT = "moment"
    STATE = "state"
    BAR = "bar"


_TEXTS: Mapping[Kind, Callable[[Any], str]] = {
    Kind.TEXT: str,
    Kind.NUMBER: lambda value: f"{value:,}",
    # The id of a broker is a name.
    Kind.ID: str,
    Kind.RATE: rate_text,
    Kind.SIZE: size_text,
    Kind.SHARE: percent_text,
    Kind.DURATION: duration_text,
    Kind.MOMENT: moment_text,
    # The page says it without the underscores of the word that tables and API have.
    Kind.STATE: lambda value: str(value).replace("_", " "),
    Kind.BAR: lambda bar: bar.text,
}


class Bar(NamedTuple):
    """A throttle beside what it must carry, as a small picture; all in bytes per second, None if unknown.

    Attributes:
        throttle: rate in force; None if there is none too.
        in_sync: traffic of in-sync followers.
        required: traffic of all followers.
        most: greatest of all values in the table, at which the picture ends.
        none: what a missing throttle is: none, or unknown.
    """

    throttle: float | None
    in_sync: float | None
    required: float | None
    most: float
    none: str = UNKNOWN

    @property
    def fits(self) -> bool:
        """Return whether the throttle exceeds what it must carry, as far as that is known."""
        return self.throttle is None or self.required is None or self.throttle > self.required

    @property
    def text(self) -> str:
        """Return what the picture shows, in words."""
        throttle = self.none if self.throttle is None else rate_text(self.throttle)
        return f"throttle {throttle}, required {rate_text(self.required)}"

    def percent(self, bytes_per_s: float | None) -> float:
        """Return the length of a value in percent of the picture."""
        return round(100 * (bytes_per_s or 0.0) / self.most, 2) if self.most else 0.0


@dataclass(frozen=True)
class DataColumn:
    """One column of a table.

    Attributes:
        key: key of its values in rows, in the API and in CSV, with its unit.
        title: title.
        kind: kind of its values.
        none: text of a missing value.
        none_key: key of that text in rows, where it is not the same in all; None if it is.
        text_key: key of its texts in rows, where the kind does not decide on them; None if it does.
        tones: of a state: tone of each word; any other word is unknown.
        link: key of the address that a value leads to; None if it is no link.
        is_long: whether its texts are sentences.
    """

    key: str
    title: str
    kind: Kind = Kind.TEXT
    none: str = UNKNOWN
    none_key: str | None = None
    text_key: str | None = None
    tones: Mapping[str, Tone] = field(default_factory=dict)
    link: str | None = None
    is_long: bool = False

    @property
    def is_amount(self) -> bool:
        """Return whether its values are amounts, which are aligned to the right."""
        return self.kind not in (Kind.TEXT, Kind.STATE, Kind.BAR)

    @property
    def is_value(self) -> bool:
        """Return whether it has values, and is no picture of those of others."""
        return self.kind is not Kind.BAR

    def text(self, row: Row) -> str:
        """Return its value in a row as text."""
        value = row[self.key]
        if value is None:
            return self.none if self.none_key is None else str(row[self.none_key])
        return _TEXTS[self.kind](value) if self.text_key is None else str(row[self.text_key])

    def tone(self, value: Any) -> Tone:
        """Return the tone of a state."""
        return self.tones.get(value, Tone.UNKNOWN)


def without_tones(columns: Sequence[DataColumn]) -> list[DataColumn]:
    """Return columns for rows that are the state of then: how good that is now is unknown."""
    return [replace(column, tones={}) for column in columns]


class StoredRows(Sequence[Row]):
    """Rows that stay in a table of the store, as they are too many: each part is read when it is shown."""

    @abstractmethod
    def ordered(self, sort: str | None) -> Sequence[Row]:
        """Return them in another order, as of ``Paging``."""


@dataclass(frozen=True)
class Paging:
    """The part of a table's rows that is shown.

    Attributes:
        page: number of the page, from 1.
        page_rows: most rows of a page.
        sort: column that the rows are sorted by; a minus before it: the greatest first. None: the table's own order.
    """

    page: int = 1
    page_rows: int = 200
    sort: str | None = None


@dataclass(frozen=True)
class DataTable:
    """A table.

    Attributes:
        name: name in the API.
        title: title.
        columns: columns.
        rows: all rows, in the table's own order; a page shows some of them.
        empty: text in place of no rows.
        note: text below the title; empty if there is none.
        older: address of the rows before these, which the table does not have; None if it has all.
    """

    name: str
    title: str
    columns: Sequence[DataColumn]
    rows: Sequence[Row]
    empty: str = "None."
    note: str = ""
    older: str | None = None

    def sorted_rows(self, sort: str | None) -> Sequence[Row]:
        """Return all rows, sorted by a column; unknown values last. A column that it does not have sorts nothing."""
        key = (sort or "").removeprefix("-")
        if key not in {column.key for column in self.columns if column.is_value}:
            return self.rows
        if isinstance(self.rows, StoredRows):
            return self.rows.ordered(sort)
        known = [row for row in self.rows if row.get(key) is not None]
        known.sort(key=lambda row: row[key], reverse=sort != key)
        return [*known, *(row for row in self.rows if row.get(key) is None)]

    @property
    def shown_columns(self) -> Sequence[DataColumn]:
        """Return the columns of the page, without those that would be empty."""
        return [c for c in self.columns if c.none or any(row.get(c.key) is not None for row in self.rows)]

    def page(self, paging: Paging) -> Sequence[Row]:
        """Return the rows of a page."""
        first = (paging.page - 1) * paging.page_rows
        return self.sorted_rows(paging.sort)[first : first + paging.page_rows]

    def pages(self, paging: Paging) -> int:
        """Return the number of pages, at least 1."""
        return max(1, -(-len(self.rows) // paging.page_rows))


@dataclass(frozen=True)
class Paragraph:
    """Some sentences.

    Attributes:
        text: the text.
        tone: how good it is what they say.
    """

    text: str
    tone: Tone = Tone.QUIET


# Of a view whose cluster has no tick yet, or not up to the moment.
NO_TICK = Paragraph("There is no tick to show.", Tone.UNKNOWN)


def stale(what: str, tick_ms: int, shown_ms: int, stale_after_s: float) -> list[Paragraph]:
    """Return what comes before rows that are too old for the moment that is shown; nothing if they are not.

    Args:
        what: subject and verb: what happened at their tick.
        tick_ms: their tick, epoch milliseconds.
        shown_ms: the moment, epoch milliseconds.
        stale_after_s: age up to which they count, seconds.
    """
    age_s = (shown_ms - tick_ms) / 1000
    if age_s <= stale_after_s:
        return []
    before = f"{what} {duration_text(age_s)} before the moment that is shown, at {moment_text(tick_ms)}."
    return [Paragraph(f"{before} What follows is the state of then.", Tone.UNKNOWN)]


@dataclass(frozen=True)
class Commands:
    """Commands to copy.

    Attributes:
        lead: what they do.
        commands: commands of a shell, the best first.
        is_offered: whether the page carries them out too, if it carries out any.
    """

    lead: str
    commands: Sequence[str]
    is_offered: bool = True


class Term(NamedTuple):
    """A term with what is said of it."""

    name: str
    text: str
    tone: Tone = Tone.QUIET


@dataclass(frozen=True)
class Facts:
    """Terms with what is said of them."""

    terms: Sequence[Term]


@dataclass(frozen=True)
class Chart:
    """A chart, beside which a table has the same values.

    Attributes:
        title: title.
        svg: the picture, without script and style.
        table: its values.
        note: what was left out of the picture; empty if nothing was.
    """

    title: str
    svg: str
    table: DataTable
    note: str = ""


class HeatCell(NamedTuple):
    """A cell of a heat map.

    Attributes:
        level: how dark it is, from 0; None: it has no value.
        text: what it says; empty if its darkness alone does.
        title: what it is, with its value; empty for one without.
    """

    level: int | None = None
    text: str = ""
    title: str = ""


@dataclass(frozen=True)
class HeatMap:
    """A heat map.

    Attributes:
        title: title.
        row_title: what its rows are.
        rows: names of the rows.
        columns: names of the columns; empty for those that are not named.
        cells: cells by row and column.
        table: its values; None if another block of the view has them.
        note: what its darkness and signs mean.
    """

    title: str
    row_title: str
    rows: Sequence[str]
    columns: Sequence[str]
    cells: Sequence[Sequence[HeatCell]]
    table: DataTable | None
    note: str = ""


@dataclass(frozen=True)
class AlertCard:
    """An alert.

    Attributes:
        alert_id: its id.
        head: kind, subject and times.
        summary: its summary.
        details: evidence and recommendation, as on a terminal.
        commands: its commands.
        quieting: commands that acknowledge or silence it; none if it has ended.
        notes: acknowledgement and silence.
        tone: by state and severity.
        is_open: whether its details are shown at once.
    """

    alert_id: str
    head: str
    summary: str
    details: Sequence[str]
    commands: Sequence[str]
    notes: Sequence[str]
    tone: Tone
    is_open: bool
    quieting: Sequence[str] = ()


@dataclass(frozen=True)
class RunningMove:
    """A move in flight, with what can be done about it.

    Attributes:
        title: its command, and who began it.
        state: which process carries it out.
        tone: whether one does.
        facts: how far it is.
        throttle_url: address at which another throttle is tried and set.
        bounds: between which rates.
        commands: commands that end it, or take it back.
        action_url: address of the action that carries it out; None if it was not begun on this page.
        stops: whether that action can be asked to stop.
    """

    title: str
    state: str
    tone: Tone
    facts: Facts
    throttle_url: str
    bounds: str
    commands: Sequence[Commands]
    action_url: str | None = None
    stops: bool = False

    @property
    def is_under_way(self) -> bool:
        """Return whether a process carries its run on."""
        return self.tone is Tone.GOOD


Block = Paragraph | Commands | Facts | Chart | HeatMap | DataTable | AlertCard | RunningMove


def tables_of(blocks: Sequence[Block]) -> list[DataTable]:
    """Return the tables of a view, those of charts among them."""
    tables = [block.table if isinstance(block, Chart | HeatMap) else block for block in blocks]
    return [table for table in tables if isinstance(table, DataTable)]
