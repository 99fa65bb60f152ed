"""Text output of ``headroom elections``: the plan, the batch files, and the results of a run."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence

from rich.text import Text

from headroom.cli.common.output import echo, print_first_rows, print_table
from headroom.cluster.elections.executor import BatchResult
from headroom.cluster.elections.preconditions import list_partitions
from headroom.operations.elections.result import ElectionRun, ElectionsResult, PlannedElections
from headroom.planning.elections.planner import WHY, Balance, Batch, Reason, RequiredThrottleIncrease
from headroom.schemas.keys import TopicPartition
from headroom.schemas.text.amounts import UNKNOWN, percent_text, rate_text
from headroom.schemas.text.names import broker_names

# Rows printed of each table; a large cluster has more than an operator reads.
MAX_ROWS = 20
_REMEDIES: Mapping[Reason, str] = {
    Reason.MOVING: "Nothing: run this again after the move.",
    Reason.PREFERRED_DOWN: "Start the broker.",
    Reason.PREFERRED_OUT_OF_SYNC: "Run this again when its replica is in sync. If it stays behind, see its broker.",
    Reason.LEADERLESS: "Start a broker whose replica was in sync last.",
    Reason.DELETING: "Nothing.",
    Reason.AT_MIN_INSYNC: "Run this again when its replicas are in sync.",
    Reason.OVER_CAPACITY: "Move partitions off the broker; if it can carry more, raise elections.capacity_bytes_per_s.",
    Reason.OVER_THROTTLE: "Raise the throttles below first. If none is listed, make the brokers' metrics readable.",
    Reason.NOT_CHOSEN: "Leave --topics and --brokers out.",
}


def print_plan(planned: PlannedElections) -> None:
    """Print a plan: summary, tables and notes."""
    echo(_summary(planned))
    _print("Brokers", _BROKERS, _broker_rows(planned))
    _print("Batches", _BATCHES, _batch_rows(planned))
    _print("Left out", ("partitions", "why", "such as", "what has to happen"), _left_out_rows(planned))
    if planned.plan.raise_first:
        command = planned.raise_command()
        _print("Throttles to raise first", ("broker", "in force", "must exceed"), _raise_rows(planned.plan.raise_first))
        echo(f"  $ {command}" if command else _NO_THROTTLE)
    for note in notes(planned):
        echo()
        echo(note)


_NO_THROTTLE = "  No throttle would do: it would have to exceed cluster.replication_capacity. Move less at a time."
_BROKERS = (
    "broker",
    "preferred by",
    "led by others",
    "imbalance",
    "allowed",
    "electable now",
    "wait for the move",
    "not available",
    "writes now",
    "writes then",
)
_BATCHES = ("batch", "partitions", "their writes", "such as", "imbalance then")


def notes(planned: PlannedElections) -> Iterator[str]:
    """Yield notes about a plan that its tables do not show."""
    silent = planned.leadership.traffic.unmeasured
    if silent:
        broker, reason = next(iter(sorted(silent.items())))
        others = f" and of {len(silent) - 1} more" if len(silent) > 1 else ""
        yield (
            f"Not measured: what is written to and read from the partitions of broker {broker}{others} ({reason}). "
            "Batches and capacity use only known rates, and nothing is elected behind a throttle that "
            "may be too low."
        )
    # What batches avoid may happen beside them, and only the operator can switch it off.
    automatic = sorted(broker for broker, balancing in planned.leadership.balancing.items() if balancing.auto)
    if automatic:
        yield (
            "Kafka elects preferred leaders automatically, unplanned and many at once, on "
            f"{broker_names(automatic, MAX_ROWS)} (auto.leader.rebalance.enable)."
        )
    if not planned.plan.batches and not planned.plan.left_out:
        yield "All balanced: nothing to elect."
    elif not planned.plan.batches:
        yield "Nothing to elect now."
    still = [balance.broker for balance in planned.plan.after if planned.over(balance)]
    if planned.plan.batches and still:
        yield f"Out of balance even then: {broker_names(still, MAX_ROWS)}."


def _summary(planned: PlannedElections) -> str:
    away = sum(balance.non_preferred_partitions for balance in planned.plan.before)
    over = sum(map(planned.over, planned.plan.before))
    name, total = planned.settings.cluster.name, len(planned.leadership.partitions)
    return (
        f"Cluster {name}: {away} of {total} partitions are led by another broker than their "
        f"preferred one; {over} of {len(planned.plan.before)} brokers are out of balance{_others(planned)}."
    )


def _others(planned: PlannedElections) -> str:
    """Return which brokers exceed their limit although no election helps them; empty without any."""
    reasons = [reason for balance in planned.plan.before if (reason := planned.not_electable(balance)) is not None]
    if not reasons:
        return ""
    more = f" and {len(reasons) - 1} more" if len(reasons) > 1 else ""
    return f"; {len(reasons)} above the limit: {reasons[0]}{more}"


def _print(title: str, header: Sequence[str], rows: Sequence[Sequence[str | Text]]) -> None:
    if rows:
        echo()
        print_first_rows(title, header, rows, MAX_ROWS)


def _broker_rows(planned: PlannedElections) -> list[tuple[str | Text, ...]]:
    # If not all brokers fit, those with the highest imbalance are shown.
    balances = sorted(planned.plan.before, key=lambda b: b.imbalance_ratio, reverse=True)
    if len(balances) <= MAX_ROWS:
        balances.sort(key=lambda b: b.broker)
    return [
        (
            str(balance.broker),
            str(balance.preferred_partitions),
            str(balance.non_preferred_partitions),
            _imbalance(planned, balance),
            percent_text(planned.thresholds[balance.broker]),
            str(balance.electable_now),
            str(balance.waiting_for_move),
            str(balance.non_preferred_partitions - balance.electable_now - balance.waiting_for_move),
            rate_text(balance.write_bytes_per_s),
            rate_text(balance.preferred_write_bytes_per_s),
        )
        for balance in balances
    ]


def _imbalance(planned: PlannedElections, balance: Balance) -> Text:
    text = percent_text(balance.imbalance_ratio)
    if planned.over(balance):
        return Text(f"{text}, too high", style="bold red")
    reason = planned.not_electable(balance)
    return Text(text if reason is None else f"{text}, {reason}")


def _batch_rows(planned: PlannedElections) -> list[tuple[str, ...]]:
    return [
        (
            str(number),
            str(len(batch.partitions)),
            _writes(batch),
            list_partitions(batch.partitions),
            imbalance_then(batch),
        )
        for number, batch in enumerate(planned.plan.batches, start=1)
    ]


def _writes(batch: Batch) -> str:
    if batch.unknown_rates == len(batch.partitions):
        return UNKNOWN
    return rate_text(batch.write_bytes_per_s) + (" or more" if batch.unknown_rates else "")


def imbalance_then(batch: Batch) -> str:
    """Return the three brokers with the highest imbalance after a batch, as text."""
    ratios = sorted(batch.imbalance_ratios.items(), key=lambda of: (-of[1], of[0]))
    shown = [f"broker {broker} {percent_text(ratio)}" for broker, ratio in ratios[:3] if ratio]
    return ", ".join(shown) or "none"


def _left_out_rows(planned: PlannedElections) -> list[tuple[str, ...]]:
    by_reason: dict[Reason, list[TopicPartition]] = defaultdict(list)
    for left in planned.plan.left_out:
        by_reason[left.reason].append(left.name)
    ordered = sorted(by_reason.items(), key=lambda of: len(of[1]), reverse=True)
    return [(str(len(names)), WHY[reason], list_partitions(names), _REMEDIES[reason]) for reason, names in ordered]


def _raise_rows(raises: Sequence[RequiredThrottleIncrease]) -> list[tuple[str, ...]]:
    return [
        (
            f"{increase.broker_role[0]} as {increase.broker_role[1].value}",
            rate_text(increase.throttle_bytes_per_s),
            rate_text(increase.required_bytes_per_s),
        )
        for increase in raises
    ]


def print_result(result: ElectionsResult) -> None:
    """Print what came of a plan: the batch files, and the run or the command that starts it."""
    if result.batch_files:
        _print_batch_files(result)
    if result.run is not None:
        _print_run(result.planned, result.run, result.left_partitions())
    elif result.planned.plan.batches:
        if result.blocked_reason is not None:
            echo()
            echo(f"Not now, but with --execute --wait: {result.blocked_reason}.")
        echo()
        echo(f"Nothing was changed. To do it: {result.planned.execute_command()}")


def _print_batch_files(result: ElectionsResult) -> None:
    files = result.batch_files
    echo()
    echo(f"Wrote {len(files)} files; one after the other, each once the one before has settled:")
    for command in result.batch_commands()[:MAX_ROWS]:
        echo(f"  $ {command}")
    if len(files) > MAX_ROWS:
        echo(f"  and so on to {files[-1].name}")


def _print_run(planned: PlannedElections, run: ElectionRun, left: int) -> None:
    """Print elected and remaining leaders, and the brokers' imbalance next to the predicted one."""
    echo()
    echo(f"{run.elected_count()} leaders elected; {left} of {planned.partitions()} are left.")
    # Until a batch has settled, its leaders are still changing.
    settled = [result for result in run.results if result.settled_s is not None]
    if settled:
        print_table("", ("broker", "imbalance before", "predicted", "now"), _ratio_rows(planned, settled))
    if left:
        echo("Run the same command again for the remaining partitions: it makes a new plan.")


def _ratio_rows(planned: PlannedElections, settled: Sequence[BatchResult]) -> list[tuple[str, ...]]:
    last = settled[-1]
    predicted = planned.plan.batches[last.number - 1].imbalance_ratios
    return [
        (
            str(balance.broker),
            percent_text(balance.imbalance_ratio),
            percent_text(predicted[balance.broker]),
            percent_text(last.imbalance_ratios[balance.broker]),
        )
        for balance in planned.plan.before
        if balance.broker in predicted and balance.broker in last.imbalance_ratios
    ]
