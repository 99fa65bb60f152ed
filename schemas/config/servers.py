"""Headroom's own HTTP servers: /metrics and /health, and the page."""

from __future__ import annotations

from dataclasses import dataclass, field

from headroom.schemas.quantities import strip

# Of /metrics: this machine only, because the endpoint has neither TLS nor a password.
DEFAULT_LISTEN = "127.0.0.1:9644"


@dataclass(frozen=True)
class MetricsSettings:
    """Headroom's own HTTP endpoints: /metrics for Prometheus and /health for probes.

    Attributes:
        listen: listen address as ``host:port``. Port 0: a free port, printed at start. ``off`` or empty: disabled;
            None: ``127.0.0.1:9644``, or disabled with a warning while another process uses that port.
        stale_after_s: age of a cluster's last tick, in seconds, at which its series disappear from /metrics and /health
            becomes unhealthy. 0: the greater of 30 s and 3 intervals. If set, it also limits the first tick after the
            start, which otherwise may take 90 s.
        top_n: maximum number of partitions per cluster with series of their own: the moving ones with the greatest
            write rate x followers, at most 20 per leading broker.
    """

    listen: str | None = None
    stale_after_s: float = 0.0
    top_n: int = 50

    def address(self) -> str:
        """Return the effective listen address as ``host:port``; empty: disabled."""
        listen = DEFAULT_LISTEN if self.listen is None else strip(self.listen)
        return "" if listen == "off" else listen

    def stale_s(self, interval_s: float) -> float:
        """Return the age in seconds at which a tick of a cluster with this interval is too old."""
        return self.stale_after_s or max(30.0, 3 * interval_s)

    def first_s(self, interval_s: float) -> float:
        """Return the maximum time to the first tick in seconds; it includes the start of the collector and of Spark."""
        return self.stale_after_s or max(90.0, self.stale_s(interval_s))


@dataclass(frozen=True)
class DashboardSettings:
    """The page of ``headroom dashboard``.

    Attributes:
        listen: listen address as ``host:port``. Port 0: a free port, printed at start. Beyond this machine it needs a
            token, or a proxy that names users.
        hosts: further names under which the page is opened, separated by commas, without a port, such as that of a
            proxy. A request under another name is refused.
        token: token that the page asks for. Set it with ``HEADROOM_DASHBOARD__TOKEN``. Whoever has it may also have
            the page carry out the commands that it shows. None: no token is needed, the page is read by whoever
            reaches its address, and changes nothing.
        token_file: file that contains only that token; None: not used.
        proxy_user_header: header in which a proxy before the page names the user, such as ``X-Forwarded-User``;
            empty: not used. Whoever is named there needs no token, and is the author of what the page carries out. It
            counts from ``trusted_proxies`` alone, and they have to remove what browsers send under this name.
        trusted_proxies: addresses of these proxies, separated by commas, such as ``10.0.0.5``. Whoever can connect from
            them can be every user.
    """

    listen: str = "127.0.0.1:8600"
    hosts: str = ""
    token: str | None = field(default=None, repr=False)
    token_file: str | None = None
    proxy_user_header: str = ""
    trusted_proxies: str = ""
