"""The composition root: the only place that knows concrete classes.

`App.open` reads no database and starts no thread: what a run does not need it does not pay for.
"""

from __future__ import annotations

import asyncio
import importlib
import os
import signal
from collections.abc import Callable, Iterable, Mapping
from functools import partial
from hashlib import sha256
from pathlib import Path
from typing import TYPE_CHECKING, Any

import msgspec

from tidegate.actors import Actor
from tidegate.approvals.approvals import Approvals
from tidegate.audit.happening import Happening
from tidegate.audit.log import AuditLog
from tidegate.calls import FocusTab, ListTabs, OpenTable, OpenWindow, SearchHistory
from tidegate.config.addresses import LOOPBACK
from tidegate.config.model import Config
from tidegate.config.oauth import OAuthSettings, resource_url
from tidegate.config.sources import SourceSettings
from tidegate.config.state import state_directory
from tidegate.connections import Connections, Declared
from tidegate.custody import refuse_foreign_hands
from tidegate.declared import declared, source_of
from tidegate.desk import Desk
from tidegate.engines.registry import open_engine
from tidegate.errors import Code, GateError
from tidegate.gateway import Gateway
from tidegate.history import History
from tidegate.identity.actors import ANONYMOUS, stdio
from tidegate.identity.door import Door
from tidegate.identity.pairing import Pairer
from tidegate.identity.tokens import Tokens
from tidegate.identity.vigil import Vigil
from tidegate.protocol.kernel import Kernel
from tidegate.protocol.model import Context
from tidegate.sources import Source
from tidegate.store.approvals import ApprovalBook
from tidegate.store.desk import DeskFile
from tidegate.store.file import StateFile
from tidegate.store.pairings import Pairings
from tidegate.store.secret import kept_secret
from tidegate.store.sqlite import SqliteStore
from tidegate.surfaces.surface import Surface

if TYPE_CHECKING:  # the HTTP edge is loaded by who serves HTTP
    import socket

    from tidegate.edges.bridge.keeper import Keeper
    from tidegate.edges.challenge import Challenge
    from tidegate.edges.pages import Serve
    from tidegate.identity.bridge import BridgePass

SURFACES = ("core", "workbench")
REALMS = {"workbench": "TablePro MCP"}
"""What a surface's document calls itself in challenges, where it does."""


class App:
    """Everything wired together for one process."""

    def __init__(self, config: Config, directory: Path) -> None:
        self.config = config
        self.directory = directory
        self._doer = "cli"
        self.store = SqliteStore(directory / "state.db")
        self.history = History(self.store)
        self.audit = AuditLog(
            directory / "audit", settings=config.audit, keys=directory / "audit-key"
        )
        self.tokens = Tokens(self.store, note=self.note)
        self.door = Door(self.tokens, self.tell)
        self._file = StateFile(directory / "state.db")
        self.pairer = Pairer(Pairings(self._file), self.tokens, note=self.note, tell=self.tell)
        self.connections = Connections(
            self.store,
            open_engine,
            *declared(config),
        )
        self.desk = Desk(DeskFile(self._file))
        self.approvals = Approvals(
            ApprovalBook(self._file), config.approvals, note=self._note_approval
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

    def follow(self, changed: Callable[[], Config | None]) -> None:
        """Ask `changed` on every call what the settings say of sources now, if it is new."""

        def look() -> Declared | None:
            config = changed()
            if config is None:
                return None
            details = {"settings": digest_of(config)}
            self.audit.note(Happening(name="settings.changed", actor="server", details=details))
            return declared(config)

        self.connections.follow(look)

    def declare(self, settings: SourceSettings) -> Source:
        """The source that such settings make. Raises: GateError as `open`."""
        return source_of(settings)

    def surface(self, name: str) -> Surface:
        """A surface by name, imported now."""
        module: Any = importlib.import_module(f"tidegate.surfaces.{name}")
        surface: Surface = module.surface(self.gateway, config=self.config)
        surface.turned_away = self._record_turned_away
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
    ) -> None:
        """Serve MCP over HTTP until SIGTERM or SIGINT; `ready` is told the address. With `found`,
        which is called when bridges can find the server, it ends when it is idle for long too."""
        _run_fast(self.serve_http(host, port, ready=ready, found=found))

    async def _serve_stdio(self) -> None:
        from tidegate.edges.stdio import serve
        from tidegate.surfaces.several import Several

        surfaces = [self.surface(name) for name in self.config.surfaces]
        server = surfaces[0] if len(surfaces) == 1 else Several(surfaces)
        kernel = Kernel(server, server.settings)
        self._record_start("stdio")
        try:
            await serve(kernel, stdio(self.config.allow_writes), stop=_stop_on_signal())
        finally:
            self._record_stop()
            await self.close()

    async def serve_http(
        self,
        host: str,
        port: int,
        *,
        ready: Callable[[str], None] | None = None,
        stop: asyncio.Event | None = None,
        found: Callable[[], None] | None = None,
    ) -> None:
        """Serve until `stop` is set, or without one until SIGTERM or SIGINT."""
        from tidegate.edges.bridge.idleness import Idleness
        from tidegate.edges.guards import Guard
        from tidegate.edges.http import HttpEdge
        from tidegate.edges.listen import address_of, bind, listen
        from tidegate.edges.pairing import pages as pairing_pages

        config = self.config
        listener = bind(host, port)
        hosts = {*config.allowed_hosts, host}
        keeper, admission = self._keep_for_bridges(listener)
        self._open_to(config.oauth, admission)
        kernels = self._kernels()
        pages = pairing_pages(self.pairer) if config.auth and config.pairing else {}
        edge = HttpEdge(
            kernels,
            self.door.identify if config.auth else _identify_nobody,
            guard=Guard(hosts, config.allowed_origins),
            body_limit=config.body_limit_bytes,
            pages={
                **pages,
                **self._resource_pages(kernels),
                **({} if keeper is None else keeper.pages()),
            },
            challenges=self._challenges(kernels),
        )
        self._doer = "server"
        address = address_of(listener)
        self._record_start(address)
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
            self._record_stop()
            await self.close()

    def note(self, name: str, details: Mapping[str, str]) -> None:
        """Put on record what is about to be done. Raises: GateError AUDIT_UNAVAILABLE."""
        self.audit.note(Happening(name=name, actor=self._doer, details=dict(details)))

    def _note_approval(self, name: str, actor: str, details: Mapping[str, str]) -> None:
        self.audit.note(Happening(name=name, actor=actor or self._doer, details=dict(details)))

    def tell(self, name: str, details: Mapping[str, str]) -> None:
        """Put on record what callers without a token cause."""
        self.audit.tally(Happening(name=name, details=dict(details)))

    def _record_turned_away(self, context: Context, tool: str, reason: str) -> None:
        actor, client = context.actor, context.client
        self.audit.tally(
            Happening(
                name="call.turned_away",
                actor=actor.id,
                actor_name=actor.name,
                client=f"{client.name}/{client.version}",
                details={"tool": tool, "reason": reason},
            )
        )

    def _record_start(self, edge: str) -> None:
        """Put on record who serves what under which settings. Raises: GateError."""
        details = {
            "edge": edge,
            "surfaces": " ".join(self.config.surfaces),
            "auth": str(self.config.auth).lower(),
            "writes": str(self.config.allow_writes).lower(),
            "failure_mode": self.config.audit.failure_mode,
            "settings": digest_of(self.config),
        }
        self.audit.note(Happening(name="server.started", actor="server", details=details))

    def _record_stop(self) -> None:
        self.audit.tally(Happening(name="server.stopped", actor="server"))

    async def close(self) -> None:
        """Close sources, then the records. Safe to call twice."""
        await self.connections.close()
        self.tokens.close()
        self._file.close()
        self.history.close()
        self.desk.close()
        self.audit.close()
        self.store.close()

    def _open_to(self, settings: OAuthSettings | None, bridge: BridgePass | None) -> None:
        """Take tokens of an authorization server and those of bridges too."""
        verifier = None
        if settings is not None:
            from tidegate.identity.oauth import OAuth

            names = {resource_url(settings, path) for path in self._paths()} | {*settings.audience}
            verifier = OAuth(settings, frozenset(names))
        self.door = Door(self.tokens, self.tell, verifier=verifier, bridge=bridge)

    def _keep_for_bridges(self, listener: socket.socket) -> tuple[Keeper | None, BridgePass | None]:
        """What lets bridges find this server, if they may and could."""
        host, port = listener.getsockname()[:2]
        host = {"0.0.0.0": "127.0.0.1", "::": "::1"}.get(host, host)  # noqa: S104  compared, not bound
        if not self.config.bridge.enabled or host not in LOOPBACK or os.name != "posix":
            return None, None
        from tidegate.edges.bridge.handshake import Place
        from tidegate.edges.bridge.keeper import Keeper
        from tidegate.identity.bridge import BridgePass

        admission = BridgePass(self.config.bridge, self.note)
        patience_s = self.config.limits.max_timeout_s + self.config.approvals.wait_s
        place, paths = Place(self.directory), tuple(self._paths())
        return Keeper(place, admission, host, port, paths, patience_s), admission

    def _resource_pages(self, paths: Iterable[str]) -> dict[str, Serve]:
        from tidegate.edges.challenge import resource_pages

        return {} if self.config.oauth is None else resource_pages(self.config.oauth, paths)

    def _challenges(self, paths: Iterable[str]) -> dict[str, Challenge]:
        """What callers of each path are told who hold no token."""
        from tidegate.edges.challenge import Challenge, challenge_of

        first, oauth = self.config.surfaces[0], self.config.oauth
        made: dict[str, Challenge] = {}
        for path in paths:
            realm = REALMS.get(path.removeprefix("/mcp").strip("/") or first, "tidegate")
            made[path] = Challenge(realm) if oauth is None else challenge_of(oauth, path, realm)
        return made

    def _paths(self) -> list[str]:
        """Where MCP is served: `/mcp` and one path for each surface."""
        return ["/mcp", *(f"/mcp/{name}" for name in self.config.surfaces)]

    def _kernels(self) -> dict[str, Kernel]:
        """One kernel for each surface, on its own path; `/mcp` is the first of them."""
        kernels: dict[str, Kernel] = {}
        for name in self.config.surfaces:
            surface = self.surface(name)
            kernels[f"/mcp/{name}"] = Kernel(surface, surface.settings)
        kernels["/mcp"] = kernels[f"/mcp/{self.config.surfaces[0]}"]
        return kernels


def check_surface(name: str) -> None:
    """Raises: GateError CONFIG_INVALID if there is no such surface."""
    if name not in SURFACES:
        raise GateError(
            Code.CONFIG_INVALID,
            f"There is no surface {name!r}",
            hint=f"Choose from {', '.join(SURFACES)}.",
        )


def digest_of(config: Config) -> str:
    """What tells two settings apart in the record, without their content."""
    return f"sha256:{sha256(msgspec.json.encode(config)).hexdigest()}"


def _identify_nobody(bearer: str | None, address: str) -> Actor:
    return ANONYMOUS


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
