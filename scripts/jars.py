"""Downloads the jars of ivy.xml with the Ivy that PySpark ships; standard library only, see setup.py."""

import hashlib
import os
import shutil
import subprocess
import time
from pathlib import Path
from urllib.parse import urlsplit

import preflight
from preflight import SetupError

ATTEMPTS = 3
PAUSE_S = 5
# Optional path of an ivysettings.xml, for example with a mirror.
SETTINGS_VARIABLE = "HEADROOM_IVY_SETTINGS"
# Jars that a complete download contains: Ivy has exited with 0 although jars were missing.
REQUIRED = {
    "spark": ("delta-spark_", "spark-sql-kafka-"),
    "kafka": ("kafka_2.13-", "kafka-tools-", "log4j-slf4j-impl-"),
    "agents": ("jolokia-agent-jvm-", "jmx_prometheus_javaagent-"),
    "zookeeper": ("kafka_2.13-", "zookeeper-", "slf4j-reload4j-"),
}


def are_fetched(root: Path) -> bool:
    """Return whether all jars of the current ivy.xml were downloaded."""
    return preflight.is_stamped(root / ".jars" / ".fetched", _ivy_hash(root))


def fetch(root: Path, pyspark_jars: Path) -> None:
    """Download the jars into ``.jars``, one folder per configuration; the stamp is written after the last one."""
    if are_fetched(root):
        return
    print("set-up: fetching jars into .jars (once, about 140 MB)", flush=True)
    target = root / ".jars"
    target.mkdir(exist_ok=True)
    (target / ".fetched").unlink(missing_ok=True)
    incoming = target / ".arriving"
    shutil.rmtree(str(incoming), ignore_errors=True)
    _retrieve(root, pyspark_jars, incoming)
    for configuration in REQUIRED:
        shutil.rmtree(str(target / configuration), ignore_errors=True)
        (incoming / configuration).rename(target / configuration)
    (target / ".fetched").write_text(_ivy_hash(root))
    shutil.rmtree(str(incoming), ignore_errors=True)
    shutil.rmtree(str(target / ".ivy-cache"), ignore_errors=True)


def _retrieve(root: Path, pyspark_jars: Path, incoming: Path) -> None:
    command = ivy_command(root, pyspark_jars, incoming)
    log = root / ".jars" / "ivy.log"
    for attempt in range(1, ATTEMPTS + 1):
        with log.open("wb") as output:
            code = subprocess.run(command, cwd=str(root), stdout=output, stderr=subprocess.STDOUT).returncode
        if code == 0 and _complete(incoming):
            return
        if attempt < ATTEMPTS:
            # Downloaded jars stay in Ivy's cache, so the next attempt continues from there.
            print("set-up: not all jars arrived, trying again", flush=True)
            time.sleep(PAUSE_S)
    remedy = f"Check the network, HTTPS_PROXY and {SETTINGS_VARIABLE} if you use them, then run this again; see {log}"
    raise SetupError("jars", "cannot be fetched: " + _failure_reason(log), remedy)


def ivy_command(root: Path, pyspark_jars: Path, incoming: Path) -> "list[str]":
    """Return the command that downloads all configurations, with all of its state under ``.jars``."""
    classpath = os.pathsep.join(
        str(jar) for name in ("ivy-*.jar", "commons-cli-*.jar") for jar in pyspark_jars.glob(name)
    )
    settings = os.environ.get(SETTINGS_VARIABLE)
    cache = root / ".jars" / ".ivy-cache"
    return (
        [preflight.java_command(), "-Dsun.net.client.defaultConnectTimeout=20000"]
        + ["-Dsun.net.client.defaultReadTimeout=60000", f"-Divy.default.ivy.user.dir={cache}"]
        + proxy_options(os.environ)
        + ["-cp", classpath, "org.apache.ivy.Main", "-ivy", "ivy.xml", "-cache", str(cache)]
        + (["-settings", settings] if settings else [])
        + ["-confs"]
        + list(REQUIRED)
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
        proxy = urlsplit(environment.get(name) or environment.get(name.upper()) or "")
        if proxy.hostname:
            options.append(f"-D{scheme}.proxyHost={proxy.hostname}")
            options.append(f"-D{scheme}.proxyPort={proxy.port or 80}")
    return options


def _complete(incoming: Path) -> bool:
    return all(any((incoming / conf).glob(name + "*.jar")) for conf, names in REQUIRED.items() for name in names)


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
