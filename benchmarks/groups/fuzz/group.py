"""Group ``fuzz``: does any input from outside crash its reader?

`fuzz_messages` is the number of messages and texts that were read. `fuzz_crashes` is the number of inputs for which a
reader raised anything but its documented refusal.

**Tick messages** are two thirds of the inputs: messages of every kind, eight per tick. In valid messages up to three
values, at any depth, are replaced (edges of 16 to 64 bits and one beyond, fractions, texts, arrays, objects, null). In
some messages bytes are replaced. Whole ticks pass through the alert path (verdicts, rules, alert lifecycle) and gold.
All records pass through silver, quarantine and leader imbalance. If a micro-batch fails, its ticks are read one by one,
to count those that fail. `fuzz_ticks_judged` is the number of ticks that reached the alert rules.

**Texts** are one third: answers of agents (Jolokia, jmx_exporter, HTTP answers with broken headers, bodies and
lengths), of receivers (Slack and others), throttled replica lists, configuration files and reassignment files.

hypothesis generates all inputs, the same in every run. Their number is 120,000 (`--messages`).

**Amounts.** `amounts_accepted_wrong` is the number of texts that an option of a command, a setting in the
environment, or the reader of a text of Kafka accepts although they are no quantity of its kind, refuses although they
are one, or reads as another value. 100,000 texts (`--amounts`) are divided among all of them. They are valid
ones, and what people, locales and copies make of them: commas and points, digits of other scripts, spaces, signs,
exponents, units in every case, words after. What they mean is decided by a grammar that is written by hand from
docs/configuration.md, character by character, and shares nothing with the parser.

`--parts` chooses some of the parts `crashes` and `amounts`.
"""

from __future__ import annotations

import logging
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from benchmarks.fixtures.bench_cluster import OnProgress
from benchmarks.groups.fuzz.amounts.measure import measure_amounts
from benchmarks.groups.fuzz.made import FuzzedRecord, records
from benchmarks.groups.fuzz.texts import TextReader, text_readers
from benchmarks.groups.fuzz.ticks import Reader
from benchmarks.options.fields import AT_LEAST_ONE, option, parts_option
from benchmarks.results import Figure
from headroom.cli.common.parameters import WholeNumber
from headroom.schemas.config import SparkSettings
from headroom.streaming.session import build_session

_TICKS_RATIO = 2 / 3
_MESSAGES_PER_TICK = 8
_TICKS_PER_BATCH = 250
_SHOWN_CHARS = 300


@dataclass(frozen=True)
class FuzzOptions:
    """Options of the group ``fuzz``."""

    parts: tuple[str, ...] = parts_option("crashes", "amounts")
    # Enough for each reader of texts to get one.
    messages: int = option(120_000, WholeNumber(1000), "Messages and texts of the part crashes.")
    amounts: int = option(100_000, AT_LEAST_ONE, "Texts of the part amounts.")


def measure(on_progress: OnProgress, options: FuzzOptions) -> list[Figure]:
    """Return the figures. Every crash is reported with its input."""
    # Refused ticks and answers are logged one by one, and would hide the progress.
    logging.disable(logging.ERROR)
    try:
        crashes = _crash_figures(options.messages, on_progress) if "crashes" in options.parts else []
        amounts = measure_amounts(options.amounts, on_progress) if "amounts" in options.parts else []
        return crashes + amounts
    finally:
        logging.disable(logging.NOTSET)


def _crash_figures(count: int, on_progress: OnProgress) -> list[Figure]:
    ticks, evaluated, crashed = _ticks(round(count * _TICKS_RATIO / _MESSAGES_PER_TICK), on_progress)
    texts, failed = _texts(count - ticks * _MESSAGES_PER_TICK, on_progress)
    total = ticks * _MESSAGES_PER_TICK + texts
    return [
        Figure("fuzz_messages", total, "messages", total),
        Figure("fuzz_crashes", crashed + failed, "messages", total),
        Figure("fuzz_ticks_judged", evaluated, "ticks", ticks),
    ]


def _run_examples(strategy: st.SearchStrategy[Any], count: int, use: Callable[[Any], None]) -> None:
    """Call ``use`` with a number of generated examples, the same in every run."""

    @settings(
        max_examples=count, derandomize=True, deadline=None, database=None, suppress_health_check=list(HealthCheck)
    )
    @given(strategy)
    def each(example: Any) -> None:
        use(example)

    each()


def _ticks(count: int, on_progress: OnProgress) -> tuple[int, int, int]:
    """Return the number of ticks that were read, were evaluated, and crashed."""
    spark = build_session(SparkSettings(master="local[2]", driver_memory="2g"), "fuzz")
    reader, waiting = Reader(spark), list[list[FuzzedRecord]]()
    read = crashed = 0

    def flush() -> None:
        nonlocal read, crashed
        crashed += _crashes(reader, waiting, on_progress)
        read += len(waiting)
        waiting.clear()
        on_progress(f"{read} ticks read, {reader.evaluated} evaluated, {crashed} crashed")

    def use(tick: list[FuzzedRecord]) -> None:
        waiting.append(tick)
        if len(waiting) == _TICKS_PER_BATCH:
            flush()

    try:
        _run_examples(records(), count, use)
        if waiting:
            flush()
    finally:
        spark.stop()
    return read, reader.evaluated, crashed


def _crashes(reader: Reader, ticks: list[list[FuzzedRecord]], on_progress: OnProgress) -> int:
    """Return the number of ticks that cannot be read. A failing batch is halved until single ticks fail."""
    try:
        reader.read(ticks)
    except Exception as error:
        if len(ticks) > 1:
            # Its halves may succeed, and then nothing else says what happened.
            on_progress(f"{len(ticks)} ticks at once, {type(error).__name__}: {str(error)[:_SHOWN_CHARS]}")
            half = len(ticks) // 2
            # Halves may succeed alone: a failure of the whole batch counts once.
            return max(1, _crashes(reader, ticks[:half], on_progress) + _crashes(reader, ticks[half:], on_progress))
        on_progress(f"crash, {type(error).__name__}: {str(error)[:_SHOWN_CHARS]}")
        for record in ticks[0]:
            on_progress(f"    {record.value[:_SHOWN_CHARS]!r}")
        return 1
    return 0


def _texts(count: int, on_progress: OnProgress) -> tuple[int, int]:
    """Return the number of texts that were read, and of those that crashed."""
    read = crashed = 0
    with text_readers() as readers:
        for reading in readers:
            texts, failed = _read(reading, count // len(readers), on_progress)
            read, crashed = read + texts, crashed + failed
            on_progress(f"{reading.name}: {texts} read, {failed} crashed")
    return read, crashed


def _read(reading: TextReader, examples: int, on_progress: OnProgress) -> tuple[int, int]:
    count = failed = 0

    def use(text: bytes) -> None:
        nonlocal count, failed
        count += 1
        try:
            reading.read(text)
        except reading.refusals:
            pass
        except Exception as error:
            failed += 1
            error_text = str(error)[:_SHOWN_CHARS]
            on_progress(f"crash of {reading.name}, {type(error).__name__}: {error_text}: {text[:_SHOWN_CHARS]!r}")

    _run_examples(reading.texts, examples, use)
    return count, failed
