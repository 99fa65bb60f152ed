"""Text and JSON of files that others write: decoding, and parsing without anything left out in silence."""

from __future__ import annotations

import codecs
import json
import math
from collections import Counter
from collections.abc import Sequence
from typing import Any

# Editors and shells of Windows write these.
_BYTE_ORDER_PREFIXES = (
    (codecs.BOM_UTF8, "utf-8-sig"),
    (codecs.BOM_UTF16_LE, "utf-16"),
    (codecs.BOM_UTF16_BE, "utf-16"),
)


def decode_text(data: bytes) -> str:
    """Return the text of a file in UTF-8, or in UTF-16 with a byte order mark; the mark is not part of it.

    Raises:
        ValueError: it is in no such encoding.
    """
    encoding = next((encoding for prefix, encoding in _BYTE_ORDER_PREFIXES if data.startswith(prefix)), "utf-8")
    try:
        text = data.decode(encoding)
    except UnicodeDecodeError:
        raise ValueError("it is not text in UTF-8") from None
    # UTF-16 without a byte order mark.
    if "\0" in text:
        raise ValueError("it is not text in UTF-8")
    return text


def parse_json(text: str) -> Any:
    """Return the value of a JSON text.

    Raises:
        ValueError: the text is not valid JSON, is nested too deeply, has a number that JSON does not have or that is
            too great, or gives a name twice in one object, of which Python's parser would keep the last.
    """
    try:
        return json.loads(text, object_pairs_hook=_object, parse_constant=_refuse, parse_float=_finite)
    except RecursionError:
        raise ValueError("it is nested too deeply") from None


def _object(pairs: Sequence[tuple[str, Any]]) -> dict[str, Any]:
    content = dict(pairs)
    if len(content) < len(pairs):
        # The text may be somebody else's: one pass, however many names it has.
        counts = Counter(name for name, _ in pairs)
        twice = next(name for name, count in counts.items() if count > 1)
        raise ValueError(f"an object has the name {twice!r} twice")
    return content


def _finite(text: str) -> float:
    number = float(text)
    if math.isinf(number):
        raise ValueError(f"{text[:20]} is too great a number")
    return number


def _refuse(constant: str) -> Any:
    raise ValueError(f"{constant} is not a number in JSON")
