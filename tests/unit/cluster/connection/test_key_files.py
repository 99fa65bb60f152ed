"""Files of certificates and keys: refused where one of Kafka's two clients cannot read them, with the command that
converts them.
"""

from __future__ import annotations

import re
import shlex
from pathlib import Path

import pytest

from headroom.cli.config.load import load_settings
from headroom.cluster.connection.key_files import is_encrypted, require_readable
from headroom.schemas.config import KafkaSettings, SecurityProtocol
from headroom.schemas.errors import HeadroomError
from headroom.streaming.sources.kafka_options import kafka_options
from tests.support.certificates import make_certificate, openssl
from tests.support.keys import FORMS, PASSWORD, KeyForm


def settings(pem: Path, key: Path, password: str | None = None, protocol: str = "SSL") -> KafkaSettings:
    return KafkaSettings(
        "b:1",
        SecurityProtocol(protocol),
        ssl_cafile=str(pem),
        ssl_certfile=str(pem),
        ssl_keyfile=str(key),
        ssl_key_password=password,
    )


def refused(kafka: KafkaSettings, by_spark: bool = True) -> HeadroomError:
    with pytest.raises(HeadroomError) as error:
        require_readable(kafka, "cluster", by_spark=by_spark)
    assert PASSWORD not in str(error.value)
    return error.value


@pytest.mark.parametrize("form", FORMS.values(), ids=FORMS)
def test_a_key_that_only_one_client_reads_is_refused_with_the_command_that_converts_it(
    form: KeyForm, tmp_path: Path
) -> None:
    pem, key = form.make(tmp_path)
    kafka = settings(pem, key, PASSWORD if form.encrypted else None)
    # Python's client reads each of them.
    require_readable(kafka, "cluster", by_spark=False)
    if form.by_both:
        require_readable(kafka, "cluster", by_spark=True)
        return
    error = refused(kafka)
    assert error.subject == "cluster.ssl_keyfile"
    assert "Spark's Kafka client" in error.rule
    assert form.converts_with in error.remedy
    if form.converts_with:
        converted = _run(error.remedy)
        require_readable(settings(pem, converted, kafka.ssl_key_password), "cluster", by_spark=True)


def _run(advice: str) -> Path:
    """Run the command of an advice, and return the file that it writes."""
    command = re.search(r"openssl (pkcs8 .*)$", advice)
    assert command
    words = shlex.split(command[1])
    passwords = ["-passin", f"pass:{PASSWORD}"] + ([] if "-nocrypt" in words else ["-passout", f"pass:{PASSWORD}"])
    openssl(*words, *passwords)
    return Path(words[words.index("-out") + 1])


def test_an_encrypted_key_needs_its_password(tmp_path: Path) -> None:
    pem, key = FORMS["PKCS 8, encrypted with 3DES"].make(tmp_path)
    error = refused(settings(pem, key))
    assert (error.subject, "HEADROOM_CLUSTER__SSL_KEY_PASSWORD" in error.remedy) == ("cluster.ssl_key_password", True)
    assert "password" in refused(settings(pem, key, "wrong")).rule


def test_what_spark_is_given_has_a_password_for_encrypted_keys_only(tmp_path: Path) -> None:
    """Java treats a key with a password as encrypted; Python ignores the password."""
    (tmp_path / "encrypted").mkdir()
    plain = FORMS["PKCS 8, RSA"].make(tmp_path)
    encrypted = FORMS["PKCS 8, encrypted with 3DES"].make(tmp_path / "encrypted")
    require_readable(settings(*plain, PASSWORD), "cluster", by_spark=True)
    assert "kafka.ssl.key.password" not in kafka_options(settings(*plain, PASSWORD), None)
    assert kafka_options(settings(*encrypted, PASSWORD), None)["kafka.ssl.key.password"] == PASSWORD
    assert [is_encrypted(key.read_text()) for _, key in (plain, encrypted)] == [False, True]


def test_a_key_of_another_certificate_is_refused(tmp_path: Path) -> None:
    first, second = (make_certificate(tmp_path, name) for name in ("first", "second"))
    assert "is not the key of" in refused(settings(first.pem, second.key)).rule
    (tmp_path / "ec").mkdir()
    _, other = FORMS["PKCS 8, EC"].make(tmp_path / "ec")
    assert "is not the key of" in refused(settings(first.pem, other)).rule


def test_a_file_that_is_missing_or_has_other_content_is_named(tmp_path: Path) -> None:
    own = make_certificate(tmp_path, "own")
    missing = tmp_path / "none.pem"
    assert refused(settings(missing, own.key)).subject == "cluster.ssl_cafile"
    assert "No such file" in refused(settings(own.pem, missing)).rule
    assert "no certificate in PEM" in refused(settings(own.key, own.key)).rule
    assert "no private key in PEM" in refused(settings(own.pem, own.pem)).rule
    both = tmp_path / "both.key"
    both.write_text(own.key.read_text() * 2)
    assert "2 private keys" in refused(settings(own.pem, both)).rule
    broken = tmp_path / "broken.key"
    broken.write_text("-----BEGIN PRIVATE KEY-----\n!!!\n-----END PRIVATE KEY-----\n")
    assert refused(settings(own.pem, broken)).subject == "cluster.ssl_keyfile"


def test_files_are_looked_at_only_if_tls_uses_them(tmp_path: Path) -> None:
    missing = tmp_path / "none"
    require_readable(settings(missing, missing, protocol="SASL_PLAINTEXT"), "cluster", by_spark=True)


def test_the_configuration_refuses_what_spark_cannot_read_where_spark_reads_it(tmp_path: Path) -> None:
    pem, key = FORMS["PKCS 1"].make(tmp_path)
    files = {"ssl_certfile": str(pem), "ssl_keyfile": str(key), "security_protocol": "SSL", "bootstrap_servers": "b:1"}
    watched = {f"HEADROOM_CLUSTER__{name.upper()}": value for name, value in files.items()}
    with pytest.raises(HeadroomError) as error:
        load_settings(None, watched)
    assert error.value.subject == "cluster.ssl_keyfile"
    # Spark reads the ticks alone.
    load_settings(None, {**watched, "HEADROOM_TICKS__BOOTSTRAP_SERVERS": "ticks:1"})
    of_ticks = {f"HEADROOM_TICKS__{name.upper()}": value for name, value in files.items()}
    with pytest.raises(HeadroomError) as error:
        load_settings(None, {"HEADROOM_CLUSTER__BOOTSTRAP_SERVERS": "b:1", **of_ticks})
    assert error.value.subject == "ticks.ssl_keyfile"
