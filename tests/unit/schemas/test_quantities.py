"""The grammar of quantities: a text is read as a whole, or it is refused with what was probably meant."""

from __future__ import annotations

import re
from collections.abc import Callable
from datetime import datetime, timezone
from fractions import Fraction
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from headroom.schemas.quantities import (
    GOAL,
    TOPIC,
    QuantityError,
    has_unit,
    is_url,
    parse_address,
    parse_addresses,
    parse_bytes,
    parse_bytes_per_s,
    parse_duration_s,
    parse_flag,
    parse_heap_bytes,
    parse_id,
    parse_ids,
    parse_machines,
    parse_moment_ms,
    parse_names,
    parse_number,
    parse_percentage,
    parse_time_of_day,
    parse_urls,
    parse_whole,
    parse_window,
)
from headroom.schemas.text.amounts import rate_text

Read = Callable[[str], Any]


def topics(text: str) -> list[str]:
    return parse_names(text, TOPIC, "a list of topics, such as orders,payments")


def goals(text: str) -> list[str]:
    return parse_names(text, GOAL, "a list of goals")


READERS: tuple[Read, ...] = (
    parse_whole,
    parse_number,
    parse_percentage,
    parse_bytes,
    parse_bytes_per_s,
    parse_duration_s,
    parse_heap_bytes,
    parse_flag,
    parse_moment_ms,
    parse_time_of_day,
    parse_window,
    parse_id,
    parse_ids,
    topics,
    goals,
    parse_address,
    parse_addresses,
    parse_urls,
    parse_machines,
)


def refused(read: Read, text: str) -> str:
    with pytest.raises(QuantityError) as caught:
        read(text)
    return str(caught.value)


@pytest.mark.parametrize(
    ("text", "bytes_per_s"),
    [
        ("12500000", 12.5e6),
        ("12.5MB", 12.5e6),
        ("12 MB/s", 12e6),
        ("12 mb/s", 12e6),
        ("12MB /s", 12e6),
        ("100KB", 1e5),
        ("50kB", 5e4),
        ("6000/s", 6e3),
        ("6000B", 6e3),
        # 2^20, 12 x 2^20 and 1.5 x 2^20
        ("1MiB", 1_048_576),
        ("12MiB/s", 12_582_912),
        ("1.5 MiB/s", 1_572_864),
        ("2GB/s", 2e9),
        (" 1.25GB\n", 1.25e9),
    ],
)
def test_rates_are_read_with_and_without_units(text: str, bytes_per_s: float) -> None:
    assert parse_bytes_per_s(text) == bytes_per_s


@pytest.mark.parametrize(
    ("text", "meant"),
    [
        ("12,5MB", "Write 12.5MB: a comma is not a decimal point here."),
        ("1,25GB", "Write 1.25GB: a comma is not a decimal point here."),
        ("1_000MB", "Write 1000MB: digits are written together."),
        ("12 500 000", "Write 12500000: digits are written together."),
        ("５０MB", "Write 50MB: only the digits 0 to 9 and plain spaces are read."),
        ("50\u00a0MB", "Write 50 MB: only the digits 0 to 9 and plain spaces are read."),
        ("+5MB", "Write 5MB: without a sign."),
        (".5MB", "Write 0.5MB: with a digit before the point."),
        ("50Mb", "Write 50MB: the unit in full, with B for bytes, because b may be bits."),
        ("50M", "Write 50MB: the unit in full, with B for bytes, because b may be bits."),
        ("50MBps", "Write 50MB/s: per second is /s."),
        ("１2,5MB", "Write 12.5MB: a comma is not a decimal point here."),
    ],
)
def test_what_was_probably_meant_by_a_rate_is_said(text: str, meant: str) -> None:
    message = refused(parse_bytes_per_s, text)
    assert message.startswith(f"'{text}' is not a rate in bytes per second".replace("\u00a0", " "))
    assert message.endswith(f" {meant}")


# What was meant by these is not known: 12,500MB may be 12.5 GB or 12.5 MB.
@pytest.mark.parametrize(
    "text",
    [
        *("", " ", "fast", "MB", "-", "-5MB", "12,500MB", "1.2.3GB", "50MB per broker", "5.MB", "1e6", "1E6", "0x10"),
        *("nan", "inf", "Infinity", "12 parsecs", "50mbit", "50Mbit/s", "12MB//s", "1" * 20, "12/5", "½MB", "10²"),
    ],
)
def test_an_invalid_rate_is_refused_without_a_suggestion(text: str) -> None:
    assert refused(parse_bytes_per_s, text).endswith(" Correct the value.")


def test_a_rate_is_no_amount_of_bytes() -> None:
    assert (parse_bytes("500GB"), parse_bytes("12 GiB"), parse_bytes("0")) == (500e9, 12 * 2**30, 0)
    assert "is not an amount of bytes" in refused(parse_bytes, "500GB/s")


def test_a_unit_is_seen_only_where_there_is_one() -> None:
    assert [has_unit(text) for text in ("12MB", "12 MB/s", "12/s", "12", "MB")] == [True, True, False, False, False]


@pytest.mark.parametrize(
    ("text", "seconds"),
    # 3,600 + 1,800; 86,400 + 2 x 3,600 + 30 x 60; 3,600 + 1.5 x 60
    [
        *(("1800", 1800), ("0.5", 0.5), ("90s", 90), ("30m", 1800), ("1h30m", 5400), ("1h 30m", 5400), ("2d", 172_800)),
        *(("1d1h", 90_000), ("1d2h30m", 95_400), ("1.5h", 5400), ("1h1.5m", 3690), ("1 H 30 M", 5400), ("90 s", 90)),
    ],
)
def test_times_are_read_with_and_without_units(text: str, seconds: float) -> None:
    assert parse_duration_s(text) == seconds


@pytest.mark.parametrize(
    "text",
    [
        "",
        "soon",
        "h",
        "30 parsecs",
        "P",
        "d",
        "PT1H",
        "-1h",
        "1w",
        "1:30",
        "1.5h30m",
        "30m1h",
        "1h1h",
        "1e3",
        "nan",
        "ſ",
    ],
)
def test_what_is_no_time_is_refused(text: str) -> None:
    assert refused(parse_duration_s, text).startswith(f"'{text}' is not seconds or a time such as 90s")


@pytest.mark.parametrize(
    ("text", "meant"),
    [("30min", "30m"), ("1h30", "1h30m"), ("90 seconds", "90s"), ("2 days", "2d"), ("2hrs", "2h"), ("1,5h", "1.5h")],
)
def test_what_was_probably_meant_by_a_time_is_said(text: str, meant: str) -> None:
    assert f" Write {meant}: " in refused(parse_duration_s, text)


@pytest.mark.parametrize("text", ["10%", "10 %"])
def test_a_percent_sign_is_refused_with_what_to_write(text: str) -> None:
    assert refused(parse_percentage, text).endswith(" Write 10: without a sign.")
    assert (parse_percentage("10"), parse_percentage("12.5")) == (10, 12.5)


@pytest.mark.parametrize(
    ("text", "moment"),
    [
        ("2026-11-22T22:00Z", datetime(2026, 11, 22, 22, tzinfo=timezone.utc)),
        ("2026-11-22T22:00", datetime(2026, 11, 22, 22, tzinfo=timezone.utc)),
        ("2026-11-22 22:00:30", datetime(2026, 11, 22, 22, 0, 30, tzinfo=timezone.utc)),
        # 22:00 of a zone that is two hours ahead is 20:00 UTC.
        ("2026-11-22T22:00+02:00", datetime(2026, 11, 22, 20, tzinfo=timezone.utc)),
        ("2026-11-22T22:00-0130", datetime(2026, 11, 22, 23, 30, tzinfo=timezone.utc)),
        ("2026-11-22", datetime(2026, 11, 22, tzinfo=timezone.utc)),
    ],
)
def test_a_moment_without_a_zone_is_utc(text: str, moment: datetime) -> None:
    assert parse_moment_ms(text) == round(moment.timestamp() * 1000)


@pytest.mark.parametrize(
    "text",
    [
        "now",
        "1700000000",
        "2026-13-01T00:00Z",
        "2026-04-31",
        "2026-11-22T22",
        "2026-11-22T24:00Z",
        "0000-01-01",
        "22:00",
    ],
)
def test_what_is_no_moment_is_refused(text: str) -> None:
    assert refused(parse_moment_ms, text) == f"'{text}' is not a date and time. Write it as 2026-11-22T22:00Z."


@pytest.mark.parametrize(
    "text", ["25:00-05:00", "05:00", "05:00-05:00", "1:00-5:00", "01:00 - 05:00", "0１:00-05:00", "01:00-05:00 ../etc"]
)
def test_what_is_no_window_is_refused(text: str) -> None:
    assert "is not a window of the day" in refused(parse_window, text)


def test_a_zone_that_is_not_known_is_named() -> None:
    assert "names the time zone Mars/Base" in refused(parse_window, "01:00-05:00 Mars/Base")


@pytest.mark.parametrize(
    ("text", "meant"),
    [("1;2", "1,2"), ("1 2", "1,2"), ("1,2,", "1,2"), (",1", "1"), ("1 | 2", "1,2"), ("１,2", "1,2")],
)
def test_what_was_probably_meant_by_ids_is_said(text: str, meant: str) -> None:
    assert f" Write {meant}: " in refused(parse_ids, text)


@pytest.mark.parametrize("text", ["", "a", "-1", "1.0", "1,,2", "1,-2", "0x1", "2147483648", "1_0,+2"])
def test_what_are_no_ids_is_refused(text: str) -> None:
    assert "is not a list of broker ids" in refused(parse_ids, text)


def test_an_id_or_name_that_is_given_twice_is_refused() -> None:
    assert "names 2 twice" in refused(parse_ids, "1,2,02")
    assert "names orders twice" in refused(topics, "orders, payments,orders")
    assert topics("orders, payments") == ["orders", "payments"]


@pytest.mark.parametrize("text", ["", ".", "..", "a,,b", "or:ders", "ö", "t" * 250])
def test_what_is_no_topic_is_refused(text: str) -> None:
    assert "is not a list of topics" in refused(topics, text)


@pytest.mark.parametrize(
    "text", ["broker1:9092", "b_c.example.org:1", "127.0.0.1:65535", "[::1]:9092", "a:1, b:2", "1a:1"]
)
def test_addresses_are_hosts_with_ports(text: str) -> None:
    assert parse_addresses(text) == text.split(", ")


@pytest.mark.parametrize(
    ("text", "meant"),
    [
        ("a:1,", "Write a:1: without a comma at the end."),
        ("a:1;b:2", "Write a:1,b:2: commas separate."),
        ("a:1 b:2", "Write a:1,b:2: commas separate."),
        ("http://a:1", "Write a:1: without a scheme; the setting security_protocol names the protocol."),
        ("SASL_SSL://a:1,b:2", "Write a:1,b:2: without a scheme; the setting security_protocol names the protocol."),
        ("a:1/", "Write a:1: without a path."),
        ("a:９", "Write a:9: only the digits 0 to 9 and plain spaces are read."),
    ],
)
def test_what_was_probably_meant_by_addresses_is_said(text: str, meant: str) -> None:
    assert refused(parse_addresses, text).endswith(f" {meant}")


def test_several_faults_of_addresses_are_mended_at_once() -> None:
    assert " Write a:1,b:2: " in refused(parse_addresses, "PLAINTEXT://a:1;PLAINTEXT://b:2/")


@pytest.mark.parametrize(
    "text", ["a", "a:0", "a:65536", "a:1,,b:2", "::1:9092", "[::::]:1", "*:1", "a b:1:2", "ä:1", ":1"]
)
def test_what_are_no_addresses_is_refused(text: str) -> None:
    assert "is not a list of host:port" in refused(parse_addresses, text)


def test_a_password_in_an_address_is_not_shown() -> None:
    message = refused(parse_addresses, "SASL://me:hidden@a:1")
    assert "hidden" not in message
    assert message.startswith("'SASL://...@a:1' is not")


@pytest.mark.parametrize(
    "text", ["ftp://a", "http://", "http://me@a", "http://a b", "http://a:0", "http://a:1;b", "a", "http://ä"]
)
def test_what_is_no_url_is_refused(text: str) -> None:
    assert not is_url(text)
    assert is_url("HTTPS://a.example.org:9093/x?y={cluster}&z=ü")


@pytest.mark.parametrize(("text", "flag"), [("true", True), ("Yes", True), ("1", True), ("OFF", False), ("0", False)])
def test_switches_are_true_or_false(text: str, flag: bool) -> None:
    assert parse_flag(text) is flag


@pytest.mark.parametrize("text", ["", "2", "t", "enabled", "ｏn", "true false"])
def test_what_is_no_switch_is_refused(text: str) -> None:
    assert refused(parse_flag, text).endswith(" is neither true nor false. Write true or false.")


numbers = st.tuples(st.integers(0, 10**12), st.integers(0, 999)).map(lambda n: f"{n[0]}.{n[1]:03d}")
UNITS = {"B": 1, "kB": 10**3, "MB": 10**6, "GB": 10**9, "KiB": 2**10, "MiB": 2**20, "GiB": 2**30, "TB": 10**12}


@given(numbers, st.sampled_from(sorted(UNITS)), st.sampled_from(["", "/s", " /s"]), st.sampled_from(["", " ", "  "]))
def test_every_amount_reads_as_it_was_written(number: str, unit: str, per: str, space: str) -> None:
    assert parse_bytes_per_s(f"{number}{space}{unit}{per}") == float(Fraction(number) * UNITS[unit])


@given(st.integers(1, 400), st.integers(0, 23), st.integers(0, 59), st.integers(0, 59))
def test_every_time_reads_as_it_was_written(days: int, hours: int, minutes: int, seconds: int) -> None:
    text = f"{days}d{hours}h{minutes}m{seconds}s"
    assert parse_duration_s(text) == ((days * 24 + hours) * 60 + minutes) * 60 + seconds


@given(st.datetimes(min_value=datetime(1, 1, 2), max_value=datetime(9999, 12, 30)), st.integers(-1439, 1439))
def test_every_moment_reads_as_it_was_written(moment: datetime, offset: int) -> None:
    sign, (hours, minutes) = "-" if offset < 0 else "+", divmod(abs(offset), 60)
    text = moment.isoformat(timespec="milliseconds")
    since = moment.replace(microsecond=moment.microsecond // 1000 * 1000) - datetime(1970, 1, 1)
    milliseconds = (since.days * 86_400 + since.seconds) * 1000 + since.microseconds // 1000
    assert parse_moment_ms(f"{text}{sign}{hours:02d}:{minutes:02d}") == milliseconds - offset * 60_000


@given(st.floats(0, 1e13, allow_nan=False))
def test_no_rate_reads_as_another_one(bytes_per_s: float) -> None:
    shown = rate_text(bytes_per_s).replace(",", "")
    # Three digits at least; half a byte for none.
    assert parse_bytes_per_s(shown) == pytest.approx(bytes_per_s, rel=0.0051, abs=0.5)


# Another grammar of the same texts, as loose as it can be: a quantity has only these characters.
PLAIN = re.compile(r"[ \t\r\n]*[A-Za-z0-9_.,:;+/\[\]{}&?=%#~!$'()*@ -]+[ \t\r\n]*")
ODD = st.text(st.characters(codec="utf-8"), max_size=12)
NEAR = st.text(st.sampled_from("0123456789.,:;-+_ eE%/smhdkMGTiBbZ\u00a0\uff11\u0665\u00b2[]"), max_size=14)


def outcome(read: Read, text: str) -> QuantityError | None:
    """The refusal of a text; None if it was read."""
    try:
        read(text)
    except QuantityError as error:
        return error
    return None


@given(st.sampled_from(READERS), st.one_of(NEAR, ODD))
def test_every_text_is_read_or_refused_by_the_documented_error(read: Read, text: str) -> None:
    error = outcome(read, text)
    assert error is None or (error.rule and error.remedy.endswith("."))
    assert error is not None or read is parse_urls or PLAIN.fullmatch(text)


@given(st.sampled_from(READERS), NEAR)
def test_what_was_probably_meant_is_a_quantity(read: Read, text: str) -> None:
    error = outcome(read, text)
    meant = re.fullmatch(r"Write (.*): .*", error.remedy) if error is not None and "is not" in error.rule else None
    again = outcome(read, meant[1]) if meant is not None else None
    # Of two ids that are the same, the first fault is another.
    assert again is None or "twice" in again.rule
