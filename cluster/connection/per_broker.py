"""Base of per-broker state: values by broker and key, dropped with their broker."""

from __future__ import annotations

from collections.abc import Collection, Hashable
from typing import Generic, TypeVar

_Key = TypeVar("_Key", bound=Hashable)
_Kept = TypeVar("_Kept")


class PerBroker(Generic[_Key, _Kept]):
    """Values by broker and key."""

    def __init__(self) -> None:
        self._kept: dict[int, dict[_Key, _Kept]] = {}

    def keep_only(self, broker: int, keys: Collection[_Key]) -> None:
        """Drop the keys that a broker no longer reports."""
        kept = self._kept.get(broker, {})
        for key in [key for key in kept if key not in keys]:
            del kept[key]

    def forget(self, broker: int) -> None:
        """Drop all values of one broker."""
        self._kept.pop(broker, None)

    def forget_keys(self, keys: Collection[_Key]) -> None:
        """Drop the given keys on every broker."""
        for kept in self._kept.values():
            for key in keys:
                kept.pop(key, None)

    def keep_brokers(self, brokers: Collection[int]) -> None:
        """Drop the brokers that are not among the given ones."""
        for broker in [broker for broker in self._kept if broker not in brokers]:
            del self._kept[broker]
