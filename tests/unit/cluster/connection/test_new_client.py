"""Clients that cannot connect leave no thread and no descriptor behind."""

from __future__ import annotations

import ast
import gc
import logging
import os
import threading
from pathlib import Path
from typing import Any

import pytest
from kafka import KafkaAdminClient, KafkaConsumer
from kafka.cluster import ClusterMetadata
from kafka.errors import KafkaTimeoutError

import headroom.cluster
from headroom.cluster.connection.new_client import create_no_topics, new_client

# A port on which nothing listens.
NOWHERE = "127.0.0.1:1"
TREE = Path(headroom.cluster.__file__).resolve().parent.parent
LAYERS = ("schemas", "planning", "cluster", "routing", "alerts", "streaming", "operations", "dashboard", "cli")


def open_files() -> int:
    return len(os.listdir("/proc/self/fd"))


@pytest.mark.skipif(not Path("/proc/self/fd").is_dir(), reason="needs /proc")
@pytest.mark.parametrize("kind", [KafkaAdminClient, KafkaConsumer])
def test_attempts_that_fail_leave_nothing_behind(kind: Any, caplog: pytest.LogCaptureFixture) -> None:
    # A kept record would keep its error, and with it a socket.
    caplog.set_level(logging.CRITICAL + 1, "kafka")
    gc.collect()
    threads, files = threading.active_count(), open_files()
    for _ in range(3):
        with pytest.raises(KafkaTimeoutError):
            new_client(kind, bootstrap_servers=NOWHERE, bootstrap_timeout_ms=50)
    # kafka-python leaves sockets that were refused to the garbage collector.
    gc.collect()
    assert (threading.active_count(), open_files()) == (threads, files)


@pytest.mark.parametrize("kind", [KafkaAdminClient, KafkaConsumer])
def test_an_option_that_is_unknown_is_the_error_of_the_client(kind: Any) -> None:
    with pytest.raises(Exception, match="nonsense"):
        new_client(kind, bootstrap_servers=NOWHERE, nonsense=1)


def test_a_client_that_reads_the_metadata_of_a_topic_does_not_create_it() -> None:
    metadata = ClusterMetadata(bootstrap_servers=[NOWHERE])
    metadata._topics = {"ticks"}
    assert metadata.metadata_request().allow_auto_topic_creation
    create_no_topics(metadata)
    assert not metadata.metadata_request().allow_auto_topic_creation


def test_nothing_else_constructs_these_clients() -> None:
    calls = [
        f"{file.relative_to(TREE)}:{node.lineno}"
        for layer in LAYERS
        for file in (TREE / layer).rglob("*.py")
        for node in ast.walk(ast.parse(file.read_text(encoding="utf-8")))
        if isinstance(node, ast.Call)
        and isinstance(node.func, ast.Name)
        and node.func.id in (KafkaAdminClient.__name__, KafkaConsumer.__name__)
    ]
    assert calls == []
