"""Answers over HTTP as a proxy spoils them."""

from __future__ import annotations

import json
from typing import Any

ABSURD = -(2**63)


def garbled(body: bytes) -> bytes:
    """Return a body with every fifth byte replaced by one that is none of any text."""
    return bytes(0xFF if at % 5 == 0 else byte for at, byte in enumerate(body))


def with_absurd_offset(question: bytes, body: bytes) -> bytes:
    """Return an answer of Jolokia in which one log end offset is the least number of 64 bits.

    Args:
        question: the reads that were asked for; the answer has a result for each, in their order.
        body: the answer; one without a log end offset is returned as it is.
    """
    try:
        reads, results = json.loads(question), json.loads(body)
        for read, result in zip(reads, results, strict=True):
            if "name=LogEndOffset" in read["mbean"] and result.get("status") == 200:
                result["value"] = _absurd(result["value"])
                return json.dumps(results).encode()
    except (ValueError, TypeError, KeyError, AttributeError):
        # What is no bulk read of Jolokia has no offset.
        pass
    return body


def _absurd(value: Any) -> Any:
    """Return the value of a read, or of a pattern with the first of its MBeans changed."""
    if not isinstance(value, dict) or not value:
        return ABSURD
    first = next(iter(value))
    return {**value, first: _absurd(value[first])}
