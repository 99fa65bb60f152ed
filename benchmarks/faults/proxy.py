"""``python -m benchmarks.faults.proxy [http:]LISTEN:TARGET ...``: a TCP proxy that takes orders.

An order is a line on standard input. It is repeated on standard output once it is in force. The proxy ends with its
input, also if its parent is killed.

| order | effect |
|---|---|
| ``pass`` | everything is passed on |
| ``cut`` | open connections are reset, new ones are refused |
| ``stall`` | connections stay open and are accepted, and nothing is passed on until the next order |
| ``delay SECONDS`` | every piece of an answer is delayed |
| ``drip`` | answers are sent byte by byte |
| ``garble`` | some bytes of every answer's body are replaced (``http`` only) |
| ``absurd`` | one log end offset in every Jolokia answer is the lowest 64-bit number (``http`` only) |
"""

from __future__ import annotations

import asyncio
import socket
import struct
import sys
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass
from typing import Any

from benchmarks.faults.answers import garbled, with_absurd_offset

_HOST = "127.0.0.1"
_PIECE_BYTES = 1 << 20
_DRIP_S = 0.05
_WORDS = ("pass", "cut", "stall", "delay", "drip", "garble", "absurd")
_END_OF_HEAD = b"\r\n\r\n"


@dataclass(frozen=True)
class Order:
    """Treatment of connections.

    Attributes:
        word: one of the orders above.
        seconds: delay of ``delay``.
    """

    word: str = "pass"
    seconds: float = 0.0

    @classmethod
    def of(cls, line: str) -> Order:
        """Return the order in a line.

        Raises:
            ValueError: the line is no order.
        """
        word, _, rest = line.strip().partition(" ")
        if word not in _WORDS:
            raise ValueError(f"no order: {line!r}")
        return cls(word, float(rest) if rest else 0.0)


class Proxy:
    """All listening ports of one process.

    Attributes:
        order: order in force.
    """

    def __init__(self) -> None:
        self.order = Order()
        self._routes: list[Route] = []
        self._flows = asyncio.Event()
        self._flows.set()

    async def start(self, arguments: list[str]) -> None:
        """Listen on every port that the arguments name."""
        for argument in arguments:
            *http, listen, target = argument.split(":")
            route = Route(self, int(listen), int(target), bool(http))
            self._routes.append(route)
            await route.listen()

    async def apply(self, order: Order) -> None:
        """Put an order in force."""
        self.order = order
        for route in self._routes:
            if order.word == "cut":
                route.cut()
            else:
                await route.listen()
        if order.word == "stall":
            self._flows.clear()
        else:
            self._flows.set()

    async def flowing(self) -> None:
        """Return once data may be passed on."""
        await self._flows.wait()

    async def answer(self, sink: asyncio.StreamWriter, piece: bytes) -> None:
        """Pass on a piece of an answer under the order in force."""
        await self.flowing()
        if self.order.word == "delay":
            await asyncio.sleep(self.order.seconds)
        at = 0
        while self.order.word == "drip" and at < len(piece):
            await _write(sink, piece[at : at + 1])
            at += 1
            await asyncio.sleep(_DRIP_S)
        await _write(sink, piece[at:])

    def changed(self, question: bytes, body: bytes) -> bytes:
        """Return the body of an HTTP answer under the order in force.

        Args:
            question: body of the request.
            body: body of the answer.
        """
        if self.order.word == "garble":
            return garbled(body)
        return with_absurd_offset(question, body) if self.order.word == "absurd" else body


class Route:
    """One port that is forwarded to another.

    Args:
        proxy: proxy with the order.
        port: listening port.
        target: target port.
        http: whether requests and answers are parsed as HTTP.
    """

    def __init__(self, proxy: Proxy, port: int, target: int, http: bool) -> None:
        self._proxy = proxy
        self._port = port
        self._target = target
        self._work = self._exchange if http else self._relay
        self._server: asyncio.AbstractServer | None = None
        self._open: set[asyncio.StreamWriter] = set()

    async def listen(self) -> None:
        """Accept connections, if the port is not open yet."""
        if self._server is None:
            self._server = await asyncio.start_server(self._accepted, _HOST, self._port, limit=_PIECE_BYTES)

    def cut(self) -> None:
        """Reset open connections, and refuse new ones."""
        server, self._server = self._server, None
        if server is not None:
            server.close()
        for writer in list(self._open):
            # Linger time 0 makes the close a reset.
            writer.get_extra_info("socket").setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
            writer.transport.abort()

    async def _accepted(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self._open.add(writer)
        try:
            # Either end may disconnect at any moment.
            with suppress(OSError, asyncio.IncompleteReadError, asyncio.LimitOverrunError):
                await self._work(reader, writer)
        finally:
            self._open.discard(writer)
            writer.close()

    async def _relay(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        """Pass on all bytes both ways until either end disconnects."""
        await self._proxy.flowing()
        back, forth = await asyncio.open_connection(_HOST, self._target, limit=_PIECE_BYTES)
        self._open.add(forth)

        async def questions() -> None:
            while piece := await reader.read(_PIECE_BYTES):
                await self._proxy.flowing()
                await _write(forth, piece)

        async def answers() -> None:
            while piece := await back.read(_PIECE_BYTES):
                await self._proxy.answer(writer, piece)

        try:
            await _first([questions, answers])
        finally:
            self._open.discard(forth)
            forth.close()

    async def _exchange(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        """Pass on HTTP requests one by one, each over a new connection, and their answers."""
        while True:
            head, question = await read_message(reader)
            await self._proxy.flowing()
            back, forth = await asyncio.open_connection(_HOST, self._target, limit=_PIECE_BYTES)
            try:
                await _write(forth, head + question)
                answered, body = await read_message(back, is_answer=True)
            finally:
                forth.close()
            await self._proxy.answer(writer, with_length(answered, self._proxy.changed(question, body)))


async def _first(works: list[Callable[[], Any]]) -> None:
    """Return when the first coroutine ends, and cancel the others."""
    tasks = [asyncio.ensure_future(work()) for work in works]
    try:
        done, _ = await asyncio.wait(tasks, return_when=asyncio.FIRST_COMPLETED)
        for task in done:
            task.result()
    finally:
        for task in tasks:
            task.cancel()


async def _write(sink: asyncio.StreamWriter, piece: bytes) -> None:
    if piece:
        sink.write(piece)
        await sink.drain()


async def read_message(reader: asyncio.StreamReader, is_answer: bool = False) -> tuple[bytes, bytes]:
    """Return head and body of an HTTP message.

    Args:
        reader: connection to read from.
        is_answer: whether the body may end with the connection.

    Raises:
        asyncio.IncompleteReadError: the connection ended before.
    """
    head = await reader.readuntil(_END_OF_HEAD)
    pairs = (line.partition(b":") for line in head.split(b"\r\n")[1:])
    fields = {name.strip().lower(): value.strip() for name, _, value in pairs}
    if b"chunked" in fields.get(b"transfer-encoding", b"").lower():
        return head, await _chunks(reader)
    if b"content-length" in fields:
        return head, await reader.readexactly(int(fields[b"content-length"]))
    return head, await reader.read() if is_answer else b""


async def _chunks(reader: asyncio.StreamReader) -> bytes:
    pieces = []
    while size := int((await reader.readuntil(b"\r\n")).split(b";")[0], 16):
        pieces.append(await reader.readexactly(size))
        await reader.readexactly(2)
    while await reader.readuntil(b"\r\n") != b"\r\n":
        # Trailers after the last chunk.
        pass
    return b"".join(pieces)


def with_length(head: bytes, body: bytes) -> bytes:
    """Return an HTTP message with its body in one piece and the right Content-Length."""
    lines = head.removesuffix(_END_OF_HEAD).split(b"\r\n")
    headers = [line for line in lines if not line.lower().startswith((b"content-length:", b"transfer-encoding:"))]
    return b"\r\n".join([*headers, b"Content-Length: %d" % len(body)]) + _END_OF_HEAD + body


async def _serve(arguments: list[str]) -> None:
    proxy = Proxy()
    await proxy.start(arguments)
    print("listening", flush=True)
    while line := await asyncio.to_thread(sys.stdin.readline):
        await proxy.apply(Order.of(line))
        print(line.strip(), flush=True)


if __name__ == "__main__":
    asyncio.run(_serve(sys.argv[1:]))
