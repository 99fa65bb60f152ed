"""Changing dynamic configurations, every answer checked."""

from __future__ import annotations

import contextlib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import kafka.errors as kafka_errors
from kafka.errors import KafkaError
from kafka.protocol.admin import IncrementalAlterConfigsRequest

from cluster.client import AdminLink
from cluster.configs import BROKER
from schemas.errors import HeadroomError

_SET, _DELETE = 0, 1


@dataclass(frozen=True)
class Change:
    """A change of one resource's configuration.

    Attributes:
        resource_type: topic or broker, as in ``cluster.configs``.
        name: topic or broker id; empty: the cluster-wide default of brokers.
        values: new value by key; None clears the key.
    """

    resource_type: int
    name: str
    values: Mapping[str, str | None]


def alter_configs(link: AdminLink, changes: Sequence[Change], timeout_s: float) -> None:
    """Make changes; other keys stay as they are. Every change is tried, also when one before it was refused.

    Raises:
        HeadroomError: some changes were refused, or their broker did not answer; it names which, and why.
    """
    refused = {}
    for change in changes:
        reason = _alter(link, change, timeout_s)
        if reason is not None:
            refused[_subject(change)] = reason
    if refused:
        reasons = "; ".join(dict.fromkeys(refused.values()))
        done = "" if len(refused) == len(changes) else "; the others were changed"
        raise HeadroomError(
            ", ".join(refused),
            f"the configuration was not changed ({reasons}){done}",
            "Check that it is up, that the value is right, and that this user may AlterConfigs.",
        )


def _alter(link: AdminLink, change: Change, timeout_s: float) -> str | None:
    entries = [_entry(key, value) for key, value in change.values.items()]
    request = IncrementalAlterConfigsRequest(
        resources=[(change.resource_type, change.name, entries)], validate_only=False
    )
    try:
        result = _ask(link, change, request, timeout_s).responses[0]
    except KafkaError as error:
        return type(error).__name__
    if not result.error_code:
        return None
    return f"{kafka_errors.for_code(result.error_code).__name__}: {result.error_message or 'no reason given'}".rstrip(
        "."
    )


def _ask(link: AdminLink, change: Change, request: Any, timeout_s: float) -> Any:
    # A broker takes its own configuration from nobody else; all other changes are passed on to the controller.
    if change.resource_type == BROKER and change.name:
        return link.ask(request, int(change.name), timeout_s)
    *others, last = link.nodes()
    for node in others:
        # Asking another broker after a lost answer is safe: setting a value twice sets it once.
        with contextlib.suppress(KafkaError):
            return link.ask(request, node, timeout_s)
    return link.ask(request, last, timeout_s)


def _entry(key: str, value: str | None) -> tuple[str, int, str | None]:
    return (key, _DELETE, None) if value is None else (key, _SET, value)


def _subject(change: Change) -> str:
    if change.resource_type == BROKER:
        return f"broker {change.name}" if change.name else "the cluster-wide default of brokers"
    return f"topic {change.name}"
