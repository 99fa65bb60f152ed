"""Records of the agreement topic: read as they were written, and refused if they are another's."""

from __future__ import annotations

import json
from dataclasses import replace
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from headroom.schemas.errors import HeadroomError
from headroom.schemas.keys import TopicPartition
from headroom.schemas.migrations import (
    METHODS,
    STATUSES,
    AcknowledgedEnd,
    PartitionAgreement,
    Removal,
    RouterReport,
    read_migration_record,
)
from tests.unit.builders.agreements import agreement

OFFSETS = st.none() | st.integers(0, 2**62)
AGREEMENTS = st.builds(
    PartitionAgreement,
    migration=st.text(),
    number=st.integers(0, 2**31),
    origin_cluster_id=st.text(),
    target_cluster_id=st.text(),
    topic=st.text(),
    partition=st.integers(0, 10**5),
    origin_topic_id=st.none() | st.text(),
    target_topic_id=st.none() | st.text(),
    end_offset=OFFSETS,
    target_base_offset=OFFSETS,
    status=st.sampled_from(STATUSES),
    ignore_origin=st.booleans(),
    origin_end=OFFSETS,
    method=st.sampled_from(METHODS),
    routers=st.lists(st.text()).map(tuple),
    shielded=st.booleans(),
    origin_position=OFFSETS,
    origin_offsets_per_s=st.none() | st.floats(0, allow_nan=False, allow_infinity=False),
    origin_read_ms=OFFSETS,
    sealed_ms=OFFSETS,
    origin_closed=st.booleans(),
)
REPORT = RouterReport(
    "writer", "a1", "producer", "all", "kafka-python 3.0.12", {"move": 2}, (AcknowledgedEnd("orders", 0, 4, 9),)
)


@given(AGREEMENTS)
def test_an_agreement_is_read_as_it_was_written(written: PartitionAgreement) -> None:
    assert read_migration_record(0, written.key(), written.value()) == written


def test_a_report_is_read_as_it_was_written() -> None:
    assert read_migration_record(0, REPORT.key(), REPORT.value()) == REPORT


def test_a_report_names_the_topic_of_what_was_acknowledged_and_what_it_has_dropped() -> None:
    ends = (
        AcknowledgedEnd("orders", 0, 4, 9, origin_topic_id="i"),
        AcknowledgedEnd("orders", 1, 4, 9, origin_cluster_id="old"),
    )
    written = replace(REPORT, acknowledged=ends, incomplete=("move",))
    assert read_migration_record(0, written.key(), written.value()) == written


def test_a_report_of_an_earlier_library_names_no_topic_and_has_dropped_nothing() -> None:
    values = json.loads(REPORT.value())
    del values["incomplete"]
    assert values["acknowledged"] == [{"topic": "orders", "partition": 0, "leader_epoch": 4, "end": 9}]
    assert read_migration_record(0, REPORT.key(), json.dumps(values).encode()) == REPORT


@pytest.mark.parametrize("name", ["origin_cluster_id", "origin_topic_id"])
def test_an_id_that_is_no_text_is_an_error(name: str) -> None:
    values = json.loads(REPORT.value())
    values["acknowledged"][0][name] = 5
    with pytest.raises(HeadroomError, match="not one of Headroom's"):
        read_migration_record(7, REPORT.key(), json.dumps(values).encode())


def test_a_record_without_a_value_removes_what_its_key_names() -> None:
    assert read_migration_record(0, agreement().key(), None) == Removal(("old", TopicPartition("orders", 0)))
    assert read_migration_record(0, REPORT.key(), None) == Removal("writer")


def test_fields_of_later_versions_of_the_form_are_ignored() -> None:
    value = json.dumps({**json.loads(agreement().value()), "later": 1}).encode()
    assert read_migration_record(0, agreement().key(), value) == agreement()


def test_a_record_of_an_earlier_version_has_no_shield_no_reading_and_no_seal() -> None:
    values = json.loads(agreement().value())
    for name in ("shielded", "origin_position", "origin_offsets_per_s", "origin_read_ms", "sealed_ms"):
        del values[name]
    assert read_migration_record(0, agreement().key(), json.dumps(values).encode()) == agreement()


@pytest.mark.parametrize(
    ("key", "value"),
    [
        (None, b"{}"),
        (b"", b"{}"),
        (b"\xff", b"{}"),
        (b"[]", b"{}"),
        (b'{"kind":"other"}', b"{}"),
        (b'{"kind":"router"}', None),
        (b'{"kind":"partition","origin_cluster_id":"old","topic":"orders","partition":-1}', None),
        (agreement().key(), b""),
        (agreement().key(), b"[" * 10**5),
        (agreement().key(), b"{}"),
        (agreement().key(), b'{"version":true}'),
        (agreement().key(), b'{"version":1}'),
        (agreement().key(), agreement(partition=1).value()),
        (REPORT.key(), agreement().value()),
    ],
)
def test_a_foreign_record_is_an_error_that_names_it(key: bytes | None, value: bytes | None) -> None:
    with pytest.raises(HeadroomError, match=r"headroom\.migrations offset 7: the record is not one of Headroom's"):
        read_migration_record(7, key, value)


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("number", 1.5),
        ("number", None),
        ("partition", True),
        ("end_offset", -1),
        ("end_offset", "10"),
        ("target_base_offset", 0.5),
        ("status", "paused"),
        ("method", None),
        ("ignore_origin", 0),
        ("shielded", None),
        ("origin_dropped", None),
        ("origin_position", -1),
        ("origin_offsets_per_s", float("nan")),
        ("origin_offsets_per_s", "1"),
        ("origin_read_ms", 0.5),
        ("sealed_ms", -1),
        ("routers", [1]),
        ("topic", 1),
    ],
)
def test_a_value_of_another_kind_is_an_error(name: str, value: Any) -> None:
    values = {**json.loads(agreement().value()), name: value}
    with pytest.raises(HeadroomError, match="not one of Headroom's"):
        read_migration_record(7, agreement().key(), json.dumps(values).encode())


def test_a_newer_record_is_an_error_that_names_both_versions() -> None:
    value = json.dumps({**json.loads(agreement().value()), "version": 4}).encode()
    with pytest.raises(HeadroomError, match="has version 4, and this Headroom reads up to version 3"):
        read_migration_record(7, agreement().key(), value)


def test_only_a_closed_origin_needs_a_reader_that_knows_it() -> None:
    """A router of before would agree to it, and go on writing to the origin: with version 2 it stops."""
    written = (agreement(), agreement(status="migrating", origin_closed=True), REPORT)
    assert [json.loads(one.value())["version"] for one in written] == [1, 2, 1]
    for one in written:
        assert read_migration_record(0, one.key(), one.value()) == one
