"""Diagnoses why a broker refuses a connection: authentication, trust, a TLS mismatch, or no listener."""

from __future__ import annotations

import socket
import ssl
import struct
from concurrent.futures import ThreadPoolExecutor
from typing import Any, NamedTuple

from kafka.errors import KafkaTimeoutError, RequestTimedOutError
from kafka.net.sasl import get_sasl_mechanism
from kafka.net.transport import KafkaSSLTransport

from headroom.cluster.connection.handshake import NoKafkaError, Offer, SilentServerError, Wire, wire
from headroom.schemas.config import KafkaSettings, SecurityProtocol
from headroom.schemas.text import one_line

TIMEOUT_S = 3.0
# Errors of kafka-python for an answer that did not come in time.
NO_ANSWER = (KafkaTimeoutError, RequestTimedOutError)
# A port with or without TLS ends a connection of the other kind at once, so silence has nothing to do with TLS.
HANGS = (
    "See whether a broker hangs or its machine is overloaded; then what is on the way: a load balancer without a "
    "broker, a firewall, or another service at this port."
)
# Sent if no mechanism is configured: only whether and how the listener answers matters.
_ANY_MECHANISM = "PLAIN"
_SASL = (SecurityProtocol.SASL_PLAINTEXT, SecurityProtocol.SASL_SSL)
_TLS = (SecurityProtocol.SSL, SecurityProtocol.SASL_SSL)
# TLS alerts of a broker that requires a client certificate, or another one.
_CLIENT_CERTIFICATE = ("BAD_CERTIFICATE", "CERTIFICATE_REQUIRED", "CERTIFICATE_UNKNOWN", "UNKNOWN_CA")
# Verification errors for a host name, email or address that the certificate does not carry (X509_V_ERR_*_MISMATCH).
_MISMATCH = (62, 63, 64)


class Refusal(NamedTuple):
    """Reason why a connection fails, with a remedy.

    Attributes:
        rule: the violated expectation; names the server.
        remedy: the operator's next step.
        reached: whether the server answered; such a reason takes precedence over an unreachable server.
    """

    rule: str
    remedy: str
    reached: bool = True


def why_refused(kafka: KafkaSettings, options: dict[str, Any], servers: list[str], section: str) -> Refusal | None:
    """Return why no server accepts a connection; None if one of them accepts it now.

    Args:
        kafka: connection settings.
        options: client options of ``connection_options``.
        servers: ``host:port`` of each.
        section: section of the settings, for remedies.
    """
    refusals = find_refusals(kafka, options, servers, section)
    if len(refusals) < len(servers):
        return None
    answered = [refusal for refusal in refusals if refusal.reached]
    if answered:
        return answered[0]
    rule = "no broker could be reached: " + "; ".join(refusal.rule for refusal in refusals)
    return Refusal(rule, " ".join(dict.fromkeys(refusal.remedy for refusal in refusals)), False)


def find_refusals(kafka: KafkaSettings, options: dict[str, Any], servers: list[str], section: str) -> list[Refusal]:
    """Return why servers accept no connection, in their order, without those that accept it now.

    The arguments are those of ``why_refused``.
    """
    probes = [_Probe(kafka, options, section, server) for server in servers]
    with ThreadPoolExecutor(len(probes)) as pool:
        return [refusal for refusal in pool.map(_Probe.refusal, probes) if refusal is not None]


def no_answer(timeout_s: float) -> Refusal:
    """Return the refusal of a broker that took the connection and did not answer within ``timeout_s`` seconds."""
    return Refusal(f"a broker took the connection but did not answer within {timeout_s:g} s", HANGS)


class _Probe:
    """One server, probed step by step in the order in which a client connects."""

    def __init__(self, kafka: KafkaSettings, options: dict[str, Any], section: str, server: str) -> None:
        self._kafka = kafka
        self._options = options
        self._section = section
        self._server = server
        host, _, port = server.rpartition(":")
        self._address = host.strip("[]"), int(port)

    def refusal(self) -> Refusal | None:
        try:
            tls = self._tls()
            with wire(*self._address, tls, TIMEOUT_S) as connection:
                return self._check_sasl(connection, connection.offer(self._kafka.sasl_mechanism or _ANY_MECHANISM))
        except ssl.SSLCertVerificationError as error:
            return self._certificate_refusal(error)
        except ssl.SSLError as error:
            return self._tls_refusal(error.reason or type(error).__name__)
        except (NoKafkaError, ConnectionResetError, BrokenPipeError, struct.error):
            return self._not_kafka()
        except OSError as error:
            return self._connection_refusal(error)

    def _tls(self) -> ssl.SSLContext | None:
        if self._kafka.security_protocol not in _TLS:
            return None
        names = KafkaSSLTransport.DEFAULT_CONFIG
        return KafkaSSLTransport._build_ssl_context({name: self._options.get(name) for name in names})

    def _check_sasl(self, connection: Wire, offer: Offer) -> Refusal | None:
        wanted = self._kafka.security_protocol
        if not offer.sasl:
            without = "SSL" if wanted in _TLS else "PLAINTEXT"
            rule = f"{self._server} does not use SASL, but {self._protocol()}"
            return Refusal(rule, f"Set it to {without}, or name a port that uses SASL.") if wanted in _SASL else None
        offered = ", ".join(offer.mechanisms) or "none"
        if wanted not in _SASL:
            rule = one_line(f"{self._server} asks for SASL ({offered}), but {self._protocol()}", 300)
            return Refusal(rule, f"Set it to SASL_{'SSL' if wanted in _TLS else 'PLAINTEXT'}, with user and password.")
        if not offer.accepted:
            rule = f"{self._server} does not offer the mechanism {self._kafka.sasl_mechanism}; it offers {offered}"
            return Refusal(one_line(rule, 300), f"Set {self._section}.sasl_mechanism to one of these.")
        return self._authenticate(connection)

    def _authenticate(self, connection: Wire) -> Refusal | None:
        mechanism = get_sasl_mechanism(self._kafka.sasl_mechanism)(host=self._address[0], **self._options)
        try:
            while not mechanism.is_done():
                reason, answer = connection.authenticate(mechanism.auth_bytes())
                if reason is not None:
                    return self._authentication_refusal(reason)
                mechanism.receive(answer)
        except (NoKafkaError, ConnectionResetError):
            return self._authentication_refusal("it ended the connection")
        # A wrong server signature (SCRAM), or an answer that cannot be parsed.
        except (ValueError, KeyError):
            return self._authentication_refusal("its answer does not prove that it knows the password")
        return None if mechanism.is_authenticated() else self._authentication_refusal("it did not accept the password")

    def _authentication_refusal(self, reason: str) -> Refusal:
        # The broker's text is untrusted, and one that echoes the token would print the password.
        reason_text = one_line(reason.replace(self._options["sasl_plain_password"] or "\0", "***"), 200)
        who = f"user {self._kafka.sasl_username} by {self._kafka.sasl_mechanism}"
        remedy = f"See {self._section}.sasl_username, its password, and {self._section}.sasl_mechanism."
        if self._kafka.sasl_password is None and self._kafka.sasl_password_file:
            remedy += f" A new password in {self._kafka.sasl_password_file} is read at the next try."
        return Refusal(f"{self._server} refused to authenticate {who} ({reason_text})", remedy)

    def _certificate_refusal(self, error: ssl.SSLCertVerificationError) -> Refusal:
        if error.verify_code in _MISMATCH:
            rule = f"the certificate of {self._server} is not for this host ({error.verify_message})"
            return Refusal(rule, "Name the broker as its certificate does, also in its advertised.listeners.")
        cafile = self._kafka.ssl_cafile
        authorities = f"{self._section}.ssl_cafile ({cafile})" if cafile else "this system's authorities"
        rule = f"the certificate of {self._server} is not trusted by {authorities}: {error.verify_message}"
        return Refusal(rule, f"Set {self._section}.ssl_cafile to the authority that signed it.")

    def _tls_refusal(self, reason: str) -> Refusal:
        if any(alert in reason for alert in _CLIENT_CERTIFICATE):
            own = self._kafka.ssl_certfile
            shown = f"refused the client's certificate {own}" if own else "asks for a certificate of the client"
            rule = f"{self._server} {shown} ({reason})"
            return Refusal(rule, f"Set {self._section}.ssl_certfile and ssl_keyfile to one that the broker trusts.")
        if self._speaks_plaintext():
            rule = f"{self._server} does not speak TLS, but {self._protocol()}"
            return Refusal(rule, "Set it without SSL, or name the port of TLS.")
        return Refusal(
            f"TLS with {self._server} failed ({reason})", "See the broker's log, and the TLS versions there."
        )

    def _not_kafka(self) -> Refusal:
        if self._kafka.security_protocol not in _TLS and self._speaks_tls():
            rule = f"{self._server} speaks TLS, but {self._protocol()}"
            return Refusal(rule, "Set it to SSL or SASL_SSL, or name another port.")
        if self._kafka.security_protocol in _TLS and self._speaks_plaintext():
            return self._tls_refusal("the connection was ended")
        rule = f"{self._server} ended the connection, or gave no answer of Kafka's"
        return Refusal(rule, "See that a Kafka broker listens there.")

    def _protocol(self) -> str:
        return f"{self._section}.security_protocol is {self._kafka.security_protocol.value}"

    def _speaks_tls(self) -> bool:
        # No data is sent, so skipping the certificate check is safe.
        context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
        context.check_hostname = False
        context.verify_mode = ssl.CERT_NONE
        try:
            with wire(*self._address, context, TIMEOUT_S):
                return True
        # A TLS alert also proves TLS: the broker may require a client certificate.
        except ssl.SSLError as error:
            return "ALERT" in (error.reason or "")
        except OSError:
            return False

    def _speaks_plaintext(self) -> bool:
        try:
            with wire(*self._address, None, TIMEOUT_S) as connection:
                connection.offer(_ANY_MECHANISM)
                return True
        except (OSError, struct.error):
            return False

    def _connection_refusal(self, error: OSError) -> Refusal:
        if isinstance(error, SilentServerError):
            return Refusal(f"{self._server}: connected, but no answer within {TIMEOUT_S:g} s", HANGS, False)
        if isinstance(error, TimeoutError):
            rule = f"{self._server}: no connection within {TIMEOUT_S:g} s"
            return Refusal(rule, "Check that its machine is up, then for a firewall on the way.", False)
        known = next((entry for kind, entry in _UNREACHED if isinstance(error, kind)), None)
        reason, remedy = known or (error.strerror or type(error).__name__, "Check the address, and the way to it.")
        return Refusal(f"{self._server}: {reason}", remedy, False)


_UNREACHED: tuple[tuple[type[OSError], tuple[str, str]], ...] = (
    (ConnectionRefusedError, ("connection refused", "Check that the brokers are up, and the port.")),
    (socket.gaierror, ("host name unknown", "Check the names in bootstrap_servers, and this machine's DNS.")),
)
