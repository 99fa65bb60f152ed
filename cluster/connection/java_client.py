"""Connection test with Kafka's Java client in a small separate JVM, as Spark will connect."""

from __future__ import annotations

import contextlib
import os
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from py4j.java_gateway import GatewayParameters, JavaGateway, launch_gateway
from py4j.protocol import Py4JError, Py4JJavaError

from headroom.cluster.java import gateway_jars, java_command
from headroom.schemas.environment import without_settings
from headroom.schemas.errors import HeadroomError
from headroom.schemas.text import one_line

# Small and fast to start, because this JVM serves one connection test.
_JAVA_OPTIONS = ["-Xmx96m", "-XX:+UseSerialGC", "-XX:TieredStopAtLevel=1"]


class JavaClientError(Exception):
    """The Java client could not be created or could not connect; the text is its own error in one line."""


def connect(jars: Path, options: Mapping[str, str], timeout_s: float) -> int:
    """Connect a new Java client and return how many brokers it finds.

    Args:
        jars: folder with the jar of Kafka's clients.
        options: client options, including secrets; none reaches a command line or a file.
        timeout_s: longest wait for the answer.

    Raises:
        JavaClientError: the client could not be created, or did not connect.
        HeadroomError: Java or a jar is missing.
    """
    with _jvm(jars) as jvm:
        properties = jvm.java.util.Properties()
        for name, value in options.items():
            properties.put(name, value)
        try:
            admin = jvm.org.apache.kafka.clients.admin.Admin.create(properties)
            try:
                nodes = admin.describeCluster().nodes()
                return int(nodes.get(int(timeout_s * 1000), jvm.java.util.concurrent.TimeUnit.MILLISECONDS).size())
            finally:
                admin.close(jvm.java.time.Duration.ofMillis(0))
        except Py4JJavaError as error:
            raise JavaClientError(_cause(error.java_exception)) from None
        except (Py4JError, OSError) as error:
            raise JavaClientError(type(error).__name__) from None


@contextmanager
def _jvm(jars: Path) -> Iterator[Any]:
    class_path = [
        *gateway_jars(),
        *_find_jar(jars, "kafka-clients"),
        *_find_jar(Path(gateway_jars()[0]).parent, "slf4j-api"),
    ]
    with open(os.devnull, "w", encoding="utf-8") as devnull, without_settings():
        try:
            port, token, process = launch_gateway(
                jarpath=class_path[0],
                java_path=java_command(),
                classpath=os.pathsep.join(class_path),
                javaopts=_JAVA_OPTIONS,
                die_on_exit=True,
                enable_auth=True,
                return_proc=True,
                redirect_stderr=devnull,
            )
        except (OSError, Py4JError, ValueError):
            raise HeadroomError("Java", "cannot be started", "Install Java 17 or later.") from None
        gateway = JavaGateway(gateway_parameters=GatewayParameters(port=port, auth_token=token, auto_convert=True))
        try:
            yield gateway.jvm
        finally:
            with contextlib.suppress(Exception):
                gateway.shutdown()
            process.kill()
            process.wait()


def _find_jar(folder: Path, name: str) -> list[str]:
    jars = sorted(str(path) for path in folder.glob(f"{name}-[0-9]*.jar"))
    if not jars:
        raise HeadroomError(f"jar {name}", f"is not in {folder}", "Run `make setup`, or set spark.jars.")
    return jars[:1]


def _cause(exception: Any) -> str:
    """Return the root cause of a Java exception; the outer ones name no reason."""
    while (cause := exception.getCause()) is not None:
        exception = cause
    return one_line(f"{exception.getClass().getSimpleName()}: {exception.getMessage()}", 300)
