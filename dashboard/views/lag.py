"""Lag: what each broker fetches from each other one, and how far behind it is."""

from __future__ import annotations

from collections.abc import Sequence

from headroom.dashboard.address import Address
from headroom.dashboard.data.lag import PairLag, pair_lags
from headroom.dashboard.site import Site
from headroom.dashboard.views.blocks import Block, DataColumn, DataTable, Kind, Paragraph, Row, Tone
from headroom.schemas.tables import FETCHER_LAG
from headroom.schemas.text.amounts import moment_text

_TONES = {"in step": Tone.GOOD, "behind": Tone.WARNING, "unknown": Tone.UNKNOWN}
_COLUMNS = (
    DataColumn("broker", "follower", Kind.ID),
    DataColumn("source_broker", "fetches from", Kind.ID),
    DataColumn("state", "state", Kind.STATE, tones=_TONES),
    DataColumn("replicas", "replicas", Kind.NUMBER),
    DataColumn("behind", "behind", Kind.NUMBER),
    DataColumn("unknown", "gauge unknown", Kind.NUMBER),
    DataColumn("greatest_lag_offsets", "greatest lag, offsets", Kind.NUMBER),
    DataColumn("lag_offsets", "sum of lags, offsets", Kind.NUMBER),
)


def lag(site: Site, address: Address) -> Sequence[Block]:
    """Return the lag between brokers up to the moment of an address.

    Raises:
        HeadroomError: the table cannot be read.
    """
    cluster = site.cluster(address)
    tick_ms = site.moments.tick_at(cluster, site.at_ms(address), FETCHER_LAG)
    if tick_ms is None:
        text = f"No lag of cluster {cluster} was read yet; the table follows the ticks by some seconds to a minute."
        return [Paragraph(text, Tone.UNKNOWN)]
    rows = [_row(pair) for pair in pair_lags(site.tables, cluster, tick_ms)]
    note = (
        f"Read at {moment_text(tick_ms)}. Kafka's gauge is gone for seconds after a leader switch, and stands still "
        "while a throttle keeps a replica waiting: see Moves for the real lag of what moves."
    )
    return [DataTable("lag", "Replication lag by brokers", _COLUMNS, rows, "No broker fetches.", note)]


def _row(pair: PairLag) -> Row:
    state = "behind" if pair.behind else "unknown" if pair.unknown else "in step"
    return {**vars(pair), "state": state}
