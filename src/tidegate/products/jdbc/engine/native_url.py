"""JDBC URLs of databases that have an engine of their own, written as that engine's URLs. Pure.

Source: the documentation of pgjdbc, Connector/J, MariaDB Connector/J, sqlite-jdbc and DuckDB's
driver. A parameter that is not listed here keeps its URL from being written otherwise.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import NamedTuple
from urllib.parse import quote, unquote, urlencode

from tidegate.engines.registry import ENGINES
from tidegate.errors import Code, TidegateError

DRIVERS = {
    "postgresql": "org.postgresql.Driver",
    "mysql": "com.mysql.cj.jdbc.Driver",
    "mariadb": "org.mariadb.jdbc.Driver",
    "sqlite": "org.sqlite.JDBC",
    "duckdb": "org.duckdb.DuckDBDriver",
}
"""The class of the driver that each URL is made for, by the name after `jdbc:`."""

_PREFIX = re.compile(
    r"jdbc:(postgresql|mysql|mariadb|sqlite|duckdb):(.*)", re.IGNORECASE | re.DOTALL
)
_PLACE = re.compile(r"//([^/?;]*)/?([^?;]*)|/?([^/?;]*)")
_SSL_MODES = {"disable": "off", "disabled": "off", "trust": "require", "required": "require"}
_PORTS = {"postgresql": 5432, "mysql": 3306, "mariadb": 3306}


class Login(NamedTuple):
    """The account that a JDBC URL names in its parameters."""

    user: str | None
    password: str | None


class NativeUrl(NamedTuple):
    """A URL of one of our engines, without its account; `path` is the database's file, None for a
    server or a database in memory."""

    url: str
    driver: str
    path: str | None = None

    @property
    def is_server(self) -> bool:
        """Whether the database is on a server, and not in a file or in memory."""
        return "://@" in self.url

    @property
    def needs_user(self) -> bool:
        """Whether its engine takes no URL without a user from a caller."""
        return self.url.startswith("postgresql://")

    def with_account(self, user: str | None, password: str | None) -> str:
        """The URL with an account; `password` is a reference to a secret."""
        if user is None or not self.is_server:
            return self.url.replace("://@", "://")
        login = quote(user, safe="") + (f":{password}" if password else "")
        return self.url.replace("://@", f"://{login}@", 1)


def split_login(url: str) -> tuple[str, Login]:
    """The URL without the parameters `user` and `password`, and what they said. Drivers take a
    login there; no error may show it."""
    found = re.search(r"[?;]", url)
    if found is None:
        return url, Login(None, None)
    mark = found[0]
    head, tail = url[: found.start()], url[found.end() :]
    between = "&" if mark == "?" else ";"
    kept: list[str] = []
    login: dict[str, str] = {}
    for part in tail.split(between):
        name, equals, value = part.partition("=")
        if equals and name.lower() in ("user", "password"):
            login[name.lower()] = unquote(value)
        elif part:
            kept.append(part)
    rest = f"{head}{mark}{between.join(kept)}" if kept else head
    return rest, Login(login.get("user"), login.get("password"))


def native_url(url: str) -> NativeUrl | None:
    """The URL for our own engine; None if there is none, or it has no option for a parameter. The
    engines of MySQL and DuckDB are products of their own, and may not be here.

    `url` has no login (`split_login`). Raises: TidegateError SOURCE_URL for a place that cannot be
    read.
    """
    found = _PREFIX.fullmatch(url)
    if found is None or (name := found[1].lower()) not in ENGINES:
        return None
    rest = found[2]
    place, _, query = rest.partition("?")
    if name in ("sqlite", "duckdb"):
        return None if query or ";" in place else _file(name, place)
    options = _options(name, query)
    return None if options is None else _server(name, place, options)


def _file(name: str, path: str) -> NativeUrl:
    driver = DRIVERS[name]
    plain = path.removeprefix("file:")
    if plain in ("", ":memory:"):
        return NativeUrl(f"{name}://", driver)
    if plain.startswith(":"):
        raise _unreadable(f"jdbc:{name}:/absolute/path")
    return NativeUrl(f"{name}:///{plain}", driver, plain)


def _server(name: str, place: str, options: Mapping[str, str]) -> NativeUrl:
    found = _PLACE.fullmatch(place)
    if found is None:
        raise _unreadable(f"jdbc:{name}://host:port/database")
    hosts = found[1] if found[1] is not None else ""
    database = found[2] if found[1] is not None else found[3]
    if "@" in hosts or any(each in hosts for each in "()$ ,"):
        raise _unreadable(f"jdbc:{name}://host:port/database")
    query = f"?{urlencode(options)}" if options else ""
    return NativeUrl(
        f"{name}://@{hosts or f'localhost:{_PORTS[name]}'}/{database}{query}", DRIVERS[name]
    )


def _options(name: str, query: str) -> dict[str, str] | None:
    """Our options for the parameters of a URL; None if one of them has no counterpart."""
    options: dict[str, str] = {}
    for part in filter(None, query.split("&")):
        key, _, value = part.partition("=")
        read = _OPTION_READERS[name](key, unquote(value))
        if read is None:
            return None
        options |= read
    return options


def _postgres(name: str, value: str) -> dict[str, str] | None:
    if name in ("connectTimeout", "loginTimeout") and value.isdecimal() and value != "0":
        return {"connect_timeout": value}
    if name == "sslmode":
        return {"sslmode": value}
    if name == "ssl":
        return {"sslmode": "verify-full" if value.lower() in ("", "true") else "prefer"}
    return {"application_name": value} if name == "ApplicationName" else None


def _mysql(name: str, value: str) -> dict[str, str] | None:
    if name == "connectTimeout" and value.isdecimal() and value != "0":
        return {"connect_timeout": str(max(1, int(value) // 1000))}
    if name in ("useSSL", "useSsl"):
        return {"tls": "require" if value.lower() == "true" else "off"}
    if name == "sslMode" and value.lower() in _SSL_MODES:
        return {"tls": _SSL_MODES[value.lower()]}
    return None


def _unreadable(form: str) -> TidegateError:
    return TidegateError(
        Code.SOURCE_URL, "The host, port or file of the URL cannot be read.", hint=f"Write {form}."
    )


_OPTION_READERS = {"postgresql": _postgres, "mysql": _mysql, "mariadb": _mysql}
