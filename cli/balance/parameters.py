"""click parameter types of ``headroom balance``: amounts of bytes, exclusions, and changes of the cluster."""

from __future__ import annotations

import re
from collections.abc import Callable

from headroom.cli.common.parameters import Quantity
from headroom.operations.balance.requests import ClusterChange, Exclusions
from headroom.planning.balance.model import BalanceBroker, BrokerCapacity, ClusterModel, Resource
from headroom.planning.balance.what_if import (
    with_broker,
    with_broker_drained,
    with_topic_grown,
    without_brokers,
    without_rack,
)
from headroom.schemas.quantities import (
    GOAL,
    GOALS,
    TOPIC,
    QuantityError,
    has_unit,
    parse_bytes,
    parse_id,
    parse_names,
    parse_number,
    quote,
)

# A smaller number without a unit is an error, because its unit was probably forgotten.
_LEAST_BYTES_WITHOUT_UNIT = 1_000_000
_BROKER_PREFIX = "broker:"
_EXCLUDED = re.compile(rf"{_BROKER_PREFIX}[0-9]+|{TOPIC.pattern}")
_FORMS = "lose:3, lose-rack:a, add:7@b, drain:2 or grow:orders=2"
_CHANGE = re.compile(
    r"lose-rack:(?P<lost_rack>.+)|lose:(?P<lost>[0-9]+)|drain:(?P<drained>[0-9]+)"
    r"|add:(?P<added>[0-9]+)(?:@(?P<added_rack>.+))?"
    r"|grow:(?P<topic>[^=]+)=(?P<times>[0-9.]+)"
)


class ByteCount(Quantity[int]):
    """An amount of bytes: ``500GB`` or ``12000000000``."""

    name = "bytes"

    def read(self, text: str) -> int:
        """Return the bytes."""
        amount = parse_bytes(text)
        if not 0 < amount < 1e18:
            raise QuantityError(
                f"{quote(text)} is not above 0 and below 10^18", "For a proposal that copies nothing: --elections-only."
            )
        if amount < _LEAST_BYTES_WITHOUT_UNIT and not has_unit(text):
            meant = f"Was {amount:g}GB meant? Otherwise give the unit: {amount:g}B."
            raise QuantityError(f"{amount:g} without a unit is {amount:g} bytes", meant)
        return round(amount)


class GoalNames(Quantity[list[str]]):
    """Names of goals separated by commas."""

    name = "goals"

    def read(self, text: str) -> list[str]:
        """Return the names."""
        return parse_names(text, GOAL, GOALS)


class ExclusionList(Quantity[Exclusions]):
    """Topics and brokers separated by commas: ``payments,broker:3``."""

    name = "exclusions"

    def read(self, text: str) -> Exclusions:
        """Return the topics and brokers."""
        parts = parse_names(text, _EXCLUDED, "a list of topics and brokers, such as payments,broker:3")
        brokers = [parse_id(part.removeprefix(_BROKER_PREFIX)) for part in parts if part.startswith(_BROKER_PREFIX)]
        if len(set(brokers)) < len(brokers):
            raise QuantityError(f"{quote(text)} names a broker twice", "Name each once.")
        return Exclusions(frozenset(part for part in parts if not part.startswith(_BROKER_PREFIX)), frozenset(brokers))


class ChangeOfCluster(Quantity[ClusterChange]):
    """A change of the cluster: ``lose:3``, ``lose-rack:a``, ``add:7@b``, ``drain:2`` or ``grow:orders=2``."""

    name = "change"

    def read(self, text: str) -> ClusterChange:
        """Return the change."""
        match = _CHANGE.fullmatch(text)
        if match is None or (match["topic"] and not TOPIC.fullmatch(match["topic"])):
            raise QuantityError(f"{quote(text)} is not a change", f"Write {_FORMS}.")
        return ClusterChange(text, _change(match))


def _change(match: re.Match[str]) -> Callable[[ClusterModel], ClusterModel]:
    """Return the function that makes a change."""
    if match["lost_rack"]:
        rack = match["lost_rack"]
        return lambda model: without_rack(model, rack)
    if match["lost"]:
        lost = parse_id(match["lost"])
        return lambda model: without_brokers(model, [lost])
    if match["drained"]:
        broker = parse_id(match["drained"])
        return lambda model: with_broker_drained(model, broker)
    if match["added"]:
        number, added_rack = parse_id(match["added"]), match["added_rack"]
        return lambda model: with_broker(model, BalanceBroker(number, added_rack, _smallest_capacity(model)))
    topic, times = match["topic"], parse_number(match["times"])
    return lambda model: with_topic_grown(model, topic, times)


def _smallest_capacity(model: ClusterModel) -> BrokerCapacity:
    """Return for each resource the smallest capacity of a broker: a new broker has at least that of the others."""

    def smallest(resource: Resource) -> float | None:
        return min((c for b in model.brokers if (c := b.capacity.of(resource)) is not None), default=None)

    return BrokerCapacity(
        smallest(Resource.NETWORK_IN),
        smallest(Resource.NETWORK_OUT),
        smallest(Resource.DISK),
        smallest(Resource.REPLICAS),
    )
