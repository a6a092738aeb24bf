"""Joins of resources with tables of other sources: which requests and reads are made, what comes of
them, and whose rights hold."""

from __future__ import annotations

import json
import sqlite3
from collections.abc import AsyncIterator, Callable
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from pathlib import Path
from typing import Any

import msgspec
import pytest

from contract.surfaces.engine_shops import ENGINE_SHOPS, EngineShop, SqliteShop
from support import jdbc_drivers
from support.audit_records import records
from support.cloud_api import Farm
from support.surface_gateway import SqliteGate
from tidegate.approvals.approvals import ApprovalNeeded
from tidegate.engines.registry import engine_of
from tidegate.errors import Code, TidegateError
from tidegate.model.actors import Actor, Scope
from tidegate.model.budgets import Budget
from tidegate.model.replies import Prepared
from tidegate.model.requests import Call, EngineRequest, Explain, Prepare, Query
from tidegate.model.results import Limits, Page
from tidegate.model.source_settings import Mask, RowFilter
from tidegate.model.sources import Source
from tidegate.model.statements import Statement

READER = Actor("reader", "reader", Scope.READ_ONLY)


class Desk:
    """A gate over the farm's source `c` and a shop."""

    def __init__(self, gate: SqliteGate, directory: Path) -> None:
        self.gate = gate
        self._directory = directory

    async def answer(self, request: EngineRequest, actor: Actor = READER) -> Any:
        call = Call(actor, "cloud", "run_select_query", request, source="c")
        return (await self.gate.handle(call)).payload

    async def ask(self, text: str, *params: Any, actor: Actor = READER) -> list[list[Any]]:
        query = Query(Statement(text, params or None), limits=Limits(max_rows=1_000_000))
        page = await self.answer(query, actor)
        assert isinstance(page, Page)
        return msgspec.json.decode(page.rows)

    async def refusal(self, text: str, actor: Actor = READER) -> TidegateError:
        with pytest.raises(TidegateError) as caught:
            await self.ask(text, actor=actor)
        return caught.value

    async def verdict(self, text: str, actor: Actor) -> str:
        """What the gate would say, with nothing run."""
        call = Call(actor, "cloud", "run_select_query", Query(Statement(text)), source="c")
        _, explained = await self.gate.explain(call)
        return explained.verdict.kind

    def reads(self) -> list[str]:
        """The texts that were run for joins, by the audit log."""
        return [
            each["statement"]
            for each in records(self._directory)
            if each.get("request") == "join" and each["phase"] == "outcome"
        ]


Opened = Callable[..., AbstractAsyncContextManager[Desk]]


@pytest.fixture
def desk_of(registry: Path, farm: Farm) -> Opened:
    @asynccontextmanager
    async def opened(shop: EngineShop, *more: Source, **settings: Any) -> AsyncIterator[Desk]:
        options = settings.pop("options", {})
        url = f"cloud://{registry}"
        given = (*farm.options, *options.items())
        hidden = settings.pop("cloud", {})
        source = Source("c", "c", url, *engine_of(url), access="write", options=given, **hidden)
        gate = shop.gate(source, *more, **settings)
        async with gate.opened():
            yield Desk(gate, shop.directory)

    return opened


@pytest.fixture
def shop(tmp_path: Path) -> EngineShop:
    return SqliteShop(tmp_path)


@pytest.fixture(params=sorted(ENGINE_SHOPS))
def each_shop(request: pytest.FixtureRequest, tmp_path: Path) -> EngineShop:
    return ENGINE_SHOPS[request.param](tmp_path)


async def test_a_resource_joins_a_table_of_any_source_and_both_are_read_once(
    each_shop: EngineShop, desk_of: Opened, farm: Farm
) -> None:
    async with desk_of(each_shop) as desk:
        rows = await desk.ask(
            "SELECT k.full_name, a.name, o.total FROM farm.live.animals a"
            f" JOIN shop.{each_shop.schema}.orders o ON o.id = a.id"
            f" LEFT JOIN shop.{each_shop.schema}.customers k ON k.id = o.customer_id"
            " WHERE o.customer_id < 3 ORDER BY a.id"
        )
    assert rows == [
        ["Ada Lovelace", "animal 1", 120.5],
        ["Ada Lovelace", "animal 2", 80],
        ["葛飾 北斎", "animal 3", None],
    ]
    assert farm.paths() == ["/animals"]
    orders, customers = sorted(desk.reads(), key=lambda text: "full_name" in text)
    assert "customer_id" in orders and "< 3" in orders and "placed_at" not in orders
    assert "email" not in customers and "city" not in customers


async def test_keys_of_another_sources_table_fill_required_parameters(
    each_shop: EngineShop, desk_of: Opened, farm: Farm
) -> None:
    async with desk_of(each_shop) as desk:
        rows = await desk.ask(
            "SELECT o.id, a.diary FROM shop.orders o"
            " JOIN farm.live.animals a ON a.id = o.customer_id ORDER BY o.id"
        )
    assert rows == [[1, "day 1"], [2, "day 1"], [3, "day 2"]]
    assert sorted(farm.paths()) == ["/animals/1", "/animals/2"]
    assert len(desk.reads()) == 1


QUERIES = (
    "SELECT o.id, a.name FROM {o} o LEFT JOIN {a} a ON a.id = o.customer_id AND a.id > 1",
    "SELECT o.id, a.id FROM {a} a LEFT JOIN {o} o ON o.id = a.id AND o.customer_id = 1",
    "SELECT o.id, a.id FROM {a} a LEFT JOIN {o} o ON o.id = a.id WHERE o.customer_id = 1",
    "SELECT o.id, a.id FROM {a} a LEFT JOIN {o} o ON a.id = 3 WHERE o.id IS NULL OR o.id IN (1, 2)",
    "SELECT o.id, k.id FROM {o} o FULL JOIN {k} k ON k.id = o.id AND o.id > 2",
    "SELECT k.city, k.id FROM {o} o RIGHT JOIN {k} k ON k.id = o.customer_id WHERE k.id >= 2",
    "SELECT count(*) FROM {o}",
    "SELECT count(*), a.field FROM {a} a, {o} WHERE a.id = {o}.id GROUP BY 2",
    "SELECT * FROM {k} WHERE city = 'London' OR id = 3",
    "SELECT full_name FROM {k} WHERE city = 'London' AND NOT id = 2",
    "SELECT id FROM {k} WHERE city > 'M' AND id BETWEEN 1 AND 3",
    "SELECT id FROM {k} k WHERE EXISTS"
    " (SELECT 1 FROM {o} o WHERE o.customer_id = k.id AND o.id > 2)",
    "SELECT a.id FROM {o} a JOIN {o} b ON a.customer_id = b.customer_id WHERE a.id = 1",
    "WITH x AS (SELECT id AS customer_id FROM {k} WHERE id <> 2)"
    " SELECT o.id FROM {o} o JOIN x USING (customer_id)",
    "SELECT id, sum(id) OVER (ORDER BY id) FROM {o} UNION ALL SELECT id, 7 FROM {a} WHERE id = 2",
    "SELECT full_name FROM {k} WHERE id = '2'",
    "SELECT full_name FROM {k} WHERE full_name = 'ada lovelace'",
    "SELECT id FROM {k} WHERE city IN ('London', 'Nishapur') AND 2 < id",
)


async def test_a_join_gives_what_it_gives_where_all_tables_are_in_one_database(
    shop: EngineShop, desk_of: Opened, farm: Farm
) -> None:
    assert isinstance(shop, SqliteShop)
    whole = sqlite3.connect(shop.path)
    whole.execute("CREATE TEMP TABLE animals (id INTEGER, name TEXT, field TEXT)")
    animals = [(each["id"], each["name"], each["field"]) for each in farm.animals.values()]
    whole.executemany("INSERT INTO animals VALUES (?, ?, ?)", animals)
    async with desk_of(shop) as desk:
        for text in QUERIES:
            named = {"o": "shop.main.orders", "k": "shop.customers", "a": "farm.live.animals"}
            plain = {"o": "orders", "k": "customers", "a": "animals"}
            expected = [list(row) for row in whole.execute(text.format(**plain))]
            found = await desk.ask(text.format(**named))
            assert sorted(found, key=repr) == sorted(expected, key=repr), text
    whole.close()


async def test_masks_and_row_filters_of_the_other_source_hold_in_a_join(
    each_shop: EngineShop, desk_of: Opened
) -> None:
    settings: dict[str, Any] = {
        "masks": (Mask("customers.full_name", "nothing"),),
        "filters": (RowFilter("customers", "id < 3"),),
    }
    async with desk_of(each_shop, **settings) as desk:
        assert await desk.ask(
            "SELECT a.id, k.full_name FROM farm.live.animals a JOIN shop.customers k ON k.id = a.id"
            " ORDER BY 1"
        ) == [[1, None], [2, None]]
        page = await desk.answer(Query(Statement("SELECT full_name FROM shop.customers")))
        assert [column for _, column in page.masked] == ["full_name"]
        assert (await desk.answer(Query(Statement("SELECT id FROM shop.customers")))).masked == ()
        hidden = "SELECT k.id FROM shop.customers k WHERE k.full_name = 'Ada Lovelace'"
        assert await desk.ask(hidden) == []


async def test_the_tokens_lists_of_sources_and_tables_hold_for_both_sides(
    shop: EngineShop, desk_of: Opened, farm: Farm
) -> None:
    join = "SELECT count(*) FROM farm.live.animals a JOIN shop.main.{} o ON o.id = a.id"
    tables = frozenset({"c:farm.live.animals", "shop:orders"})
    listed = msgspec.structs.replace(READER, id="listed", tables=tables)
    only_c = msgspec.structs.replace(READER, id="c", sources=frozenset({"c"}))
    only_shop = msgspec.structs.replace(READER, id="shop", sources=frozenset({"shop"}))
    only_orders = msgspec.structs.replace(
        READER, id="orders", tables=frozenset({"c:farm.live.fields", "shop:orders"})
    )
    async with desk_of(shop) as desk:
        assert await desk.ask(join.format("orders"), actor=listed) == [[3]]
        assert await desk.verdict(join.format("orders"), listed) == "allow"
        assert await desk.verdict(join.format("customers"), listed) == "deny"
        farm.asked.clear()
        reads = len(desk.reads())
        refused = await desk.refusal(join.format("customers"), listed)
        assert refused.code is Code.POLICY_TABLE
        assert refused.details["table"] == "shop.main.customers"
        assert (await desk.refusal(join.format("orders"), only_orders)).code is Code.POLICY_TABLE
        assert (await desk.refusal(join.format("orders"), only_shop)).code is Code.POLICY_SOURCE
        hidden = await desk.refusal(join.format("orders"), only_c)
        absent = await desk.refusal(join.format("orders").replace("shop.", "nowhere."), only_c)
        assert hidden.code is absent.code is Code.TABLE_UNKNOWN
        assert hidden.message.replace("shop", "nowhere") == absent.message
        assert farm.asked == []
        assert len(desk.reads()) == reads
    refusals = [each for each in records(shop.directory) if each["phase"] == "refusal"]
    whole = next(each for each in refusals if each["source"] == "c" and each["actor"] == "listed")
    assert (whole["verdict"], whole["code"]) == ("deny", Code.POLICY_TABLE.value)


async def test_a_person_approves_reading_the_other_source_in_the_inbox(
    shop: EngineShop, desk_of: Opened, farm: Farm
) -> None:
    join = "SELECT a.diary FROM shop.orders o JOIN farm.live.animals a ON a.id = o.id"
    async with desk_of(shop, approval_for="everything") as desk:
        needed = await desk.refusal(f"{join} WHERE o.id = 3")
        assert isinstance(needed, ApprovalNeeded) and not needed.client_may_ask
        assert farm.asked == [] and desk.reads() == []
        desk.gate.approvals.resolve(needed.question.id, "allowed", by="a test")
        assert await desk.ask(f"{join} WHERE o.id = 3") == [["day 3"]]


async def test_masks_and_filters_of_both_sources_hold_and_no_rest_is_kept(
    shop: EngineShop, desk_of: Opened
) -> None:
    masks = (Mask("customers.city", "nothing"),)
    hidden = {
        "masks": (Mask("farm.live.animals.name", "nothing"),),
        "filters": (RowFilter("farm.live.animals", "id > 1"),),
    }
    text = (
        "SELECT a.id, a.name, k.city, k.full_name FROM farm.live.animals a"
        " JOIN shop.main.customers k ON k.id = a.id ORDER BY 1"
    )
    async with desk_of(shop, masks=masks, cloud=hidden) as desk:
        query = Query(Statement(text), limits=Limits(max_rows=1), keep_rest=True)
        page = await desk.answer(query)
        assert json.loads(page.rows) == [[2, None, None, "葛飾 北斎"]]
        assert sorted(column for _, column in page.masked) == ["city", "name"]
        assert page.truncations and page.more is None


async def test_each_read_is_recorded_with_the_caller_and_is_no_part_of_the_history(
    shop: EngineShop, desk_of: Opened
) -> None:
    text = "SELECT k.city FROM shop.customers k WHERE k.id = ?"
    async with desk_of(shop) as desk:
        assert await desk.ask(text, 1) == [["London"]]
    lines = [each for each in records(shop.directory) if each["phase"] == "outcome"]
    prepared, read, whole = lines[-3:]
    assert [each["request"] for each in (prepared, read, whole)] == ["prepare", "join", "query"]
    assert [each["source"] for each in (prepared, read, whole)] == ["shop", "shop", "c"]
    assert {each["actor"] for each in (prepared, read, whole)} == {"reader"}
    assert read["rows"] == 1


@pytest.mark.parametrize(
    ("option", "value"), [("join_rows", "2"), ("join_bytes", "1024")], ids=["rows", "bytes"]
)
async def test_tables_larger_than_the_limit_are_refused_before_a_request(
    shop: EngineShop, desk_of: Opened, farm: Farm, option: str, value: str
) -> None:
    shop.script(
        "WITH RECURSIVE n(i) AS (SELECT 4 UNION ALL SELECT i + 1 FROM n WHERE i < 40)"
        " INSERT INTO customers (id, email, full_name) SELECT i, i, 'x' FROM n"
    )
    join = "SELECT count(*) FROM farm.live.animals a JOIN shop.customers k ON k.id = a.id"
    async with desk_of(shop, options={option: value}) as desk:
        refused = await desk.refusal(join)
        assert refused.code is Code.LIMIT_BYTES
        assert option in refused.message and option in (refused.hint or "")
        assert "shop.customers" in refused.message
        assert farm.asked == []
        assert await desk.ask(f"{join} WHERE k.id = 2") == [[1]]


async def test_the_plan_names_the_read_and_nothing_is_sent_for_it_or_for_the_columns(
    shop: EngineShop, desk_of: Opened, farm: Farm
) -> None:
    text = "SELECT k.city, a.diary FROM shop.customers k JOIN farm.live.animals a ON a.id = k.id"
    async with desk_of(shop) as desk:
        page = await desk.answer(Explain(Statement(text)))
        plan = {row[0]: row[1:] for row in json.loads(page.rows)}
        assert plan["farm.live.animals"][3] == "one for each key from another table"
        assert plan["shop.customers"][1].startswith("SELECT")
        page = await desk.answer(Query(Statement(f"EXPLAIN {text}")))
        assert {row[0]: row[1:] for row in json.loads(page.rows)} == plan
        prepared = await desk.answer(Prepare(Statement(text)))
        assert isinstance(prepared, Prepared) and prepared.columns is not None
        assert [each.name for each in prepared.columns] == ["city", "diary"]
        assert farm.asked == [] and desk.reads() == []


async def test_names_that_cannot_be_joined_say_why(
    shop: EngineShop, desk_of: Opened, registry: Path, farm: Farm
) -> None:
    named_so = Source("f", "farm", f"sqlite:///{shop.directory}/shop.db", "sqlite", "sqlite")
    other = Source("d", "d", f"cloud://{registry}", *engine_of(f"cloud://{registry}"))
    async with desk_of(shop, named_so, other) as desk:
        assert await desk.ask("SELECT count(*) FROM farm.live.fields") == [[3]]
        assert await desk.ask("SELECT count(*) FROM farm.orders") == [[3]]
        farm.asked.clear()
        unknown = await desk.refusal("SELECT 1 FROM shop.nothing, farm.live.fields")
        assert "nothing" in unknown.message and unknown.details["table"] == "shop.nothing"
        cloud = await desk.refusal("SELECT 1 FROM d.live.fields")
        assert cloud.code is Code.UNSUPPORTED
        misspelt = await desk.refusal("SELECT 1 FROM shop.orders, farm.live.feilds")
        assert "fields" in (misspelt.hint or "")
        many = " UNION ALL ".join(f"SELECT 1 FROM shop.t{n}" for n in range(33))
        assert (await desk.refusal(many)).code is Code.ARGUMENT_INVALID
        number = await desk.refusal("SELECT rowid FROM shop.orders")
        assert "no such column: rowid" in number.message
        assert farm.asked == []


async def test_a_change_reads_no_table_of_another_source(
    shop: EngineShop, desk_of: Opened, farm: Farm
) -> None:
    writer = Actor("writer", "writer", Scope.FULL_ACCESS)
    insert = "INSERT INTO farm.live.animals (field, name) SELECT 'north', city FROM shop.customers"
    async with desk_of(shop) as desk:
        refused = await desk.refusal(insert, writer)
        assert refused.code is Code.TABLE_UNKNOWN
        assert farm.asked == [] and desk.reads() == []


@pytest.mark.needs("jdbc")
async def test_a_database_behind_jdbc_is_joined_in_its_own_case_of_letters(
    shop: EngineShop, desk_of: Opened, farm: Farm
) -> None:
    script = (
        "CREATE TABLE orders (id INTEGER, total DECIMAL(5, 2))",
        "INSERT INTO orders VALUES (7, 1.5)",
    )
    url = jdbc_drivers.new_database("h2", shop.directory, script)
    driver = (("driver_path", jdbc_drivers.driver_path("h2")),)
    behind = Source("j", "j", url, *engine_of(url), options=driver)
    async with desk_of(shop, behind) as desk:
        assert await desk.ask(
            "SELECT a.diary, o.total FROM j.orders o JOIN farm.live.animals a ON a.id = o.id"
            " WHERE o.id > 5"
        ) == [["day 7", 1.5]]
    assert farm.paths() == ["/animals/7"]
    assert '"ID" > 5' in desk.reads()[0]


async def test_values_come_as_numbers_where_sqlite_has_the_very_same_and_else_as_text(
    tmp_path: Path, desk_of: Opened
) -> None:
    shop = ENGINE_SHOPS["postgres"](tmp_path)
    shop.script(
        'CREATE TABLE "Mixed Name" ("select" int, n numeric(30, 10), e bigint, t timestamptz,'
        " j jsonb, u uuid, b bytea, yes boolean);"
        """ INSERT INTO "Mixed Name" VALUES (3, 12345678901234567890.5, 9223372036854775807,"""
        """ '2026-01-02 03:04:05+00', '{"a": 1}', '00000000-0000-0000-0000-000000000001',"""
        """ '\\x0102', true), (4, 0.1, NULL, NULL, NULL, NULL, NULL, false)"""
    )
    async with desk_of(shop) as desk:
        columns = "n, typeof(n), e + 0, t, j, u, hex(b), yes"
        rows = await desk.ask(
            f'SELECT {columns} FROM shop.public."Mixed Name" WHERE "select" < 5 ORDER BY "select"'
        )
    assert rows == [
        ["12345678901234567890.5000000000", "text", "9223372036854775807", "2026-01-02T03:04:05Z",
         '{"a": 1}', "00000000-0000-0000-0000-000000000001", "0102", 1],
        [0.1, "real", None, None, None, None, "", 0],
    ]  # fmt: skip


async def test_a_join_says_what_is_left_of_the_budget_of_the_other_source(
    shop: EngineShop, desk_of: Opened, farm: Farm
) -> None:
    async with desk_of(shop) as desk:
        assert desk.gate.state.budgets.add(Budget("b", "calls", "day", 5, source="shop"))
        text = (
            "SELECT a.name FROM farm.live.animals a"
            f" JOIN shop.{shop.schema}.orders o ON o.id = a.id"
        )
        said: list[str] = []
        for _ in range(5):
            page = await desk.answer(Query(Statement(text)))
            said.append(page.budget.partition(" left of the budget of 5 calls a day")[0])
        assert said == ["", "", "", "1 call", "0 calls"]
        error = await desk.refusal(text)
        assert error.code is Code.LIMIT_BUDGET and "all callers on shop" in error.message
