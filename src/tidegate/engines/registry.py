"""Decides which engine opens a source, by the scheme of its URL. Imports an engine when asked.

To add an engine: one module with a class that has the members of `api.Engine`, one line in
`ENGINES`, one fixture under `tests/contract/engines`.
"""

from __future__ import annotations

import difflib
from importlib import import_module
from typing import NamedTuple, cast

from msgspec import structs

from tidegate.engines.api import Engine
from tidegate.engines.route import Route, parse_route
from tidegate.engines.url import scheme_of
from tidegate.errors import Code, GateError
from tidegate.sources import RunAs, Source


class Entry(NamedTuple):
    """Where an engine lives; `extra` is what to install when its driver is missing, `port` where
    its servers listen, which may be reached through a tunnel; `identities`: see `api.py`."""

    engine: str
    dialect: str
    module: str
    attribute: str
    extra: str | None = None
    port: int | None = None
    identities: bool = False


POSTGRES = Entry(
    *("postgres", "postgres", "tidegate.engines.postgres", "PostgresEngine", "postgres", 5432),
    identities=True,
)

MYSQL = Entry(
    "mysql", "mysql", "tidegate.engines.mysql", "MysqlEngine", "mysql", 3306, identities=True
)

ENGINES: dict[str, Entry] = {
    "sqlite": Entry("sqlite", "sqlite", "tidegate.engines.sqlite", "SqliteEngine"),
    "postgres": POSTGRES,
    "postgresql": POSTGRES,
    "duckdb": Entry("duckdb", "duckdb", "tidegate.engines.duckdb", "DuckdbEngine", "duckdb"),
    "mysql": MYSQL,
    "mariadb": MYSQL,
    "memory": Entry("memory", "memory", "tidegate.engines.memory", "MemoryEngine"),
}


def engine_of(url: str) -> tuple[str, str]:
    """(engine name, SQL dialect) for a source's URL, without importing the engine.

    Raises: GateError SOURCE_URL if no engine reads such a URL, or if it names no way to a tunnel.
    """
    entry = _entry(url)
    _route(entry, url)
    return entry.engine, entry.dialect


def check_run_as(url: str, run_as: RunAs | None) -> None:
    """Refuse to map callers where the engine knows no identities: the setting would do nothing.

    Raises: GateError CONFIG_INVALID, SOURCE_URL.
    """
    entry = _entry(url)
    if run_as is not None and not entry.identities:
        raise GateError(
            Code.CONFIG_INVALID,
            f"A source on the engine `{entry.engine}` cannot have `run_as`: it knows no roles.",
            hint="Leave `run_as` out; `masks` and `filters` hide columns and rows on every engine.",
        )


async def open_engine(source: Source) -> Engine:
    """Import the source's engine and open it.

    Raises: GateError SOURCE_URL, SOURCE_UNREACHABLE, ENGINE_MISSING (names the extra to install),
    CONFIG_INVALID if the source maps callers and the engine cannot.
    """
    entry = _entry(source.url)
    check_run_as(source.url, source.run_as)
    try:
        module = import_module(entry.module)
    except ImportError as missing:  # a driver without its library is found, and then fails
        if missing.name is not None and missing.name.partition(".")[0] == "tidegate":
            raise
        needs = f"the package `{missing.name}`" if missing.name else "a library that is not there"
        extra = f"[{entry.extra}]" if entry.extra else ""
        raise GateError(
            Code.ENGINE_MISSING,
            f"The engine `{entry.engine}` needs {needs}.",
            hint=f"Run: pip install 'tidegate{extra}'",
        ) from missing
    engine = cast("type[Engine]", getattr(module, entry.attribute))
    route = _route(entry, source.url)
    if route is not None:
        return await _open_through(engine, source, route)
    return await engine.open(source)


async def _open_through(engine: type[Engine], source: Source, route: Route) -> Engine:
    """Open the tunnel, and the engine on the near end of it. Raises: GateError."""
    from tidegate.engines.tunnel import Tunnel, TunnelledEngine

    tunnel = await Tunnel.open(route)
    try:
        near = structs.replace(source, url=route.url_at(tunnel.port))
        return cast("Engine", TunnelledEngine(await engine.open(near), tunnel))
    except GateError as error:
        failure = tunnel.explained(error)
        await tunnel.close()
        raise failure from error
    except BaseException:
        await tunnel.close()
        raise


def _route(entry: Entry, url: str) -> Route | None:
    return None if entry.port is None else parse_route(url, entry.port)


def _entry(url: str) -> Entry:
    scheme = scheme_of(url)
    entry = ENGINES.get(scheme)
    if entry is not None:
        return entry
    near = difflib.get_close_matches(scheme, ENGINES, 1)
    known = ", ".join(f"{name}://" for name in sorted(ENGINES))
    hint = f"Did you mean `{near[0]}://`? Known: {known}." if near else f"Known: {known}."
    raise GateError(Code.SOURCE_URL, f"No engine opens `{scheme}://`.", hint=hint)
