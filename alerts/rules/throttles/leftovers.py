"""Rates and throttled replica lists that are still set for partitions that do not move, and their removal."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Sequence

from headroom.alerts.inputs.throttle_status import ThrottleStatus
from headroom.alerts.recommendations.recommendation import Recommendation
from headroom.alerts.rules.rule import RuleInputs
from headroom.planning.reassignments.run.journal import ThrottledList, rate_subject
from headroom.planning.reassignments.run.owners import ThrottleOwner
from headroom.schemas.keys import BrokerRate, LogDirsRate, Role


def clear_throttle(tick: RuleInputs, reason: str) -> Recommendation:
    """Return the recommendation that removes throttles while nothing moves.

    Args:
        tick: the tick.
        reason: why they should be removed.
    """
    keys: dict[int, list[str]] = defaultdict(list)
    for status in tick.statuses:
        if status.load.throttle_bytes_per_s is not None and status.throttle_source != "default":
            keys[status.broker].append(f"{status.role.value}.replication.throttled.rate")
    for broker in log_dirs_rates(tick.statuses):
        keys[broker].append("replica.alter.log.dirs.io.max.bytes.per.second")
    # If the list of topics is truncated, commands for these topics alone would leave the others behind.
    if any(status.resting_topic_count != len(status.resting_topics) for status in tick.statuses):
        return tick.recommender.clear_throttle({}, {}, reason, owners_of(tick))
    return tick.recommender.clear_throttle(keys, resting_lists(tick.statuses), reason, owners_of(tick))


def owners_of(tick: RuleInputs) -> list[ThrottleOwner]:
    """Return the commands that set what is left behind, as far as they are known, each once."""
    if not tick.owners:
        return []
    rates: list[BrokerRate] = [
        status.load.broker_role
        for status in tick.statuses
        if status.load.throttle_bytes_per_s is not None and status.throttle_source != "default"
    ]
    rates += [LogDirsRate(broker) for broker in log_dirs_rates(tick.statuses)]
    lists = [
        ThrottledList(t, role)
        for t, roles in sorted(resting_lists(tick.statuses).items())
        for role in Role
        if role in roles
    ]
    subjects = [*map(rate_subject, rates), *map(str, lists)]
    return list(dict.fromkeys(tick.owners[subject] for subject in subjects if subject in tick.owners))


def resting_lists(statuses: Sequence[ThrottleStatus]) -> dict[str, set[Role]]:
    """Return the roles by topic whose throttled lists contain partitions that do not move."""
    lists: dict[str, set[Role]] = defaultdict(set)
    for status in statuses:
        for topic in status.resting_topics:
            lists[topic].add(status.role)
    return dict(lists)


def log_dirs_rates(statuses: Sequence[ThrottleStatus]) -> list[int]:
    """Return the brokers with a broker-level throttle for moves between log directories."""
    return sorted(
        {
            status.broker
            for status in statuses
            if status.log_dirs.bytes_per_s is not None and status.log_dirs.source == "broker"
        }
    )
