"""The gateway JVM: a small Java process of the collector that reads brokers by JMX over RMI."""

from __future__ import annotations

import contextlib
import os
import subprocess
import threading
from collections.abc import Sequence
from typing import Any

from py4j.finalizer import ThreadSafeFinalizer
from py4j.java_gateway import GatewayParameters, JavaGateway, launch_gateway
from py4j.protocol import Py4JError, Py4JNetworkError

from headroom.cluster.java import gateway_jars, java_command
from headroom.cluster.metrics.rmi.java_reader import CLASS_NAME, SOURCE
from headroom.cluster.metrics.source import read_s
from headroom.cluster.secrets import secret
from headroom.schemas.config import CollectSettings
from headroom.schemas.environment import without_settings
from headroom.schemas.errors import HeadroomError


class JmxGateway:
    """The gateway JVM with the compiled bulk reader; it ends with this process, even after a crash.

    Args:
        collect: the collector's settings (timeouts, user, TLS).
    """

    def __init__(self, collect: CollectSettings) -> None:
        self._collect = collect
        self._lock = threading.Lock()
        self._gateway: JavaGateway | None = None
        self._process: subprocess.Popen[bytes] | None = None
        self._class: Any = None
        self._trust_store: _FileState = None
        self._is_stopped = False

    def start(self) -> None:
        """Start the JVM if it does not run.

        Raises:
            HeadroomError: Java or PySpark's jars are missing, or the JVM did not start.
        """
        with self._lock:
            self._is_stopped = False
            self._run()

    def ensure_runs(self) -> None:
        """Start the JVM for a read if it has ended, or if the trust store has changed: a JVM reads it once.

        Raises:
            HeadroomError: ``stop`` was called, Java or PySpark's jars are missing, or the JVM did not start.
        """
        with self._lock:
            if self._is_stopped:
                # A late read must not leave a JVM behind.
                raise HeadroomError("the JVM that reads JMX", "has been stopped", "Start the collector again.")
            self._run()

    def _run(self) -> None:
        trust_store = _state_of(self._collect.jmx_truststore)
        if self.process_id is not None and self._trust_store == trust_store:
            return
        self._end()
        self._trust_store = trust_store
        try:
            self._launch()
        except BaseException:
            # A JVM without the compiled reader would pass for one that runs.
            self._end()
            raise

    @property
    def process_id(self) -> int | None:
        """The JVM's process id; None if it does not run."""
        return self._process.pid if self._process is not None and self._process.poll() is None else None

    def reader(self, endpoint: str) -> Any:
        """Return a new bulk reader for the broker at ``host:port``; it connects at its first read.

        Raises:
            Py4JNetworkError: the JVM does not run.
        """
        gateway = self._gateway
        if gateway is None:
            raise Py4JNetworkError("the JVM does not run")
        jvm = gateway.jvm
        names = ("java.lang.String", "java.util.Map", "java.lang.Object")
        tls_registry = jvm.javax.rmi.ssl.SslRMIClientSocketFactory() if self._collect.jmx_ssl else None
        values = (f"service:jmx:rmi:///jndi/rmi://{endpoint}/jmxrmi", self._environment(gateway), tls_registry)
        types = _array(gateway, jvm.java.lang.Class, [jvm.java.lang.Class.forName(name) for name in names])
        return self._class.getDeclaredConstructor(types).newInstance(_array(gateway, jvm.java.lang.Object, values))

    def stop(self) -> None:
        """Kill the JVM, which also ends every read that hangs."""
        with self._lock:
            self._is_stopped = True
            self._end()

    def _end(self) -> None:
        process, self._process = self._process, None
        gateway, self._gateway = self._gateway, None
        if gateway is not None:
            _forget_objects(gateway)
        if process is not None:
            process.kill()
            process.wait()
        if gateway is not None:
            with contextlib.suppress(Exception):
                gateway.close()

    def _launch(self) -> None:
        jars = gateway_jars()
        try:
            with without_settings():
                port, token, self._process = launch_gateway(
                    jarpath=jars[0],
                    java_path=java_command(),
                    classpath=os.pathsep.join(jars),
                    javaopts=self._java_options(),
                    die_on_exit=True,
                    enable_auth=True,
                    return_proc=True,
                )
        except (OSError, Py4JError, ValueError):
            raise HeadroomError(
                "Java", "cannot be started", "Install Java 17 or later and put it on the PATH."
            ) from None
        self._gateway = JavaGateway(
            gateway_parameters=GatewayParameters(port=port, auth_token=token, auto_convert=True)
        )
        try:
            self._set_trust_store()
            compiler = self._gateway.jvm.org.codehaus.janino.SimpleCompiler()
            compiler.cook(SOURCE)
            self._class = compiler.getClassLoader().loadClass(CLASS_NAME)
        except (OSError, Py4JError):
            raise HeadroomError(
                "Java", "has ended right after its start", "See whether this machine has memory left."
            ) from None

    def _java_options(self) -> list[str]:
        wait_ms = int(read_s(self._collect.timeout_s()) * 1000)
        return [
            "-Xmx128m",
            "-XX:+UseSerialGC",
            "-XX:TieredStopAtLevel=1",
            # Without these a thread waits indefinitely for a broker that hangs.
            f"-Dsun.rmi.transport.tcp.responseTimeout={wait_ms}",
            f"-Dsun.rmi.transport.tcp.handshakeTimeout={wait_ms}",
        ]

    def _set_trust_store(self) -> None:
        # Set inside the JVM, because every user of the machine can read a password on the command line.
        assert self._gateway is not None
        system = self._gateway.jvm.java.lang.System
        if self._collect.jmx_truststore:
            system.setProperty("javax.net.ssl.trustStore", self._collect.jmx_truststore)
        if self._collect.jmx_truststore_password:
            system.setProperty("javax.net.ssl.trustStorePassword", self._collect.jmx_truststore_password)

    def _environment(self, gateway: JavaGateway) -> Any:
        environment = gateway.jvm.java.util.HashMap()
        # Disables the connector's thread that pings the broker.
        environment.put("jmx.remote.x.client.connection.check.period", gateway.jvm.java.lang.Long.valueOf("0"))
        if self._collect.jmx_username:
            password = secret(self._collect.jmx_password, self._collect.jmx_password_file, "collect.jmx_password_file")
            credentials = (self._collect.jmx_username, password or "")
            environment.put("jmx.remote.credentials", _array(gateway, gateway.jvm.java.lang.String, credentials))
        return environment


# Time of the last change, size and inode of a file; None if it cannot be read, or is not set.
_FileState = tuple[int, int, int] | None


def _state_of(file: str | None) -> _FileState:
    try:
        status = os.stat(file) if file else None
    except OSError:
        return None
    return None if status is None else (status.st_mtime_ns, status.st_size, status.st_ino)


def _array(gateway: JavaGateway, element_class: Any, values: Sequence[Any]) -> Any:
    array = gateway.new_array(element_class, len(values))
    for index, value in enumerate(values):
        array[index] = value
    return array


def _forget_objects(gateway: JavaGateway) -> None:
    # Py4J notifies the JVM of every dropped Java object and logs a traceback for each if the JVM is gone.
    client = gateway._gateway_client
    prefix = f"{client.address}{client.port}"
    for key in [key for key in list(ThreadSafeFinalizer.finalizers) if str(key).startswith(prefix)]:
        ThreadSafeFinalizer.remove_finalizer(key)
