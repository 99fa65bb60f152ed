"""Lag: what each broker fetches from each other one, and how far behind it is, now and over time."""

from __future__ import annotations

import math
from collections import Counter, defaultdict
from collections.abc import Collection, Iterable, Mapping, Sequence

from headroom.dashboard.address import Address
from headroom.dashboard.data.lag import (
    MOST_TIMES,
    FollowerLag,
    PairLag,
    frozen_history,
    lag_history,
    pair_lags,
    part_ms,
    parts_without_verdicts,
)
from headroom.dashboard.data.timeline import TickRange
from headroom.dashboard.site import Site
from headroom.dashboard.views.blocks import (
    Block,
    DataColumn,
    DataTable,
    HeatCell,
    HeatMap,
    Kind,
    Paragraph,
    Row,
    Tone,
    stale,
)
from headroom.operations.evaluation import fresh_ms
from headroom.schemas.tables import REPLICATION_LAG
from headroom.schemas.text.amounts import clock_text, duration_text, moment_text

_TONES = {"in step": Tone.GOOD, "behind": Tone.WARNING, "unknown": Tone.UNKNOWN}
_COLUMNS = (
    DataColumn("broker", "follower", Kind.ID),
    DataColumn("source_broker", "fetches from", Kind.ID),
    DataColumn("state", "state", Kind.STATE, tones=_TONES),
    DataColumn("replicas", "replicas", Kind.NUMBER),
    DataColumn("behind", "behind", Kind.NUMBER),
    DataColumn("unknown", "gauge unknown", Kind.NUMBER),
    DataColumn("missing", "without a gauge", Kind.NUMBER),
    DataColumn("frozen", "gauge frozen", Kind.NUMBER),
    DataColumn("greatest_lag_offsets", "greatest lag, offsets", Kind.NUMBER),
    DataColumn("lag_offsets", "sum of lags, offsets", Kind.NUMBER),
)
_HISTORY_COLUMNS = (
    DataColumn("at_ms", "from", Kind.MOMENT),
    DataColumn("broker", "follower", Kind.ID),
    DataColumn("greatest_lag_offsets", "greatest lag, offsets", Kind.NUMBER),
    DataColumn("unknown", "gauge unknown", Kind.NUMBER),
    DataColumn("missing", "without a gauge", Kind.NUMBER),
    DataColumn("frozen", "gauge frozen", Kind.NUMBER),
)
# Brokers of a heat map along each side: those that are furthest behind.
_MOST_BROKERS = 40
# Least lags of the levels above 0, offsets.
_LEVELS = (1, 100, 1_000, 10_000, 100_000)
_UNKNOWN, _MISSING, _UNCOUNTED, _FROZEN, _UNREAD = "?", "×", "×?", "F", "F?"
_LEGEND = (
    f"Darker: further behind, from {_LEVELS[0]}, {', '.join(f'{level:,}' for level in _LEVELS[1:])} offsets on. "
    f"Hatched, with a letter: unknown. {_UNKNOWN}: Kafka's gauge was -1. {_MISSING}: a replica has no gauge. "
    f"{_UNCOUNTED}: whether each has one is unknown, without metadata. "
    f"{_FROZEN}: a gauge is frozen while the real lag changes: the greatest is unknown. {_UNREAD}: no verdict says "
    "whether one is. ≥: beside such replicas others have a number. Empty: nothing is fetched, or no tick."
)


def lag(site: Site, address: Address) -> Sequence[Block]:
    """Return the lag between brokers up to the moment of an address, and over the time before.

    Raises:
        HeadroomError: the table cannot be read.
    """
    cluster = site.cluster(address)
    tick_ms = site.moments.tick_at(cluster, site.at_ms(address), REPLICATION_LAG)
    if tick_ms is None:
        text = (
            f"No lag of cluster {cluster} is in {REPLICATION_LAG.path} yet. A watch writes it some times a minute, and "
            "begins one or two minutes after its start."
        )
        return [Paragraph(text, Tone.UNKNOWN)]
    pairs = pair_lags(site.tables, cluster, tick_ms)
    last_ms = tick_ms if address.at is None else address.at
    ticks = TickRange(cluster, last_ms - address.span * 1000, last_ms)
    history, frozen_then = lag_history(site.tables, ticks), frozen_history(site.tables, ticks)
    unread = parts_without_verdicts(site.tables, ticks, fresh_ms(site.watched(cluster).settings))
    frozen = _frozen_at(site, cluster, tick_ms)
    note = (
        f"Read at {moment_text(tick_ms)}. Kafka's gauge is gone for seconds after a leader switch, and stands still "
        "while a throttle keeps a replica waiting: see Moves for the real lag of what moves."
    )
    stale_after_s = site.watched(cluster).records_stale_after_s()
    of_then = stale("Lag was last read", tick_ms, site.shown_ms(address), stale_after_s)
    rows = [_row(pair, frozen, is_stale=bool(of_then)) for pair in pairs]
    if frozen is None:
        text = f"Which gauges are frozen is unknown: there is no verdict of {moment_text(tick_ms)}, when lag was read."
        of_then = [*of_then, Paragraph(text, Tone.UNKNOWN)]
    return [
        *of_then,
        _over_time(history, frozen_then, unread, ticks, clock_text(ticks.last_ms, site.clock_ms())),
        _by_source(pairs, frozen, clock_text(tick_ms, site.clock_ms())),
        DataTable("lag", "Replication lag by brokers", _COLUMNS, rows, "No broker fetches.", note),
    ]


def _frozen_at(site: Site, cluster: str, tick_ms: int) -> Counter[tuple[int, int | None]] | None:
    """Return how many gauges are frozen at a tick, by follower and source broker; None if no verdict says that."""
    verdict_ms = site.moments.tick_at(cluster, tick_ms)
    if verdict_ms is None or tick_ms - verdict_ms > fresh_ms(site.watched(cluster).settings):
        return None
    replicas = site.moments.moment(cluster, verdict_ms).replicas
    # One that is gone, or -1, is counted as that.
    known = (one for one in replicas if one.frozen and one.lag_gauge_offsets is not None)
    return Counter((one.adding_replica, one.leader) for one in known)


def _row(pair: PairLag, frozen: Counter[tuple[int, int | None]] | None, *, is_stale: bool) -> Row:
    of_pair = None if frozen is None else frozen[pair.broker, pair.source_broker]
    is_unknown = pair.unknown or pair.missing != 0 or of_pair != 0
    state = "behind" if pair.behind else "unknown" if is_unknown else "in step"
    # The table has 0 as the sum of no known gauge.
    known_sum = None if pair.greatest_lag_offsets is None else pair.lag_offsets
    return {**vars(pair), "lag_offsets": known_sum, "frozen": of_pair, "state": "unknown" if is_stale else state}


def _over_time(
    history: Sequence[FollowerLag],
    frozen_then: Mapping[tuple[int, int], int],
    unread: Collection[int],
    ticks: TickRange,
    to: str,
) -> HeatMap:
    step_ms = part_ms(ticks)

    def frozen_of(one: FollowerLag) -> int | None:
        return frozen_then.get((one.broker, one.at_ms)) or (None if one.at_ms in unread else 0)

    times_ms = [ticks.first_ms + number * step_ms for number in range(MOST_TIMES)]
    cells: dict[int, dict[int, HeatCell]] = defaultdict(dict)
    for one in history:
        frozen = frozen_of(one)
        title = f"broker {one.broker}, {clock_text(one.at_ms, ticks.last_ms)}: {_said(one, frozen)}"
        cells[one.broker][one.at_ms] = _cell(one, frozen, title, with_number=False)
    brokers, left_out = _furthest((one.broker, one.greatest_lag_offsets) for one in history)
    rows = [{**vars(one), "frozen": frozen_of(one)} for one in history[::-1]]
    table = DataTable("history", "Greatest lag, by time", _HISTORY_COLUMNS, rows)
    lasts = duration_text((ticks.last_ms - ticks.first_ms) / 1000)
    return HeatMap(
        f"Greatest lag of each follower, {lasts} to {to}",
        "follower",
        [str(broker) for broker in brokers],
        # One in ten is named.
        [clock_text(ms).removesuffix(" UTC")[:5] if n % 10 == 0 else "" for n, ms in enumerate(times_ms)],
        [[cells[broker].get(ms, HeatCell()) for ms in times_ms] for broker in brokers],
        table,
        f"{_LEGEND} {duration_text(step_ms / 1000)} each.{left_out}",
    )


def _by_source(pairs: Sequence[PairLag], frozen: Counter[tuple[int, int | None]] | None, at: str) -> HeatMap:
    followers, left_out = _furthest((pair.broker, pair.greatest_lag_offsets) for pair in pairs)
    sources, more_left_out = _furthest((pair.source_broker, pair.greatest_lag_offsets) for pair in pairs)
    by_pair = {(pair.broker, pair.source_broker): pair for pair in pairs}
    cells = [
        [
            HeatCell()
            if (pair := by_pair.get((broker, source))) is None
            else _cell(
                pair,
                count := None if frozen is None else frozen[broker, source],
                f"broker {broker} from broker {source}: {_said(pair, count)}",
                with_number=True,
            )
            for source in sources
        ]
        for broker in followers
    ]
    title = f"Greatest lag of followers by the broker that they fetch from, at {at}"
    names = [str(source) for source in sources]
    note = f"{_LEGEND}{left_out or more_left_out}"
    return HeatMap(title, "follower", [str(one) for one in followers], names, cells, None, note)


def _furthest(lags: Iterable[tuple[int, int | None]]) -> tuple[list[int], str]:
    """Return the brokers that are furthest behind, by id, and what is said of those that are left out.

    Those of which no lag is known come first: they may be further behind than all others.
    """
    known: dict[int, list[int]] = defaultdict(list)
    for broker, offsets in lags:
        known[broker] += [] if offsets is None else [offsets]
    greatest = {broker: max(own, default=math.inf) for broker, own in known.items()}
    furthest = sorted(greatest, key=lambda broker: (-greatest[broker], broker))[:_MOST_BROKERS]
    more = len(greatest) - len(furthest)
    if not more:
        return sorted(furthest), ""
    or_unknown = ", or without a known lag" if math.inf in greatest.values() else ""
    return sorted(furthest), f" The {len(furthest)} furthest behind{or_unknown}; {more} more are in the table."


def _said(one: PairLag | FollowerLag, frozen: int | None) -> str:
    offsets = one.greatest_lag_offsets
    said = ["no known lag" if offsets is None or frozen != 0 else f"{offsets:,} offsets"]
    if one.unknown:
        said.append(f"{one.unknown:,} unknown")
    if one.missing is None:
        said.append("whether each replica has a gauge is unknown")
    elif one.missing:
        said.append(f"{one.missing:,} without a gauge")
    if frozen is None:
        said.append("which gauges are frozen is unknown")
    elif frozen:
        said.append(f"{frozen:,} whose gauge is frozen")
    return ", ".join(said)


def _cell(one: PairLag | FollowerLag, frozen: int | None, title: str, *, with_number: bool) -> HeatCell:
    # The greatest gauge may be a frozen one, which says nothing of the lag.
    offsets = None if frozen != 0 else one.greatest_lag_offsets
    of_missing = _UNCOUNTED if one.missing is None else _MISSING * bool(one.missing)
    of_frozen = _UNREAD if frozen is None else _FROZEN * bool(frozen)
    letters = _UNKNOWN * bool(one.unknown) + of_missing + of_frozen
    number = f"{'≥' * bool(letters)}{offsets:,}" if with_number and offsets is not None else ""
    level = None if offsets is None else sum(offsets >= least for least in _LEVELS)
    return HeatCell(level, f"{number} {letters}".strip(), title)
