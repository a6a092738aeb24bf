"""Decides how a source behind an SSH server is reached: by the operator's own `ssh`, kept open.

The tunnel ends at a Unix socket in a directory of ours, and `relay.py` leads there. `ssh` may ask
nobody anything, believes no host key that it does not know, and has no secret of ours on its
command line. When it has died it is started anew before the next call.
"""

from __future__ import annotations

import asyncio
import os
import re
import shutil
import subprocess
import sys
import tempfile
from contextlib import suppress
from pathlib import Path

from tidegate.engines.api import Capabilities, Cursor, Engine
from tidegate.engines.faults import closed
from tidegate.engines.relay import CHUNK_BYTES, Relay, Streams
from tidegate.engines.route import Route
from tidegate.errors import Code, GateError
from tidegate.types import (
    Browse,
    Cancellation,
    Description,
    Judgement,
    Permit,
    Statement,
    Status,
)

END_S = 0.5
"""How long `ssh` may take to end when it is told to."""

ALIVE_S = 5
"""How often `ssh` asks whether the SSH server is still there; it gives up after three times."""

ENVIRONMENT = (
    *("PATH", "HOME", "USER", "LOGNAME", "LANG", "LC_ALL", "TMPDIR"),
    *("SSH_AUTH_SOCK", "KRB5CCNAME", "XDG_RUNTIME_DIR"),
)
"""What `ssh`, and what it starts, sees of ours: no password that a source refers to."""

_MOST_SAID = 65_536
_LONGEST_SOCKET = 100
_READY = b"ready\n"

_OPTIONS = (
    *("BatchMode=yes", "StrictHostKeyChecking=yes", "UpdateHostKeys=no"),
    *("ExitOnForwardFailure=yes", "GatewayPorts=no", "StreamLocalBindMask=0177"),
    *("ControlMaster=no", "ControlPath=none", "ForwardAgent=no", "ForwardX11=no"),
    *("RequestTTY=no", "RemoteCommand=none", "Tunnel=no", "LogLevel=INFO"),
    *(f"ServerAliveInterval={ALIVE_S}", "ServerAliveCountMax=3"),
    # Run when the forwarding stands, which `ssh` tells in no other way.
    *("PermitLocalCommand=yes", "LocalCommand=echo ready"),
)

_REASONS = (
    (
        r"host key|host identification has changed",
        "The SSH server does not show a host key that is known.",
        "Compare its host key with the one you were given, then add that to the known hosts.",
    ),
    (
        r"permission denied|too many authentication failures|no supported authentication",
        "The SSH server refuses the login.",
        "Check the user and the key: one without passphrase that only its owner may read, or one"
        " that an agent holds.",
    ),
    (
        r"administratively prohibited|forwarding .*(?:disabled|refused|failed)",
        "The SSH server does not let this account through to the database.",
        "Check AllowTcpForwarding and PermitOpen of the SSH server, and the database's host and"
        " port as it sees them.",
    ),
    (
        r"open failed",
        "The SSH server cannot reach the database.",
        "Check the database's host and port as the SSH server sees them.",
    ),
    (
        r"bad configuration option|bad owner or permissions|can't open user config",
        "The configuration of ssh cannot be used.",
        "Run `ssh` by hand with the same configuration to see what is wrong with it.",
    ),
    (
        r"could not resolve|connection (?:refused|timed out|reset|closed)|no route|unreachable"
        r"|not responding|operation timed out|banner exchange|closed by remote",
        "The SSH server cannot be reached.",
        "Check the SSH server's host and port, and that it runs.",
    ),
)
"""What `ssh` says, and what that means. Its own words name hosts, users and paths."""


class Tunnel:
    """A running `ssh` and the way to it. Used on the event loop only."""

    def __init__(self, route: Route) -> None:
        self._route = route
        self._directory = Path(tempfile.mkdtemp(prefix="tidegate-ssh-"))
        self._socket = self._directory / "database"
        self._said = self._directory / "said"
        self._relay = Relay(self._dial)
        self._process: asyncio.subprocess.Process | None = None
        self._turn = asyncio.Lock()
        self._closed = False

    @classmethod
    async def open(cls, route: Route) -> Tunnel:
        """Log in to the SSH server. Raises: GateError SOURCE_UNREACHABLE, SOURCE_URL,
        ENGINE_MISSING, UNSUPPORTED, within the route's time."""
        if not hasattr(asyncio, "open_unix_connection"):
            raise GateError(
                Code.UNSUPPORTED,
                "This system has no Unix sockets, which a tunnel needs.",
                hint="Open the tunnel by other means, and name its near end in the URL.",
            )
        _check_files(route)
        try:
            tunnel = cls(route)
            try:
                await tunnel._relay.start()
                await tunnel.mend()
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

    async def mend(self, dead: asyncio.subprocess.Process | None = None) -> None:
        """Open the tunnel if it does not stand, or if `dead` still seems to hold it.

        Raises: GateError, as `open`.
        """
        async with self._turn:
            if self._closed:
                raise closed()
            if self.stands and self._process is not dead:
                return
            await self._end()
            await self._relay.drop()
            self._heard()  # what the last one said is no reason for anything now
            with suppress(FileNotFoundError):
                self._socket.unlink()
            try:
                async with asyncio.timeout(self._route.connect_s):
                    await self._start()
            except TimeoutError:
                await self._end()
                raise GateError(
                    Code.SOURCE_UNREACHABLE,
                    f"The SSH server did not let us in within {self._route.connect_s:g} s.",
                    hint="Check the SSH server's host and port, and that it runs.",
                ) from None
            except BaseException as error:
                await self._end()
                if isinstance(error, OSError):
                    raise _no_room() from error
                raise

    def explained(self, error: GateError) -> GateError:
        """The reason that `ssh` gives for the failure of a connection, else the error itself."""
        if error.code is not Code.SOURCE_UNREACHABLE:
            return error
        return _meaning(self._heard()) or error

    async def close(self) -> None:
        """End `ssh` and leave no file. Safe to call twice."""
        self._closed = True
        await self._relay.close()
        await self._end()
        shutil.rmtree(self._directory, ignore_errors=True)

    async def _dial(self) -> Streams:
        """The near end of `ssh`. Raises: OSError, GateError."""
        process = self._process
        try:
            return await asyncio.open_unix_connection(str(self._socket), limit=CHUNK_BYTES)
        except OSError:
            await self.mend(process)  # it has died just now
            return await asyncio.open_unix_connection(str(self._socket), limit=CHUNK_BYTES)

    async def _start(self) -> None:
        if len(os.fsencode(self._socket)) > _LONGEST_SOCKET:
            raise GateError(
                Code.SOURCE_UNREACHABLE,
                "The path of the directory for temporary files is too long for a socket.",
                hint="Set TMPDIR to a short path, such as /tmp.",
            )
        with self._said.open("ab") as said:
            self._process = process = await asyncio.create_subprocess_exec(
                *_command(self._route, self._socket),
                stdin=subprocess.DEVNULL,
                stdout=subprocess.PIPE,
                stderr=said,
                env=_environment(),
                start_new_session=True,
            )
        if self._closed:
            raise closed()
        out = process.stdout
        if out is None or await out.readline() != _READY:
            await process.wait()
            raise _meaning(self._heard()) or GateError(
                Code.SOURCE_UNREACHABLE,
                "The SSH tunnel could not be opened.",
                hint=f"Run `ssh -v {self._route.server}` as the server's user to see why.",
            )

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

    def _heard(self) -> str:
        """What `ssh` has said since this was last asked."""
        try:
            with self._said.open("r+b") as said:
                text = said.read(_MOST_SAID).decode(errors="replace")
                said.truncate(0)
        except OSError:
            return ""
        return text


class TunnelledEngine:
    """An engine whose server is behind a tunnel, which stands whenever the engine is asked."""

    def __init__(self, engine: Engine, tunnel: Tunnel) -> None:
        self._engine = engine
        self._tunnel = tunnel

    @property
    def capabilities(self) -> Capabilities:
        return self._engine.capabilities

    @property
    def status(self) -> Status:
        return self._engine.status

    async def inspect(self, statement: Statement) -> Judgement | None:
        await self._mend()
        return await self._engine.inspect(statement)

    async def run(self, permit: Permit, cancellation: Cancellation) -> Cursor:
        await self._mend()
        return await self._engine.run(permit, cancellation)

    async def describe(self, permit: Permit, cancellation: Cancellation) -> Description:
        if not (isinstance(permit.request, Browse) and permit.request.aspect == "status"):
            await self._mend()
        return await self._engine.describe(permit, cancellation)

    async def stamp(self) -> str:
        await self._mend()
        return await self._engine.stamp()

    async def close(self) -> None:
        try:
            await self._engine.close()
        finally:
            await self._tunnel.close()

    async def _mend(self) -> None:
        if not self._tunnel.stands:
            await self._tunnel.mend()


def _command(route: Route, near: Path) -> list[str]:
    """The command line of `ssh`. Raises: GateError ENGINE_MISSING."""
    program = shutil.which("ssh")
    if program is None:
        raise GateError(
            Code.ENGINE_MISSING,
            "A tunnel needs the program `ssh` of OpenSSH.",
            hint="Install it, such as by `apt-get install openssh-client`.",
        )
    options = list(_OPTIONS)
    if "ssh_known_hosts" in route.files:
        options.append(f"UserKnownHostsFile={_quoted(route.files['ssh_known_hosts'])}")
        options.append("GlobalKnownHostsFile=/dev/null")
    if "ssh_key" in route.files:
        options += [f"IdentityFile={_quoted(route.files['ssh_key'])}", "IdentitiesOnly=yes"]
    command = [*_dies_with_us(), program, "-N", "-T"]
    if "ssh_config" in route.files:
        command += ["-F", route.files["ssh_config"]]
    for option in options:
        command += ["-o", option]
    if route.user is not None:
        command += ["-l", route.user]
    if route.server_port is not None:
        command += ["-p", str(route.server_port)]
    return [*command, "-L", f"{near}:{route.host}:{route.port}", "--", route.server]


def _environment() -> dict[str, str]:
    seen = {name: os.environ[name] for name in ENVIRONMENT if name in os.environ}
    return {**seen, "SHELL": "/bin/sh"}  # that of a service's account may run nothing


def _dies_with_us() -> list[str]:
    """What has `ssh` end when this process is killed, where there is such a program."""
    setpriv = shutil.which("setpriv") if sys.platform == "linux" else None
    if setpriv is None or "busybox" in os.path.realpath(setpriv):  # which cannot do it
        return []
    return [setpriv, "--pdeathsig", "TERM"]


def _quoted(path: str) -> str:
    escaped = path.replace("%", "%%")
    return f'"{escaped}"'


def _no_room() -> GateError:
    return GateError(
        Code.SOURCE_UNREACHABLE,
        "This machine did not let us open a tunnel.",
        hint="Check its room for temporary files, and its limits on processes and files.",
    )


def _check_files(route: Route) -> None:
    """`ssh` goes on without a file that is not there; we do not. Raises: GateError SOURCE_URL."""
    for name, path in route.files.items():
        if not os.access(path, os.R_OK):
            raise GateError(
                Code.SOURCE_URL,
                f"The file {path} of the option `{name}` cannot be read.",
                hint="Check the path, and that the server's user may read it.",
                details={"path": path},
            )


def _meaning(said: str) -> GateError | None:
    """The coded error for what `ssh` has said, if it is known what that means."""
    for expression, message, hint in _REASONS:
        if re.search(f"(?i){expression}", said):
            return GateError(Code.SOURCE_UNREACHABLE, message, hint=hint)
    return None
