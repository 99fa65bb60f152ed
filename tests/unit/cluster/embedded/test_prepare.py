"""Preparation of the data folders of new brokers: what one attempt starts has ended before the next one."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from headroom.cluster.embedded import BrokerOptions, brokers
from headroom.cluster.embedded.brokers import Brokers
from headroom.cluster.embedded.layout import ports_from
from headroom.schemas.errors import HeadroomError


def test_a_folder_that_cannot_be_prepared_is_named_once_all_attempts_have_ended(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    ended: list[int] = []

    class Formatting:
        """The storage tool, which fails for brokers 2 and 3."""

        def __init__(self, command: int, **options: Any) -> None:
            self._broker = command

        def wait(self) -> int:
            ended.append(self._broker)
            return int(self._broker in (2, 3))

    monkeypatch.setattr(brokers, "format_command", lambda files, cluster_id: files.broker_id)
    monkeypatch.setattr(brokers.subprocess, "Popen", Formatting)
    with pytest.raises(HeadroomError, match="while its data folder was prepared") as error:
        Brokers(tmp_path, BrokerOptions()).prepare(ports_from(20_000, 4), "x")
    assert (error.value.subject, ended) == ("broker 2", [1, 2, 3, 4])
