"""Throttles: the rate in force of each broker and role beside what it must carry, and what another rate would do."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace

from headroom.alerts.inputs.throttle_status import ThrottleStatus
from headroom.alerts.recommendations.commands import headroom_apply
from headroom.dashboard.address import Address, View
from headroom.dashboard.data.history import ThrottlePoint
from headroom.dashboard.data.moment import ClusterMoment
from headroom.dashboard.data.timeline import RangeEvents, TickRange, range_events
from headroom.dashboard.site import Site
from headroom.dashboard.views.blocks import (
    NO_TICK,
    Bar,
    Block,
    Chart,
    Commands,
    DataColumn,
    DataTable,
    Kind,
    Paragraph,
    Row,
    Tone,
    without_tones,
)
from headroom.dashboard.views.chart import ChartAnnotations, ChartLine, has_gap, over_time
from headroom.dashboard.views.headline import state_of_then
from headroom.planning.finish.finish_time import finish
from headroom.planning.quotas.load import ThrottleLoad
from headroom.schemas.alerts import TOO_LOW, AlertState, Verdict
from headroom.schemas.errors import HeadroomError
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
    DataColumn("in_sync_bytes_per_s", "in-sync followers use", Kind.RATE),
    DataColumn("required_bytes_per_s", "all followers require", Kind.RATE),
    DataColumn("quota_bytes_per_s", "measured", Kind.RATE),
)
_COLUMNS = (
    DataColumn("subject", "broker and role", link="throttle"),
    DataColumn("verdict", "verdict", Kind.STATE, tones=VERDICT_TONES),
    DataColumn("bar", "carries", Kind.BAR, none=""),
    DataColumn("throttle_bytes_per_s", "throttle", Kind.RATE, none_key="throttle_none"),
    *_RATES,
    DataColumn("headroom_bytes_per_s", "headroom", Kind.RATE, none="–"),
    DataColumn("replicas", "replicas behind it", Kind.NUMBER),
    DataColumn("remaining_bytes", "left to copy", Kind.SIZE),
    DataColumn("eta_s", "in sync in", Kind.DURATION, none="–"),
    DataColumn("reason", "unknown because", none="", is_long=True),
)
_POINT_COLUMNS = (
    DataColumn("tick_ms", "at", Kind.MOMENT),
    DataColumn("ticks", "ticks", Kind.NUMBER),
    DataColumn("throttle_bytes_per_s", "throttle", Kind.RATE, none="none, or unknown"),
    *_RATES,
    DataColumn("verdict", "verdict", Kind.STATE, tones=VERDICT_TONES),
    DataColumn("remaining_bytes", "left to copy", Kind.SIZE),
)
_BEHIND_COLUMNS = (
    DataColumn("name", "partition"),
    DataColumn("bytes_per_s", "counts with", Kind.RATE),
    DataColumn("write_bytes_per_s", "written", Kind.RATE),
    DataColumn("followers", "followers", Kind.NUMBER),
    DataColumn("in_sync_followers", "in sync", Kind.NUMBER),
    DataColumn("leader", "leader", Kind.ID, none="no leader"),
    DataColumn("previous_leader", "led before by", Kind.ID, none=""),
    DataColumn("remaining_bytes", "left to copy", Kind.SIZE, none="–"),
)
_RATE_COLUMNS = (
    DataColumn("name", "partition"),
    DataColumn("write_bytes_per_s", "written", Kind.RATE),
    DataColumn("method", "measured by", none="unknown"),
)
_TRIED_COLUMNS = (
    DataColumn("subject", "broker and role", link="throttle"),
    DataColumn("verdict", "verdict then", Kind.STATE, tones=VERDICT_TONES),
    DataColumn("lasting_required_bytes_per_s", "must exceed", Kind.RATE),
    DataColumn("margin_bytes_per_s", "margin", Kind.RATE),
)


def throttles(site: Site, address: Address) -> Sequence[Block]:
    """Return the throttles of an address; of one broker and role, how it came, and the partitions behind it.

    Raises:
        HeadroomError: a table cannot be read.
    """
    moment = site.moment(address)
    if moment is None:
        return [NO_TICK]
    of_then = state_of_then(site, address, moment.tick_ms)
    blocks: list[Block] = [*of_then]
    if address.broker is not None:
        blocks += _of_broker(site, address, moment, BrokerRole(address.broker, address.role))
    if address.rate_bytes_per_s is not None:
        tried = tried_at(moment, address.rate_bytes_per_s, address)
        # What a rate would have done then is not what it does now.
        blocks += [_of_then(block) for block in tried] if of_then else tried
        blocks += _setting_it(site, address, moment, address.rate_bytes_per_s)
    most = max((_most(status) for status in moment.statuses), default=0.0)
    rows = [_row(status, address, most) for status in moment.statuses]
    order = list(VERDICT_TONES)[::-1]
    rows.sort(key=lambda row: order.index(row["verdict"]) if row["verdict"] in order else 0)
    columns = without_tones(_COLUMNS) if of_then else _COLUMNS
    blocks.append(DataTable("throttles", "Throttles", columns, rows, "No broker has a throttle, and none is needed."))
    return blocks


def _of_then(block: Block) -> Block:
    if isinstance(block, Paragraph):
        return replace(block, tone=Tone.UNKNOWN)
    return replace(block, columns=without_tones(block.columns)) if isinstance(block, DataTable) else block


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


def _of_broker(site: Site, address: Address, moment: ClusterMoment, broker_role: BrokerRole) -> list[Block]:
    status = next((s for s in moment.statuses if s.load.broker_role == broker_role), None)
    if status is None:
        text = f"Broker {broker_role.broker} has no row as {broker_role.role.value} in this tick."
        return [Paragraph(text, Tone.UNKNOWN)]
    blocks: list[Block] = [*charts_of(site, TickRange.until(moment, address.at, address.span), [broker_role])]
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


def charts_of(site: Site, ticks: TickRange, broker_roles: Sequence[BrokerRole]) -> list[Chart]:
    """Return the charts of throttles over a range. If what they annotate cannot be read, their notes say why.

    Raises:
        HeadroomError: the table of throttles cannot be read.
    """
    try:
        annotations, unannotated = annotations_of(range_events(site.tables, ticks)), ""
    except HeadroomError as error:
        annotations, unannotated = [], f"Without switches, alerts and commands: {error}"
    return [_chart(site, ticks, broker_role, annotations, unannotated) for broker_role in broker_roles]


def _chart(
    site: Site,
    ticks: TickRange,
    broker_role: BrokerRole,
    annotations: Sequence[ChartAnnotations],
    unannotated: str,
) -> Chart:
    points = site.points.throttle(ticks, broker_role)
    role = "leader" if broker_role.role is Role.LEADER else "destination"
    subject = f"broker {broker_role.broker} as {role}"
    table = DataTable("history", f"{subject}, by time", _POINT_COLUMNS, [vars(point) for point in points[::-1]])
    title = f"Throttle of {subject}, {duration_text((ticks.last_ms - ticks.first_ms) / 1000)}"
    lines = [
        ChartLine("all followers require", [p.required_bytes_per_s for p in points], is_area=True),
        ChartLine("in-sync followers use", [p.in_sync_bytes_per_s for p in points], is_area=True),
        ChartLine("does not fit", [_too_much(p) for p in points], has_dots=True),
        ChartLine("measured", [p.quota_bytes_per_s for p in points]),
        ChartLine("throttle", [p.throttle_bytes_per_s for p in points]),
    ]
    times_ms, bridged_ms = [p.tick_ms for p in points], site.bridged_ms(ticks)
    svg = over_time(title, times_ms, lines, annotations=annotations, bridged_ms=bridged_ms) if points else ""
    most = max((point.ticks for point in points), default=1)
    notes = [
        f"Each point is the worst of up to {most} ticks." if most > 1 else "",
        "A gap: there is no verdict." if has_gap(times_ms, bridged_ms) else "",
        unannotated,
    ]
    return Chart(title, svg, table, " ".join(filter(None, notes)))


def annotations_of(happened: RangeEvents) -> list[ChartAnnotations]:
    """Return what charts annotate on their axis of time."""
    firing = [step.tick_ms for step in happened.alerts if step.state == AlertState.FIRING.value]
    return [
        ChartAnnotations("leader switch", [switch.tick_ms for switch in happened.switches]),
        ChartAnnotations("alert", firing),
        ChartAnnotations("command", happened.commands_ms),
    ]


def _too_much(point: ThrottlePoint) -> float | None:
    """Return the required rate where it does not fit below the throttle; None where it does."""
    throttle, required = point.throttle_bytes_per_s, point.required_bytes_per_s
    return required if throttle is not None and required is not None and throttle <= required else None


def _setting_it(site: Site, address: Address, moment: ClusterMoment, rate_bytes_per_s: float) -> list[Block]:
    """Return the command that sets a tried throttle; the page carries out none that it warns of itself."""
    limited = sorted({status.broker for status in moment.statuses if status.load.needs_throttle})
    if not limited or address.at is not None:
        return []
    watched = site.watched(site.cluster(address))
    command = headroom_apply(round(rate_bytes_per_s), limited, watched.config, raise_only=False)
    lead = "Set it on these brokers, where it may lower a rate"
    capacity = watched.settings.cluster.replication_capacity
    why_not = None
    if _is_too_low(moment, rate_bytes_per_s):
        why_not = "the move would never finish"
    elif capacity is not None and rate_bytes_per_s > capacity:
        why_not = f"cluster.replication_capacity is {rate_text(capacity)}"
    if why_not is None:
        return [Commands(lead, [command])]
    return [Commands(f"{lead}. To copy only, because {why_not}", [command], is_offered=False)]


def tried_at(moment: ClusterMoment, rate_bytes_per_s: float, address: Address) -> list[Block]:
    """Return what a throttle would do on every broker and role that it would limit.

    Args:
        moment: tick with the loads.
        rate_bytes_per_s: the throttle, bytes per second.
        address: address of the page, for links.
    """
    needing = [status for status in moment.statuses if status.load.needs_throttle]
    rows = [_tried_row(status, rate_bytes_per_s, address) for status in needing]
    text = f"A throttle of {rate_text(rate_bytes_per_s)} on every broker"
    if not needing:
        return [Paragraph(f"{text} would limit nothing: no replica is behind.")]
    verdicts = {row["verdict"] for row in rows}
    if _is_too_low(moment, rate_bytes_per_s):
        said = Paragraph(f"{text} is too low: the move never finishes.", Tone.CRITICAL)
    # One more unknown rate changes nothing in what is too low.
    elif Verdict.NO_DATA.value in verdicts:
        said = Paragraph(f"{text}: unknown, because a required rate is unknown.", Tone.UNKNOWN)
    elif any(row["margin_bytes_per_s"] is not None and row["margin_bytes_per_s"] <= 0 for row in rows):
        said = Paragraph(f"{text} does not exceed what is required: the move is slow, or never finishes.", Tone.WARNING)
    else:
        said = _estimate(text, [s.load for s in needing if s.load.limited_replicas], rate_bytes_per_s)
    return [said, DataTable("tried", f"At {rate_text(rate_bytes_per_s)}", _TRIED_COLUMNS, rows)]


def _estimate(text: str, loads: Sequence[ThrottleLoad], rate_bytes_per_s: float) -> Paragraph:
    estimate = finish([_with_throttle(load, rate_bytes_per_s) for load in loads], rate_bytes_per_s) if loads else None
    if estimate is None:
        return Paragraph(f"{text} is enough; when the move finishes is unknown.", Tone.UNKNOWN)
    return Paragraph(f"{text}: the move finishes in {duration_range_text(estimate.low_s, estimate.high_s)}.", Tone.GOOD)


def _with_throttle(load: ThrottleLoad, rate_bytes_per_s: float) -> ThrottleLoad:
    """Return a load with a throttle of at most a rate, because an estimate never lowers the one in force."""
    throttle = load.throttle_bytes_per_s
    return (
        load
        if throttle is not None and throttle <= rate_bytes_per_s
        else replace(load, throttle_bytes_per_s=rate_bytes_per_s)
    )


def _is_too_low(moment: ClusterMoment, rate_bytes_per_s: float) -> bool:
    """Return whether a throttle is so low for a broker and role that its replicas never get in sync."""
    needing = (status for status in moment.statuses if status.load.needs_throttle)
    return any(_tried_load(status, rate_bytes_per_s).verdict in TOO_LOW for status in needing)


def _tried_load(status: ThrottleStatus, rate_bytes_per_s: float) -> ThrottleLoad:
    # Once dead brokers are back too, as advice has it.
    required, down = status.load.lasting_required_bytes_per_s, status.load.down_required_bytes_per_s or 0.0
    return replace(
        status.load,
        throttle_bytes_per_s=rate_bytes_per_s,
        throttle_known=True,
        required_bytes_per_s=required,
        known_required_bytes_per_s=status.load.least_required_bytes_per_s + down,
        down_required_bytes_per_s=0.0,
    )


def _tried_row(status: ThrottleStatus, rate_bytes_per_s: float, address: Address) -> Row:
    required = status.load.lasting_required_bytes_per_s
    return {
        "subject": status.subject,
        "throttle": _link(status, address),
        "verdict": _tried_load(status, rate_bytes_per_s).verdict.value,
        "lasting_required_bytes_per_s": required,
        "margin_bytes_per_s": None if required is None else rate_bytes_per_s - required,
    }
