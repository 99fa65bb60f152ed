"""A fake admin connection to brokers with dynamic configurations."""

from __future__ import annotations

from types import SimpleNamespace as Answer
from typing import Any

from kafka.errors import KafkaConnectionError, KafkaTimeoutError

from headroom.cluster.admin.config_keys import BROKER

INVALID_REQUEST = 42
_OWN, _DEFAULT = 2, 3


class ConfigBrokers:
    """Brokers 1 to 4 and the cluster-wide default, whose entity has the name ``""``.

    Attributes:
        configs: dynamic configuration by entity.
        down: brokers that cannot be connected to.
        hanging: brokers that answer nothing.
        losing: brokers that make a change, but whose answer does not arrive.
        deaf: brokers that accept a change and do not make it.
        refusing: brokers that refuse a change.
        requests: entity and new value by key, None to delete, of every change that was asked for.
    """

    def __init__(self) -> None:
        self.configs: dict[str, dict[str, str]] = {name: {} for name in ("", "1", "2", "3", "4")}
        self.down: set[int] = set()
        self.hanging: set[int] = set()
        self.losing: set[int] = set()
        self.deaf: set[int] = set()
        self.refusing: set[int] = set()
        self.requests: list[tuple[str, dict[str, str | None]]] = []

    def client(self) -> None:
        """Connect."""

    def close(self) -> None:
        """Close."""

    def nodes(self) -> list[int]:
        return [1, 2, 3, 4]

    def send(self, request: Any, node: int, timeout_s: float) -> Any:
        if node in self.down:
            raise KafkaConnectionError("refused")
        if node in self.hanging:
            raise KafkaTimeoutError(f"after {timeout_s} s")
        return getattr(self, type(request).__name__)(request, node)

    def DescribeConfigsRequest(self, request: Any, node: int) -> Any:
        ((_, name, keys),) = request.resources
        assert name in ("", str(node)), "a broker reports only its own configuration and the default"
        found = [c for key in keys if (c := self._config(name, key)) is not None]
        return Answer(results=[Answer(error_code=0, error_message=None, configs=found)])

    def _config(self, name: str, key: str) -> Any:
        """The value in force with its synonyms, as ``ConfigHelper`` answers: the entity's own, then the default."""
        of = [(source, self.configs[entity].get(key)) for source, entity in ((_OWN, name), (_DEFAULT, ""))]
        synonyms = [Answer(value=value, source=source) for source, value in of[not name :] if value is not None]
        if not synonyms:
            return None
        return Answer(name=key, value=synonyms[0].value, config_source=synonyms[0].source, synonyms=synonyms)

    def IncrementalAlterConfigsRequest(self, request: Any, node: int) -> Any:
        ((kind, name, entries),) = request.resources
        assert kind == BROKER
        self.requests.append((name, {key: value for key, _, value in entries}))
        if name and int(name) in self.refusing:
            return Answer(responses=[Answer(error_code=INVALID_REQUEST, error_message="No.")])
        if node not in self.deaf:
            for key, _, value in entries:
                self.configs[name].pop(key, None)
                self.configs[name] |= {} if value is None else {key: value}
        if node in self.losing:
            raise KafkaTimeoutError("the answer was lost")
        return Answer(responses=[Answer(error_code=0, error_message=None)])
