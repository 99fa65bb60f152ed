"""The grammar of all quantities that are given as text: amounts, times, lists and addresses.

Every option of a command, every setting and every text of Kafka is read here. A text is a quantity as a whole, or it is
refused: no part of it is read, and no digit or letter beyond ASCII. The forms are those of docs/configuration.md.
"""

from __future__ import annotations

import ipaddress
import re
import unicodedata
from collections.abc import Callable, Sequence
from datetime import datetime, time, timedelta, timezone, tzinfo
from fractions import Fraction
from typing import TypeVar
from urllib.parse import urlsplit
from zoneinfo import ZoneInfo

from headroom.schemas.text import one_line

_T = TypeVar("_T")
# Returns the quantity of a text; None if it is none.
_Reader = Callable[[str], object]
# A pattern of texts that are close to a quantity, what to write instead, and why.
_Fix = tuple[re.Pattern[str], str, str]
IpAddress = ipaddress.IPv4Address | ipaddress.IPv6Address

# More digits than any quantity has: 2^63 has 19.
_WHOLE = r"[0-9]{1,19}"
_NUMBER = rf"{_WHOLE}(?:\.{_WHOLE})?"
# 1 MB is 10^6 bytes, 1 MiB is 2^20. As usual, in small letters, or in capitals; Mb and the like may be bits.
_UNITS = {"": 1, "B": 1, "b": 1, "kB": 1000} | {
    spelling: base**power
    for power, letter in enumerate("KMGTP", start=1)
    for unit, base in ((f"{letter}B", 1000), (f"{letter}iB", 1024))
    for spelling in (unit, unit.lower(), unit.upper())
}
_SECONDS = {"d": 86_400, "h": 3600, "m": 60, "s": 1}
_TRUE, _FALSE = ("true", "yes", "on", "1"), ("false", "no", "off", "0")
_SHOWN_CHARACTERS = 60
# Ids are 32-bit integers in Kafka.
_MAX_ID = 2**31 - 1

_PLAIN_WHOLE = re.compile(_WHOLE)
_PLAIN_NUMBER = re.compile(_NUMBER)
_BYTES = re.compile(rf"({_NUMBER}) *([A-Za-z]*)")
_BYTES_PER_S = re.compile(rf"{_BYTES.pattern}(?: */s)?")
_DURATION = re.compile(" *".join(rf"(?:({_NUMBER}) *{unit})?" for unit in _SECONDS), re.IGNORECASE | re.ASCII)
_HEAP = re.compile(r"([0-9]{1,9})([kmgtKMGT])")
_CLOCK = r"((?:[01][0-9]|2[0-3]):[0-5][0-9])"
_TIME_OF_DAY = re.compile(_CLOCK)
_WINDOW = re.compile(rf"{_CLOCK}-{_CLOCK}(?: +([A-Za-z0-9_+/-]+))?")
_MOMENT = re.compile(
    rf"([0-9]{{4}}-[0-9]{{2}}-[0-9]{{2}})(?:[Tt ]{_CLOCK}(?::([0-5][0-9])(?:\.([0-9]{{1,3}}))?)?"
    rf"(?: ?[Zz]|([+-])([01][0-9]|2[0-3]):?([0-5][0-9]))?)?"
)
_HOST = r"[A-Za-z0-9_](?:[A-Za-z0-9._-]*[A-Za-z0-9_])?\.?"
_URL = re.compile(r"(?i:https?)://[^\s\x00-\x1f\x7f]+")
_ADDRESS = re.compile(rf"({_HOST}|\[[0-9A-Fa-f:.]+\]):([0-9]{{1,5}})")

# Topics as Kafka allows them (org.apache.kafka.common.internals.Topic), and goals of a balance.
TOPIC = re.compile(r"(?!\.{1,2}\Z)[A-Za-z0-9._-]{1,249}")
GOAL = re.compile(r"[A-Za-z0-9_.:-]+")
GOALS = "a list of goals, such as disk,leaders"


class QuantityError(ValueError):
    """A text that is no quantity of its kind.

    Attributes:
        rule: what was given, and what it is not.
        remedy: what to write.
    """

    def __init__(self, rule: str, remedy: str = "Correct the value.") -> None:
        self.rule = rule
        self.remedy = remedy
        super().__init__(f"{rule}. {remedy}")


def parse_whole(text: str) -> int:
    """Return the number of a text such as ``12``. Raises QuantityError."""
    number = _whole(strip(text))
    return _require(number, text, "a whole number without a sign, such as 12", _whole, _NUMBER_FIXES)


def parse_number(text: str) -> float:
    """Return the number of a text such as ``12`` or ``12.5``. Raises QuantityError."""
    return _require(_number(strip(text)), text, "a number without a sign, such as 12 or 12.5", _number, _NUMBER_FIXES)


def parse_percentage(text: str) -> float:
    """Return the percentage of a text such as ``10`` or ``12.5``. Raises QuantityError."""
    what = "a number of percent without a sign, such as 10 or 12.5"
    return _require(_number(strip(text)), text, what, _number, (*_NUMBER_FIXES, _PERCENT_SIGN))


def parse_bytes(text: str) -> float:
    """Return the bytes of a text such as ``12000000000``, ``500GB`` or ``12GiB``. Raises QuantityError."""
    what = "an amount of bytes, such as 500GB or 12GiB"
    return _require(_bytes(strip(text)), text, what, _bytes, _BYTE_FIXES)


def parse_bytes_per_s(text: str) -> float:
    """Return the bytes per second of a text such as ``12500000``, ``12.5MB`` or ``12 MiB/s``. Raises QuantityError."""
    what = "a rate in bytes per second, such as 12500000, 12.5MB or 12MiB/s"
    return _require(_rate(strip(text)), text, what, _rate, (*_BYTE_FIXES, _PER_SECOND))


def has_unit(text: str) -> bool:
    """Return whether an amount, such as ``12.5MB``, has a unit; ``/s`` alone is not a unit."""
    match = _BYTES_PER_S.fullmatch(strip(text))
    return match is not None and match[2] != ""


def parse_duration_s(text: str) -> float:
    """Return the seconds of a text such as ``1800``, ``90s``, ``30m``, ``1h30m`` or ``2d``. Raises QuantityError."""
    what = "seconds or a time such as 90s, 30m or 1h30m"
    return _require(_seconds(strip(text)), text, what, _seconds, (*_NUMBER_FIXES, *_TIME_FIXES))


def parse_heap_bytes(text: str) -> int:
    """Return the bytes of a JVM's heap size such as ``1g`` or ``512m``. Raises QuantityError.

    Spark hands the text to the JVM as it is (``-Xmx``), which takes no other unit, no fraction, and as a number alone
    bytes.
    """
    match = _HEAP.fullmatch(text)
    if match is None:
        raise QuantityError(f"{quote(text)} is not the size of a heap", 'Write it as "1g" or "512m".')
    return int(match[1]) * 1024 ** ("kmgt".index(match[2].lower()) + 1)


def parse_flag(text: str) -> bool:
    """Return the value of a text such as ``true`` or ``false``. Raises QuantityError."""
    word = strip(text).lower()
    if word not in (*_TRUE, *_FALSE):
        raise QuantityError(f"{quote(text)} is neither true nor false", "Write true or false.")
    return word in _TRUE


def parse_moment_ms(text: str) -> int:
    """Return the epoch milliseconds of a text such as ``2026-11-22T22:00Z``; without a zone it is UTC.

    A date alone is its first moment. Raises QuantityError.
    """
    match = _MOMENT.fullmatch(strip(text))
    try:
        if match is not None:
            return _moment_ms(match)
    # A year 0, a month 13, a day 31 in April.
    except ValueError:
        pass
    raise QuantityError(f"{quote(text)} is not a date and time", "Write it as 2026-11-22T22:00Z.")


def parse_time_of_day(text: str) -> time:
    """Return the time of a text such as ``22:00``. Raises QuantityError."""
    if not _TIME_OF_DAY.fullmatch(text):
        raise QuantityError(f"{quote(text)} is not a time of day", 'Write it as "22:00".')
    return time.fromisoformat(text)


def parse_window(text: str) -> tuple[time, time, tzinfo]:
    """Return begin, end and zone of a text such as ``01:00-05:00`` (UTC) or ``22:00-02:00 Europe/Berlin``.

    Raises:
        QuantityError: the text is no such window, or its time zone is not known on this machine.
    """
    match = _WINDOW.fullmatch(strip(text))
    if match is None or match[1] == match[2]:
        remedy = 'Write it as "01:00-05:00" (UTC) or "22:00-02:00 Europe/Berlin".'
        raise QuantityError(f"{quote(text)} is not a window of the day", remedy)
    return time.fromisoformat(match[1]), time.fromisoformat(match[2]), _zone(match[3] or "UTC")


def parse_id(text: str) -> int:
    """Return the id of a broker or the number of a partition. Raises QuantityError."""
    what = "a broker id such as 1"
    return _require(_id(strip(text)), text, what, _id, _NUMBER_FIXES)


def is_id(value: object) -> bool:
    """Return whether a JSON value is the id of a broker or the number of a partition."""
    return isinstance(value, int) and not isinstance(value, bool) and 0 <= value <= _MAX_ID


def parse_ids(text: str) -> list[int]:
    """Return the ids of a text such as ``1,2``, each of which is given once. Raises QuantityError."""
    return _list(text, _id, "a list of broker ids, such as 1,2")


def parse_names(text: str, pattern: re.Pattern[str], what: str) -> list[str]:
    """Return the names of a text such as ``orders,payments``, each of which is given once.

    Args:
        text: names separated by commas.
        pattern: pattern of one name.
        what: what the text has to be, with an example.

    Raises:
        QuantityError: a name is missing or is none, or is given twice.
    """
    return _list(text, lambda name: name if pattern.fullmatch(name) else None, what)


def parse_address(text: str, least_port: int = 1) -> tuple[str, int]:
    """Return host and port of a text such as ``broker1:9092`` or ``[::1]:9092``. Raises QuantityError."""

    def read(given: str) -> tuple[str, int] | None:
        return _address(given, least_port)

    return _require(read(strip(text)), text, "host:port, such as broker1:9092", read, _ADDRESS_FIXES)


def parse_addresses(text: str) -> list[str]:
    """Return the addresses of a text such as ``broker1:9092,broker2:9092``. Raises QuantityError."""
    what = "a list of host:port, such as broker1:9092,broker2:9092"
    return _list(text, lambda part: part if _address(part, 1) else None, what, _ADDRESS_FIXES)


def parse_machines(text: str) -> list[IpAddress]:
    """Return the addresses of a text such as ``10.0.0.5,fd00::5``, each that of one machine. Raises QuantityError."""
    return _list(text, machine_address, "a list of addresses of machines, such as 10.0.0.5,fd00::5")


def machine_address(text: str) -> IpAddress | None:
    """Return the address of one machine; None for other texts, and for addresses that no machine has for itself."""
    try:
        address = ipaddress.ip_address(text)
    except ValueError:
        return None
    if "%" in text:
        # The number of a link is that of one machine alone, and any text could follow.
        return None
    if isinstance(address, ipaddress.IPv6Address) and address.ipv4_mapped is not None:
        # What a server sees that listens for both kinds.
        address = address.ipv4_mapped
    return None if address.is_unspecified or address.is_multicast else address


def is_url(text: str) -> bool:
    """Return whether a text is the URL of a web server, without a user or password in it."""
    if not _URL.fullmatch(text):
        return False
    try:
        url = urlsplit(text)
        # Reading the port checks it.
        return bool(url.hostname) and url.netloc.isascii() and not {"@", ";"} & set(url.netloc) and url.port != 0
    except ValueError:
        return False


def parse_urls(text: str) -> list[str]:
    """Return the URLs of a text such as ``http://a:9093,http://b:9093``. Raises QuantityError."""
    what = "a list of URLs without users or passwords, such as http://a:9093,http://b:9093"
    return _list(text, lambda part: part if is_url(part) else None, what)


def strip(text: str) -> str:
    """Return a text without the spaces before and after it: those of ASCII, and no other."""
    return text.strip(" \t\r\n")


def _whole(text: str) -> int | None:
    return int(text) if _PLAIN_WHOLE.fullmatch(text) else None


def _id(text: str) -> int | None:
    number = _whole(text)
    return number if number is not None and number <= _MAX_ID else None


def _number(text: str) -> float | None:
    return float(text) if _PLAIN_NUMBER.fullmatch(text) else None


def _bytes(text: str) -> float | None:
    return _amount(_BYTES.fullmatch(text))


def _rate(text: str) -> float | None:
    return _amount(_BYTES_PER_S.fullmatch(text))


def _amount(match: re.Match[str] | None) -> float | None:
    if match is None or match[2] not in _UNITS:
        return None
    return float(Fraction(match[1]) * _UNITS[match[2]])


def _seconds(text: str) -> float | None:
    if _PLAIN_NUMBER.fullmatch(text):
        return float(text)
    match = _DURATION.fullmatch(text)
    parts = zip(match.groups(), _SECONDS.values(), strict=True) if match is not None else ()
    terms = [(number, seconds) for number, seconds in parts if number is not None]
    # Only the last number may have a fraction: 1.5h, but not 1.5h30m.
    if not terms or any("." in number for number, _ in terms[:-1]):
        return None
    return float(sum(Fraction(number) * seconds for number, seconds in terms))


def _moment_ms(match: re.Match[str]) -> int:
    date, clock, second, fraction, sign, hours, minutes = match.groups()
    moment = datetime.fromisoformat(f"{date}T{clock or '00:00'}:{second or '00'}").replace(tzinfo=timezone.utc)
    offset = timedelta(hours=int(hours or 0), minutes=int(minutes or 0)) * (-1 if sign == "-" else 1)
    since = moment - datetime(1970, 1, 1, tzinfo=timezone.utc) - offset
    return since // timedelta(milliseconds=1) + int((fraction or "0").ljust(3, "0"))


def _zone(name: str) -> tzinfo:
    if name == "UTC":
        return timezone.utc
    try:
        return ZoneInfo(name)
    # A wrong name may be a folder of zones, or a path outside of them.
    except (KeyError, ValueError, OSError):
        rule = f"names the time zone {name}, which this machine does not know"
        raise QuantityError(rule, "Write one such as Europe/Berlin, or none for UTC.") from None


def _address(text: str, least_port: int) -> tuple[str, int] | None:
    match = _ADDRESS.fullmatch(text)
    if match is None or not least_port <= int(match[2]) < 65_536:
        return None
    if match[1].startswith("["):
        try:
            ipaddress.IPv6Address(match[1][1:-1])
        except ValueError:
            return None
    return match[1], int(match[2])


def _list(text: str, read: Callable[[str], _T | None], what: str, fixes: Sequence[_Fix] = ()) -> list[_T]:
    def read_all(given: str) -> list[_T] | None:
        values = [read(part.strip(" ")) for part in given.split(",")]
        known = [one for one in values if one is not None]
        return known if len(known) == len(values) else None

    values = _require(read_all(strip(text)), text, what, read_all, (*_LIST_FIXES, *fixes))
    twice = sorted({str(one) for one in values if values.count(one) > 1})
    if twice:
        raise QuantityError(f"{quote(text)} names {', '.join(twice)} twice", "Name each once.")
    return values


def _require(value: _T | None, text: str, what: str, reads: _Reader, fixes: Sequence[_Fix]) -> _T:
    """Return a quantity that was found.

    Raises:
        QuantityError: there was none; the remedy is what was probably meant, if a fix of the text is a quantity.
    """
    if value is not None:
        return value
    plain = strip("".join(map(_plain, text)))
    # Each fix by itself, and then all of them.
    for chosen in ((_OTHER_DIGITS,), *((fix,) for fix in fixes), fixes):
        fixed, reasons = plain, []
        for pattern, replacement, reason in chosen:
            before, fixed = fixed, pattern.sub(replacement, fixed)
            reasons += [reason] * (fixed != before or pattern is _OTHER_DIGITS[0])
        if fixed != strip(text) and reads(fixed) is not None:
            raise QuantityError(f"{quote(text)} is not {what}", f"Write {fixed}: {'; '.join(reasons)}.")
    raise QuantityError(f"{quote(text)} is not {what}")


def _plain(character: str) -> str:
    if character.isdecimal():
        return str(unicodedata.decimal(character))
    return " " if character.isspace() else character


_CREDENTIALS = re.compile(r"^([A-Za-z][A-Za-z0-9+.-]*://)?.*@", re.DOTALL)
_HIDDEN = r"\1...@"


def quote(text: str) -> str:
    """Return a text for an error, without a user and password in it."""
    # A password may contain every character that separates addresses.
    return f"'{one_line(_CREDENTIALS.sub(_HIDDEN, text), _SHOWN_CHARACTERS)}'"


def _fix(pattern: str, replacement: str, reason: str) -> _Fix:
    return re.compile(pattern), replacement, reason


_OTHER_DIGITS = _fix(r"(?!)", "", "only the digits 0 to 9 and plain spaces are read")
_NUMBER_FIXES = (
    # Three digits after a comma may be thousands.
    _fix(r"(?<=[0-9]),(?=[0-9]{1,2}(?![0-9,.]))", ".", "a comma is not a decimal point here"),
    _fix(r"(?<=[0-9])[ _'](?=[0-9])", "", "digits are written together"),
    _fix(r"^\+", "", "without a sign"),
    _fix(r"^(?=\.[0-9])", "0", "with a digit before the point"),
)
_PERCENT_SIGN = _fix(r" *%$", "", "without a sign")
_BYTE_FIXES = (
    *_NUMBER_FIXES,
    _fix(r"(?<=[0-9 ])([kKMGTP]i?)b?(?= */s$|$)", r"\1B", "the unit in full, with B for bytes, because b may be bits"),
)
_PER_SECOND = _fix(r"(?:ps|/sec|/second)$", "/s", "per second is /s")
_TIME_FIXES = (
    _fix(
        r"(?i)(?<=[0-9]) *(d|h|m|s)(?:ays?|ours?|rs?|ins?|inutes?|ecs?|econds?)(?![a-z])",
        r"\1",
        "units are d, h, m and s",
    ),
    _fix(r"(?i)(?<=h)([0-9]+)$", r"\1m", "each number has a unit"),
)
_LIST_FIXES = (
    _fix(r" *[;|] *|(?<![,;| ]) +(?![,;| ])", ",", "commas separate"),
    _fix(r"^[, ]+|[, ]+$", "", "without a comma at the end"),
)
_ADDRESS_FIXES = (
    _fix(r"[A-Za-z][A-Za-z0-9+._-]*://", "", "without a scheme; the setting security_protocol names the protocol"),
    _fix(r"/+(?=,|$)", "", "without a path"),
)
