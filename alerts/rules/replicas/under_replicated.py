"""Rule ``under_replicated``: replicas of partitions that do not move are out of the ISR."""

from __future__ import annotations

from headroom.alerts.rules.causes import BrokerPrecedence
from headroom.alerts.rules.replicas.out_of_sync import OutOfSyncReplicas
from headroom.schemas.alerts import AlertKind


class UnderReplicated(OutOfSyncReplicas):
    """A broker has out-of-sync replicas of partitions that do not move."""

    kind = AlertKind.UNDER_REPLICATED
    moving = False
    qualifier = ""
    precedence = BrokerPrecedence.UNDER_REPLICATED
