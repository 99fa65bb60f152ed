"""Self-signed certificates for the servers and clients of tests."""

from __future__ import annotations

import shutil
import subprocess
from dataclasses import dataclass
from pathlib import Path

import pytest


@dataclass(frozen=True)
class Certificate:
    """Certificate and key as PEM files; the certificate is also its own authority."""

    pem: Path
    key: Path


def make_certificate(folder: Path, name: str, host: str = "IP:127.0.0.1") -> Certificate:
    """Create a certificate for a host, such as ``DNS:broker1``, that is valid for two days."""
    made = Certificate(folder / f"{name}.pem", folder / f"{name}.key")
    subject = ["-subj", f"/CN={name}", "-addext", f"subjectAltName={host}"]
    request = ["req", "-x509", "-newkey", "rsa:2048", "-nodes", "-days", "2", *subject]
    openssl(*request, "-keyout", str(made.key), "-out", str(made.pem))
    return made


def key_store(certificate: Certificate, password: str) -> Path:
    """Return a PKCS 12 file with the certificate and its key under the alias ``own``."""
    store = certificate.pem.with_suffix(".p12")
    files = ["-in", str(certificate.pem), "-inkey", str(certificate.key), "-out", str(store)]
    openssl("pkcs12", "-export", "-name", "own", *files, "-passout", f"pass:{password}")
    return store


def openssl(*arguments: str) -> None:
    """Run the openssl command; skip the test if it is not installed."""
    command = shutil.which("openssl") or pytest.skip("needs the openssl command")
    subprocess.run([command, *arguments], check=True, capture_output=True)
