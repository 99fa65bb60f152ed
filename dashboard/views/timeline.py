"""Timeline: how a move went, and what happened meanwhile: switches, throttles, alerts and commands."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator, Sequence
from functools import partial

from headroom.dashboard.address import Address, View
from headroom.dashboard.data.timeline import (
    MOST_EVENTS,
    ProgressPoint,
    RangeEvents,
    ThrottleStep,
    TickRange,
    range_events,
    rate_changes,
)
from headroom.dashboard.site import Site
from headroom.dashboard.views.blocks import NO_TICK, Block, Chart, DataColumn, DataTable, Kind, Paragraph, Row, Tone
from headroom.dashboard.views.chart import ChartAnnotations, ChartLine, axis_clock, has_gap, over_time
from headroom.dashboard.views.headline import SEVERITY_TONES
from headroom.dashboard.views.runs import value_text
from headroom.dashboard.views.throttles import VERDICT_TONES, annotations_of
from headroom.planning.reassignments.run.journal import StepKind
from headroom.schemas.alerts import AlertState, Severity
from headroom.schemas.keys import Role
from headroom.schemas.tables import ACTION_JOURNAL
from headroom.schemas.text.amounts import clock_text, duration_text, join_names, rate_text, size_text
from headroom.streaming.delta.query import sql_text

_TONES = {tone.value: tone for tone in Tone}
_COLUMNS = (
    DataColumn("at_ms", "at", Kind.MOMENT, link="url"),
    DataColumn("what", "what"),
    DataColumn("tone", "how", Kind.STATE, tones=_TONES),
    DataColumn("text", "text", is_long=True),
)
_POINT_COLUMNS = (
    DataColumn("tick_ms", "at", Kind.MOMENT),
    DataColumn("replicas", "new replicas", Kind.NUMBER),
    DataColumn("in_sync", "in sync", Kind.NUMBER),
    DataColumn("never", "never", Kind.NUMBER),
    DataColumn("unknown", "unknown", Kind.NUMBER),
    DataColumn("remaining_bytes", "left to copy", Kind.SIZE),
    DataColumn("finish_ms", "expected finish", Kind.MOMENT, none="–"),
)
_STEPS_SQL = """SELECT at_ms, command, step, state, subject, "before", "after", "by" FROM data
    WHERE "cluster" = {cluster} AND state <> 'intended' AND at_ms BETWEEN {first_ms} AND {last_ms}
    ORDER BY at_ms DESC LIMIT {most}"""


def timeline(site: Site, address: Address) -> Sequence[Block]:
    """Return the timeline of an address: the length of time before its moment, or before the newest tick.

    Raises:
        HeadroomError: a table cannot be read.
    """
    moment = site.moment(address)
    if moment is None:
        return [NO_TICK]
    return timeline_of(site, TickRange.until(moment, address.at, address.span, address.topic), address)


def timeline_of(site: Site, ticks: TickRange, address: Address) -> list[Block]:
    """Return the timeline of a range.

    Args:
        site: tables.
        ticks: the range.
        address: address of the page, for links.

    Raises:
        HeadroomError: a table cannot be read.
    """
    points = site.points.progress(ticks)
    happened = range_events(site.tables, ticks)
    rows = sorted(_events(site, ticks, happened), key=lambda row: -row["at_ms"])
    linked = [{**row, "url": address.url(View.MOVES, at=row["at_ms"], page=None, sort=None)} for row in rows]
    note = f"At most the last {MOST_EVENTS} of each kind." if len(rows) >= MOST_EVENTS else ""
    empty = "Nothing happened: no alert, switch, change of a throttle, or command."
    return [
        *_charts(points, ticks, annotations_of(happened), site),
        DataTable("events", "What happened", _COLUMNS, linked, empty, note),
    ]


def _charts(
    points: Sequence[ProgressPoint], ticks: TickRange, annotations: Sequence[ChartAnnotations], site: Site
) -> list[Block]:
    if not points:
        return [Paragraph("No partition was in a reassignment in this time.")]
    rows = [{**vars(point), "finish_ms": point.finish_ms} for point in points]
    table = DataTable("progress", "Progress, by time", _POINT_COLUMNS, rows[::-1])
    times_ms, bridged_ms = [point.tick_ms for point in points], site.bridged_ms(ticks)
    lasts = duration_text((ticks.last_ms - ticks.first_ms) / 1000)
    thinned = f"One tick in {duration_text(ticks.step_ms / 1000)}." if len(points) > 1 and ticks.step_ms > 1000 else ""
    remaining = [None if p.remaining_bytes is None else float(p.remaining_bytes) for p in points]
    left = ChartLine("left to copy", remaining, is_area=True)
    reasons = ["nothing moved, or was not evaluated"] if has_gap(times_ms, bridged_ms) else []
    if None in remaining:
        reasons.append("what some replicas lack is unknown")
    note = f"{thinned} A gap: {', or '.join(reasons)}.".strip() if reasons else thinned
    title = f"Left to copy, {lasts} to {clock_text(ticks.last_ms, site.clock_ms())}"
    svg = over_time(title, times_ms, [left], size_text, annotations, bridged_ms=bridged_ms)
    blocks: list[Block] = [Chart(title, svg, table, note)]
    expected = [None if p.finish_ms is None else float(p.finish_ms) for p in points]
    if any(one is not None for one in expected):
        title = "When the end was expected, by the tick that expected it"
        line = ChartLine("expected finish", expected)
        text = partial(axis_clock, read_ms=ticks.last_ms)
        svg = over_time(title, times_ms, [line], text, annotations, from_zero=False, bridged_ms=bridged_ms)
        note = "A gap: never at the throttles of then, or unknown."
        blocks.append(
            Chart(title, svg, DataTable("finish", "Expected finish, by time", _POINT_COLUMNS, rows[::-1]), note)
        )
    return blocks


def _events(site: Site, ticks: TickRange, happened: RangeEvents) -> Iterator[Row]:
    for switch in happened.switches:
        names = join_names(switch.names, switch.partitions)
        text = f"{names}: broker {switch.previous_leader} to broker {switch.broker}"
        if ticks.topic is not None and switch.includes(ticks.topic) is None:
            text = f"{text}; they may include {ticks.topic}"
        yield _event(switch.tick_ms, "leader", Tone.QUIET, text)
    yield from _changes(rate_changes(site.tables, ticks))
    for step in happened.alerts:
        tone = Tone.GOOD if step.state == AlertState.RESOLVED.value else SEVERITY_TONES[Severity.of(step.severity)]
        yield _event(step.tick_ms, "alert", tone, f"{step.state} {step.severity}: {step.summary}.")
    sql = _STEPS_SQL.format(
        cluster=sql_text(ticks.cluster), first_ms=ticks.first_ms, last_ms=ticks.last_ms, most=MOST_EVENTS
    )
    for row in site.tables.rows(ACTION_JOURNAL, sql) or []:
        tone = Tone.WARNING if row["state"] == "failed" else Tone.QUIET
        before, after = (value_text(row["step"], row[key]) or "none" for key in ("before", "after"))
        change = f": {before} to {after}" if row["step"] != StepKind.RUN.value else ""
        text = f"{row['command']}, {row['step']} {row['state']}, {row['subject']}{change} (by {row['by']})"
        yield _event(row["at_ms"], "command", tone, text)


def _event(at_ms: int, what: str, tone: Tone, text: str) -> Row:
    return {"at_ms": at_ms, "what": what, "tone": tone.value, "text": text}


def _changes(changes: Sequence[ThrottleStep]) -> Iterator[Row]:
    """Yield one event for each change at a tick, with all brokers and roles that it is of."""
    subjects: dict[tuple[int, str, Tone], list[str]] = defaultdict(list)
    for change in changes:
        subject = f"{change.broker} as {'leader' if change.role == Role.LEADER.value else 'destination'}"
        before, after = change.before_bytes_per_s, change.throttle_bytes_per_s
        if before != after or change.was_unread != change.is_unread:
            text = f"throttle {_rate(before, change.was_unread)} to {_rate(after, change.is_unread)}"
            subjects[change.tick_ms, text, Tone.QUIET].append(subject)
        if change.before_verdict != change.verdict:
            text = f"{change.before_verdict} to {change.verdict}".replace("_", " ")
            subjects[change.tick_ms, text, VERDICT_TONES.get(change.verdict, Tone.UNKNOWN)].append(subject)
    for (tick_ms, text, tone), names in subjects.items():
        brokers = f"broker{'s' if len(names) > 1 else ''} {', '.join(sorted(names))}"
        yield _event(tick_ms, "throttle", tone, f"{brokers}: {text}")


def _rate(bytes_per_s: float | None, is_unread: bool) -> str:
    return "none" if bytes_per_s is None and not is_unread else rate_text(bytes_per_s)
