"""HTTP answers damaged by a proxy."""

from __future__ import annotations

import json
from typing import Any

ABSURD = -(2**63)


def garbled(body: bytes) -> bytes:
    """Return a body with every fifth byte replaced by 0xFF, which is invalid in UTF-8."""
    return bytes(0xFF if at % 5 == 0 else byte for at, byte in enumerate(body))


def with_absurd_offset(question: bytes, body: bytes) -> bytes:
    """Return a Jolokia answer in which one log end offset is the lowest 64-bit number.

    Args:
        question: body of the request: a list of reads. The answer has one result per read, in the same order.
        body: body of the answer; returned unchanged if it has no log end offset.
    """
    try:
        reads, results = json.loads(question), json.loads(body)
        for read, result in zip(reads, results, strict=True):
            if "name=LogEndOffset" in read["mbean"] and result.get("status") == 200:
                result["value"] = _absurd(result["value"])
                return json.dumps(results).encode()
    except (ValueError, TypeError, KeyError, AttributeError):
        # Not a bulk read of Jolokia, so it has no offset.
        pass
    return body


def _absurd(value: Any) -> Any:
    """Return the changed value of a read; of a pattern, with its first MBean changed."""
    if not isinstance(value, dict) or not value:
        return ABSURD
    first = next(iter(value))
    return {**value, first: _absurd(value[first])}
