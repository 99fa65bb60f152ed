"""Where benchmarks run: real brokers, their configuration, and a ``headroom watch`` on them."""

from __future__ import annotations

import json
import shutil
import tempfile
import time
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import replace
from pathlib import Path
from types import TracebackType
from typing import TypeVar

import psutil
from kafka import KafkaAdminClient
from kafka.errors import KafkaError

from cli.config import load_settings
from cli.watch_process import WatchProcess
from cluster.embedded import BrokerOptions, BrokerProcess, EmbeddedCluster, write_config
from schemas.errors import HeadroomError

Say = Callable[[str], None]
T = TypeVar("T")
_SUBJECT = "benchmark"
# controlled.shutdown.max.retries x controlled.shutdown.retry.backoff.ms is 15 s, and logs are flushed after that.
_STOP_S = 60.0
_POLL_S = 0.1
_ASK_S, _ASK_AGAIN_S = 30.0, 0.5
_REMEDY = "Nothing is kept of this group; run it again with the machine quiet."


def failure(rule: str) -> HeadroomError:
    """Return the error that says what did not happen, for which nothing is measured."""
    return HeadroomError(_SUBJECT, rule, _REMEDY)


def child_of(watch: WatchProcess, word: str) -> psutil.Process | None:
    """Return the child of a watch whose command has a word; None: there is none just now."""
    processes = watch.processes()
    for process in processes[1:]:
        # Short-lived ones come and go.
        with suppress(psutil.NoSuchProcess):
            if process.ppid() == processes[0].pid and word in process.cmdline():
                return process
    return None


def await_true(condition: Callable[[], object], deadline_s: float, what: str) -> None:
    """Return once a condition holds, which is asked some ten times a second.

    Raises:
        HeadroomError: it did not hold in time.
    """
    give_up = time.monotonic() + deadline_s
    while not condition():
        if time.monotonic() > give_up:
            raise failure(f"not within {deadline_s:.0f} s: {what}")
        time.sleep(_POLL_S)


class Ground:
    """Fresh brokers, their configuration at one tick a second, and the folder that holds it all.

    Args:
        brokers: how many.
        options: broker settings and JVM options besides the built-in ones.
        second_log_dir: whether every broker has a second log directory; without it ``log_dir`` knows the first only.
    """

    def __init__(self, brokers: int, options: BrokerOptions | None = None, second_log_dir: bool = False) -> None:
        self.folder = Path(tempfile.mkdtemp(prefix="headroom-bench-"))
        self.brokers = range(1, brokers + 1)
        if second_log_dir:
            options = self._with_second_log_dir(options or BrokerOptions())
        self._cluster = EmbeddedCluster(self.folder / "kafka", brokers, options=options)

    def _with_second_log_dir(self, options: BrokerOptions) -> BrokerOptions:
        own = {
            b: {**options.broker_properties.get(b, {}), "log.dirs": f"{self.log_dir(b)},{self.log_dir(b, second=True)}"}
            for b in self.brokers
        }
        return replace(options, broker_properties=own)

    def log_dir(self, broker_id: int, second: bool = False) -> Path:
        """Return a log directory of a broker: the one that the embedded cluster gives it, or the second."""
        return self.folder / "kafka" / ("second" if second else "data") / f"broker-{broker_id}"

    def __enter__(self) -> Ground:
        """Return this ground with all brokers ready."""
        try:
            self._cluster.start()
            self.config = write_config(self._cluster)
            self.settings = load_settings(str(self.config))
            self.admin = self.connect()
        except BaseException:
            self._discard()
            raise
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, at: TracebackType | None) -> None:
        """Stop the brokers and remove the folder."""
        with suppress(KafkaError):
            self.admin.close()
        self._discard()

    def _discard(self) -> None:
        self._cluster.stop()
        shutil.rmtree(self.folder, ignore_errors=True)

    @property
    def bootstrap_servers(self) -> str:
        """Return ``host:port`` of the brokers."""
        return self._cluster.bootstrap_servers

    def broker(self, broker_id: int) -> BrokerProcess:
        """Return one broker as started."""
        return self._cluster.broker(broker_id)

    @property
    def store(self) -> str:
        """Return the folder of the tables as configured."""
        return self.settings.store.path

    def configure(self, interval_s: float, spark: Mapping[str, str | float] | None = None) -> None:
        """Set the interval of ticks, and keys of the section ``[spark]``."""
        text = self.config.read_text(encoding="utf-8").replace("interval_s = 1.0", f"interval_s = {interval_s}")
        self.config.write_text(text, encoding="utf-8")
        self.add_section("spark", spark or {})

    def add_section(self, name: str, values: Mapping[str, str | float]) -> None:
        """Add a section to the configuration file that is not there yet."""
        lines = [f"{key} = {json.dumps(value)}" for key, value in values.items()]
        text = self.config.read_text(encoding="utf-8")
        self.config.write_text("\n".join([text, f"[{name}]", *lines, ""]), encoding="utf-8")
        self.settings = load_settings(str(self.config))

    def kill(self, broker_id: int) -> None:
        """Kill a broker at once, as a crash would."""
        self._cluster.kill(broker_id)

    def stop(self, broker_id: int) -> None:
        """Stop a broker in order, as a rolling restart does: it hands its leaders over first."""
        process = psutil.Process(self.broker(broker_id).pid)
        process.terminate()
        try:
            process.wait(_STOP_S)
        except psutil.TimeoutExpired:
            raise failure(f"broker {broker_id} did not stop within {_STOP_S:.0f} s") from None

    def restart(self, broker_id: int) -> None:
        """Start a broker again that was killed or stopped; return when it is ready."""
        self._cluster.restart(broker_id)
        # The client remembers the broker as gone, and may go on sending what is for the controller there.
        self.reconnect()

    def reconnect(self) -> None:
        """Replace the admin client by a new one."""
        old, self.admin = self.admin, self.connect()
        with suppress(KafkaError):
            old.close()

    def ask(self, question: Callable[[], T]) -> T:
        """Return an answer of the brokers; a question that fails is asked again by a new client, for a while.

        Args:
            question: has to use ``admin`` as it is then.

        Raises:
            KafkaError: no answer came in time.
        """
        give_up = time.monotonic() + _ASK_S
        while True:
            try:
                return question()
            except KafkaError:
                if time.monotonic() > give_up:
                    raise
                time.sleep(_ASK_AGAIN_S)
                with suppress(KafkaError):
                    self.reconnect()

    def connect(self) -> KafkaAdminClient:
        """Return an admin client of its own."""
        return KafkaAdminClient(bootstrap_servers=self.bootstrap_servers)

    def watch(self, store: Path | None = None, options: Sequence[str] = ()) -> WatchProcess:
        """Return a running ``headroom watch``; it writes to ``store`` if that is given."""
        return WatchProcess(self.config, self.folder / "watch.log", store, options, subject=_SUBJECT, remedy=_REMEDY)
