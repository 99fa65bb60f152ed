"""Network failures: proxies between the watch and Kafka, one Jolokia agent, and the receivers."""

from __future__ import annotations

import time
from dataclasses import dataclass

from benchmarks.groups.outages.context import ScenarioContext
from benchmarks.groups.outages.scenarios.scenario import Arrangement, Scenario

# Longer than the timeout of a request to a receiver.
_RECEIVERS_S = 12.0


@dataclass(frozen=True, kw_only=True)
class Network(Scenario):
    """A proxy gets an order, and passes everything on again at the end.

    Attributes:
        proxy: name of the proxy: what is behind it.
        order: order of the proxy.
        blocks_kafka: whether the watch cannot reach Kafka meanwhile.
    """

    proxy: str
    order: str
    blocks_kafka: bool = False
    arrangement: Arrangement = Arrangement.PROXIED

    def begin(self, context: ScenarioContext) -> None:
        """Send the order to the proxy."""
        if self.blocks_kafka:
            context.unreachable_since_s = time.monotonic()
        context.proxies[self.proxy].order(self.order)


SCENARIOS: tuple[Scenario, ...] = (
    Network(name="agent_cut", title="agent of one broker out of reach for 8 s", proxy="jolokia", order="cut"),
    Network(name="agent_stalls", title="agent of one broker does not answer for 8 s", proxy="jolokia", order="stall"),
    Network(name="agent_drips", title="agent of one broker answers byte by byte", proxy="jolokia", order="drip"),
    Network(name="agent_garbled", title="answers of one agent are garbled", proxy="jolokia", order="garble"),
    Network(
        name="agent_absurd",
        title="one log end offset of one agent is the least number of 64 bits",
        proxy="jolokia",
        order="absurd",
    ),
    Network(name="receivers_cut", title="receivers out of reach for 8 s", proxy="receivers", order="cut"),
    Network(
        name="receivers_stall",
        title="receivers accept connections without answering for 12 s",
        proxy="receivers",
        order="stall",
        length_s=_RECEIVERS_S,
    ),
    Network(
        name="kafka_cut",
        title="Kafka out of reach of the watch for 8 s",
        proxy="kafka",
        order="cut",
        blocks_kafka=True,
    ),
    Network(
        name="kafka_stalls",
        title="connections of the watch to Kafka stall for 8 s",
        proxy="kafka",
        order="stall",
        blocks_kafka=True,
    ),
    Network(
        name="kafka_delayed",
        title="answers of Kafka to the watch come 300 ms late",
        proxy="kafka",
        order="delay 0.3",
        length_s=10.0,
    ),
)
