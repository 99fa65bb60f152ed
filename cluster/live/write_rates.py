"""Write rates of partitions, measured in the background while a run looks at the metadata alone.

A leader switch changes the need of a throttle at once, and the new leader's meters show it only some seconds later. The
write rate of a partition is known from before the switch, so the need is known at the first look.
"""

from __future__ import annotations

import threading
from collections.abc import Mapping

from headroom.cluster.live.live_cluster import LiveCluster
from headroom.schemas.config import Settings
from headroom.schemas.errors import HeadroomError
from headroom.schemas.keys import TopicPartition
from headroom.schemas.threads import run_in_daemon_thread

# Between two measurements, each of which takes about 5 s.
_PAUSE_S = 2.0
# A first measurement includes the start of the metrics source.
_FIRST_S = 30.0


class WriteRates:
    """Measures the write rates of all partitions, again and again on a thread of its own.

    Args:
        settings: the cluster and its metrics source.
    """

    def __init__(self, settings: Settings) -> None:
        self._live = LiveCluster(settings)
        self._stop = threading.Event()
        self._measured = threading.Event()
        self._lock = threading.Lock()
        self._written: dict[TopicPartition, float] = {}
        self._cluster_written: float | None = None

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
        """Return the last known write rate by partition, and that of the whole cluster; bytes per second."""
        with self._lock:
            return dict(self._written), self._cluster_written

    def _measure(self) -> None:
        try:
            while not self._stop.is_set():
                try:
                    traffic = self._live.leadership_with_traffic().traffic
                except HeadroomError:
                    # The last rates stay: a broker that is about to fail over answers again within seconds.
                    traffic = None
                if traffic is not None:
                    with self._lock:
                        # Topics whose leaders changed meanwhile have no rate in this measurement.
                        self._written |= traffic.written
                        self._cluster_written = traffic.cluster_written
                self._measured.set()
                self._stop.wait(_PAUSE_S)
        finally:
            self._live.__exit__(None, None, None)
