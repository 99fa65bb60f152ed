"""Readers of texts from agents, receivers, brokers and operators, with generators of such texts."""

from __future__ import annotations

import copy
import json
import tempfile
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from hypothesis import strategies as st

from benchmarks.groups.fuzz.made import EDGES, replace_value
from headroom.alerts.delivery.http import HttpPoster
from headroom.alerts.delivery.receiver import DeliveryError
from headroom.alerts.delivery.receivers.slack_api import SlackApi
from headroom.cli.config.load import load_settings
from headroom.cluster.metrics.exporter.jmx_exporter import PrometheusSource
from headroom.cluster.metrics.http import HttpReader
from headroom.cluster.metrics.jolokia import JolokiaSource
from headroom.cluster.metrics.mbeans import ReadPlan
from headroom.cluster.metrics.source import MetricsError
from headroom.operations.reassignments.plan_file import is_plan
from headroom.planning.throttles.replica_lists import parse_replica_list
from headroom.schemas.config import CollectSettings, SlackSettings
from headroom.schemas.errors import HeadroomError
from headroom.schemas.keys import TopicPartition
from tests.unit.fakes.bad_servers import bad_server

_TIMEOUT_S = 5.0
_OK = b"HTTP/1.1 200 OK\r\nConnection: close\r\n\r\n"
_PLAN = ReadPlan(["t"], [TopicPartition("t", 0)], [TopicPartition("t", 0), TopicPartition("t", 1)], 2, True)
_EXPOSITION = """# HELP kafka_log_log_logendoffset x
kafka_log_log_logendoffset{topic="t",partition="0",} 1.2345E4
kafka_log_log_size{topic="t",partition="0"} 17.0
kafka_log_log_logstartoffset{topic="t",partition="0"} 0.0
kafka_server_fetcherlagmetrics_consumerlag{clientId="ReplicaFetcherThread-0-1",topic="t",partition="1",} 5.0 1800000000
kafka_server_brokertopicmetrics_bytesin_total{topic="t",} 99.0
java_lang_runtime_starttime 1.8E12
"""
_JOLOKIA = [{"status": 200, "value": 5, "timestamp": 1}, {"status": 404, "error": "no"}, {"status": 200, "value": {}}]
_PLAN_FILE = {
    "version": 1,
    "partitions": [{"topic": "t", "partition": 0, "replicas": [1, 2], "log_dirs": ["any", "any"]}],
}
_SLACK = {
    "ok": True,
    "messages": [{"ts": "1.2", "metadata": {"event_type": "headroom_event", "event_payload": {"event_keys": "a,b"}}}],
    "response_metadata": {"next_cursor": ""},
}
_SETTINGS = """[cluster]
bootstrap_servers = "h:9092"
replication_capacity = "50MB"
[alerts]
margin_ratio = 1.2
finish_within = "1h"
[collect]
endpoints = { 1 = "h:9999" }
[elections]
window = "01:00-05:00 UTC"
"""
_HEADS = (
    _OK,
    b"HTTP/1.1 500 no\r\nConnection: close\r\n\r\n",
    b"HTTP/1.1 429 no\r\nRetry-After: 9\r\nConnection: close\r\n\r\n",
    b"HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\n",
    b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n5\r\n",
    b"HTTP/1.1 302 no\r\nLocation: http://127.0.0.1:1/\r\n\r\n",
    b"HTTP/1.1 100 Continue\r\n\r\n",
    b"HTTP/9.9 999\r\n\r\n",
    b"",
)


@dataclass(frozen=True)
class TextReader:
    """A reader of outside text.

    Attributes:
        name: name of the format.
        texts: strategy for its texts.
        read: reads a text.
        refusals: documented exceptions for malformed texts.
    """

    name: str
    texts: st.SearchStrategy[bytes]
    read: Callable[[bytes], Any]
    refusals: tuple[type[Exception], ...]


@contextmanager
def text_readers() -> Iterator[list[TextReader]]:
    """Yield all readers of outside text."""
    with ExitStack() as stack:
        answer = b""
        server = stack.enter_context(bad_server(lambda connection, _: connection.sendall(answer)))
        file = Path(stack.enter_context(tempfile.TemporaryDirectory())) / "headroom.toml"
        endpoint = f"127.0.0.1:{server.port}"
        http = HttpReader(CollectSettings())
        jolokia, prometheus = JolokiaSource(http, ""), PrometheusSource(http, "")
        slack = SlackApi(SlackSettings(channel="C1", api_url=f"http://{endpoint}/api/", timeout_s=2), lambda: "xoxb-1")
        poster = HttpPoster(2.0)

        def answered(read: Callable[[], Any]) -> Callable[[bytes], Any]:
            def with_answer(text: bytes) -> Any:
                nonlocal answer
                answer = text
                return read()

            return with_answer

        def settings(text: bytes) -> Any:
            file.write_bytes(text)
            return load_settings(str(file), {})

        yield [
            TextReader(
                "exposition",
                _responses(_garbled_texts(_EXPOSITION.encode())),
                answered(lambda: prometheus.read(1, endpoint, _PLAN, _TIMEOUT_S)),
                (MetricsError,),
            ),
            TextReader(
                "jolokia",
                _responses(_json(_JOLOKIA)),
                answered(lambda: jolokia.read(1, endpoint, _PLAN, _TIMEOUT_S)),
                (MetricsError,),
            ),
            TextReader("slack", _responses(_json(_SLACK)), answered(lambda: slack.find(["a"], 0)), (DeliveryError,)),
            TextReader(
                "receiver",
                _responses(_garbled_texts(b"accepted")),
                answered(lambda: poster.post(f"http://{endpoint}/secret", b"{}", {})),
                (DeliveryError,),
            ),
            TextReader(
                "replica list",
                _lists(),
                lambda text: parse_replica_list(text.decode("utf-8", "replace")),
                (ValueError,),
            ),
            # Lower depth: a key with 100,000 parts is slow to read, and only the operator writes this file.
            TextReader("settings", _garbled_texts(_SETTINGS.encode(), 2000), settings, (HeadroomError,)),
            TextReader(
                "reassignment file", _json(_PLAN_FILE), lambda text: is_plan(text.decode("utf-8", "replace")), ()
            ),
        ]
        http.close()


def _responses(bodies: st.SearchStrategy[bytes]) -> st.SearchStrategy[bytes]:
    """Return a strategy for whole HTTP responses, most of them with valid headers."""
    head = st.one_of(st.just(_OK), st.just(_OK), st.just(_OK), st.sampled_from(_HEADS), st.binary(max_size=200))
    return st.builds(bytes.__add__, head, bodies)


def _garbled_texts(text: bytes, depth: int = 100_000) -> st.SearchStrategy[bytes]:
    """Return a strategy for a text with pieces replaced, and sometimes for other texts.

    Args:
        text: valid text.
        depth: depth of nested values.
    """

    def splice(pieces: list[tuple[int, int, bytes]]) -> bytes:
        made = text
        for at, length, piece in pieces:
            begin = at % (len(made) + 1)
            made = made[:begin] + piece + made[begin + length :]
        return made

    nested = [b"[" * depth, b'{"a":' * depth, b"a.b" * depth, b"x = " + b"[" * depth]
    deep = st.sampled_from([*nested, b"9" * 5000, b"\xff\xfe\x00", b"\x00"])
    pieces = st.lists(
        st.tuples(st.integers(0, 4000), st.integers(0, 40), st.one_of(st.binary(max_size=20), deep)), max_size=3
    )
    return st.one_of(st.builds(splice, pieces), st.builds(splice, pieces), st.binary(max_size=300), deep)


def _json(template: Any) -> st.SearchStrategy[bytes]:
    """Return a strategy for a JSON text with one value replaced, or garbled."""

    def replace(number: int, value: Any) -> bytes:
        made = copy.deepcopy(template)
        replace_value(made, number, value)
        return json.dumps(made).encode()

    replaced = st.builds(replace, st.integers(0, 1000), st.sampled_from(EDGES))
    return st.one_of(replaced, replaced, _garbled_texts(json.dumps(template).encode()))


def _lists() -> st.SearchStrategy[bytes]:
    number = st.one_of(st.integers(-(2**40), 2**40).map(str), st.text(max_size=5))
    entry = st.builds("{}:{}".format, number, number)
    lists = st.lists(st.one_of(entry, st.text(max_size=6), st.just("*")), max_size=6).map(",".join)
    return lists.map(lambda text: text.encode("utf-8", "replace"))
