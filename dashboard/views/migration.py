"""Migration: where each partition is between two clusters, when it switches, who is left, and what could be lost."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace

from headroom.alerts.recommendations.commands import changing_command, headroom_migration_run
from headroom.alerts.recommendations.migrations import MOST_TOPICS
from headroom.dashboard.address import Address
from headroom.dashboard.data.migrations import migrations_at
from headroom.dashboard.data.moment import moment_after
from headroom.dashboard.site import Site
from headroom.dashboard.views.blocks import (
    Block,
    Commands,
    DataColumn,
    DataTable,
    Kind,
    Paragraph,
    Row,
    Tone,
    stale,
    without_tones,
)
from headroom.dashboard.views.runs import carried_out_now
from headroom.operations.evaluation import fresh_ms
from headroom.planning.migration.agreement import is_withdrawable
from headroom.planning.migration.progress.progress import MigrationProgress, MigrationVerdict
from headroom.planning.migration.progress.removal import known_readers_left, readers_left, unplaced_readers
from headroom.schemas.keys import TopicPartition
from headroom.schemas.migrations import MigrationStatus
from headroom.schemas.text import shell_quoted
from headroom.schemas.text.amounts import clock_text, join_names, moment_text

_VERDICT_TONES = {
    MigrationVerdict.LOST: Tone.CRITICAL,
    MigrationVerdict.NEVER: Tone.WARNING,
    MigrationVerdict.OVERTAKEN: Tone.CRITICAL,
    MigrationVerdict.DIVERGED: Tone.CRITICAL,
    MigrationVerdict.LATE: Tone.WARNING,
    MigrationVerdict.EARLY: Tone.WARNING,
    MigrationVerdict.DRAINING: Tone.QUIET,
    MigrationVerdict.WAITING: Tone.QUIET,
    MigrationVerdict.ON_PLAN: Tone.GOOD,
    MigrationVerdict.REMOVABLE: Tone.GOOD,
    MigrationVerdict.DRAINED: Tone.GOOD,
    MigrationVerdict.SHIELDED: Tone.UNKNOWN,
    MigrationVerdict.NO_DATA: Tone.UNKNOWN,
}
# The worst first, as the verdict is chosen; of those that are not read nothing is known.
_ORDER = {verdict: place for place, verdict in enumerate(MigrationVerdict)}
_GOES_ON = (MigrationStatus.PLANNED, MigrationStatus.MIGRATING)
_COLUMNS = (
    DataColumn("name", "partition"),
    DataColumn("migration", "migration"),
    DataColumn("verdict", "verdict", Kind.STATE, tones={one.value: tone for one, tone in _VERDICT_TONES.items()}),
    DataColumn("side", "written on", Kind.TEXT),
    DataColumn("status", "agreed status"),
    DataColumn("end_offset", "end offset E", Kind.NUMBER, none="not agreed"),
    DataColumn("left_offsets", "left to E, offsets", Kind.NUMBER),
    DataColumn("switch_ms", "switches at", Kind.MOMENT, none="–"),
    DataColumn("readers_left", "readers left", Kind.NUMBER),
    DataColumn("reader_names", "who", none=""),
    DataColumn("lost_offsets", "lost, offsets", Kind.NUMBER),
    DataColumn("at_risk_offsets", "lost by a leader switch now, offsets", Kind.NUMBER),
    DataColumn("overtaken_offsets", "lost to retention, offsets", Kind.NUMBER),
    DataColumn("mirror_lag_offsets", "left to mirror, offsets", Kind.NUMBER, none=""),
    DataColumn("reason", "why", none="", is_long=True),
)


def migration(site: Site, address: Address) -> Sequence[Block]:
    """Return the migrations to a cluster up to the moment of an address, the worst partitions first.

    Raises:
        HeadroomError: a table cannot be read.
    """
    cluster, at_ms = site.cluster(address), site.at_ms(address)
    migrations = migrations_at(site.tables, site.moments, cluster, at_ms)
    if migrations is None:
        return [*carried_out_now(site, address), Paragraph(_empty_text(cluster))]
    tick_ms, partitions = migrations
    by_name = _by_name(partitions)
    rows = sorted(
        (_row(partition, tick_ms) for partition in partitions),
        key=lambda row: (_ORDER[MigrationVerdict(row["verdict"])], row["topic"], row["partition"]),
    )
    shown = [row for row in rows if address.shows(row["topic"], row["verdict"])]
    note = f"Read at {moment_text(tick_ms)}."
    if len(shown) < len(rows):
        note = f"{note} {len(shown)} of {len(rows)} partitions match."
    of_then = _of_then(site, address, tick_ms)
    summaries = [Paragraph(*_summary(name, own, tick_ms)) for name, own in by_name.items()]
    columns: Sequence[DataColumn] = _COLUMNS
    if of_then:
        # The verdicts are those of then: how good they are now is unknown.
        summaries = [replace(summary, tone=Tone.UNKNOWN) for summary in summaries]
        columns = without_tones(_COLUMNS)
    commands = _commands(by_name, site.watched(cluster).config) if address.at is None and not of_then else []
    table = DataTable("migration", "Partitions", columns, shown, "No partition matches.", note)
    return [*carried_out_now(site, address), *of_then, *summaries, table, *commands]


def _of_then(site: Site, address: Address, tick_ms: int) -> list[Paragraph]:
    """Return what comes before migrations that are too old for the moment that is shown; nothing if they are not."""
    stale_after_ms = fresh_ms(site.watched(site.cluster(address)).settings)
    moment = site.moment(address)
    if moment is not None and moment.tick_ms - tick_ms > stale_after_ms:
        text = f"Nothing was read of migrations since {moment_text(tick_ms)}: the last one is over, or unread."
        return [Paragraph(text, Tone.UNKNOWN)]
    # A watch that has ended has left no newer tick.
    return stale("Migrations were last read", tick_ms, site.shown_ms(address), stale_after_ms / 1000)


def _empty_text(cluster: str) -> str:
    return (
        f"No topic migrates to cluster {cluster}. A migration begins with [migration.origin] in headroom.toml, which "
        "names the cluster to come from; headroom migration plan TOPIC shows when each partition would switch and what "
        "forbids it, and headroom migration run TOPIC --name NAME --method METHOD --execute carries it out. So does a "
        "form of this page, where it carries out commands."
    )


def _by_name(partitions: Sequence[MigrationProgress]) -> dict[str, list[MigrationProgress]]:
    by_name: dict[str, list[MigrationProgress]] = {}
    for partition in partitions:
        by_name.setdefault(partition.migration, []).append(partition)
    return dict(sorted(by_name.items()))


def _commands(by_name: Mapping[str, Sequence[MigrationProgress]], config: str | None) -> list[Commands]:
    """Return what continues, shields or withdraws each migration; nothing that deletes or gives records up."""
    blocks: list[Commands] = []
    for name, own in by_name.items():
        named = ["--name", shell_quoted(name)]
        topics, methods = sorted({partition.topic for partition in own}), {partition.method for partition in own}
        if len(methods) == 1 and len(topics) <= MOST_TOPICS and any(p.status in _GOES_ON for p in own):
            # Two people may have the page open, or one of them a terminal: nobody ends the run of another unawares.
            run = headroom_migration_run(topics, name, own[0].method, ["--unless-running"], config)
            blocks.append(Commands(f"Carry on with migration {name}", [run]))
        is_shielded = all(partition.verdict is MigrationVerdict.SHIELDED for partition in own)
        lead = "Allow calls to the origin of" if is_shielded else "Stop all calls, if it hangs, to the origin of"
        off = ["--off"] * is_shielded
        shield = changing_command(["migration shield", *named, *off], config)
        blocks.append(Commands(f"{lead} migration {name}", [shield]))
        if any(is_withdrawable(partition.status, partition.reopened_end) for partition in own):
            cancel = changing_command(["migration cancel", *named], config)
            blocks.append(Commands(f"Withdraw what migration {name} has planned and not started", [cancel]))
    return blocks


def _summary(name: str, partitions: Sequence[MigrationProgress], tick_ms: int) -> tuple[str, Tone]:
    """Return the state of a migration in one sentence, with the tone of its worst partition."""
    tones = [_VERDICT_TONES[partition.verdict] for partition in partitions]
    worst = next(t for t in (Tone.CRITICAL, Tone.WARNING, Tone.UNKNOWN, Tone.QUIET, Tone.GOOD) if t in tones)
    switched = [partition for partition in partitions if _written_on(partition) == "target"]
    ahead = [partition for partition in partitions if _written_on(partition) != "target"]
    at_ms = [moment_after(tick_ms, partition.switch_eta_s) for partition in ahead]
    known = [one for one in at_ms if one is not None]
    parts = [f"Migration {name}: {len(switched)} of {len(partitions)} partitions have switched"]
    if known:
        unknown = f", of {len(at_ms) - len(known)} it is unknown or never" if len(known) < len(at_ms) else ""
        parts.append(f"the last of the others switches at {clock_text(max(known), tick_ms)}{unknown}")
    elif ahead:
        parts.append("when the others do is unknown, or never")
    groups = {group.group for partition in partitions for group in readers_left(partition)}
    unknown_at = sum(partition.groups is None or bool(unplaced_readers(partition)) for partition in partitions)
    left = f"{len(groups)} group{' has' if len(groups) == 1 else 's have'} yet to read the origin"
    if not groups:
        left = "no group is known to be left"
    parts.append(f"{left}{_of_unknown(unknown_at)}")
    parts.append(_risk_text(partitions))
    return f"{'; '.join(parts)}.", worst


def _risk_text(partitions: Sequence[MigrationProgress]) -> str:
    """Return what is lost and what could be, with the number of partitions of which that is unknown."""
    lost = sum(partition.lost_offsets or 0 for partition in partitions)
    of_lost = _of_unknown(sum(partition.lost_offsets is None for partition in partitions))
    at_risk = sum(partition.at_risk_offsets or 0 for partition in partitions)
    overtaken = [_overtaken(partition) for partition in partitions]
    of_risk = _of_unknown(sum(partition.at_risk_offsets is None for partition in partitions))
    of_overtaken = _of_unknown(sum(offsets is None for offsets in overtaken))
    return (
        f"{lost:,} offsets are lost{of_lost}, a leader switch now would lose {at_risk:,}{of_risk}, and retention "
        f"{sum(offsets or 0 for offsets in overtaken):,}{of_overtaken}"
    )


def _of_unknown(partitions: int) -> str:
    return f" (unknown of {partitions} partition{'' if partitions == 1 else 's'})" if partitions else ""


def _written_on(partition: MigrationProgress) -> str | None:
    """Return the cluster that clients write to now; None if unknown."""
    # A log that has come back shorter than E gets nothing of routers any more.
    if partition.status in (MigrationStatus.MIGRATED, MigrationStatus.AGED):
        return "target"
    if partition.status == MigrationStatus.PLANNED or partition.left_offsets:
        return "origin"
    return "target" if partition.left_offsets == 0 else None


def _overtaken(partition: MigrationProgress) -> int | None:
    """Return the offsets that groups lose to retention; None if that of one is unknown and none is known."""
    if partition.groups is None:
        return None
    lost = [group.lost_offsets for group in partition.groups if group.left_offsets != 0]
    known = sum(offsets for offsets in lost if offsets is not None)
    return known if known or None not in lost else None


def _row(partition: MigrationProgress, tick_ms: int) -> Row:
    left = readers_left(partition)
    is_unread = partition.verdict in (MigrationVerdict.SHIELDED, MigrationVerdict.NO_DATA) and not left
    unplaced = [f"{group} (place unknown)" for group in unplaced_readers(partition)]
    written_on = _written_on(partition)
    return {
        "name": str(TopicPartition(partition.topic, partition.partition)),
        "topic": partition.topic,
        "partition": partition.partition,
        "migration": partition.migration,
        "verdict": partition.verdict.value,
        "side": written_on,
        "status": partition.status,
        "end_offset": partition.end_offset,
        "left_offsets": partition.left_offsets,
        "switch_ms": None if written_on == "target" else moment_after(tick_ms, partition.switch_eta_s),
        "readers_left": None if is_unread else known_readers_left(partition),
        "reader_names": join_names([*(group.group for group in left), *unplaced]) or None,
        "lost_offsets": partition.lost_offsets,
        "at_risk_offsets": partition.at_risk_offsets,
        "overtaken_offsets": None if is_unread else _overtaken(partition),
        "mirror_lag_offsets": partition.mirror_lag_offsets,
        "reason": partition.reason or None,
    }
