"""The ends of the pipeline that few calls reach: none of them runs, leaks or forgets anything."""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any, ClassVar

import apsw
import duckdb
import pytest
from msgspec import structs

from support.audit_records import records
from tidegate.approvals.approvals import ApprovalNeeded, Approvals
from tidegate.audit.log import AuditLog
from tidegate.config.model import ApprovalSettings
from tidegate.engines.registry import open_engine
from tidegate.errors import Code, TidegateError
from tidegate.gateway.concurrency import MOST_AT_ONCE
from tidegate.gateway.gateway import Gateway
from tidegate.gateway.result_cache import MAX_KEPT_ROWS
from tidegate.gateway.source_connections import SourceConnections
from tidegate.history.history import History
from tidegate.model.actors import Actor, Scope
from tidegate.model.decisions import Permit
from tidegate.model.requests import (
    METADATA,
    Browse,
    Call,
    FetchMore,
    ListSources,
    Query,
    Request,
    Sample,
)
from tidegate.model.results import Limits, Page, Truncation
from tidegate.model.schema import Catalog, Ddl
from tidegate.model.source_settings import Mask, RowFilter
from tidegate.model.sources import Source
from tidegate.model.statements import Judgement, Statement
from tidegate.store.sqlite.state import SqliteState

WRITER = Actor("writer", "writer", Scope.READ_WRITE)
PERSON = Actor("ann", "ann", Scope.READ_WRITE, kind="human")
LISTED = Actor("listed", "listed", Scope.READ_WRITE, tables=frozenset({"t"}))
MANY = (
    "WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < {}) SELECT i FROM n"
)


class Odd(Request, frozen=True):
    """A request that nothing handles."""

    kind: ClassVar[str] = "odd"
    judgement: ClassVar[Judgement | None] = METADATA


class Shop:
    def __init__(self, directory: Path, **settings: Any) -> None:
        self.directory = directory
        with apsw.Connection(str(directory / "shop.db")) as made:
            made.execute("CREATE TABLE t (id INTEGER PRIMARY KEY, name TEXT)")
            made.execute("CREATE TABLE s (id INTEGER PRIMARY KEY)")
            made.execute("INSERT INTO t VALUES (1, 'a')")
        url = f"sqlite:///{directory}/shop.db"
        self.source = Source("s1", "shop", url, "sqlite", "sqlite", access="write")
        self.source = structs.replace(self.source, **settings)
        self.state = SqliteState(directory / "state.db")
        self.state.sources.add(self.source)
        self.audit, self.history = AuditLog(directory / "audit"), History(self.state.history)
        self.approvals = Approvals(self.state.approvals, ApprovalSettings(wait_s=30))
        self.connections = SourceConnections(self.state.sources, open_engine, [])
        self.gateway = Gateway(self.connections, self.audit, self.history, approvals=self.approvals)

    async def ask(self, request: Request | str, actor: Actor = WRITER, **more: Any) -> Any:
        wanted = Query(Statement(request)) if isinstance(request, str) else request
        call = Call(
            actor, "core", "query", wanted, **{"scope": Scope.READ_ONLY, "source": "shop", **more}
        )
        return (await self.gateway.handle(call)).payload

    def names(self) -> list[str]:
        seen = apsw.Connection(str(self.directory / "shop.db"))
        try:
            return [row[0] for row in seen.execute("SELECT name FROM t")]
        finally:
            seen.close()

    def codes(self) -> list[str]:
        """The codes on record."""
        text = "".join(path.read_text() for path in sorted((self.directory / "audit").iterdir()))
        found = [json.loads(line) for line in text.splitlines()]
        return [line["code"] for line in found if line.get("code")]


@asynccontextmanager
async def shop(directory: Path, **settings: Any) -> AsyncIterator[Shop]:
    built = Shop(directory, **settings)
    try:
        yield built
    finally:
        await built.connections.close()
        built.history.close()
        built.audit.close()
        built.state.close()


async def test_a_source_that_changes_while_a_person_is_asked_refuses_the_call(
    tmp_path: Path,
) -> None:
    async with shop(tmp_path, approval_for="writes") as built:

        def answer(share: float, text: str) -> None:
            if text == "Waiting for approval":
                built.state.sources.remove("shop")
                built.state.sources.add(structs.replace(built.source, tags=("other",)))
                (question,) = built.approvals.list()
                built.approvals.resolve(question.id, "allowed", "cli:ann")

        with pytest.raises(TidegateError) as refused:
            await built.ask("UPDATE t SET name = 'b' WHERE id = 1", progress=answer)
        assert "changed while the call waited" in refused.value.message
        assert built.names() == ["a"]


async def test_a_source_that_changes_while_it_is_opened_is_closed_and_refuses_the_call(
    tmp_path: Path,
) -> None:
    async with shop(tmp_path) as built:
        opened: list[Any] = []

        async def open_and_change(source: Source) -> Any:
            engine = await open_engine(source)
            if not opened:
                built.state.sources.remove("shop")
                built.state.sources.add(structs.replace(source, access="read"))
                assert built.connections.find("shop", WRITER).source.access == "read"
            opened.append(engine)
            return engine

        built.connections = SourceConnections(built.state.sources, open_and_change, [])
        built.gateway = Gateway(built.connections, built.audit, built.history)
        with pytest.raises(TidegateError) as refused:
            await built.ask("UPDATE t SET name = 'b' WHERE id = 1")
        assert "changed while the call began" in refused.value.message
        assert built.names() == ["a"]
        with pytest.raises(TidegateError) as closed:
            await opened[0].schema_version()
        assert closed.value.code is Code.SOURCE_NOT_CONNECTED
        assert (await built.ask("SELECT name FROM t")).rows == b'[["a"]]'


async def test_dry_runs_give_back_the_caller_s_share(tmp_path: Path) -> None:
    async with shop(tmp_path, approval_for="writes") as built:
        for number in range(2 * MOST_AT_ONCE):
            with pytest.raises(ApprovalNeeded) as needed:
                change = f"UPDATE t SET name = 'b{number}' WHERE id = 1"
                await built.ask(change, can_ask=True)
            dry_run = needed.value.question.dry_run
            assert dry_run is not None and dry_run.affected == 1
        assert built.names() == ["a"]


async def test_a_change_that_was_tried_is_on_record_as_tried_and_as_ended(tmp_path: Path) -> None:
    async with shop(tmp_path, approval_for="writes") as built:
        with pytest.raises(ApprovalNeeded):
            await built.ask("UPDATE t SET name = 'b' WHERE id = 1", can_ask=True)
        with pytest.raises(ApprovalNeeded):
            await built.ask("INSERT INTO t VALUES (1, 'twice')", can_ask=True)
        tried: dict[str, list[tuple[str, str | None]]] = {}
        for each in records(tmp_path):
            if str(each.get("call_id")).endswith("-dry"):
                tried.setdefault(each["call_id"], []).append((each["phase"], each.get("code")))
    assert list(tried.values()) == [
        [("intent", None), ("outcome", None)],
        [("intent", None), ("outcome", Code.SQL_FAILED.value)],
    ]


async def test_no_call_is_under_way_once_it_was_answered_refused_or_given_up(
    tmp_path: Path,
) -> None:
    async with shop(tmp_path, approval_for="writes") as built:
        running, seen = built.gateway.running, list[str]()

        def look(share: float, text: str) -> None:
            seen.extend(call.statement for call in running.oldest(10, lambda *_: True)[0])

        await built.ask("SELECT 1")
        for refused in (Odd(), "SELECT nothing FROM nowhere", "DELETE FROM t WHERE id = 1"):
            with pytest.raises(TidegateError):
                await built.ask(refused, can_ask=True)
        endless = f"SELECT count(*) FROM ({MANY.format(10**12)})"
        given_up = asyncio.create_task(built.ask(endless, progress=look))
        while not seen:
            await asyncio.sleep(0)
        assert seen[0] == endless
        given_up.cancel()
        with pytest.raises(asyncio.CancelledError):
            await given_up
        assert running.oldest(10, lambda *_: True) == ([], 0)


async def test_a_statement_that_was_allowed_is_looked_up_when_it_comes_again(
    tmp_path: Path,
) -> None:
    async with shop(tmp_path) as built:
        kept = built.connections.find("shop", WRITER).decisions
        assert not kept
        await built.ask("SELECT id FROM t")
        await built.ask(Browse("catalog"))
        assert [key[0] for key in kept] == ["SELECT id FROM t"]


async def test_results_that_are_cut_leave_no_statement_open(tmp_path: Path) -> None:
    async with shop(tmp_path) as built:
        for _ in range(3 * MOST_AT_ONCE):
            cut = Query(Statement(MANY.format(50_000)), limits=Limits(max_rows=1))
            page: Page = await built.ask(cut)
            assert page.row_count == 1 and page.truncations
        await built.ask("UPDATE t SET name = 'b' WHERE id = 1")
        assert built.names() == ["b"]


async def test_the_last_page_of_a_result_that_was_not_kept_whole_says_so(tmp_path: Path) -> None:
    async with shop(tmp_path) as built:
        many = Query(
            Statement(MANY.format(MAX_KEPT_ROWS + 500)), limits=Limits(max_rows=100),
            keep_rest=True,
        )  # fmt: skip
        page: Page = await built.ask(many)
        counted = page.row_count
        while page.more is not None:
            page = await built.ask(FetchMore(page.more, 2_000))
            counted += page.row_count
        assert counted < MAX_KEPT_ROWS + 500
        assert Truncation("rows", MAX_KEPT_ROWS, page.row_count) in page.truncations


@pytest.mark.parametrize(("actor", "shown"), [(PERSON, True), (WRITER, False)])
async def test_an_agent_is_told_the_name_of_a_file_and_a_person_where_it_is(
    tmp_path: Path, actor: Actor, shown: bool
) -> None:
    async with shop(tmp_path) as built:
        (tmp_path / "shop.db").unlink()
        with pytest.raises(TidegateError) as refused:
            await built.ask("SELECT 1", actor)
        told = f"{refused.value.message} {refused.value.hint} {refused.value.details}"
        assert "shop.db" in told
        assert (str(tmp_path) in told) is shown


async def test_a_request_that_nothing_handles_is_refused_and_on_record(tmp_path: Path) -> None:
    async with shop(tmp_path) as built:
        with pytest.raises(TidegateError) as refused:
            await built.ask(Odd())
        assert refused.value.code is Code.UNSUPPORTED and "Odd" in refused.value.message
        assert built.codes() == [Code.UNSUPPORTED.value]


async def test_a_call_whose_task_is_cancelled_is_on_record(tmp_path: Path) -> None:
    async with shop(tmp_path) as built:
        started = asyncio.Event()

        def note(share: float, text: str) -> None:
            started.set()

        running = asyncio.create_task(
            built.ask(f"SELECT count(*) FROM ({MANY.format(10**12)})", progress=note)
        )
        await started.wait()
        running.cancel()
        with pytest.raises(asyncio.CancelledError):
            await running
        assert built.codes() == [Code.CALL_CANCELLED.value]


async def test_a_sample_that_the_gate_reads_is_on_record_and_in_no_history(tmp_path: Path) -> None:
    async with shop(tmp_path) as built:
        await built.ask(Sample(Statement("SELECT name FROM t")))
        await built.ask("SELECT id FROM t")
        built.history.flush()
        found = built.history.search("", sources=None)
        assert [entry.text for entry in found] == ["SELECT id FROM t"]


async def test_a_masked_catalog_follows_the_schema(tmp_path: Path) -> None:
    async with shop(tmp_path, masks=(Mask("t.name"),)) as built:

        async def masked() -> dict[str, list[str]]:
            catalog = await built.ask(Browse("catalog"))
            assert isinstance(catalog, Catalog)
            return {
                table.name: [column.name for column in table.columns if column.masked]
                for table in catalog.tables
            }

        assert await masked() == {"t": ["name"], "s": []}
        with apsw.Connection(str(tmp_path / "shop.db")) as other:
            other.execute("CREATE TABLE later (id)")
        assert await masked() == {"t": ["name"], "s": [], "later": []}


@pytest.mark.parametrize(
    ("asks", "rule"), [("nothing", "surface.confirm"), ("writes", "source.approval_for")]
)
async def test_what_a_person_is_to_decide_waits_for_one_under_the_rule_that_asks(
    tmp_path: Path, asks: str, rule: str
) -> None:
    update = "UPDATE t SET name = 'b' WHERE id = 1"
    seen: list[str] = []
    async with shop(tmp_path, approval_for=asks) as built:

        def answer(share: float, text: str) -> None:
            if text == "Waiting for approval":
                (question,) = built.approvals.list()
                seen.append(question.subject.rule)
                built.approvals.resolve(question.id, "denied", "cli:ann")

        with pytest.raises(TidegateError) as refused:
            await built.ask(update, by_person=True, progress=answer)
        assert refused.value.code is Code.APPROVAL_DECLINED
        assert built.names() == ["a"]
    assert seen == [rule]


@pytest.mark.parametrize("schema", [None, "main"])
async def test_the_definition_of_a_listed_table_is_shown_by_its_name_alone_too(
    tmp_path: Path, schema: str | None
) -> None:
    async with shop(tmp_path) as built:
        shown = await built.ask(Browse("ddl", table="t", schema=schema), LISTED)
        assert isinstance(shown, Ddl) and "name" in shown.text
        catalog = await built.ask(Browse("catalog", table="t", schema=schema), LISTED)
        assert isinstance(catalog, Catalog)
        assert [table.name for table in catalog.tables] == ["t"]


@pytest.mark.parametrize(
    "request_",
    [
        Browse("ddl", table="s"),
        Browse("ddl", table="t", schema="temp"),
        Browse("ddl"),
        Browse("catalog", table="s"),
        Browse("catalog", database="elsewhere"),
    ],
)
async def test_nothing_of_another_table_is_shown_under_a_list(
    tmp_path: Path, request_: Browse
) -> None:
    async with shop(tmp_path) as built:
        with pytest.raises(TidegateError) as refused:
            await built.ask(request_, LISTED)
        assert refused.value.code is Code.POLICY_TABLE
        if request_.database is None:
            assert f"`{request_.table or ''}`" in refused.value.message


@pytest.mark.parametrize(
    ("settings", "tells"),
    [
        ({}, True),
        ({"filters": (RowFilter("t", "id > 1"),)}, False),
        ({"filters": (RowFilter("main.t", "id > 1"),)}, False),
        ({"filters": (RowFilter("s", "id > 1"),)}, True),
        ({"masks": (Mask("t.name"),)}, False),
        ({"masks": (Mask("s.id"),)}, True),
    ],
)
async def test_the_definition_of_a_table_with_hidden_parts_is_written_from_what_is_seen(
    tmp_path: Path, settings: dict[str, Any], tells: bool
) -> None:
    async with shop(tmp_path, **settings) as built:
        with apsw.Connection(str(tmp_path / "shop.db")) as made:
            made.execute("DROP TABLE t")
            made.execute("CREATE TABLE t (id INTEGER, name TEXT DEFAULT 'told' /* told */)")
        for name in ("t", "T"):
            shown = await built.ask(Browse("ddl", table=name))
            assert isinstance(shown, Ddl) and "CREATE TABLE" in shown.text
            assert ("/* told */" in shown.text) is tells


async def test_a_source_was_last_used_by_the_call_that_ran_last(tmp_path: Path) -> None:
    async with shop(tmp_path) as built:
        now = 1_000.0
        built.gateway = Gateway(built.connections, built.audit, built.history, clock=lambda: now)
        for now in (2_000.0, 3_000.0):
            page = await built.ask("SELECT id FROM t")
            assert page.elapsed_ms > 0
            (entry,) = await built.ask(ListSources(), source=None)
            assert entry.state.last_active_at == now


async def test_the_engine_gets_the_judgement_of_the_text_that_it_runs(tmp_path: Path) -> None:
    async with shop(tmp_path) as built:
        permits: list[Permit] = []

        async def open_and_watch(source: Source) -> Any:
            engine = await open_engine(source)
            run = engine.run

            async def watch(permit: Permit, cancellation: Any) -> Any:
                permits.append(permit)
                return await run(permit, cancellation)

            engine.run = watch
            return engine

        built.connections = SourceConnections(built.state.sources, open_and_watch, [])
        built.gateway = Gateway(built.connections, built.audit, built.history)
        for text, tables in (("SELECT id FROM t", ("t",)), ("SELECT s.id FROM s, t", ("s", "t"))):
            for _ in range(2):  # judged, then looked up
                await built.ask(text)
                permit = permits[-1]
                assert permit.judgement is not None and permit.judged_text == text
                assert permit.judgement.tables == tables
        await built.connections.close()


@pytest.mark.needs("duckdb")
@pytest.mark.parametrize("masked", ["a", "b"])
async def test_of_two_tables_of_one_name_the_one_of_the_schema_is_defined(
    tmp_path: Path, masked: str
) -> None:
    with duckdb.connect(str(tmp_path / "two.duckdb")) as made:
        for schema in ("a", "b"):
            made.execute(f"CREATE SCHEMA {schema}")
            made.execute(
                f"CREATE TABLE {schema}.t (id INTEGER, word VARCHAR DEFAULT 'hush {schema}')"
            )
    settings = {
        "url": f"duckdb:///{tmp_path}/two.duckdb", "engine": "duckdb", "dialect": "duckdb",
        "masks": (Mask(f"{masked}.t.word"),),
    }  # fmt: skip
    async with shop(tmp_path, **settings) as built:
        for schema in ("a", "b"):
            defined = await built.ask(Browse("ddl", table="t", schema=schema))
            assert f'"{schema}"."t"' in defined.text
            assert f"hush {masked}" not in defined.text


@pytest.mark.needs("duckdb")
async def test_a_list_of_tables_is_about_the_sources_own_database_also_by_its_name(
    tmp_path: Path,
) -> None:
    with duckdb.connect(str(tmp_path / "own.duckdb")) as made:
        made.execute("CREATE TABLE t (id INTEGER)")
        made.execute("CREATE TABLE u (id INTEGER)")
    settings = {"url": f"duckdb:///{tmp_path}/own.duckdb", "engine": "duckdb", "dialect": "duckdb"}
    async with shop(tmp_path, **settings) as built:
        for database in (None, "own"):
            seen = await built.ask(Browse("catalog", database=database), LISTED)
            assert [table.name for table in seen.tables] == ["t"]
        with pytest.raises(TidegateError) as refused:
            await built.ask(Browse("catalog", database="system"), LISTED)
        assert refused.value.code is Code.POLICY_TABLE


@pytest.mark.parametrize(
    ("text", "touches"),
    [
        ("SELECT * FROM t", True),
        ("SELECT DISTINCT * FROM t", True),
        ("SELECT ALL * FROM t", True),
        ("SELECT id * id FROM t", False),
        ("SELECT count(*) FROM t", False),
    ],
)
async def test_a_star_touches_masked_columns_where_it_stands_for_columns(
    tmp_path: Path, text: str, touches: bool
) -> None:
    async with shop(tmp_path, masks=(Mask("t.name"),)) as built:
        page = await built.ask(text)
        assert page.masked == ((("t", "name"),) if touches else ())
