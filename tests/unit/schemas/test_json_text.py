"""Files that others write: every encoding of their editors, and no value that is left out in silence."""

from __future__ import annotations

import pytest

from headroom.schemas.text import json_text
from headroom.schemas.text.json_text import decode_text, parse_json

TEXT = '{"topic":"bestellungen-ä"}\r\n'


@pytest.mark.parametrize("encoding", ["utf-8", "utf-8-sig", "utf-16"])
def test_a_text_is_the_same_in_every_encoding(encoding: str) -> None:
    assert decode_text(TEXT.encode(encoding)) == TEXT


def test_both_orders_of_bytes_are_read() -> None:
    assert decode_text(b"\xfe\xff\x00a") == decode_text(b"\xff\xfea\x00") == "a"


@pytest.mark.parametrize(
    "data", [TEXT.encode("utf-16-le"), TEXT.encode("utf-16-be"), TEXT.encode("latin-1"), b"\xff\xfea", b"\x80", b"\0"]
)
def test_text_in_another_encoding_is_refused(data: bytes) -> None:
    with pytest.raises(ValueError, match="not text in UTF-8"):
        decode_text(data)


@pytest.mark.parametrize(
    ("text", "rule"),
    [
        ('{"replicas":[1],"replicas":[2]}', "an object has the name 'replicas' twice"),
        ('[{"a":{"b":1,"b":1}}]', "an object has the name 'b' twice"),
        ("[NaN]", "NaN is not a number in JSON"),
        ('{"a":-Infinity}', "-Infinity is not a number in JSON"),
        ("[" * 100_000, "nested too deeply"),
        ('{"a":[-1e999]}', "-1e999 is too great a number"),
        ("1 2", "Extra data"),
        ("9" * 10_000, "."),
        ("", "Expecting value"),
    ],
)
def test_what_json_does_not_have_is_refused(text: str, rule: str) -> None:
    with pytest.raises(ValueError, match=rule):
        parse_json(text)


def test_a_name_that_is_twice_is_found_among_many_at_once() -> None:
    """A comparison of every name with every other one took half a minute for 20,000, and hours for a plan of 2 MB."""
    compared = 0

    class Name(str):
        def __eq__(self, other: object) -> bool:
            nonlocal compared
            compared += 1
            return str.__eq__(self, other)

        __hash__ = str.__hash__

    pairs = [(Name(n), None) for n in range(2000)] + [(Name("z"), None)] * 2
    with pytest.raises(ValueError, match="an object has the name 'z' twice"):
        json_text._object(pairs)
    assert compared < 10 * len(pairs)


def test_json_is_read() -> None:
    assert parse_json('{"a": [1, 2.5, true, null, "x"]}') == {"a": [1, 2.5, True, None, "x"]}
