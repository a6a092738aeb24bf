"""The composition root: the only place that knows concrete classes.

`App.open` reads no database and starts no thread: what a run does not need it does not pay for.
"""

from __future__ import annotations

import asyncio
import importlib
import signal
from collections.abc import Callable, Mapping
from functools import partial
from pathlib import Path
from typing import Any

import msgspec

from tidegate.actors import Actor
from tidegate.approvals.approvals import Approvals
from tidegate.audit.log import AuditLog
from tidegate.calls import FocusTab, ListTabs, OpenTable, OpenWindow, SearchHistory
from tidegate.config.following import Awaited, Following
from tidegate.config.model import Config
from tidegate.config.sources import SourceSettings
from tidegate.config.state import state_directory
from tidegate.config.surfaces import check_surface
from tidegate.connections import Connections, Declared
from tidegate.custody import refuse_foreign_hands
from tidegate.declared import declared, source_of
from tidegate.desk import Desk
from tidegate.engines.registry import open_engine
from tidegate.errors import GateError
from tidegate.gateway import Gateway
from tidegate.history import History
from tidegate.identity.actors import ANONYMOUS, stdio
from tidegate.identity.bridge import PREFIX as BRIDGE_PREFIX
from tidegate.identity.bridge import SEPARATOR, BridgePass, narrowed
from tidegate.identity.door import Door
from tidegate.identity.pairing import Pairer
from tidegate.identity.tokens import Tokens
from tidegate.identity.vigil import Vigil
from tidegate.journal import Journal
from tidegate.protocol.kernel import Kernel
from tidegate.sources import Source
from tidegate.store.approvals import ApprovalBook
from tidegate.store.desk import DeskFile
from tidegate.store.file import StateFile
from tidegate.store.pairings import Pairings
from tidegate.store.secret import kept_secret
from tidegate.store.sqlite import SqliteStore
from tidegate.surfaces.surface import Surface


class App:
    """Everything wired together for one process."""

    def __init__(self, config: Config, directory: Path) -> None:
        self.config = config
        self.directory = directory
        self.store = SqliteStore(directory / "state.db")
        self.history = History(self.store)
        self.audit = AuditLog(
            directory / "audit", settings=config.audit, keys=directory / "audit-key"
        )
        self.journal = Journal(self.audit)
        self._admission: BridgePass | None = None
        self.tokens = Tokens(self.store, note=self.journal.note)
        self.door = Door(self.tokens, self.journal.tell)
        self._file = StateFile(directory / "state.db")
        self.pairer = Pairer(
            Pairings(self._file), self.tokens, note=self.journal.note, tell=self.journal.tell
        )
        self.connections = Connections(self.store, open_engine, *declared(config))
        self.desk = Desk(DeskFile(self._file))
        self.approvals = Approvals(
            ApprovalBook(self._file), config.approvals, note=self.journal.note_by
        )
        self.gateway = Gateway(
            self.connections,
            self.audit,
            self.history,
            approvals=self.approvals,
            key=partial(kept_secret, directory / "mask.key"),
            keepers={
                SearchHistory: self.history.recall,
                OpenWindow: self.desk.open_window,
                OpenTable: self.desk.open_table,
                FocusTab: self.desk.focus_tab,
                ListTabs: self.desk.list_tabs,
            },
        )

    @classmethod
    def open(cls, config: Config) -> App:
        """Wire everything. Raises: GateError CONFIG_INVALID, STATE_FAILED, SOURCE_URL."""
        for name in config.surfaces:
            check_surface(name)
        directory = state_directory(config.state)
        if config.agent_accounts:
            refuse_foreign_hands(directory, config.agent_accounts)
        return cls(config, directory)

    def follow(
        self, following: Following, load: Callable[[], Config], tell: Callable[[str], None]
    ) -> None:
        """Look on every call whether the settings that `load` gives are new ones. `tell` is for
        the server's log: what cannot be used, and what holds only when the server starts again."""
        awaited = Awaited(self.config)
        wait_s = self.config.approvals.wait_s
        complaint = ""

        def read() -> tuple[Config, Declared]:
            try:
                config = load()
                return config, declared(config)
            except GateError as error:
                nonlocal complaint
                if error.message != complaint:
                    complaint = error.message
                    tell(f"the settings were changed and cannot be used: {complaint}")
                raise

        def look() -> Declared | None:
            found = following.look(read)
            if found is None:
                return None
            config, made = found
            nonlocal complaint
            complaint = ""
            try:
                self.journal.note_change(config)
            except GateError:
                following.forget()
                raise
            self.approvals.settings = msgspec.structs.replace(config.approvals, wait_s=wait_s)
            if self._admission is not None:
                self._admission.settings = config.bridge
            if news := awaited.news(config):
                tell(f"changed, for when the server starts again: {', '.join(news)}")
            return made

        self.connections.follow(look)

    def declare(self, settings: SourceSettings) -> Source:
        """The source that such settings make. Raises: GateError as `open`."""
        return source_of(settings)

    def surface(self, name: str) -> Surface:
        """A surface by name, imported now."""
        module: Any = importlib.import_module(f"tidegate.surfaces.{name}")
        surface: Surface = module.surface(self.gateway, config=self.config)
        surface.turned_away = self.journal.tell_turned_away
        return surface

    def run_stdio(self) -> None:
        """Serve MCP on standard input and output until the input or the process ends."""
        asyncio.run(self._serve_stdio())

    def run_http(
        self,
        host: str,
        port: int,
        ready: Callable[[str], None] | None = None,
        found: Callable[[], None] | None = None,
        settings: str = "",
    ) -> None:
        """Serve MCP over HTTP until SIGTERM or SIGINT; `ready` is told the address. With `found`,
        which is called when bridges can find the server, it ends when it is idle for long too.
        `settings` marks those of this server for bridges."""
        _run_fast(self.serve_http(host, port, ready=ready, found=found, settings=settings))

    async def _serve_stdio(self) -> None:
        from tidegate.edges.stdio import serve
        from tidegate.surfaces.several import Several

        surfaces = [self.surface(name) for name in self.config.surfaces]
        server = surfaces[0] if len(surfaces) == 1 else Several(surfaces)
        kernel = Kernel(server, server.settings)
        self.journal.note_start(self.config, "stdio")
        try:
            await serve(kernel, stdio(self.config.allow_writes), stop=_stop_on_signal())
        finally:
            self.journal.tell_stop()
            await self.close()

    async def serve_http(
        self,
        host: str,
        port: int,
        *,
        ready: Callable[[str], None] | None = None,
        stop: asyncio.Event | None = None,
        found: Callable[[], None] | None = None,
        settings: str = "",
    ) -> None:
        """Serve until `stop` is set, or without one until SIGTERM or SIGINT."""
        # Loaded by who serves HTTP.
        from tidegate import hosting
        from tidegate.edges.bridge.idleness import Idleness
        from tidegate.edges.guards import Guard
        from tidegate.edges.http import HttpEdge
        from tidegate.edges.listen import address_of, bind, listen

        config = self.config
        listener = bind(host, port)
        keeper, admission = hosting.keeper_of(
            config, self.directory, listener, self.journal.note, self.connections.sources, settings
        )
        self._admission = admission
        verifier = hosting.verifier_of(config)
        self.door = Door(self.tokens, self.journal.tell, verifier=verifier, bridge=admission)
        kernels = hosting.kernels_of(config, self.surface)
        edge = HttpEdge(
            kernels,
            self.door.identify if config.auth else _identify_nobody,
            guard=Guard({*config.allowed_hosts, host}, config.allowed_origins),
            body_limit=config.body_limit_bytes,
            pages=hosting.pages_of(config, kernels, self.pairer, keeper),
            challenges=hosting.challenges_of(config, kernels),
        )
        self.journal.doer = "server"
        address = address_of(listener)
        self.journal.note_start(config, address)
        stop = stop or _stop_on_signal()
        idleness = Idleness(edge)
        tasks = [asyncio.ensure_future(Vigil(self.tokens, edge).keep())]

        def begin() -> None:
            if keeper is not None:
                keeper.open()
                tasks.append(asyncio.ensure_future(keeper.keep(found)))
            if found is not None:
                tasks.append(asyncio.ensure_future(idleness.end(config.bridge.idle_s, stop)))
            if ready is not None:
                ready(address)

        def end() -> None:
            if keeper is not None:
                keeper.close()
            edge.close()

        try:
            await listen(
                edge if found is None else idleness, listener, stop=stop, ready=begin, ending=end
            )
        finally:
            for task in tasks:
                task.cancel()
            if keeper is not None:
                keeper.close()
            self.journal.tell_stop()
            await self.close()

    def note(self, name: str, details: Mapping[str, str]) -> None:
        """Put on record what is about to be done. Raises: GateError AUDIT_UNAVAILABLE."""
        self.journal.note(name, details)

    async def close(self) -> None:
        """Close sources, then the records. Safe to call twice."""
        await self.connections.close()
        self.tokens.close()
        self._file.close()
        self.history.close()
        self.audit.close()
        self.store.close()


def _identify_nobody(bearer: str | None, address: str) -> Actor:
    """Nobody in particular, with no more than a bridge asks for."""
    if bearer is None or not bearer.startswith(BRIDGE_PREFIX):
        return ANONYMOUS
    return narrowed(ANONYMOUS, bearer.partition(SEPARATOR)[2])


def _stop_on_signal() -> asyncio.Event:
    stop = asyncio.Event()
    loop = asyncio.get_running_loop()
    for name in (signal.SIGTERM, signal.SIGINT):
        loop.add_signal_handler(name, stop.set)
    return stop


def _run_fast(main: Any) -> None:
    """Run on uvloop where there is one."""
    try:
        import uvloop
    except ImportError:
        asyncio.run(main)
    else:
        uvloop.run(main)
