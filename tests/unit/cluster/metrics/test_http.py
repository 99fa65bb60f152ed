"""Agents with bad answers cost only their own broker's rows, in time and with a reason."""

from __future__ import annotations

import base64
import socket
import ssl
import threading
import time
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace

import pytest

from headroom.cluster.metrics import http as http_reader
from headroom.cluster.metrics.exporter.jmx_exporter import PrometheusSource
from headroom.cluster.metrics.http import Deadline, HttpReader, Request
from headroom.cluster.metrics.jolokia import JolokiaSource
from headroom.cluster.metrics.mbeans import ReadPlan
from headroom.cluster.metrics.source import MetricsError
from headroom.schemas.config import CollectSettings
from headroom.schemas.errors import HeadroomError
from headroom.schemas.keys import TopicPartition
from tests.support.certificates import Certificate, make_certificate
from tests.unit.fakes import jmx_exporter_output as expositions
from tests.unit.fakes.http_agent import Agent, ElectionResults, agent, saying

PLAN = ReadPlan(["orders"], [TopicPartition("orders", 0)], [])
SCRAPE = expositions.EXAMPLE.encode()
QUESTION = Request("/metrics", None, {})
# Far more than an answer takes, far less than a test may hang.
PATIENCE_S = 10.0


def scrape(answers: ElectionResults, timeout_s: float = PATIENCE_S, collect: CollectSettings | None = None) -> str:
    """Return why a scrape of an agent that answers so fails."""
    with agent(answers) as server, pytest.raises(MetricsError) as refused:
        PrometheusSource(HttpReader(collect or CollectSettings()), "").read(1, server.endpoint, PLAN, timeout_s)
    assert str(refused.value).startswith(("http://", "jmx_exporter "))
    return str(refused.value)


def test_a_connection_is_kept_from_tick_to_tick() -> None:
    with agent(saying(SCRAPE)) as server:
        source = PrometheusSource(HttpReader(CollectSettings()), "")
        reads = [source.read(1, server.endpoint, PLAN, PATIENCE_S) for _ in range(3)]
        assert server.connections == 1
        source.stop()
    assert all(read.logs for read in reads)
    assert [path for path, _ in server.asked] == ["/metrics"] * 3


def test_a_connection_that_was_closed_meanwhile_is_opened_again() -> None:
    def once(connection: Agent) -> None:
        connection.respond(SCRAPE)
        # As an agent does whose idle connections end, without a word in the answer before.
        connection.close_connection = True

    with agent(once) as server:
        source = PrometheusSource(HttpReader(CollectSettings()), "")
        for _ in range(3):
            assert source.read(1, server.endpoint, PLAN, PATIENCE_S).logs
        assert server.connections == 3


def test_another_endpoint_means_another_connection() -> None:
    with agent(saying(b"one\n")) as one, agent(saying(b"two\n")) as two:
        http = HttpReader(CollectSettings())
        bodies = [http.ask(1, server.endpoint, QUESTION, Deadline(PATIENCE_S)).body for server in (one, two, one)]
    assert bodies == [b"one\n", b"two\n", b"one\n"]


def test_the_time_of_a_reading_lies_half_way_to_the_answer() -> None:
    def late(connection: Agent) -> None:
        time.sleep(0.4)
        connection.respond(b"\n")

    with agent(late) as server:
        began = time.time()
        read_ms = HttpReader(CollectSettings()).ask(1, server.endpoint, QUESTION, Deadline(PATIENCE_S)).read_ms
        ended = time.time()
    assert began * 1000 + 190 <= read_ms <= ended * 1000 - 190


def test_a_clock_that_is_set_during_a_reading_makes_no_time_between_two_clocks(monkeypatch: pytest.MonkeyPatch) -> None:
    # 10,000 s when it is asked, an hour earlier when it answers.
    clock = SimpleNamespace(time=iter([10_000.0, 6400.0]).__next__, monotonic=time.monotonic)
    with agent(saying(b"\n")) as server:
        monkeypatch.setattr("headroom.cluster.metrics.http.time", clock)
        read_ms = HttpReader(CollectSettings()).ask(1, server.endpoint, QUESTION, Deadline(PATIENCE_S)).read_ms
    assert 10_000_000 <= read_ms <= 10_000_000 + PATIENCE_S * 1000 / 2


def trickled_head(connection: Agent) -> None:
    for _ in range(1000):
        connection.wfile.write(b"H" if _ == 0 else b"TTP/1.1 200 OK"[_ % 14 :][:1])
        time.sleep(0.05)


def trickled_body(connection: Agent) -> None:
    connection.send_response(200)
    connection.send_header("Content-Length", "100000")
    connection.end_headers()
    for _ in range(1000):
        connection.wfile.write(b"#")
        time.sleep(0.05)


def trickled_chunks(connection: Agent) -> None:
    connection.send_response(200)
    connection.send_header("Transfer-Encoding", "chunked")
    connection.end_headers()
    for _ in range(1000):
        connection.wfile.write(b"1\r\n#\r\n")
        time.sleep(0.05)


def silent(connection: Agent) -> None:
    # On a daemon thread, which the end of the test does not wait for.
    time.sleep(60)


@pytest.mark.parametrize("slow", [trickled_head, trickled_body, trickled_chunks, silent])
def test_no_answer_outlasts_its_time_however_it_comes(slow: ElectionResults) -> None:
    began = time.monotonic()
    assert "/metrics: did not answer in time. See whether the broker hangs" in scrape(slow, timeout_s=0.4)
    # Each piece comes well within the time; the whole would take 50 s.
    assert time.monotonic() - began < 20


def cut_short(connection: Agent) -> None:
    connection.respond(SCRAPE[:-100], length=len(SCRAPE))
    connection.close_connection = True


def cut_chunks(connection: Agent) -> None:
    connection.send_response(200)
    connection.send_header("Transfer-Encoding", "chunked")
    connection.end_headers()
    connection.wfile.write(b"ff\r\n" + SCRAPE[:100])
    connection.close_connection = True


def cut_within_a_line(connection: Agent) -> None:
    connection.respond(SCRAPE[:-3])


def cut_without_length(connection: Agent) -> None:
    connection.wfile.write(b"HTTP/1.0 200 OK\r\n\r\n" + SCRAPE[:-3])
    connection.close_connection = True


@pytest.mark.parametrize(
    ("answers", "why"),
    [
        (cut_short, "the answer was cut off"),
        (cut_chunks, "the answer was cut off"),
        (cut_within_a_line, "it ends in the middle of a line"),
        (cut_without_length, "it ends in the middle of a line"),
        (saying(b""), "answers, but has no Kafka metrics yet"),
        (saying(b"<html>jmx_exporter</html>\n"), "answers, but has no Kafka metrics yet"),
        (saying(b"\xff\xfe\n"), "not in Prometheus' text format"),
        (saying(b"", 401), "user, password or token refused"),
        (saying(b"", 403), "access refused"),
        (saying(b"", 404), "has nothing at this path. Set collect.http_path"),
        (saying(b"", 503), "answered 503 Service Unavailable"),
        (lambda connection: connection.wfile.write(b"SSH-2.0-OpenSSH_9\r\n"), "does not speak HTTP"),
        (lambda connection: setattr(connection, "close_connection", True), "closed the connection without an answer"),
    ],
)
def test_a_bad_answer_is_reported_with_its_reason(answers: ElectionResults, why: str) -> None:
    assert why in scrape(answers)


def test_an_answer_without_end_is_given_up_at_its_size(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(http_reader, "MAX_BYTES", 1_000_000)

    def endless(connection: Agent) -> None:
        connection.wfile.write(b"HTTP/1.0 200 OK\r\n\r\n")
        while True:
            connection.wfile.write(b"# nothing\n" * 10_000)

    assert "/metrics: the answer is larger than 1 MB. Let the agent export less" in scrape(endless)


def test_after_a_bad_answer_the_next_one_is_read() -> None:
    answers = iter([cut_short, saying(b"", 500), saying(SCRAPE)])
    with agent(lambda connection: next(answers)(connection)) as server:
        source = PrometheusSource(HttpReader(CollectSettings()), "")
        for _ in range(2):
            with pytest.raises(MetricsError):
                source.read(1, server.endpoint, PLAN, PATIENCE_S)
        assert source.read(1, server.endpoint, PLAN, PATIENCE_S).logs


def test_no_listener_and_no_such_host() -> None:
    with socket.create_server(("127.0.0.1", 0)) as free:
        endpoint = f"127.0.0.1:{free.getsockname()[1]}"
    http = HttpReader(CollectSettings())
    with pytest.raises(MetricsError, match="connection refused"):
        http.ask(1, endpoint, QUESTION, Deadline(PATIENCE_S))
    with pytest.raises(MetricsError, match="host name unknown"):
        http.ask(1, "broker.invalid:1", QUESTION, Deadline(PATIENCE_S))


def test_a_port_that_accepts_connections_and_never_answers_times_out() -> None:
    with socket.create_server(("127.0.0.1", 0)) as mute:
        endpoint = f"127.0.0.1:{mute.getsockname()[1]}"
        with pytest.raises(MetricsError, match="did not answer in time"):
            HttpReader(CollectSettings()).ask(1, endpoint, QUESTION, Deadline(0.2))


@pytest.mark.parametrize("body", [b"[", b"{}", b"[]", b"<html>"])
def test_an_answer_that_is_not_jolokias_is_refused(body: bytes) -> None:
    with agent(saying(body)) as server, pytest.raises(MetricsError, match="the answer is not Jolokia's"):
        JolokiaSource(HttpReader(CollectSettings()), "").read(1, server.endpoint, PLAN, PATIENCE_S)
    assert server.asked[0][0].startswith("/jolokia/?maxCollectionSize=0")


def test_jolokias_refusal_of_a_host_is_reported() -> None:
    body = b'{"status":403,"error":"java.lang.Exception: No access from client 10.0.0.1 allowed"}'
    with agent(saying(body)) as server, pytest.raises(MetricsError, match="No access from client"):
        JolokiaSource(HttpReader(CollectSettings()), "").read(1, server.endpoint, PLAN, PATIENCE_S)


def test_an_agent_out_of_heap_is_no_matter_of_its_policy() -> None:
    body = b'{"status":500,"error":"java.lang.OutOfMemoryError : Java heap space","stacktrace":"..."}'
    with agent(saying(body)) as server, pytest.raises(MetricsError) as refused:
        JolokiaSource(HttpReader(CollectSettings()), "").read(1, server.endpoint, PLAN, PATIENCE_S)
    assert refused.value.rule == "java.lang.OutOfMemoryError : Java heap space"
    assert "give it more (KAFKA_HEAP_OPTS)" in refused.value.remedy


def test_the_first_line_of_an_error_is_shown_with_its_remedy() -> None:
    # Of jmx_exporter 1.0.1 within startDelaySeconds.
    body = (
        b"An Exception occurred while scraping metrics: java.lang.IllegalStateException: "
        b"JMXCollector waiting for startDelaySeconds\n\tat io.prometheus.jmx.JmxCollector.collect(JmxCollector.java)"
    )
    reason = scrape(lambda connection: connection.respond(body, 500))
    assert "answered 500 Internal Server Error: An Exception occurred while scraping metrics: " in reason
    assert "waiting for startDelaySeconds. Wait until the time of startDelaySeconds" in reason
    assert "JmxCollector.java" not in reason


@pytest.mark.parametrize("body", [b"", b"\n \n", b"<html><h1>Error</h1></html>", b"<!DOCTYPE html>\nno"])
def test_a_page_or_nothing_adds_nothing_to_the_status_of_an_error(body: bytes) -> None:
    reason = scrape(lambda connection: connection.respond(body, 503))
    assert "answered 503 Service Unavailable. See the log of the agent, or of the broker." in reason


def test_an_error_whose_body_does_not_arrive_is_still_the_error() -> None:
    def cut(connection: Agent) -> None:
        connection.send_response(500)
        connection.send_header("Transfer-Encoding", "chunked")
        connection.end_headers()
        connection.wfile.write(b"x")

    assert "answered 500 Internal Server Error. See the log" in scrape(cut)


def test_user_password_and_token_travel_as_headers(tmp_path: Path) -> None:
    file = tmp_path / "secret"
    file.write_text("s3cret\n")
    given = {
        f"Basic {base64.b64encode(b'me:s3cret').decode()}": CollectSettings(
            http_username="me", http_password_file=str(file)
        ),
        "Bearer s3cret": CollectSettings(http_token_file=str(file)),
        "Bearer other": CollectSettings(http_token="other"),
    }
    for expected, collect in given.items():
        with agent(saying(b"\n")) as server:
            HttpReader(collect).ask(1, server.endpoint, QUESTION, Deadline(PATIENCE_S))
        assert server.asked[0][1]["Authorization"] == expected


def test_a_token_that_no_header_can_carry_is_refused_without_printing_it() -> None:
    collect = CollectSettings(http_token="abc\r\nX-Other: 1")
    with pytest.raises(HeadroomError) as refused:
        HttpReader(collect).ask(1, "127.0.0.1:1", QUESTION, Deadline(PATIENCE_S))
    assert "abc" not in str(refused.value)
    assert "abc" not in repr(collect)


@pytest.fixture(scope="module")
def own(tmp_path_factory: pytest.TempPathFactory) -> Certificate:
    return make_certificate(tmp_path_factory.mktemp("own"), "own")


@pytest.fixture(scope="module")
def other(tmp_path_factory: pytest.TempPathFactory) -> Certificate:
    """A certificate of another host."""
    return make_certificate(tmp_path_factory.mktemp("other"), "other", "DNS:elsewhere")


def server_context(server: Certificate, client: Certificate | None = None) -> ssl.SSLContext:
    """Return the TLS context of a server, which requires this client certificate if it is given."""
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(server.pem, server.key)
    if client is not None:
        context.verify_mode = ssl.CERT_REQUIRED
        context.load_verify_locations(client.pem)
    return context


def trusting(server: Certificate) -> CollectSettings:
    return CollectSettings(http_ssl=True, http_cafile=str(server.pem))


def ask(tls: ssl.SSLContext, collect: CollectSettings) -> bytes:
    with agent(saying(b"well\n"), tls) as server:
        return HttpReader(collect).ask(1, server.endpoint, QUESTION, Deadline(PATIENCE_S)).body


def test_tls_with_an_authority_of_ones_own(own: Certificate) -> None:
    assert ask(server_context(own), trusting(own)) == b"well\n"
    with pytest.raises(MetricsError, match="TLS failed: self-signed certificate"):
        ask(server_context(own), CollectSettings(http_ssl=True))


def test_tls_of_another_host_is_refused_unless_its_name_does_not_matter(other: Certificate) -> None:
    with pytest.raises(MetricsError, match="TLS failed: IP address mismatch"):
        ask(server_context(other), trusting(other))
    assert ask(server_context(other), replace(trusting(other), http_check_hostname=False)) == b"well\n"


def test_a_client_shows_its_certificate(own: Certificate, other: Certificate) -> None:
    shown = replace(trusting(own), http_certfile=str(other.pem), http_keyfile=str(other.key))
    assert ask(server_context(own, client=other), shown) == b"well\n"
    with pytest.raises(MetricsError):
        ask(server_context(own, client=other), trusting(own))


def test_one_that_speaks_tls_and_one_that_does_not_misunderstand_each_other_clearly(own: Certificate) -> None:
    http = HttpReader(CollectSettings(http_ssl=True))
    with agent(saying(b"\n")) as server, pytest.raises(MetricsError, match="TLS failed"):
        http.ask(1, server.endpoint, QUESTION, Deadline(PATIENCE_S))
    with pytest.raises(MetricsError, match=r"See collect\.http_ssl"):
        ask(server_context(own), CollectSettings())


@pytest.mark.parametrize("key", ["http_cafile", "http_certfile"])
def test_a_file_that_cannot_be_used_is_named_with_its_setting(key: str, tmp_path: Path, own: Certificate) -> None:
    missing, wrong = tmp_path / "missing.pem", tmp_path / "wrong.pem"
    wrong.write_text("not a certificate")
    for file in map(str, (missing, wrong)):
        given = CollectSettings(http_ssl=True, http_keyfile=str(own.key))
        collect = replace(given, http_cafile=file) if key == "http_cafile" else replace(given, http_certfile=file)
        with pytest.raises(HeadroomError) as refused:
            HttpReader(collect).ask(1, "127.0.0.1:1", QUESTION, Deadline(PATIENCE_S))
        assert (refused.value.subject, file in refused.value.rule) == (f"collect.{key}", True)


def test_brokers_are_read_in_parallel() -> None:
    together = threading.Barrier(2, timeout=PATIENCE_S)

    def both(connection: Agent) -> None:
        together.wait()
        connection.respond(SCRAPE)

    with agent(both) as one, agent(both) as two:
        source = PrometheusSource(HttpReader(CollectSettings()), "")
        others: list[object] = []
        thread = threading.Thread(target=lambda: others.append(source.read(2, two.endpoint, PLAN, PATIENCE_S)))
        thread.start()
        assert source.read(1, one.endpoint, PLAN, PATIENCE_S).logs
        thread.join()
    assert len(others) == 1
