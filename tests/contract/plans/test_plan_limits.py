"""Limits of plans: a statement runs only if the database expects little enough of it. The oracle is
the database itself: what its own EXPLAIN says of the statement with its values, asked past the
gate, decides which statements may run.
"""

from __future__ import annotations

import json
import re
from collections.abc import AsyncIterator, Callable, Iterator
from contextlib import asynccontextmanager, contextmanager
from pathlib import Path
from typing import Any, NamedTuple

import pytest
from msgspec import structs

import support.mysql_server as mysql_server
import support.postgres_server as postgres_server
from support.budget_gate import agent
from tidegate.approvals.approvals import ApprovalNeeded, Approvals
from tidegate.audit.log import AuditLog
from tidegate.engines.registry import check_plan_limits, check_settings, open_engine
from tidegate.errors import Code, TidegateError
from tidegate.gateway import decision
from tidegate.gateway.context import CallContext
from tidegate.gateway.gateway import Gateway
from tidegate.gateway.source_connections import SourceConnections
from tidegate.history.history import History
from tidegate.model.actors import Scope
from tidegate.model.requests import Call, Explain, Query, Request
from tidegate.model.results import Limits, Page
from tidegate.model.source_settings import Mask, RowFilter
from tidegate.model.sources import Source
from tidegate.model.statements import Statement
from tidegate.results.row_stream import WriterSink
from tidegate.store.sqlite.state import SqliteState

BIG, SMALL = 20_000, 10
AGENT = agent(scope=Scope.READ_WRITE)


class Database(NamedTuple):
    """A database with a large table `big` (id, kind, note) and a small one, past the gate: its URL,
    and its EXPLAIN as JSON."""

    engine: str
    dialect: str
    url: str
    explain: Callable[[str], Any]


def most_rows(plan: Any) -> float:
    """The largest estimate of rows that a plan of PostgreSQL or DuckDB names anywhere."""
    if isinstance(plan, list):
        return max(map(most_rows, plan), default=0.0)
    if not isinstance(plan, dict):
        return 0.0
    own = [float(plan[key]) for key in ("Plan Rows", "Estimated Cardinality") if key in plan]
    return max([*own, *map(most_rows, plan.values())], default=0.0)


@contextmanager
def postgres(folder: Path) -> Iterator[Database]:
    server = postgres_server.shared(sorted(postgres_server.available())[-1])
    name = server.new_database()
    for text in (
        "CREATE TABLE big (id int PRIMARY KEY, kind int, note text)",
        # One kind has nearly all rows: what a plan expects depends on the value.
        f"INSERT INTO big SELECT n, CASE WHEN n < 20 THEN n ELSE 99 END, repeat('x', 20)"
        f" FROM generate_series(1, {BIG}) n",
        "CREATE INDEX big_kind ON big (kind)",
        "CREATE TABLE small AS SELECT id, note FROM big WHERE id <= 10",
        "ANALYZE",
    ):
        server.ask(text, name)

    def explain(text: str) -> Any:
        found = server.ask(f"EXPLAIN (FORMAT JSON) {text}", name)[0][0]
        return json.loads(found) if isinstance(found, str) else found

    yield Database("postgres", "postgres", server.url(name), explain)
    server.drop_database(name)


@contextmanager
def duckdb(folder: Path) -> Iterator[Database]:
    module = pytest.importorskip("duckdb")
    path = folder / "shop.duckdb"
    connection = module.connect(str(path))
    connection.execute(
        f"CREATE TABLE big AS SELECT n::int AS id, (n % 7)::int AS kind, 'x' AS note"
        f" FROM range({BIG}) t(n); CREATE TABLE small AS SELECT * FROM big LIMIT {SMALL};"
    )
    connection.close()

    def explain(text: str) -> Any:
        with module.connect(str(path), read_only=True) as reader:
            return json.loads(reader.execute(f"EXPLAIN (FORMAT JSON) {text}").fetchall()[-1][-1])

    yield Database("duckdb", "duckdb", f"duckdb:///{path}", explain)


@contextmanager
def mariadb(folder: Path) -> Iterator[Database]:
    server = mysql_server.shared()
    name = server.new_database()
    server.script("CREATE TABLE big (id INT PRIMARY KEY, kind INT, note TEXT)", name)
    server.script(f"INSERT INTO big SELECT seq, seq % 7, 'x' FROM seq_1_to_{BIG}", name)
    server.script(f"CREATE TABLE small AS SELECT * FROM big WHERE id <= {SMALL}", name)
    server.script("ANALYZE TABLE big, small", name)

    def explain(text: str) -> Any:
        return json.loads(server.script(f"EXPLAIN FORMAT=JSON {text}", name)[0][0])

    yield Database("mysql", "mariadb", server.url(name), explain)
    server.drop_database(name)


DATABASES = {"postgres": postgres, "duckdb": duckdb, "mariadb": mariadb}


def available(name: str) -> bool:
    if name == "mariadb":
        return mysql_server.available()
    return bool(postgres_server.available()) if name == "postgres" else True


@pytest.fixture(params=sorted(DATABASES))
def database(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Database]:
    if not available(request.param):
        pytest.skip(f"{request.param} is not installed")
    with DATABASES[request.param](tmp_path) as made:
        yield made


class Shop(NamedTuple):
    """A gate before the database."""

    gate: Gateway
    approvals: Approvals

    async def ask(self, request: Request | str, *params: Any) -> Any:
        if isinstance(request, str):
            request = Query(Statement(request, params or None), limits=Limits(max_rows=5))
        call = Call(AGENT, "core", "query", request, "shop")
        return (await self.gate.handle(call)).payload


@asynccontextmanager
async def shop(folder: Path, database: Database, **settings: Any) -> AsyncIterator[Shop]:
    source = Source(
        "i", "shop", database.url, database.engine, database.dialect, access="write", **settings
    )
    check_settings(source)
    state = SqliteState(folder / "state.db")
    connections = SourceConnections(state.sources, open_engine, (source,))
    history, audit = History(state.history), AuditLog(folder / "audit")
    approvals = Approvals(state.approvals)
    try:
        yield Shop(Gateway(connections, audit, history, approvals=approvals), approvals)
    finally:
        await connections.close()
        history.close()
        audit.close()
        state.close()


def refused(raised: pytest.ExceptionInfo[TidegateError], name: str) -> TidegateError:
    assert raised.value.code is Code.LIMIT_PLAN, raised.value.message
    assert raised.value.details["rule"] == f"source.{name}"
    return raised.value


READS = (
    "SELECT id FROM big",
    "SELECT count(*) FROM big",
    "SELECT id FROM small",
    "SELECT a.id FROM small a JOIN small b ON a.id = b.id",
    "SELECT a.id FROM big a JOIN small b ON a.id = b.id",
    "SELECT kind, count(*) FROM big GROUP BY kind ORDER BY 2",
    "SELECT id FROM small UNION ALL SELECT id FROM small",
    "WITH w AS (SELECT id FROM small) SELECT count(*) FROM w",
)


async def test_a_statement_runs_where_the_databases_own_plan_is_within_the_limit(
    tmp_path: Path, database: Database
) -> None:
    """PostgreSQL and DuckDB; a plan of MariaDB has to be multiplied out, and is in a test below."""
    if database.dialect == "mariadb":
        pytest.skip("it has figures of each table alone")
    ran, stopped = 0, 0
    for text in READS:
        expected = most_rows(database.explain(text))
        if expected <= 1:
            continue  # DuckDB counts by what it keeps of the table
        for most in (int(expected), int(expected) - 1):
            folder = tmp_path / f"{len(text)}-{most}"
            folder.mkdir()
            async with shop(folder, database, max_plan_rows=max(1, most)) as made:
                if most >= expected:
                    assert isinstance(await made.ask(text), Page)
                    ran += 1
                    continue
                with pytest.raises(TidegateError) as raised:
                    await made.ask(text)
                assert refused(raised, "max_plan_rows").details["expected"] == expected
                stopped += 1
    assert ran == stopped >= 6


@pytest.mark.parametrize("costly", ["deny", "ask"])
async def test_no_figure_is_told_where_something_is_hidden(tmp_path: Path, costly: str) -> None:
    more: Any = {"costly_plans": costly, "approval": "inbox" if costly == "ask" else "off"}
    hidden = (RowFilter("big", "id >= 0"),)
    if not available("postgres"):
        pytest.skip("postgres is not installed")
    with postgres(tmp_path) as database:
        async with shop(tmp_path, database, max_plan_rows=7, filters=hidden, **more) as made:
            with pytest.raises(TidegateError) as raised:
                await made.ask("SELECT id FROM big")
    error = raised.value
    if isinstance(error, ApprovalNeeded):
        said = error.question.subject.reason
    else:
        said = f"{refused(raised, 'max_plan_rows').message} {error.details}"
    assert "max_plan_rows" in said
    assert set(re.findall(r"\d+", said)) == {"7"}


async def test_large_reads_are_refused_and_small_ones_run(
    tmp_path: Path, database: Database
) -> None:
    async with shop(tmp_path, database, max_plan_rows=2_000) as made:
        for text in (
            "SELECT id FROM big",
            "SELECT kind, count(*) FROM big GROUP BY kind",
            "SELECT a.note FROM big a CROSS JOIN small b",
            "SELECT max(id + 1) FROM (SELECT id FROM big) t",
            "INSERT INTO small SELECT id, 1, note FROM big"
            if database.dialect != "postgres"
            else "INSERT INTO small SELECT id, note FROM big",
        ):
            with pytest.raises(TidegateError) as raised:
                await made.ask(text)
            assert "The database expects" in refused(raised, "max_plan_rows").message
        for text in ("SELECT id FROM small", "SELECT note FROM big WHERE id = 7"):
            assert isinstance(await made.ask(text), Page)
        assert isinstance(await made.ask(Explain(Statement("SELECT id FROM big"))), Page)
        await made.ask("DELETE FROM small WHERE id = 1")


async def test_loops_inside_each_other_are_multiplied(tmp_path: Path, database: Database) -> None:
    """Each table alone is within the limit, and what they give together is not."""
    async with shop(tmp_path, database, max_plan_rows=900) as made:
        await made.ask("SELECT count(*) FROM small a, small b")
        with pytest.raises(TidegateError) as raised:
            await made.ask("SELECT count(*) FROM small a, small b, small c")
        refused(raised, "max_plan_rows")


async def test_explain_that_runs_and_streams_are_limited_too(
    tmp_path: Path, database: Database
) -> None:
    analyze = "ANALYZE" if database.dialect == "mariadb" else "EXPLAIN ANALYZE"

    class Kept:
        rows = 0

        def begin(self, columns: Any) -> None: ...

        def write(self, rows: Any) -> None:
            self.rows += len(rows)

    async with shop(tmp_path, database, max_plan_rows=2_000) as made:
        for text in (f"{analyze} SELECT id FROM big", f"{analyze} SELECT max(id + 1) FROM big"):
            with pytest.raises(TidegateError) as raised:
                await made.ask(text)
            refused(raised, "max_plan_rows")
        await made.ask(f"{analyze} SELECT id FROM small")
        kept = Kept()
        for text in ("SELECT id FROM big", "SELECT id FROM small"):
            request = Query(Statement(text), limits=Limits(10**6), sink=WriterSink(kept))
            try:
                await made.ask(request)
            except TidegateError as error:
                assert error.code is Code.LIMIT_PLAN and kept.rows == 0
        assert kept.rows == SMALL


async def test_with_ask_a_person_decides_and_is_shown_why(
    tmp_path: Path, database: Database
) -> None:
    async with shop(
        tmp_path, database, max_plan_rows=2_000, costly_plans="ask", approval="inbox"
    ) as made:
        await made.ask("SELECT id FROM small")
        with pytest.raises(ApprovalNeeded) as raised:
            await made.ask("SELECT id FROM big")
        assert "max_plan_rows" in raised.value.question.subject.reason
        (question,) = made.approvals.open()
        assert question.state == "pending"


async def test_the_error_of_a_statement_that_cannot_be_planned_is_its_own(
    tmp_path: Path, database: Database
) -> None:
    async with shop(tmp_path, database, max_plan_rows=2_000) as made:
        with pytest.raises(TidegateError) as raised:
            await made.ask("SELECT nothing FROM big")
        assert raised.value.code is not Code.LIMIT_PLAN and "nothing" in raised.value.message
        assert "EXPLAIN" not in raised.value.message


async def test_each_of_statements_alike_is_planned_with_its_own_values(
    tmp_path: Path, database: Database, monkeypatch: pytest.MonkeyPatch
) -> None:
    classify, judged = decision.classify, 0

    async def counted(ctx: CallContext) -> None:
        nonlocal judged
        judged += 1
        await classify(ctx)

    monkeypatch.setattr(decision, "classify", counted)
    async with shop(tmp_path, database, max_plan_rows=2_000) as made:
        for least, costs in ((99_999, False), (5, True), (99_998, False), (6, True)):
            text = f"SELECT id FROM big WHERE id > {least}"
            if not costs:
                assert (await made.ask(text)).row_count == 0
                continue
            with pytest.raises(TidegateError) as raised:
                await made.ask(text)
            refused(raised, "max_plan_rows")
    assert judged == 1  # the decision on the first is that on the others


@pytest.mark.skipif(not postgres_server.available(), reason="PostgreSQL is not installed")
async def test_the_values_of_the_statement_decide(tmp_path: Path) -> None:
    with postgres(tmp_path) as database:
        text = "SELECT id FROM big WHERE kind = {}"
        few, many = (
            float(database.explain(text.format(kind))[0]["Plan"]["Total Cost"]) for kind in (7, 99)
        )
        assert few < many
        between = int((few + many) / 2)
        async with shop(tmp_path, database, max_plan_cost=between) as made:
            assert isinstance(await made.ask(text.format("$1"), 7), Page)
            with pytest.raises(TidegateError) as raised:
                await made.ask(text.format("$1"), 99)
            error = refused(raised, "max_plan_cost")
            assert error.details["expected"] == pytest.approx(many)
            assert error.mapping.sqlstate == "54000"


@pytest.mark.parametrize(
    ("engine", "url", "limit"),
    [
        ("sqlite", "sqlite:///x.db", "max_plan_rows"),
        ("sqlite", "sqlite:///x.db", "max_plan_cost"),
        ("duckdb", "duckdb:///x.duckdb", "max_plan_cost"),
        ("mysql", "mariadb://localhost/x", "max_plan_cost"),
    ],
)
def test_a_limit_whose_figure_the_engine_does_not_have_is_an_error(
    engine: str, url: str, limit: str
) -> None:
    source = structs.replace(Source("i", "s", url, engine, engine), **{limit: 5})
    with pytest.raises(TidegateError, match=limit) as raised:
        check_settings(source)
    assert raised.value.code is Code.CONFIG_INVALID


@pytest.mark.parametrize(
    "rule", [{"masks": (Mask("t.a"),)}, {"filters": (RowFilter("t", "a > 0"),)}]
)
@pytest.mark.parametrize("engine", ["duckdb", "files"])
def test_a_limit_is_an_error_where_what_is_hidden_takes_the_figures_away(
    engine: str, rule: Any
) -> None:
    """DuckDB plans without statistics there, and expects no rows of anything."""
    url = "duckdb:///x.duckdb" if engine == "duckdb" else "files:///x"
    source = structs.replace(Source("i", "s", url, engine, "duckdb"), max_plan_rows=5)
    check_plan_limits(source)
    with pytest.raises(TidegateError, match="together with masks or filters"):
        check_plan_limits(structs.replace(source, **rule))
