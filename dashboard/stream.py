"""Streams of changes to open pages, which end when their reader does not read."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator
from typing import Any

from fastapi import HTTPException
from fastapi.responses import StreamingResponse
from starlette.types import Send

from headroom.dashboard.live import Live

# Each open page has a stream.
_MOST_STREAMS = 100
# A page that does not read for so long is dropped; it connects again, and gets everything anew.
_SLOW_S = 15.0
# A proxy that collects answers, or compresses them in blocks, would hold ticks back; nginx obeys the first.
_HEADERS = {"X-Accel-Buffering": "no", "Cache-Control": "no-store, no-cache, no-transform"}


def is_full(live: Live) -> bool:
    """Return whether there may be no further stream."""
    return live.streams >= _MOST_STREAMS


def require_stream(live: Live) -> None:
    """Refuse a further stream if there are too many.

    Raises:
        HTTPException: there are.
    """
    if is_full(live):
        raise HTTPException(503, f"{_MOST_STREAMS} pages are open; close one.")


class Stream(StreamingResponse):
    """A stream of events that ends when its reader does not read.

    Args:
        events: lines of the events.
    """

    def __init__(self, events: AsyncGenerator[str, None]) -> None:
        super().__init__(events, media_type="text/event-stream", headers=_HEADERS)

    async def stream_response(self, send: Send) -> None:
        """Send the stream, as long as it is read."""

        async def send_in_time(message: Any) -> None:
            await asyncio.wait_for(send(message), _SLOW_S)

        try:
            await super().stream_response(send_in_time)
        except asyncio.TimeoutError:
            return
        finally:
            # Its place is free at once, and not when the garbage is collected.
            if isinstance(self.body_iterator, AsyncGenerator):
                await self.body_iterator.aclose()
