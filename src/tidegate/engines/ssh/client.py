"""The command line of the operator's `ssh` for a tunnel, and the errors that its messages mean.

`ssh` runs without prompts and accepts no unknown host key. Its messages name hosts, users and
paths, so they are never repeated.
"""

from __future__ import annotations

import os
import re
import shutil
from pathlib import Path

from tidegate.engines.ssh.url import SshRoute
from tidegate.errors import Code, TidegateError
from tidegate.system.processes import ended_with_us

ALIVE_S = 5
"""How often `ssh` asks whether the SSH server is still there; it gives up after three times."""

ENVIRONMENT = (
    *("PATH", "HOME", "USER", "LOGNAME", "LANG", "LC_ALL", "TMPDIR"),
    *("SSH_AUTH_SOCK", "KRB5CCNAME", "XDG_RUNTIME_DIR"),
)
"""What `ssh`, and what it starts, sees of ours: no password that a source refers to."""

_OPTIONS = (
    *("BatchMode=yes", "StrictHostKeyChecking=yes", "UpdateHostKeys=no"),
    *("ExitOnForwardFailure=yes", "GatewayPorts=no", "StreamLocalBindMask=0177"),
    *("ControlMaster=no", "ControlPath=none", "ForwardAgent=no", "ForwardX11=no"),
    *("RequestTTY=no", "RemoteCommand=none", "Tunnel=no", "LogLevel=INFO"),
    *(f"ServerAliveInterval={ALIVE_S}", "ServerAliveCountMax=3"),
    # Run when the forwarding is ready, which `ssh` shows in no other way.
    *("PermitLocalCommand=yes", "LocalCommand=echo ready"),
)

_LOGIN = (
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
"""Expression, message and hint of what `ssh` says when it does not get in."""

_FORWARDING = (
    (
        r"administratively prohibited",
        "The SSH server does not let this account through to the database.",
        "Check AllowTcpForwarding and PermitOpen of the SSH server, and the database's host and"
        " port as it sees them.",
    ),
    (
        r"open failed",
        "The SSH server cannot reach the database.",
        "Check the database's host and port as the SSH server sees them.",
    ),
)
"""The same for messages after the login, when a connection is forwarded. A jump host may print them
earlier."""


def command_to(route: SshRoute, near: Path) -> list[str]:
    """The call that leads the socket `near` to the database. Raises: TidegateError
    ENGINE_MISSING."""
    program = shutil.which("ssh")
    if program is None:
        raise TidegateError(
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
    command = [*ended_with_us(), program, "-N", "-T"]
    if "ssh_config" in route.files:
        command += ["-F", route.files["ssh_config"]]
    for option in options:
        command += ["-o", option]
    if route.user is not None:
        command += ["-l", route.user]
    if route.server_port is not None:
        command += ["-p", str(route.server_port)]
    return [*command, "-L", f"{near}:{route.host}:{route.port}", "--", route.server]


def environment() -> dict[str, str]:
    """The environment that `ssh` is given."""
    seen = {name: os.environ[name] for name in ENVIRONMENT if name in os.environ}
    return {**seen, "SHELL": "/bin/sh"}  # that of a service's account may run nothing


def _quoted(path: str) -> str:
    escaped = path.replace("%", "%%")
    return f'"{escaped}"'


def login_failure(output: str, server: str) -> TidegateError:
    """The coded error of an `ssh` that ended before its tunnel was ready."""
    return _meaning(_LOGIN, output) or TidegateError(
        Code.SOURCE_UNREACHABLE,
        "The SSH tunnel could not be opened.",
        hint=f"Run `ssh -v {server}` as the server's user to see why.",
    )


def forwarding_failure(output: str) -> TidegateError | None:
    """The coded error of a connection that failed in the tunnel, if `ssh` gave the reason."""
    return _meaning(_FORWARDING, output)


def _meaning(reasons: tuple[tuple[str, str, str], ...], output: str) -> TidegateError | None:
    for expression, message, hint in reasons:
        if re.search(f"(?i){expression}", output):
            return TidegateError(Code.SOURCE_UNREACHABLE, message, hint=hint)
    return None
