"""The view of migrations: where partitions are, when they switch, who is left, and what could be lost."""

from __future__ import annotations

from collections.abc import Sequence

import pytest

from headroom.dashboard.site import Site
from headroom.dashboard.views.blocks import Block, Commands, DataTable, Paragraph, Tone
from headroom.dashboard.views.migration import migration
from headroom.planning.migration.progress.progress import GroupProgress, MigrationVerdict
from headroom.schemas.keys import Role
from headroom.schemas.tables import MIGRATION_PROGRESS
from headroom.streaming.transforms.migrations import migration_rows
from tests.unit.builders.dashboard_store import CLUSTER, TICK_MS, DashboardStore, at, values
from tests.unit.builders.migration_progress import doomed, progress, switched, unread
from tests.unit.builders.throttle_status import partition, status
from tests.unit.dashboard.markup import Markup


def view(store: DashboardStore, **query: object) -> Sequence[Block]:
    return migration(store.site(), at(**query))


def only_table(blocks: Sequence[Block]) -> DataTable:
    (table,) = [block for block in blocks if isinstance(block, DataTable)]
    return table


def paragraphs(blocks: Sequence[Block]) -> list[Paragraph]:
    return [block for block in blocks if isinstance(block, Paragraph)]


def commands(blocks: Sequence[Block]) -> list[str]:
    return [command for block in blocks if isinstance(block, Commands) for command in block.commands]


def test_without_a_migration_the_view_says_how_one_begins(store: DashboardStore) -> None:
    (only,) = view(store)
    assert isinstance(only, Paragraph)
    assert only.tone is Tone.QUIET
    assert only.text.startswith("No topic migrates to cluster prod. A migration begins with [migration.origin]")
    store.opened(MIGRATION_PROGRESS)
    assert view(store) == [only]


def test_each_partition_has_its_cluster_its_switch_its_readers_and_what_could_be_lost(store: DashboardStore) -> None:
    store.migrations(
        progress(0, groups=(doomed(), doomed("audit", left_offsets=9, lost_offsets=0)), at_risk_offsets=12),
        switched(1),
        unread(partition=2),
    )
    table = only_table(view(store))
    keys = ("name", "side", "end_offset", "switch_ms", "readers_left", "at_risk_offsets", "overtaken_offsets")
    assert values(sorted(table.rows, key=lambda row: row["name"]), *keys) == [
        ("orders-0", "origin", 700_000, TICK_MS + 300_000, 2, 12, 260_000),
        ("orders-1", "target", 700_000, None, 0, 0, 0),
        ("orders-2", None, 700_000, None, None, None, None),
    ]
    assert table.note == "Read at 2027-01-15 08:00:00 UTC."
    assert table.rows[0]["reader_names"] == "billing, audit"


def test_groups_that_could_not_be_listed_are_no_groups_that_have_read_all(store: DashboardStore) -> None:
    placeless = GroupProgress("audit")
    store.migrations(
        progress(0, groups=None),
        progress(1, groups=(placeless,)),
        progress(2, groups=(doomed(), placeless)),
        progress(3, groups=()),
    )
    blocks = view(store)
    rows = sorted(only_table(blocks).rows, key=lambda row: row["name"])
    assert values(rows, "readers_left", "reader_names", "overtaken_offsets") == [
        (None, None, None),
        (None, "audit (place unknown)", None),
        (1, "billing, audit (place unknown)", 260_000),
        (0, None, 0),
    ]
    text = paragraphs(blocks)[0].text
    assert "; 1 group has yet to read the origin (unknown of 3 partitions); " in text
    assert text.endswith("and retention 260,000 (unknown of 2 partitions).")


def test_a_loss_that_is_unknown_is_not_said_to_be_none(store: DashboardStore) -> None:
    store.migrations(progress(0, lost_offsets=5), unread(partition=1), unread(partition=2))
    (only,) = paragraphs(view(store))
    assert "; 5 offsets are lost (unknown of 2 partitions), a leader switch now would lose 0 (" in only.text


def test_rows_of_before_the_number_of_groups_are_known_only_by_their_groups(store: DashboardStore) -> None:
    for table, ticks in migration_rows({(CLUSTER, TICK_MS): [progress(0), progress(1, groups=(doomed(),))]}).items():
        written = [row for own in ticks.values() for row in own]
        store.rows(table, *({name: row[name] for name in row if name != "group_count"} for row in written))
    rows = sorted(only_table(view(store)).rows, key=lambda row: row["name"])
    assert values(rows, "readers_left") == [(None,), (1,)]


def test_the_worst_partitions_come_first_with_their_reason(store: DashboardStore) -> None:
    store.migrations(
        progress(0),
        progress(1, verdict=MigrationVerdict.LATE, reason="E is late."),
        progress(2, verdict=MigrationVerdict.LOST, lost_offsets=5, reason="5 are lost."),
    )
    rows = only_table(view(store)).rows
    assert values(rows, "verdict", "reason")[:2] == [("lost", "5 are lost."), ("late", "E is late.")]


def test_a_sentence_sums_up_each_migration(store: DashboardStore) -> None:
    store.migrations(
        progress(0, groups=(doomed(),), at_risk_offsets=120),
        progress(1, switch_eta_s=None, at_risk_offsets=None),
        switched(2),
        switched(0, topic="u", migration="n"),
    )
    first, second = paragraphs(view(store))
    assert first.text == (
        "Migration m: 1 of 3 partitions have switched; the last of the others switches at 08:05:00 UTC, of 1 it is "
        "unknown or never; 1 group has yet to read the origin; 0 offsets are lost, a leader switch now would lose "
        "120 (unknown of 1 partition), and retention 260,000."
    )
    assert second.text.startswith("Migration n: 1 of 1 partitions have switched; no group is known to be left; ")
    assert (first.tone, second.tone) == (Tone.GOOD, Tone.GOOD)


@pytest.mark.parametrize(
    ("verdict", "tone"),
    [
        (MigrationVerdict.LOST, Tone.CRITICAL),
        (MigrationVerdict.LATE, Tone.WARNING),
        (MigrationVerdict.SHIELDED, Tone.UNKNOWN),
        (MigrationVerdict.WAITING, Tone.QUIET),
    ],
)
def test_the_sentence_has_the_tone_of_the_worst_partition(
    store: DashboardStore, verdict: MigrationVerdict, tone: Tone
) -> None:
    store.migrations(progress(0), progress(1, verdict=verdict))
    assert [paragraph.tone for paragraph in paragraphs(view(store))] == [tone]


def test_topic_and_verdict_choose_the_rows(store: DashboardStore) -> None:
    store.migrations(progress(0), progress(0, topic="users"), unread(partition=1))
    assert values(only_table(view(store, topic="user")).rows, "name") == [("users-0",)]
    table = only_table(view(store, state="shielded"))
    assert values(table.rows, "name") == [("orders-1",)]
    assert table.note.endswith("1 of 3 partitions match.")


def test_the_state_is_that_of_the_moment(store: DashboardStore) -> None:
    store.migrations(progress(0), tick_ms=TICK_MS - 60_000)
    store.migrations(switched(0))
    assert values(only_table(view(store, at=TICK_MS - 1)).rows, "side") == [("origin",)]
    assert values(only_table(view(store)).rows, "side") == [("target",)]


@pytest.mark.parametrize("agreed", ["migrated", "aged"])
def test_an_origin_that_has_come_back_shorter_is_not_written_to(store: DashboardStore, agreed: str) -> None:
    store.migrations(switched(0, status=agreed, left_offsets=10, switch_eta_s=None))
    assert values(only_table(view(store)).rows, "side") == [("target",)]


def test_a_migration_that_is_read_no_more_is_said_to_be(store: DashboardStore) -> None:
    store.migrations(progress(0), tick_ms=TICK_MS - 61_000)
    store.throttles(status(1, Role.LEADER, 12, 10, partition()))
    blocks = view(store)
    assert paragraphs(blocks)[0].text.startswith("Nothing was read of migrations since 2027-01-15 07:58:59 UTC")
    assert commands(blocks) == []


# The watch has ended, and its last tick has the throttles too.
ENDED = [(60_000, [Tone.CRITICAL, Tone.GOOD]), (60_001, [Tone.UNKNOWN] * 3)]


@pytest.mark.parametrize(("age_ms", "tones"), ENDED)
def test_a_migration_that_is_older_than_the_moment_has_no_state(
    store: DashboardStore, age_ms: int, tones: list[Tone]
) -> None:
    store.migrations(progress(0, verdict=MigrationVerdict.LOST), progress(0, topic="u", migration="n"))
    store.throttles(status(1, Role.LEADER, 12, 10, partition()))
    site, past = store.site(TICK_MS + age_ms), store.site(TICK_MS + 9_000_000)
    for blocks in (migration(site, at()), migration(past, at(at=TICK_MS + age_ms))):
        assert [paragraph.tone for paragraph in paragraphs(blocks)] == tones
        (verdict,) = [column for column in only_table(blocks).columns if column.key == "verdict"]
        assert [verdict.tone(row["verdict"]) for row in only_table(blocks).rows] == tones[-2:]
        assert values(only_table(blocks).rows, "verdict") == [("lost",), ("on_plan",)]
    assert bool(commands(migration(site, at()))) is (tones[0] is Tone.CRITICAL)
    if tones[0] is Tone.UNKNOWN:
        assert paragraphs(migration(site, at()))[0].text == (
            "Migrations were last read 1 min before the moment that is shown, at 2027-01-15 08:00:00 UTC. What follows "
            "is the state of then."
        )


def test_a_migration_is_that_of_now_for_three_ticks_of_its_cluster(store: DashboardStore) -> None:
    """Ticks are two minutes apart, and migrations come a tick after the throttles."""
    store.migrations(progress(0), tick_ms=TICK_MS - 120_000)
    store.throttles(status(1, Role.LEADER, 12, 10, partition()))
    site = Site([store.watched(CLUSTER, 120.0)], lambda: TICK_MS + 240_000)
    blocks = migration(site, at())
    assert [paragraph.tone for paragraph in paragraphs(blocks)] == [Tone.GOOD]
    assert commands(blocks)


def test_its_commands_go_on_shield_and_withdraw_but_delete_nothing(store: DashboardStore) -> None:
    store.migrations(progress(0, status="planned"), switched(1))
    assert commands(view(store)) == [
        "headroom migration run orders --name m --method routed --unless-running --config orders.toml --execute",
        "headroom migration shield --name m --config orders.toml --execute",
        "headroom migration cancel --name m --config orders.toml --execute",
    ]
    assert commands(view(store, at=TICK_MS)) == []


def test_what_the_command_refuses_to_withdraw_has_no_button(store: DashboardStore) -> None:
    """Its end offset is open again: a client may be beyond the one before."""
    store.migrations(progress(0, status="planned", reopened_end=900_000))
    assert not any("migration cancel" in command for command in commands(view(store)))


def test_a_shielded_migration_can_be_read_again(store: DashboardStore) -> None:
    store.migrations(unread())
    assert "headroom migration shield --name m --off --config orders.toml --execute" in commands(view(store))


def test_the_page_has_the_view_with_a_table_that_can_be_read_aloud(store: DashboardStore) -> None:
    store.migrations(progress(0, groups=(doomed(),)), unread(partition=1))
    page = Markup(store.client().get("/migration").text)
    assert "orders-0" in page.texts("td") + page.texts("th")
    assert "overtaken" in page.texts("option")
    answer = store.client().get(f"/api/v1/migration?cluster={CLUSTER}").json()
    assert "migration" in answer
