"""Group ``fuzz``: does anything that comes from outside crash what reads it?

`fuzz_messages` is how many messages and texts were read, `fuzz_crashes` how many of these made their reader raise
anything but the refusal that it documents.

Two thirds are tick messages of every kind, eight to a tick: valid ones in which up to three values, at any depth, are
replaced by others (the edges of 16 to 64 bits and one beyond, fractions, texts, arrays, objects, null), and some in
which bytes are replaced. Whole ticks go the way of the alert path (verdicts, rules, the life of alerts) and of gold;
all records the way of silver, quarantine and balance. A micro-batch that fails is read again tick by tick, to count
those that fail. `fuzz_ticks_judged` says how many came as far as the rules.

One third are what agents answer (Jolokia, jmx_exporter, whole HTTP answers with broken heads, bodies and lengths), what
receivers answer (Slack, and others), throttled replica lists, configuration files and reassignment files.

All of it is drawn by hypothesis, the same in every run. BENCH_FUZZ sets how many (default 120,000).
"""

from __future__ import annotations

import logging
import os
from collections.abc import Callable
from typing import Any

from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from benchmarks.fixtures.bench_cluster import Say
from benchmarks.groups.fuzz.made import Record, records
from benchmarks.groups.fuzz.texts import Reading, readings
from benchmarks.groups.fuzz.ticks import Reader
from benchmarks.results import Figure
from schemas.config import SparkSettings
from streaming.session import build_session

_MANY = 120_000
_TICKS_SHARE = 2 / 3
_MESSAGES_OF_TICK = 8
_TICKS_AT_ONCE = 250
_SHOWN = 300


def measure(say: Say) -> list[Figure]:
    """Return the figures; every crash is printed."""
    many = int(os.environ.get("BENCH_FUZZ", _MANY))
    # Ticks that give no verdict, and answers that are refused, are logged one by one.
    logging.disable(logging.ERROR)
    try:
        ticks, judged, crashed = _ticks(round(many * _TICKS_SHARE / _MESSAGES_OF_TICK), say)
        texts, failed = _texts(many - ticks * _MESSAGES_OF_TICK, say)
    finally:
        logging.disable(logging.NOTSET)
    total = ticks * _MESSAGES_OF_TICK + texts
    return [
        Figure("fuzz_messages", total, "messages", total),
        Figure("fuzz_crashes", crashed + failed, "messages", total),
        Figure("fuzz_ticks_judged", judged, "ticks", ticks),
    ]


def _drawn(strategy: st.SearchStrategy[Any], many: int, take: Callable[[Any], None]) -> None:
    """Hand over so many examples, the same in every run."""

    @settings(
        max_examples=many, derandomize=True, deadline=None, database=None, suppress_health_check=list(HealthCheck)
    )
    @given(strategy)
    def each(example: Any) -> None:
        take(example)

    each()


def _ticks(many: int, say: Say) -> tuple[int, int, int]:
    """Return how many ticks were read, how many were judged, and how many crashed."""
    spark = build_session(SparkSettings(master="local[2]", driver_memory="2g"), "fuzz")
    reader, waiting = Reader(spark), list[list[Record]]()
    read = crashed = 0

    def flush() -> None:
        nonlocal read, crashed
        crashed += _crashes(reader, waiting, say)
        read += len(waiting)
        waiting.clear()
        say(f"{read} ticks read, {reader.judged} judged, {crashed} crashed")

    def take(tick: list[Record]) -> None:
        waiting.append(tick)
        if len(waiting) == _TICKS_AT_ONCE:
            flush()

    try:
        _drawn(records(), many, take)
        if waiting:
            flush()
    finally:
        spark.stop()
    return read, reader.judged, crashed


def _crashes(reader: Reader, ticks: list[list[Record]], say: Say) -> int:
    """Return how many of some ticks cannot be read, each by itself where all together cannot be."""
    try:
        reader.read(ticks)
    except Exception as error:
        if len(ticks) > 1:
            half = len(ticks) // 2
            # What only fails together has failed once.
            return max(1, _crashes(reader, ticks[:half], say) + _crashes(reader, ticks[half:], say))
        say(f"crash, {type(error).__name__}: {str(error)[:_SHOWN]}")
        for record in ticks[0]:
            say(f"    {record.value[:_SHOWN]!r}")
        return 1
    return 0


def _texts(many: int, say: Say) -> tuple[int, int]:
    """Return how many texts were read, and how many crashed."""
    read = crashed = 0
    with readings() as found:
        for reading in found:
            count, failed = _read(reading, many // len(found), say)
            read, crashed = read + count, crashed + failed
            say(f"{reading.name}: {count} read, {failed} crashed")
    return read, crashed


def _read(reading: Reading, many: int, say: Say) -> tuple[int, int]:
    count = failed = 0

    def take(text: bytes) -> None:
        nonlocal count, failed
        count += 1
        try:
            reading.read(text)
        except reading.refusals:
            pass
        except Exception as error:
            failed += 1
            say(f"crash of {reading.name}, {type(error).__name__}: {str(error)[:_SHOWN]}: {text[:_SHOWN]!r}")

    _drawn(reading.texts, many, take)
    return count, failed
