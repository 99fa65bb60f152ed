"""What is kept of things on brokers, and forgotten with them."""

from __future__ import annotations

from collections.abc import Collection, Hashable
from typing import Generic, TypeVar

_Key = TypeVar("_Key", bound=Hashable)
_Kept = TypeVar("_Kept")


class PerBroker(Generic[_Key, _Kept]):
    """Something kept by broker and key."""

    def __init__(self) -> None:
        self._kept: dict[int, dict[_Key, _Kept]] = {}

    def keep_only(self, broker: int, keys: Collection[_Key]) -> None:
        """Drop what a broker that answered does not have any more."""
        kept = self._kept.get(broker, {})
        for key in [key for key in kept if key not in keys]:
            del kept[key]

    def forget(self, broker: int) -> None:
        """Drop everything of a broker."""
        self._kept.pop(broker, None)

    def forget_keys(self, keys: Collection[_Key]) -> None:
        """Drop some keys on every broker."""
        for kept in self._kept.values():
            for key in keys:
                kept.pop(key, None)

    def keep_brokers(self, brokers: Collection[int]) -> None:
        """Drop brokers that the cluster does not name any more."""
        for broker in [broker for broker in self._kept if broker not in brokers]:
            del self._kept[broker]
