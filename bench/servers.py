"""The measured servers: how each is started on a database, and the requests it gets.

Every server runs as its makers ship it, with defaults, except that limits below 10,000 rows are
raised, and speaks the revision of MCP in which it is fastest. The peers run without any check of
statements; Tidegate runs with its whole gate on.
"""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from bench import analyst, data, peers
from bench.mcp import SESSION, STATELESS
from bench.process import Launch

FLOOR = "floor"
GATE = "Tidegate core"
GATE_WORKBENCH = "Tidegate workbench"
BEFORE = "Tidegate core before"
TOOLBOX = "MCP Toolbox"
DBHUB = "DBHub"
ALCHEMY = "MCP Alchemy"

_SHARED_STATE = {"state_url": "${ENV:BENCH_STATE}", "state_key": "${ENV:BENCH_STATE_KEY}"}

Arguments = dict[str, Any]
Step = tuple[str, Arguments]
Ask = Callable[[str, Arguments], str]
"""Calls a tool of a running server and gives the text of its answer."""


def _nothing(ask: Ask) -> Arguments:
    return {}


@dataclass(frozen=True)
class Contestant:
    """A server: how to start it on a database file, and how to put a statement to it.

    `conversation` is what an agent says to find two tables among 212 by words, read their columns
    and keys, and join them; the last step runs the join. `learn` finds out what every call needs
    besides and only the running server knows.
    """

    name: str
    http: Callable[[int, Path], Launch]
    stdio: Callable[[Path], Launch]
    tool: str
    arguments: Callable[[str, int], Arguments]
    path: str = "/mcp"
    dialect: str = STATELESS
    headers: dict[str, str] = field(default_factory=dict)
    learn: Callable[[Ask], Arguments] = _nothing
    conversation: tuple[Step, ...] = ()
    analyst: Callable[[], list[Step]] = list


def floor(file: Path | None = None) -> Contestant:
    """On `file`, which may be DuckDB's, or on the SQLite file."""
    program = str(peers.HERE / "floor.py")
    return Contestant(
        name=FLOOR,
        http=lambda port, db: Launch((sys.executable, program, "http", str(file or db), str(port))),
        stdio=lambda db: Launch((sys.executable, program, "stdio", str(file or db))),
        tool="query",
        arguments=lambda sql, rows: {"sql": sql},
    )


def tidegate(
    name: str,
    surface: str,
    tool: str,
    *,
    url: str = "",
    env: dict[str, str] | None = None,
    state_name: str = "",
    shared_state: str = "",
    tree: Path | None = None,
    **traits: Any,
) -> Contestant:
    """The gate with everything on: a token over HTTP, the records and history in a fresh state.

    `url` is the source, and `env` holds the secrets that it refers to. The default source is the
    SQLite file. Two gates in one run need different state names. `shared_state` is the URL of a
    fresh database that holds what several gates share. `tree` is a work tree with a `.venv` whose
    Tidegate is to run instead of this one.
    """
    given = dict(env or {})
    settings: tuple[str, ...] = ()
    if shared_state:
        given |= {
            "BENCH_STATE": shared_state,
            "BENCH_STATE_KEY": "the key of one run of measurements",
        }
        settings = ("--config", json.dumps(_SHARED_STATE))
    programs = tree.resolve() / ".venv/bin" if tree else Path(sys.executable).parent
    command = str(programs / "tidegate")
    state = peers.WORK / f"state-{state_name or surface}{'-before' if tree else ''}"
    shutil.rmtree(state, ignore_errors=True)
    token = subprocess.run(
        [
            command,
            "token",
            "create",
            "bench",
            "--scope",
            "readOnly",
            "--state",
            str(state),
            *settings,
        ],
        check=True,
        capture_output=True,
        env=os.environ | given,
        text=True,
        timeout=60,
    ).stdout.strip()

    def launch(db: Path, *arguments: str) -> Launch:
        source = f"shop={url or f'sqlite:///{db}'}"
        serve = ("serve", "--surface", surface, "--source", source, "--state", str(state))
        return Launch((command, *serve, *settings, *arguments), given)

    return Contestant(
        name=name,
        http=lambda port, db: launch(db, "--http", f"127.0.0.1:{port}"),
        stdio=launch,
        tool=tool,
        headers={"Authorization": f"Bearer {token}"},
        **traits,
    )


def core(**source: Any) -> Contestant:
    """The surface `core`; `source` is as for `tidegate`."""
    return tidegate(
        BEFORE if source.get("tree") else GATE,
        "core",
        "query",
        arguments=lambda sql, rows: {"sql": sql} if rows <= 100 else {"sql": sql, "max_rows": rows},
        conversation=(
            ("search", {"words": "invoice customer"}),
            ("query", {"sql": data.JOIN}),
        ),
        analyst=analyst.steps_of_core,
        **source,
    )


def workbench() -> Contestant:
    def learn(ask: Ask) -> Arguments:
        entry = json.loads(ask("list_connections", {}))["connections"][0]
        ask("connect", {"connection_id": entry["id"]})
        return {"connection_id": entry["id"]}

    return tidegate(
        GATE_WORKBENCH,
        "workbench",
        "execute_query",
        arguments=lambda sql, rows: {"query": sql, "max_rows": max(rows, 1)},
        learn=learn,
    )


def dbhub(dsn: str = "") -> Contestant:
    """On the database of `dsn`, or on the SQLite file."""

    def launch(db: Path, *arguments: str) -> Launch:
        database = ("--dsn", dsn or f"sqlite:////{db}")
        return Launch((str(peers.node()), str(peers.DBHUB), *database, *arguments))

    return Contestant(
        name=DBHUB,
        http=lambda port, db: launch(
            db, "--transport", "http", "--host", "127.0.0.1", "--port", str(port)
        ),
        stdio=lambda db: launch(db, "--transport", "stdio"),
        tool="execute_sql",
        arguments=lambda sql, rows: {"sql": sql},
        conversation=(
            ("search_objects", {"object_type": "table", "pattern": "%invoice%"}),
            ("search_objects", {"object_type": "table", "pattern": "%customer%"}),
            ("search_objects", _dbhub_details("invoice")),
            ("search_objects", _dbhub_details("customer")),
            ("execute_sql", {"sql": data.JOIN}),
        ),
        analyst=analyst.steps_of_dbhub,
    )


def _dbhub_details(table: str) -> Arguments:
    return {"object_type": "table", "pattern": table, "detail_level": "full"}


def toolbox(prebuilt: str = "sqlite", env: dict[str, str] | None = None) -> Contestant:
    """With a prebuilt configuration, which finds the database by the variables in `env`."""
    binary = str(peers.TOOLBOX)

    def launch(db: Path, *arguments: str) -> Launch:
        command = (binary, "--prebuilt", prebuilt, "--disable-version-check", *arguments)
        return Launch(command, env or {"SQLITE_DATABASE": str(db)})

    names = {"output_format": "simple"}
    return Contestant(
        name=TOOLBOX,
        http=lambda port, db: launch(db, "--address", "127.0.0.1", "--port", str(port)),
        stdio=lambda db: launch(db, "--stdio"),
        dialect=SESSION,
        tool="execute_sql",
        arguments=lambda sql, rows: {"sql": sql},
        conversation=(
            ("list_tables", names),
            ("list_tables", {"table_names": "customer,invoice"}),
            ("execute_sql", {"sql": data.JOIN}),
        ),
        analyst=analyst.steps_of_toolbox,
    )


def alchemy() -> Contestant:
    def launch(db: Path, *arguments: str) -> Launch:
        return Launch(
            (str(peers.ALCHEMY), *arguments),
            {"DB_URL": f"sqlite:///{db}", "EXECUTE_QUERY_MAX_CHARS": "100000000"},
        )

    return Contestant(
        name=ALCHEMY,
        http=lambda port, db: launch(db, "--transport", "streamable-http", "--port", str(port)),
        stdio=launch,
        tool="execute_query",
        arguments=lambda sql, rows: {"query": sql},
        conversation=(
            ("filter_table_names", {"q": "invoice"}),
            ("filter_table_names", {"q": "customer"}),
            ("schema_definitions", {"table_names": ["customer", "invoice"]}),
            ("execute_query", {"query": data.JOIN}),
        ),
    )


def contestants(
    *, with_peers: bool, only: list[str], before: Path | None = None
) -> list[Contestant]:
    """Who takes part, the floor first; `only` names some of them, in any case of letters. `before`
    is the work tree of another version of Tidegate, which takes part as well."""
    makers: Makers = {FLOOR: floor, GATE: core, GATE_WORKBENCH: workbench}
    if before is not None:
        makers[BEFORE] = lambda: core(tree=before)
    if with_peers:
        makers |= {TOOLBOX: toolbox, DBHUB: dbhub, ALCHEMY: alchemy}
    if not (wanted := chosen(makers, only)):
        raise SystemExit(f"bench: no such server; there are {', '.join(makers)}")
    return wanted


Makers = dict[str, Callable[[], Contestant]]


def chosen(makers: Makers, only: list[str]) -> list[Contestant]:
    """Those that `only` names, in any case of letters; all of them if it names none."""
    names = [name.lower() for name in only]
    return [make() for name, make in makers.items() if not names or name.lower() in names]
