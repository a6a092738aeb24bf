"""The tunnel to a source behind an SSH server: the operator's own `ssh`, kept open.

The tunnel ends at a Unix socket in a directory of ours; `port_forwarder.py` connects to it, and
`client.py` builds the command line of `ssh`. If `ssh` has died, it is started again before the next
call.
"""

from __future__ import annotations

import asyncio
import os
import shutil
import subprocess
import tempfile
from contextlib import suppress
from pathlib import Path

from tidegate.engines.api import (
    INSPECT_S,
    Capabilities,
    Cursor,
    Engine,
    EngineTransaction,
    LimitedEngine,
    StatementDescription,
    can_edit,
    can_prepare,
    can_undo,
    has_blocks,
)
from tidegate.engines.common.errors import closed
from tidegate.engines.ssh.client import command_to, environment, forwarding_failure, login_failure
from tidegate.engines.ssh.port_forwarder import CHUNK_BYTES, PortForwarder, Streams
from tidegate.engines.ssh.url import SshRoute
from tidegate.errors import Code, TidegateError
from tidegate.model.cancellation import Cancellation
from tidegate.model.changes import Comparison, Reversibility
from tidegate.model.decisions import Permit
from tidegate.model.results import Document
from tidegate.model.row_changes import ChangedRows, FoundRows
from tidegate.model.schema import Description, Status
from tidegate.model.sources import Source
from tidegate.model.statements import DryRun, Judgement, Statement
from tidegate.model.transactions import TransactionModes
from tidegate.system.processes import APART

END_S = 0.5
"""How long `ssh` may take to end after a signal."""

_MOST_OUTPUT = 65_536
_LONGEST_SOCKET = 100
_READY = b"ready\n"


class Tunnel:
    """A running `ssh` and the way to it. Used on the event loop only."""

    def __init__(self, route: SshRoute) -> None:
        self._route = route
        self._directory = Path(tempfile.mkdtemp(prefix="tidegate-ssh-"))
        self._socket = self._directory / "database"
        self._output = self._directory / "output"
        self._relay = PortForwarder(self._dial)
        self._process: asyncio.subprocess.Process | None = None
        self._turn = asyncio.Lock()
        self._closed = False

    @classmethod
    async def open(cls, route: SshRoute) -> Tunnel:
        """Log in to the SSH server. Raises: TidegateError SOURCE_UNREACHABLE, SOURCE_URL,
        ENGINE_MISSING, within the route's time."""
        _check_files(route)
        try:
            tunnel = cls(route)
            try:
                await tunnel._relay.start()
                await tunnel.ensure_open()
            except BaseException:
                await tunnel.close()
                raise
        except OSError as error:
            raise _no_room() from error
        return tunnel

    @property
    def port(self) -> int:
        """The port of loopback that leads to the database, the same as long as this lives."""
        return self._relay.port

    @property
    def stands(self) -> bool:
        """Whether `ssh` runs, as far as can be seen without asking the server."""
        return self._process is not None and self._process.returncode is None

    async def ensure_open(self, dead: asyncio.subprocess.Process | None = None) -> None:
        """Open the tunnel if it is closed, or if `dead` still seems to hold it.

        Raises: TidegateError, as `open`.
        """
        async with self._turn:
            if self._closed:
                raise closed()
            if self.stands and self._process is not dead:
                return
            await self._end()
            await self._relay.drop()
            self._stderr_text()  # what the last one said is no reason for anything now
            with suppress(FileNotFoundError):
                self._socket.unlink()
            try:
                async with asyncio.timeout(self._route.connect_s):
                    await self._start()
            except TimeoutError:
                await self._end()
                raise TidegateError(
                    Code.SOURCE_UNREACHABLE,
                    f"The SSH server did not accept the login within {self._route.connect_s:g} s.",
                    hint="Check the SSH server's host and port, and that it runs.",
                ) from None
            except BaseException as error:
                await self._end()
                if isinstance(error, OSError):
                    raise _no_room() from error
                raise

    def explained(self, error: TidegateError) -> TidegateError:
        """The reason that `ssh` gives for the failure of a connection, else the error itself."""
        if error.code is not Code.SOURCE_UNREACHABLE:
            return error
        return forwarding_failure(self._stderr_text()) or error

    async def close(self) -> None:
        """End `ssh` and leave no file. Safe to call twice."""
        self._closed = True
        await self._relay.close()
        await self._end()
        shutil.rmtree(self._directory, ignore_errors=True)

    async def _dial(self) -> Streams:
        """The near end of `ssh`. Raises: OSError, TidegateError."""
        process = self._process
        try:
            return await asyncio.open_unix_connection(str(self._socket), limit=CHUNK_BYTES)
        except OSError:
            await self.ensure_open(process)  # it has died just now
            return await asyncio.open_unix_connection(str(self._socket), limit=CHUNK_BYTES)

    async def _start(self) -> None:
        if len(os.fsencode(self._socket)) > _LONGEST_SOCKET:
            raise TidegateError(
                Code.SOURCE_UNREACHABLE,
                "The path of the directory for temporary files is too long for a socket.",
                hint="Set TMPDIR to a short path, such as /tmp.",
            )
        with self._output.open("ab") as output:
            self._process = process = await asyncio.create_subprocess_exec(
                *command_to(self._route, self._socket),
                stdin=subprocess.DEVNULL,
                stdout=subprocess.PIPE,
                stderr=output,
                env=environment(),
                **APART,
            )
        if self._closed:
            raise closed()
        out = process.stdout
        if out is None or await out.readline() != _READY:
            await process.wait()
            raise login_failure(self._stderr_text(), self._route.server)

    async def _end(self) -> None:
        process, self._process = self._process, None
        if process is None:
            return
        for tell in (process.terminate, process.kill):
            with suppress(ProcessLookupError):
                tell()
            with suppress(TimeoutError):
                await asyncio.wait_for(process.wait(), END_S)
                return

    def _stderr_text(self) -> str:
        """What `ssh` has said since this was last asked."""
        try:
            with self._output.open("r+b") as output:
                text = output.read(_MOST_OUTPUT).decode(errors="replace")
                output.truncate(0)
        except OSError:
            return ""
        return text


class TunnelledEngine:
    """An engine whose server is behind a tunnel, which is open whenever the engine is asked."""

    def __init__(self, engine: Engine, tunnel: Tunnel) -> None:
        self._engine = engine
        self._tunnel = tunnel

    @property
    def capabilities(self) -> Capabilities:
        return self._engine.capabilities

    @property
    def status(self) -> Status:
        return self._engine.status

    async def inspect(
        self, statement: Statement, judgement: Judgement, timeout_s: float = INSPECT_S
    ) -> Judgement | None:
        await self._ensure_tunnel()
        return await self._engine.inspect(statement, judgement, timeout_s)

    async def run(self, permit: Permit, cancellation: Cancellation) -> Cursor | Document:
        await self._ensure_tunnel()
        return await self._engine.run(permit, cancellation)

    async def dry_run(self, permit: Permit, cancellation: Cancellation) -> DryRun:
        await self._ensure_tunnel()
        return await self._engine.dry_run(permit, cancellation)

    async def describe(self, permit: Permit, cancellation: Cancellation) -> Description:
        await self._ensure_tunnel()
        return await self._engine.describe(permit, cancellation)

    async def schema_version(self) -> str:
        await self._ensure_tunnel()
        return await self._engine.schema_version()

    async def read_connection_limit(self) -> int:
        """As `LimitedEngine`, if the engine behind the tunnel is one."""
        if not isinstance(self._engine, LimitedEngine):
            raise _lacks("does not say how many connections its server admits")
        await self._ensure_tunnel()
        return await self._engine.read_connection_limit()

    async def prepare(self, permit: Permit, cancellation: Cancellation) -> StatementDescription:
        """As `PreparingEngine.prepare`, if the engine behind the tunnel has it."""
        if not can_prepare(self._engine):
            raise _lacks("describes no statement before it runs")
        await self._ensure_tunnel()
        return await self._engine.prepare(permit, cancellation)

    async def begin(
        self, permit: Permit, modes: TransactionModes, cancellation: Cancellation
    ) -> EngineTransaction:
        """As `TransactionEngine.begin`, if the engine behind the tunnel has it. When the tunnel
        breaks, its transactions are lost."""
        if not has_blocks(self._engine):
            raise _lacks("has no transactions over several statements")
        await self._ensure_tunnel()
        return await self._engine.begin(permit, modes, cancellation)

    async def reversibility(
        self, statement: Statement, judgement: Judgement, source: Source
    ) -> Reversibility:
        """As `UndoingEngine.reversibility`, if the engine behind the tunnel has it."""
        if not can_undo(self._engine):
            return Reversibility(False, "the engine behind the tunnel puts no rows back")
        await self._ensure_tunnel()
        return await self._engine.reversibility(statement, judgement, source)

    async def compare(self, permit: Permit, cancellation: Cancellation) -> Comparison:
        """As `UndoingEngine.compare`, if the engine behind the tunnel has it."""
        if not can_undo(self._engine):
            raise _lacks("puts no rows back")
        await self._ensure_tunnel()
        return await self._engine.compare(permit, cancellation)

    async def put_back(self, permit: Permit, cancellation: Cancellation) -> Comparison:
        """As `UndoingEngine.put_back`, if the engine behind the tunnel has it."""
        if not can_undo(self._engine):
            raise _lacks("puts no rows back")
        await self._ensure_tunnel()
        return await self._engine.put_back(permit, cancellation)

    async def read_images(self, permit: Permit, cancellation: Cancellation) -> FoundRows:
        """As `EditingEngine.read_images`, if the engine behind the tunnel has it."""
        if not can_edit(self._engine):
            raise _lacks("edits no rows")
        await self._ensure_tunnel()
        return await self._engine.read_images(permit, cancellation)

    async def change_rows(self, permit: Permit, cancellation: Cancellation) -> ChangedRows:
        """As `EditingEngine.change_rows`, if the engine behind the tunnel has it."""
        if not can_edit(self._engine):
            raise _lacks("edits no rows")
        await self._ensure_tunnel()
        return await self._engine.change_rows(permit, cancellation)

    async def close(self) -> None:
        try:
            await self._engine.close()
        finally:
            await self._tunnel.close()

    async def _ensure_tunnel(self) -> None:
        if not self._tunnel.stands:
            await self._tunnel.ensure_open()


def _lacks(what: str) -> TidegateError:
    return TidegateError(Code.UNSUPPORTED, f"The engine behind the tunnel {what}.")


def _no_room() -> TidegateError:
    return TidegateError(
        Code.SOURCE_UNREACHABLE,
        "The SSH tunnel could not be opened: this machine refused a file, a socket or a process.",
        hint="Check the space for temporary files, and the limits on processes and files.",
    )


def _check_files(route: SshRoute) -> None:
    """`ssh` goes on without a file that is not there; we do not. Raises: TidegateError
    SOURCE_URL."""
    for name, path in route.files.items():
        if not os.access(path, os.R_OK):
            raise TidegateError(
                Code.SOURCE_URL,
                f"The file {path} of the option `{name}` cannot be read.",
                hint="Check the path, and that the server's user may read it.",
                details={"path": path},
            )
