"""Parses a MySQL or MariaDB URL: server, database, user, TLS. Opens nothing.

    mysql://user:${ENV:PASSWORD}@host:3306/database?tls=verify&tls_ca=/etc/ca.pem
    mariadb://user@/database?socket=/run/mysqld/mysqld.sock

Options: `socket`; `hostaddr`: an address to dial in place of the host, which TLS still verifies;
`connect_timeout` in seconds; `pool`: the most connections; `tls`: `prefer` (the default by TCP: if
the server offers it, unverified), `require`, `verify` (the certificate must be signed by a known
authority and name the host), `off`; `tls_ca`, `tls_cert`, `tls_key`: files.
"""

from __future__ import annotations

import ssl
from typing import Any, Literal

import msgspec

from tidegate.engines.common.url import parse_server_url, read_options
from tidegate.errors import Code, TidegateError
from tidegate.secrets.references import resolve

POOL = 10
CONNECT_S = 10.0
PORT = 3306

Tls = Literal["off", "prefer", "require", "verify"]

_OPTIONS = (
    *("connect_timeout", "hostaddr", "pool", "socket"),
    *("tls", "tls_ca", "tls_cert", "tls_key"),
)


class Conninfo(msgspec.Struct, frozen=True):
    """What to connect to. It holds the password: never write it anywhere."""

    host: str
    port: int
    user: str
    password: str
    database: str | None
    socket: str | None
    tls: Tls
    files: dict[str, str]
    hostaddr: str | None = None
    pool: int = POOL
    connect_s: float = CONNECT_S

    def options(self) -> dict[str, Any]:
        """What the driver is called with. Raises: TidegateError SOURCE_URL if a file cannot be
        read."""
        where: dict[str, Any] = {"host": self.hostaddr or self.host, "port": self.port}
        if self.socket is not None:
            where = {"unix_socket": self.socket}
        return {
            **where,
            "user": self.user,
            "password": self.password.encode(),
            "database": self.database,
            "connect_timeout": self.connect_s,
            "charset": "utf8mb4",
            "autocommit": None,
            "local_infile": False,
            "program_name": "tidegate",
            "ssl": None if self.tls == "off" else self._context(),
        }

    def _context(self) -> ssl.SSLContext:
        try:
            context = ssl.create_default_context(cafile=self.files.get("tls_ca"))
            if "tls_cert" in self.files:
                context.load_cert_chain(self.files["tls_cert"], self.files.get("tls_key"))
        except (OSError, ssl.SSLError) as error:
            message = "A file that the URL names for TLS cannot be read."
            raise TidegateError(Code.SOURCE_URL, message) from error
        if self.tls != "verify":
            context.check_hostname = False
            context.verify_mode = ssl.CERT_NONE
        return context


def parse_conninfo(url: str) -> Conninfo:
    """Read a source's URL and put its secrets in their places. Raises: TidegateError SOURCE_URL."""
    server = parse_server_url(resolve(url))
    if len(server.places) != 1:
        raise TidegateError(
            Code.SOURCE_URL,
            "The source's URL names several hosts.",
            hint="Name one host: this engine connects to one server.",
        )
    options = read_options(server.query, _OPTIONS)
    user, password, (place,) = server.user, server.password, server.places
    if any(
        "\0" in part for part in (user, password, place.host, server.database, *options.values())
    ):
        raise TidegateError(Code.SOURCE_URL, "The URL holds a NUL character.")
    return Conninfo(
        host=place.host or "127.0.0.1",
        port=place.port or PORT,
        user=user or "root",
        password=password,
        database=server.database or None,
        socket=options.get("socket"),
        tls=_tls(options),
        files={
            name: options[name] for name in _OPTIONS if name.startswith("tls_") and name in options
        },
        hostaddr=options.get("hostaddr"),
        pool=_number(options.get("pool", str(POOL)), "pool", 1000),
        connect_s=float(
            _number(options.get("connect_timeout", str(round(CONNECT_S))), "connect_timeout", 1000)
        ),
    )


def _tls(options: dict[str, str]) -> Tls:
    known: dict[str, Tls] = {
        "off": "off",
        "prefer": "prefer",
        "require": "require",
        "verify": "verify",
    }
    wanted = options.get("tls", "verify" if "tls_ca" in options else "prefer")
    if wanted not in known:
        raise TidegateError(Code.SOURCE_URL, f"The option `tls` is one of {', '.join(known)}.")
    if "socket" in options:
        return "off"
    return known[wanted]


def _number(text: str, name: str, most: int) -> int:
    if not text.isdecimal() or not 1 <= int(text) <= most:
        raise TidegateError(Code.SOURCE_URL, f"`{name}` is a number from 1 to {most}.")
    return int(text)
