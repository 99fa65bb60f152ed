"""Checks that both Kafka clients can read the certificates and keys: kafka-python and Spark's Java client.

Python reads every format of OpenSSL. The Java client reads one PKCS 8 key (RSA, EC or DSA), encrypted only in a form
that Java has a factory for. A key that only Python reads would pass every check and fail in Spark.

Source: ``DefaultSslEngineFactory.PemStore`` of Kafka's clients.
"""

from __future__ import annotations

import base64
import re
import shlex
import ssl
from pathlib import Path

from headroom.schemas.config import KafkaSettings, SecurityProtocol
from headroom.schemas.errors import HeadroomError

_BLOCK = re.compile(r"-----BEGIN ([A-Z0-9 ]*PRIVATE KEY)-----(.*?)-----END \1-----", re.DOTALL)
_CERTIFICATE = re.compile(r"-----BEGIN (X509 |TRUSTED )?CERTIFICATE-----")
_PLAIN, _ENCRYPTED = "PRIVATE KEY", "ENCRYPTED PRIVATE KEY"
# Object identifiers, as their DER bytes.
_ALGORITHMS = {
    bytes.fromhex("2a864886f70d010101"): "RSA",
    bytes.fromhex("2a8648ce3d0201"): "EC",
    bytes.fromhex("2a8648ce380401"): "DSA",
}
_PBE_SHA1_3DES = bytes.fromhex("2a864886f70d010c0103")
_OBJECT_IDENTIFIER, _SEQUENCE = 0x06, 0x30

# OpenSSL's errors for a key that does not belong to the certificate: another key, or another algorithm.
_OTHER_KEY = ("MISMATCH", "NO_CERTIFICATE_ASSIGNED")
_TLS = (SecurityProtocol.SSL, SecurityProtocol.SASL_SSL)
_NOT_JAVA = "which Spark's Kafka client, in Java, cannot read"


def require_readable(kafka: KafkaSettings, section: str, *, by_spark: bool) -> None:
    """Check the CA, certificate and key files, if TLS is used.

    Args:
        kafka: settings of one cluster.
        section: their section.
        by_spark: whether Spark uses them too.

    Raises:
        HeadroomError: a file cannot be read, does not hold what it should, or holds a key that one of the clients
            cannot read; with the command that converts it.
    """
    if kafka.security_protocol not in _TLS:
        return
    if kafka.ssl_cafile:
        _require_certificate(f"{section}.ssl_cafile", kafka.ssl_cafile)
    if kafka.ssl_certfile and kafka.ssl_keyfile:
        _require_certificate(f"{section}.ssl_certfile", kafka.ssl_certfile)
        pem = _read(f"{section}.ssl_keyfile", kafka.ssl_keyfile)
        if is_encrypted(pem) and not kafka.ssl_key_password:
            rule = f"is not set, but {kafka.ssl_keyfile} is encrypted"
            remedy = f"Give it by HEADROOM_{section.upper()}__SSL_KEY_PASSWORD."
            raise HeadroomError(f"{section}.ssl_key_password", rule, remedy)
        if by_spark:
            _require_java(f"{section}.ssl_keyfile", kafka.ssl_keyfile, pem)
        _require_pair(section, kafka)


def is_encrypted(pem: str) -> bool:
    """Return whether the key in a PEM text is encrypted."""
    return any(label == _ENCRYPTED or "ENCRYPTED" in body for label, body in _BLOCK.findall(pem))


def _read(subject: str, file: str) -> str:
    try:
        return Path(file).read_text(encoding="utf-8", errors="replace")
    except OSError as error:
        raise HeadroomError(subject, f"cannot read {file}: {error.strerror}", "Name a PEM file.") from None


def _require_certificate(subject: str, file: str) -> None:
    if not _CERTIFICATE.search(_read(subject, file)):
        raise HeadroomError(subject, f"{file} holds no certificate in PEM", "Name a file with BEGIN CERTIFICATE in it.")


def _require_java(subject: str, file: str, pem: str) -> None:
    """Raise if the Java client cannot read the key."""
    blocks = _BLOCK.findall(pem)
    if len(blocks) != 1:
        count = f"{len(blocks)} private keys" if blocks else "no private key"
        raise HeadroomError(subject, f"{file} holds {count} in PEM, but must hold one", "Name a file with one key.")
    label, body = blocks[0]
    if label not in (_PLAIN, _ENCRYPTED):
        raise HeadroomError(
            subject, f"{file} holds a BEGIN {label}, {_NOT_JAVA}", _conversion_remedy(file, is_encrypted(pem))
        )
    identifier = _first_identifier(body)
    if label == _ENCRYPTED and identifier != _PBE_SHA1_3DES:
        raise HeadroomError(
            subject, f"{file} is encrypted in a form {_NOT_JAVA}", _conversion_remedy(file, encrypted=True)
        )
    if label == _PLAIN and identifier not in _ALGORITHMS:
        rule = f"{file} holds a key that is neither RSA, EC nor DSA, {_NOT_JAVA}"
        raise HeadroomError(subject, rule, "Use a certificate with a key of RSA or EC.")


def _require_pair(section: str, kafka: KafkaSettings) -> None:
    """Raise if Python cannot read the key, or if it belongs to another certificate."""
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
    assert kafka.ssl_certfile is not None
    try:
        # Without a password OpenSSL would ask for that of an encrypted key at the terminal.
        context.load_cert_chain(kafka.ssl_certfile, kafka.ssl_keyfile, kafka.ssl_key_password or "")
    except ssl.SSLError as error:
        subject = f"{section}.ssl_keyfile"
        if any(word in (error.reason or "") for word in _OTHER_KEY):
            rule = f"{kafka.ssl_keyfile} is not the key of {kafka.ssl_certfile}"
            raise HeadroomError(subject, rule, "Name the two that belong together.") from None
        rule = f"{kafka.ssl_keyfile} cannot be read: a wrong password, or a form that OpenSSL does not know here"
        raise HeadroomError(subject, rule, f"See {section}.ssl_key_password, and the file.") from None


def _conversion_remedy(file: str, encrypted: bool) -> str:
    """Return the command that converts a key; an encrypted key stays encrypted, in the form that both clients read."""
    how = "-v1 PBE-SHA1-3DES" if encrypted else "-nocrypt"
    name = Path(file)
    new = name.with_name(f"{name.stem}.pkcs8{name.suffix}")
    return f"Convert it: openssl pkcs8 -topk8 {how} -in {shlex.quote(file)} -out {shlex.quote(str(new))}"


def _first_identifier(body: str) -> bytes | None:
    """Return the first object identifier of a base64 DER key: its algorithm, or its encryption."""
    try:
        der = base64.b64decode("".join(body.split()), validate=True)
        return _identifier(der)
    except (ValueError, IndexError):
        return None


def _identifier(der: bytes) -> bytes | None:
    at = 0
    while at < len(der):
        tag, length = der[at], der[at + 1]
        at += 2
        if length & 0x80:
            count = length & 0x7F
            length, at = int.from_bytes(der[at : at + count], "big"), at + count
        if tag == _OBJECT_IDENTIFIER:
            return der[at : at + length]
        # Descend into a sequence, skip any other element.
        at += 0 if tag == _SEQUENCE else length
    return None
