"""Measures the point query over HTTP on PostgreSQL, MariaDB and DuckDB.

It is the query of `point-repeated` and `point-fresh`, on a table with the same rows. Every
contestant logs in to the database server over TCP with a password, because all of them can. The
CPU of the database server is not counted. DuckDB has no server: it runs inside the contestants.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import Any
from urllib.parse import quote

from bench.grounds import Ground, Login, grounds
from bench.servers import (
    BEFORE,
    DBHUB,
    FLOOR,
    GATE,
    TOOLBOX,
    Contestant,
    Makers,
    chosen,
    core,
    dbhub,
    floor,
    toolbox,
)
from bench.workloads import Effort, Rows, Running, start, throughput

ENGINES = ("PostgreSQL", "MariaDB", "DuckDB")
KINDS = {"repeated": False, "fresh": True}
"""How each workload's name ends, and whether its calls have a new literal each."""

_PASSWORD = "BENCH_PASSWORD"
_SCHEMES = {"PostgreSQL": "postgres", "MariaDB": "mariadb"}
"""The scheme of the URL that Tidegate and DBHub are given."""
_PREBUILT = {"PostgreSQL": "postgres", "MariaDB": "mysql"}
"""The name of the Toolbox's prebuilt configuration."""


def workloads(engine: str) -> dict[str, bool]:
    """The names of an engine's workloads, and whether each has a new literal in every call."""
    return {f"point-{engine.lower()}-{kind}": fresh for kind, fresh in KINDS.items()}


def contestants(
    ground: Ground, *, with_peers: bool, before: Path | None = None, database: str = "shop"
) -> Makers:
    """Who can take part on this engine. No peer reads DuckDB's files, but the floor does."""
    engine, login, makers = ground.name, ground.login, Makers()
    source: dict[str, Any] = {"state_name": f"core-{engine.lower()}"} | _source(ground, database)
    if login is None:
        file = Path(source["url"].partition("://")[2])
        makers[FLOOR] = lambda: floor(file)
    makers[GATE] = lambda: core(**source)
    if before is not None:
        makers[BEFORE] = lambda: core(**source, tree=before)
    if with_peers and login is not None:
        makers |= _peers(engine, login, database)
    return makers


def on_postgres() -> tuple[dict[str, Any], Callable[[], Contestant]]:
    """The source of a gate on PostgreSQL, and what makes the Toolbox on the same database."""
    (ground,) = grounds(names=("PostgreSQL",), wide=())
    if isinstance(ground, str) or ground.login is None:
        raise SystemExit(f"bench: {ground}")
    return _source(ground, "shop"), _peers(ground.name, ground.login, "shop")[TOOLBOX]


def _source(ground: Ground, database: str) -> dict[str, Any]:
    """Where a gate finds the database, and the secret for it."""
    if (login := ground.login) is None:
        return {"url": ground.url(database)}
    url = _url(ground.name, login, f"${{ENV:{_PASSWORD}}}", database)
    return {"url": url, "env": {_PASSWORD: login.password}}


def _url(engine: str, login: Login, password: str, database: str) -> str:
    return f"{_SCHEMES[engine]}://{login.user}:{password}@127.0.0.1:{login.port}/{database}"


def _peers(engine: str, login: Login, database: str) -> Makers:
    prebuilt = _PREBUILT[engine]
    asked = {
        "HOST": "127.0.0.1",
        "PORT": str(login.port),
        "DATABASE": database,
        "USER": login.user,
        "PASSWORD": login.password,
    }
    env = {f"{prebuilt.upper()}_{key}": value for key, value in asked.items()}
    return {
        TOOLBOX: lambda: toolbox(prebuilt, env),
        DBHUB: lambda: dbhub(_url(engine, login, quote(login.password), database)),
    }


Found = dict[str, Running] | str
"""Servers by name, or the reason why there are none."""


@contextmanager
def running(
    engine: str, *, with_peers: bool, only: list[str], before: Path | None = None
) -> Iterator[Found]:
    """Start the servers on one engine; a note instead if the engine is not installed."""
    (ground,) = grounds(names=(engine,), wide=())
    if isinstance(ground, str):
        yield ground
        return
    with ExitStack() as stack:
        log = f"{engine.lower()}-http"
        makers = contestants(ground, with_peers=with_peers, before=before)
        yield {one.name: start(stack, one, log_name=log) for one in chosen(makers, only)}


def measured(found: Found, effort: Effort, *, fresh: bool) -> Rows:
    """Measure one workload on the servers that were started."""
    if isinstance(found, str):
        return {found: []}
    return throughput(found, effort, fresh=fresh) if found else {}
