"""The URL and options of a source of cloud providers of a backing server.

`cloud+postgresql://USER@HOST:PORT/DATABASE?sslmode=verify-full&sslrootcert=FILE` has libpq's own
parameters. A password is a reference, or libpq finds it in `PGPASSWORD` or a password file.
"""

from __future__ import annotations

import os
from collections.abc import Mapping
from typing import Final
from urllib.parse import parse_qsl

import msgspec

from tidegate.config.addresses import is_this_machine
from tidegate.engines.common.url import Location, locate_server, parse_server_url
from tidegate.engines.postgres.url import Conninfo, parse_conninfo
from tidegate.errors import Code, TidegateError
from tidegate.secrets.references import resolve

SCHEME: Final = "cloud+postgresql:"
PORT: Final = 5432
OPTIONS: Final = ("application_name", "connect_timeout", "plain_postgresql", "pool")
_FILES: Final = ("sslrootcert", "sslcert", "sslkey", "sslcrl", "passfile")
_DATABASE: Final = "cloud"
_HIGHEST: Final = 1_000


class Target(msgspec.Struct, frozen=True):
    """What to connect to. `place` is how errors name it; `pool` is how many statements run at once.

    `accepts_plain`: a PostgreSQL that is no Tidegate and no StackQL will do, since no statement is
    sent to it but SELECT.
    """

    conninfo: Conninfo
    place: str
    user: str
    database: str
    pool: int
    connect_s: float
    accepts_plain: bool


def read_target(url: str, options: Mapping[str, str]) -> Target:
    """The server that a source's URL and options name, with its secrets in their places.

    A host that is not this machine is verified by its certificate unless the URL says otherwise.
    Raises: TidegateError SOURCE_URL.
    """
    query = dict(parse_qsl(parse_server_url(resolve(url)).query, keep_blank_values=True))
    if "prepared_statements" in query:
        raise _wrong("The option `prepared_statements` has no effect on this kind of source.")
    for name in options:
        if name in query:
            raise _wrong(f"The option `{name}` is in the URL and among the source's options.")
    conninfo = parse_conninfo(url)
    given = dict(conninfo.parameters)
    given.setdefault("dbname", _DATABASE)
    if not _is_here(given):
        given.setdefault("sslmode", "verify-full")
    for name in _FILES:
        path = given.get(name, "")
        if path and path != "system" and not os.path.exists(path):  # noqa: PTH110 - as libpq looks
            # libpq goes on without a client certificate that is not there.
            raise TidegateError(
                Code.SOURCE_URL,
                f"The file of `{name}` in the URL of the backing server is not there: {path}.",
                hint=f"Correct `{name}`.",
                details={"path": path},
            )
    if "application_name" in options:
        given["application_name"] = options["application_name"]
    where = locate(url)
    return Target(
        msgspec.structs.replace(conninfo, parameters=given),
        f"{where.host or 'localhost'}:{where.port}",
        given.get("user", ""),
        given["dbname"],
        _number(options, "pool", conninfo.pool),
        float(_number(options, "connect_timeout", round(conninfo.connect_s))),
        options.get("plain_postgresql", "off") == "on",
    )


def locate(url: str) -> Location:
    """What a listing shows of a URL. Raises nothing."""
    return locate_server(url, PORT)


def _is_here(parameters: Mapping[str, str]) -> bool:
    """Whether all hosts are this machine."""
    if "service" in parameters or "PGSERVICE" in os.environ:
        return False
    named = parameters.get("hostaddr") or parameters.get("host") or os.environ.get("PGHOST", "")
    hosts = named.split(",") if named else []
    return all(is_this_machine(host) or host.startswith(("/", "@")) for host in hosts)


def _number(options: Mapping[str, str], name: str, default: int) -> int:
    text = options.get(name, str(default))
    if not text.isdecimal() or not 1 <= int(text) <= _HIGHEST:
        raise _wrong(f"The option `{name}` is a number from 1 to {_HIGHEST}.")
    return int(text)


def _wrong(reason: str) -> TidegateError:
    return TidegateError(
        Code.SOURCE_URL,
        reason,
        hint="Write cloud+postgresql://USER@HOST:PORT/cloud?sslmode=verify-full, for example.",
    )
