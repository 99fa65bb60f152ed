"""Text output of ``headroom balance``: a verdict in one line, loads with their bands by broker, goals, what is lost."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from headroom.alerts.recommendations.commands import headroom_balance_propose_all
from headroom.cli.balance.amounts import RESOURCE_NAMES, load_text
from headroom.cli.common.output import echo, print_table
from headroom.operations.balance.score import ChangedCluster, ScoreResult
from headroom.planning.balance.goals.goal import BalanceGoal
from headroom.planning.balance.goals.resource_goals import CapacityLimit, ResourceBand
from headroom.planning.balance.model import Resource
from headroom.planning.balance.observation.cluster import ObservedCluster
from headroom.planning.balance.reports.scorecard import BrokenGoal, Scorecard
from headroom.schemas.text.amounts import percent_text, rate_text

# Rows printed of each table; a large cluster has more than an operator reads.
MAX_ROWS = 20


def print_score(result: ScoreResult, config: str | None) -> None:
    """Print the scores, and those after changes.

    Args:
        result: the scores.
        config: settings file that recommended commands name; the default one if None.
    """
    echo(verdict(result.card, result.cluster.state.cluster))
    echo(sources(result))
    if result.changed is not None:
        echo()
        _print_changed(result.changed, result)
        return
    echo()
    _print_brokers(result.card, result, "Brokers")
    _print_goals(result.card)
    _print_risks(result)
    print_losses(result.cluster.observed)
    echo()
    echo(f"To see what would improve it, and what that costs: {headroom_balance_propose_all(config)}")


def verdict(card: Scorecard, cluster: str) -> str:
    """Return in one line how many brokers are in band, and which is worst."""
    counted = card.model.is_counted
    balanced = int((card.is_balanced() & counted).sum())
    total = int(counted.sum())
    if balanced == total:
        return f"Cluster {cluster}: all {total} brokers are in band."
    goal, broker = worst(card)
    name, number = card.goals[goal].name, card.model.brokers[broker].broker
    return (
        f"Cluster {cluster}: {total - balanced} of {total} brokers are out of band; the worst is broker {number} in "
        f"{name} (score {card.scores[goal, broker]:.2f})."
    )


def worst(card: Scorecard) -> tuple[int, int]:
    """Return the goal and the broker with the lowest score among the goals that are not met."""
    scores = np.where(card.met | np.isnan(card.scores), np.inf, card.scores)
    goal, broker = divmod(int(np.argmin(scores)), scores.shape[1])
    return goal, broker


def sources(result: ScoreResult) -> str:
    """Return where the loads come from, and how much of the time was seen."""
    loads, settings = result.cluster.loads, result.cluster.settings.balance
    if not loads.hours_ms:
        return f"Loads: {loads.source}. Disk and counts: the latest."
    seen = result.cluster.observed.seen_ratio
    share = percent_text(float(np.nanmean(seen))) if np.isfinite(seen).any() else "none"
    return (
        f"Loads: percentile {settings.percentile:g} of each broker's own sum by hour ({loads.source}, {share} seen). "
        "Disk and counts: the latest."
    )


def print_losses(observed: ObservedCluster) -> None:
    """Print the goals that are lost, with the reasons, and the notes."""
    for lost in observed.lost_goals:
        echo(f"Goal lost: {lost}")
    for note in observed.notes:
        echo(f"Note: {note}")


def _print_risks(result: ScoreResult) -> None:
    """Print which brokers the loss of another one, or of a rack, takes over their limit."""
    for risk in result.risks[:MAX_ROWS]:
        resource = Resource[risk.resource.upper()]
        load, over, limit = (load_text(resource, amount) for amount in (risk.load, risk.over, risk.limit))
        name = RESOURCE_NAMES[resource]
        echo(
            f"At risk: if {risk.lost} is lost, broker {risk.broker} has {load} {name}: {over} above its limit {limit}."
        )
    if len(result.risks) > MAX_ROWS:
        echo(f"and {len(result.risks) - MAX_ROWS} more at risk; --format json shows all")


def _print_brokers(card: Scorecard, result: ScoreResult, title: str) -> None:
    resources = result.cluster.observed.known_resources
    order = _order(card)
    header = ("broker", "rack", *(RESOURCE_NAMES[r] for r in resources), "worst goal", "score", "hours seen")
    rows = [_broker_row(card, result, broker, resources) for broker in order[:MAX_ROWS]]
    print_table(f"{title} (+ above its band, - below it, ! beyond a limit)", header, rows)
    if len(order) > MAX_ROWS:
        echo(f"and {len(order) - MAX_ROWS} more; --format json shows all")
    echo()


def _order(card: Scorecard) -> list[int]:
    """Return brokers by id, or, if not all are printed, the worst first."""
    every = list(range(len(card.model.brokers)))
    if len(every) <= MAX_ROWS:
        return every
    lowest = np.nan_to_num(card.scores, nan=np.inf).min(axis=0)
    return sorted(every, key=lambda broker: (float(lowest[broker]), broker))


def _broker_row(card: Scorecard, result: ScoreResult, broker: int, resources: list[Resource]) -> tuple[str, ...]:
    state = card.model.brokers[broker]
    loads = [load_text(r, card.load(r, broker)) + _sign(card, r, broker) for r in resources]
    own = card.scores[:, broker]
    if np.isnan(own).all():
        score = ("not counted", "")
    else:
        lowest = int(np.nanargmin(own))
        score = ("" if own[lowest] >= 1 else card.goals[lowest].name, f"{own[lowest]:.2f}")
    ids = [b.broker for b in result.cluster.observed.model.brokers]
    # A broker that a change has added was never seen.
    seen = result.cluster.observed.seen_ratio[ids.index(state.broker)] if state.broker in ids else np.nan
    return (str(state.broker), state.rack or "", *loads, *score, "" if np.isnan(seen) else percent_text(float(seen)))


def _sign(card: Scorecard, resource: Resource, broker: int) -> str:
    load = float(card.loads[resource, broker])
    limit, band = card.limit(resource), card.band(resource)
    # A limit is a promise, a band a wish: so its sign comes first.
    if limit is not None and load > limit[broker]:
        return " !"
    number = next((n for n, g in enumerate(card.goals) if isinstance(g, ResourceBand) and g.resource is resource), None)
    if band is None or number is None or card.met[number, broker]:
        return ""
    return " +" if load > band.reachable_upper[broker] else " -"


def _print_goals(card: Scorecard) -> None:
    rows = [_goal_row(card, number, goal) for number, goal in enumerate(card.goals)]
    print_table("Goals", ("goal", "kind", "band or limit", "met by", "worst broker", "score"), rows)
    echo()


def _goal_row(card: Scorecard, number: int, goal: BalanceGoal) -> tuple[str, ...]:
    counted = card.model.is_counted
    met = int((card.met[number] & counted).sum())
    own = card.scores[number]
    lowest = None if np.isnan(own).all() or np.nanmin(own) >= 1 else int(np.nanargmin(own))
    return (
        goal.name,
        "limit" if goal.hard else "band",
        _edges(card, goal),
        f"{met} of {int(counted.sum())}",
        "" if lowest is None else str(card.model.brokers[lowest].broker),
        "1.00" if lowest is None else f"{own[lowest]:.2f}",
    )


def _edges(card: Scorecard, goal: BalanceGoal) -> str:
    counted = card.model.is_counted
    if isinstance(goal, ResourceBand) and (band := card.band(goal.resource)) is not None and counted.any():
        low, high = band.reachable_lower[counted], band.reachable_upper[counted]
        if len(set(high.tolist())) > 1:
            # Each broker has a band of its own then, and the cell has room for one.
            return "by capacity"
        return f"{load_text(goal.resource, float(low[0]))} to {load_text(goal.resource, float(high[0]))}"
    if isinstance(goal, CapacityLimit) and (limits := card.limit(goal.resource)) is not None:
        own = limits[counted & np.isfinite(limits)]
        if not len(own):
            return ""
        return f"{load_text(goal.resource, float(own.min()))}" + (" or more" if len(set(own.tolist())) > 1 else "")
    return ""


def _print_changed(changed: ChangedCluster, result: ScoreResult) -> None:
    echo(f"After {', '.join(changed.changes)}:")
    for line in _changed_lines(changed):
        echo(f"  {line}")
    echo()
    _print_brokers(changed.card, result, "Brokers after that")
    _print_goals(changed.card)
    print_losses(result.cluster.observed)


def _changed_lines(changed: ChangedCluster) -> Iterator[str]:
    for broken in changed.broken_limits[:MAX_ROWS]:
        yield broken_text(broken, changed.card)
    if not changed.broken_limits:
        yield "No broker gets beyond a limit that is known."
    if changed.leaderless:
        yield f"{changed.leaderless:,} partitions lose their leader: no other replica is in sync."
    if changed.missing:
        yield f"{changed.missing:,} more brokers like the smallest one are needed to carry all loads within the limits."
    if changed.unplaced_reads_bytes_per_s:
        yield (
            f"Consumers read {rate_text(changed.unplaced_reads_bytes_per_s)} from brokers that then have no replica, "
            "as the closest one. Who sends that then is unknown: it counts nowhere below."
        )
    balanced, counted = changed.card.is_balanced(), changed.card.model.is_counted
    yield f"{int((balanced & counted).sum())} of {int(counted.sum())} brokers are in band."


def broken_text(broken: BrokenGoal, card: Scorecard) -> str:
    """Return a goal that a broker does not meet as text, with load and limit."""
    goal = next(g for g in card.goals if g.name == broken.goal)
    if broken.load is None or broken.edge is None or not isinstance(goal, (CapacityLimit, ResourceBand)):
        return f"Broker {broken.broker} does not meet {broken.goal}."
    load, edge = load_text(goal.resource, broken.load), load_text(goal.resource, broken.edge)
    return f"Broker {broken.broker} does not meet {broken.goal}: {load}, and {edge} is allowed."
