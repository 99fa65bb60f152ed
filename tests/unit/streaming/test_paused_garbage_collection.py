"""Migrations are evaluated without the collector of garbage, which runs again afterwards, whatever happens."""

from __future__ import annotations

import gc
from collections.abc import Iterator
from typing import Any

import pytest

from headroom.streaming.transforms import migrations
from headroom.streaming.transforms.migrations import evaluated_migrations, paused_garbage_collection


@pytest.fixture(autouse=True)
def enabled() -> Iterator[None]:
    """The collector runs before each test: a command that another test ran in this process may have stopped it."""
    was_enabled = gc.isenabled()
    gc.enable()
    yield
    if not was_enabled:
        gc.disable()


class FakeMessages:
    """Messages of a tick, as a data frame gives them."""

    def where(self, _: str) -> FakeMessages:
        return self

    def select(self, *_: str) -> FakeMessages:
        return self

    def collect(self) -> list[dict[str, Any]]:
        return [{"cluster": "c1", "tick_ms": 1, "payload": "{}"}]


def test_it_is_paused_while_messages_are_evaluated(monkeypatch: pytest.MonkeyPatch) -> None:
    meanwhile: list[bool] = []

    def evaluate(*_: object) -> list[object]:
        meanwhile.append(gc.isenabled())
        return []

    monkeypatch.setattr(migrations, "_evaluate_message", evaluate)
    evaluated_migrations(FakeMessages(), [("c1", 1)])  # type: ignore[arg-type]
    assert (meanwhile, gc.isenabled()) == ([False], True)


def test_it_runs_again_after_an_error_and_not_if_it_did_not_before() -> None:
    with pytest.raises(ValueError, match="x"), paused_garbage_collection():
        raise ValueError("x")
    assert gc.isenabled()
    with paused_garbage_collection():
        with paused_garbage_collection():
            assert not gc.isenabled()
        assert not gc.isenabled()
    assert gc.isenabled()
