"""Rule ``throttle_below_leader_write``: a leader's throttle is below what its followers require."""

from __future__ import annotations

from headroom.alerts.rules.throttles.throttle_below_required import ThrottleBelowRequired
from headroom.schemas.alerts import AlertKind
from headroom.schemas.keys import Role


class ThrottleBelowLeaderWrite(ThrottleBelowRequired):
    """A leader may send less than its followers require."""

    kind = AlertKind.THROTTLE_BELOW_LEADER_WRITE
    role = Role.LEADER
    requires = "its leaders must send"
    precedence = 0
