"""What a probe is told: red when verdicts are missing, and why."""

from __future__ import annotations

from headroom.alerts.metrics import Health, Limits, health
from tests.unit.builders.throttle_status import TICK_MS
from tests.unit.fakes.prometheus_scrape import Scene

LIMITS = {"orders": Limits(stale_s=30.0, first_s=90.0)}


def after(scene: Scene, seconds: float) -> Health:
    """The health so long after the scene's beginning."""
    scene.now_ms = TICK_MS + int(seconds * 1000)
    return health(scene.snapshot(), LIMITS)


def ticked() -> Scene:
    scene = Scene()
    scene.live.on_tick("orders", TICK_MS, [])
    return scene


def test_health_is_green_while_ticks_are_young() -> None:
    result = after(ticked(), 29.9)
    assert (result.status, result.healthy, result.reasons) == ("ok", True, ())
    assert result.as_json() == {
        "status": "ok",
        "reasons": [],
        "clusters": {"orders": {"tick_age_s": 29.9, "limit_s": 30.0}},
        "batch_s": None,
    }


def test_health_is_red_when_ticks_are_old() -> None:
    result = after(ticked(), 42.0)
    assert (result.status, result.healthy) == ("unhealthy", False)
    assert result.reasons == ("cluster orders: its last evaluated tick is 42 s old, limit 30 s",)


def test_health_is_red_when_what_comes_is_of_long_ago() -> None:
    scene = Scene()
    scene.live.on_tick("orders", TICK_MS - 60_000, [])
    assert not after(scene, 0.0).healthy


def test_before_the_first_tick_it_is_starting_for_a_while_and_then_red() -> None:
    scene = Scene()
    assert (after(scene, 89.9).status, after(scene, 89.9).healthy) == ("starting", True)
    result = after(scene, 90.0)
    assert result.reasons == ("cluster orders: no tick was evaluated in the 90 s since the start",)
    assert result.as_json()["clusters"] == {"orders": {"tick_age_s": None, "limit_s": 90.0}}


def test_every_configured_cluster_counts_and_no_other() -> None:
    scene = ticked()
    scene.live.on_tick("retired", TICK_MS - 3_600_000, [])
    both = {**LIMITS, "payments": Limits(stale_s=300.0, first_s=300.0)}
    assert health(scene.snapshot(), both).status == "starting"
    scene.now_ms = TICK_MS + 300_000
    # Orders has limit 30 s, payments has had none for its 300 s.
    assert [reason.split(":")[0] for reason in health(scene.snapshot(), both).reasons] == [
        "cluster orders",
        "cluster payments",
    ]


def test_health_is_red_when_a_batch_hangs() -> None:
    scene = ticked()
    scene.live.follow(lambda: 30.0)
    assert after(scene, 1.0).reasons == ("the alert path has worked on a batch for 30 s, limit 30 s",)
    scene.live.follow(lambda: 29.0)
    assert after(scene, 1.0).healthy


def test_the_first_batch_may_take_as_long_as_the_first_tick() -> None:
    scene = Scene()
    scene.live.follow(lambda: 60.0)
    assert after(scene, 60.0).status == "starting"
