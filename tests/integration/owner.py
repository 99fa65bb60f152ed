"""Run as a process: owns an embedded cluster in the folder of the first argument until it is ended from outside."""

from __future__ import annotations

import json
import signal
import sys

from headroom.cluster.embedded import EmbeddedCluster

if __name__ == "__main__":
    with EmbeddedCluster(sys.argv[1], brokers=2) as cluster:
        print(json.dumps([broker.pid for broker in cluster.brokers]), flush=True)
        signal.pause()
