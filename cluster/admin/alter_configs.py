"""Changes dynamic configurations and checks every answer."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from typing import Any

import kafka.errors as kafka_errors
from kafka.errors import KafkaError, NodeNotReadyError
from kafka.protocol.admin import IncrementalAlterConfigsRequest

from headroom.cluster.admin.config_keys import BROKER
from headroom.cluster.connection.admin_connection import AdminConnection
from headroom.cluster.connection.failover import BrokerFailover, NoAnswerError
from headroom.schemas.errors import HeadroomError

REMEDY = "Check that it is up, that the value is right, and that this user may AlterConfigs."
# Kafka's AlterConfigOp.OpType.
_SET, _DELETE, _APPEND, _SUBTRACT = 0, 1, 2, 3
# Requests in parallel, so that several brokers that hang cost one timeout.
_MAX_PARALLEL = 16


class Appended(str):
    """Entries, separated by commas, that a change adds to a list; the controller drops those that are in it already."""

    __slots__ = ()


class Subtracted(str):
    """Entries, separated by commas, that a change removes from a list. A list that is not set would be set, empty."""

    __slots__ = ()


@dataclass(frozen=True)
class ConfigChange:
    """A change of one resource's configuration.

    Attributes:
        resource_type: topic or broker, as in ``cluster.admin.config_keys``.
        name: topic or broker id; empty: the cluster-wide default of brokers.
        values: new value by key; None to clear the key; ``Appended`` or ``Subtracted`` to change entries of a list.
    """

    resource_type: int
    name: str
    values: Mapping[str, str | None]

    @property
    def subject(self) -> str:
        """Subject of an error about the change."""
        if self.resource_type == BROKER:
            return f"broker {self.name}" if self.name else "the cluster-wide default of brokers"
        return f"topic {self.name}"


@dataclass(frozen=True)
class Failure:
    """Why a change is not known to be made.

    Attributes:
        reason: the error, with the broker's text if it gave one.
        refused: whether the broker answered, so that nothing was changed; False: the change may have been made.
    """

    reason: str
    refused: bool

    @property
    def rule(self) -> str:
        """Rule of an error about the change."""
        if self.refused:
            return f"the configuration was not changed ({self.reason})"
        return f"no answer ({self.reason}), so the configuration was perhaps not changed"


def alter_configs(connection: AdminConnection, changes: Sequence[ConfigChange], timeout_s: float) -> None:
    """Make the changes; other keys stay as they are. A refused change does not stop the others.

    Raises:
        HeadroomError: changes were refused or not answered; names each change with its reason.
    """
    answers = alter_each(connection, changes, timeout_s)
    failures = {c.subject: f for c, f in zip(changes, answers, strict=True) if f is not None}
    if failures:
        rules = "; ".join(dict.fromkeys(failure.rule for failure in failures.values()))
        done = "" if len(failures) == len(changes) else "; the others were changed"
        raise HeadroomError(", ".join(failures), f"{rules}{done}", REMEDY)


def alter_each(connection: AdminConnection, changes: Sequence[ConfigChange], timeout_s: float) -> list[Failure | None]:
    """Make the changes in parallel and return the failure of each; None for a change that was made.

    Args:
        connection: the admin connection.
        changes: the changes, each of another resource.
        timeout_s: longest wait for the answer of one broker, seconds; all brokers together have twice that.
    """
    with ThreadPoolExecutor(_MAX_PARALLEL) as pool:
        return list(pool.map(lambda change: _alter(connection, change, timeout_s), changes))


def _alter(connection: AdminConnection, change: ConfigChange, timeout_s: float) -> Failure | None:
    entries = [(key, _operation(value), value) for key, value in change.values.items()]
    request = IncrementalAlterConfigsRequest(
        resources=[(change.resource_type, change.name, entries)], validate_only=False
    )
    try:
        result = _send(connection, change, request, timeout_s).responses[0]
    except KafkaError as error:
        return Failure(type(error).__name__, refused=False)
    if not result.error_code:
        return None
    name = kafka_errors.for_code(result.error_code).__name__
    return Failure(f"{name}: {result.error_message or 'no reason given'}".rstrip("."), refused=True)


def _operation(value: str | None) -> int:
    if value is None:
        return _DELETE
    if isinstance(value, Appended):
        return _APPEND
    return _SUBTRACT if isinstance(value, Subtracted) else _SET


def _send(connection: AdminConnection, change: ConfigChange, request: Any, timeout_s: float) -> Any:
    """Return the answer to a change.

    Raises:
        KafkaError: no broker answered; the error of the last one that was tried.
    """
    # Only the broker itself accepts a change of its own configuration; others are forwarded to the controller.
    if change.resource_type == BROKER and change.name:
        return connection.send(request, int(change.name), timeout_s)
    try:
        # Sending it to a second broker is safe, because setting a value, or changing entries of a list, is idempotent.
        return BrokerFailover.for_command(connection, timeout_s).send(request).answer
    except NoAnswerError as error:
        failures = list(error.failures.values())
        raise (failures[-1] if failures else NodeNotReadyError("no broker is known")) from None
