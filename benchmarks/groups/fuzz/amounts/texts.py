"""Texts near the grammar: valid ones of every form, and what people, locales and copies make of them."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from random import Random

_UNITS = ("", "B", "kB", "KB", "MB", "GB", "TB", "PB", "KiB", "MiB", "GiB", "kb", "mb", "gib", "MIB", "b")
_OTHER_UNITS = (
    "Mb",
    "Gb",
    "M",
    "G",
    "k",
    "m",
    "Mbit",
    "Mbit/s",
    "MBps",
    "MB/sec",
    "MB/min",
    "bytes",
    "mB",
    "MiBs",
    "µB",
)
_SPACES = (" ", "  ", "\u00a0", "\u2009", "\u202f", "\t", "\n", "\u3000", "\ufeff")
_SEPARATORS = (",", ".", "_", "'", "\u2019", "\u066c", " ", "\u00a0")
_SIGNS = ("+", "-", "\u2212", "\uff0b", "~", ">", "<=", "=", "$")
_WORDS = (" per broker", "/s", "/s/s", "/day", " or so", "ish", "%", " %", ";", "#", "!", "x", " 2", ",", ":", "\x00")
_PREFIXES = ("http://", "PLAINTEXT://", "0x", "=", '"', "about ")
_EXPONENTS = ("e3", "E6", "e+2", "e-1", "e", "p3", "^2", "**2")
_DIGITS = ("\uff10", "\u0660", "\u0966", "\u2070", "\u2460", "\U0001d7ce")
_ODD = (
    "",
    " ",
    "nan",
    "NaN",
    "inf",
    "-inf",
    "Infinity",
    "None",
    "null",
    "true",
    "0x10",
    "1/2",
    "½",
    "MB",
    "-",
    ".",
    "auto",
)
_TOPICS = ("orders", "payments", "a.b_c-d", "t", "0", "broker")
_GOALS = ("disk", "network_in", "leaders", "replicas", "requests", "topic_leaders")
_HOSTS = ("broker1", "b_2.example.org", "127.0.0.1", "[::1]", "[2001:db8::7]", "localhost", "k8s-0.k.svc.")
_ZONES = ("UTC", "Europe/Berlin", "America/New_York", "Asia/Kolkata", "Etc/GMT+3", "Mars/Base", "CET")

Texts = Mapping[str, Callable[[Random], str]]


def _whole(random: Random) -> str:
    return str(random.choice((0, 1, 2, 3, 7, 10, 12, 95, 200, 1500, 65_535, 100_000, 2**31 - 1, 2**31, 2**63 - 1)))


def _number(random: Random) -> str:
    whole = random.choice(("0", "1", "5", "12", "50", "99", "100", "1250", "12500000", "007"))
    return whole if random.random() < 0.6 else f"{whole}.{random.choice(('5', '25', '0', '125', '05', '999999'))}"


def _amount(random: Random) -> str:
    return f"{_number(random)}{random.choice(('', '', ' ', '  '))}{random.choice(_UNITS)}"


def _rate(random: Random) -> str:
    return f"{_amount(random)}{random.choice(('', '', '/s', ' /s'))}"


def _duration(random: Random) -> str:
    if random.random() < 0.3:
        return _number(random)
    units = [unit for unit in "dhms" if random.random() < 0.5] or ["m"]
    parts = [f"{random.randint(0, 90)}{random.choice(('', '', ' '))}{random.choice((u, u, u.upper()))}" for u in units]
    return random.choice(("", " ")).join(parts) if random.random() < 0.8 else f"{_number(random)}{units[0]}"


def _moment(random: Random) -> str:
    date = f"{random.choice((1999, 2026, 2031))}-{random.randint(1, 12):02d}-{random.randint(1, 29):02d}"
    if random.random() < 0.1:
        return date
    seconds = random.choice(("", "", f":{random.randint(0, 59):02d}", ":07.5", ":59.999"))
    zone = random.choice(("", "Z", "z", " Z", "+02:00", "-0130", "+05:30", "+23:59"))
    return f"{date}{random.choice('TTt ')}{_clock(random)}{seconds}{zone}"


def _clock(random: Random) -> str:
    return f"{random.randint(0, 24):02d}:{random.randint(0, 60):02d}"


def _window(random: Random) -> str:
    zone = random.choice(("", "", f" {random.choice(_ZONES)}", f"  {random.choice(_ZONES)}"))
    return f"{_clock(random)}-{_clock(random)}{zone}"


def _list(random: Random, one: Callable[[Random], str]) -> str:
    return random.choice((",", ",", ", ", " ,")).join(one(random) for _ in range(random.randint(1, 3)))


def _id(random: Random) -> str:
    return str(random.choice((0, 1, 2, 3, 4, 12, 1001, 2**31 - 1, 2**31)))


def _change(random: Random) -> str:
    forms = (
        f"lose:{_id(random)}",
        "lose-rack:a",
        f"add:{_id(random)}",
        f"add:{_id(random)}@rack b",
        "lose-rack:eu-1/c",
    )
    return random.choice((*forms, f"drain:{_id(random)}", f"grow:{random.choice(_TOPICS)}={_number(random)}"))


def _address(random: Random) -> str:
    return f"{random.choice(_HOSTS)}:{random.choice((1, 80, 9092, 65_535, 65_536, 0))}"


def _entry(random: Random) -> str:
    return f"{_id(random)}:{_id(random)}"


# Builders of texts by kind. Most of the texts are of the kind, and all are near it.
NEAR: Texts = {
    "whole": _whole,
    "number": _number,
    "amount": _amount,
    "rate": _rate,
    "duration": _duration,
    "switch": lambda random: random.choice(("true", "false", "True", "FALSE", "yes", "no", "on", "Off", "1", "0", "2")),
    "moment": _moment,
    "window": _window,
    "ids": lambda random: _list(random, _id),
    "topics": lambda random: _list(random, lambda r: r.choice(_TOPICS)),
    "topic": lambda random: random.choice(_TOPICS),
    "goals": lambda random: _list(random, lambda r: r.choice(_GOALS)),
    "exclusions": lambda random: _list(random, lambda r: r.choice((r.choice(_TOPICS), f"broker:{_id(r)}"))),
    "replacements": lambda random: _list(random, _entry),
    "batches": lambda random: random.choice((_whole(random), "auto")),
    "change": _change,
    "address": _address,
    "addresses": lambda random: _list(random, _address),
    "heap": lambda random: f"{random.choice((1, 2, 512, 1024))}{random.choice('gmktGMKT')}",
    "replica list": lambda random: random.choice(("*", "", _list(random, _entry), _list(random, _entry))),
}


def near(kind: str, random: Random) -> str:
    """Return a text near a kind; one in three is of its usual form."""
    text = NEAR[kind](random)
    for _ in range(random.choice((0, 0, 0, 1, 1, 1, 1, 2, 2, 3))):
        text = random.choice(_MUTATIONS)(text, random)
    return text


def _at(text: str, random: Random) -> int:
    return random.randint(0, len(text))


def _insert(text: str, piece: str, at: int) -> str:
    return text[:at] + piece + text[at:]


def _comma(text: str, random: Random) -> str:
    return text.replace(".", ",") if "." in text else _insert(text, random.choice(_SEPARATORS), _at(text, random))


def _other_digits(text: str, random: Random) -> str:
    zero = ord(random.choice(_DIGITS))
    shifted = {str(n): chr(zero + n) for n in range(10)}
    every = random.random() < 0.5
    return "".join(shifted.get(c, c) if every or random.random() < 0.3 else c for c in text)


def _unit(text: str, random: Random) -> str:
    return f"{text.rstrip('BbKkMmGgTtPpiIs/')}{random.choice(('', ' '))}{random.choice((*_UNITS, *_OTHER_UNITS))}"


def _case(text: str, random: Random) -> str:
    return "".join(random.choice((c.lower(), c.upper(), c)) for c in text)


def _delete(text: str, random: Random) -> str:
    at = _at(text, random)
    return text[:at] + text[at + 1 :]


def _double(text: str, random: Random) -> str:
    at = _at(text, random)
    return text[: at + 1] + text[at:]


def _swap(text: str, random: Random) -> str:
    at = _at(text, random)
    return text[:at] + text[at + 1 : at + 2] + text[at : at + 1] + text[at + 2 :]


_MUTATIONS: tuple[Callable[[str, Random], str], ...] = (
    _comma,
    _comma,
    _other_digits,
    _unit,
    _case,
    _delete,
    _double,
    _swap,
    lambda text, random: _insert(text, random.choice(_SPACES), _at(text, random)),
    lambda text, random: f"{random.choice(_SPACES)}{text}{random.choice(_SPACES)}",
    lambda text, random: _insert(text, random.choice(_SEPARATORS), _at(text, random)),
    lambda text, random: f"{random.choice(_SIGNS)}{text}",
    lambda text, random: f"{text}{random.choice(_EXPONENTS)}",
    lambda text, random: f"{text}{random.choice(_WORDS)}",
    lambda text, random: random.choice(_PREFIXES) + text,
    lambda text, random: text.replace(",", random.choice((";", " ", ",,", "|", "\uff0c"))),
    lambda text, random: f"{text}{random.choice((',', ';', ', ', ''))}{text}",
    lambda text, random: random.choice(_ODD),
    lambda text, random: text + "0" * random.randint(1, 30),
    lambda text, random: _insert(
        text, chr(random.choice((0, 0x7F, 0x200B, 0x202E, 0x130, 0x17F, 0x212A))), _at(text, random)
    ),
)
