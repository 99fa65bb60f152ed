"""A standalone Spark cluster on this machine, and Headroom's jobs on it by ``spark-submit``."""

from __future__ import annotations

import json
import subprocess
import sys
import time
from collections.abc import Callable, Sequence
from contextlib import closing
from http.client import HTTPConnection
from pathlib import Path
from types import TracebackType
from typing import Any

import psutil
import pyspark

from cli.watch_process import JudgingProcess
from cluster.embedded.layout import HOST, free_ports
from cluster.embedded.processes import Guardian, last_lines
from schemas.errors import HeadroomError
from streaming.session import EXECUTOR_OPTIONS

_PACKAGE = Path(__file__).resolve().parent.parent / "scripts" / "package.py"
_SPARK_HOME = Path(pyspark.__file__).parent
_READY_S = 60.0
_POLL_S = 0.2
_NAME = "spark-submit"
# No such program: whatever wants to run Python on an executor fails.
_NO_PYTHON = "/no/python/on/executors"


class SparkCluster:
    """A master and workers of one core each on 127.0.0.1, which end with this process, however it ends.

    Args:
        folder: of their logs and work; made if missing.
        workers: how many.
        worker_memory: what each may give to executors, as Spark writes it.
    """

    def __init__(self, folder: Path, workers: int = 2, worker_memory: str = "1g") -> None:
        self._folder = folder
        self._workers = workers
        self._worker_memory = worker_memory
        self._guardian = Guardian()
        ports = free_ports(1)[1]
        self.master = f"spark://{HOST}:{ports.client}"
        self._port, self._ui_port = ports.client, ports.jmx

    def __enter__(self) -> SparkCluster:
        """Return the cluster when all its workers have registered."""
        try:
            self._folder.mkdir(parents=True, exist_ok=True)
            self._spawn("master.Master", "--port", str(self._port), "--webui-port", str(self._ui_port))
            self._await(lambda: self.living_workers() is not None, "its master answers")
            for number in range(self._workers):
                self._start_worker(self._folder / f"worker-{number}")
            self._await(lambda: self.living_workers() == self._workers, f"{self._workers} workers are registered")
        except BaseException:
            self._guardian.kill_all()
            raise
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, at: TracebackType | None) -> None:
        """Kill all its processes, executors too."""
        self._guardian.kill_all()

    @property
    def log(self) -> Path:
        """Return the file with what master and workers log."""
        return self._folder / "cluster.log"

    def living_workers(self) -> int | None:
        """Return how many workers are registered with the master; None: it does not answer."""
        state = self._state()
        return None if state is None else int(state["aliveworkers"])

    def cores_in_use(self) -> int:
        """Return how many cores of the workers an application has; 0 also if the master does not answer."""
        return int((self._state() or {}).get("coresused", 0))

    def _state(self) -> dict[str, Any] | None:
        # Not by urllib, which would ask a proxy for it where the environment names one.
        with closing(HTTPConnection(HOST, self._ui_port, timeout=2)) as connection:
            try:
                connection.request("GET", "/json/")
                return dict(json.load(connection.getresponse()))
            except OSError:
                return None

    def _start_worker(self, work: Path) -> None:
        size = ("--cores", "1", "--memory", self._worker_memory)
        self._spawn("worker.Worker", *size, "--webui-port", "0", "--work-dir", str(work), self.master)

    def _spawn(self, daemon: str, *arguments: str) -> None:
        environment = ["env", "SPARK_DAEMON_MEMORY=256m", f"SPARK_LOCAL_DIRS={self._folder}/local"]
        program = [str(_SPARK_HOME / "bin" / "spark-class"), f"org.apache.spark.deploy.{daemon}", "--host", HOST]
        self._guardian.spawn([*environment, *program, *arguments], self.log)

    def _await(self, condition: Callable[[], bool], what: str) -> None:
        give_up = time.monotonic() + _READY_S
        while not condition():
            if time.monotonic() > give_up:
                raise HeadroomError(
                    "Spark cluster", f"not within {_READY_S:.0f} s: {what}: {last_lines(self.log)}", f"See {self.log}"
                )
            time.sleep(_POLL_S)


class SubmittedJobs(JudgingProcess):
    """``headroom run`` by ``spark-submit`` on a cluster.

    Its executors have no Python, and the driver has Headroom from the package alone.

    Args:
        master: URL of the cluster's master.
        package: folder of ``make package``.
        arguments: of ``headroom``.
        log: file to which is added what it logs.
        options: further options of ``spark-submit``.
    """

    def __init__(
        self, master: str, package: Path, arguments: Sequence[str], log: Path, options: Sequence[str] = ()
    ) -> None:
        command = submit_command(master, package, arguments, options)
        super().__init__(_NAME, command, log, {"SPARK_HOME": str(_SPARK_HOME)})

    def _ask_to_stop(self) -> None:
        # The JVM would take Spark away from under the jobs; when the driver's Python ends, it ends too.
        drivers = [process for process in self.processes()[1:] if process.name().startswith("python")]
        for process in drivers or [psutil.Process(self._process.pid)]:
            process.terminate()


def packaged(folder: Path) -> Path:
    """Return the folder, made, with what ``make package`` puts together."""
    subprocess.run([sys.executable, str(_PACKAGE), str(folder)], check=True, capture_output=True)
    return folder


def submit_command(master: str, package: Path, arguments: Sequence[str], options: Sequence[str] = ()) -> list[str]:
    """Return the command line of ``spark-submit`` for a driver on this machine.

    Args:
        master: URL of the cluster's master.
        package: folder of ``make package``.
        arguments: of ``headroom``.
        options: further options of ``spark-submit``.
    """
    settings = {
        "spark.driver.host": HOST,
        "spark.driver.bindAddress": HOST,
        "spark.ui.enabled": "false",
        "spark.pyspark.driver.python": sys.executable,
        "spark.pyspark.python": _NO_PYTHON,
    }
    return [
        *(str(_SPARK_HOME / "bin" / "spark-submit"), "--master", master, "--deploy-mode", "client"),
        *("--driver-java-options", EXECUTOR_OPTIONS),
        *(part for key, value in settings.items() for part in ("--conf", f"{key}={value}")),
        *("--jars", str(package / "jars" / "*.jar")),
        *("--py-files", str(package / "headroom.zip")),
        *options,
        str(package / "submit.py"),
        *arguments,
    ]
