"""What the release of a cluster decides, by the features that its brokers report."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import kafka
from kafka.protocol.metadata import ApiVersionsRequest

from headroom.cluster.connection.admin_connection import AdminConnection
from headroom.cluster.connection.failover import BrokerFailover, NoAnswerError

_METADATA_VERSION = "metadata.version"
# Kafka 4.3.1, MetadataVersion.IBP_4_3_IV0.
_LEVEL_OF_4_3 = 30


def read_waits_for_kept(connection: AdminConnection, timeout_s: float) -> bool | None:
    """Return whether reassignments end only once every replica that stays is in sync, as before Kafka 4.3.

    The active controller decides that, but only brokers can be asked. A feature level that is finalized is supported by
    every controller. Software of 4.3 whose level is not finalized may run on the broker alone.

    Args:
        connection: the admin connection.
        timeout_s: longest wait for the answer of one broker, seconds.

    Returns:
        None if no broker answered, or if the release of the controllers is unknown.

    Raises:
        HeadroomError: no broker could be reached at all.
    """
    request = ApiVersionsRequest(
        client_software_name="kafka-python", client_software_version=kafka.__version__, min_version=3
    )
    try:
        answer = BrokerFailover.for_command(connection, timeout_s).send(request).answer
    except NoAnswerError:
        return None
    return None if answer.error_code else _waits_for_kept(answer)


def _waits_for_kept(answer: Any) -> bool | None:
    finalized = _level((f.name, f.max_version_level) for f in answer.finalized_features or ())
    supported = _level((f.name, f.max_version) for f in answer.supported_features or ())
    if finalized is not None and finalized >= _LEVEL_OF_4_3:
        return False
    # In ZooKeeper mode brokers do not have the feature.
    return None if supported is not None and supported >= _LEVEL_OF_4_3 else True


def _level(features: Iterable[tuple[str, int]]) -> int | None:
    return next((level for name, level in features if name == _METADATA_VERSION), None)
