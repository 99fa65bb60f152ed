"""Downloads the jars of ivy.xml with Ivy, one run and one folder per configuration; standard library only.

PySpark ships Ivy. While PySpark itself is being installed, the same two jars come from Maven Central, so that packages
and jars arrive side by side.
"""

import hashlib
import os
import shutil
import time
import urllib.request
import zipfile
from collections.abc import Callable
from http.client import HTTPException
from pathlib import Path
from urllib.parse import urlsplit

import preflight
from preflight import SetupError
from side_by_side import Step, megabytes, rate

ATTEMPTS = 3
PAUSE_S = 5
# Optional path of an ivysettings.xml, for example with a mirror.
SETTINGS_VARIABLE = "HEADROOM_IVY_SETTINGS"
# Jars that a complete download of a configuration contains: Ivy has exited with 0 although jars were missing.
REQUIRED = {
    "spark": ("delta-spark_", "spark-sql-kafka-"),
    "kafka": ("kafka_2.13-", "kafka-tools-", "log4j-slf4j-impl-"),
    "agents": ("jolokia-agent-jvm-", "jmx_prometheus_javaagent-"),
    "zookeeper": ("kafka_2.13-", "zookeeper-", "slf4j-reload4j-"),
    "remote-storage": ("kafka-storage-",),
    "mirror": ("connect-mirror-", "connect-runtime-", "jetty-server-"),
}
# About what a configuration brings.
SIZES = {"spark": 24e6, "kafka": 47e6, "agents": 4e6, "zookeeper": 48e6, "remote-storage": 1e6, "mirror": 11e6}
_CENTRAL = "https://repo1.maven.org/maven2/"
# Ivy and what it needs, with their SHA-256: the versions that PySpark ships.
_IVY = {
    "org/apache/ivy/ivy/2.5.3/ivy-2.5.3.jar": "9502aa5aabf0b1484924a13ef4b5d24f121f7f91aab6768f11cc9d0906c0803b",
    "commons-cli/commons-cli/1.11.0/commons-cli-1.11.0.jar": (
        "8f7f8605d68e15bf32db61ec94eac6fdafc51b1bdbe1e0e0802b57d23f387792"
    ),
}
_CONNECT_S = 20.0


def missing(root: Path, configurations: "tuple[str, ...]") -> "list[str]":
    """Return the configurations of the current ivy.xml that are not downloaded yet, or damaged since."""
    return [c for c in configurations if not _is_fetched(root, c)]


def _is_fetched(root: Path, configuration: str) -> bool:
    stamped = preflight.is_stamped(_stamp(root, configuration), _ivy_hash(root))
    return stamped and _is_whole(root / ".jars", configuration)


def fetch(root: Path, configurations: "list[str]", pyspark_jars: Path) -> None:
    """Download configurations into ``.jars``, with PySpark's Ivy if Maven Central cannot be reached directly.

    Raises:
        SetupError: some jars cannot be downloaded.
    """
    JarsStep(root, configurations, lambda: pyspark_jars).work()


class JarsStep(Step):
    """Downloads configurations into ``.jars``, each into a folder of its own; its stamp is written last.

    Args:
        root: the checkout.
        configurations: those to download.
        installed: returns PySpark's folder of jars; waits until PySpark is installed.
    """

    def __init__(self, root: Path, configurations: "list[str]", installed: "Callable[[], Path]") -> None:
        super().__init__("jars")
        self._root = root
        self._configurations = configurations
        self._installed = installed
        self._began = time.monotonic()

    def work(self) -> None:
        """Download the jars; raises SetupError if some cannot be downloaded."""
        target = self._root / ".jars"
        target.mkdir(exist_ok=True)
        # A download that was interrupted continues from Ivy's cache.
        incoming = target / ".arriving"
        shutil.rmtree(str(incoming), ignore_errors=True)
        self._retrieve(incoming)
        for configuration in self._configurations:
            _stamp(self._root, configuration).unlink(missing_ok=True)
            shutil.rmtree(str(target / configuration), ignore_errors=True)
            (incoming / configuration).rename(target / configuration)
            _stamp(self._root, configuration).write_text(_ivy_hash(self._root))
        shutil.rmtree(str(incoming), ignore_errors=True)
        shutil.rmtree(str(_cache(self._root)), ignore_errors=True)

    def progress(self) -> str:
        """Return the bytes in Ivy's cache, their rate, and how many are expected."""
        arrived = sum(_size(jar) for jar in _cache(self._root).glob("**/*.jar*"))
        expected = sum(SIZES[configuration] for configuration in self._configurations)
        return f"{rate(arrived, self._began)} of about {megabytes(expected)}"

    def _retrieve(self, incoming: Path) -> None:
        ivy_jars, left = self._ivy_jars(), list(self._configurations)
        for attempt in range(1, ATTEMPTS + 1):
            # Ivy asks for one file after the other, so that most of its time is the way there and back.
            logs = {c: self._root / ".jars" / f"ivy-{c}.log" for c in left}
            commands = {log: ivy_command(self._root, ivy_jars, incoming, c) for c, log in logs.items()}
            codes = self.commands(commands, self._root)
            left = [c for c in left if codes[logs[c]] != 0 or not _is_whole(incoming, c)]
            if not left:
                return
            if self.is_stopped:
                raise SetupError("jars", "were not fetched", "Run this again")
            if attempt < ATTEMPTS:
                # Downloaded jars stay in Ivy's cache, so the next attempt continues from there.
                time.sleep(PAUSE_S)
        log = logs[left[0]]
        remedy = (
            f"Check the network, HTTPS_PROXY and {SETTINGS_VARIABLE} if you use them, then run this again; see {log}"
        )
        raise SetupError("jars", "cannot be fetched: " + _failure_reason(log), remedy)

    def _ivy_jars(self) -> "list[Path]":
        """Return the jars of Ivy: those from Maven Central, or PySpark's, once it is installed."""
        # Who names a mirror may have no way to Maven Central.
        if SETTINGS_VARIABLE not in os.environ:
            try:
                return [_download(self._root / ".jars" / ".ivy", path, digest) for path, digest in _IVY.items()]
            except (OSError, ValueError, HTTPException):
                pass
        folder = self._installed()
        return [jar for name in ("ivy-*.jar", "commons-cli-*.jar") for jar in sorted(folder.glob(name))]


def _download(folder: Path, path: str, digest: str) -> Path:
    """Return a file of Maven Central in a folder; it is downloaded if it is not there.

    Raises:
        OSError: it cannot be downloaded.
        HTTPException: its download ended too early.
        ValueError: it is not the file with this SHA-256.
    """
    file = folder / path.rsplit("/", 1)[1]
    if not file.exists() or hashlib.sha256(file.read_bytes()).hexdigest() != digest:
        folder.mkdir(exist_ok=True)
        with urllib.request.urlopen(_CENTRAL + path, timeout=_CONNECT_S) as answer:
            content = answer.read()
        if hashlib.sha256(content).hexdigest() != digest:
            raise ValueError(path)
        file.write_bytes(content)
    return file


def ivy_command(root: Path, ivy_jars: "list[Path]", incoming: Path, configuration: str) -> "list[str]":
    """Return the command that downloads a configuration, with all of its state under ``.jars``."""
    settings = os.environ.get(SETTINGS_VARIABLE)
    # Its own, because Ivy does not share one with another that runs.
    cache = _cache(root) / configuration
    return (
        [preflight.java_command(), "-Dsun.net.client.defaultConnectTimeout=20000"]
        + ["-Dsun.net.client.defaultReadTimeout=60000", f"-Divy.default.ivy.user.dir={cache}"]
        + proxy_options(os.environ)
        + ["-cp", os.pathsep.join(map(str, ivy_jars))]
        + ["org.apache.ivy.Main", "-ivy", "ivy.xml", "-cache", str(cache)]
        + (["-settings", settings] if settings else [])
        + ["-confs", configuration]
        + [
            "-retrieve",
            str(incoming / "[conf]" / "[artifact]-[revision](-[classifier]).[ext]"),
            "-types",
            "jar",
            "bundle",
        ]
    )


def proxy_options(environment: "os._Environ[str] | dict[str, str]") -> "list[str]":
    """Return Java's options for the proxies of ``http_proxy`` and ``https_proxy``, which Java does not read."""
    options = []
    for scheme in ("http", "https"):
        name = scheme + "_proxy"
        given = environment.get(name) or environment.get(name.upper()) or ""
        # pip takes one without a scheme too.
        proxy = urlsplit(given if "://" in given else "//" + given)
        if proxy.hostname:
            options.append(f"-D{scheme}.proxyHost={proxy.hostname}")
            options.append(f"-D{scheme}.proxyPort={proxy.port or 80}")
    return options


def _is_whole(folder: Path, configuration: str) -> bool:
    """Return whether a configuration's folder has the required jars, and each of its jars has an end, as of a zip.

    A jar that was cut off would fail much later, as a class that is missing.
    """
    jars = list((folder / configuration).glob("*.jar"))
    required = all(any(jar.name.startswith(name) for jar in jars) for name in REQUIRED[configuration])
    return required and all(zipfile.is_zipfile(str(jar)) for jar in jars)


def _failure_reason(log: Path) -> str:
    """Return the most specific line of Ivy's log: a failed connection before the missing jars that follow from it."""
    lines = [line.strip(" \t:") for line in log.read_text(errors="replace").splitlines()]
    for pattern in ("UnknownHost", "Connection refused", "timed out", "SSL", "Server access", "FAILED", "Exception"):
        for line in lines:
            if pattern in line:
                return line[:200]
    return "Ivy failed"


def _ivy_hash(root: Path) -> str:
    return hashlib.sha256((root / "ivy.xml").read_bytes()).hexdigest()


def _stamp(root: Path, configuration: str) -> Path:
    return root / ".jars" / (".fetched-" + configuration)


def _cache(root: Path) -> Path:
    return root / ".jars" / ".ivy-cache"


def _size(file: Path) -> int:
    try:
        return file.stat().st_size
    except OSError:
        return 0
