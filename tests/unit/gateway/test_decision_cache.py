"""A decision that is kept is for its own text, source, caller and tool, and for nothing else."""

from __future__ import annotations

import asyncio
import inspect
import re
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

import apsw
import msgspec
import pytest

from support.judge_cases import load
from tidegate.audit.log import AuditLog
from tidegate.engines.registry import open_engine
from tidegate.errors import Code, TidegateError
from tidegate.gateway import decision
from tidegate.gateway.context import CallContext
from tidegate.gateway.gateway import Gateway
from tidegate.gateway.source_connection import DecisionKey
from tidegate.gateway.source_connections import SourceConnections
from tidegate.history.history import History
from tidegate.model.actors import Actor, Scope
from tidegate.model.decisions import Verdict
from tidegate.model.requests import Call, Query, Request
from tidegate.model.source_settings import Mask
from tidegate.model.sources import Source
from tidegate.model.statements import Effect, Judgement, Statement
from tidegate.policy import verdict
from tidegate.policy.rules import PolicyInput
from tidegate.sql.fingerprint import fingerprint
from tidegate.sql.language import SqlLanguage
from tidegate.store.sqlite.state import SqliteState

READER = Actor("reader", "reader", Scope.READ_ONLY)
ELSEWHERE = Actor("reader", "reader", Scope.READ_ONLY, frozenset({"other"}))
WRITER = Actor("writer", "writer", Scope.READ_WRITE)
READ = "SELECT name FROM t WHERE id = 1"
CHANGE = "UPDATE t SET name = 'changed' WHERE id = 1"


@asynccontextmanager
async def gateway_over(state: SqliteState, directory: Path) -> AsyncIterator[Gateway]:
    """A gateway that knows nothing yet, over the sources of a state."""
    history, audit = History(state.history), AuditLog(directory / "audit")
    connections = SourceConnections(state.sources, open_engine)
    try:
        yield Gateway(connections, audit, history)
    finally:
        await connections.close()
        history.close()
        audit.close()


async def outcomes_of(
    state: SqliteState, directory: Path, actor: Actor, texts: list[str]
) -> list[object]:
    """What a new gateway gives for statements one after the other: rows and the count of changes,
    or the whole refusal."""
    found: list[object] = []
    async with gateway_over(state, directory) as gateway:
        for text in texts:
            call = Call(actor, "test", "tool", Query(Statement(text)), source="shop")
            try:
                payload = (await gateway.handle(call)).payload
                found.append((payload.rows, payload.affected))
            except TidegateError as error:
                found.append((error.code, error.message, error.hint, error.details))
    return found


def test_a_kept_decision_is_not_given_to_another_caller_tool_or_source(tmp_path: Path) -> None:
    file = tmp_path / "shop.db"
    with apsw.Connection(str(file)) as made:
        made.execute("CREATE TABLE t(id INTEGER PRIMARY KEY, name TEXT)")
        made.execute("INSERT INTO t VALUES (1, 'first')")
    source = Source("1", "shop", f"sqlite:///{file}", "sqlite", "sqlite", access="write")

    async def scenario() -> None:
        state = SqliteState(tmp_path / "state.db")
        history, audit = History(state.history), AuditLog(tmp_path / "audit")
        state.sources.add(source)
        connections = SourceConnections(state.sources, open_engine)
        gateway = Gateway(connections, audit, history)

        async def ask(text: str, actor: Actor, **fields: bool) -> bytes:
            call = Call(actor, "test", "tool", Query(Statement(text)), source="shop", **fields)
            return (await gateway.handle(call)).payload.rows

        async def refused(text: str, actor: Actor, **fields: bool) -> Code:
            with pytest.raises(TidegateError) as refusal:
                await ask(text, actor, **fields)
            return refusal.value.code

        try:
            for _ in range(2):
                assert await ask(READ, READER) == b'[["first"]]'
                assert await refused(READ, ELSEWHERE) is Code.POLICY_SOURCE
                assert await refused(READ, READER, confirmed=True) is Code.CONFIRM_NEEDLESS
            await ask(CHANGE, WRITER)
            assert await refused(CHANGE, READER) is Code.POLICY_SCOPE
            assert await refused(CHANGE, WRITER, reads_only=True) is Code.POLICY_READ_ONLY
            masked = msgspec.structs.replace(source, masks=(Mask("t.name", "nothing"),))
            assert await ask(READ, READER) == b'[["changed"]]'
            assert state.sources.change(masked, source)
            assert await ask(READ, READER) == b"[[null]]"
            closed = msgspec.structs.replace(masked, access="none")
            assert state.sources.change(closed, masked)
            assert await refused(READ, READER) is Code.POLICY_BLOCKED
            with apsw.Connection(str(file)) as seen:
                assert seen.execute("SELECT name FROM t").get == "changed"
        finally:
            await connections.close()
            history.close()
            audit.close()
            state.close()

    asyncio.run(scenario())


class ReadsValues(SqlLanguage):
    """A language that looks at the values of a text."""

    def classify(self, request: Request, source: Source) -> Judgement:
        judgement = super().classify(request, source)
        if isinstance(request, Query) and "13" in request.statement.text:
            return msgspec.structs.replace(
                judgement, effect=Effect.UNKNOWN, reason="13", code="policy.denied"
            )
        return judgement


def test_a_language_that_may_read_values_is_asked_about_each(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    file = tmp_path / "shop.db"
    with apsw.Connection(str(file)) as made:
        made.execute("CREATE TABLE t(id INTEGER PRIMARY KEY, name TEXT)")
    source = Source("1", "shop", f"sqlite:///{file}", "sqlite", "sqlite")
    monkeypatch.setattr(decision, "language_of", lambda source: ReadsValues())

    async def scenario() -> None:
        state = SqliteState(tmp_path / "state.db")
        state.sources.add(source)

        async def ask(gateway: Gateway, number: int) -> bytes:
            text = f"SELECT name FROM t WHERE id = {number}"
            call = Call(READER, "test", "tool", Query(Statement(text)), source="shop")
            return (await gateway.handle(call)).payload.rows

        try:
            async with gateway_over(state, tmp_path) as gateway:
                for number in (7, 8):  # the first is the fingerprint of all
                    assert await ask(gateway, number) == b"[]"
                    with pytest.raises(TidegateError, match="13"):
                        await ask(gateway, 13)
        finally:
            state.close()

    asyncio.run(scenario())


CHANGING = re.compile("recursive|random|now|current|date|time|julian|changes|rowid", re.IGNORECASE)
"""Statements that take long or say something else each time."""
NUMBER = re.compile(r"(?<![\w.'\"])\d{1,3}(?![\w.'\"])")


def pairs() -> list[tuple[str, str]]:
    """Statements of the judge's corpus that have a whole number, each with one that has others."""
    texts = [each.sql for each in load() if each.dialect == "sqlite"]
    texts = [text for text in texts if len(text) < 400 and not CHANGING.search(text)]
    made = [(text, NUMBER.sub(lambda found: str(int(found[0]) + 13), text)) for text in texts]
    return [(one, other) for one, other in made if fingerprint(one) == fingerprint(other) != one]


def test_a_decision_for_statements_alike_is_what_each_would_get_by_itself(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    file = tmp_path / "shop.db"
    with apsw.Connection(str(file)) as made:
        made.execute("CREATE TABLE t(id INTEGER PRIMARY KEY, name TEXT, a, b, c)")
        made.execute("CREATE TABLE users(id INTEGER PRIMARY KEY, name TEXT)")
    source = Source("1", "shop", f"sqlite:///{file}", "sqlite", "sqlite", access="write")
    classified: list[str] = []
    classify = decision.classify

    async def count(ctx: CallContext) -> None:
        classified.append(ctx.call.request.statement.text)
        await classify(ctx)

    monkeypatch.setattr(decision, "classify", count)

    async def scenario() -> None:
        state = SqliteState(tmp_path / "state.db")
        state.sources.add(source)
        texts = [text for pair in pairs() for text in pair]
        assert len(texts) > 100
        try:
            quick = await outcomes_of(state, tmp_path, READER, texts)
            alike = len(classified)
            monkeypatch.setattr(decision, "_alike", lambda ctx, text: None)
            assert quick == await outcomes_of(state, tmp_path, READER, texts)
        finally:
            state.close()
        # Those that read were classified once for each pair.
        assert alike < len(classified) - alike <= len(texts)

    asyncio.run(scenario())


@pytest.mark.parametrize(
    "one",
    [
        "UPDATE t SET name = 'x' WHERE id = 7 OR 7 > 7",
        "UPDATE t SET name = 'x' WHERE id = 7 OR 5 > 7",
    ],
)
def test_what_is_known_of_a_change_is_not_given_to_one_that_differs_in_plain_values(
    tmp_path: Path, one: str
) -> None:
    """A text may be its own fingerprint as well: `7` is what stands for every number."""
    file = tmp_path / "shop.db"
    with apsw.Connection(str(file)) as made:
        made.execute("CREATE TABLE t(id INTEGER PRIMARY KEY, name TEXT)")
        made.execute("INSERT INTO t VALUES (1, 'first'), (2, 'second')")
    source = Source("1", "shop", f"sqlite:///{file}", "sqlite", "sqlite", access="write")
    all_rows = "UPDATE t SET name = 'x' WHERE id = 7 OR 8 > 7"
    assert fingerprint(all_rows) == fingerprint(one)

    state = SqliteState(tmp_path / "state.db")
    state.sources.add(source)
    try:
        alone = asyncio.run(outcomes_of(state, tmp_path, WRITER, [all_rows]))
        both = asyncio.run(outcomes_of(state, tmp_path, WRITER, [one, all_rows]))
    finally:
        state.close()
    assert both == [(b"[]", 0), *alone]


def test_a_rule_that_looks_at_the_tables_of_a_read_is_asked_about_each(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Whatever a rule looks at, the verdict on one statement is not given to another."""

    def closed_table(case: PolicyInput) -> Verdict | None:
        found = "pay" in case.judgement.tables
        return Verdict("deny", "test.table", "This table is closed") if found else None

    monkeypatch.setattr(verdict, "_LOOKS", (closed_table,))
    monkeypatch.setattr(verdict, "_kept", {})
    source = Source("1", "shop", "sqlite:///a.db", "sqlite", "sqlite")
    shop = Judgement(Effect.READ, "read", "Reads only", tables=("shop",))
    pay = msgspec.structs.replace(shop, tables=("pay",))
    for _ in range(2):
        assert verdict.evaluate(READER, source, Scope.READ_ONLY, shop).kind == "allow"
        assert verdict.evaluate(READER, source, Scope.READ_ONLY, pay).kind == "deny"


def test_the_keys_of_kept_decisions_have_all_that_a_rule_looks_at() -> None:
    """Who lets rules look at more must add it to both keys, then here."""
    looked_at = {"actor", "source", "scope", "judgement", "confirmed", "reads_only"}
    # Rules for classes of statements are about changes alone, and only verdicts on reads are kept.
    of_changes = {"statements"}
    assert set(PolicyInput.__struct_fields__) == looked_at | of_changes
    assert set(inspect.signature(verdict.evaluate).parameters) == looked_at | of_changes
    # The gateway's key has the text in place of the judgement; a connection has one source.
    assert len(DecisionKey.__args__) == len(looked_at) - 1
