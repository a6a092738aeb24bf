"""The pipeline: nothing runs unjudged, undecided or unrecorded, and every call leaves a trail."""

from __future__ import annotations

import ast
import asyncio
import gc
import json
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import apsw
import pytest

from tidegate.audit.log import AuditLog
from tidegate.engines.api import Engine
from tidegate.engines.registry import open_engine
from tidegate.errors import Code, TidegateError
from tidegate.gateway.gateway import Gateway
from tidegate.gateway.source_connections import SourceConnections
from tidegate.history.history import History
from tidegate.model.actors import Actor, Scope
from tidegate.model.cancellation import Cancellation
from tidegate.model.requests import Browse, Call, Explain, FetchMore, ListSources, Query, Request
from tidegate.model.results import Limits, Page
from tidegate.model.schema import Catalog
from tidegate.model.sources import Source
from tidegate.model.statements import Statement
from tidegate.store.sqlite.state import SqliteState

READER = Actor("reader", "reader", Scope.READ_ONLY)
WRITER = Actor("writer", "writer", Scope.READ_WRITE)


class Harness:
    """A gateway over one SQLite file, with its records at hand."""

    def __init__(self, directory: Path, *, writable: bool = False) -> None:
        self.file = directory / "shop.db"
        with apsw.Connection(str(self.file)) as made:
            made.execute("CREATE TABLE t(id INTEGER PRIMARY KEY, name TEXT)")
            made.executemany("INSERT INTO t VALUES (?, ?)", [(n, f"n{n}") for n in range(1, 51)])
        self.directory = directory
        self.state = SqliteState(directory / "state.db")
        self.history = History(self.state.history)
        self.audit = AuditLog(directory / "audit")
        self.source = Source(
            id="11111111-1111-4111-8111-111111111111",
            name="shop",
            url=f"sqlite:///{self.file}",
            engine="sqlite",
            dialect="sqlite",
            access="write" if writable else "readOnly",
        )
        self.connections = SourceConnections(self.state.sources, open_engine, [self.source])
        self.gateway = Gateway(self.connections, self.audit, self.history)

    async def ask(self, request: Request, actor: Actor = READER, **fields: Any) -> Any:
        scope = fields.pop("scope", Scope.READ_ONLY)
        fields.setdefault("source", "shop")
        call = Call(actor, "test", "tool", request, scope=scope, **fields)
        return (await self.gateway.handle(call)).payload

    def events(self) -> list[dict[str, Any]]:
        lines = [
            json.loads(line)
            for file in sorted((self.directory / "audit").glob("*.jsonl"))
            for line in file.read_text().splitlines()
        ]
        return [line for line in lines if line["phase"] != "open"]

    def rows(self) -> int:
        with apsw.Connection(str(self.file)) as seen:
            return seen.execute("SELECT count(*) FROM t").fetchall()[0][0]

    async def close(self) -> None:
        await self.connections.close()
        self.history.close()
        self.audit.close()
        self.state.close()


@asynccontextmanager
async def harness(directory: Path, **options: bool) -> AsyncIterator[Harness]:
    built = Harness(directory, **options)
    try:
        yield built
    finally:
        await built.close()


def query(text: str, **fields: Any) -> Query:
    return Query(Statement(text), **fields)


def test_a_source_that_no_one_waits_for_any_more_fails_unheard(tmp_path: Path) -> None:
    unheard: list[dict[str, Any]] = []

    async def scenario() -> None:
        loop = asyncio.get_running_loop()
        loop.set_exception_handler(lambda _, context: unheard.append(context))
        goes_on, begun = asyncio.Event(), asyncio.Event()

        async def fail(source: Source) -> Engine:
            begun.set()
            await goes_on.wait()
            raise TidegateError(Code.SOURCE_UNREACHABLE, "no one answers")

        async with harness(tmp_path) as built:
            connections = SourceConnections(built.state.sources, fail, [built.source])
            connection = connections.find("shop", READER)
            waiting = asyncio.ensure_future(connections.engine(connection))
            await begun.wait()
            opening = connection.opening
            assert opening is not None
            waiting.cancel()
            await asyncio.wait((waiting,))
            goes_on.set()
            await asyncio.wait((opening,))
            assert connection.error == "no one answers"
            del opening, waiting
            gc.collect()

    asyncio.run(scenario())
    assert unheard == []


def test_a_read_is_answered_and_leaves_one_event(tmp_path: Path) -> None:
    async def scenario() -> None:
        async with harness(tmp_path) as built:
            page: Page = await built.ask(query("SELECT name FROM t WHERE id = 3"))
            assert json.loads(page.rows) == [["n3"]]
            (event,) = built.events()
            assert event["phase"] == "outcome"
            assert event["statement"] == "SELECT name FROM t WHERE id = 3"
            assert (event["actor"], event["source"], event["effect"]) == ("reader", "shop", "read")
            built.history.flush()
            (entry,) = built.history.search("name", sources=None)
            assert entry.success

    asyncio.run(scenario())


@pytest.mark.parametrize(
    "text",
    [
        "DELETE FROM t",
        "DROP TABLE t",
        "SELECT 1; DELETE FROM t",
        "gibberish",
        "PRAGMA user_version=3",
    ],
)
def test_what_is_refused_is_recorded_and_changes_nothing(tmp_path: Path, text: str) -> None:
    async def scenario() -> None:
        async with harness(tmp_path) as built:
            with pytest.raises(TidegateError) as refused:
                await built.ask(query(text))
            assert refused.value.hint
            (event,) = built.events()
            assert (event["phase"], event["code"]) == ("refusal", refused.value.code.value)
            assert built.rows() == 50

    asyncio.run(scenario())


def test_a_write_is_on_record_before_it_runs_and_after(tmp_path: Path) -> None:
    async def scenario() -> None:
        async with harness(tmp_path, writable=True) as built:
            page: Page = await built.ask(
                query("INSERT INTO t(name) VALUES ('new')"), WRITER, scope=Scope.READ_ONLY
            )
            assert page.affected == 1
            assert [event["phase"] for event in built.events()] == ["intent", "outcome"]
            assert built.rows() == 51

    asyncio.run(scenario())


def test_a_change_that_returns_more_rows_than_are_shown_is_committed_whole(tmp_path: Path) -> None:
    async def scenario() -> None:
        async with harness(tmp_path, writable=True) as built:
            page: Page = await built.ask(
                query(
                    "UPDATE t SET name = 'same' WHERE id < 50 RETURNING id",
                    limits=Limits(max_rows=5),
                ),
                WRITER,
            )
            assert page.row_count == 5
            assert page.truncations[0].kind == "rows"
            again: Page = await built.ask(query("SELECT count(*) FROM t WHERE name = 'same'"))
            assert json.loads(again.rows) == [[49]]

    asyncio.run(scenario())


def test_nothing_that_writes_runs_if_the_record_cannot_be_written(tmp_path: Path) -> None:
    async def scenario() -> None:
        async with harness(tmp_path, writable=True) as built:
            built.audit.close()
            with pytest.raises(TidegateError) as refused:
                await built.ask(query("INSERT INTO t(name) VALUES ('unseen')"), WRITER)
            assert refused.value.code is Code.AUDIT_UNAVAILABLE
            assert built.rows() == 50
            with pytest.raises(TidegateError) as unread:
                await built.ask(query("SELECT 1"))
            assert unread.value.code is Code.AUDIT_UNAVAILABLE

    asyncio.run(scenario())


def test_explaining_a_write_runs_nothing(tmp_path: Path) -> None:
    async def scenario() -> None:
        async with harness(tmp_path) as built:
            page: Page = await built.ask(Explain(Statement("DELETE FROM t WHERE id = 1")))
            assert page.row_count >= 1
            for trick in (
                "QUERY PLAN DELETE FROM t",
                "ANALYZE DELETE FROM t",
                "SELECT 1; DELETE FROM t",
            ):
                with pytest.raises(TidegateError):
                    await built.ask(Explain(Statement(trick)))
            assert built.rows() == 50

    asyncio.run(scenario())


def test_an_unknown_source_names_what_there_is(tmp_path: Path) -> None:
    async def scenario() -> None:
        async with harness(tmp_path) as built:
            with pytest.raises(TidegateError) as unknown:
                await built.ask(query("SELECT 1"), source="shpo")
            assert unknown.value.code is Code.SOURCE_UNKNOWN
            assert "shop" in unknown.value.hint
            assert built.events()[0]["source"] == "shpo"

    asyncio.run(scenario())


def test_the_only_source_needs_no_name_and_a_foreign_one_is_refused(tmp_path: Path) -> None:
    async def scenario() -> None:
        async with harness(tmp_path) as built:
            assert isinstance(await built.ask(query("SELECT 1"), source=None), Page)
            elsewhere = Actor("x", "x", Scope.FULL_ACCESS, sources=frozenset({"other"}))
            with pytest.raises(TidegateError) as refused:
                await built.ask(query("SELECT 1"), elsewhere)
            assert refused.value.code is Code.POLICY_SOURCE
            assert await built.ask(ListSources(), elsewhere, source=None) == ()

    asyncio.run(scenario())


def test_a_shelved_result_goes_on_where_it_stopped_and_belongs_to_its_actor(tmp_path: Path) -> None:
    async def scenario() -> None:
        async with harness(tmp_path) as built:
            text = "SELECT id FROM t ORDER BY id"
            page: Page = await built.ask(query(text, limits=Limits(max_rows=20), keep_rest=True))
            seen = json.loads(page.rows)
            assert page.more is not None
            stranger = Actor("other", "other", Scope.READ_ONLY)
            with pytest.raises(TidegateError) as gone:
                await built.ask(FetchMore(page.more, 20), stranger)
            assert gone.value.code is Code.RESULT_GONE
            handle: str | None = page.more
            while handle is not None:
                rest: Page = await built.ask(FetchMore(handle, 20))
                seen += json.loads(rest.rows)
                handle = rest.more
            assert seen == [[n] for n in range(1, 51)]
            assert rest.truncations == ()
            with pytest.raises(TidegateError):
                await built.ask(FetchMore(page.more, 20))

    asyncio.run(scenario())


def test_a_call_that_was_cancelled_before_it_began_does_not_run(tmp_path: Path) -> None:
    async def scenario() -> None:
        async with harness(tmp_path) as built:
            gone = Cancellation()
            gone.cancel("left")
            with pytest.raises(TidegateError) as cancelled:
                await built.ask(query("SELECT 1"), cancellation=gone)
            assert cancelled.value.code is Code.CALL_CANCELLED

    asyncio.run(scenario())


def test_the_catalog_is_read_once_until_the_schema_changes(tmp_path: Path) -> None:
    async def scenario() -> None:
        async with harness(tmp_path) as built:
            first: Catalog = await built.ask(Browse("catalog"))
            assert await built.ask(Browse("catalog")) is first
            with apsw.Connection(str(built.file)) as other:
                other.execute("CREATE TABLE added(id)")
            second: Catalog = await built.ask(Browse("catalog"))
            assert "added" in [table.name for table in second.tables]

    asyncio.run(scenario())


def test_progress_is_reported_in_four_stages(tmp_path: Path) -> None:
    async def scenario() -> None:
        async with harness(tmp_path) as built:
            reported: list[tuple[float, str]] = []
            await built.ask(
                query("SELECT 1"), progress=lambda share, stage: reported.append((share, stage))
            )
            assert reported == [
                (0.0, "Connecting"),
                (0.2, "Executing"),
                (0.8, "Formatting result"),
                (1.0, "Done"),
            ]

    asyncio.run(scenario())


def test_a_permit_is_made_in_one_place() -> None:
    sources = Path(__file__).parents[3] / "src" / "tidegate"
    makers = [
        file.relative_to(sources).as_posix()
        for file in sources.rglob("*.py")
        for node in ast.walk(ast.parse(file.read_text()))
        if isinstance(node, ast.Call) and getattr(node.func, "id", "") == "Permit"
    ]
    assert set(makers) == {"gateway/context.py"}
