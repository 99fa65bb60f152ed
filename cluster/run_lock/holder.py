"""Who has the run lock of a cluster, as the members of its group get it."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import asdict, dataclass
from typing import Any

from headroom.schemas.text import one_line
from headroom.schemas.text.amounts import moment_text

_MAX_CHARACTERS = 300


@dataclass(frozen=True)
class LockHolder:
    """The process that has the run lock of a cluster. It comes from another process: each part may be unknown.

    Attributes:
        by: user and host, such as ``anna@host1``; empty if unknown.
        pid: id of the process on its host; None if unknown.
        since_ms: when it asked for the lock, epoch milliseconds; None if unknown.
        command: its command line, shortened; empty if unknown.
        store: its ``store.path``; empty if unknown.
        run: id of the run that it carries on; empty if there is none yet, or if it is unknown.
    """

    by: str = ""
    pid: int | None = None
    since_ms: int | None = None
    command: str = ""
    store: str = ""
    run: str = ""

    def encode(self) -> bytes:
        """Return it as the bytes that members of the group get."""
        return json.dumps(asdict(self)).encode()

    @classmethod
    def decode(cls, data: bytes) -> LockHolder:
        """Return a holder from such bytes, whatever another program has put in their place."""
        try:
            found: Mapping[str, Any] = json.loads(data)
            texts = {name: str(found.get(name) or "") for name in ("by", "command", "store", "run")}
            given = {name: found.get(name) for name in ("pid", "since_ms")}
            numbers = {name: None if value is None else int(value) for name, value in given.items()}
            # In the command that ends it, such a number would name several processes.
            if numbers["pid"] is not None and numbers["pid"] <= 0:
                numbers["pid"] = None
            return cls(**texts, **numbers)  # type: ignore[arg-type]
        except (ValueError, TypeError, AttributeError, OverflowError, RecursionError):
            return cls()

    @property
    def host(self) -> str:
        """Its host; empty if unknown."""
        return self.by.rpartition("@")[2]

    def __str__(self) -> str:
        if not self.by or self.pid is None:
            return "an unknown process"
        since = "" if self.since_ms is None else f" since {moment_text(self.since_ms)}"
        what = "; ".join(
            [*[self.command] * bool(self.command), *[f"run {self.run}"] * bool(self.run)]
            + [f"store {self.store}"] * bool(self.store)
        )
        return one_line(f"{self.by}, pid {self.pid}{since}{f' ({what})' if what else ''}", _MAX_CHARACTERS)
