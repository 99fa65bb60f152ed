"""The keys that Kafka's client in Java reads are those that the settings allow, with the client itself; no broker."""

from __future__ import annotations

from pathlib import Path

import psutil
import pytest

from headroom.cluster.connection.java_client import JavaClientError, connect
from headroom.cluster.java import jar_folder
from headroom.schemas.config import KafkaSettings, SecurityProtocol
from headroom.streaming.sources.kafka_options import kafka_options
from tests.support.keys import FORMS, PASSWORD, KeyForm

# Nobody listens on port 1: a client that could be made says so after its timeout.
_NOBODY = "TimeoutException"


def refusal(form: KeyForm, folder: Path) -> str:
    pem, key = form.make(folder)
    kafka = KafkaSettings(
        bootstrap_servers="127.0.0.1:1",
        security_protocol=SecurityProtocol.SSL,
        ssl_cafile=str(pem),
        ssl_certfile=str(pem),
        ssl_keyfile=str(key),
        ssl_key_password=PASSWORD,
        request_timeout_ms=200,
    )
    given = kafka_options(kafka, None)
    options = {name.removeprefix("kafka."): text for name, text in given.items() if name.startswith("kafka.")}
    with pytest.raises(JavaClientError) as refused:
        connect(jar_folder("spark"), options, 5)
    return str(refused.value)


@pytest.mark.parametrize("form", FORMS.values(), ids=FORMS)
def test_java_reads_the_keys_that_both_clients_are_said_to_read_and_no_other(form: KeyForm, tmp_path: Path) -> None:
    before = {process.pid for process in psutil.Process().children(recursive=True)}
    refused = refusal(form, tmp_path)
    assert refused.startswith(_NOBODY) == form.by_both, refused
    assert PASSWORD not in refused
    assert {process.pid for process in psutil.Process().children(recursive=True)} <= before, "its JVM is gone"
