"""`tidegate serve --workers N`: the process that starts the others and keeps them.

It reads the settings, binds the addresses, and opens no state, record or source.
"""

from __future__ import annotations

import argparse
import asyncio
import logging
import socket
import time
from collections.abc import Sequence
from contextlib import ExitStack, suppress

from tidegate.cli.commands.serve import announce_settings
from tidegate.cli.settings import load_for_serve
from tidegate.cli.terminal import print_status
from tidegate.config.addresses import http_address
from tidegate.config.model import Config
from tidegate.config.reload import PendingRestart
from tidegate.config.state import state_directory
from tidegate.edges.edge import Edge
from tidegate.edges.http.certificate import ServerCertificate
from tidegate.edges.listening import Sockets
from tidegate.errors import TidegateError
from tidegate.serve.edges import listening_addresses
from tidegate.serve.lifecycle import LAST_WORK_S, Shutdown, served_surfaces
from tidegate.serve.parent import WorkerPlan, Workers
from tidegate.serve.parent_edges import ParentListener, parent_listeners_of
from tidegate.serve.running_servers import RunningServers
from tidegate.system.processes import Notice, forget_notices, on_notice
from tidegate.system.service_manager import ServiceManager, take_given_sockets

logger = logging.getLogger("tidegate.serve")

BACKLOG = 2_048
"""Connections that may wait at a socket until a worker takes them."""


def serve_by_workers(arguments: argparse.Namespace, config: Config) -> int:
    """Serve by workers until a signal; returns 0, or the exit status of a worker that cannot be
    started. Raises: TidegateError CONFIG_INVALID."""
    listeners = parent_listeners_of(config)
    addresses = listening_addresses(config)
    given = Sockets.match(take_given_sockets(), addresses)
    sockets = {name: given.take(name, *http_address(at)).socket for name, at in addresses.items()}
    for each in sockets.values():
        each.listen(BACKLOG)
    announce_settings(config)
    parent = _Parent(arguments, config, sockets, listeners)
    return asyncio.run(parent.run())


class _Parent:
    """The running parent: its workers, its own edges, and what it does on signals."""

    def __init__(
        self,
        arguments: argparse.Namespace,
        config: Config,
        sockets: dict[str, socket.socket],
        listeners: list[ParentListener],
    ) -> None:
        self._arguments = arguments
        self._config = config
        self._sockets = sockets
        self._listeners = listeners
        self._manager = ServiceManager.of_process()
        own = {each.name for each in listeners}
        self._workers = Workers(
            self._plan(config),
            {name: each.fileno() for name, each in sockets.items() if name not in own},
        )
        self._shutdown = Shutdown()
        self._notice: Notice = "interrupt"
        self._replacing: set[asyncio.Task[None]] = set()

    def _plan(self, config: Config) -> WorkerPlan:
        words: tuple[str, ...] = self._arguments.words
        return WorkerPlan(config.workers, words, config.drain_delay_s, config.stop_grace_s)

    async def run(self) -> int:
        """Serve; returns the exit status."""
        on_notice(
            {
                "end": lambda: self._end("end"),
                "interrupt": lambda: self._end("interrupt"),
                "reread": self._reread,
                "replace": self._replace,
            }
        )
        edges: list[Edge] = []
        with ExitStack() as entered:
            try:
                if not await self._started():
                    return self._workers.status
                if not self._shutdown.stop.is_set():
                    edges += [
                        each.open(self._workers, self._sockets[each.name])
                        for each in self._listeners
                    ]
                    for edge in edges:
                        await edge.start()
                    self._announce(entered, edges)
                await self._until_the_end()
            finally:
                await asyncio.gather(*(edge.stop(0) for edge in edges))
                await self._workers.stop(self._notice, self._shutdown.hurry)
                forget_notices("end", "interrupt", "reread", "replace", ignore=True)
        return self._workers.status if self._workers.failed.is_set() else 0

    async def _started(self) -> bool:
        """Whether all workers serve, or a signal came first."""
        starting = asyncio.ensure_future(self._workers.start())
        asked = asyncio.ensure_future(self._shutdown.stop.wait())
        await asyncio.wait({starting, asked}, return_when=asyncio.FIRST_COMPLETED)
        asked.cancel()
        if starting.done():
            return starting.result()
        starting.cancel()
        return True

    async def _until_the_end(self) -> None:
        ends = [
            asyncio.ensure_future(each.wait())
            for each in (self._shutdown.stop, self._workers.failed)
        ]
        await asyncio.wait(ends, return_when=asyncio.FIRST_COMPLETED)
        for each in ends:
            each.cancel()

    def _announce(self, entered: ExitStack, served: Sequence[Edge]) -> None:
        """Say, to people, programs and the service manager, that the gate serves."""
        first = self._workers.serving[0]
        ready = first.ready
        with suppress(TidegateError):  # the workers have one: it only lists servers
            servers = RunningServers(state_directory(self._config.state))
            edges, console = ((), "") if ready is None else (ready.edges, ready.console)
            edges += tuple(edge.name for edge in served)
            entered.enter_context(
                servers.enter(edges, served_surfaces(self._config), time.time(), console)
            )
        first.announce()
        for edge in served:
            print_status(f"tidegate: serving {edge.name}")
        self._manager.report_ready()

    # Signals

    def _end(self, notice: Notice) -> None:
        config = self._config
        within_s = config.stop_grace_s + LAST_WORK_S
        self._manager.report_stopping(
            within_s + config.drain_delay_s if notice == "end" else within_s
        )
        if not self._shutdown.stop.is_set():
            self._notice = notice
        self._shutdown.ask()

    def _reread(self) -> None:
        """Have the workers read the settings again; replace them if a setting that has changed
        takes effect at a start alone."""
        for each in self._listeners:
            _reload(each.certificate)
        try:
            config = load_for_serve(self._arguments)
        except TidegateError as error:
            logger.error("SIGHUP: the settings cannot be used: %s", error.message)
            self._workers.notify("reread")
            return
        before, self._config = self._config, config
        if listening_addresses(config) != listening_addresses(before):
            logger.error("SIGHUP: another address takes effect when the gate is started again")
        changed = PendingRestart(before).unreported(config)
        if not changed:
            self._workers.notify("reread")
            with self._manager.reloading():
                return
        logger.warning("SIGHUP: workers are replaced, for: %s", ", ".join(changed))
        self._replace()

    def _replace(self) -> None:
        task = asyncio.get_running_loop().create_task(self._replace_all())
        self._replacing.add(task)
        task.add_done_callback(self._replacing.discard)

    async def _replace_all(self) -> None:
        with self._manager.reloading():
            if await self._workers.replace(self._plan(self._config)):
                logger.warning("all workers were replaced")


def _reload(certificate: ServerCertificate | None) -> None:
    if certificate is None:
        return
    try:
        certificate.reload()
    except TidegateError as error:
        logger.error("SIGHUP: the certificate stays as it was: %s", error.message)
