"""Actions: commands that somebody has chosen on a page, from the look at the change to its end.

Each has a folder: what it is, and for the look and for the change one folder more, which its worker writes. So a page
that is loaded again, a second page, and a server that was started again all see the same.
"""

from __future__ import annotations

import errno
import grp
import json
import os
import pwd
import secrets
import shutil
import signal
import stat
import subprocess
import sys
import threading
import time
from collections import Counter
from collections.abc import Callable, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from enum import Enum
from pathlib import Path
from typing import Any

from headroom.dashboard.acting import worker
from headroom.dashboard.acting.allowed import PLAN_FILE, AllowedCommand, is_allowed
from headroom.dashboard.acting.curve import ProposalCurve, curve_of
from headroom.dashboard.acting.offers import CommandOffer
from headroom.dashboard.acting.worker import (
    OUTPUT_FILE,
    PROCESS_FILE,
    RESULT_FILE,
    is_running,
    take_lock,
    write_json,
)
from headroom.schemas.environment import STARTED_BY, USER
from headroom.schemas.errors import HeadroomError

# Below the tables.
FOLDER = "_actions"
# What was shown so long ago may not be what the cluster is now.
LOOK_IS_GOOD_MS = 600_000
# What was interrupted longer ago is looked at again before it goes on.
GOES_ON_MS = 86_400_000
# Looks and short commands at a time, and as many that last, which do not keep what is urgent waiting.
_MOST_RUNNING = 4
# A command that has begun has its process written within this time, also on a busy machine.
_PID_S = 5.0
_MOST_KEPT = 200
# The end of an output that is shown.
_SHOWN_BYTES = 64_000
_ACTION_FILE, _BEGAN_FILE, _STOPPING_FILE = "action.json", "began.json", "stopping"
_LOOK, _CHANGE = "look", "change"


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
        text: the command as a shell would run it.
        made_ms: when it was chosen, epoch milliseconds.
        by: who has chosen it, as a proxy has named them; None if none has.
        progress: how far it is.
        look: output of the look; empty if there was none, or it was not read.
        output: output of the change so far; empty if it was not read.
        exit_code: exit code of the last process that has ended; None if none has.
        change_text: command that a shell would run to carry it out; None if there is nothing to carry out, or it is not
            known yet.
        is_stopping: whether its command was asked to stop.
        goes_on: whether the same can be carried out again, and goes on where it was interrupted.
        curve: curve of the proposal that it has made; None if it has made none, or it was not read.
        pid: process of the change that was begun last; None if there is none yet, or it was not read.
    """

    action_id: str
    offer: CommandOffer
    text: str
    made_ms: int
    by: str | None
    progress: ActionProgress
    look: str = ""
    output: str = ""
    exit_code: int | None = None
    change_text: str | None = None
    is_stopping: bool = False
    goes_on: bool = False
    curve: ProposalCurve | None = None
    pid: int | None = None


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

    def begin(self, offer: CommandOffer, user: str | None = None, plan: str | None = None) -> str:
        """Choose a command: look at what it would change. Nothing is changed.

        Args:
            offer: the command with its cluster.
            user: who has chosen it; None: whoever has the token.
            plan: text of a plan that was given with it; None if none was.

        Raises:
            HeadroomError: too many are running, or the folder cannot be written.
        """
        with self._lock:
            self._require_room(lasts=False)
            action_id = secrets.token_hex(12)
            folder = self._folder / action_id
            record = {
                "cluster": offer.cluster,
                "words": offer.command.words,
                "config": offer.command.config,
                "plan_digest": offer.command.plan_digest,
                "made_ms": self._clock_ms(),
                "by": user,
            }
            try:
                # Outputs name brokers and topics.
                self._folder.mkdir(mode=0o700, parents=True, exist_ok=True)
                self._require_own()
                folder.mkdir()
                if plan is not None:
                    (folder / PLAN_FILE).write_text(plan, encoding="utf-8")
                write_json(folder / _ACTION_FILE, record)
                if offer.command.looks_first:
                    self._start(folder / _LOOK, offer.command.look(folder), user)
            except OSError as error:
                shutil.rmtree(folder, ignore_errors=True)
                raise self._not_written(error) from None
            except HeadroomError:
                shutil.rmtree(folder, ignore_errors=True)
                raise
            self._forget_old(action_id)
            return action_id

    def change(self, action_id: str, user: str | None = None) -> None:
        """Carry an action out, once; one that was interrupted goes on if it can.

        Args:
            action_id: its id.
            user: who has said yes to it; None: whoever has the token.

        Raises:
            LookupError: there is no such action.
            HeadroomError: it is not one that waits for it, the same is being carried out, or it cannot be started.
        """
        with self._lock:
            folder = self._folder / action_id
            # Before it is read: another server may carry it out meanwhile, and takes this number then.
            number = _changes(folder) + 1
            action = self.read(action_id)
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
                    "The same command", "is being carried out already", f"See /actions/{same[0].action_id}."
                )
            self._require_room(lasts=action.offer.command.lasts)
            try:
                self._start(_change_folder(folder, number), arguments, user)
            except FileExistsError:
                raise HeadroomError("This action", "is being carried out already", "Load its page again.") from None
            except OSError as error:
                raise self._not_written(error) from None

    def stop(self, action_id: str) -> None:
        """Ask the command of an action to stop, once, as Ctrl-C does: a run ends after the current batch.

        Raises:
            LookupError: there is no such action.
            HeadroomError: nothing of it is running, or it was asked already: twice would end it at once.
        """
        action = self.read(action_id)
        folder = _last_change(self._folder / action_id)
        pid = _pid_of(folder) if action.progress is ActionProgress.CHANGING else None
        if pid is None or not is_running(folder):
            raise HeadroomError("This action", "is not being carried out", "Load its page again.")
        try:
            (folder / _STOPPING_FILE).touch(exist_ok=False)
        except FileExistsError:
            raise HeadroomError(
                "This action", "is stopping already", "Wait for the end of the current batch."
            ) from None
        except OSError as error:
            raise self._not_written(error) from None
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
        action, folder = self._state(action_id), self._folder / action_id
        change = _last_change(folder)
        pid = _number(_read_json(change / PROCESS_FILE), "pid")
        return replace(action, look=_output(folder / _LOOK), output=_output(change), curve=curve_of(folder), pid=pid)

    def plan_of(self, action_id: str) -> str:
        """Return the plan that was given with an action; empty if none was, or it was removed since.

        Raises:
            LookupError: there is no such action.
        """
        if action_id not in self._names():
            raise LookupError(action_id)
        try:
            return (self._folder / action_id / PLAN_FILE).read_text(encoding="utf-8")
        except (OSError, ValueError):
            return ""

    def _state(self, action_id: str) -> ChosenAction:
        """Return an action without its outputs.

        Raises:
            LookupError: it is not there any more, or is damaged.
        """
        folder = self._folder / action_id
        record = _read_json(folder / _ACTION_FILE)
        try:
            command = AllowedCommand(tuple(record["words"]), record["config"], record.get("plan_digest"))
            offer, made_ms = CommandOffer(record["cluster"], command), _number(record, "made_ms")
            may_run = is_allowed(command)
        except (LookupError, TypeError, ValueError, AttributeError):
            # It is not there, or damaged.
            raise LookupError(action_id) from None
        if made_ms is None or not may_run:
            raise LookupError(action_id)
        by = record.get("by") if isinstance(record.get("by"), str) else None
        change, change_text, text = _last_change(folder), command.change_text(folder), command.text_in(folder)
        if change.exists():
            progress, exit_code = self._end_of(
                change, ActionProgress.CHANGING, ActionProgress.DONE, ActionProgress.FAILED
            )
            began_ms = _number(_read_json(change / _BEGAN_FILE), "began_ms") or 0
            is_recent = 0 <= self._clock_ms() - began_ms < GOES_ON_MS
            interrupted = progress in (ActionProgress.FAILED, ActionProgress.LOST)
            return ChosenAction(
                action_id,
                offer,
                text,
                made_ms,
                by,
                progress,
                exit_code=exit_code,
                change_text=change_text,
                is_stopping=progress is ActionProgress.CHANGING and (change / _STOPPING_FILE).exists(),
                goes_on=command.is_made and interrupted and is_recent and change_text is not None,
            )
        progress, exit_code = ActionProgress.SHOWN, None
        if command.looks_first:
            progress, exit_code = self._end_of(
                folder / _LOOK, ActionProgress.LOOKING, ActionProgress.SHOWN, ActionProgress.NOT_POSSIBLE
            )
        if progress is ActionProgress.LOST:
            progress = ActionProgress.NOT_POSSIBLE
        if progress is ActionProgress.SHOWN and not 0 <= self._clock_ms() - made_ms < LOOK_IS_GOOD_MS:
            progress = ActionProgress.OUTDATED
        if progress is ActionProgress.SHOWN and change_text is None:
            progress = ActionProgress.NOTHING
        return ChosenAction(action_id, offer, text, made_ms, by, progress, exit_code=exit_code, change_text=change_text)

    def all(self) -> list[ChosenAction]:
        """Return all actions that are kept, without their outputs, the last chosen one first."""
        actions = []
        for name in self._names():
            with suppress(LookupError):
                actions.append(self._state(name))
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
            OSError: the folder is not there, or is that of others, or they can put another one in its place.
        """
        folder, store = self._folder.lstat(), self._folder.parent.stat()
        is_own = folder.st_uid == os.getuid() and not folder.st_mode & 0o022 and stat.S_ISDIR(folder.st_mode)
        if not is_own or _others_can_replace(store):
            raise PermissionError(errno.EPERM, "others can write there", str(self._folder))

    def _start(self, folder: Path, arguments: Sequence[str], user: str | None) -> None:
        """Start a worker in a new folder; only one caller can make it, of all servers of a store.

        Raises:
            FileExistsError: it is there.
            OSError: it cannot be written.
        """
        # It gets its name with all that readers look for.
        made = folder.with_name(f"{folder.name}-{secrets.token_hex(8)}")
        try:
            made.mkdir()
            write_json(made / _BEGAN_FILE, {"began_ms": self._clock_ms()})
            lock = take_lock(made)
        except OSError:
            shutil.rmtree(made, ignore_errors=True)
            raise
        try:
            made.rename(folder)
            self._start_worker(folder, lock, arguments, user)
        except OSError as error:
            shutil.rmtree(made, ignore_errors=True)
            if folder.exists():
                raise FileExistsError(str(folder)) from error
            raise
        finally:
            # The worker has it open.
            os.close(lock)

    def _start_worker(self, folder: Path, lock: int, arguments: Sequence[str], user: str | None) -> None:
        environment = {name: value for name, value in os.environ.items() if name not in (STARTED_BY, USER)}
        if user is not None:
            # The journal and acknowledgements have it as their author.
            environment[USER] = user
        # No module of the working directory comes before those of Python and of Headroom.
        environment["PYTHONSAFEPATH"] = "1"
        command = self._command_line(arguments)
        try:
            # A session of its own: it goes on when the page ends, by Ctrl-C too.
            process = subprocess.Popen(
                [sys.executable, worker.__file__, str(folder), str(lock), *command],
                stdin=subprocess.DEVNULL,
                stdout=subprocess.DEVNULL,
                start_new_session=True,
                pass_fds=[lock],
                env=environment,
            )
        except (OSError, ValueError) as error:
            # Nothing has begun.
            shutil.rmtree(folder, ignore_errors=True)
            raise HeadroomError("The command", f"could not be started ({error})", "Choose it again later.") from None
        threading.Thread(target=process.wait, name="action", daemon=True).start()

    def _end_of(
        self, folder: Path, running: ActionProgress, succeeded: ActionProgress, failed: ActionProgress
    ) -> tuple[ActionProgress, int | None]:
        """Return how far a worker is, and the exit code of its command if that has ended."""
        is_alive = is_running(folder)
        # In this order: a process that was alive a moment ago may have ended, with a result.
        exit_code = _number(_read_json(folder / RESULT_FILE), "exit_code")
        if exit_code is not None:
            return (succeeded if exit_code == 0 else failed), exit_code
        return (running if is_alive else ActionProgress.LOST), None

    def _require_room(self, *, lasts: bool) -> None:
        """Check that another command may begin; those that last count apart from looks and short ones.

        Raises:
            HeadroomError: too many are running.
        """
        running = sum(one.progress.is_running and _lasts(one) is lasts for one in self.all())
        if running >= _MOST_RUNNING:
            which = f"{running} moves and migrations" if lasts else f"{running} actions"
            raise HeadroomError(which, "are running already", "Wait until one has ended.")

    def _forget_old(self, newest: str) -> None:
        """Remove the oldest actions beyond those that are kept, but none that is running, nor the newest one.

        Moves that were carried out count apart: their folders have the way back, and what may have to go on.
        """
        kept = Counter[bool]()
        for action in self.all():
            folder = self._folder / action.action_id
            if action.progress is ActionProgress.OUTDATED:
                # It cannot be carried out any more, and a large cluster's plan has many megabytes.
                action.offer.command.forget_made(folder)
            is_carried_out_move = action.offer.command.is_made and _changes(folder) > 0
            kept[is_carried_out_move] += 1
            if kept[is_carried_out_move] <= _MOST_KEPT:
                continue
            if not action.progress.is_running and action.action_id != newest:
                shutil.rmtree(folder, ignore_errors=True)

    def _not_written(self, error: OSError) -> HeadroomError:
        return HeadroomError(
            str(self._folder),
            f"cannot be written ({error.strerror or error})",
            "Make room, or give this user the right to write there.",
        )


def _lasts(action: ChosenAction) -> bool:
    """Return whether what is done of an action may take hours; a look at it does not."""
    return action.progress is ActionProgress.CHANGING and action.offer.command.lasts


def _others_can_replace(folder: os.stat_result) -> bool:
    """Return whether users other than this one and root can put another file in the place of one in a folder."""
    if folder.st_uid not in (os.getuid(), 0):
        return True
    if folder.st_mode & stat.S_ISVTX:
        return False
    return bool(folder.st_mode & 0o002) or (bool(folder.st_mode & 0o020) and not _is_of_one(folder.st_gid))


def _is_of_one(group_id: int) -> bool:
    """Return whether a group is that which many systems give each user, and is this user's."""
    try:
        return grp.getgrgid(group_id).gr_name == pwd.getpwuid(os.getuid()).pw_name
    except KeyError:
        return False


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


def _pid_of(folder: Path) -> int | None:
    """Return the process of a command, which is written just after its start; None if it is not, or has ended."""
    until_s = time.monotonic() + _PID_S
    while (pid := _number(_read_json(folder / PROCESS_FILE), "pid")) is None and is_running(folder):
        if time.monotonic() > until_s:
            return None
        time.sleep(_PID_S / 100)
    return pid


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
