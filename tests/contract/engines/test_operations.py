"""An engine that speaks no SQL passes the gate: its own language judges, its operations answer."""

import json

import pytest

from support.audit_records import records
from support.engine_cases import CASES
from support.memory_engine import DATABASES
from support.memory_engine.engine import fresh
from support.memory_engine.requests import CountAll
from support.surface_client import READER, WRITER
from support.surface_gateway import SqliteGate
from tidegate.errors import Code, TidegateError
from tidegate.model.actors import Actor, Scope
from tidegate.model.requests import Call, Operation, Query, SearchHistory
from tidegate.model.results import Document, Limits, Page
from tidegate.model.source_settings import Mask
from tidegate.model.sources import Source
from tidegate.model.statements import Statement

OWNER = Actor("tok_owner", "owner", Scope.FULL_ACCESS)


@pytest.fixture
def gate(tmp_path):
    (tmp_path / "state").mkdir(mode=0o700)
    DATABASES["shop"] = fresh()
    return SqliteGate(
        tmp_path / "state",
        Source("s1", "open", "memory://shop", "memory", "memory", access="write"),
        Source("s2", "closed", "memory://shop", "memory", "memory"),
        Source("s3", "hidden", "memory://shop", "memory", "memory", masks=(Mask("items.name"),)),
    )


async def ask(gate, request, actor=READER, source="open", **fields):
    return (await gate.handle(Call(actor, "core", "tool", request, source, **fields))).payload


async def refusal(gate, request, actor=READER, source="open", **fields):
    before = repr(DATABASES)
    with pytest.raises(TidegateError) as caught:
        await ask(gate, request, actor, source, **fields)
    assert repr(DATABASES) == before
    return caught.value.code


def operation(name, **arguments):
    return Operation(name, arguments, f"{name} {arguments}")


async def test_an_operation_answers_with_a_document(gate):
    async with gate.opened():
        found = await ask(gate, operation("table.read", table="items"))
        assert isinstance(found, Document)
        assert json.loads(found.json)["rows"][0] == {"id": 1, "name": "item 1"}


async def test_its_statements_are_judged_by_its_own_language(gate):
    async with gate.opened():
        page = await ask(gate, Query(Statement("COUNT items")))
        assert isinstance(page, Page)
        assert page.rows == b"[[10]]"
        assert await refusal(gate, Query(Statement("SELECT 1"))) is Code.SQL_UNKNOWN
        assert await refusal(gate, Query(Statement("ROWS 1; CLEAR items"))) is Code.SQL_MULTIPLE


async def test_changes_need_the_scope_and_a_source_that_is_open(gate):
    add = operation("row.add", table="void", row=[1, "x"])
    clear = operation("table.clear", table="items")
    async with gate.opened():
        assert await refusal(gate, add, READER) is Code.POLICY_SCOPE
        assert await refusal(gate, clear, READER) is Code.POLICY_SCOPE
        assert await refusal(gate, add, WRITER, "closed") is Code.POLICY_READ_ONLY
        assert await refusal(gate, Query(Statement("APPEND void 1 x")), READER) is Code.POLICY_SCOPE
        assert await refusal(gate, clear, OWNER) is Code.POLICY_CONFIRM
        await ask(gate, add, WRITER)
        assert DATABASES["shop"]["void"] == [(1, "x")]
        # The phrase of confirmation is not enough: a person must approve it as well.
        assert await refusal(gate, clear, OWNER, confirmed=True) is Code.APPROVAL_NEEDED


async def test_an_unknown_operation_is_refused(gate):
    async with gate.opened():
        assert (
            await refusal(gate, operation("table.drop", table="items"), OWNER) is Code.SQL_UNKNOWN
        )


async def test_what_cannot_be_masked_is_refused(gate):
    async with gate.opened():
        for request in (operation("table.read", table="items"), Query(Statement("TABLE items"))):
            assert await refusal(gate, request, source="hidden") is Code.POLICY_MASKED


async def test_a_source_that_speaks_sql_answers_no_operation(tmp_path):
    (tmp_path / "shop").mkdir()
    (tmp_path / "state").mkdir(mode=0o700)
    case = CASES["sqlite"].prepare(tmp_path / "shop")
    gate = SqliteGate(tmp_path / "state", case.source)
    async with gate.opened():
        code = await refusal(gate, operation("table.read", table="items"), source="shop")
    assert code is Code.SQL_UNKNOWN


async def test_a_document_over_the_limit_is_refused(gate):
    small = Operation("table.read", {"table": "items"}, limits=Limits(max_bytes=20))
    async with gate.opened():
        assert await refusal(gate, small) is Code.LIMIT_BYTES


async def test_of_a_change_whose_document_is_over_the_limit_it_is_said_that_it_took_effect(gate):
    limits = Limits(max_bytes=1)
    add = Operation("row.add", {"table": "void", "row": [1, "x"]}, limits=limits)
    look = Operation("table.read", {"table": "void"}, limits=limits)
    async with gate.opened():
        with pytest.raises(TidegateError) as changed:
            await ask(gate, add, WRITER)
        with pytest.raises(TidegateError) as looked:
            await ask(gate, look, WRITER)
    assert changed.value.code is looked.value.code is Code.LIMIT_BYTES
    assert DATABASES["shop"]["void"] == [(1, "x")]
    assert "The change took effect" in changed.value.message
    assert "took effect" not in looked.value.message


async def test_a_request_of_the_engine_s_own_needs_no_other_part_to_know_it(gate, tmp_path):
    async with gate.opened():
        assert json.loads((await ask(gate, CountAll())).json)["void"] == 0
        assert json.loads((await ask(gate, CountAll(empty=False))).json)["items"] == 10
        assert await refusal(gate, CountAll(limits=Limits(max_bytes=5))) is Code.LIMIT_BYTES
        assert await refusal(gate, CountAll(), source="hidden") is Code.POLICY_MASKED
    first = next(each for each in records(tmp_path / "state") if "request" in each)
    assert (first["request"], first["statement"]) == ("count_all", "count all")
    assert (first["verdict"], first["statement_class"]) == ("allow", "count")


async def test_an_engine_refuses_a_request_of_another_engine(tmp_path):
    (tmp_path / "shop").mkdir()
    (tmp_path / "state").mkdir(mode=0o700)
    gate = SqliteGate(tmp_path / "state", CASES["sqlite"].prepare(tmp_path / "shop").source)
    async with gate.opened():
        assert await refusal(gate, CountAll(), source="shop") is Code.SQL_UNKNOWN


async def test_its_own_language_takes_secrets_out_of_what_is_recorded(gate, tmp_path):
    add = Query(Statement("APPEND void password hunter2"))
    clear = Query(Statement("CLEAR password hunter2"))
    change = Operation("row.add", {"table": "void", "password": "hunter2"}, "password hunter2")
    async with gate.opened():
        assert await refusal(gate, add) is Code.POLICY_SCOPE
        await ask(gate, add, WRITER)
        await ask(gate, change, WRITER)
        assert await refusal(gate, clear, OWNER, confirmed=True) is Code.APPROVAL_NEEDED
        (waiting,) = gate.approvals.list()
        found = (await ask(gate, SearchHistory("password"), WRITER)).entries
    assert waiting.subject.statement == "CLEAR password ***"
    assert waiting.subject.withheld
    assert [entry.text for entry in found] == ["APPEND void password ***"]
    written = records(tmp_path / "state")
    assert len(written) > 5
    assert "hunter2" not in json.dumps(written)
    assert {"table": "void", "password": "***"} in [each.get("arguments") for each in written]


async def test_what_an_operation_opens_belongs_to_its_caller(gate):
    async with gate.opened():
        basket = json.loads((await ask(gate, operation("basket.open"))).json)["basket"]
        put = operation("basket.put", basket=basket, item=3)
        assert json.loads((await ask(gate, put)).json) == {"items": 1}
        assert await refusal(gate, put, WRITER) is Code.ARGUMENT_INVALID
        assert (await ask(gate, operation("basket.close", basket=basket))).json
        assert await refusal(gate, put) is Code.ARGUMENT_INVALID
