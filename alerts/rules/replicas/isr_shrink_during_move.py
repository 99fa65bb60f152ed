"""Rule ``isr_shrink_during_move``: replicas of moving partitions are out of the ISR."""

from __future__ import annotations

from headroom.alerts.rules.causes import BrokerPrecedence
from headroom.alerts.rules.replicas.out_of_sync import OutOfSyncReplicas
from headroom.schemas.alerts import AlertKind


class IsrShrinkDuringMove(OutOfSyncReplicas):
    """A broker has out-of-sync replicas of partitions that are in a reassignment."""

    kind = AlertKind.ISR_SHRINK_DURING_MOVE
    moving = True
    qualifier = "of partitions that are moving, "
    precedence = BrokerPrecedence.ISR_SHRINK
