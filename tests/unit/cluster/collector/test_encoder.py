"""Tick messages as bytes."""

from __future__ import annotations

import json

import pytest

from headroom.cluster.collector.rows.columns import Columns
from headroom.cluster.collector.rows.encoder import MAX_BYTES, MAX_COLUMNAR_ROWS, MAX_ROWS, encode_end, encode_rows


def test_alert_messages_go_first_and_seq_counts_from_zero() -> None:
    rows = {kind: [{"a": 1}] for kind in ("logs", "leaders", "moves", "brokers")}
    messages = encode_rows("prod", 5, rows)
    assert [m.kind for m in messages] == ["brokers", "moves", "leaders", "logs"]
    assert [m.for_alerts for m in messages] == [True, True, False, False]
    assert json.loads(messages[1].value) == {
        "version": 2,
        "cluster": "prod",
        "tick_ms": 5,
        "kind": "moves",
        "seq": 1,
        "row_count": 1,
        "rows": [{"a": 1}],
    }
    assert json.loads(messages[3].value)["columns"] == {"a": [1]}


def test_the_key_is_the_envelope() -> None:
    (message, end) = [*encode_rows("prod", 5, {"brokers": []}), encode_end("prod", 5, 1, {"lateness_ms": 3})]
    assert json.loads(message.key) == {
        "version": 2,
        "cluster": "prod",
        "tick_ms": 5,
        "kind": "brokers",
        "seq": 0,
        "row_count": 0,
    }
    assert json.loads(end.key) == {"version": 2, "cluster": "prod", "tick_ms": 5, "kind": "tick_end", "seq": 1}


def test_a_column_that_is_null_throughout_is_left_out() -> None:
    logs = [{"n": 1, "none": None, "some": None}, {"n": 2, "none": None, "some": 3}]
    assert json.loads(encode_rows("c", 1, {"logs": logs})[1].value)["columns"] == {"n": [1, 2], "some": [None, 3]}


def test_rows_kept_as_columns_give_the_messages_of_the_same_rows() -> None:
    rows = [{"n": n, "none": None, "list": (n, 2)} for n in range(MAX_COLUMNAR_ROWS + 2)]
    kept = Columns.concatenate(rows[0], ({name: [row[name]] for name in row} for row in rows))
    assert (len(kept), kept[3]) == (len(rows), rows[3])
    assert encode_rows("c", 1, {"logs": kept}) == encode_rows("c", 1, {"logs": rows})


def test_rows_with_rare_values_go_first_so_that_few_messages_have_their_columns() -> None:
    many = 3 * MAX_COLUMNAR_ROWS
    rows = [
        {"n": n, "half": n if n % 2 else None, "rare": n if n % 100 == 7 else None, "other": 1 if n == 4000 else None}
        for n in range(many)
    ]
    messages = [json.loads(m.value)["columns"] for m in encode_rows("c", 1, {"logs": rows})[1:]]
    assert [set(columns) for columns in messages] == [{"n", "half", "rare", "other"}, {"n", "half"}, {"n", "half"}]
    found = [
        dict(zip(columns, values, strict=True))
        for columns in messages
        for values in zip(*columns.values(), strict=True)
    ]
    first = [n for n in range(many) if n % 100 == 7 or n == 4000]
    assert [row["n"] for row in found] == [*first, *(n for n in range(many) if n not in first)]
    assert sorted((row["n"], row["half"], row.get("rare"), row.get("other")) for row in found) == [
        tuple(row.values()) for row in rows
    ]


def test_a_tick_always_has_brokers_and_no_other_empty_message() -> None:
    (message,) = encode_rows("prod", 5, {"moves": [], "brokers": []})
    assert json.loads(message.value)["rows"] == []


def test_rows_are_cut_by_number() -> None:
    rows = {"moves": [{"n": n} for n in range(2 * MAX_ROWS + 1)]}
    rows |= {"logs": [{"n": n} for n in range(2 * MAX_COLUMNAR_ROWS + 1)]}
    messages = [json.loads(m.value) for m in encode_rows("c", 1, rows)[1:]]
    most = [MAX_ROWS, MAX_ROWS, 1, MAX_COLUMNAR_ROWS, MAX_COLUMNAR_ROWS, 1]
    assert [message["row_count"] for message in messages] == most
    assert [row["n"] for message in messages[:3] for row in message["rows"]] == list(range(2 * MAX_ROWS + 1))
    assert [n for message in messages[3:] for n in message["columns"]["n"]] == list(range(2 * MAX_COLUMNAR_ROWS + 1))


@pytest.mark.parametrize("kind", ["moves", "logs"])
def test_rows_are_cut_by_size(kind: str) -> None:
    # Each row is a bit over 300,000 bytes: two fit, three do not.
    messages = encode_rows("c", 1, {kind: [{"text": "x" * 300_000}] * 5})[1:]
    assert [json.loads(m.value)["row_count"] for m in messages] == [2, 2, 1]
    assert max(len(m.value) for m in messages) < MAX_BYTES + 1000


@pytest.mark.parametrize("kind", ["moves", "logs"])
def test_rows_that_are_longer_or_shorter_than_those_before_are_cut_by_their_own_size(kind: str) -> None:
    # 40 rows of 100,000 bytes among many short ones, and one that fits nowhere.
    lengths = [10] * 450 + [100_000] * 40 + [10] * 3000 + [2 * MAX_BYTES] + [10] * 20
    rows = [{"n": n, "text": "x" * length} for n, length in enumerate(lengths)]
    bodies = [json.loads(m.value) for m in encode_rows("c", 1, {kind: rows})[1:]]
    numbers = [[row["n"] for row in body["rows"]] if "rows" in body else body["columns"]["n"] for body in bodies]
    assert [n for own in numbers for n in own] == list(range(len(rows)))
    assert [own for own in numbers if sum(lengths[n] for n in own) > MAX_BYTES] == [[3490]]
    # Short rows are many in a message again.
    assert len(bodies) < 40


def test_the_end_carries_the_envelope_too() -> None:
    end = encode_end("é", 5, 9, {"lateness_ms": 3, "messages": {"brokers": 1}})
    assert json.loads(end.value) == {
        "version": 2,
        "cluster": "é",
        "tick_ms": 5,
        "kind": "tick_end",
        "seq": 9,
        "lateness_ms": 3,
        "messages": {"brokers": 1},
    }
