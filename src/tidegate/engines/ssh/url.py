"""Parses the SSH options of a source's URL. Opens nothing.

    postgresql://user@db.internal/shop?ssh=me@bastion:22&ssh_key=/etc/tidegate/id_gate

`ssh` is a server as the operator's own `ssh` knows it, so it may be a name from the configuration
of `ssh`, with jump hosts and all. `ssh_key` is the only key to log in with, `ssh_known_hosts` the
only file of host keys to believe, `ssh_config` is read in place of the operator's.
"""

from __future__ import annotations

import os
import re
from collections.abc import Mapping
from pathlib import Path
from urllib.parse import unquote

import msgspec

from tidegate.engines.common.url import parse_server_url, read_options
from tidegate.errors import Code, TidegateError

FILES = ("ssh_config", "ssh_key", "ssh_known_hosts")
CONNECT_S = 10.0

_HOST = re.compile(r"[0-9A-Fa-f:.]+|[A-Za-z0-9_][\w.-]*")

_SERVER = re.compile(
    r"(?:([A-Za-z0-9_][\w.+-]*)@)?(?:\[([0-9A-Fa-f:.]+)\]|([A-Za-z0-9_][\w.-]*))(?::(\d{1,5}))?"
)
_SAYS_WHERE = frozenset({"host", "hostaddr", "port", "service", "socket"})
_UNFIT = re.compile(r"[\x00-\x1f\x7f\"\\$]")


class SshRoute(msgspec.Struct, frozen=True):
    """The way to a database behind an SSH server; None is as `ssh` is configured.

    `host` and `port` are the database's as the SSH server sees them, `files` are absolute paths by
    the option that names them, `connect_s` bounds the making of the tunnel.
    """

    server: str
    user: str | None
    server_port: int | None
    files: Mapping[str, str]
    host: str
    port: int
    connect_s: float
    head: str
    tail: str

    def url_at(self, port: int) -> str:
        """The source's URL at a port of this machine. It still names the database's own host,
        because TLS verifies that name."""
        mark = "&" if "?" in self.tail else "?"
        return f"{self.head}{self.host}:{port}{self.tail}{mark}hostaddr=127.0.0.1"


def parse_route(url: str, default_port: int) -> SshRoute | None:
    """The tunnel that a server's URL names; None if it names none.

    Raises: TidegateError SOURCE_URL; the message holds no secret.
    """
    try:
        server_url = parse_server_url(url)
    except TidegateError:
        server_url = None
    query = url.partition("?")[2] if server_url is None else server_url.query
    kept: list[str] = []
    ours: list[str] = []
    for part in query.split("&"):
        name = unquote(part.partition("=")[0])
        (ours if re.fullmatch(r"ssh(_.*)?", name) else kept).append(part)
    if not ours:
        return None
    options = read_options("&".join(ours), ("ssh", *FILES))
    if not options.get("ssh"):
        raise _refused("The URL tells how to use an SSH server, but not which: `ssh` is missing.")
    server = _SERVER.fullmatch(options["ssh"])
    if server is None or not _is_port(server[4]):
        raise TidegateError(
            Code.SOURCE_URL,
            "The option `ssh` does not name a server.",
            hint="Write ssh=USER@HOST:PORT or a name from your ssh configuration; no password.",
        )
    others = read_names(kept)
    places = () if server_url is None else server_url.places
    if (
        server_url is None
        or len(places) != 1
        or _HOST.fullmatch(places[0].host) is None
        or _SAYS_WHERE & others.keys()
    ):
        raise TidegateError(
            Code.SOURCE_URL,
            "A tunnel leads to one host and port of the database, and to no socket.",
            hint="Write them before the path, as the SSH server sees them: //user@host:port/name",
        )
    wait = others.get("connect_timeout", "")
    return SshRoute(
        server=server[2] or server[3],
        user=server[1],
        server_port=int(server[4]) if server[4] else None,
        files={name: _path(name, options[name]) for name in FILES if name in options},
        host=f"[{places[0].host}]" if ":" in places[0].host else places[0].host,
        port=places[0].port or default_port,
        connect_s=float(wait) if re.fullmatch(r"[1-9]\d{0,2}", wait) else CONNECT_S,
        head=server_url.login,
        tail=server_url.path + ("?" + "&".join(kept) if kept else ""),
    )


def read_names(parts: list[str]) -> dict[str, str]:
    """The options that are the engine's own."""
    pairs = [part.partition("=") for part in parts]
    return {unquote(name): value for name, _, value in pairs if name}


def _is_port(text: str | None) -> bool:
    return text is None or 1 <= int(text) <= 65_535


def _path(name: str, text: str) -> str:
    """An absolute path that can be in an option of `ssh`."""
    path = Path(os.path.expanduser(text))  # noqa: PTH111 - Path.expanduser raises for no such user
    if not path.is_absolute() or _UNFIT.search(text):
        raise TidegateError(
            Code.SOURCE_URL,
            f"The option `{name}` is not the path of a file.",
            hint="Write it from `/` or `~/` on, without quotes, backslashes and `$`.",
        )
    return str(path)


def _refused(message: str) -> TidegateError:
    return TidegateError(Code.SOURCE_URL, message, hint="Add ssh=USER@HOST:PORT.")
