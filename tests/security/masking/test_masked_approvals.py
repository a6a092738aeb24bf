"""A change beside masked columns goes through the whole gate: the person who approves sees what it
would do, the caller reads nothing hidden, whatever the database says."""

from __future__ import annotations

import asyncio
from pathlib import Path

import msgspec
import pytest

from support.masking_changes import MASKS, script
from support.masking_shop import ENGINES, make
from support.surface_client import WRITER
from support.surface_gateway import SqliteGate
from tidegate.approvals.approvals import ApprovalNeeded
from tidegate.approvals.render import describe, describe_at_client
from tidegate.engines.registry import engine_of
from tidegate.errors import Code, TidegateError
from tidegate.model.requests import Browse, Call, Query
from tidegate.model.results import Page
from tidegate.model.schema import Catalog
from tidegate.model.source_settings import Mask
from tidegate.model.sources import Source
from tidegate.model.statements import Statement

pytestmark = pytest.mark.parametrize("engine", ENGINES)


def _gate(engine: str, directory: Path, **settings: str) -> SqliteGate:
    url = make(engine, directory, "made", script(engine))
    name, dialect = engine_of(url)
    masks = msgspec.convert(
        [{"column": name, "show": show} for name, show in MASKS], tuple[Mask, ...]
    )
    source = Source("s1", "shop", url, name, dialect, access="write", masks=masks)
    return SqliteGate(directory, msgspec.structs.replace(source, **settings))


def _call(text: str) -> Call:
    return Call(WRITER, "core", "query", Query(Statement(text)), "shop", can_ask=True)


async def _rows(gate: SqliteGate, text: str) -> Page:
    return (await gate.handle(_call(text))).payload


def test_who_approves_sees_the_dry_run_and_the_caller_no_masked_value(
    engine: str, tmp_path: Path
) -> None:
    async def scenario() -> None:
        async with _gate(engine, tmp_path, approval_for="writes").opened() as gate:
            call = _call("UPDATE people SET status = 'seen' WHERE tenant = 7")
            with pytest.raises(ApprovalNeeded) as caught:
                await gate.handle(call)
            dry_run = caught.value.question.dry_run
            assert dry_run is not None and dry_run.affected == 2, dry_run
            for_operator = describe(caught.value.question)
            assert "2 rows would be changed" in for_operator
            assert "secret1@mail.example" in for_operator
            at_client = describe_at_client(caught.value.question)
            assert "2 rows would be changed" in at_client
            assert "status new -> seen" in at_client
            assert "secret" not in at_client and "secret" not in str(caught.value)
            await gate.answer_approval(caught.value, call, True)
            assert (await gate.handle(call)).payload.affected == 2
            page = await _rows(gate, "SELECT count(*) FROM people WHERE status = 'seen'")
            assert msgspec.json.decode(page.rows) == [[2]]

    asyncio.run(scenario())


def test_the_dry_run_of_another_table_is_there_although_one_is_masked(
    engine: str, tmp_path: Path
) -> None:
    async def scenario() -> None:
        async with _gate(engine, tmp_path, approval_for="writes").opened() as gate:
            with pytest.raises(ApprovalNeeded) as caught:
                await gate.handle(_call("UPDATE places SET city = 'x' WHERE id = 1"))
            assert "city Kyiv -> x" in describe_at_client(caught.value.question)

    asyncio.run(scenario())


@pytest.mark.parametrize(
    "text",
    [
        "UPDATE people SET score = 200 WHERE id = 1",
        "UPDATE people SET id = 2 WHERE id = 1",
        "INSERT INTO people (id, status) VALUES (1, 'x')",
    ],
)
def test_what_the_database_says_of_a_refused_change_quotes_no_masked_value(
    engine: str, tmp_path: Path, text: str
) -> None:
    async def scenario() -> None:
        async with _gate(engine, tmp_path).opened() as gate:
            with pytest.raises(TidegateError) as caught:
                await gate.handle(_call(text))
            error = caught.value
            assert error.code is Code.SQL_FAILED
            assert "secret" not in f"{error.message} {error.hint} {error.details}"
            page = await _rows(gate, "SELECT count(*) FROM people WHERE status = 'new'")
            assert msgspec.json.decode(page.rows) == [[2]]

    asyncio.run(scenario())


@pytest.mark.parametrize(
    ("text", "columns"),
    [
        ("SELECT email FROM people", {"email"}),
        ("SELECT id FROM people WHERE email = 'secret1@mail.example'", {"email"}),
        ("SELECT count(email) FROM people", {"email"}),
        ("SELECT p.id FROM people p JOIN accounts a ON a.email = p.status", {"email"}),
        ("SELECT id FROM people ORDER BY email", {"email"}),
        ("SELECT * FROM people", {"email"}),
        ("SELECT id FROM mails", {"email"}),
        ("SELECT id, status FROM people WHERE score > 1", set()),
        ("SELECT count(*) FROM people", set()),
        ("SELECT id AS email FROM people", set()),
        ("SELECT l.* FROM logins l JOIN people p ON p.id = l.id", set()),
        ("SELECT 'email', score * 2 FROM people", set()),
    ],
)
def test_a_result_says_which_masked_columns_it_touched(
    engine: str, tmp_path: Path, text: str, columns: set[str]
) -> None:
    async def scenario() -> None:
        async with _gate(engine, tmp_path).opened() as gate:
            page = await _rows(gate, text)
            assert {column for _, column in page.masked} == columns

    asyncio.run(scenario())


def test_descriptions_mark_masked_columns(engine: str, tmp_path: Path) -> None:
    async def scenario() -> None:
        async with _gate(engine, tmp_path).opened() as gate:
            call = Call(WRITER, "core", "describe", Browse("catalog"), "shop")
            catalog: Catalog = (await gate.handle(call)).payload
            marked = {
                f"{table.name}.{column.name}": column.masked
                for table in catalog.tables
                for column in table.columns
                if column.masked
            }
            assert marked == dict(MASKS)

    asyncio.run(scenario())
