"""The grammar of quantities, written by hand from docs/configuration.md, character by character.

It shares nothing with the parsers that it is held against: no pattern, no constant, no function. Each function returns
the value of a text, or None for a text that is none.
"""

from __future__ import annotations

import zoneinfo
from collections.abc import Callable
from datetime import datetime, timezone
from fractions import Fraction
from typing import Any

Value = Any

_DIGITS = set("0123456789")
_LETTERS = set("abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ")
_POWERS = {"k": 1, "m": 2, "g": 3, "t": 4, "p": 5}
_ZONES = zoneinfo.available_timezones()
_LARGEST_ID = 2147483647


def trimmed(text: str) -> str:
    """Return a text without the spaces around it."""
    while text and text[0] in " \t\r\n":
        text = text[1:]
    while text and text[-1] in " \t\r\n":
        text = text[:-1]
    return text


def _are_digits(text: str, most: int = 19) -> bool:
    return 0 < len(text) <= most and set(text) <= _DIGITS


def _decimal(text: str) -> Fraction | None:
    """Return 12 or 12.5."""
    before, point, after = text.partition(".")
    if not _are_digits(before) or (point and not _are_digits(after)):
        return None
    return Fraction(text)


def whole(text: str) -> Value:
    """Return 200."""
    text = trimmed(text)
    return int(text) if _are_digits(text) else None


def number(text: str) -> Value:
    """Return 12.5."""
    value = _decimal(trimmed(text))
    return None if value is None else float(value)


def _split_number(text: str) -> tuple[str, str]:
    """Return the digits and points at the beginning of a text, and the rest without spaces before it."""
    end = 0
    while end < len(text) and (text[end] in _DIGITS or text[end] == "."):
        end += 1
    return text[:end], text[end:].lstrip(" ")


def _unit_bytes(unit: str) -> int | None:
    if unit in ("", "B", "b"):
        return 1
    small = unit.lower()
    if small[0] not in _POWERS or small[1:] not in ("b", "ib") or not set(unit) <= _LETTERS:
        return None
    usual = "kB" if unit[0] == "k" and len(unit) == 2 else unit[0].upper() + unit[1:-1].lower() + "B"
    if unit not in (usual, unit.lower(), unit.upper()):
        return None
    return int((1024 if small[1:] == "ib" else 1000) ** _POWERS[small[0]])


def _bytes(text: str) -> Fraction | None:
    digits, unit = _split_number(text)
    amount, size = _decimal(digits), _unit_bytes(unit)
    # A number and its unit are not apart if there is no unit: "12 " is trimmed before.
    return None if amount is None or size is None else amount * size


def amount_of_bytes(text: str) -> Value:
    """Return 500GB."""
    value = _bytes(trimmed(text))
    return None if value is None else float(value)


def rate(text: str) -> Value:
    """Return 12.5MB or 12 MiB/s."""
    text = trimmed(text)
    if text.endswith("/s"):
        text = text[:-2].rstrip(" ")
    value = _bytes(text)
    return None if value is None else float(value)


def has_unit(text: str) -> bool:
    """Return whether an amount has a unit."""
    return any(letter in _LETTERS for letter in trimmed(text).removesuffix("/s"))


def duration(text: str) -> Value:
    """Return 1h30m."""
    left = trimmed(text)
    alone = _decimal(left)
    if alone is not None:
        return float(alone)
    seconds, units = Fraction(0), "dhms"
    while left:
        digits, rest = _split_number(left)
        amount, unit = _decimal(digits), rest[:1]
        if amount is None or not unit or unit not in _LETTERS or unit.lower() not in units:
            return None
        seconds += amount * {"d": 86_400, "h": 3600, "m": 60, "s": 1}[unit.lower()]
        units = units[units.index(unit.lower()) + 1 :]
        left = rest[1:].lstrip(" ")
        # A point is only in the last number.
        if left and "." in digits:
            return None
    return float(seconds) if units != "dhms" else None


def switch(text: str) -> Value:
    """Return true or false."""
    word = trimmed(text)
    # The small letters of some others are Latin.
    if not word.isascii():
        return None
    return {
        "true": True,
        "yes": True,
        "on": True,
        "1": True,
        "false": False,
        "no": False,
        "off": False,
        "0": False,
    }.get(word.lower())


def _clock(text: str) -> tuple[int, int] | None:
    if len(text) != 5 or text[2] != ":" or not _are_digits(text[:2] + text[3:]):
        return None
    hours, minutes = int(text[:2]), int(text[3:])
    return (hours, minutes) if hours < 24 and minutes < 60 else None


def window(text: str) -> Value:
    """Return begin, end and zone of 22:00-06:00 Europe/Berlin."""
    hours, space, zone = trimmed(text).partition(" ")
    zone = zone.lstrip(" ")
    begins, ends = _clock(hours[:5]), _clock(hours[6:])
    if begins is None or ends is None or hours[5:6] != "-" or begins == ends or (space and not zone):
        return None
    if zone and zone not in _ZONES:
        return None
    return begins, ends, zone or "UTC"


def moment(text: str) -> Value:
    """Return the epoch milliseconds of 2026-11-22T22:00Z."""
    text = trimmed(text)
    date, rest = text[:10], text[10:]
    if len(date) != 10 or date[4] != "-" or date[7] != "-" or not _are_digits(date[:4] + date[5:7] + date[8:]):
        return None
    clock, seconds, milliseconds, offset = (0, 0), 0, 0, 0
    if rest:
        time_of_day = _clock(rest[1:6])
        if rest[0] not in "Tt " or time_of_day is None:
            return None
        clock, rest = time_of_day, rest[6:]
        if rest.startswith(":"):
            if not _are_digits(rest[1:3]) or len(rest) < 3 or int(rest[1:3]) > 59:
                return None
            seconds, rest = int(rest[1:3]), rest[3:]
            if rest.startswith("."):
                end = 1
                while end < len(rest) and rest[end] in _DIGITS:
                    end += 1
                if not 2 <= end <= 4:
                    return None
                milliseconds, rest = int(rest[1:end]) * 10 ** (4 - end), rest[end:]
        zone = _offset(rest)
        if zone is None:
            return None
        offset = zone
    try:
        day = datetime(int(date[:4]), int(date[5:7]), int(date[8:]), *clock, seconds, tzinfo=timezone.utc)
    except ValueError:
        return None
    since = day - datetime(1970, 1, 1, tzinfo=timezone.utc)
    return (since.days * 86_400 + since.seconds) * 1000 + milliseconds - offset * 60_000


def _offset(text: str) -> int | None:
    """Return the minutes of a distance from UTC."""
    if text in ("", "Z", "z", " Z", " z"):
        return 0
    clock = _clock(text[1:] if ":" in text else f"{text[1:3]}:{text[3:]}")
    if text[0] not in "+-" or clock is None:
        return None
    return (clock[0] * 60 + clock[1]) * (-1 if text[0] == "-" else 1)


def _list(text: str, of: Callable[[str], Value]) -> Value:
    values = []
    for part in trimmed(text).split(","):
        value = of(part.strip(" "))
        if value is None or value in values:
            return None
        values.append(value)
    return values


def _id(text: str) -> Value:
    return int(text) if _are_digits(text) and int(text) <= _LARGEST_ID else None


def ids(text: str) -> Value:
    """Return the ids of 1,2."""
    return _list(text, _id)


def topic(text: str) -> Value:
    """Return the name of a topic."""
    known = _LETTERS | _DIGITS | set("._-")
    return text if 0 < len(text) <= 249 and set(text) <= known and text not in (".", "..") else None


def topics(text: str) -> Value:
    """Return the names of orders,payments."""
    return _list(text, topic)


def goals(text: str) -> Value:
    """Return the names of disk,leaders."""
    return _list(text, lambda name: name if name and set(name) <= _LETTERS | _DIGITS | set("._:-") else None)


def exclusions(text: str) -> Value:
    """Return topics and brokers of payments,broker:3."""

    def one(part: str) -> Value:
        name, colon, broker = part.partition(":")
        if not colon:
            return topic(part)
        return f"broker:{_id(broker)}" if name == "broker" and _id(broker) is not None else None

    names = _list(text, one)
    return None if names is None else sorted(names)


def replacements(text: str) -> Value:
    """Return the new broker by the old one of 1:4,2:5."""

    def pair(part: str) -> Value:
        old, colon, new = part.partition(":")
        return (_id(old.strip(" ")), _id(new.strip(" "))) if colon else None

    pairs = _list(text, pair)
    if pairs is None or any(None in one for one in pairs) or len({old for old, _ in pairs}) < len(pairs):
        return None
    return dict(pairs)


def batches(text: str) -> Value:
    """Return a number of at least 1, or auto."""
    text = trimmed(text)
    return text if text == "auto" else whole(text) or None


def change(text: str) -> Value:
    """Return lose:3, lose-rack:a, add:7@b, drain:2 or grow:orders=2 as they are."""
    text = trimmed(text)
    kind, colon, rest = text.partition(":")
    if not colon or not rest:
        return None
    if kind == "lose-rack":
        return text if "\n" not in rest else None
    if kind in ("lose", "drain"):
        return text if _id(rest) is not None else None
    if kind == "add":
        broker, at, rack = rest.partition("@")
        return text if _id(broker) is not None and (not at or (rack and "\n" not in rack)) else None
    name, equals, times = rest.partition("=")
    return text if kind == "grow" and topic(name) and equals and _decimal(times) is not None else None


def address(text: str, least_port: int = 1) -> Value:
    """Return broker1:9092 as it is."""
    host, colon, port = text.rpartition(":")
    if not colon or not _are_digits(port, 5) or not least_port <= int(port) <= 65535:
        return None
    if host.startswith("[") and host.endswith("]"):
        return text if _is_ip6(host[1:-1]) else None
    known = _LETTERS | _DIGITS | set("_")
    name = host[:-1] if host.endswith(".") else host
    inner = set(name) <= known | set(".-")
    return text if name and inner and name[0] in known and name[-1] in known else None


def _is_ip6(text: str) -> bool:
    """Return whether a text is eight groups of hexadecimal digits, of which :: leaves some out."""
    if text.count("::") > 1 or ":::" in text:
        return False
    groups = text.replace("::", ":gap:").strip(":").split(":")
    if (text.startswith(":") and not text.startswith("::")) or (text.endswith(":") and not text.endswith("::")):
        return False
    last = groups[-1].split(".")
    four = len(last) == 4 and all(_are_digits(part, 3) and int(part) < 256 and str(int(part)) == part for part in last)
    others = groups[:-1] if four else groups
    count = sum(group != "gap" for group in others) + (2 if four else 0)
    fits = count <= 7 if "gap" in groups else count == 8
    return fits and all(g == "gap" or (0 < len(g) <= 4 and set(g) <= set("0123456789abcdefABCDEF")) for g in others)


def addresses(text: str) -> Value:
    """Return the addresses of broker1:9092,broker2:9092."""
    return _list(text, address)


def heap(text: str) -> Value:
    """Return 1g as it is; 450m is the least."""
    if text[-1:] not in tuple("kmgtKMGT") or not _are_digits(text[:-1], 9):
        return None
    kib = {"k": 1, "m": 1024, "g": 1024**2, "t": 1024**3}[text[-1].lower()]
    return text if int(text[:-1]) * kib >= 450 * 1024 else None


def replica_list(text: str) -> Value:
    """Return the entries of 0:1,0:2, or of all replicas, as Kafka writes them."""
    text = trimmed(text)
    if text in ("", "*"):
        return text
    entries = []
    for part in map(trimmed, text.split(",")):
        partition, colon, broker = part.partition(":")
        if part and (not colon or _id(partition) is None or _id(broker) is None):
            return None
        entries += [(_id(partition), _id(broker))] * bool(part)
    return tuple(entries)
