"""What the gate says it would do is what it does: the same rule, asked in the same order."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import apsw
import pytest
from msgspec import structs

from tidegate.audit.log import AuditLog
from tidegate.engines.registry import open_engine
from tidegate.errors import Code, TidegateError
from tidegate.gateway.gateway import Gateway
from tidegate.gateway.source_connections import SourceConnections
from tidegate.history.history import History
from tidegate.model.actors import Actor, Scope
from tidegate.model.requests import Browse, Call, Query, Request
from tidegate.model.source_settings import Mask, RowFilter
from tidegate.model.sources import Source
from tidegate.model.statements import Effect, Statement
from tidegate.policy.explanation import Explanation
from tidegate.store.sqlite.state import SqliteState

SCHEMA = """
    CREATE TABLE t (id INTEGER PRIMARY KEY, name TEXT);
    CREATE TABLE s (id INTEGER PRIMARY KEY, note TEXT);
    INSERT INTO t VALUES (1, 'a'), (2, 'b');
    CREATE VIEW plain AS SELECT id FROM s;
"""
SOURCES: dict[str, dict[str, Any]] = {
    "open": {},
    "masked": {"masks": (Mask("t.name", "nothing"),)},
    "filtered": {"filters": (RowFilter("t", "id = 1"),)},
    "asking": {"approval_for": "writes"},
    "fixed": {"changes": "deny"},
    "scoped": {"destructive_scope": "fullAccess"},
    "relaxed": {"unqualified": "allow"},
    "read": {"access": "read"},
}
ACTORS = {
    "writer": Actor("writer", "writer", Scope.READ_WRITE),
    "reader": Actor("reader", "reader", Scope.READ_ONLY),
    "listed": Actor("listed", "listed", Scope.READ_WRITE, tables=frozenset({"s"})),
}
FAILS = "SELECT * FROM nowhere"
"""What no rule refuses, and the database does when it runs."""
STATEMENTS = (
    "SELECT name FROM t",
    "SELECT * FROM plain",
    FAILS,
    "SELECT load_extension('x')",
    "SELECT sql FROM sqlite_schema",
    "UPDATE t SET name = 'c' WHERE id = 3",
    "UPDATE t SET name = name || 'c'",
    "DELETE FROM t",
    "DELETE FROM s WHERE id = 3",
    "DROP TABLE s",
    "gibberish",
    "SELECT 1; SELECT 2",
)


async def said(gateway: Gateway, call: Call) -> tuple[str, str]:
    """What the gate does, by what it raises: the code and the rule."""
    try:
        await gateway.handle(call)
    except TidegateError as refusal:
        return refusal.code.value, refusal.details.get("rule", "")
    return "", ""


def explained(explanation: Explanation) -> tuple[str, str]:
    verdict = explanation.verdict
    if verdict.kind == "allow":
        return "", ""
    if verdict.kind == "ask":
        return Code.APPROVAL_NEEDED.value, ""
    return verdict.code or Code.POLICY_DENIED.value, verdict.rule


def call(request: Request, actor: Actor) -> Call:
    scope = Scope.READ_ONLY if actor.scope is Scope.READ_ONLY else Scope.READ_WRITE
    return Call(actor, "test", "tool", request, scope=scope, source="shop")


@asynccontextmanager
async def gateway_over(directory: Path, source: Source) -> AsyncIterator[Gateway]:
    state = SqliteState(directory / "state.db")
    audit, history = AuditLog(directory / "audit"), History(state.history)
    connections = SourceConnections(state.sources, open_engine, [source])
    try:
        yield Gateway(connections, audit, history)
    finally:
        await connections.close()
        history.close()
        audit.close()
        state.close()


def rows(directory: Path) -> list[tuple[Any, ...]]:
    with apsw.Connection(str(directory / "shop.db")) as seen:
        return seen.execute("SELECT * FROM t").fetchall()


@pytest.fixture
def shop(tmp_path: Path) -> Source:
    with apsw.Connection(str(tmp_path / "shop.db")) as made:
        made.execute(SCHEMA)
    url = f"sqlite:///{tmp_path}/shop.db"
    return Source("s1", "shop", url, "sqlite", "sqlite", access="write")


@pytest.mark.parametrize("actor", ACTORS)
@pytest.mark.parametrize("source", SOURCES)
async def test_e_the_explanation_names_the_rule_that_decides(
    tmp_path: Path, shop: Source, source: str, actor: str
) -> None:
    settings = structs.replace(shop, **SOURCES[source])
    async with gateway_over(tmp_path, settings) as gateway:
        for statement in STATEMENTS:
            asked = call(Query(Statement(statement)), ACTORS[actor])
            _, explanation = await gateway.explain(asked)
            did = await said(gateway, asked)
            if statement == FAILS and explained(explanation) == ("", ""):
                assert did == (Code.SQL_FAILED.value, "")
            else:
                assert explained(explanation) == did, statement


async def test_explaining_changes_nothing_and_asks_no_data_rule_of_a_refused_statement(
    tmp_path: Path, shop: Source
) -> None:
    async with gateway_over(tmp_path, structs.replace(shop, **SOURCES["masked"])) as gateway:
        request = Query(Statement("UPDATE t SET name = name || 'c'"))
        judgement, explanation = await gateway.explain(call(request, ACTORS["writer"]))
    assert explanation.verdict.kind == "confirm"
    assert judgement.effect is Effect.WRITE
    assert "source.masking" not in [finding.rule for finding in explanation.findings]
    assert rows(tmp_path) == [(1, "a"), (2, "b")]


@pytest.mark.parametrize(
    ("source", "last"), [("open", "source.approval"), ("masked", "source.masking")]
)
async def test_the_data_rules_are_a_finding_where_there_are_any(
    tmp_path: Path, shop: Source, source: str, last: str
) -> None:
    async with gateway_over(tmp_path, structs.replace(shop, **SOURCES[source])) as gateway:
        request = Query(Statement("SELECT id FROM t"))
        _, explanation = await gateway.explain(call(request, ACTORS["writer"]))
    assert explanation.verdict.kind == "allow"
    assert explanation.findings[-1].rule == last
    assert explanation.findings[-1].verdict is None


async def test_metadata_is_explained_without_opening_the_database(
    tmp_path: Path, shop: Source
) -> None:
    gone = structs.replace(shop, url=f"sqlite:///{tmp_path}/nowhere.db")
    async with gateway_over(tmp_path, gone) as gateway:
        _, explanation = await gateway.explain(call(Browse("tables"), ACTORS["reader"]))
    assert explanation.verdict.kind == "allow"
