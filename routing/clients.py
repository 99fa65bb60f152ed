"""kafka-python's clients as the library needs them: supported versions, refused options, and what is not public."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import kafka
from kafka.future import Future
from kafka.producer.transaction_manager import TransactionState
from kafka.structs import MemberState

from headroom.schemas.errors import HeadroomError

# The library uses the metadata of clients and the batch of an unanswered record, which are not public.
SUPPORTED_VERSIONS = ("3.0.",)
CLIENT = f"kafka-python {kafka.__version__}"


def require_version(version: str = kafka.__version__) -> None:
    """Refuse versions of kafka-python for which the library was not tested.

    Args:
        version: version of kafka-python.

    Raises:
        HeadroomError: it is another one.
    """
    if not version.startswith(SUPPORTED_VERSIONS):
        rule = f"version {version} was not tested with the routing library"
        raise HeadroomError("kafka-python", rule, f"Install one of {', '.join(SUPPORTED_VERSIONS)}x.")


def require_options(subject: str, config: Mapping[str, Any], needed: Mapping[str, Any]) -> None:
    """Refuse a client with other options than are needed.

    Args:
        subject: name of the client, for errors.
        config: its options.
        needed: needed value by option.

    Raises:
        HeadroomError: an option has another value.
    """
    for name, value in needed.items():
        if config[name] != value:
            raise HeadroomError(subject, f"{name} is {config[name]!r}", f"Set {name} to {value!r}.")


def require_two_clusters(origin: Any, target: Any) -> tuple[str, str]:
    """Return the ids of the two clusters.

    Args:
        origin: metadata of a client of the origin.
        target: metadata of a client of the target.

    Raises:
        HeadroomError: they are one cluster, or an id is unknown.
    """
    ids: tuple[str | None, str | None] = origin.cluster_id, target.cluster_id
    if ids[0] is None or ids[1] is None:
        raise HeadroomError("clusters of a router", "a cluster id is unknown", "See that both clusters answer.")
    if ids[0] == ids[1]:
        rule = f"origin and target are the same cluster ({ids[0]})"
        raise HeadroomError("clusters of a router", rule, "Give each client the addresses of its own cluster.")
    return ids[0], ids[1]


class RefreshedMetadata:
    """Waits until the metadata of a client is newer than this object.

    The first answer may be to a request that was on its way already, so two are waited for.
    """

    _ANSWERS = 2

    def __init__(self, metadata: Any) -> None:
        """Ask for it.

        Args:
            metadata: metadata of a client.
        """
        self._metadata = metadata
        self._left = self._ANSWERS
        self._answer = metadata.request_update()

    def is_new(self) -> bool:
        """Return whether it is newer; if not, and there is an answer, it is asked for again."""
        if self._left and self._answer.is_done:
            if self._answer.exception is None:
                self._left -= 1
            if self._left:
                self._answer = self._metadata.request_update()
        return not self._left


def renew_producer_id(producer: Any) -> bool:
    """Let an idempotent producer ask for a producer id again after it has given its own up.

    kafka-python 3.0 gives it up when a record expires (``delivery_timeout_ms``) that it had sent before, and then asks
    for no other one: from then on nothing is sent, also once the cluster answers again, and no future gets an outcome.

    Args:
        producer: producer of kafka-python.

    Returns:
        Whether it had none and did not ask for one.
    """
    manager = getattr(producer, "_transaction_manager", None)
    if manager is None or manager.is_transactional():
        return False
    with manager._lock:
        if manager.has_producer_id() or manager._current_state != TransactionState.READY:
            return False
        manager._current_state = TransactionState.UNINITIALIZED
        return True


def keep_joins(consumer: Any) -> None:
    """Let a consumer complete a rebalance whose answers came between two polls.

    A poll of kafka-python 3.0 continues the join that an earlier one began, but only while that has no result. A result
    that came after the earlier poll had ended is dropped, and the consumer joins again, which starts a rebalance of the
    whole group. So polls that do not wait, or that wait for less time than a join takes, may never get partitions.

    Args:
        consumer: consumer of kafka-python.
    """
    coordinator = getattr(consumer, "_coordinator", None)
    if coordinator is None:
        return
    join = coordinator.join_group_async

    async def continue_or_join(timeout_ms: float | None = None) -> bool:
        ended = coordinator._join_task
        # A member that has left the group meanwhile, or lost its id, has to join again.
        if ended is not None and ended.is_done and coordinator.state is MemberState.REBALANCING:
            kept = coordinator._join_task = Future()

            async def resolve() -> None:
                ended.chain(kept)

            # Runs once the join waits for it, and before a timeout, even one of 0.
            coordinator._net.call_soon(resolve)
        return bool(await join(timeout_ms=timeout_ms))

    coordinator.join_group_async = continue_or_join
