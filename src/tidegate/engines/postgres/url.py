"""Parses a PostgreSQL URL: servers, database, user, TLS. Opens nothing.

    postgresql://user:${ENV:PASSWORD}@host:5432/database?sslmode=verify-full
    postgresql://user@/database?host=/var/run/postgresql        (a Unix socket)
    postgresql://user@one,two:5433/database?target_session_attrs=any

The options are libpq's own, by the names of its documentation, and two of ours: `pool`, the most
connections, and `prepared_statements`, which is `on` or `off`.
"""

from __future__ import annotations

import difflib
import os
from urllib.parse import parse_qsl

import msgspec

from tidegate.engines.common.url import ServerUrl, parse_server_url
from tidegate.errors import Code, TidegateError
from tidegate.secrets.references import resolve

POOL = 10
CONNECT_S = 10.0

_OPTIONS = frozenset(
    """
    application_name channel_binding connect_timeout dbname gssencmode host hostaddr keepalives
    keepalives_count keepalives_idle keepalives_interval krbsrvname load_balance_hosts options
    passfile password port require_auth requirepeer service ssl_max_protocol_version
    ssl_min_protocol_version sslcert sslcertmode sslcrl sslcrldir sslkey sslmode sslnegotiation
    sslpassword sslrootcert sslsni target_session_attrs tcp_user_timeout user
    """.split()  # noqa: SIM905 - a paragraph of words is easier to read and to change
)
_WORDS = {
    "channel_binding": ("disable", "prefer", "require"),
    "gssencmode": ("disable", "prefer", "require"),
    "load_balance_hosts": ("disable", "random"),
    "sslcertmode": ("disable", "allow", "require"),
    "sslmode": ("disable", "allow", "prefer", "require", "verify-ca", "verify-full"),
    "sslnegotiation": ("postgres", "direct"),
    "target_session_attrs": (
        "any", "read-write", "read-only", "primary", "standby", "prefer-standby",
    ),
}  # fmt: skip
"""What libpq takes for options that are words; it reports a wrong one only when it connects."""
_NO_FILE = f"{os.devnull}/none"
_NOT_OURS = {
    "password": "",
    "passfile": _NO_FILE,
    "port": "5432",
    "options": "",
    "sslcert": _NO_FILE,
    "sslkey": _NO_FILE,
    "sslcertmode": "disable",
    "gssencmode": "disable",
    "require_auth": "!gss,!sspi",
}
"""What is given where a URL does not, so that libpq looks neither into variables nor into files.
`host` is in each such URL, and `hostaddr` is always given for it."""
_AUTHENTICATION_IS_CHOSEN = 160_000
"""The version of libpq that has `require_auth` and `sslcertmode`."""
_OWN_OPTIONS = frozenset({"pool", "prepared_statements"})


class Conninfo(msgspec.Struct, frozen=True):
    """What to connect to. `parameters` are libpq's, and hold the secrets: never write them."""

    parameters: dict[str, str]
    pool: int = POOL
    connect_s: float = CONNECT_S
    prepared_statements: bool = True

    def conninfo(self, **others: str) -> bytes:
        """libpq's connection string, with `others` in place of what the URL said."""
        merged = {**self.parameters, **others}
        pairs = [f"{name}={_quoted(value)}" for name, value in merged.items()]
        return " ".join(pairs).encode()

    @property
    def hosts(self) -> list[str]:
        """The hosts that need a name server; Unix sockets and addresses that are given do not."""
        if "hostaddr" in self.parameters:
            return []
        named = self.parameters.get("host", "").split(",")
        return [host for host in named if host and not host.startswith(("/", "@"))]


def parse_conninfo(url: str) -> Conninfo:
    """Read a source's URL and put its secrets in their places. Raises: TidegateError SOURCE_URL."""
    server = parse_server_url(resolve(url))
    parameters = _login(server)
    if server.database:
        parameters["dbname"] = server.database
    own: dict[str, str] = {}
    for name, value in parse_qsl(server.query, keep_blank_values=True):
        if name not in _OPTIONS | _OWN_OPTIONS:
            raise _unknown(name)
        kept = own if name in _OWN_OPTIONS else parameters
        if name in kept:
            raise TidegateError(Code.SOURCE_URL, f"The URL gives `{name}` twice.")
        if value and value not in _WORDS.get(name, (value,)):
            raise TidegateError(
                Code.SOURCE_URL,
                f"The option `{name}` cannot be {value[:40]!r}.",
                hint=f"It is one of {', '.join(_WORDS[name])}.",
            )
        kept[name] = value
    if any("\0" in value for value in parameters.values()):
        raise TidegateError(Code.SOURCE_URL, "The URL holds a NUL character.")
    parameters.setdefault("application_name", "tidegate")
    parameters["client_encoding"] = "UTF8"
    return Conninfo(
        parameters,
        _number(own.get("pool", str(POOL)), "pool"),
        float(_number(parameters.pop("connect_timeout", str(round(CONNECT_S))), "connect_timeout")),
        _switch(own.get("prepared_statements", "on"), "prepared_statements"),
    )


def own_login_only(target: Conninfo) -> Conninfo:
    """The same target, with nothing of this account's for libpq to log in with or be led by: its
    variables (`PGPASSWORD`, `PGPORT`, ...), its password file, client certificate and Kerberos
    ticket. For a URL that a caller gave.

    Raises: TidegateError SOURCE_URL if it names no user; POLICY_DENIED where `PGSERVICE` is set,
    which nothing in a URL outweighs.
    """
    if "user" not in target.parameters:
        raise TidegateError(
            Code.SOURCE_URL,
            "The URL of the temporary source names no user.",
            hint="Write the user and the password into it: the server's own login is not used.",
        )
    if "PGSERVICE" in os.environ:
        raise TidegateError(
            Code.POLICY_DENIED,
            "No temporary source on PostgreSQL can be opened while `PGSERVICE` is set where the "
            "server runs: it could lead elsewhere.",
            hint="Ask the operator to start the server without `PGSERVICE`.",
        )
    from psycopg import pq

    given = dict(_NOT_OURS)
    if pq.version() < _AUTHENTICATION_IS_CHOSEN:
        del given["require_auth"], given["sslcertmode"]
    return msgspec.structs.replace(target, parameters={**given, **target.parameters})


def _login(server: ServerUrl) -> dict[str, str]:
    """libpq's parameters of what comes before the path."""
    hosts = [place.host for place in server.places]
    ports = ["" if place.port is None else str(place.port) for place in server.places]
    parameters = {
        "user": server.user,
        "password": server.password,
        "host": ",".join(hosts) if any(hosts) else "",
        "port": ",".join(ports) if any(ports) else "",
    }
    return {name: value for name, value in parameters.items() if value}


def _unknown(name: str) -> TidegateError:
    near = difflib.get_close_matches(name, sorted(_OPTIONS | _OWN_OPTIONS), 1)
    hint = f"Did you mean `{near[0]}`?" if near else "Use the names of libpq's parameters."
    return TidegateError(Code.SOURCE_URL, f"The URL has an unknown option `{name}`.", hint=hint)


def _number(text: str, name: str) -> int:
    if not text.isdecimal() or not 1 <= int(text) <= 1000:
        raise TidegateError(Code.SOURCE_URL, f"The option `{name}` is a number from 1 to 1000.")
    return int(text)


def _switch(text: str, name: str) -> bool:
    if text not in ("on", "off"):
        raise TidegateError(Code.SOURCE_URL, f"The option `{name}` is `on` or `off`.")
    return text == "on"


def _quoted(value: str) -> str:
    escaped = value.replace("\\", "\\\\").replace("'", "\\'")
    return f"'{escaped}'"
