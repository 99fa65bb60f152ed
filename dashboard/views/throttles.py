"""Throttles: the rate in force of each broker and role beside what it must carry, and what another rate would do."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace

from headroom.alerts.inputs.throttle_status import ThrottleStatus
from headroom.dashboard.address import Address, View
from headroom.dashboard.data.history import ThrottlePoint, throttle_history
from headroom.dashboard.data.moment import Moment
from headroom.dashboard.site import Site
from headroom.dashboard.views.blocks import (
    Bar,
    Block,
    Chart,
    Column,
    DataTable,
    Kind,
    Paragraph,
    Row,
    Tone,
)
from headroom.dashboard.views.chart import Line, rates_over_time
from headroom.planning.finish.finish_time import finish
from headroom.planning.quotas.load import ThrottleLoad
from headroom.schemas.alerts import Verdict
from headroom.schemas.keys import BrokerRole, Role
from headroom.schemas.text.amounts import UNKNOWN, duration_range_text, duration_text, rate_text

VERDICT_TONES: Mapping[str, Tone] = {
    Verdict.IDLE.value: Tone.QUIET,
    Verdict.CATCHING_UP.value: Tone.GOOD,
    Verdict.SLOW.value: Tone.WARNING,
    Verdict.LOSING.value: Tone.CRITICAL,
    Verdict.STARVED.value: Tone.CRITICAL,
    Verdict.UNTHROTTLED.value: Tone.WARNING,
    Verdict.NO_DATA.value: Tone.UNKNOWN,
}
_RATES = (
    Column("in_sync_bytes_per_s", "in-sync followers use", Kind.RATE),
    Column("required_bytes_per_s", "all followers require", Kind.RATE),
    Column("quota_bytes_per_s", "measured", Kind.RATE),
)
_COLUMNS = (
    Column("subject", "broker and role", link="throttle"),
    Column("verdict", "verdict", Kind.STATE, tones=VERDICT_TONES),
    Column("bar", "carries", Kind.BAR, none=""),
    Column("throttle_bytes_per_s", "throttle", Kind.RATE, none_key="throttle_none"),
    *_RATES,
    Column("headroom_bytes_per_s", "headroom", Kind.RATE, none="–"),
    Column("replicas", "replicas behind it", Kind.NUMBER),
    Column("remaining_bytes", "left to copy", Kind.SIZE),
    Column("eta_s", "in sync in", Kind.DURATION, none="–"),
    Column("reason", "unknown because", none="", is_long=True),
)
_POINT_COLUMNS = (
    Column("tick_ms", "at", Kind.MOMENT),
    Column("ticks", "ticks", Kind.NUMBER),
    Column("throttle_bytes_per_s", "throttle", Kind.RATE, none="none, or unknown"),
    *_RATES,
    Column("verdict", "verdict", Kind.STATE, tones=VERDICT_TONES),
    Column("remaining_bytes", "left to copy", Kind.SIZE),
)
_BEHIND_COLUMNS = (
    Column("name", "partition"),
    Column("bytes_per_s", "counts with", Kind.RATE),
    Column("write_bytes_per_s", "written", Kind.RATE),
    Column("followers", "followers", Kind.NUMBER),
    Column("in_sync_followers", "in sync", Kind.NUMBER),
    Column("leader", "leader", Kind.ID, none="no leader"),
    Column("previous_leader", "led before by", Kind.ID, none=""),
    Column("remaining_bytes", "left to copy", Kind.SIZE, none="–"),
)
_RATE_COLUMNS = (
    Column("name", "partition"),
    Column("write_bytes_per_s", "written", Kind.RATE),
    Column("method", "measured by", none="unknown"),
)
_TRIED_COLUMNS = (
    Column("subject", "broker and role", link="throttle"),
    Column("tried", "would it do?", Kind.STATE, tones={"yes": Tone.GOOD, "no": Tone.CRITICAL}),
    Column("lasting_required_bytes_per_s", "must exceed", Kind.RATE),
    Column("margin_bytes_per_s", "margin", Kind.RATE),
)


def throttles(site: Site, address: Address) -> Sequence[Block]:
    """Return the throttles of an address; of one broker and role, how it came, and the partitions behind it.

    Raises:
        HeadroomError: a table cannot be read.
    """
    moment = site.moment(address)
    if moment is None:
        return [Paragraph("There is no tick to show.", Tone.UNKNOWN)]
    blocks: list[Block] = []
    if address.broker is not None:
        blocks += _of_broker(site, address, moment, BrokerRole(address.broker, address.role))
    if address.rate_bytes_per_s is not None:
        blocks += tried_at(moment, address.rate_bytes_per_s, address)
    most = max((_most(status) for status in moment.statuses), default=0.0)
    rows = [_row(status, address, most) for status in moment.statuses]
    order = list(VERDICT_TONES)[::-1]
    rows.sort(key=lambda row: order.index(row["verdict"]) if row["verdict"] in order else 0)
    blocks.append(DataTable("throttles", "Throttles", _COLUMNS, rows, "No broker has a throttle, and none is needed."))
    return blocks


def _link(status: ThrottleStatus, address: Address) -> str:
    return address.url(View.THROTTLES, broker=status.broker, role=status.role, page=None, sort=None)


def _most(status: ThrottleStatus) -> float:
    return max(status.load.throttle_bytes_per_s or 0.0, status.load.required_bytes_per_s or 0.0)


def _row(status: ThrottleStatus, address: Address, most_bytes_per_s: float) -> Row:
    load = status.load
    throttle, required = load.throttle_bytes_per_s, load.required_bytes_per_s
    none = UNKNOWN if status.is_rate_unread else "none"
    return {
        "subject": status.subject,
        "throttle": _link(status, address),
        "broker": status.broker,
        "role": status.role.value,
        "verdict": status.verdict.value,
        "bar": Bar(throttle, load.in_sync_bytes_per_s, required, most_bytes_per_s, none),
        "throttle_bytes_per_s": throttle,
        "throttle_none": none,
        "in_sync_bytes_per_s": load.in_sync_bytes_per_s,
        "required_bytes_per_s": required,
        "quota_bytes_per_s": load.used_bytes_per_s,
        "headroom_bytes_per_s": None if throttle is None or required is None else throttle - required,
        "replicas": load.limited_replicas + load.free_replicas,
        "remaining_bytes": load.remaining_bytes,
        "eta_s": status.eta_s,
        "reason": status.reason,
    }


def _of_broker(site: Site, address: Address, moment: Moment, broker_role: BrokerRole) -> list[Block]:
    last_ms = moment.tick_ms if address.at is None else address.at
    first_ms = last_ms - address.span * 1000
    status = next((s for s in moment.statuses if s.load.broker_role == broker_role), None)
    if status is None:
        text = f"Broker {broker_role.broker} has no row as {broker_role.role.value} in this tick."
        return [Paragraph(text, Tone.UNKNOWN)]
    points = throttle_history(site.tables, moment.cluster, broker_role, first_ms, last_ms)
    blocks: list[Block] = [_chart(status, points, address)]
    behind = [
        {
            **vars(p),
            "name": p.name,
            "bytes_per_s": None if p.write_bytes_per_s is None else p.write_bytes_per_s * p.followers,
        }
        for p in status.partitions
    ]
    more = status.counting_partitions - len(behind)
    note = f"Those with the largest traffic; {more} more count." if more > 0 else ""
    blocks.append(DataTable("behind", f"What {status.subject} carries", _BEHIND_COLUMNS, behind, note=note))
    if broker_role.role is Role.LEADER:
        rates = [
            {"name": str(rate.name), "write_bytes_per_s": rate.write_bytes_per_s, "method": rate.method}
            for rate in site.moments.rates(moment.cluster, moment.replicas_ms, broker_role.broker)
        ]
        title = f"Moving and listed partitions that broker {broker_role.broker} leads"
        blocks.append(DataTable("rates", title, _RATE_COLUMNS, rates))
    return blocks


def _chart(status: ThrottleStatus, points: Sequence[ThrottlePoint], address: Address) -> Chart:
    rows = [vars(point) for point in points]
    table = DataTable("history", f"{status.subject}, by time", _POINT_COLUMNS, rows[::-1])
    title = f"Throttle of {status.subject}, last {duration_text(address.span)}"
    lines = [
        Line("all followers require", [p.required_bytes_per_s for p in points], is_area=True),
        Line("in-sync followers use", [p.in_sync_bytes_per_s for p in points], is_area=True),
        Line("does not fit", [_too_much(p) for p in points], has_dots=True),
        Line("measured", [p.quota_bytes_per_s for p in points]),
        Line("throttle", [p.throttle_bytes_per_s for p in points]),
    ]
    svg = rates_over_time(title, [p.tick_ms for p in points], lines) if points else ""
    most = max((point.ticks for point in points), default=1)
    note = f"Each point is the worst of up to {most} ticks." if most > 1 else ""
    return Chart(title, svg, table, note)


def _too_much(point: ThrottlePoint) -> float | None:
    """Return the required rate where it does not fit below the throttle; None where it does."""
    throttle, required = point.throttle_bytes_per_s, point.required_bytes_per_s
    return required if throttle is not None and required is not None and throttle <= required else None


def tried_at(moment: Moment, rate_bytes_per_s: float, address: Address) -> list[Block]:
    """Return what a throttle would do on every broker and role that it would limit.

    Args:
        moment: tick with the loads.
        rate_bytes_per_s: the throttle, bytes per second.
        address: address of the page, for links.
    """
    needing = [status for status in moment.statuses if status.load.needs_throttle]
    required = [status.load.lasting_required_bytes_per_s for status in needing]
    rows = [_tried_row(status, rate_bytes_per_s, address) for status in needing]
    text = f"A throttle of {rate_text(rate_bytes_per_s)} on every broker"
    if not needing:
        return [Paragraph(f"{text} would limit nothing: no replica is behind.")]
    if None in required:
        blocks: list[Block] = [Paragraph(f"{text}: unknown, because a required rate is unknown.", Tone.UNKNOWN)]
    elif rate_bytes_per_s <= max(one for one in required if one is not None):
        blocks = [Paragraph(f"{text} is too low: the move never finishes.", Tone.CRITICAL)]
    else:
        limited = [_limited(status.load, rate_bytes_per_s) for status in needing if status.load.limited_replicas]
        estimate = finish(limited, rate_bytes_per_s) if limited else None
        if estimate is None:
            blocks = [Paragraph(f"{text} is enough; when the move finishes is unknown.", Tone.UNKNOWN)]
        else:
            time = duration_range_text(estimate.low_s, estimate.high_s)
            blocks = [Paragraph(f"{text}: the move finishes in {time}.", Tone.GOOD)]
    return [*blocks, DataTable("tried", f"At {rate_text(rate_bytes_per_s)}", _TRIED_COLUMNS, rows)]


def _limited(load: ThrottleLoad, rate_bytes_per_s: float) -> ThrottleLoad:
    """Return a load with a throttle of at most a rate, because an estimate never lowers the one in force."""
    throttle = load.throttle_bytes_per_s
    return (
        load
        if throttle is not None and throttle <= rate_bytes_per_s
        else replace(load, throttle_bytes_per_s=rate_bytes_per_s)
    )


def _tried_row(status: ThrottleStatus, rate_bytes_per_s: float, address: Address) -> Row:
    required = status.load.lasting_required_bytes_per_s
    return {
        "subject": status.subject,
        "throttle": _link(status, address),
        "tried": None if required is None else "yes" if rate_bytes_per_s > required else "no",
        "lasting_required_bytes_per_s": required,
        "margin_bytes_per_s": None if required is None else rate_bytes_per_s - required,
    }
