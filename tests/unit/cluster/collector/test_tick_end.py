"""The end of a tick has the columns that its readers know."""

from __future__ import annotations

import re
from types import SimpleNamespace
from typing import Any

import pytest

from headroom.cluster.collector.other_collectors import CollectorId
from headroom.cluster.collector.publisher import Publisher, SentMessages, TickTiming, ranges_of, tick_end
from headroom.cluster.collector.rows.encoder import Message
from headroom.schemas.config import Settings
from headroom.schemas.tick_messages import TICK_END


def test_the_end_of_a_tick_has_every_column_of_its_message() -> None:
    flat = TICK_END
    while "<" in flat:
        flat = re.sub(r"<[^<>]*>", "", flat)
    columns = [column.split(" ")[0] for column in flat.split(", ")]
    end = tick_end(
        SentMessages({"brokers": 1}, 7, 1, {2: (5, 6), 1: (3, 9)}),
        TickTiming(1, 2, interval_ms=1000, rate_window_ms=10_000),
        metadata_age_ms=20_000,
        collector=CollectorId(5, "host", 7),
    )
    assert sorted(end) == sorted(columns)
    assert end["metadata_age_ms"] == 20_000
    assert (end["first_offset"], end["lane_messages"], end["messages"]) == (7, 1, {"brokers": 1})
    assert end["ranges"] == [
        {"partition": 1, "first_offset": 3, "end_offset": 9},
        {"partition": 2, "first_offset": 5, "end_offset": 6},
    ]


def test_that_no_migration_is_agreed_about_is_a_count_of_0() -> None:
    sent, timing = SentMessages({"brokers": 1}, 7, 1, {}), TickTiming(1, 2, interval_ms=1000, rate_window_ms=10_000)
    assert tick_end(sent, timing, is_none_migrating=True)["messages"] == {"brokers": 1, "migrations": 0}
    # Not read, or read and sent.
    assert tick_end(sent, timing)["messages"] == {"brokers": 1}


def test_a_tick_lies_in_each_partition_from_its_first_record_to_its_last() -> None:
    # Of another collector's tick there may be records in between.
    records = [SimpleNamespace(partition=p, offset=o) for p, o in ((1, 4), (2, 8), (1, 9), (1, 5))]
    assert ranges_of(records) == {1: (4, 10), 2: (8, 9)}
    assert ranges_of([]) == {}


def test_a_tick_begins_at_the_least_offset_of_its_alert_messages(monkeypatch: pytest.MonkeyPatch) -> None:
    publisher = Publisher(Settings(), 1.0)
    # By the order in which they were sent; the first was sent again behind the second. The third is of the history.
    row_index = iter([(0, 12), (0, 11), (1, 3)])

    def sent(_message: Message) -> Any:
        partition, offset = next(row_index)
        return SimpleNamespace(get=lambda timeout: SimpleNamespace(partition=partition, offset=offset))

    monkeypatch.setattr(publisher, "_send", sent)
    monkeypatch.setattr(publisher, "_follow_topic", lambda: None)
    sent = publisher.send([Message(kind, b"", b"") for kind in ("brokers", "moves", "logs")])
    assert (sent.first_offset, sent.lane_messages, sent.ranges) == (11, 2, {1: (3, 4)})


def test_a_reader_that_does_not_know_migrations_finds_the_tick_complete(monkeypatch: pytest.MonkeyPatch) -> None:
    publisher = Publisher(Settings(), 1.0)
    offsets = iter(range(11, 20))

    def sent(_message: Message) -> Any:
        offset = next(offsets)
        return SimpleNamespace(get=lambda timeout: SimpleNamespace(partition=0, offset=offset))

    monkeypatch.setattr(publisher, "_send", sent)
    monkeypatch.setattr(publisher, "_follow_topic", lambda: None)
    acknowledged = publisher.send([Message(kind, b"", b"") for kind in ("brokers", "moves", "migrations")])
    # It counts messages of brokers and moves only, and compares their number with this one.
    assert (acknowledged.first_offset, acknowledged.lane_messages) == (11, 2)
    assert acknowledged.messages == {"brokers": 1, "moves": 1, "migrations": 1}
