"""The two steps of `record`: what is confirmed is what runs, with the values that it needs."""

from __future__ import annotations

import asyncio
import json

import pytest

from support import mysql_server
from support.eventually import until
from support.jdbc_surface import QUERY, make_file, served
from support.server_keeper import PASSWORD
from tidegate.model.results import Column, DriverType
from tidegate.products.jdbc.extraction.extraction import extract
from tidegate.products.jdbc.surface.confirmations import MOST_OF_OWNER, Confirmations, Seen
from tidegate.products.jdbc.surface.result_shape import dsl_hints

TEXT, NUMBER = DriverType(12, "text", "java.lang.String"), DriverType(4, "int", "java.lang.Integer")


@pytest.mark.parametrize("other", [f"{QUERY} ", QUERY.lower(), f"{QUERY} AND 1 = 1", "SELECT 1"])
async def test_only_the_exact_text_is_confirmed(tmp_path, other):
    async with served(tmp_path) as jdbc:
        peer = jdbc.peer()
        id = await peer.connected(jdbc.url)
        await peer.bare("record", query=QUERY)
        refused = await peer.bare("record", query=other, connectionId=id, confirmed=True)
        assert refused["code"] == "policy.confirm"


async def test_a_confirmation_belongs_to_its_session_and_its_connection(tmp_path):
    async with served(tmp_path) as jdbc:
        peer, stranger = jdbc.peer(), jdbc.peer()
        ids = [await peer.connected(jdbc.url) for _ in range(2)]
        await peer.bare("record", query=QUERY, connectionId=ids[0])
        given = {"query": QUERY, "confirmed": True, "parameters": ["active"]}
        refused = await peer.bare("record", connectionId=ids[1], **given)
        assert refused["code"] == "policy.confirm"
        assert (await peer.bare("record", connectionId=ids[0], **given))["status"] == "executed"
        own = await stranger.connected(jdbc.url)
        assert (await stranger.bare("record", connectionId=own, **given))["code"] == (
            "policy.confirm"
        )


def test_a_confirmation_is_forgotten_in_time_and_each_owner_has_so_many():
    now = [0.0]
    kept = Confirmations(600.0, clock=lambda: now[0])
    found = Seen(extract("SELECT 1"))
    kept.add("a", "SELECT 1", None, found)
    now[0] = 599.0
    assert kept.find("a", "SELECT 1", "id") is found
    assert kept.find("b", "SELECT 1", "id") is None
    now[0] = 600.0
    assert kept.find("a", "SELECT 1", "id") is None
    for number in range(MOST_OF_OWNER + 1):
        kept.add("a", f"SELECT {number}", None, found)
    assert kept.find("a", "SELECT 0", "id") is None
    assert kept.find("a", f"SELECT {MOST_OF_OWNER}", "id") is found


@pytest.mark.needs("mysql")
async def test_a_database_that_reads_the_query_otherwise_shows_its_own_extraction(tmp_path):
    server = mysql_server.shared()
    name = server.new_database()
    server.script(f"USE {name}; CREATE TABLE t (a int, b int); INSERT INTO t VALUES (1, 2)")
    query = "SELECT a FROM t WHERE a = ? && b = ?"
    async with served(tmp_path) as jdbc:
        peer = jdbc.peer()
        first = await peer.bare("record", query=query)
        assert len(first["extracted"]["whereConditions"]) == 1
        url = f"jdbc:mariadb://127.0.0.1:{server.port}/{name}"
        id = await peer.connected(url, user="word", password=PASSWORD)
        given = {"query": query, "connectionId": id, "confirmed": True, "parameters": [1, 2]}
        second = await peer.bare("record", **given)
        assert second["status"] == "awaiting_confirmation"
        fields = [each["field"] for each in second["extracted"]["whereConditions"]]
        assert fields == ["a", "b"]
        assert (await peer.bare("record", **given))["rows"] == [[1]]


@pytest.mark.parametrize(
    "query",
    [
        "INSERT INTO users (id) VALUES (9)",
        "DELETE FROM users",
        "UPDATE users SET name = 'x'",
        "DROP TABLE users",
        "WITH x AS (DELETE FROM users RETURNING *) SELECT * FROM x",
        "SELECT 1; DELETE FROM users",
        "{call f()}",
        "PRAGMA journal_mode = DELETE",
    ],
)
async def test_what_is_no_query_is_refused_at_the_first_step(tmp_path, query):
    async with served(tmp_path) as jdbc:
        peer = jdbc.peer()
        id = await peer.connected(jdbc.url)
        for given in ({}, {"connectionId": id}, {"connectionId": id, "confirmed": True}):
            refused = await peer.bare("record", query=query, **given)
            assert "error" in refused
        done = await peer.recorded(id, "SELECT count(*) FROM users")
        assert done["rows"] == [[2]]


async def test_a_query_that_the_gate_refuses_is_refused_at_the_second_step(tmp_path):
    async with served(tmp_path) as jdbc:
        peer = jdbc.peer()
        id = await peer.connected(jdbc.url)
        refused = await peer.recorded(id, "SELECT load_extension('x') FROM users")
        assert refused["code"] == "sql.function_refused"


@pytest.mark.parametrize(
    ("given", "problem"),
    [
        ({}, "1 parameter(s), and there are 0"),
        ({"parameters": []}, "1 parameter(s), and there are 0"),
        ({"parameters": [1, 2]}, "1 parameter(s), and there are 2"),
        ({"parameterSets": [["active"], []]}, "set 2 of parameterSets has 0"),
        ({"parameterSets": []}, "0 lists"),
        ({"parameters": [1], "parameterSets": [[1]]}, "Both"),
        ({"parameters": [{"type": "DATE", "value": "yesterday"}]}, "is no DATE"),
        ({"parameters": [{"type": "NONSENSE", "value": 1}]}, "has the type NONSENSE"),
        ({"parameters": [{"a": 1}]}, "is an object"),
    ],
)
async def test_values_that_do_not_fit_are_refused_before_the_database_is_touched(
    tmp_path, given, problem
):
    async with served(tmp_path) as jdbc:
        peer = jdbc.peer()
        id = await peer.connected(jdbc.url)
        refused = await peer.recorded(id, QUERY, **given)
        assert problem in refused["error"]
        assert refused["code"] == "argument.invalid"
        assert not list(jdbc.app.history.search("users"))


async def test_several_sets_are_several_executions(tmp_path):
    async with served(tmp_path) as jdbc:
        peer = jdbc.peer()
        id = await peer.connected(jdbc.url)
        done = await peer.recorded(id, QUERY, parameterSets=[["active"], ["none"], ["gone"]])
        assert (done["executionCount"], done["totalRows"]) == (3, 2)
        assert [row[1] for row in done["rows"]] == ["Alice", "Bob"]


async def test_typed_values_reach_the_database(tmp_path):
    async with served(tmp_path) as jdbc:
        peer = jdbc.peer()
        id = await peer.connected(jdbc.url)
        given = [
            {"type": "BINARY", "value": "AAE="},
            {"type": "INTEGER", "value": 7},
            {"type": "DECIMAL", "value": "1.50"},
            {"type": "VARCHAR", "value": None},
            True,
        ]
        done = await peer.recorded(id, "SELECT hex(?), ?, ?, ?, ?", parameters=given)
        assert done["rows"][0][0] == "0001"
        assert done["rows"][0][1] == 7
        assert done["rows"][0][3] is None


async def test_what_a_limit_cuts_is_said(tmp_path):
    rows = (
        "WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n LIMIT 50) SELECT i FROM n"
    )
    async with served(tmp_path) as jdbc:
        peer = jdbc.peer()
        id = await peer.connected(jdbc.url)
        done = await peer.recorded(id, f"{rows} WHERE i > ?", parameters=[0], maxRows=10)
        assert (done["totalRows"], done["truncated"]) == (10, True)
        assert done["truncations"] == [
            {"execution": 1, "kind": "rows", "limit": 10, "returned": 10}
        ]
        again = await peer.recorded(
            id, f"{rows} WHERE i >= ?", parameterSets=[[1], [1], [1]], maxRows=10
        )
        assert again["truncations"][-1] == {"kind": "executions", "limit": 3, "returned": 1}


async def test_a_result_without_rows_has_its_columns(tmp_path):
    async with served(tmp_path) as jdbc:
        peer = jdbc.peer()
        id = await peer.connected(jdbc.url)
        done = await peer.recorded(id, QUERY, parameters=["none"])
        assert (done["rows"], done["totalRows"], len(done["columns"])) == ([], 0, 3)


async def test_numbers_survive_json(tmp_path):
    async with served(tmp_path) as jdbc:
        peer = jdbc.peer()
        id = await peer.connected(jdbc.url)
        done = await peer.recorded(id, "SELECT 9007199254740993, 1e999, x'00ff', 0.1")
        assert done["rows"] == [["9007199254740993", "Infinity", "AP8=", 0.1]]


def _hints(*columns):
    return dsl_hints([Column(name, "") for name, _ in columns], [type_ for _, type_ in columns])


def test_the_hints_for_acolyte():
    text = _hints(("a", TEXT), ("b", TEXT))
    assert (text["useStringList"], text["recommendedRowListFactory"]) == (True, "rowList2")
    assert "one column" in text["rule"]
    assert _hints(("a", TEXT), ("b", NUMBER))["useStringList"] is False
    wide = _hints(*((f"c{n}", NUMBER) for n in range(53)))
    assert wide["recommendedRowListFactory"] is None
    assert "52" in wide["warnings"][0]
    assert _hints(*((f"c{n}", NUMBER) for n in range(52)))["recommendedRowListFactory"] == (
        "rowList52"
    )
    assert "a" in _hints(("a", TEXT), ("a", TEXT))["warnings"][0]
    assert _hints(("", NUMBER))["warnings"]


async def test_calls_of_one_session_keep_their_order(tmp_path):
    async with served(tmp_path) as jdbc:
        peer = jdbc.peer()
        id = await peer.connected(jdbc.url)
        given = {"query": QUERY, "connectionId": id}
        answers = await asyncio.gather(
            peer.request("record", **given),
            peer.request("record", **given, confirmed=True, parameters=["active"]),
            peer.request("close", connectionId=id),
            peer.request("record", **given),
        )
        assert [each["result"].get("status") for each in answers] == [
            "awaiting_confirmation",
            "executed",
            "closed",
            None,
        ]


PERSON = {"surface": {"jdbc": {"confirm": "person"}}}


async def test_where_a_person_confirms_a_question_waits_in_the_inbox(tmp_path):
    query = "SELECT id FROM users WHERE status = ?"
    async with served(tmp_path, **PERSON) as jdbc:
        peer = jdbc.peer()
        id = await peer.connected(jdbc.url)
        given = {"query": query, "connectionId": id, "confirmed": True, "parameters": ["active"]}
        pending = await peer.recorded(id, query, parameters=["active"])
        assert pending["code"] == "approval.needed"
        assert "send the same call again" in pending["hint"]
        assert not list(jdbc.app.history.search("users"))
        approvals = jdbc.app.approvals
        (question,) = approvals.list()
        assert (question.subject.rule, question.subject.tool) == ("surface.confirm", "record")
        approvals.resolve(question.id, "allowed", "the operator")
        other = await peer.bare("record", **{**given, "parameters": ["gone"]})
        assert other["code"] == "approval.needed"  # it was for other values
        assert (await peer.bare("record", **given))["rows"] == [[1]]
        assert (await peer.bare("record", **given))["code"] == "approval.needed"  # used once
        denied = approvals.list()[-1]
        approvals.resolve(denied.id, "denied", "the operator")
        assert (await peer.bare("record", **given))["code"] == "approval.declined"


@pytest.mark.parametrize("bare", [True, False])
async def test_a_source_that_asks_for_everything_has_a_person_approve_each_query(tmp_path, bare):
    (tmp_path / "files").mkdir()
    url = make_file(tmp_path / "files" / "asked.db").replace("jdbc:sqlite:", "sqlite:///")
    source = {"name": "shop", "url": url, "approval_for": "everything", "approval": "inbox"}
    async with served(tmp_path, sources=[source]) as jdbc:
        peer = jdbc.peer()
        await _open_with_forms(peer)
        id = await peer.connected("shop")
        query = "SELECT id FROM users ORDER BY id"
        given = {"query": query, "connectionId": id}

        async def record(**more):
            if bare:
                return await peer.bare("record", **given, **more)
            arguments = {**given, **more}
            reply = await peer.request("tools/call", name="record", arguments=arguments)
            return reply["result"]["structuredContent"]

        first = await record()
        assert first["description"]["needsApproval"] is True
        assert not jdbc.app.approvals.list()  # the first step asks nobody
        assert (await record(confirmed=True))["code"] == "approval.needed"
        (question,) = jdbc.app.approvals.list()
        jdbc.app.approvals.resolve(question.id, "allowed", "the operator")
        assert (await record(confirmed=True))["rows"] == [[1], [2]]


@pytest.mark.parametrize(
    ("answer", "code"),
    [
        ({"action": "accept", "content": {"decision": "allow once"}}, None),
        ({"action": "accept", "content": {"decision": "deny"}}, "approval.declined"),
        ({"action": "decline"}, "approval.declined"),
    ],
)
async def test_a_person_confirms_in_a_form(tmp_path, answer, code):
    async with served(tmp_path, **PERSON) as jdbc:
        peer = jdbc.peer()
        await _open_with_forms(peer)
        id = await peer.connected(jdbc.url)
        query = "SELECT id FROM users"
        await peer.bare("record", query=query)
        call = asyncio.ensure_future(
            peer.bare("record", query=query, connectionId=id, confirmed=True)
        )
        asked = await _answer(peer, answer)
        assert query in asked["params"]["message"]
        result = await call
        assert result.get("code") == code
        assert bool(list(jdbc.app.history.search("users"))) is (code is None)


async def test_a_person_is_asked_for_missing_values(tmp_path):
    async with served(tmp_path) as jdbc:
        peer = jdbc.peer()
        await _open_with_forms(peer)
        id = await peer.connected(jdbc.url)
        await peer.bare("record", query=QUERY)
        call = asyncio.ensure_future(
            peer.bare("record", query=QUERY, connectionId=id, confirmed=True)
        )
        asked = await _answer(peer, {"action": "accept", "content": {"p1": "gone"}})
        assert "status =" in json.dumps(asked["params"]["requestedSchema"])
        assert (await call)["rows"] == [[2, "Bob", "bob@example.com"]]


async def _open_with_forms(peer):
    await peer.request(
        "initialize",
        protocolVersion="2025-11-25",
        capabilities={"elicitation": {}},
        clientInfo={"name": "peer", "version": "1"},
    )
    await peer.send({"jsonrpc": "2.0", "method": "notifications/initialized"})


async def _answer(peer, result):
    """Answer the question that the server asks; returns it."""
    asked = await until(
        lambda: [each for each in peer.notes.messages if "id" in each], "a question"
    )
    await peer.send({"jsonrpc": "2.0", "id": asked[0]["id"], "result": result})
    return asked[0]


async def test_tables_of_a_schema_come_in_pages(tmp_path):
    script = ";".join(f"CREATE TABLE t{n:03} (a int)" for n in range(250))
    async with served(tmp_path) as jdbc:
        url = make_file(jdbc.files / "many.db", script)
        peer = jdbc.peer()
        id = await peer.connected(url)
        first = await peer.bare("discover", connectionId=id, schemaPattern="ma*")
        assert (first["totalTables"], len(first["tables"]), first["schemas"]) == (
            250,
            200,
            ["main"],
        )
        rest = await peer.bare(
            "discover", connectionId=id, schemaPattern="%", cursor=first["nextCursor"]
        )
        assert len(rest["tables"]) == 50
        assert "nextCursor" not in rest
        for cursor in ("x", "-1", "9" * 30):
            wrong = await peer.fault("discover", connectionId=id, schemaPattern="%", cursor=cursor)
            assert wrong["code"] == -32602 and "cursor" in str(wrong["data"])


@pytest.mark.parametrize(
    ("table", "found"),
    [("users", "users"), ("USERS", "users"), ("main.users", "users"), ("Main.Users", "users"),
     ("a_b", "a_b"), ("A%", None), ("a_", None), ("%", None), ("user_", None),
     ("odd.name", "odd.name")],
)  # fmt: skip
async def test_a_table_is_found_by_its_name_and_by_no_pattern(tmp_path, table, found):
    script = "CREATE TABLE users (u int); CREATE TABLE a_b (x int); CREATE TABLE axb (y int);"
    script += 'CREATE TABLE "odd.name" (z int)'
    async with served(tmp_path) as jdbc:
        url = make_file(jdbc.files / "names.db", script)
        peer = jdbc.peer()
        id = await peer.connected(url)
        answer = await peer.bare("discover", connectionId=id, table=table)
        if found is None:
            assert answer["error"].startswith("Table not found")
        else:
            column = {"users": "u", "a_b": "x", "odd.name": "z"}[found]
            assert [each["name"] for each in answer["columns"]] == [column]
            assert answer["table"] == table
