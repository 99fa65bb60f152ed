"""Leaders: how many partitions each broker leads of those that it should, and the elections that give them back."""

from __future__ import annotations

from collections.abc import Sequence

from headroom.alerts.inputs.cluster_inputs import fresh
from headroom.alerts.inputs.leader_balance import LeaderBalance
from headroom.alerts.recommendations.elections import describe_plan
from headroom.dashboard.address import Address
from headroom.dashboard.site import Site
from headroom.dashboard.views.blocks import Block, Commands, DataColumn, DataTable, Kind, Paragraph, Row, Tone, stale
from headroom.planning.elections.planner import why_not_electable
from headroom.schemas.text.amounts import moment_text

_TONES = {"in balance": Tone.GOOD, "out of balance": Tone.WARNING, "down": Tone.CRITICAL}
_COLUMNS = (
    DataColumn("broker", "broker", Kind.ID),
    DataColumn("state", "state", Kind.STATE, tones=_TONES),
    DataColumn("preferred_partitions", "should lead", Kind.NUMBER),
    DataColumn("non_preferred_partitions", "led by others", Kind.NUMBER),
    DataColumn("electable_now", "electable now", Kind.NUMBER),
    DataColumn("waiting_for_move", "move first", Kind.NUMBER),
    DataColumn("unavailable", "cannot be led", Kind.NUMBER),
    DataColumn("leaderless", "without a leader", Kind.NUMBER),
    DataColumn("leader_partitions", "leads in all", Kind.NUMBER),
    DataColumn("imbalance_ratio", "imbalance", Kind.SHARE),
    DataColumn("threshold_ratio", "threshold", Kind.SHARE),
    DataColumn("write_bytes_per_s", "writes", Kind.RATE),
    DataColumn("preferred_write_bytes_per_s", "writes, if all preferred led", Kind.RATE),
)


def leaders(site: Site, address: Address) -> Sequence[Block]:
    """Return the leader balance up to the moment of an address.

    Raises:
        HeadroomError: a table cannot be read.
    """
    cluster, at_ms = site.cluster(address), site.at_ms(address)
    count = site.moments.leaders(cluster, at_ms)
    if count is None:
        return [Paragraph(f"Leaders of cluster {cluster} were not counted yet.", Tone.UNKNOWN)]
    watched = site.watched(cluster)
    stale_after_s = watched.balances_stale_after_s()
    of_then = stale("Leaders were last counted", count.tick_ms, site.shown_ms(address), stale_after_s)
    rows = [_row(balance, is_stale=bool(of_then)) for balance in count.balances]
    out = sum(balance.is_out_of_balance for balance in count.balances)
    note = f"Counted at {moment_text(count.tick_ms)}. {out} of {len(rows)} brokers out of balance."
    blocks: list[Block] = [*of_then, DataTable("leaders", "Leaders", _COLUMNS, rows, note=note)]
    # Of an old count nothing is recommended, as no alert does.
    if out and not of_then:
        # As alerts have it: an older plan is of partitions that were electable then.
        elections = fresh(count.elections, count.tick_ms, watched.elections_stale_after_s())
        advice = watched.recommender(elections=elections).elect_preferred()
        blocks.append(Paragraph(f"Elections: {describe_plan(elections)}."))
        blocks.append(Commands("Elect the preferred leaders", advice.commands))
    return blocks


def _row(one: LeaderBalance, *, is_stale: bool) -> Row:
    balance = one.balance
    state = "out of balance" if one.is_out_of_balance else "in balance"
    state = (why_not_electable(balance, one.threshold_ratio, True) or state) if one.alive else "down"
    return {
        "broker": one.broker,
        "state": "unknown" if is_stale else state,
        "preferred_partitions": balance.preferred_partitions,
        "non_preferred_partitions": balance.non_preferred_partitions,
        "electable_now": balance.electable_now,
        "waiting_for_move": balance.waiting_for_move,
        "unavailable": one.unavailable,
        "leaderless": one.leaderless,
        "leader_partitions": one.leader_partitions,
        "imbalance_ratio": balance.imbalance_ratio,
        "threshold_ratio": one.threshold_ratio,
        "write_bytes_per_s": balance.write_bytes_per_s,
        "preferred_write_bytes_per_s": balance.preferred_write_bytes_per_s,
    }
