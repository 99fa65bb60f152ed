"""What ``headroom throttle apply`` and ``clear`` would change, decided before anything is changed."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from cli.output import mb_per_s
from cli.throttle_view import ThrottleView
from schemas.config import Settings
from schemas.errors import HeadroomError

# Below this Kafka's quota windows are too coarse to keep a rate.
ACCURATE_BYTES_PER_S = 1_000_000
LEAST_BYTES_PER_S = 10_000
MOST_BYTES_PER_S = 1_000_000_000_000


@dataclass(frozen=True)
class ClearPlan:
    """What ``clear`` would remove.

    Attributes:
        brokers: brokers whose rates go.
        topics: topics whose lists go.
        cluster_default: whether the cluster-wide default rates go too.
    """

    brokers: tuple[int, ...]
    topics: tuple[str, ...]
    cluster_default: bool

    def empty(self) -> bool:
        """Return whether there is nothing to remove."""
        return not self.brokers and not self.topics


def check_rate(bytes_per_s: float) -> int:
    """Return a rate as Kafka takes it, whole bytes per second.

    Raises:
        ValueError: it is not positive, or so small or great that a unit must be missing or wrong.
    """
    if not bytes_per_s > 0:
        raise ValueError("must be greater than 0; to remove throttles: headroom throttle clear")
    if bytes_per_s < LEAST_BYTES_PER_S:
        raise ValueError(f"is {bytes_per_s:g} bytes per second; was {bytes_per_s:g}MB meant?")
    if bytes_per_s > MOST_BYTES_PER_S:
        raise ValueError(f"is more than any broker carries ({mb_per_s(MOST_BYTES_PER_S)})")
    return round(bytes_per_s)


def brokers_to_set(view: ThrottleView, wanted: Sequence[int] | None) -> list[int]:
    """Return the brokers to set a rate on: those wanted, else all that take part in running moves.

    Brokers that are down are left out of the latter: only a broker itself takes its rate.

    Raises:
        HeadroomError: a wanted broker is not up, or none is wanted and nothing moves.
    """
    if wanted is None:
        if not view.participants():
            raise HeadroomError("--brokers", "is not given and no reassignment is running", "Name the brokers.")
        return [broker for broker in view.participants() if view.alive(broker)]
    for broker in wanted:
        if not view.alive(broker):
            up = ", ".join(str(b) for b in sorted(view.rates) if view.alive(b))
            raise HeadroomError(f"broker {broker}", "is not up", f"Name others; up are: {up}.")
    return sorted(set(wanted))


def apply_warnings(settings: Settings, view: ThrottleView, rate_bytes_per_s: int, brokers: Sequence[int]) -> list[str]:
    """Return what speaks against setting a rate, in sentences."""
    said = []
    capacity = settings.cluster.replication_capacity
    if rate_bytes_per_s < ACCURATE_BYTES_PER_S:
        said.append("1 MB/s is the least that Kafka keeps accurately.")
    if capacity is not None and rate_bytes_per_s > capacity:
        said.append(f"This is more than cluster.replication_capacity ({mb_per_s(capacity)}).")
    left_out = sorted(set(view.participants()) - set(brokers))
    if left_out:
        said.append(f"Brokers {', '.join(map(str, left_out))} take part in running moves and keep their rates.")
    if not view.listed() and not view.unread_topics():
        said.append("No throttled replica list is set: a rate without a list limits nothing.")
    return said


def clear_plan(view: ThrottleView, only: str | None, cluster_default: bool) -> ClearPlan:
    """Return what is set and would be removed.

    Args:
        view: what is in force.
        only: ``rates`` or ``lists``; None: both.
        cluster_default: whether the cluster-wide default rates go too, not only the brokers' own.
    """
    entities = {"broker", "default"} if cluster_default else {"broker"}
    limited = tuple(b for b, r in sorted(view.rates.items()) if entities & {r.leader_source, r.follower_source})
    by_default = any("default" in (r.leader_source, r.follower_source) for r in view.rates.values())
    rates, lists = only != "lists", only != "rates"
    return ClearPlan(
        brokers=limited if rates else (),
        topics=tuple(view.listed()) if lists else (),
        cluster_default=rates and cluster_default and by_default,
    )


def clear_warnings(view: ThrottleView, plan: ClearPlan) -> list[str]:
    """Return what a person should know before or instead of clearing, in sentences."""
    said = []
    silent = [str(broker) for broker, rates in sorted(view.rates.items()) if not rates.known]
    if silent:
        said.append(f"Unknown, and left as they are: the rates of brokers {', '.join(silent)}.")
    if view.unread_topics():
        said.append(f"Unknown, and left as they are: the lists of {', '.join(view.unread_topics()[:5])}.")
    by_default = any("default" in (r.leader_source, r.follower_source) for r in view.rates.values())
    if by_default and not plan.cluster_default:
        said.append("The cluster-wide default rate stays; --cluster-default clears it too.")
    if view.moving() and not plan.empty():
        said.append("A reassignment is running; without its throttle it copies as fast as it can.")
    return said


def require_idle(view: ThrottleView, force: bool) -> None:
    """Check that nothing moves, unless forced.

    Raises:
        HeadroomError: a reassignment is running.
    """
    if view.moving() and not force:
        first = view.moving()[0]
        subject = f"{first.topic}-{first.partition}"
        rule = "is moving: without its throttle it would copy as fast as it can"
        raise HeadroomError(subject, rule, "Wait for the end of the move, or clear all the same with --force.")
