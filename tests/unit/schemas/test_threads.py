"""A call on a daemon thread ends in its future, whatever happens to it."""

from __future__ import annotations

import threading

import pytest

from headroom.schemas.threads import run_in_daemon_thread


def test_the_future_has_what_the_call_returns_or_raises() -> None:
    assert run_in_daemon_thread("adds", lambda: 1 + 1).result(10) == 2
    with pytest.raises(ZeroDivisionError):
        run_in_daemon_thread("divides", lambda: 1 / 0).result(10)


def test_a_call_that_hangs_is_on_a_daemon_thread_with_its_name() -> None:
    let = threading.Event()
    hanging = run_in_daemon_thread("hangs", let.wait)
    (thread,) = [thread for thread in threading.enumerate() if thread.name == "hangs"]
    assert (thread.daemon, hanging.done()) == (True, False)
    let.set()
    assert hanging.result(10)


def test_without_a_thread_left_the_future_fails(monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(_thread: threading.Thread) -> None:
        raise RuntimeError("can't start new thread")

    monkeypatch.setattr(threading.Thread, "start", refuse)
    with pytest.raises(RuntimeError, match="can't start"):
        run_in_daemon_thread("never", lambda: None).result(10)
