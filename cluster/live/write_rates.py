"""Write rates of partitions, measured in the background while a run looks at the metadata alone.

A leader switch changes the need of a throttle at once, and the new leader's meters show it only some seconds later. The
write rate of a partition is known from before the switch, so the need is known at the first look.
"""

from __future__ import annotations

import logging
import threading
import time
from collections.abc import Callable, Mapping

from headroom.cluster.live.live_cluster import LiveCluster
from headroom.schemas.config import Settings
from headroom.schemas.errors import HeadroomError
from headroom.schemas.keys import TopicPartition
from headroom.schemas.threads import run_in_daemon_thread

log = logging.getLogger(__name__)
# Between two measurements, each of which takes about 5 s.
_PAUSE_S = 2.0
# A first measurement includes the start of the metrics source.
_FIRST_S = 30.0
# Rates that have not been measured for longer are unknown. A broker that fails over answers again within seconds.
_MOST_AGE_S = 60.0


class WriteRates:
    """Measures the write rates of all partitions, again and again on a thread of its own.

    Args:
        settings: the cluster and its metrics source.
        clock: monotonic seconds.
    """

    def __init__(self, settings: Settings, clock: Callable[[], float] = time.monotonic) -> None:
        self._live = LiveCluster(settings)
        self._clock = clock
        self._stop = threading.Event()
        self._measured = threading.Event()
        self._lock = threading.Lock()
        self._written: dict[TopicPartition, float] = {}
        self._cluster_written: float | None = None
        self._measured_s: float | None = None
        self._last_error = ""

    def start(self) -> None:
        """Begin to measure, and wait for a first measurement; without one the rates are unknown.

        Raises:
            HeadroomError: no broker could be reached.
        """
        self._live.__enter__()
        run_in_daemon_thread("write-rates", self._measure)
        self._measured.wait(_FIRST_S)

    def stop(self) -> None:
        """Stop measuring."""
        self._stop.set()

    def now(self) -> tuple[Mapping[TopicPartition, float], float | None]:
        """Return the last known write rate by partition, and that of the whole cluster; bytes per second.

        Both are unknown if no measurement has succeeded for a minute.
        """
        with self._lock:
            if self._measured_s is None or self._clock() - self._measured_s > _MOST_AGE_S:
                return {}, None
            return dict(self._written), self._cluster_written

    def _measure(self) -> None:
        try:
            while not self._stop.is_set():
                try:
                    traffic = self._live.leadership_with_traffic().traffic
                # Whatever it is, the thread goes on: the next measurement may succeed, and old rates end by their age.
                except Exception as error:
                    self._log(error)
                else:
                    with self._lock:
                        # Topics whose leaders changed meanwhile have no rate in this measurement.
                        self._written |= traffic.written
                        self._cluster_written = traffic.cluster_written
                        self._measured_s = self._clock()
                        self._last_error = ""
                self._measured.set()
                self._stop.wait(_PAUSE_S)
        finally:
            self._live.__exit__(None, None, None)

    def _log(self, error: Exception) -> None:
        """Log why write rates were not measured, once for each reason."""
        text = str(error) if isinstance(error, HeadroomError) else f"{type(error).__name__}: {error}"
        if text != self._last_error:
            self._last_error = text
            log.warning("write rates were not measured, and are unknown after %g s: %s", _MOST_AGE_S, text)
