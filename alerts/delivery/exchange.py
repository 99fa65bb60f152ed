"""HTTP exchange by aiohttp, with one deadline for the whole exchange, a bounded response, and no redirects.

A server that sends its response, TLS handshake or ``100 Continue`` very slowly does not outlast the deadline. Redirects
are not followed: the token, the signature and the alert would go to a host that is not in the settings.
"""

from __future__ import annotations

import asyncio
import socket
import ssl
from collections.abc import Mapping
from dataclasses import dataclass
from functools import partial
from typing import Any
from urllib.parse import urlsplit
from urllib.request import getproxies, proxy_bypass

import aiohttp
from aiohttp.abc import AbstractResolver, ResolveResult
from yarl import URL

from headroom.schemas.threads import run_in_daemon_thread

# More than enough for a response that is only logged.
MOST_BYTES = 1 << 16


@dataclass(frozen=True)
class HttpAnswer:
    """Response of a server.

    Attributes:
        status: HTTP status.
        body: body, or the part that arrived in time and within the limit.
        whole: whether the body is complete.
        retry_after: header ``Retry-After``; None if there is none.
    """

    status: int
    body: bytes
    whole: bool
    retry_after: str | None


def exchange(
    url: str,
    body: bytes,
    headers: Mapping[str, str],
    tls: ssl.SSLContext,
    timeout_s: float,
    most_bytes: int = MOST_BYTES,
    method: str = "POST",
) -> HttpAnswer:
    """Return the response to a request, whatever its status. Proxies of the environment are used.

    Args:
        url: URL of the server.
        body: body.
        headers: headers.
        tls: TLS context of HTTPS connections.
        timeout_s: deadline for the whole exchange, in seconds. If the status arrived in time, the response is
            returned with a possibly truncated body.
        most_bytes: largest number of body bytes to read.
        method: HTTP method.

    Raises:
        TimeoutError: no status arrived in time.
        OSError: the server was not reached, or its certificate is not trusted.
        aiohttp.ClientError: the response is not HTTP.
    """
    return asyncio.run(_exchange(method, url, body, headers, tls, timeout_s, most_bytes))


async def _exchange(
    method: str,
    url: str,
    body: bytes,
    headers: Mapping[str, str],
    tls: ssl.SSLContext,
    timeout_s: float,
    most_bytes: int,
) -> HttpAnswer:
    try:
        async with new_session(tls, timeout_s) as session:
            # As it stands in the settings: a receiver may have signed it.
            target = URL(url, encoded=url.isascii())
            async with session.request(
                method, target, data=body, headers=headers, proxy=proxy_of(url), allow_redirects=False
            ) as response:
                content, is_whole = await read_body(response, most_bytes)
                return HttpAnswer(response.status, content, is_whole, response.headers.get("Retry-After"))
    except Exception as error:
        raise cause_of(error) from None


def cause_of(error: Exception) -> Exception:
    """Return the error of the operating system or of TLS that an error of aiohttp has as its cause."""
    if isinstance(error, asyncio.TimeoutError):
        return TimeoutError()
    if isinstance(error, aiohttp.ClientConnectorCertificateError):
        return error.certificate_error
    return error.os_error if isinstance(error, aiohttp.ClientConnectorError) else error


def new_session(tls: ssl.SSLContext, timeout_s: float, **options: Any) -> aiohttp.ClientSession:
    """Return a session whose requests have one deadline each, keep no connection, and ask for bodies without encoding.

    Args:
        tls: TLS context of HTTPS connections.
        timeout_s: deadline of each request and its response, in seconds.
        options: of aiohttp.ClientSession.
    """
    connector = aiohttp.TCPConnector(ssl=tls, resolver=_Resolver(), use_dns_cache=False, force_close=True)
    return aiohttp.ClientSession(
        connector=connector,
        timeout=aiohttp.ClientTimeout(total=timeout_s),
        # An encoding could make a large body of a small one.
        headers={"Accept-Encoding": "identity"},
        auto_decompress=False,
        **options,
    )


def proxy_of(url: str) -> str | None:
    """Return the proxy that the environment names for a URL; None if there is none."""
    parts = urlsplit(url)
    proxy = None if proxy_bypass(parts.hostname or "") else getproxies().get(parts.scheme)
    return f"http://{proxy}" if proxy and "://" not in proxy else proxy


async def read_body(response: aiohttp.ClientResponse, most_bytes: int) -> tuple[bytes, bool]:
    """Return a body to its limit, and whether that is all. A body that breaks off counts as truncated."""
    body = bytearray()
    try:
        async for piece in response.content.iter_any():
            body += piece[: most_bytes + 1 - len(body)]
            if len(body) > most_bytes:
                return bytes(body[:most_bytes]), False
    except (aiohttp.ClientError, asyncio.TimeoutError, OSError):
        return bytes(body), False
    return bytes(body), True


class _Resolver(AbstractResolver):
    """Looks up names on threads that do not keep the process alive, as those of asyncio do."""

    async def resolve(
        self, host: str, port: int = 0, family: socket.AddressFamily = socket.AF_INET
    ) -> list[ResolveResult]:
        look_up = partial(socket.getaddrinfo, host, port, family=family, type=socket.SOCK_STREAM)
        addresses = await asyncio.wrap_future(run_in_daemon_thread("look-up", look_up))
        return [
            ResolveResult(
                hostname=host,
                host=str(address[0]),
                port=int(address[1]),
                family=of_family,
                proto=proto,
                flags=socket.AI_NUMERICHOST,
            )
            for of_family, _, proto, _, address in addresses
        ]

    async def close(self) -> None:
        """Do nothing: each look-up has its own thread."""
