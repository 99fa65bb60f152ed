"""Why a broker refuses a connection, in words: each cause has a listener of its own."""

from __future__ import annotations

import socket
import ssl
import time
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from kafka.errors import KafkaTimeoutError

from headroom.cluster.connection import admin_connection as client
from headroom.cluster.connection import handshake, refusal
from headroom.cluster.connection.admin_connection import connection_options
from headroom.cluster.connection.refusal import Refusal, why_refused
from headroom.schemas.config import ClusterSettings, SecurityProtocol, TicksSettings
from headroom.schemas.errors import HeadroomError
from tests.support.certificates import Certificate, make_certificate
from tests.unit.fakes.bad_servers import bad_server, dripping, saying
from tests.unit.fakes.hostile import ACTING
from tests.unit.fakes.kafka_listeners import Listener, listening

USERS = {"headroom": "right-password"}
LOGIN: dict[str, Any] = {"sasl_mechanism": "PLAIN", "sasl_username": "headroom", "sasl_password": "right-password"}


@pytest.fixture(autouse=True)
def _patient(monkeypatch: pytest.MonkeyPatch) -> None:
    # Listeners of these tests answer at once, but for a busy machine.
    monkeypatch.setattr(refusal, "TIMEOUT_S", 60.0)


@pytest.fixture(scope="module")
def certificate(tmp_path_factory: pytest.TempPathFactory) -> Certificate:
    return make_certificate(tmp_path_factory.mktemp("certificate"), "broker")


@pytest.fixture(scope="module")
def of_another_host(tmp_path_factory: pytest.TempPathFactory) -> Certificate:
    return make_certificate(tmp_path_factory.mktemp("certificate"), "elsewhere", "DNS:elsewhere")


def server_tls(certificate: Certificate, trusts: Path | None = None) -> ssl.SSLContext:
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(certificate.pem, certificate.key)
    if trusts is not None:
        context.verify_mode = ssl.CERT_REQUIRED
        context.load_verify_locations(trusts)
    return context


def asked(server: str, protocol: str = "PLAINTEXT", **more: Any) -> Refusal | None:
    kafka = ClusterSettings(server, SecurityProtocol(protocol), **more)
    options = connection_options(kafka)
    return why_refused(kafka, options, options["bootstrap_servers"], "cluster")


def refusal_text(server: str, protocol: str = "PLAINTEXT", **more: Any) -> str:
    """Return the refusal of a server, with its address replaced by SERVER."""
    found = asked(server, protocol, **more)
    assert found is not None
    return f"{found.rule}. {found.remedy}".replace(server, "SERVER")


def test_nothing_is_wrong_with_a_listener_that_takes_what_is_configured(certificate: Certificate) -> None:
    tls = server_tls(certificate)
    with (
        listening(Listener()) as plain,
        listening(Listener(USERS)) as sasl,
        listening(Listener(USERS, tls=tls)) as both,
    ):
        assert asked(plain) is None
        assert asked(sasl, "SASL_PLAINTEXT", **LOGIN) is None
        assert asked(both, "SASL_SSL", ssl_cafile=str(certificate.pem), **LOGIN) is None


@pytest.mark.parametrize(
    ("answer", "reason"),
    [
        ("Invalid username or password", "Invalid username or password"),
        ("no wrong-password here", "no *** here"),
        (ACTING, "orders\\x1b[2J"),
        (None, "it ended the connection"),
    ],
)
def test_a_wrong_password_is_named_with_user_and_mechanism_and_never_itself(answer: str | None, reason: str) -> None:
    with listening(Listener(USERS, refusal=answer)) as server:
        text = refusal_text(server, "SASL_PLAINTEXT", **{**LOGIN, "sasl_password": "wrong-password"})
    assert text.startswith(f"SERVER refused to authenticate user headroom by PLAIN ({reason}")
    assert "cluster.sasl_username" in text
    assert "wrong-password" not in text
    assert text.isprintable()


def test_a_mechanism_that_is_not_offered_is_named_with_those_that_are() -> None:
    with listening(Listener(USERS, ("PLAIN", "GSSAPI"))) as server:
        text = refusal_text(server, "SASL_PLAINTEXT", **{**LOGIN, "sasl_mechanism": "SCRAM-SHA-512"})
    assert text == (
        "SERVER does not offer the mechanism SCRAM-SHA-512; it offers PLAIN, GSSAPI. "
        "Set cluster.sasl_mechanism to one of these."
    )


def test_a_certificate_that_is_not_trusted_is_named_with_the_authorities(
    certificate: Certificate, of_another_host: Certificate
) -> None:
    with listening(Listener(tls=server_tls(certificate))) as server:
        by_system = refusal_text(server, "SSL")
        by_file = refusal_text(server, "SSL", ssl_cafile=str(of_another_host.pem))
    assert by_system.startswith("the certificate of SERVER is not trusted by this system's authorities: self")
    assert f"not trusted by cluster.ssl_cafile ({of_another_host.pem}): self" in by_file


def test_a_certificate_of_another_host_is_named_so(of_another_host: Certificate) -> None:
    with listening(Listener(tls=server_tls(of_another_host))) as server:
        text = refusal_text(server, "SSL", ssl_cafile=str(of_another_host.pem))
        unchecked = asked(server, "SSL", ssl_cafile=str(of_another_host.pem), ssl_check_hostname=False)
    assert text.startswith("the certificate of SERVER is not for this host (IP address mismatch")
    assert "advertised.listeners" in text
    assert unchecked is None


@pytest.mark.parametrize(("protocol", "more"), [("PLAINTEXT", {}), ("SASL_PLAINTEXT", LOGIN)])
def test_a_port_of_tls_that_is_asked_in_plain_is_named_so(
    protocol: str, more: dict[str, Any], certificate: Certificate
) -> None:
    with listening(Listener(USERS, tls=server_tls(certificate))) as server:
        text = refusal_text(server, protocol, **more)
    assert text.startswith(f"SERVER speaks TLS, but cluster.security_protocol is {protocol}. Set it to SSL")


@pytest.mark.parametrize(("protocol", "more"), [("SSL", {}), ("SASL_SSL", LOGIN)])
def test_a_port_without_tls_that_is_asked_by_it_is_named_so_and_gets_no_password(
    protocol: str, more: dict[str, Any]
) -> None:
    listener = Listener(USERS)
    with listening(listener) as server:
        text = refusal_text(server, protocol, **more)
    assert text.startswith(f"SERVER does not speak TLS, but cluster.security_protocol is {protocol}. Set it without")
    assert listener.tokens == []


def test_sasl_that_is_missing_or_too_much_is_named(certificate: Certificate) -> None:
    secured = {"ssl_cafile": str(certificate.pem)}
    tls = server_tls(certificate)
    with listening(Listener(USERS)) as sasl, listening(Listener()) as plain, listening(Listener(tls=tls)) as without:
        assert refusal_text(sasl).startswith(
            "SERVER asks for SASL (PLAIN), but cluster.security_protocol is PLAINTEXT."
        )
        assert "Set it to SASL_PLAINTEXT" in refusal_text(sasl)
        assert refusal_text(plain, "SASL_PLAINTEXT", **LOGIN).startswith("SERVER does not use SASL, but")
        assert "Set it to SSL" in refusal_text(without, "SASL_SSL", **secured, **LOGIN)


def test_a_certificate_of_the_client_that_is_missing_or_not_trusted_is_named(
    certificate: Certificate, of_another_host: Certificate
) -> None:
    secured = {"ssl_cafile": str(certificate.pem)}
    other = {"ssl_certfile": str(of_another_host.pem), "ssl_keyfile": str(of_another_host.key)}
    own = {"ssl_certfile": str(certificate.pem), "ssl_keyfile": str(certificate.key)}
    with listening(Listener(tls=server_tls(certificate, trusts=certificate.pem))) as server:
        assert refusal_text(server, "SSL", **secured).startswith("SERVER asks for a certificate of the client (")
        assert f"refused the client's certificate {of_another_host.pem}" in refusal_text(
            server, "SSL", **secured, **other
        )
        assert asked(server, "SSL", **secured, **own) is None


def test_what_is_out_of_reach_is_named_server_by_server() -> None:
    found = asked("127.0.0.1:1,no.such.host.invalid:9092")
    assert found is not None
    assert found.rule == (
        "no broker could be reached: 127.0.0.1:1: connection refused; no.such.host.invalid:9092: host name unknown"
    )


def test_the_answer_of_one_server_is_reported_rather_than_that_another_is_down() -> None:
    with listening(Listener(USERS)) as server:
        found = asked(f"127.0.0.1:1,{server}")
    assert found is not None
    assert "asks for SASL" in found.rule


@pytest.mark.parametrize(
    "handler",
    [
        pytest.param(saying(b"HTTP/1.1 400 Bad Request\r\n\r\n"), id="http"),
        pytest.param(saying(b"\x00\x00\x00\x06\x00\x00\x00\x01\x00"), id="half an answer"),
        pytest.param(saying(b"\x00\x00\x00\x0a\x00\x00\x00\x01\x00\x00\x00\x00\x00\x09"), id="names that are missing"),
        pytest.param(saying(b"\x7f\xff\xff\xff\x00\x00\x00\x01"), id="two gigabytes"),
        pytest.param(saying(b""), id="nothing"),
        pytest.param(dripping(b"", b"\x00"), id="drips"),
    ],
)
def test_a_server_that_is_no_broker_is_reported_in_time(handler: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(refusal, "TIMEOUT_S", 0.5)
    began_s = time.monotonic()
    with bad_server(handler, reads=False) as server:
        text = refusal_text(f"127.0.0.1:{server.port}")
    assert time.monotonic() - began_s < 60
    assert "gave no answer of Kafka's" in text or "connected, but no answer within 0.5 s" in text


@pytest.mark.parametrize(
    ("protocol", "more"), [("PLAINTEXT", {}), ("SASL_PLAINTEXT", LOGIN), ("SSL", {}), ("SASL_SSL", LOGIN)]
)
def test_a_broker_that_hangs_is_reported_as_such_whatever_the_protocol(
    protocol: str, more: dict[str, Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(refusal, "TIMEOUT_S", 0.2)
    # The kernel takes the connection, as for a process that was stopped.
    with socket.create_server(("127.0.0.1", 0)) as hanging:
        text = refusal_text(f"127.0.0.1:{hanging.getsockname()[1]}", protocol, **more)
    assert text.startswith(
        "no broker could be reached: SERVER: connected, but no answer within 0.2 s. See whether a broker hangs"
    )
    assert [word for word in ("TLS", "ssl", "security") if word in text] == []


def test_a_machine_that_does_not_answer_at_all_is_distinguished_from_a_broker_that_hangs(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    def unanswered(*_: object) -> None:
        raise TimeoutError("timed out")

    monkeypatch.setattr(handshake.socket, "create_connection", unanswered)
    text = refusal_text("127.0.0.1:9092")
    assert text == (
        "no broker could be reached: SERVER: no connection within 60 s. "
        "Check that its machine is up, then for a firewall on the way."
    )


def test_servers_that_fail_for_different_reasons_get_a_remedy_each(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(refusal, "TIMEOUT_S", 0.2)
    with socket.create_server(("127.0.0.1", 0)) as hanging:
        found = asked(f"127.0.0.1:1,127.0.0.1:{hanging.getsockname()[1]},127.0.0.1:1")
    assert found is not None
    assert found.remedy == f"Check that the brokers are up, and the port. {refusal.HANGS}"


def test_a_client_without_an_answer_from_a_broker_that_takes_connections_blames_no_security_setting(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    def late(*_: object) -> None:
        raise KafkaTimeoutError("no bootstrap server answered")

    monkeypatch.setattr(client, "connect_to_first", late)
    with listening(Listener()) as server, pytest.raises(HeadroomError) as error:
        client.AdminConnection(ClusterSettings(server, request_timeout_ms=4000)).client()
    assert error.value.rule == "a broker took the connection but did not answer within 4 s"
    assert error.value.remedy == refusal.HANGS


def test_a_connection_that_fails_reports_the_reason(monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(*_: object) -> None:
        raise OSError("socket disconnected")

    monkeypatch.setattr(client, "connect_to_first", refuse)
    wrong = {**LOGIN, "sasl_password": "wrong-password"}
    with listening(Listener(USERS)) as server:
        settings: Callable[..., Any] = lambda kind: kind(server, SecurityProtocol.SASL_PLAINTEXT, **wrong)  # noqa: E731
        with pytest.raises(HeadroomError) as error:
            client.AdminConnection(settings(ClusterSettings)).client()
        with pytest.raises(HeadroomError) as of_ticks:
            client.AdminConnection(settings(TicksSettings)).client()
        with pytest.raises(HeadroomError) as of_nothing:
            client.AdminConnection(replace(settings(ClusterSettings), sasl_password="right-password")).client()
    assert error.value.subject == f"cluster.bootstrap_servers {server}"
    assert "refused to authenticate user headroom by PLAIN" in error.value.rule
    assert of_ticks.value.subject == f"ticks.bootstrap_servers {server}"
    assert "ticks.sasl_username" in of_ticks.value.remedy
    assert of_nothing.value.rule == "no broker could be reached (OSError)"
