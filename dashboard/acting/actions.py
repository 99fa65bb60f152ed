"""Actions: commands that somebody has chosen on a page, from the look at the change to its end.

Each has a folder: what it is, and for the look and for the change one folder more, which its worker writes. So a page
that is loaded again, a second page, and a server that was started again all see the same.
"""

from __future__ import annotations

import errno
import json
import os
import secrets
import shutil
import signal
import stat
import subprocess
import sys
import threading
from collections.abc import Callable, Sequence
from contextlib import suppress
from dataclasses import dataclass
from enum import Enum
from pathlib import Path
from typing import Any

from headroom.dashboard.acting import worker
from headroom.dashboard.acting.allowed import AllowedCommand, allowed_command
from headroom.dashboard.acting.offers import CommandOffer
from headroom.dashboard.acting.worker import (
    COMMAND_FILE,
    LOCK_FILE,
    OUTPUT_FILE,
    PROCESS_FILE,
    RESULT_FILE,
    is_running,
    write_json,
)
from headroom.schemas.environment import STARTED_BY
from headroom.schemas.errors import HeadroomError

# Below the tables.
FOLDER = "_actions"
# What was shown so long ago may not be what the cluster is now.
LOOK_IS_GOOD_MS = 600_000
# A worker writes its process within this time.
_START_MS = 20_000
_MOST_RUNNING = 4
_MOST_KEPT = 200
# The end of an output that is shown.
_SHOWN_BYTES = 64_000
_ACTION_FILE, _BEGAN_FILE, _LOOK, _CHANGE = "action.json", "began.json", "look", "change"


class ActionProgress(str, Enum):
    """How far an action is.

    Attributes:
        LOOKING: the command is run without ``--execute``.
        NOT_POSSIBLE: that ended with an error, or its process is gone.
        NOTHING: it has made nothing that can be carried out.
        SHOWN: it waits for somebody to say yes.
        OUTDATED: it waited too long.
        CHANGING: it is carried out.
        DONE: it has ended without an error.
        FAILED: it has ended with one.
        LOST: the process of the change is gone, and how it ended is not known.
    """

    LOOKING = "looking"
    NOT_POSSIBLE = "not_possible"
    NOTHING = "nothing"
    SHOWN = "shown"
    OUTDATED = "outdated"
    CHANGING = "changing"
    DONE = "done"
    FAILED = "failed"
    LOST = "lost"

    @property
    def is_running(self) -> bool:
        """Return whether a process works on it."""
        return self in (ActionProgress.LOOKING, ActionProgress.CHANGING)


@dataclass(frozen=True)
class ChosenAction:
    """An action.

    Attributes:
        action_id: its id.
        offer: its cluster and command.
        made_ms: when it was chosen, epoch milliseconds.
        progress: how far it is.
        look: output of the look; empty if there was none.
        output: output of the change so far.
        exit_code: exit code of the last process that has ended; None if none has.
        change_text: command that a shell would run to carry it out; None if there is nothing to carry out, or it is not
            known yet.
    """

    action_id: str
    offer: CommandOffer
    made_ms: int
    progress: ActionProgress
    look: str = ""
    output: str = ""
    exit_code: int | None = None
    change_text: str | None = None

    @property
    def goes_on(self) -> bool:
        """Return whether the same can be carried out again, and goes on where it was interrupted."""
        interrupted = self.progress in (ActionProgress.FAILED, ActionProgress.LOST)
        return self.offer.command.is_made and interrupted


class Actions:
    """The actions of a store. Threads may share it.

    Args:
        store_path: folder of the tables, on this machine.
        command_line: returns the command line that runs Headroom with some arguments.
        clock_ms: returns the current time, epoch milliseconds.
    """

    def __init__(
        self, store_path: str, command_line: Callable[[Sequence[str]], list[str]], clock_ms: Callable[[], int]
    ) -> None:
        # Commands run elsewhere, and name files in it.
        self._folder = Path(store_path).absolute() / FOLDER
        self._command_line = command_line
        self._clock_ms = clock_ms
        self._lock = threading.Lock()

    def begin(self, offer: CommandOffer) -> str:
        """Choose a command: look at what it would change. Nothing is changed.

        Raises:
            HeadroomError: too many are running, or the folder cannot be written.
        """
        with self._lock:
            self._require_room()
            action_id = secrets.token_hex(12)
            folder = self._folder / action_id
            record = {
                "cluster": offer.cluster,
                "words": offer.command.words,
                "config": offer.command.config,
                "made_ms": self._clock_ms(),
            }
            try:
                # Outputs name brokers and topics.
                self._folder.mkdir(mode=0o700, parents=True, exist_ok=True)
                self._require_own()
                folder.mkdir()
                write_json(folder / _ACTION_FILE, record)
                if offer.command.looks_first:
                    self._start(folder / _LOOK, offer.command.look(folder))
            except OSError as error:
                shutil.rmtree(folder, ignore_errors=True)
                raise self._not_written(error) from None
            self._forget_old(action_id)
            return action_id

    def change(self, action_id: str) -> None:
        """Carry an action out, once; one that was interrupted goes on if it can.

        Raises:
            LookupError: there is no such action.
            HeadroomError: it is not one that waits for it, the same is being carried out, or it cannot be started.
        """
        with self._lock:
            action = self.read(action_id)
            folder = self._folder / action_id
            arguments = action.offer.command.change(folder)
            if arguments is None or not (action.progress is ActionProgress.SHOWN or action.goes_on):
                raise HeadroomError(
                    "This action",
                    f"does not wait to be carried out ({action.progress.value.replace('_', ' ')})",
                    "Choose it again on the page.",
                )
            same = [one for one in self.all() if one.offer == action.offer and one.progress is ActionProgress.CHANGING]
            if same:
                raise HeadroomError(
                    "The same command", "is being carried out already", f"Look at /actions/{same[0].action_id}."
                )
            self._require_room()
            try:
                self._start(_change_folder(folder, _changes(folder) + 1), arguments)
            except FileExistsError:
                raise HeadroomError("This action", "is being carried out already", "Load its page again.") from None
            except OSError as error:
                raise self._not_written(error) from None

    def stop(self, action_id: str) -> None:
        """Ask the command of an action to stop, as Ctrl-C does: a run ends after the batch at hand.

        Raises:
            LookupError: there is no such action.
            HeadroomError: nothing of it is running.
        """
        action = self.read(action_id)
        folder = _last_change(self._folder / action_id)
        pid = _number(_read_json(folder / PROCESS_FILE), "pid")
        if action.progress is not ActionProgress.CHANGING or pid is None or not is_running(folder):
            raise HeadroomError("This action", "is not being carried out", "Load its page again.")
        with suppress(ProcessLookupError):
            os.kill(pid, signal.SIGINT)

    def read(self, action_id: str) -> ChosenAction:
        """Return an action.

        Raises:
            LookupError: there is no such action.
        """
        # An id is a name in the folder, and nothing else.
        if action_id not in self._names():
            raise LookupError(action_id)
        folder = self._folder / action_id
        record = _read_json(folder / _ACTION_FILE)
        try:
            command = AllowedCommand(tuple(record["words"]), record["config"])
            offer, made_ms = CommandOffer(record["cluster"], command), _number(record, "made_ms")
            is_allowed = allowed_command(command.text, command.config) == command
        except (LookupError, TypeError, ValueError, AttributeError):
            # It is not there, or damaged.
            raise LookupError(action_id) from None
        if made_ms is None or not is_allowed:
            raise LookupError(action_id)
        look, change, change_text = _output(folder / _LOOK), _last_change(folder), command.change_text(folder)
        if change.exists():
            progress, exit_code = self._ended(
                change, ActionProgress.CHANGING, ActionProgress.DONE, ActionProgress.FAILED
            )
            return ChosenAction(action_id, offer, made_ms, progress, look, _output(change), exit_code, change_text)
        progress, exit_code = ActionProgress.SHOWN, None
        if command.looks_first:
            progress, exit_code = self._ended(
                folder / _LOOK, ActionProgress.LOOKING, ActionProgress.SHOWN, ActionProgress.NOT_POSSIBLE
            )
        if progress is ActionProgress.LOST:
            progress = ActionProgress.NOT_POSSIBLE
        if progress is ActionProgress.SHOWN and change_text is None:
            progress = ActionProgress.NOTHING
        if progress is ActionProgress.SHOWN and not 0 <= self._clock_ms() - made_ms < LOOK_IS_GOOD_MS:
            progress = ActionProgress.OUTDATED
        return ChosenAction(action_id, offer, made_ms, progress, look, "", exit_code, change_text)

    def all(self) -> list[ChosenAction]:
        """Return all actions that are kept, the last chosen one first."""
        actions = []
        for name in self._names():
            with suppress(LookupError):
                actions.append(self.read(name))
        return sorted(actions, key=lambda action: -action.made_ms)

    def _names(self) -> list[str]:
        try:
            self._require_own()
            return os.listdir(self._folder)
        except OSError:
            return []

    def _require_own(self) -> None:
        """Check that nobody else can have written what is carried out.

        Raises:
            OSError: the folder is not there, or is that of others.
        """
        folder = self._folder.lstat()
        if folder.st_uid != os.getuid() or folder.st_mode & 0o022 or not stat.S_ISDIR(folder.st_mode):
            raise PermissionError(errno.EPERM, "others can write there", str(self._folder))

    def _start(self, folder: Path, arguments: Sequence[str]) -> None:
        """Start a worker in a new folder; only one caller can make it, of all servers of a store.

        Raises:
            FileExistsError: it is there.
            OSError: it cannot be written.
        """
        # It gets its name with all that readers look for.
        made = folder.with_name(f"{folder.name}-{secrets.token_hex(8)}")
        try:
            made.mkdir()
            write_json(made / COMMAND_FILE, self._command_line(arguments))
            write_json(made / _BEGAN_FILE, {"began_ms": self._clock_ms()})
            made.rename(folder)
        except OSError as error:
            shutil.rmtree(made, ignore_errors=True)
            if folder.exists():
                raise FileExistsError(str(folder)) from error
            raise
        environment = {name: value for name, value in os.environ.items() if name != STARTED_BY}
        # A session of its own: it goes on when the page ends, by Ctrl-C too.
        process = subprocess.Popen(
            [sys.executable, worker.__file__, str(folder)],
            stdin=subprocess.DEVNULL,
            stdout=subprocess.DEVNULL,
            start_new_session=True,
            env=environment,
        )
        threading.Thread(target=process.wait, name="action", daemon=True).start()

    def _ended(
        self, folder: Path, running: ActionProgress, succeeded: ActionProgress, failed: ActionProgress
    ) -> tuple[ActionProgress, int | None]:
        """Return how far a worker is, and the exit code of its command if that has ended."""
        began_ms = _number(_read_json(folder / _BEGAN_FILE), "began_ms") or 0
        is_alive = is_running(folder)
        # In this order: a process that was alive a moment ago may have ended, with a result.
        exit_code = _number(_read_json(folder / RESULT_FILE), "exit_code")
        if exit_code is not None:
            return (succeeded if exit_code == 0 else failed), exit_code
        if is_alive:
            return running, None
        is_starting = not (folder / LOCK_FILE).exists() and 0 <= self._clock_ms() - began_ms < _START_MS
        return (running if is_starting else ActionProgress.LOST), None

    def _require_room(self) -> None:
        running = sum(action.progress.is_running for action in self.all())
        if running >= _MOST_RUNNING:
            raise HeadroomError(f"{running} actions", "are running already", "Wait until one has ended.")

    def _forget_old(self, newest: str) -> None:
        """Remove the oldest actions beyond those that are kept, but none that is running, nor the newest one."""
        for action in self.all()[_MOST_KEPT:]:
            if not action.progress.is_running and action.action_id != newest:
                shutil.rmtree(self._folder / action.action_id, ignore_errors=True)

    def _not_written(self, error: OSError) -> HeadroomError:
        return HeadroomError(
            str(self._folder),
            f"cannot be written ({error.strerror or error})",
            "Make room, or give this user the right to write there.",
        )


def _changes(folder: Path) -> int:
    """Return how often an action was carried out."""
    number = 0
    while _change_folder(folder, number + 1).exists():
        number += 1
    return number


def _change_folder(folder: Path, number: int) -> Path:
    """Return the folder of a change; the first one is 1."""
    return folder / (_CHANGE if number == 1 else f"{_CHANGE}-{number}")


def _last_change(folder: Path) -> Path:
    """Return the folder of the last change; it does not exist if there was none."""
    return _change_folder(folder, max(1, _changes(folder)))


def _read_json(file: Path) -> dict[str, Any]:
    """Return the content of a file; nothing if it is not there yet, or is damaged."""
    try:
        content = json.loads(file.read_text(encoding="utf-8"))
    except (OSError, ValueError, RecursionError):
        return {}
    return content if isinstance(content, dict) else {}


def _number(content: dict[str, Any], key: str) -> int | None:
    value = content.get(key)
    return value if isinstance(value, int) else None


def _output(folder: Path) -> str:
    """Return the end of an output; empty if there is none."""
    try:
        with (folder / OUTPUT_FILE).open("rb") as opened:
            length = opened.seek(0, os.SEEK_END)
            opened.seek(max(0, length - _SHOWN_BYTES))
            text = opened.read().decode("utf-8", errors="replace")
    except OSError:
        return ""
    return text if length <= _SHOWN_BYTES else f"… {length - _SHOWN_BYTES:,} bytes before it are left out\n{text}"
