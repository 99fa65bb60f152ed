"""Goals by name: the built-in ones, those of installed packages, and classes named by module."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from importlib import import_module
from importlib.metadata import entry_points

from headroom.planning.balance.goals.bands import MIB
from headroom.planning.balance.goals.earlier_names import earlier_names
from headroom.planning.balance.goals.goal import BalanceGoal
from headroom.planning.balance.goals.resource_goals import CapacityLimit, RackSpread, ResourceBand, TopicBand
from headroom.planning.balance.model import Resource
from headroom.schemas.config import BalanceSettings
from headroom.schemas.errors import HeadroomError

ENTRY_POINTS = "headroom.balance_goals"


def built_in_goals(detect_below: float = float(MIB)) -> tuple[BalanceGoal, ...]:
    """Return the built-in goals: hard ones first, then soft ones.

    Args:
        detect_below: network rates below which all is well, bytes per second.
    """
    return (
        RackSpread(),
        CapacityLimit("disk_capacity", Resource.DISK),
        CapacityLimit("network_in_capacity", Resource.NETWORK_IN),
        CapacityLimit("network_out_capacity", Resource.NETWORK_OUT),
        CapacityLimit("replica_capacity", Resource.REPLICAS),
        # Disk first: the bytes that it has to move are unavoidable, and network comes along with them.
        ResourceBand("disk", Resource.DISK, "disk"),
        ResourceBand("network_in", Resource.NETWORK_IN, "network", detect_below=detect_below),
        ResourceBand("network_out", Resource.NETWORK_OUT, "network", detect_below=detect_below),
        ResourceBand("requests", Resource.REQUESTS, "requests"),
        ResourceBand("leaders", Resource.LEADERS, "counts", 0.5),
        ResourceBand("replicas", Resource.REPLICAS, "counts", 0.5),
        TopicBand("topic_leaders", True, weight=0.1),
        TopicBand("topic_replicas", False, weight=0.1),
    )


GOAL_NAMES = tuple(goal.name for goal in built_in_goals())


def known_goals() -> tuple[str, ...]:
    """Return the names of all goals that are built in or installed."""
    return *GOAL_NAMES, *sorted(point.name for point in entry_points(group=ENTRY_POINTS))


def configured_goals(settings: BalanceSettings) -> list[str]:
    """Return the names in ``balance.goals``; empty for all built-in goals."""
    return [name.strip() for name in settings.goals.split(",") if name.strip()]


def find_goals(names: Sequence[str], detect_below: float = float(MIB)) -> tuple[BalanceGoal, ...]:
    """Return goals by name; hard built-in goals are always among them.

    Args:
        names: built-in names, names of entry points in group ``headroom.balance_goals``, or ``module:Class``. Empty:
            all built-in goals.
        detect_below: network rates below which all is well, bytes per second.

    Raises:
        HeadroomError: a name is unknown, a class cannot be loaded, or it is not a goal.
    """
    built_in = {goal.name: goal for goal in built_in_goals(detect_below)}
    chosen = list(names) or list(built_in)
    hard = [goal for goal in built_in.values() if goal.hard]
    others = [built_in.get(name) or _load(name) for name in chosen if name not in {goal.name for goal in hard}]
    goals = (*hard, *others)
    twice = sorted({goal.name for goal in goals if [g.name for g in goals].count(goal.name) > 1})
    if twice:
        raise HeadroomError("balance.goals", f"names {', '.join(twice)} twice", "Name each goal once.")
    return goals


def _load(name: str) -> BalanceGoal:
    installed = {point.name: point for point in entry_points(group=ENTRY_POINTS)}
    if name in installed:
        return _make_goal(name, installed[name].load)
    module, colon, kind = name.partition(":")
    if not colon:
        remedy = f"Use module:Class, or one of {', '.join(known_goals())}."
        raise HeadroomError("balance.goals", f"{name!r} is unknown", remedy)
    return _make_goal(name, lambda: getattr(import_module(module), kind))


def _make_goal(name: str, load: Callable[[], Callable[[], object]]) -> BalanceGoal:
    try:
        with earlier_names():
            goal = load()()
    # A goal is code of others, and an import of it runs anything.
    except Exception as error:
        raise HeadroomError(f"goal {name}", f"cannot be loaded ({error})", "Correct its module and class.") from error
    if not isinstance(goal, BalanceGoal):
        raise HeadroomError(f"goal {name}", "is not a goal", "Give it the attributes and methods of docs/balance.md.")
    if not goal.weight > 0:
        raise HeadroomError(f"goal {name}", f"has weight {goal.weight}", "Give it a weight above 0.")
    return goal
