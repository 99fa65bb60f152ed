"""Commands that Headroom prints set the rate that it means, and run as they stand."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from headroom.alerts.recommendations.commands import headroom_apply
from headroom.cli.common.parameters import Rate
from headroom.planning.throttles.rate_options import LOW_RATE, accept_low_rates, check_rate, rate_options


@given(st.integers(1, 10**12))
def test_a_printed_rate_is_read_as_what_it_is(bytes_per_s: int) -> None:
    option, word, *flag = rate_options({"--rate": bytes_per_s})
    assert (option, Rate().read(word)) == ("--rate", bytes_per_s)
    # Kafka keeps 1 MB/s and more.
    assert flag == ([LOW_RATE] if bytes_per_s < 1_000_000 else [])


def test_the_flag_is_there_once_and_only_for_a_low_rate() -> None:
    assert rate_options({"--rate": 2_000_000, "--log-dirs": None}) == ["--rate", "2000000"]
    assert rate_options({"--rate": 5_000, "--log-dirs": 20_000}) == [
        *("--rate", "5000B"),
        *("--log-dirs", "20000"),
        LOW_RATE,
    ]


def test_an_alert_prints_the_flag_with_a_low_rate() -> None:
    assert headroom_apply(600_000, [2], None) == (
        "headroom throttle apply --rate 600000 --low-rate --brokers 2 --raise-only --execute"
    )


@pytest.mark.parametrize(
    ("stored", "others", "accepted"),
    [
        (
            "headroom reassign run m.json --throttle 600000 --log-dirs-throttle 5000000 --config a.toml --execute",
            [600_000, 5_000_000],
            "headroom reassign run m.json --throttle 600000 --log-dirs-throttle 5000000 --config a.toml --low-rate "
            "--execute",
        ),
        (
            "headroom reassign rollback 3f9a --throttle 6000 --auto-throttle-up-to 8000 --force --execute",
            [6_000],
            "headroom reassign rollback 3f9a --throttle 6000B --auto-throttle-up-to 8000B --force --low-rate --execute",
        ),
        # The throttle is that of the proposal.
        ("headroom balance run out --execute", [600_000], "headroom balance run out --low-rate --execute"),
    ],
)
def test_a_command_of_an_earlier_version_gets_what_its_low_rate_needs(
    stored: str, others: list[int], accepted: str
) -> None:
    assert accept_low_rates(stored, others) == accepted
    assert accept_low_rates(accepted, others) == accepted


def test_a_command_without_a_low_rate_stays_as_it_is() -> None:
    for stored in (
        "headroom reassign run m.json --throttle 1000000 --execute",
        "headroom reassign run m.json --execute",
    ):
        assert accept_low_rates(stored) == stored


def test_a_rate_is_whole_bytes_per_second() -> None:
    assert check_rate(12_500_000.4) == 12_500_000


@pytest.mark.parametrize("rate", [0.0, -1.0, 5.0, 9_999.0, float("nan"), float("inf"), 2e12])
def test_an_absurd_rate_is_refused(rate: float) -> None:
    with pytest.raises(ValueError, match=r"\w"):
        check_rate(rate)
