"""Offsets of a group on the target, by syncs, by its next record, and the same ones on a link."""

from __future__ import annotations

from datetime import date
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from headroom.operations.migration.kept_syncs import KeptSyncs
from headroom.operations.migration.set_offsets import commit_translated, offsets_csv, write_offsets
from headroom.operations.migration.translation import TranslationRequest, TranslationResult, translate_offsets
from headroom.planning.migration.mirrors.reader_offsets import OffsetBasis
from headroom.planning.migration.readings import TopicRules
from headroom.schemas.config import ClusterSettings, Settings, StoreSettings
from headroom.schemas.errors import HeadroomError
from headroom.schemas.keys import TopicPartition
from headroom.schemas.migrations import MigrationMethod
from headroom.schemas.tables import MIGRATION_SYNCS
from headroom.streaming.delta.small_table import append_durably
from headroom.streaming.tables.journal import ActionJournal
from tests.unit.fakes.migration_clusters import FakeMigrationCluster, QuietProgress, clusters_of, log_record
from tests.unit.fakes.migration_clusters import sync_bytes as sync

ORDERS = [TopicPartition("orders", p) for p in (0, 1)]
MIRRORED = [TopicPartition("old.orders", p) for p in (0, 1)]
SYNCS = TopicPartition("mm2-offset-syncs.new.internal", 0)


@pytest.fixture
def origin() -> FakeMigrationCluster:
    """Orders with 200 and 100 records, of which the group billing has read 150 and all."""
    cluster = FakeMigrationCluster("old", group_states={"billing": True})
    cluster.fill("orders", 0, range(200))
    cluster.fill("orders", 1, range(1_000, 1_100))
    write_syncs(cluster, sync(0, 100, 110), sync(1, 99, 99), sync(0, 180, 190))
    cluster.offsets = {"billing": {ORDERS[0]: 150, ORDERS[1]: 100}}
    return cluster


@pytest.fixture
def target() -> FakeMigrationCluster:
    """The mirror: MirrorMaker was killed after 110 records of partition 0, and began again at 100."""
    cluster = FakeMigrationCluster("new")
    cluster.fill("old.orders", 0, [*range(110), *range(100, 200)])
    cluster.fill("old.orders", 1, range(1_000, 1_100))
    return cluster


def write_syncs(cluster: FakeMigrationCluster, *syncs: tuple[bytes | None, bytes | None]) -> None:
    cluster.logs[SYNCS] = [log_record(at, at)._replace(key=key, value=value) for at, (key, value) in enumerate(syncs)]


def translated(
    origin: FakeMigrationCluster,
    target: FakeMigrationCluster,
    *topics: str,
    exact: bool = False,
    method: MigrationMethod = MigrationMethod.MIRRORED,
    notes: list[str] | None = None,
    kept: KeptSyncs | None = None,
) -> TranslationResult:
    request = TranslationRequest("billing", topics, method, exact)
    on_note = [].append if notes is None else notes.append
    return translate_offsets(clusters_of(origin, target), request, QuietProgress(), on_note, kept)


def test_the_nearest_sync_at_or_before_the_offset_is_used(
    origin: FakeMigrationCluster, target: FakeMigrationCluster
) -> None:
    first, second = translated(origin, target).offsets
    # The sync of 100 is at 110, so 150 is somewhere behind it: 101 to 149 may be read again.
    assert (first.name, first.target_name, first.committed) == (ORDERS[0], MIRRORED[0], 150)
    assert (first.target_offset, first.basis, first.sync, first.may_repeat) == (111, OffsetBasis.SYNC, (100, 110), 49)
    assert (second.target_offset, second.sync, second.may_repeat) == (100, (99, 99), 0)
    assert (first.now, first.skipped, first.reason) == (None, 0, "")


def test_with_exact_the_next_record_is_found_on_the_target(
    origin: FakeMigrationCluster, target: FakeMigrationCluster
) -> None:
    first, second = translated(origin, target, exact=True).offsets
    # Record 150 is the 41st after the 110 of the first run: 110 + 50.
    assert (first.target_offset, first.basis, first.may_repeat) == (160, OffsetBasis.NEXT, 0)
    # All of the other is read: behind the copy of its last record.
    assert (second.target_offset, second.basis) == (100, OffsetBasis.BEFORE)
    # The target is read from the time of the record before on, at 159, and not from its start.
    assert (MIRRORED[0], 159, 210) in target.reads


def test_exact_needs_no_sync(origin: FakeMigrationCluster, target: FakeMigrationCluster) -> None:
    del origin.logs[SYNCS]
    notes: list[str] = []
    first, second = translated(origin, target, exact=True, notes=notes).offsets
    assert [first.target_offset, second.target_offset] == [160, 100]
    assert first.sync is None
    assert notes == [
        "Offset syncs are not used: mm2-offset-syncs.new.internal on the origin, mm2-offset-syncs.old.internal on the "
        "target: no offset syncs are there. Grant READ on mm2-offset-syncs.* to this user. With another mirror use "
        "--exact, with a link --method linked."
    ]


def test_where_the_record_is_not_found_the_sync_is_used_and_the_reason_shown(
    origin: FakeMigrationCluster, target: FakeMigrationCluster
) -> None:
    # The target has set other timestamps.
    target.logs[MIRRORED[0]] = [log_record(r.offset, 5_000 + r.offset) for r in target.logs[MIRRORED[0]]]
    target.settings["old.orders"] = TopicRules(timestamp_type="LogAppendTime")
    notes: list[str] = []
    first, _ = translated(origin, target, exact=True, notes=notes).offsets
    assert (first.target_offset, first.basis, first.may_repeat) == (111, OffsetBasis.SYNC, 49)
    assert first.reason == "its next record was not found on the target; by the sync"
    assert "old.orders has message.timestamp.type LogAppendTime on the target" in notes[0]


def test_a_rewind_voids_the_syncs_before_it(origin: FakeMigrationCluster, target: FakeMigrationCluster) -> None:
    # The target was recreated: its offsets begin at 0, with record 160.
    write_syncs(origin, sync(0, 100, 110), sync(0, 160, 0), sync(1, 99, 99))
    first, second = translated(origin, target).offsets
    assert (first.target_offset, first.basis) == (None, None)
    assert first.reason.startswith("no offset sync is at or before it, or a rewind has voided them")
    assert second.target_offset == 100


@pytest.mark.parametrize(("key", "value"), [(b"\0\1t", bytes(16)), (sync(0, 1, 1)[0], None), (None, bytes(16))])
def test_foreign_bytes_among_the_syncs_are_refused(
    origin: FakeMigrationCluster, target: FakeMigrationCluster, key: bytes | None, value: bytes | None
) -> None:
    write_syncs(origin, sync(0, 100, 110), (key, value))
    with pytest.raises(HeadroomError, match=r"mm2-offset-syncs.new.internal: its record at offset 1 is not an"):
        translated(origin, target)
    # The records themselves are enough.
    assert translated(origin, target, exact=True).offsets[0].target_offset == 160


def test_syncs_are_read_from_the_target_if_mirrormaker_keeps_them_there(
    origin: FakeMigrationCluster, target: FakeMigrationCluster
) -> None:
    target.logs[TopicPartition("mm2-offset-syncs.old.internal", 0)] = origin.logs.pop(SYNCS)
    assert translated(origin, target).offsets[0].target_offset == 111


def test_syncs_of_another_mirror_are_not_used(origin: FakeMigrationCluster, target: FakeMigrationCluster) -> None:
    """They have offsets of another cluster."""
    another = TopicPartition("mm2-offset-syncs.another.internal", 0)
    origin.logs[another] = []
    assert translated(origin, target).offsets[0].target_offset == 111
    origin.logs[another] = origin.logs.pop(SYNCS)
    with pytest.raises(
        HeadroomError, match=r"of other mirrors, or other aliases, are: mm2-offset-syncs.another.internal"
    ):
        translated(origin, target)
    target.logs[another] = origin.logs.pop(another)
    with pytest.raises(HeadroomError, match=r"Set cluster.name and migration.origin.name to the aliases"):
        translated(origin, target)


def test_a_link_keeps_offsets(origin: FakeMigrationCluster, target: FakeMigrationCluster) -> None:
    target.fill("orders", 0, range(200))
    target.fill("orders", 1, range(1_000, 1_090))
    first, second = translated(origin, target, method=MigrationMethod.LINKED).offsets
    assert (first.target_name, first.target_offset, first.basis) == (ORDERS[0], 150, OffsetBasis.SAME)
    assert (second.target_offset, second.reason) == (None, "the link has copied only up to offset 90")


def test_a_target_of_a_link_that_is_ahead_has_diverged(
    origin: FakeMigrationCluster, target: FakeMigrationCluster
) -> None:
    target.fill("orders", 0, range(201))
    target.fill("orders", 1, range(1_000, 1_100))
    first, second = translated(origin, target, method=MigrationMethod.LINKED).offsets
    assert first.reason == "diverged: the target ends at 201, beyond the origin's 200"
    assert (first.target_offset, second.target_offset) == (None, 100)


def test_an_offset_beyond_the_log_end_is_of_no_record(
    origin: FakeMigrationCluster, target: FakeMigrationCluster
) -> None:
    origin.offsets["billing"][ORDERS[0]] = 201
    for exact in (False, True):
        first, _ = translated(origin, target, exact=exact).offsets
        assert first.target_offset is None
        assert first.reason == "it is beyond the origin's log end 200: the topic was recreated or truncated"


def test_a_sync_beyond_the_targets_log_end_is_of_another_topic(
    origin: FakeMigrationCluster, target: FakeMigrationCluster
) -> None:
    target.fill("old.orders", 0, range(50))
    first, _ = translated(origin, target).offsets
    assert first.target_offset is None
    assert first.reason == "it would be 111, beyond the target's log end 50: that topic was recreated or truncated"


def test_what_the_target_has_deleted_is_skipped_and_counted(
    origin: FakeMigrationCluster, target: FakeMigrationCluster
) -> None:
    target.starts[MIRRORED[0]] = 115
    first, _ = translated(origin, target).offsets
    # From 111 to 115.
    assert (first.target_offset, first.skipped) == (115, 4)


def test_partitions_without_a_committed_offset_are_named(
    origin: FakeMigrationCluster, target: FakeMigrationCluster
) -> None:
    del origin.offsets["billing"][ORDERS[1]]
    result = translated(origin, target)
    assert ([one.name for one in result.offsets], result.uncommitted) == ([ORDERS[0]], (ORDERS[1],))
    origin.offsets["billing"].clear()
    with pytest.raises(HeadroomError, match="group billing: has no committed offset of orders on the origin"):
        translated(origin, target, "orders")


def test_offsets_of_partitions_that_are_no_more_are_left_out(
    origin: FakeMigrationCluster, target: FakeMigrationCluster
) -> None:
    origin.offsets["billing"] |= {TopicPartition("orders", 2): 5, TopicPartition("gone", 0): 7}
    assert [one.name for one in translated(origin, target).offsets] == ORDERS


def test_a_mirror_that_goes_on_while_it_is_read_does_not_seem_truncated(
    origin: FakeMigrationCluster, target: FakeMigrationCluster, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The sync is of a record that was mirrored after the command began."""
    origin.offsets["billing"][ORDERS[0]] = 199
    target.ends[MIRRORED[0]] = 150
    write_syncs(origin, sync(0, 199, 209), sync(1, 99, 99))
    read = origin.reader

    def reader(*, committed: bool = False) -> Any:
        target.ends[MIRRORED[0]] = 210
        return read(committed=committed)

    monkeypatch.setattr(origin, "reader", reader)
    assert translated(origin, target).offsets[0].target_offset == 209


def test_a_partition_without_a_leader_has_no_offset(origin: FakeMigrationCluster, target: FakeMigrationCluster) -> None:
    target.leaderless = {MIRRORED[0]}
    origin.leaderless = {ORDERS[1]}
    for exact in (False, True):
        first, second = translated(origin, target, exact=exact).offsets
        assert "the log of the target is unknown" in first.reason
        assert "the log of the origin is unknown" in second.reason
        assert (first.target_offset, second.target_offset) == (None, None)


def test_groups_and_topics_that_are_not_there_are_errors(
    origin: FakeMigrationCluster, target: FakeMigrationCluster
) -> None:
    with pytest.raises(HeadroomError, match="topic payments: is not on the cluster old"):
        translated(origin, target, "payments")
    del target.logs[MIRRORED[1]]
    with pytest.raises(HeadroomError, match=r"has 2 partitions on the origin, and 1 on the target as old.orders"):
        translated(origin, target)
    target.logs.clear()
    with pytest.raises(HeadroomError, match=r"is not on the cluster new, neither as old.orders nor as orders"):
        translated(origin, target)
    origin.group_states.clear()
    with pytest.raises(HeadroomError, match="group billing: is not on the cluster old"):
        translated(origin, target)


def settings(tmp_path: Path) -> Settings:
    return Settings(cluster=ClusterSettings(name="new"), store=StoreSettings(path=str(tmp_path / "store")))


def test_offsets_are_committed_read_back_and_in_the_journal(
    origin: FakeMigrationCluster, target: FakeMigrationCluster, tmp_path: Path
) -> None:
    target.offsets = {"billing": {MIRRORED[1]: 7}}
    target.group_states = {"billing": False}
    result = translated(origin, target, exact=True)
    notes: list[str] = []
    commit_translated(settings(tmp_path), clusters_of(origin, target), result, notes.append)
    assert target.commits == [("billing", {MIRRORED[0]: 160, MIRRORED[1]: 100})]
    assert notes == []
    rows = ActionJournal(settings(tmp_path).store.path).rows("new")
    assert [(row.command, row.step, row.state, row.subject, row.before, row.after) for row in rows] == [
        ("migration offsets", "offset", "intended", "group billing at old.orders-0", None, "160"),
        ("migration offsets", "offset", "intended", "group billing at old.orders-1", "7", "100"),
        ("migration offsets", "offset", "done", "group billing at old.orders-0", None, "160"),
        ("migration offsets", "offset", "done", "group billing at old.orders-1", "7", "100"),
    ]


@pytest.mark.parametrize("state", [True, None])
def test_nothing_is_committed_for_a_group_that_is_or_may_be_active_there(
    origin: FakeMigrationCluster, target: FakeMigrationCluster, tmp_path: Path, state: bool | None
) -> None:
    target.group_states = {"billing": state}
    result = translated(origin, target)
    assert result.is_active is state
    with pytest.raises(HeadroomError, match="group billing on cluster new: has consumers, or may have"):
        commit_translated(settings(tmp_path), clusters_of(origin, target), result, print)
    assert target.commits == []


def test_nothing_is_committed_or_written_if_a_partition_has_no_offset(
    origin: FakeMigrationCluster, target: FakeMigrationCluster, tmp_path: Path
) -> None:
    write_syncs(origin, sync(0, 100, 110))
    result = translated(origin, target)
    for change in (
        lambda: commit_translated(settings(tmp_path), clusters_of(origin, target), result, print),
        lambda: write_offsets(tmp_path / "a.csv", result),
    ):
        with pytest.raises(HeadroomError, match=r"orders-1: no offset on the target \(no offset sync"):
            change()
    assert target.commits == []
    assert not (tmp_path / "a.csv").exists()


def test_a_refused_commit_is_failed_in_the_journal(
    origin: FakeMigrationCluster, target: FakeMigrationCluster, tmp_path: Path
) -> None:
    target.refuses = True
    result = translated(origin, target, "orders")
    with pytest.raises(HeadroomError, match="offsets were not committed"):
        commit_translated(settings(tmp_path), clusters_of(origin, target), result, print)
    rows = ActionJournal(settings(tmp_path).store.path).rows("new")
    assert [row.state for row in rows] == ["intended", "intended", "failed", "failed"]


def test_the_file_has_a_line_of_topic_partition_and_offset_each(
    origin: FakeMigrationCluster, target: FakeMigrationCluster, tmp_path: Path
) -> None:
    """Source: Kafka 4.0, ``CsvUtils.CsvRecordNoGroup``: topic, partition, offset, without a header."""
    result = translated(origin, target)
    assert offsets_csv(result) == "old.orders,0,111\nold.orders,1,100\n"
    file = tmp_path / "billing.csv"
    for _ in range(2):
        write_offsets(file, result)
    assert file.read_text() == offsets_csv(result)
    file.write_text("topic,partition,offset\n")
    with pytest.raises(HeadroomError, match="exists and is not a file of offsets"):
        write_offsets(file, result)


def kept_sync(offset: int, after: int | None, origin: int, target: int, **more: Any) -> Any:
    """A row of silver/migration_syncs of partition 0, as the clusters and topics are in these tests."""
    row = {
        **{"cluster": "new", "tick_ms": 1, "date": date(2026, 1, 1), "migration": "m", "written_ms": 1},
        **{"topic": "orders", "partition": 0, "sync_topic_id": f"id of {SYNCS.topic}", "sync_leader_epoch": 3},
        **{"sync_offset": offset, "after_offset": after, "origin_offset": origin, "target_offset": target},
        **{"origin_cluster_id": "id of old", "target_cluster_id": "id of new"},
        **{"origin_topic_id": "id of orders", "target_topic_id": "id of old.orders"},
    }
    return SimpleNamespace(**{**row, **more})


CHAIN = [kept_sync(20, None, 100, 110), kept_sync(30, 20, 140, 150), kept_sync(40, 30, 160, 170)]


@pytest.fixture
def compacted(origin: FakeMigrationCluster) -> FakeMigrationCluster:
    """The origin, whose topic of syncs has only the newest one of each partition."""
    key, value = sync(0, 160, 170)
    other = log_record(41, 41)._replace(key=sync(1, 99, 99)[0], value=sync(1, 99, 99)[1])
    origin.logs[SYNCS] = [log_record(40, 40)._replace(key=key, value=value), other]
    origin.leader_epochs[SYNCS] = 3
    return origin


def kept_in(folder: Path, rows: list[Any]) -> KeptSyncs:
    append_durably(str(folder / MIGRATION_SYNCS.path), rows, MIGRATION_SYNCS)
    return KeptSyncs(str(folder), "new")


def test_a_group_behind_the_first_sync_of_the_topic_continues_at_a_kept_one(
    compacted: FakeMigrationCluster, target: FakeMigrationCluster, tmp_path: Path
) -> None:
    first, second = translated(compacted, target).offsets
    assert (first.target_offset, second.target_offset) == (None, 100)
    notes: list[str] = []
    kept = kept_in(tmp_path, [*CHAIN, kept_sync(10, None, 120, 130)])
    first, second = translated(compacted, target, notes=notes, kept=kept).offsets
    # Offsets 141 to 149 may be read again.
    assert (first.target_offset, first.sync, first.may_repeat) == (151, (140, 150), 9)
    assert (second.target_offset, notes) == (100, [])
    compacted.offsets["billing"][ORDERS[0]] = 120
    assert translated(compacted, target, kept=kept).offsets[0].sync == (100, 110)
    # What is before a break does not count.
    compacted.offsets["billing"][ORDERS[0]] = 99
    assert translated(compacted, target, kept=kept).offsets[0].target_offset is None


@pytest.mark.parametrize(
    "rows",
    [
        # After the kept sync a log went back, and then a sync may have been missed.
        [*CHAIN[:2], kept_sync(40, None, 160, 170)],
        CHAIN[:2],
        [CHAIN[0], CHAIN[2]],
        # Another topic or cluster.
        *(
            [*CHAIN[:1], kept_sync(30, 20, 140, 150, **{name: "x"}), CHAIN[2]]
            for name in (
                *("cluster", "sync_topic_id", "origin_cluster_id", "target_cluster_id", "origin_topic_id"),
                "target_topic_id",
            )
        ),
        # The leader of epoch 2 was ahead when it was lost: its log ends at offset 25 of the present one.
        [*CHAIN[:1], kept_sync(30, 20, 140, 150, sync_leader_epoch=2), CHAIN[2]],
        [],
    ],
)
def test_a_kept_sync_that_may_be_void_is_not_used(
    compacted: FakeMigrationCluster, target: FakeMigrationCluster, tmp_path: Path, rows: list[Any]
) -> None:
    compacted.ended[SYNCS] = {2: 25}
    assert translated(compacted, target, kept=kept_in(tmp_path, rows)).offsets[0].target_offset is None


def test_kept_syncs_are_not_used_if_the_topic_gets_another_leader_meanwhile(
    compacted: FakeMigrationCluster, target: FakeMigrationCluster, tmp_path: Path
) -> None:
    notes: list[str] = []
    kept = kept_in(tmp_path, CHAIN)
    epoch_ends = compacted.epoch_ends

    def with_a_switch(topics: Any, epochs: Any) -> Any:
        found = epoch_ends(topics, epochs)
        compacted.leader_epochs[SYNCS] = 4
        return found

    compacted.epoch_ends = with_a_switch  # type: ignore[method-assign]
    assert translated(compacted, target, notes=notes, kept=kept).offsets[0].target_offset is None
    assert "got another leader, while it was read" in notes[0]


def test_without_a_store_or_with_one_that_cannot_be_read_the_topic_alone_counts(
    compacted: FakeMigrationCluster, target: FakeMigrationCluster, tmp_path: Path
) -> None:
    notes: list[str] = []
    assert (
        translated(compacted, target, notes=notes, kept=KeptSyncs(str(tmp_path), "new")).offsets[1].target_offset == 100
    )
    assert notes == []
    log = tmp_path / MIGRATION_SYNCS.path / "_delta_log"
    kept = kept_in(tmp_path, CHAIN)
    for commit in log.glob("*.json"):
        commit.write_text("{")
    first, second = translated(compacted, target, notes=notes, kept=kept).offsets
    assert (first.target_offset, second.target_offset) == (None, 100)
    assert notes[0].startswith("Kept offset syncs are not used: ")
