"""A port that another process holds for a moment costs another attempt, and not the cluster."""

from __future__ import annotations

from pathlib import Path

import pytest

from headroom.cluster.embedded import EmbeddedCluster
from headroom.schemas.errors import HeadroomError

TAKEN = HeadroomError("broker 1", "died while starting: Caused by: java.net.BindException: Address already in use", "-")
OTHER = HeadroomError("broker 1", "died while starting: Caused by: java.io.IOException: No space left on device", "-")


class Attempts:
    """Starts of a cluster, whose attempts have these outcomes.

    Attributes:
        made: how many were made.
    """

    def __init__(self, monkeypatch: pytest.MonkeyPatch, *outcomes: HeadroomError | None) -> None:
        self._outcomes = outcomes
        self.made = 0
        monkeypatch.setattr(EmbeddedCluster, "_launch", lambda _: self._next())
        monkeypatch.setattr("headroom.cluster.embedded.cluster.require_free", lambda *_: None)

    def _next(self) -> None:
        self.made += 1
        outcome = self._outcomes[self.made - 1]
        if outcome is not None:
            raise outcome


def test_a_port_that_is_taken_for_a_moment_costs_another_attempt(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    attempts = Attempts(monkeypatch, TAKEN, TAKEN, None)
    EmbeddedCluster(tmp_path, 1).start()
    assert attempts.made == 3


@pytest.mark.parametrize(
    ("outcomes", "base_port", "made"),
    [((TAKEN, TAKEN, TAKEN, None), None, 3), ((OTHER, None), None, 1), ((TAKEN, None), 20_000, 1)],
    ids=["taken for long", "another fault", "a port that was asked for"],
)
def test_a_start_fails_if_another_attempt_cannot_help(
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    outcomes: tuple[HeadroomError | None, ...],
    base_port: int | None,
    made: int,
) -> None:
    attempts = Attempts(monkeypatch, *outcomes)
    with pytest.raises(HeadroomError):
        EmbeddedCluster(tmp_path, 1, base_port).start()
    assert attempts.made == made


@pytest.mark.parametrize(("outcomes", "spawned"), [((TAKEN, None), 2), ((OTHER, None), 1)])
def test_a_restart_of_a_broker_is_retried_only_if_its_port_is_taken(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, outcomes: tuple[HeadroomError | None, ...], spawned: int
) -> None:
    left, spawns = list(outcomes), []

    def wait(*_: object) -> None:
        outcome = left.pop(0)
        if outcome is not None:
            raise outcome

    cluster = EmbeddedCluster(tmp_path, 1)
    cluster._ports = cluster._choose_ports()
    monkeypatch.setattr(cluster._brokers, "spawn", lambda broker_id, ports: spawns.append(broker_id))
    monkeypatch.setattr(EmbeddedCluster, "_wait", wait)
    if outcomes[0] is OTHER:
        with pytest.raises(HeadroomError):
            cluster.restart(1)
    else:
        cluster.restart(1)
    assert len(spawns) == spawned
