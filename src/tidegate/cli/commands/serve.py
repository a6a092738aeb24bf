"""`tidegate serve`: MCP on stdio, on HTTP, or on both, until a signal or the end of the input."""

from __future__ import annotations

import argparse
import logging
import os
from collections.abc import Awaitable, Callable, Sequence
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

from tidegate.app import App
from tidegate.cli.hooks import command_hooks
from tidegate.cli.server_turn import Turn, take_turn
from tidegate.cli.settings import config_path, load_for_serve, mute_notes, settings_digest
from tidegate.cli.terminal import print_status, shape_status
from tidegate.config.addresses import http_address, is_this_machine
from tidegate.config.loading import is_inline
from tidegate.config.model import Config
from tidegate.config.reload import ConfigWatcher
from tidegate.edges.edge import Edge
from tidegate.edges.listening import Sockets
from tidegate.engines.registry import check_share
from tidegate.errors import TidegateError
from tidegate.model.worker_share import WorkerShare, use_share
from tidegate.serve.edges import listeners_of, listening_addresses, open_http, open_stdio
from tidegate.serve.lifecycle import Shutdown
from tidegate.serve.lifecycle import run as run_edges
from tidegate.serve.log import log_to_stderr, status_line
from tidegate.serve.settings_following import follow_settings
from tidegate.system.first_process import leave_first_place
from tidegate.system.service_manager import take_given_sockets

if TYPE_CHECKING:
    from tidegate.edges.http.certificate import ServerCertificate
    from tidegate.serve.worker import Worker

logger = logging.getLogger("tidegate.serve")


def run(arguments: argparse.Namespace, on_console: Callable[[str], None] | None = None) -> int:
    """Serve; returns 0 when a signal or the end of the input stopped it. `on_console` is called
    with the address of the console when it can be opened."""
    leave_first_place()
    worker = _worker_of(arguments)
    watcher = _settings_watcher(config_path(arguments))
    config = load_for_serve(arguments)
    as_json = config.log_format == "json"
    log_to_stderr(as_json=as_json, worker=0 if worker is None else worker.number)
    if as_json:
        shape_status(status_line)
    turn = Turn()
    if worker is None and arguments.for_bridge is None:
        turn = take_turn(arguments, config)
    if worker is None and _has_workers(config, arguments):
        from tidegate.cli.gate_parent import serve_by_workers

        turn.end()
        return serve_by_workers(arguments, config)
    app = App.open(
        config, default_actor="server", siblings=None if worker is None else worker.siblings
    )
    if worker is None:
        given = take_given_sockets()
        if given:
            app.sockets = Sockets.match(given, listening_addresses(config))
        announce_settings(config)
    else:
        app.sockets = worker.sockets
        for source in app.connections.sources():
            check_share(source, worker.siblings.share)
    certificate = _certificate(config)
    listeners = listeners_of(config)
    reread: list[Callable[[], None]] = []
    if watcher is not None:
        load = partial(load_for_serve, arguments)
        reread.append(follow_settings(app, watcher, load, logger.warning))
    certificates = (certificate, *(each.certificate for each in listeners))
    for each in certificates:
        if each is not None:
            reread.append(partial(_reload, each))
            app.certificate_ends.append(partial(_end_of, each))

    def open_edges(shutdown: Shutdown) -> Sequence[Edge]:
        edges = [open_stdio(app)] if config.stdio or config.http is None else []
        if config.http is not None:
            digest = settings_digest(config_path(arguments))
            found = _bridge_notifier(arguments.for_bridge)
            host, port = http_address(config.http)
            edges.append(
                open_http(
                    app,
                    host,
                    port,
                    shutdown=shutdown,
                    on_opened=found,
                    settings=digest,
                    certificate=certificate,
                )
            )
        return [*edges, *(each.open(app) for each in listeners)]

    def announce(edges: Sequence[Edge]) -> None:
        turn.end_soon()
        _announce(app, config, edges, on_console)

    listens = config.http is not None or bool(listeners)
    run_edges(
        app,
        open_edges,
        fast=listens,
        ready=announce if listens else None,
        reread=partial(_call_all, reread) if reread else None,
        prepare=_preparation(app, config),
        worker=worker,
    )
    return 0


def announce_settings(config: Config) -> None:
    """Print what a person should know of the settings at the start."""
    for hook in command_hooks():
        hook.announce(config)
    if config.console.enabled and config.http is None:
        print_status(
            "note: the setting `console.enabled` has no effect on a server without HTTP: add --http"
            " HOST:PORT, or run `tidegate console`"
        )


def _worker_of(arguments: argparse.Namespace) -> Worker | None:
    """This process as a worker, if its parent has started it. Raises: TidegateError."""
    if arguments.worker is None:
        return None
    from tidegate.serve.worker import Worker, WorkerPlace

    place = WorkerPlace.read(arguments.worker)
    use_share(WorkerShare(place.number, place.count))
    mute_notes()
    return Worker(place)


def _has_workers(config: Config, arguments: argparse.Namespace) -> bool:
    """Whether this process is the parent of workers: not where one person has the server, as a
    bridge or on stdio, or where another command serves."""
    words: tuple[str, ...] | None = getattr(arguments, "words", None)
    listens = bool(listening_addresses(config))
    served_here = words is not None and arguments.for_bridge is None and listens
    return config.workers > 1 and served_here


def _preparation(app: App, config: Config) -> Callable[[Shutdown], Awaitable[None]] | None:
    """What must have happened before the server answers, as products say."""
    steps = [step for hook in command_hooks() if (step := hook.prepare(app, config)) is not None]
    if not steps:
        return None

    async def prepare(shutdown: Shutdown) -> None:
        for step in steps:
            await step(shutdown)

    return prepare


def _certificate(config: Config) -> ServerCertificate | None:
    """The certificate of a server on HTTPS. Raises: TidegateError CONFIG_INVALID."""
    if config.tls is None or config.http is None:
        return None
    from tidegate.edges.http.certificate import ServerCertificate

    return ServerCertificate(config.tls)


def _reload(certificate: ServerCertificate) -> None:
    """Take the certificate that the files hold now, and log which it is."""
    try:
        certificate.reload()
    except TidegateError as error:
        logger.error("SIGHUP: the certificate stays as it was: %s", error.message)
    else:
        logger.warning("SIGHUP: the certificate is good until %s", _day(certificate))


def _end_of(certificate: ServerCertificate) -> float:
    return certificate.expires_at.timestamp()


def _day(certificate: ServerCertificate) -> str:
    return certificate.expires_at.isoformat(sep=" ", timespec="minutes")


def _call_all(functions: Sequence[Callable[[], None]]) -> None:
    for function in functions:
        function()


def _announce(
    app: App,
    config: Config,
    edges: Sequence[Edge],
    on_console: Callable[[str], None] | None = None,
) -> None:
    """Print the addresses, and warnings about their protection."""
    surfaces = ", ".join(config.surfaces) or "core"
    for edge in edges:
        if edge.name.startswith("http"):
            print_status(f"tidegate: serving {surfaces} on {edge.name}/mcp")
        elif edge.name.startswith("postgresql"):
            print_status(f"tidegate: serving every source as a database on {edge.name}")
        elif edge.listens:
            print_status(f"tidegate: serving {edge.name}")
    if config.http is None:
        pass
    elif config.tls is None and not is_this_machine(http_address(config.http)[0]):
        print_status(
            "tidegate: serving plain HTTP on a public address: use --tls-cert and --tls-key, or put"
            " a TLS proxy in front of it"
        )
    if app.console_address:
        print_status(f"tidegate: the console is at {app.console_address}/console")
        if on_console is not None:
            on_console(app.console_address)
    if not config.auth:
        print_status("tidegate: authentication is off; read-only")
    elif on_console is None and not app.tokens.list():
        create = "`tidegate token create NAME --scope readOnly` creates one"
        print_status(f"tidegate: no token exists yet; {create}")


def _bridge_notifier(descriptor: int | None) -> Callable[[], None] | None:
    """Writes to the descriptor of the bridge that started this server when it can be found."""
    if descriptor is None:
        return None

    def notify() -> None:
        os.write(descriptor, b"ready\n")
        os.close(descriptor)

    return notify


def _settings_watcher(config: str | None) -> ConfigWatcher | None:
    """A watcher of the settings, if they are in a file."""
    if config is None or is_inline(config):
        return None
    return ConfigWatcher(Path(config))
