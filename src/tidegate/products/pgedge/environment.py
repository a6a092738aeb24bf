"""The database of a server for which only the environment names one.

`PGEDGE_DB_HOST`, `_PORT`, `_NAME`, `_USER`, `_PASSWORD` and `_SSLMODE`; in the place of each that
is not set `PGHOST`, `PGPORT`, `PGDATABASE`, `PGUSER`, `PGPASSWORD` and `PGSSLMODE`. The password
stays in the environment: the source refers to its variable.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from urllib.parse import quote

from tidegate.config.errors import invalid
from tidegate.config.sources import SourceSettings

NAME = "default"
"""The name of that source."""

_FALLBACKS = {
    "HOST": "PGHOST",
    "PORT": "PGPORT",
    "NAME": "PGDATABASE",
    "USER": "PGUSER",
    "PASSWORD": "PGPASSWORD",
    "SSLMODE": "PGSSLMODE",
}
_NAMING = ("HOST", "NAME", "USER")
"""Of these one must be set: a port or a password alone names no database."""


def database_of_environment(environment: Mapping[str, str]) -> SourceSettings | None:
    """The source that the environment describes; None if it names no database.

    Raises: TidegateError CONFIG_INVALID for an invalid port.
    """
    variables = {word: _variable(word, environment) for word in _FALLBACKS}
    values = {word: environment[name] for word, name in variables.items() if name is not None}
    if not any(word in values for word in _NAMING):
        return None
    port = values.get("PORT", "5432")
    if not port.isdecimal() or not 1 <= int(port) <= 65_535:
        raise invalid(f"${variables['PORT']} is not a port: `{port[:20]}`.")
    password = variables["PASSWORD"]
    url = postgres_url(
        user=values.get("USER", ""),
        password="" if password is None else f"${{ENV:{password}}}",
        places=[(values.get("HOST", "localhost"), int(port))],
        database=values.get("NAME", ""),
        options={"sslmode": values["SSLMODE"]} if "SSLMODE" in values else {},
    )
    return SourceSettings(name=NAME, url=url)


def postgres_url(
    *,
    user: str,
    password: str,
    places: Sequence[tuple[str, int]],
    database: str,
    options: Mapping[str, str],
) -> str:
    """The URL of a source. `password` is a reference to a secret, or empty; `places` are hosts, or
    directories of a Unix socket, with their ports; `options` are libpq's."""
    login = quote(user, safe="") + (f":{password}" if password else "")
    named, pairs = "", dict(options)
    if any(host.startswith("/") for host, _ in places):
        pairs = {
            "host": ",".join(host for host, _ in places),
            "port": ",".join(str(port) for _, port in places),
        } | pairs
    else:
        named = ",".join(
            f"[{host}]:{port}" if ":" in host else f"{quote(host, safe='.-_')}:{port}"
            for host, port in places
        )
    query = "&".join(f"{name}={quote(value, safe='/')}" for name, value in pairs.items())
    url = f"postgresql://{login}{'@' if login else ''}{named}/{quote(database, safe='')}"
    return f"{url}?{query}" if query else url


def _variable(word: str, environment: Mapping[str, str]) -> str | None:
    """The variable that a part comes from; None if it comes from none."""
    for name in (f"PGEDGE_DB_{word}", _FALLBACKS[word]):
        if environment.get(name):
            return name
    return None
