"""Inputs of the group fuzz: valid where nothing is replaced, and crashes are counted."""

from __future__ import annotations

import json

from hypothesis import strategies as st

from benchmarks.groups.fuzz.amounts.measure import measure_amounts
from benchmarks.groups.fuzz.amounts.targets import targets
from benchmarks.groups.fuzz.group import _read, _run_examples
from benchmarks.groups.fuzz.made import TICK_MS, FuzzedRecord, records, tick
from benchmarks.groups.fuzz.texts import TextReader, text_readers
from headroom.schemas.tick_messages import COLUMNAR, KINDS, REQUIRED, row_columns


def test_a_tick_has_a_message_of_every_kind_with_columns_of_its_contract() -> None:
    messages = tick("orders", TICK_MS)
    assert [message["kind"] for message in messages] == list(KINDS)
    for message in messages[:-1]:
        kind = message["kind"]
        rows = [message["columns"]] if kind in COLUMNAR else message["rows"]
        for row in rows:
            assert set(REQUIRED[kind]) <= row.keys() <= set(row_columns(kind))


def test_generated_ticks_have_a_record_of_every_kind_and_some_are_malformed() -> None:
    drawn: list[list[FuzzedRecord]] = []
    _run_examples(records(), 200, drawn.append)
    assert {len(tick) for tick in drawn} == {len(KINDS)}

    def valid(value: bytes) -> bool:
        try:
            return isinstance(json.loads(value), dict)
        except ValueError:
            return False

    assert {valid(record.value) for tick in drawn for record in tick} == {True, False}


def test_any_exception_but_a_documented_refusal_is_a_crash() -> None:
    def read(text: bytes) -> None:
        if text == b"1":
            raise ValueError("refused")
        if text == b"2":
            raise KeyError("crashed")

    progress: list[str] = []
    reading = TextReader("numbers", st.sampled_from([b"0", b"1", b"2"]), read, (ValueError,))
    count, failed = _read(reading, 30, progress.append)
    assert (count, failed) == (30, len(progress)) or 0 < failed == len(progress) < count
    assert all("KeyError" in line for line in progress)


def test_valid_inputs_crash_no_reader() -> None:
    with text_readers() as found:
        for reading in found:
            # The strategies shrink towards valid inputs. Here it suffices that nothing crashes.
            assert _read(reading, 5, print)[1] == 0


def test_every_option_and_setting_that_takes_an_amount_has_a_grammar_to_be_held_against() -> None:
    names = [target.name for target in targets()]
    assert len(names) == len(set(names)) > 100


def test_options_and_settings_read_texts_as_their_grammars_do() -> None:
    """With 100,000 texts it is the figure; these few show a rule that only one of the two sides knows."""
    progress: list[str] = []
    [figure] = measure_amounts(4_000, progress.append)
    assert (figure.value, figure.n) == (0, 4_000), progress
