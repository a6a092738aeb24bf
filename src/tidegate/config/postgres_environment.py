"""The database of a server for which only the environment names one.

`PGEDGE_DB_HOST`, `_PORT`, `_NAME`, `_USER`, `_PASSWORD` and `_SSLMODE`; in the place of each that
is not set `PGHOST`, `PGPORT`, `PGDATABASE`, `PGUSER`, `PGPASSWORD` and `PGSSLMODE`. The password
stays in the environment: the source refers to its variable.
"""

from __future__ import annotations

from collections.abc import Mapping
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

    Raises: TidegateError CONFIG_INVALID for a port that is none.
    """
    variables = {word: _variable(word, environment) for word in _FALLBACKS}
    values = {word: environment[name] for word, name in variables.items() if name is not None}
    if not any(word in values for word in _NAMING):
        return None
    port = values.get("PORT", "5432")
    if not port.isdecimal() or not 1 <= int(port) <= 65_535:
        raise invalid(f"${variables['PORT']} is not a port: `{port[:20]}`.")
    login = quote(values.get("USER", ""), safe="")
    if variables["PASSWORD"] is not None:
        login += f":${{ENV:{variables['PASSWORD']}}}"
    host, options = values.get("HOST", "localhost"), ""
    if host.startswith("/"):
        options, host, place = f"host={quote(host, safe='/')}&port={port}", "", ""
    else:
        place = f"[{host}]:{port}" if ":" in host else f"{quote(host, safe='.-_')}:{port}"
    if "SSLMODE" in values:
        options += ("&" if options else "") + f"sslmode={quote(values['SSLMODE'], safe='')}"
    database = quote(values.get("NAME", ""), safe="")
    url = f"postgresql://{login}{'@' if login else ''}{place}/{database}"
    return SourceSettings(name=NAME, url=url + (f"?{options}" if options else ""))


def _variable(word: str, environment: Mapping[str, str]) -> str | None:
    """The variable that a part comes from; None if it comes from none."""
    for name in (f"PGEDGE_DB_{word}", _FALLBACKS[word]):
        if environment.get(name):
            return name
    return None
