"""The examples of the document, in both of its forms, on the database that they name."""

from __future__ import annotations

from uuid import UUID

import pytest

from support import postgres_server
from support.jdbc_surface import QUERY, USERS, served
from support.server_keeper import PASSWORD
from support.surface_client import modern_meta

FORMS = ("bare", "tool")
SUCCESS = {
    "status": "connected",
    "driver": "org.postgresql.Driver",
    "dependency": None,
    "driverSource": "classpath",
    "securityWarnings": [
        "Use this MCP connection only against non-sensitive databases (local/dev/test), not"
        " production.",
        "Never expose credentials in prompts, logs, screenshots, or committed files.",
    ],
    "credentialGuidance": {
        "recommendation": "Use environment variables or a secrets manager and inject credentials"
        " at runtime.",
        "avoid": ["hardcoded passwords", "plaintext secrets in scripts"],
    },
}


@pytest.fixture(scope="module")
def database():
    server = postgres_server.shared()
    name = server.new_database()
    server.ask(USERS, name)
    return f"jdbc:postgresql://127.0.0.1:{server.port}/{name}"


async def _call(peer, form, method, **params):
    """The result in one of the forms; of an MCP error the same fields."""
    if form == "bare":
        return await peer.bare(method, **params)
    reply = await peer.call(method, **params)
    result = reply["result"]
    assert result.get("isError", False) == ("error" in result["structuredContent"])
    return result["structuredContent"]


async def _peer(jdbc, form):
    peer = jdbc.peer()
    if form == "tool":
        await peer.open()
    return peer


@pytest.mark.parametrize("form", FORMS)
async def test_the_complete_workflow(tmp_path, database, form):
    async with served(tmp_path) as jdbc:
        peer = await _peer(jdbc, form)
        connected = await _call(
            peer, form, "connect", url=database, user="postgres", password=PASSWORD
        )
        assert {name: connected[name] for name in SUCCESS} == SUCCESS
        id = connected["id"]
        assert str(UUID(id)) == id

        found = await _call(peer, form, "discover", connectionId=id, table="users")
        assert found["table"] == "users"
        assert [(each["name"], each["type"]) for each in found["columns"]] == [
            ("id", 4),
            ("name", 12),
            ("email", 12),
            ("status", 12),
            ("created_at", 93),
        ]

        query = "SELECT id, name FROM users WHERE id = ?"
        extracted = await _call(peer, form, "record", query=query)
        assert extracted["status"] == "awaiting_confirmation"
        assert extracted["query"] == query
        assert extracted["extracted"]["selectFields"] == ["id", "name"]
        assert extracted["extracted"]["parameterCount"] == 1
        (condition,) = extracted["extracted"]["whereConditions"]
        assert {name: condition[name] for name in ("field", "operator", "placeholder")} == {
            "field": "id",
            "operator": "=",
            "placeholder": "?",
        }
        assert extracted["message"] == (
            "Extracted 2 field(s), 1 condition(s), 1 parameter(s). Please confirm this extraction"
            " is correct before execution."
        )

        # The document's step 4 gives no value for its ?. That is refused, and values are added.
        refused = await _call(peer, form, "record", connectionId=id, query=query, confirmed=True)
        assert refused["error"].startswith("Parameter count mismatch")
        done = await _call(
            peer, form, "record", connectionId=id, query=query, confirmed=True, parameters=[1]
        )
        assert (done["status"], done["executionCount"], done["totalRows"]) == ("executed", 1, 1)
        assert done["rows"] == [[1, "Alice"]]

        closed = await _call(peer, form, "close", connectionId=id)
        assert closed == {"status": "closed", "connectionId": id}


@pytest.mark.parametrize("form", FORMS)
async def test_the_example_of_the_second_step(tmp_path, database, form):
    async with served(tmp_path) as jdbc:
        peer = await _peer(jdbc, form)
        connected = await _call(
            peer, form, "connect", url=database, user="postgres", password=PASSWORD
        )
        id = connected["id"]
        await _call(peer, form, "record", query=QUERY)
        done = await _call(
            peer,
            form,
            "record",
            connectionId=id,
            query=QUERY,
            confirmed=True,
            parameters=["active"],
        )
        assert done["columns"][:2] == [
            {
                "index": 1,
                "name": "id",
                "jdbcType": 4,
                "jdbcTypeName": "int4",
                "javaClassName": "java.lang.Integer",
                "encoding": "number, a string beyond 2^53",
            },
            {
                "index": 2,
                "name": "name",
                "jdbcType": 12,
                "jdbcTypeName": "varchar",
                "javaClassName": "java.lang.String",
            },
        ]
        assert done["dslHints"] == {
            "recommendedRowListFactory": "rowList3",
            "useStringList": False,
            "rule": "Use RowLists.rowListN with typed columns; do not use RowLists.stringList for"
            " mixed or non-text columns.",
        }
        assert done["rows"] == [[1, "Alice", "alice@example.com"]]


@pytest.mark.parametrize("form", FORMS)
async def test_confirmed_without_an_extraction_fails_and_runs_nothing(tmp_path, form):
    async with served(tmp_path) as jdbc:
        peer = await _peer(jdbc, form)
        id = (await _call(peer, form, "connect", url=jdbc.url))["id"]
        query = "SELECT id FROM users"
        refused = await _call(peer, form, "record", connectionId=id, query=query, confirmed=True)
        assert refused["code"] == "policy.confirm"
        assert "extract" in refused["hint"]
        assert not [entry for entry in jdbc.app.history.search("users") if query in entry.text]


@pytest.mark.parametrize("form", FORMS)
async def test_the_errors_that_the_document_lists(tmp_path, database, form, monkeypatch):
    monkeypatch.delenv("DB_URL", raising=False)
    async with served(tmp_path) as jdbc:
        peer = await _peer(jdbc, form)

        async def error(method, **params):
            result = await _call(peer, form, method, **params)
            return result["error"]

        assert (await error("connect", url="postgresql:localhost")).startswith("Invalid URL")
        refused = await error("connect", url="jdbc:postgresql://127.0.0.1:1/x", user="u")
        assert refused.startswith("Failed to connect: Connection refused")
        wrong = await error("connect", url=database, user="postgres", password="wrong")
        assert wrong.startswith("Failed to connect: Authentication failed")
        assert "wrong" not in wrong
        assert (await error("connect", url="jdbc:h2:mem:x")).startswith("Driver not found")
        assert await error("connect", url="${DB_URL}") == (
            "Missing environment variable 'DB_URL' for connect parameter 'url'."
        )
        unknown = "a1b2c3d4-e5f6-4a7b-8c9d-0e1f2a3b4c5d"
        assert await error("discover", connectionId=unknown, table="x") == "Invalid connection"
        assert await error("close", connectionId=unknown) == "Invalid connection"
        assert (
            await error("record", connectionId=unknown, query="SELECT 1", confirmed=True)
            == "Invalid connection"
        )
        id = (await _call(peer, form, "connect", url=jdbc.url))["id"]
        assert (await error("discover", connectionId=id, table="nothing")).startswith(
            "Table not found"
        )
        await _call(peer, form, "close", connectionId=id)
        assert await error("close", connectionId=id) == "Invalid connection"


async def test_permission_denied_where_the_user_may_not_read_a_table(tmp_path):
    server = postgres_server.shared()
    name = server.new_database()
    server.ask(USERS, name)
    server.ask(
        "DROP ROLE IF EXISTS jdbc_nobody;"
        f"CREATE ROLE jdbc_nobody LOGIN PASSWORD '{PASSWORD}'; CREATE TABLE free (a int);"
        "GRANT SELECT ON free TO jdbc_nobody",
        name,
    )
    url = f"jdbc:postgresql://127.0.0.1:{server.port}/{name}"
    async with served(tmp_path) as jdbc:
        peer = jdbc.peer()
        id = await peer.connected(url, user="jdbc_nobody", password=PASSWORD)
        assert "columns" in await peer.bare("discover", connectionId=id, table="free")
        refused = await peer.bare("discover", connectionId=id, table="users")
        assert refused["error"].startswith("Permission denied")


async def test_the_json_rpc_errors_of_the_document(tmp_path):
    async with served(tmp_path) as jdbc:
        peer = jdbc.peer()
        missing = await peer.fault("discover", table="users")
        assert missing == {
            "code": -32602,
            "message": "Invalid params",
            "data": "Missing required parameter: connectionId",
        }
        for method, params, name in [
            ("connect", {}, "url"),
            ("discover", {"connectionId": "x"}, "table"),
            ("record", {}, "query"),
            ("record", {"query": "SELECT 1", "confirmed": True}, "connectionId"),
            ("close", {}, "connectionId"),
        ]:
            fault = await peer.fault(method, **params)
            assert fault["data"] == f"Missing required parameter: {name}"
        assert (await peer.fault("conect"))["code"] == -32601
        wrong = await peer.fault("record", query=1)
        assert (wrong["code"], wrong["message"]) == (-32602, "Invalid params")
        assert "query" in wrong["data"]
        unknown = await peer.fault("close", connectionId="x", more=1)
        assert "more" in unknown["data"]
        await peer.open()
        assert (await peer.error("conect"))["code"] == -32601


@pytest.mark.parametrize("client", ["peer", "mcp"])
@pytest.mark.parametrize("revision", ["2024-11-05", "2025-06-18", "2025-11-25", "2026-07-28"])
async def test_a_tool_says_the_reason_where_the_client_shows_it(tmp_path, revision, client):
    async with served(tmp_path) as jdbc:
        peer = jdbc.peer(revision=revision, client=client)
        meta = {"_meta": modern_meta(client)} if revision == "2026-07-28" else {}
        if not meta:
            await peer.open()
        wrong = {"name": "discover", "arguments": {"table": "users"}}
        reply = await peer.request("tools/call", **wrong, **meta)
        if revision >= "2025-11-25" or client == "mcp":
            assert reply["result"]["isError"] is True
            said = reply["result"]["content"][0]["text"]
        else:
            assert reply["error"]["code"] == -32602
            said = reply["error"]["message"]
        assert "Missing required parameter: connectionId" in said


@pytest.mark.parametrize(
    ("message", "code"),
    [
        ({"method": "connect", "params": {}, "id": 1}, -32600),
        ({"jsonrpc": "2.0", "params": {}, "id": 1}, -32600),
        ({"jsonrpc": "2.0", "method": "connect", "params": ["jdbc:x"], "id": 1}, -32600),
        ({"jsonrpc": "2.0", "method": "connect", "params": {"url": "x"}, "id": None}, -32600),
    ],
)
async def test_the_form_of_a_request(tmp_path, message, code):
    async with served(tmp_path) as jdbc:
        answer = await jdbc.peer().send(message)
        assert answer is not None
        assert answer["error"]["code"] == code
        assert answer["error"]["message"].startswith("Invalid Request")


async def test_every_kind_of_id_is_answered_and_a_notification_is_not(tmp_path):
    async with served(tmp_path) as jdbc:
        peer = jdbc.peer()
        for id in (1, 0, -5, 1.5, "x", ""):
            message = {"jsonrpc": "2.0", "method": "record", "params": {"query": "SELECT 1"}}
            answer = await peer.send({**message, "id": id})
            assert answer is not None
            assert answer["id"] == id
            assert await peer.send(message) is None
