"""Loads as text, each in the unit of its resource."""

from __future__ import annotations

import math

from alerts.text.formatting import size
from cli.common.output import UNKNOWN, mb_per_s
from planning.balance.model import RATES, Resource

RESOURCE_NAMES = {resource: resource.name.lower().replace("_", " ") for resource in Resource}


def load_text(resource: Resource, load: float | None) -> str:
    """Return a load as text; ``unknown`` for None or NaN."""
    if load is None or math.isnan(load):
        return UNKNOWN
    if resource in RATES:
        return mb_per_s(load)
    if resource is Resource.DISK:
        return size(load)
    return f"{load:,.0f}/s" if resource is Resource.REQUESTS else f"{load:,.0f}"


def finite(value: float) -> float | None:
    """Return a number for JSON; None if it is infinite or NaN."""
    return float(value) if math.isfinite(value) else None
