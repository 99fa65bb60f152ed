"""A broker that asks for a password."""

from __future__ import annotations

import random

from headroom.cluster.embedded import BrokerOptions
from headroom.cluster.embedded.layout import HOST, BrokerPorts, busy_ports, ports_from

_BASES = range(15_000, 31_000, 100)


def free_base() -> int:
    """Return a base port for one broker whose SASL listener has a free port too."""
    # At random, so that another process that chooses now chooses another one.
    bases = random.SystemRandom().sample(_BASES, len(_BASES))
    return next(b for b in bases if not busy_ports([*ports_from(b, 1).values(), BrokerPorts(b + 2, b + 3, b + 4)]))


def with_sasl(base: int, password: str) -> tuple[BrokerOptions, str]:
    """Return the options of a broker with one listener more, for SASL, and its address.

    The other listener stays for those who start the broker. The user is ``headroom``.

    Args:
        base: base port.
        password: of the user.
    """
    own = ports_from(base, 1)[1]
    listeners = {"PLAINTEXT": own.client, "SASL_PLAINTEXT": base + 2, "CONTROLLER": own.controller}
    shown = [f"{name}://{HOST}:{port}" for name, port in listeners.items()]
    login = "org.apache.kafka.common.security.plain.PlainLoginModule required"
    properties = {
        "listeners": ",".join(shown),
        "advertised.listeners": ",".join(shown[:2]),
        "listener.security.protocol.map": "CONTROLLER:PLAINTEXT,PLAINTEXT:PLAINTEXT,SASL_PLAINTEXT:SASL_PLAINTEXT",
        "sasl.enabled.mechanisms": "PLAIN",
        "listener.name.sasl_plaintext.plain.sasl.jaas.config": f'{login} user_headroom="{password}";',
    }
    return BrokerOptions(properties=properties), f"{HOST}:{base + 2}"
