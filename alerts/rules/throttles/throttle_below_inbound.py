"""Rule ``throttle_below_inbound``: a destination's throttle is below what its replicas require."""

from __future__ import annotations

from headroom.alerts.rules.throttles.throttle_below_required import ThrottleBelowRequired
from headroom.schemas.alerts import AlertKind
from headroom.schemas.keys import Role


class ThrottleBelowInbound(ThrottleBelowRequired):
    """A destination may receive less than its replicas require."""

    kind = AlertKind.THROTTLE_BELOW_INBOUND
    role = Role.FOLLOWER
    requires = "it must receive"
    precedence = 1
