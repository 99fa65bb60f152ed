"""Connections to Kafka: client options from the settings, and an admin connection that asks one chosen broker."""

from __future__ import annotations

import contextlib
import logging
import random
import threading
import time
from concurrent.futures import Future
from typing import Any

from kafka import KafkaAdminClient
from kafka.errors import KafkaConnectionError, KafkaError, SaslAuthenticationFailedError, UnknownBrokerIdError
from kafka.protocol.metadata import CoordinatorType, MetadataRequest

from headroom.cluster.connection.bootstrap import connect_to_first
from headroom.cluster.connection.new_client import new_client
from headroom.cluster.connection.refusal import NO_ANSWER, Refusal, no_answer, why_refused
from headroom.cluster.secrets import sasl_password, section_of
from headroom.schemas.config import KafkaSettings, SecurityProtocol, Settings
from headroom.schemas.errors import HeadroomError
from headroom.schemas.threads import run_in_daemon_thread

log = logging.getLogger(__name__)
CLIENT_ID = "headroom"
_SASL = (SecurityProtocol.SASL_PLAINTEXT, SecurityProtocol.SASL_SSL)
# Minimum request timeout, after which an unanswered request no longer counts against its connection.
_GIVE_UP_MS = 2000
# After this time without any answer a new client is connected.
_SILENCE_S = 60.0
_DISCONNECTS = (KafkaConnectionError, SaslAuthenticationFailedError)
# How many brokers to greet at the start, and how long to wait for one of them.
_GREETINGS, _GREETING_S = 3, 1.0
# Reconnect to a restarted broker within about 1 s; kafka-python backs off for up to 30 s.
_RECONNECT = {"reconnect_backoff_ms": 50, "reconnect_backoff_max_ms": 1000}


def connection_options(kafka: KafkaSettings, section: str = "cluster") -> dict[str, Any]:
    """Return the keyword arguments that any kafka-python client needs to connect.

    Raises:
        HeadroomError: no bootstrap servers, or a password file cannot be read.
    """
    servers = [server.strip() for server in kafka.bootstrap_servers.split(",") if server.strip()]
    if not servers:
        raise HeadroomError(f"{section}.bootstrap_servers", "is not set", "Give host:port of one or more brokers.")
    options: dict[str, Any] = {
        "bootstrap_servers": servers,
        "client_id": CLIENT_ID,
        "security_protocol": kafka.security_protocol.value,
        "request_timeout_ms": kafka.request_timeout_ms,
        **_RECONNECT,
    }
    return options | _sasl(kafka) | _tls(kafka)


def _sasl(kafka: KafkaSettings) -> dict[str, Any]:
    if kafka.security_protocol not in _SASL:
        return {}
    return {
        "sasl_mechanism": kafka.sasl_mechanism,
        "sasl_plain_username": kafka.sasl_username,
        "sasl_plain_password": sasl_password(kafka),
    }


def _tls(kafka: KafkaSettings) -> dict[str, Any]:
    if kafka.security_protocol not in (SecurityProtocol.SSL, SecurityProtocol.SASL_SSL):
        return {}
    return {
        "ssl_cafile": kafka.ssl_cafile,
        "ssl_certfile": kafka.ssl_certfile,
        "ssl_keyfile": kafka.ssl_keyfile,
        # Without a password OpenSSL prompts at the terminal for that of an encrypted key.
        "ssl_password": kafka.ssl_key_password or "",
        "ssl_check_hostname": kafka.ssl_check_hostname,
    }


def ticks_options(settings: Settings) -> dict[str, Any]:
    """Return the client options for the cluster of the ticks topic: its own, otherwise those of the watched cluster.

    Raises:
        HeadroomError: no bootstrap servers, or a password file cannot be read.
    """
    kafka = settings.ticks_cluster()
    return connection_options(kafka, section_of(kafka))


class AdminConnection:
    """Connection to the brokers' admin API that sends a request to one chosen broker with its own timeout.

    kafka-python picks the broker itself and waits the whole request timeout, so a broker that hangs would cost a tick.
    The client is created at first use and may be used from several threads. With SASL a new one takes its place if a
    broker ends the connection and the password was changed meanwhile, or if all brokers end it: a broker that refuses a
    password looks like that. Connecting again gives the reason.

    kafka-python asks the bootstrap servers once. If no known broker answers for a minute, others may have taken their
    place, so a new client is connected in the background. The old one stays until then.
    """

    def __init__(self, kafka: KafkaSettings) -> None:
        self._kafka = kafka
        self._client: KafkaAdminClient | None = None
        self._forwarding: AdminConnection | None = None
        self._greeted: int | None = None
        self._creating = threading.RLock()
        # Brokers that ended the connection since their last answer.
        self._disconnected: set[int | str] = set()
        # First request without an answer since the last answer or the last new client, monotonic seconds.
        self._silent_since_s: float | None = None
        self._connecting: Future[None] | None = None

    @property
    def forwarding(self) -> AdminConnection:
        """A second connection, for requests that a broker forwards to the controller.

        A broker answers the requests of one connection in order. While the controller hangs, a forwarded request would
        block every later one.
        """
        if self._forwarding is None:
            self._forwarding = AdminConnection(self._kafka)
        return self._forwarding

    def client(self) -> KafkaAdminClient:
        """Return the connected kafka-python client.

        Raises:
            HeadroomError: no broker could be reached, or it refused the connection.
        """
        with self._creating:
            if self._client is None:
                self._client, self._silent_since_s = _connect(self._kafka), None
                self._greet(self._client)
            return self._client

    def _greet(self, client: KafkaAdminClient) -> None:
        """Connect to a broker that answers, because the client sends its own requests to a connected one."""
        nodes = self.nodes()
        for node in random.sample(nodes, min(_GREETINGS, len(nodes))):
            with contextlib.suppress(KafkaError):
                _exchange(client, MetadataRequest(topics=[], allow_auto_topic_creation=False), node, _GREETING_S)
                # Any KRaft broker forwards requests to the controller; the client looks the controller up after a
                # NotController answer. The controller named in the metadata may be the broker that hangs.
                self._greeted = client._controller_id = node
                return

    def forget_coordinators(self) -> None:
        """Let the coordinators of groups be looked up again, after one of them has not answered.

        kafka-python keeps them for good: one that is down, or is another one's since, would be asked again and again.
        """
        with self._creating:
            if self._client is not None:
                self._client._manager.cluster._coordinators.clear()

    def add_coordinator(self, group: str, found: Any) -> str:
        """Return the node of a second connection to a group's coordinator, for requests that it answers late.

        Args:
            group: id of the group.
            found: a broker's answer that names the coordinator.
        """
        return str(self.client()._manager.cluster.add_coordinator(found, CoordinatorType.GROUP, group))

    def disconnect(self, node: int | str) -> None:
        """End the connection to a node; the next request to it opens another one."""
        with self._creating:
            if self._client is not None:
                manager = self._client._manager
                manager.call_soon(lambda: manager.close(node))

    def nodes(self) -> list[int]:
        """Return the ids of the known brokers; the one that answered at the start comes first."""
        nodes = [broker.node_id for broker in self.client()._manager.cluster.brokers()]
        return sorted(nodes, key=lambda node: (node != self._greeted, node))

    def send(self, request: Any, node: int | str, timeout_s: float) -> Any:
        """Return the answer of one broker; of a coordinator, if the node is one of ``add_coordinator``.

        Raises:
            KafkaError: the broker is unknown or out of reach, or did not answer within ``timeout_s`` seconds.
        """
        client = self.client()
        try:
            answer = _exchange(client, request, node, timeout_s)
        except KafkaError as error:
            if isinstance(error, UnknownBrokerIdError):
                client._manager.cluster.request_update()
            elif isinstance(error, _DISCONNECTS) and self._kafka.security_protocol in _SASL:
                self._note_disconnect(client, node)
            self._connect_again_if_silent(client)
            raise
        self._disconnected.discard(node)
        self._silent_since_s = None
        return answer

    def _connect_again_if_silent(self, client: KafkaAdminClient) -> None:
        """Begin to connect a new client if no broker has answered for long."""
        now_s = time.monotonic()
        if self._silent_since_s is None:
            self._silent_since_s = now_s
        if now_s - self._silent_since_s < _SILENCE_S or (self._connecting and not self._connecting.done()):
            return
        self._silent_since_s = now_s
        self._connecting = run_in_daemon_thread("connect-again", lambda: self._replace(client, now_s))

    def _replace(self, silent: KafkaAdminClient, since_s: float) -> None:
        """Connect a new client, and use it unless the silent one has got an answer or was closed meanwhile."""
        unused = new = _connect(self._kafka)
        with self._creating:
            if self._client is silent and self._silent_since_s == since_s:
                log.warning(
                    "%s: brokers are looked up again, because none of the known ones answers", _subject(self._kafka)
                )
                self._client, unused = new, silent
                self._greeted = self._silent_since_s = None
                self._disconnected.clear()
                self._greet(new)
        unused.close()

    def _note_disconnect(self, client: KafkaAdminClient, node: int | str) -> None:
        """Close the client if its password is not the one of now, or if all brokers may have refused it."""
        # The client would keep a refusal, and never ask the broker again.
        client._manager._auth_failures.pop(node, None)
        self._disconnected.add(node)
        has_changed = client.config.get("sasl_plain_password") != sasl_password(self._kafka)
        if has_changed:
            log.warning("%s: the password has been changed, and is read again", _subject(self._kafka))
        if has_changed or self._disconnected >= {broker.node_id for broker in client._manager.cluster.brokers()}:
            self._drop(client)

    def _drop(self, client: KafkaAdminClient) -> None:
        """Close a client, unless another thread has done so."""
        with self._creating:
            if self._client is client:
                self._disconnected.clear()
                self.close()

    def close(self) -> None:
        """Close the connections; the next request opens them again."""
        client, self._client = self._client, None
        forwarding, self._forwarding = self._forwarding, None
        if client is not None:
            client.close()
        if forwarding is not None:
            forwarding.close()


def _exchange(client: KafkaAdminClient, request: Any, node: int | str, timeout_s: float) -> Any:
    manager = client._manager
    timeout_ms = max(1, int(timeout_s * 1000))

    async def exchange() -> Any:
        # wait_for, because a request on a connection that is still being set up has no timeout of its own.
        # The longer request timeout drops unanswered requests later: they count against the connection until then.
        answer = manager.send(request, node_id=node, request_timeout_ms=max(_GIVE_UP_MS, 2 * timeout_ms))
        return await manager.wait_for(answer, timeout_ms)

    return manager.run(exchange)


def _connect(kafka: KafkaSettings) -> KafkaAdminClient:
    section = section_of(kafka)
    options = connection_options(kafka, section)
    servers = options.pop("bootstrap_servers")
    limits = {"bootstrap_timeout_ms": kafka.request_timeout_ms}
    try:
        return connect_to_first(
            servers,
            lambda server: new_client(KafkaAdminClient, bootstrap_servers=[server], **options, **limits),
            KafkaAdminClient.close,
            kafka.request_timeout_ms / 1000,
        )
    except (KafkaError, OSError, ValueError) as error:
        refusal = why_refused(kafka, options, servers, section) or _unexplained_refusal(kafka, error)
        raise HeadroomError(_subject(kafka), refusal.rule, refusal.remedy) from None


def _unexplained_refusal(kafka: KafkaSettings, error: Exception) -> Refusal:
    """Return the refusal for an error of a client although a broker takes the same connection now."""
    if isinstance(error, NO_ANSWER):
        return no_answer(kafka.request_timeout_ms / 1000)
    rule = f"no broker could be reached ({type(error).__name__})"
    return Refusal(rule, "Check the address, that the brokers are up, and the security settings.")


def _subject(kafka: KafkaSettings) -> str:
    return f"{section_of(kafka)}.bootstrap_servers {kafka.bootstrap_servers}"
