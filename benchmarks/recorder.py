"""``python -m benchmarks.recorder PORT JOURNAL``: receivers of alerts that forget nothing when they are killed.

A webhook at ``/hook`` that knows a post by its ``Idempotency-Key``, and Slack's API for one channel at ``/api/``. What
is taken stands in the journal before it is answered, and a start takes it up.
"""

from __future__ import annotations

import json
import os
import sys
import threading
from collections import Counter
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from alerts.delivery.slack_api import told_keys
from alerts.delivery.steps import event_key
from alerts.delivery.webhook import KEY_HEADER
from schemas.findings import AlertEvent
from tests.unit.receivers import Asked, FakeSlack, Said, serving

HOOK_PATH = "/hook"
SLACK_PATH = "/api/"
_READS = "conversations."


class Taken:
    """What the receivers have taken, and what a person sees of it."""

    def __init__(self) -> None:
        self._slack = FakeSlack()
        self._posts: dict[str, str] = {}

    def take(self, asked: Asked) -> Said:
        """Return the answer to a request."""
        if asked.path.startswith(SLACK_PATH):
            return self._slack(asked)
        self._posts.setdefault(asked.headers[KEY_HEADER], _key(json.loads(asked.body)["event"]))
        return Said()

    def shown(self) -> dict[str, Counter[str]]:
        """Return for each receiver how often it shows which event, by the event's key.

        A post that comes again under a key that is known is not shown again; a message of Slack's is.
        """
        slack = Counter(key for message in self._slack.messages.values() for key in told_keys(message))
        return {"webhook": Counter(self._posts.values()), "slack": slack}


def _key(said: Mapping[str, Any]) -> str:
    return f"{said['alert_id']}/{said['tick_ms']}/{said['state']}"


def read(journal: Path) -> tuple[Taken, int]:
    """Return what a journal holds, and how many bytes of it are whole lines.

    What a kill cut off was never answered, and comes again.
    """
    taken, whole_bytes = Taken(), 0
    for line in journal.read_bytes().splitlines(keepends=True) if journal.exists() else ():
        if line.endswith(b"\n"):
            whole_bytes += len(line)
            fields = json.loads(line)
            taken.take(Asked(fields["path"], fields["headers"], fields["body"].encode()))
    return taken, whole_bytes


class Recorder:
    """Answers requests, and keeps those that change anything before they are answered.

    Args:
        journal: file that keeps them.
    """

    def __init__(self, journal: Path) -> None:
        self._taken, whole_bytes = read(journal)
        self._journal = journal.open("a", encoding="utf-8")
        self._journal.truncate(whole_bytes)
        self._lock = threading.Lock()

    def __call__(self, asked: Asked) -> Said:
        """Return the answer to a request."""
        with self._lock:
            if _READS not in asked.path:
                self._journal.write(json.dumps({**vars(asked), "body": asked.body.decode()}) + "\n")
                self._journal.flush()
                os.fsync(self._journal.fileno())
            return self._taken.take(asked)


def lost_and_doubled(events: Sequence[AlertEvent], shown: Mapping[str, Mapping[str, int]]) -> tuple[int, int]:
    """Return how many events receivers did not show, and how many they showed once too often, over all receivers.

    Args:
        events: all that receivers are to be told of.
        shown: by receiver, how often it shows which event, by the event's key.
    """
    keys = {event_key(event) for event in events}
    lost = sum(len(keys - seen.keys()) for seen in shown.values())
    return lost, sum(times - 1 for seen in shown.values() for times in seen.values())


def main() -> None:
    """Serve until killed."""
    port, journal = int(sys.argv[1]), Path(sys.argv[2])
    with serving(Recorder(journal), port) as url:
        print(url, flush=True)
        threading.Event().wait()


if __name__ == "__main__":
    main()
