"""Batches of a plan for the output: as text."""

from __future__ import annotations

from collections.abc import Iterator

from headroom.cli.common.output import echo, print_first_rows, print_table
from headroom.operations.plans.result import PlanResult
from headroom.planning.reassignments.batches.batch import ReassignmentBatch
from headroom.planning.reassignments.batches.batching import BatchedPlan, BatchOption
from headroom.schemas.keys import Role
from headroom.schemas.text.amounts import UNKNOWN, duration_text, rate_text, size_text

MAX_ROWS = 20
_OPTIONS = ("batches", "needed throttle", "throttle", "time in all", "longest", "windows", "keeps the limits")
_BATCHES = ("batch", "partitions", "to copy", "required", "throttle", "time")


def print_batches(result: PlanResult) -> None:
    """Print the batches, and what fewer and more of them would cost."""
    cut = result.cut
    if cut is None:
        return
    for line in _lines(cut, result):
        echo(line)
    echo()
    if cut.chosen.batches:
        print_table("Fewer and more batches", _OPTIONS, [_option_row(option, cut) for option in cut.options])
        echo()
    rows = [_batch_row(number, cut) for number in range(1, len(cut.batches) + 1)]
    print_first_rows("Batches", _BATCHES, rows, MAX_ROWS)


def _lines(cut: BatchedPlan, result: PlanResult) -> Iterator[str]:
    chosen = cut.chosen
    number = f"{chosen.batches} batch" + ("" if chosen.batches == 1 else "es")
    if cut.leads_first:
        yield "The first batch copies nothing: drained brokers give up their leads by it, and by elections after it."
    if not chosen.batches:
        yield "Nothing is copied."
    elif chosen.fits:
        yield f"{number} with copies: {_time(chosen.total_s)} in all, at {rate_text(chosen.throttle_bytes_per_s)}."
    elif chosen.total_s is None:
        yield f"{number} with copies. Unknown whether they keep the time: sizes or write rates are unknown."
    else:
        enough, way = cut.in_time_bytes_per_s, result.would_fit
        if enough is not None:
            remedy = f"A throttle of {rate_text(enough)} would be enough for these."
        elif way is not None:
            rate = rate_text(way.throttle_bytes_per_s)
            remedy = f"In {way.batches:,} batches it fits (--batches {way.batches}), at {rate}."
        else:
            remedy = "No throttle that a broker carries would be enough: move when less is written, or allow more time."
        if chosen.total_s == float("inf"):
            end, at = "ends" if chosen.batches == 1 else "end", rate_text(chosen.throttle_bytes_per_s)
            yield f"Does not fit: {number} with copies never {end}, at {at}. {remedy}"
        else:
            yield f"The time is not kept: {number} with copies take {_time(chosen.total_s)} in all. {remedy}"


def _option_row(option: BatchOption, cut: BatchedPlan) -> tuple[str, ...]:
    return (
        f"{option.batches}{' (chosen)' if option == cut.chosen else ''}",
        rate_text(option.needed_bytes_per_s),
        rate_text(option.throttle_bytes_per_s),
        _time(option.total_s),
        _time(option.longest_s),
        "" if option.windows is None else str(option.windows),
        "yes" if option.fits else UNKNOWN if option.total_s is None else "no",
    )


def _batch_row(number: int, cut: BatchedPlan) -> tuple[str, ...]:
    batch = cut.batches[number - 1]
    throttle = batch.throttle_bytes_per_s
    # Without a throttle nothing has to be exceeded.
    required = "none" if throttle is None else UNKNOWN if batch.unknown_rates else rate_text(batch.smallest_bytes_per_s)
    return (
        str(number),
        f"{len(batch.assignments):,}",
        size_text(_copied_bytes(batch)),
        required,
        "none" if throttle is None else rate_text(throttle),
        _time(cut.durations_s[number - 1]),
    )


def _copied_bytes(batch: ReassignmentBatch) -> int | None:
    if batch.unknown_sizes:
        return None
    return sum(copied for broker_role, copied in batch.copied_bytes.items() if broker_role.role is Role.FOLLOWER)


def _time(seconds: float | None) -> str:
    return "never" if seconds == float("inf") else duration_text(seconds)
