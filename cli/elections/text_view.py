"""Text output of an election plan: brokers, batches, skipped partitions, and throttles to raise first."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

from rich.text import Text

from alerts.recommendations.commands import headroom_apply
from cli.common.output import UNKNOWN, echo, mb_per_s, print_table
from cluster.elections.leadership import LeadershipSnapshot
from cluster.elections.preconditions import list_partitions
from planning.elections.planner import (
    WHY,
    Balance,
    Batch,
    ElectionPlan,
    Name,
    Reason,
    RequiredThrottleIncrease,
    out_of_balance,
)
from planning.throttles.recommendation import ThrottlePolicy
from schemas.config import Settings

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


@dataclass(frozen=True)
class ElectionView:
    """An election plan and its inputs.

    Attributes:
        settings: all settings.
        config: settings file as given on the command line; the default one if None.
        leadership: state of the cluster for which the plan was made.
        plan: the plan.
        thresholds: by broker, the share of leadership elsewhere above which it is out of balance.
    """

    settings: Settings
    config: str | None
    leadership: LeadershipSnapshot
    plan: ElectionPlan
    thresholds: Mapping[int, float]

    def over(self, balance: Balance) -> bool:
        """Return whether a broker is out of balance."""
        return out_of_balance(balance, self.thresholds[balance.broker])

    def partitions(self) -> int:
        """Return the number of partitions in all batches."""
        return sum(len(batch.partitions) for batch in self.plan.batches)

    def raised_bytes_per_s(self) -> int | None:
        """Return a sufficient throttle for the brokers to raise, in bytes per second; None if it exceeds capacity."""
        policy = ThrottlePolicy(self.settings.alerts.margin_ratio, None, self.settings.cluster.replication_capacity)
        return policy.throttle_above(max(increase.required_bytes_per_s for increase in self.plan.raise_first))

    def raised_brokers(self) -> list[int]:
        """Return the brokers whose throttle has to be raised."""
        return sorted({increase.broker_role[0] for increase in self.plan.raise_first})

    def raise_command(self) -> str | None:
        """Return the command that raises the throttles; None if none is too low, or none would be enough."""
        rate = self.raised_bytes_per_s() if self.plan.raise_first else None
        return None if rate is None else headroom_apply(rate, self.raised_brokers(), self.config)


def print_view(view: ElectionView) -> None:
    """Print a plan: summary, tables and notes."""
    echo(_summary(view))
    _print("Brokers", _BROKERS, _broker_rows(view))
    _print("Batches", _BATCHES, _batch_rows(view))
    _print("Left out", ("partitions", "why", "such as", "what has to happen"), _left_out_rows(view))
    if view.plan.raise_first:
        _print("Throttles to raise first", ("broker", "in force", "must exceed"), _raise_rows(view.plan.raise_first))
        echo(f"  $ {view.raise_command()}" if view.raise_command() else _NO_THROTTLE)
    for note in notes(view):
        echo()
        echo(f"{note}")


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


def notes(view: ElectionView) -> Iterator[str]:
    """Yield notes about a plan that its tables do not show."""
    silent = view.leadership.traffic.unmeasured
    if silent:
        broker, reason = next(iter(sorted(silent.items())))
        others = f" and of {len(silent) - 1} more" if len(silent) > 1 else ""
        yield (
            f"Not measured: what is written to and read from the partitions of broker {broker}{others} ({reason}). "
            "Batches and capacity use only known rates, and nothing is elected behind a throttle that "
            "may be too low."
        )
    automatic = sorted(broker for broker, balancing in view.leadership.balancing.items() if balancing.auto)
    if automatic:
        yield (
            f"Kafka elects preferred leaders automatically, unplanned and many at once, on {_brokers(automatic)} "
            "(auto.leader.rebalance.enable)."
        )
    if not view.plan.batches and not view.plan.left_out:
        yield "All balanced: nothing to elect."
    elif not view.plan.batches:
        yield "Nothing to elect now."
    still = [balance.broker for balance in view.plan.after if view.over(balance)]
    if view.plan.batches and still:
        yield f"Out of balance even then: {_brokers(still)}."


def _summary(view: ElectionView) -> str:
    away = sum(balance.non_preferred_partitions for balance in view.plan.before)
    over = sum(map(view.over, view.plan.before))
    name = view.settings.cluster.name
    return (
        f"Cluster {name}: {away} of {len(view.leadership.partitions)} partitions are led by another broker than their "
        f"preferred one; {over} of {len(view.plan.before)} brokers are out of balance."
    )


def _print(title: str, header: Sequence[str], rows: Sequence[Sequence[str | Text]]) -> None:
    if rows:
        echo()
        print_table(title, header, rows[:MAX_ROWS])
    if len(rows) > MAX_ROWS:
        echo(f"and {len(rows) - MAX_ROWS} more; --format json shows all")


def _broker_rows(view: ElectionView) -> list[tuple[str | Text, ...]]:
    # If not all brokers fit, those with the highest imbalance are shown.
    balances = sorted(view.plan.before, key=lambda b: b.imbalance_ratio, reverse=True)
    if len(balances) <= MAX_ROWS:
        balances.sort(key=lambda b: b.broker)
    return [
        (
            str(balance.broker),
            str(balance.preferred_partitions),
            str(balance.non_preferred_partitions),
            _imbalance(view, balance),
            percent(view.thresholds[balance.broker]),
            str(balance.electable_now),
            str(balance.waiting_for_move),
            str(balance.non_preferred_partitions - balance.electable_now - balance.waiting_for_move),
            mb_per_s(balance.write_bytes_per_s),
            mb_per_s(balance.preferred_write_bytes_per_s),
        )
        for balance in balances
    ]


def _imbalance(view: ElectionView, balance: Balance) -> Text:
    text = percent(balance.imbalance_ratio)
    return Text(f"{text}, too high", style="bold red") if view.over(balance) else Text(text)


def _batch_rows(view: ElectionView) -> list[tuple[str, ...]]:
    return [
        (
            str(number),
            str(len(batch.partitions)),
            _writes(batch),
            list_partitions(batch.partitions),
            imbalance_then(batch),
        )
        for number, batch in enumerate(view.plan.batches, start=1)
    ]


def _writes(batch: Batch) -> str:
    if batch.unknown_rates == len(batch.partitions):
        return UNKNOWN
    return mb_per_s(batch.write_bytes_per_s) + (" or more" if batch.unknown_rates else "")


def imbalance_then(batch: Batch) -> str:
    """Return the three brokers with the highest imbalance after a batch, as text."""
    ratios = sorted(batch.imbalance_ratios.items(), key=lambda of: (-of[1], of[0]))
    shown = [f"broker {broker} {percent(ratio)}" for broker, ratio in ratios[:3] if ratio]
    return ", ".join(shown) or "none"


def _left_out_rows(view: ElectionView) -> list[tuple[str, ...]]:
    by_reason: dict[Reason, list[Name]] = defaultdict(list)
    for left in view.plan.left_out:
        by_reason[left.reason].append((left.topic, left.partition))
    ordered = sorted(by_reason.items(), key=lambda of: len(of[1]), reverse=True)
    return [(str(len(names)), WHY[reason], list_partitions(names), _REMEDIES[reason]) for reason, names in ordered]


def _raise_rows(raises: Sequence[RequiredThrottleIncrease]) -> list[tuple[str, ...]]:
    return [
        (
            f"{increase.broker_role[0]} as {increase.broker_role[1].value}",
            mb_per_s(increase.throttle_bytes_per_s),
            mb_per_s(increase.required_bytes_per_s),
        )
        for increase in raises
    ]


def percent(ratio: float) -> str:
    """Return a ratio as text in percent."""
    return f"{ratio * 100:.1f}".removesuffix(".0") + " %"


def _brokers(brokers: Sequence[int]) -> str:
    shown = ", ".join(map(str, brokers[:MAX_ROWS]))
    return f"broker{'s' if len(brokers) > 1 else ''} {shown}" + (" and more" if len(brokers) > MAX_ROWS else "")
