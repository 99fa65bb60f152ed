"""Private keys in every form that OpenSSL writes, with certificates, and whether both Kafka clients read them."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from tests.support.certificates import openssl

PASSWORD = "opens-the-key"
_ENCRYPTED = ("-passout", f"pass:{PASSWORD}")


@dataclass(frozen=True)
class KeyForm:
    """Algorithm and file format of a private key.

    Attributes:
        algorithm: algorithm for ``openssl req -newkey``, with its options.
        written: arguments of openssl for the conversion from IN to OUT; empty if there is no conversion.
        by_both: true if both the Python and the Java client read it.
        converts_with: option in the remedy of the error; empty if the key cannot be converted.
    """

    algorithm: Sequence[str]
    written: Sequence[str]
    by_both: bool
    converts_with: str = ""

    @property
    def encrypted(self) -> bool:
        """Whether the key is encrypted with the password."""
        return _ENCRYPTED[0] in self.written

    def make(self, folder: Path) -> tuple[Path, Path]:
        """Create a certificate and its key, and return both files."""
        pem, made, key = folder / "own.pem", folder / "made.key", folder / "own.key"
        request = ["req", "-x509", "-newkey", *self.algorithm, "-nodes", "-days", "2", "-subj", "/CN=127.0.0.1"]
        openssl(*request, "-keyout", str(made), "-out", str(pem))
        if self.written:
            openssl(*({"IN": str(made), "OUT": str(key)}.get(word, word) for word in self.written))
        else:
            made.rename(key)
        return pem, key


_RSA, _EC = ("rsa:2048",), ("ec", "-pkeyopt", "ec_paramgen_curve:prime256v1")
_PKCS8 = ("pkcs8", "-topk8", "-in", "IN", "-out", "OUT")
_OLD = ("pkey", "-traditional", "-in", "IN", "-out", "OUT")

FORMS = {
    "PKCS 8, RSA": KeyForm(_RSA, (), True),
    "PKCS 8, EC": KeyForm(_EC, (), True),
    "PKCS 8, encrypted with 3DES": KeyForm(_RSA, (*_PKCS8, "-v1", "PBE-SHA1-3DES", *_ENCRYPTED), True),
    "PKCS 8, encrypted as usual": KeyForm(_RSA, (*_PKCS8, *_ENCRYPTED), False, "-v1 PBE-SHA1-3DES"),
    "PKCS 1": KeyForm(_RSA, _OLD, False, "-nocrypt"),
    "PKCS 1, encrypted": KeyForm(_RSA, (*_OLD, "-aes128", *_ENCRYPTED), False, "-v1 PBE-SHA1-3DES"),
    "SEC 1": KeyForm(_EC, _OLD, False, "-nocrypt"),
    "Ed25519": KeyForm(("ed25519",), (), False),
    "RSA-PSS": KeyForm(("rsa-pss",), (), False),
}
