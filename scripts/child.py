"""Commands that a script starts, and that do not outlive it; standard library only, see setup.py."""

import contextlib
import ctypes
import os
import signal
import subprocess
import sys

# Linux: prctl(PR_SET_PDEATHSIG, signal) asks for a signal when the thread that started this process has ended.
_PR_SET_PDEATHSIG = 1
_LIBC = ctypes.CDLL(None) if sys.platform == "linux" else None
# Tests stop their brokers and watches first, and a job of Spark ends its batch.
GRACE_S = 60.0


def take_signals_for_ctrl_c() -> None:
    """Let this script end as after Ctrl-C when a CI server cancels it (SIGTERM), or its terminal is closed (SIGHUP)."""
    for number in (signal.SIGTERM, signal.SIGHUP):
        # nohup lets a script ignore the end of its terminal.
        if signal.getsignal(number) != signal.SIG_IGN:
            signal.signal(number, signal.default_int_handler)


def start(command: "list[str]", **options: object) -> "subprocess.Popen[bytes]":
    """Start a command in a process group of its own, and return it.

    It ends when this script is killed. Ctrl-C in a terminal does not reach it: see ``finish``. It has no input: the
    terminal, whose group is another one, would stop it when it asks something, as pip asks for a password.

    Args:
        command: the command line.
        options: of subprocess.Popen.
    """
    parent = os.getpid()

    def prepare() -> None:
        os.setpgid(0, 0)
        # A shell that started the script in the background has it ignored.
        signal.signal(signal.SIGINT, signal.SIG_DFL)
        if _LIBC is not None:
            _LIBC.prctl(_PR_SET_PDEATHSIG, signal.SIGTERM)
            # Killed since the fork: nothing would send the signal any more.
            if os.getppid() != parent:
                os._exit(1)

    options.setdefault("stdin", subprocess.DEVNULL)
    return subprocess.Popen(command, preexec_fn=prepare, **options)  # type: ignore[call-overload]


def finish(process: "subprocess.Popen[bytes]", grace_s: float = GRACE_S) -> int:
    """Wait for a command, and return its exit code.

    After Ctrl-C its whole group gets one too, and may end by itself; after the grace or a second Ctrl-C it is killed.

    Args:
        process: what ``start`` returned.
        grace_s: longest wait after Ctrl-C, in seconds.

    Raises:
        KeyboardInterrupt: interrupted; the command has ended.
    """
    try:
        return process.wait()
    except BaseException:
        stop(process, signal.SIGINT, grace_s)
        raise


def stop(process: "subprocess.Popen[bytes]", number: int = signal.SIGTERM, grace_s: float = GRACE_S) -> None:
    """Send a signal to a command's group, and kill the group if the command has not ended after the grace.

    Args:
        process: what ``start`` returned.
        number: the signal.
        grace_s: the grace, in seconds.
    """
    _signal(process, number)
    with contextlib.suppress(subprocess.TimeoutExpired, KeyboardInterrupt):
        process.wait(timeout=grace_s)
    _signal(process, signal.SIGKILL)
    process.wait()


def _signal(process: "subprocess.Popen[bytes]", number: int) -> None:
    """Signal the group of a command, which outlives the command itself if others of it still run."""
    with contextlib.suppress(ProcessLookupError):
        os.killpg(process.pid, number)
