"""Loads of brokers as text, each in the unit of its resource."""

from __future__ import annotations

from headroom.schemas.text.amounts import rate_text, size_text

RATES = ("network_in", "network_out")
# What a broker does with a resource.
VERBS = {
    "network_in": "receives",
    "network_out": "sends",
    "requests": "serves",
    "disk": "stores",
    "leaders": "leads",
    "replicas": "has",
}
_NOUNS = {"leaders": "partitions", "replicas": "replicas"}


def load_text(resource: str, load: float) -> str:
    """Return a load such as ``5.60 MB/s``, ``1.2 GB`` or ``120 replicas``.

    Args:
        resource: resource, as in ``gold/broker_load``.
        load: load in the unit of the resource.
    """
    if resource in RATES:
        return rate_text(load)
    if resource == "disk":
        return size_text(load)
    return f"{load:,.0f} requests/s" if resource == "requests" else f"{load:,.0f} {_NOUNS[resource]}"
