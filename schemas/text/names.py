"""Names of what a text is about."""

from __future__ import annotations

from collections.abc import Sequence


def broker_names(brokers: Sequence[int], most: int | None = None) -> str:
    """Return brokers as text: ``broker 1``, ``brokers 1, 2``, or ``brokers 1, 2 and more``.

    Args:
        brokers: broker ids, in the order in which they are named.
        most: number of brokers that are named; all if None.
    """
    named = brokers[:most]
    more = " and more" if len(named) < len(brokers) else ""
    return f"broker{'s' if len(brokers) > 1 else ''} {', '.join(map(str, named))}{more}"
