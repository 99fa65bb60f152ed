"""Loads as text, each in the unit of its resource."""

from __future__ import annotations

import math

from headroom.planning.balance.model import RATES, Resource
from headroom.schemas.text.amounts import UNKNOWN, rate_text, size_text

RESOURCE_NAMES = {resource: resource.name.lower().replace("_", " ") for resource in Resource}


def load_text(resource: Resource, load: float | None) -> str:
    """Return a load as text; ``unknown`` for None or NaN."""
    if load is None or math.isnan(load):
        return UNKNOWN
    if resource in RATES:
        return rate_text(load)
    if resource is Resource.DISK:
        return size_text(load)
    return f"{load:,.0f}/s" if resource is Resource.REQUESTS else f"{load:,.0f}"


def finite(value: float) -> float | None:
    """Return a number for JSON; None if it is infinite or NaN."""
    return float(value) if math.isfinite(value) else None
