"""``headroom dashboard``: serves the page."""

from __future__ import annotations

import threading

import click

from headroom.alerts.watched_cluster import WatchedCluster
from headroom.cli.common.child_process import headroom_command
from headroom.cli.common.options import configs_option, with_parent_option
from headroom.cli.common.output import echo
from headroom.cli.common.parameters import ListenAddress
from headroom.cli.common.stopping import end_with_parent
from headroom.cli.config.several_files import load_clusters
from headroom.cluster.secrets import secret
from headroom.schemas.errors import HeadroomError
from headroom.schemas.quantities import parse_address, parse_machines, strip
from headroom.streaming.clock import now_ms
from headroom.streaming.delta.locations import local_path


@click.command(short_help="Serve the page: will the move finish, when, why not, and what puts it right.")
@configs_option
@click.option(
    "--listen", type=ListenAddress(), metavar="HOST:PORT", help="Address to listen on; default: dashboard.listen."
)
@click.option("--open", "to_open", is_flag=True, help="Open the page in a browser of this machine.")
@with_parent_option
def dashboard(configs: tuple[str, ...], listen: tuple[str, int] | None, to_open: bool, with_parent: bool) -> None:
    """Serve one page about the moves of all clusters in a store, until Ctrl-C.

    It reads the tables alone, so that it also opens a store that was copied elsewhere, at any moment of it. It listens
    on this machine only, unless a token is set (dashboard.token), or a proxy that names users
    (dashboard.trusted_proxies). With one of them it also carries out the commands that it shows: it runs them, first
    without --execute, and after a yes with it. Otherwise it changes nothing.

    \b
    Example:  headroom dashboard --open
              headroom dashboard --listen 127.0.0.1:0 --config orders.toml
    """  # noqa: D301
    clusters = load_clusters(configs)
    settings = clusters.settings.dashboard
    host, port = listen or parse_address(settings.listen, least_port=0)
    # An empty variable of the environment is no token, which anybody would know.
    token = secret(settings.token, settings.token_file, "dashboard.token_file") or None
    # Only here: FastAPI takes a second, which no other command waits for.
    from headroom.dashboard.acting.actions import Actions
    from headroom.dashboard.app import create_app
    from headroom.dashboard.security import TrustedProxies, allowed_hosts, is_loopback
    from headroom.dashboard.server import bind, open_browser, serve, url_of
    from headroom.dashboard.site import Site

    header, proxies = strip(settings.proxy_user_header), None
    if header:
        proxies = TrustedProxies(header, parse_machines(settings.trusted_proxies))
    has_users = token is not None or proxies is not None
    if not has_users and not is_loopback(host):
        raise HeadroomError(
            f"dashboard.listen {host}:{port}",
            "lets other machines read the page, and no token is set",
            "Set dashboard.token_file, or listen on 127.0.0.1 behind a proxy that asks who it is.",
        )
    bound = bind(host, port)
    url = url_of(bound)
    store_path = local_path(clusters.settings.store.path)
    actions = None
    if has_users and store_path is not None:
        actions = Actions(store_path, lambda arguments: headroom_command(*arguments), now_ms)
    site = Site([WatchedCluster(clusters.settings, clusters.config), *clusters.others], actions=actions)
    names = [name for one in settings.hosts.split(",") if (name := one.strip())]
    app = create_app(site, allowed_hosts(host, names), token, proxies)

    def on_started() -> None:
        echo(f"Dashboard: {url}  store: {clusters.settings.store.path}  stop: Ctrl-C")
        if to_open:
            open_browser(url)

    stop = threading.Event()
    if with_parent:
        end_with_parent(stop)
    serve(app, bound, stop, on_started)
