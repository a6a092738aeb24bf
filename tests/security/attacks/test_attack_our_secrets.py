"""A1: no secret of ours in any text that a database, a caller or another session can see, under the
whole corpus of attacks: replies, errors, names of columns, plans, records, lists of sessions, logs.
"""

from __future__ import annotations

import asyncio
import json
from pathlib import Path

import pytest

import support.mysql_server as mysql_server
import support.postgres_server as postgres_server
from security.attacks.test_attack_catalogs import ATTACKS, SCRIPTS
from support import masking_cases
from support.masking_shop import DATA_RULES, ENGINES, ROWS, make, script
from support.server_keeper import PASSWORD
from tidegate.audit.log import AuditLog
from tidegate.engines.registry import engine_of, open_engine
from tidegate.errors import TidegateError
from tidegate.gateway.gateway import Gateway, GatewayOptions
from tidegate.gateway.masking import source_key
from tidegate.gateway.source_connections import SourceConnections
from tidegate.history.history import History
from tidegate.model.actors import Actor, Scope
from tidegate.model.requests import Call, Explain, Query
from tidegate.model.results import Limits, Page
from tidegate.model.source_settings import Mask, RowFilter
from tidegate.model.sources import Source
from tidegate.model.statements import Statement
from tidegate.store.sqlite.state import SqliteState

SECRET = "5ec0de5ec0de" + "d00d" * 5
READER = Actor("tok_attacker", "attacker", Scope.READ_ONLY)
CASES = {
    "postgres": masking_cases.POSTGRES,
    "mysql": masking_cases.MYSQL,
    "sqlite": masking_cases.SQLITE,
    "duckdb": masking_cases.DUCKDB,
}
PROBES = [
    "SELECT * FROM (VALUES ((SELECT email FROM customers LIMIT 1))) v",
    "SELECT CAST(email AS INTEGER) FROM customers",
    "SELECT (SELECT email FROM customers WHERE id = 1)",
    "SELECT email || 1, nope FROM customers",
    "SELECT email AS a, email AS a FROM customers ORDER BY nope(email)",
    "SELECT sum(email) FROM customers GROUP BY email HAVING email > 'a'",
    "SELECT * FROM customers c JOIN customers d ON c.email = d.email WHERE c.email < $1",
    "SELECT $1, $2, ?, ?1, email FROM customers",
    "WITH x AS (SELECT email e FROM customers) SELECT * FROM x WHERE e = (SELECT 1 / 0)",
]
SESSIONS = {
    "postgres": "SELECT query FROM pg_stat_activity UNION ALL SELECT statement"
    " FROM pg_prepared_statements",
    "mysql": "SELECT info FROM information_schema.processlist",
}


def corpus(engine: str) -> list[str]:
    cases = [line[2:] for line in CASES[engine].splitlines() if line[:2] in ("= ", "! ", "? ")]
    return [*PROBES, *cases, *ATTACKS[engine].strip().splitlines()]


def attack(engine: str, directory: Path) -> tuple[str, str]:
    """Send the corpus through the gate; returns all that could be seen of it, and the source's own
    key."""
    url = make(engine, directory, "secretive", [*script(ROWS), *SCRIPTS[engine]])
    database = url.partition("?")[0].rpartition("/")[2]
    if engine == "postgres":
        url = postgres_server.shared().tcp_url(database)
    if engine == "mysql":
        url = mysql_server.shared().tcp_url(database)
    name, dialect = engine_of(url)
    source = Source(
        "s1", "shop", url, name, dialect,
        masks=tuple(Mask(column, show) for column, show in DATA_RULES.masks),
        filters=tuple(RowFilter(table, where) for table, where in DATA_RULES.filters),
    )  # fmt: skip
    seen: list[str] = []

    def look_at_sessions() -> None:
        if engine == "postgres":
            seen.append(repr(postgres_server.shared().ask(SESSIONS[engine], database)))
        if engine == "mysql":
            seen.append(repr(mysql_server.shared().script(SESSIONS[engine])))

    async def run() -> None:
        state = SqliteState(directory / "state.db")
        audit, history = AuditLog(directory / "audit"), History(state.history)
        connections = SourceConnections(state.sources, open_engine, [source])
        gateway = Gateway(connections, audit, history, options=GatewayOptions(lambda: SECRET))
        limits = Limits(max_rows=50, timeout_s=5.0)
        try:
            for number, text in enumerate(corpus(engine)):
                for request in (
                    Query(Statement(text), limits=limits),
                    Explain(Statement(text), limits=limits),
                ):
                    call = Call(
                        READER, "test", "tool", request, scope=Scope.READ_ONLY, source="shop"
                    )
                    try:
                        payload = (await gateway.handle(call)).payload
                    except TidegateError as error:
                        seen.append(repr((error.message, error.hint, error.details)))
                        continue
                    if isinstance(payload, Page):
                        seen.append(repr((payload.columns, payload.rows)))
                if number % 10 == 0:
                    look_at_sessions()
        finally:
            await connections.close()
            history.close()
            audit.close()
            state.close()

    asyncio.run(run())
    for file in [*(directory / "audit").iterdir(), *directory.glob("state.db*")]:
        seen.append(file.read_bytes().decode("utf-8", "replace"))
    return "\n".join(seen), source_key(SECRET, "shop")


@pytest.mark.parametrize("engine", sorted(CASES))
def test_a1_no_one_sees_a_secret_of_ours_under_the_whole_corpus(
    engine: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    if engine not in ENGINES:
        pytest.skip(f"no server of {engine} is installed here")
    monkeypatch.setenv("PGTEST_PASSWORD", PASSWORD)
    monkeypatch.setenv("MYTEST_PASSWORD", PASSWORD)
    seen, key = attack(engine, tmp_path)
    assert "Customer 1" in seen
    for secret in (SECRET, key, key[:24], key[-24:], PASSWORD):
        assert secret not in seen
        assert json.dumps(secret)[1:-1] not in seen


@pytest.mark.needs("mysql")
@pytest.mark.skipif(not mysql_server.available(), reason="needs mariadb-server-core")
def test_a1_the_general_log_of_mariadb_learns_the_key_of_its_own_source_alone(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The server logs bound values. What it logs is worth nothing for other sources."""
    monkeypatch.setenv("MYTEST_PASSWORD", PASSWORD)
    server = mysql_server.shared()
    server.script("SET GLOBAL log_output = 'TABLE'; SET GLOBAL general_log = 1")
    try:
        seen, _ = attack("mysql", tmp_path)
    finally:
        server.script("SET GLOBAL general_log = 0")
    logged = repr(server.script("SELECT argument FROM mysql.general_log"))
    server.script("TRUNCATE mysql.general_log; SET GLOBAL log_output = 'FILE'")
    assert "customers" in logged
    for secret in (SECRET, source_key(SECRET, "other"), PASSWORD):
        assert secret not in logged and secret not in seen


def test_a1_each_source_has_a_key_of_its_own_that_stays() -> None:
    keys = [source_key(SECRET, name) for name in ("shop", "crm", "shop")]
    assert keys[0] == keys[2] != keys[1]
    assert SECRET not in keys[0] and len(keys[0]) == 64 and keys[0].isalnum()
