"""The report of a failed test shows what can be seen, and never fails itself."""

from __future__ import annotations

import weakref
from pathlib import Path

import pytest

from headroom.cluster.embedded import EmbeddedCluster
from tests.integration import last_seen


def test_what_cannot_be_seen_is_named_and_the_rest_is_shown(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def fails(_: object) -> list[str]:
        raise PermissionError("not yours")

    cluster = EmbeddedCluster(tmp_path / "x", 1)
    monkeypatch.setattr(last_seen, "_of_cluster", fails)
    text = last_seen.last_seen()
    assert text.startswith("machine: ")
    assert "fails: PermissionError: not yours" in text
    assert cluster.folder.name == "x"


def test_a_proxy_of_an_object_that_is_gone_is_skipped() -> None:
    class Gone:
        pass

    proxy = weakref.proxy(Gone())
    assert last_seen.last_seen().startswith("machine: ")
    del proxy
