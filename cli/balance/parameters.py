"""click parameter types of ``headroom balance``: amounts of bytes, exclusions, and changes of the cluster."""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import click

from cli.common.quantities import has_unit, parse_bytes_per_s
from planning.balance.model import BalanceBroker, BrokerCapacity, ClusterModel, Resource
from planning.balance.what_if import drained, grown, with_broker, without_brokers, without_rack

# A smaller number without a unit is an error, because its unit was probably forgotten.
_LEAST_BYTES_WITHOUT_UNIT = 1_000_000
_BROKER_PREFIX = "broker:"
_FORMS = "lose:3, lose-rack:a, add:7@b, drain:2 or grow:orders=2"


class ByteCount(click.ParamType[int]):
    """An amount of bytes: ``500GB`` or ``12000000000``."""

    name = "bytes"

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> int:
        """Return the bytes."""
        text = str(value)
        try:
            amount = parse_bytes_per_s(text)
        except ValueError:
            self.fail("must be bytes, such as 500GB or 12GiB", param, ctx)
        if not 0 < amount < 1e18:
            self.fail("must be above 0; for a proposal that copies nothing: --elections-only", param, ctx)
        if amount < _LEAST_BYTES_WITHOUT_UNIT and not has_unit(text):
            self.fail(f"is {amount:g} bytes; was {amount:g}GB meant? Otherwise give the unit: {amount:g}B", param, ctx)
        return round(amount)


@dataclass(frozen=True)
class Exclusions:
    """What a proposal leaves alone.

    Attributes:
        topics: topics.
        brokers: brokers, which give and take nothing.
    """

    topics: frozenset[str] = frozenset()
    brokers: frozenset[int] = frozenset()


class ExclusionList(click.ParamType[Exclusions]):
    """Topics and brokers separated by commas: ``payments,broker:3``."""

    name = "exclusions"

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> Exclusions:
        """Return the topics and brokers."""
        parts = [part.strip() for part in str(value).split(",")]
        brokers = [part.removeprefix(_BROKER_PREFIX) for part in parts if part.startswith(_BROKER_PREFIX)]
        if not all(parts) or not all(broker.isdecimal() for broker in brokers):
            self.fail("must be topics and brokers separated by commas, such as payments,broker:3", param, ctx)
        topics = frozenset(part for part in parts if not part.startswith(_BROKER_PREFIX))
        return Exclusions(topics, frozenset(map(int, brokers)))


@dataclass(frozen=True)
class ClusterChange:
    """A change of the cluster to be tried in the model.

    Attributes:
        text: the change as it was given.
        apply: returns the changed model.
    """

    text: str
    apply: Callable[[ClusterModel], ClusterModel]


class ChangeOfCluster(click.ParamType[ClusterChange]):
    """A change of the cluster: ``lose:3``, ``lose-rack:a``, ``add:7@b``, ``drain:2`` or ``grow:orders=2``."""

    name = "change"

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> ClusterChange:
        """Return the change."""
        text = str(value)
        kind, _, subject = text.partition(":")
        apply = _change(kind, subject)
        if apply is None:
            self.fail(f"must be {_FORMS}", param, ctx)
        return ClusterChange(text, apply)


def _change(kind: str, subject: str) -> Callable[[ClusterModel], ClusterModel] | None:
    """Return the function that makes a change; None if the text is no change."""
    if kind == "lose-rack" and subject:
        return lambda model: without_rack(model, subject)
    if kind in ("lose", "drain") and subject.isdecimal():
        broker = int(subject)
        return (lambda model: without_brokers(model, [broker])) if kind == "lose" else lambda m: drained(m, broker)
    added = re.fullmatch(r"(\d+)(?:@(.+))?", subject)
    if kind == "add" and added is not None:
        number, rack = int(added[1]), added[2]
        return lambda model: with_broker(model, BalanceBroker(number, rack, _smallest_capacity(model)))
    grows = re.fullmatch(r"([^=]+)=(\d+(?:\.\d+)?)", subject)
    if kind == "grow" and grows is not None:
        topic, times = grows[1], float(grows[2])
        return lambda model: grown(model, topic, times)
    return None


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
