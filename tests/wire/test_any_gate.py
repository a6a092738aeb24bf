"""Whatever a caller does at one of two processes, its next call goes on at the other."""

from __future__ import annotations

import json
import sqlite3
from collections.abc import Iterator
from contextlib import closing
from typing import Any
from urllib.parse import quote, urlencode

import pytest

from support import postgres_server
from support.command_line import tidegate
from support.console_visitor import Visitor
from support.eventually import wait_until
from support.gate_pair import KINDS, MODERN, GatePair, events, gate_pair
from support.operator_terminal import operator_terminal

REVISIONS = ("2025-06-18", MODERN)
WITH_SESSIONS = ("2024-11-05", "2025-03-26", "2025-06-18", "2025-11-25")
SLOW = (
    "WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < 400000000)"
    " SELECT max(i) AS m FROM n"
)


@pytest.fixture(scope="module", params=KINDS)
def pair(
    request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[GatePair]:
    server = postgres_server.shared()
    database = server.new_database()
    server.ask("CREATE SCHEMA other; CREATE TABLE other.t AS SELECT 22 AS n", database)
    data = {"name": "data", "url": server.url(database), "access": "write"}
    folder = tmp_path_factory.mktemp("pair")
    listed = {"hosts": ["localhost", "127.0.0.1"], "directories": [str(folder)]}
    with gate_pair(
        *(request.param, folder),
        sources=[data],
        temporary_sources=listed,
        tasks={"after_s": 0.2},
        console={"enabled": True},
    ) as made:
        plain = server.tcp_url(server.new_database())
        made.own_url = plain.replace("${ENV:PGTEST_PASSWORD}", quote(postgres_server.PASSWORD))
        yield made
    server.drop_database(database)


def test_the_rest_of_a_result_is_shown_by_either_of_them(pair: GatePair) -> None:
    client = pair.client()
    found = json.loads(
        client.call(1, "query", source="shop", sql="SELECT id FROM items ORDER BY id", max_rows=7)
    )
    shown, pages = list(found["rows"]), 0
    while handle := found.get("more"):
        pages += 1
        assert pages < 20
        found = json.loads(client.call(1 + pages % 2, "more", handle=handle, max_rows=90))
        shown += found["rows"]
    assert shown == [[n] for n in range(500)]
    assert pages == 6


def test_a_result_that_is_too_large_names_the_process_that_has_it(pair: GatePair) -> None:
    text = "SELECT id, printf('%.4000c', 'x') AS x FROM items"
    client = pair.client()
    handle = json.loads(client.call(1, "query", source="shop", sql=text, max_rows=1))["more"]
    refused = client.call(2, "more", handle=handle)
    assert refused.startswith("result.gone: ")
    assert ("worker 1" if pair.kind == "workers" else f"the gate {pair.gate_id(1)}") in refused
    assert len(json.loads(client.call(1, "more", handle=handle, max_rows=2))["rows"]) == 2


def test_rows_that_were_read_under_other_settings_are_not_shown_elsewhere(pair: GatePair) -> None:
    client, other = pair.client(), pair.client()
    other.headers["Authorization"] = f"Bearer {pair.make_token()}"
    handle = json.loads(
        client.call(1, "query", source="shop", sql="SELECT id FROM items", max_rows=5)
    )["more"]
    for at in (1, 2):
        assert other.call(at, "more", handle=handle).startswith("result.gone: ")
    assert json.loads(client.call(2, "more", handle=handle, max_rows=5))["rows"]


@pytest.mark.parametrize("revision", REVISIONS)
def test_where_a_caller_has_switched_to_holds_at_both(pair: GatePair, revision: str) -> None:
    client = pair.client("/mcp/workbench", revision)
    listed = json.loads(client.call(1, "list_connections"))["connections"]
    data = next(each["id"] for each in listed if each["name"] == "data")
    for at, schema in ((1, "other"), (2, "public"), (1, "other")):
        client.call(at, "switch_schema", connection_id=data, schema=schema)
        for other in (1, 2):
            client.call(other, "connect", connection_id=data)
            status = json.loads(client.call(other, "get_connection_status", connection_id=data))
            assert status["current_schema"] == schema
    found = client.call(2, "execute_query", connection_id=data, query="SELECT n FROM t")
    assert "22" in found, found


@pytest.mark.parametrize("revision", REVISIONS)
def test_the_default_of_a_session_holds_at_both(pair: GatePair, revision: str) -> None:
    client = pair.client("/mcp/postgres", revision)
    for at, name, text in (
        (1, "data", "SELECT n FROM other.t"), (2, "shop", "SELECT 7 AS n FROM items LIMIT 1"),
    ):  # fmt: skip
        client.call(at, "query_database", query=f"set default database to {name}")
        for other in (1, 2):
            found = client.call(other, "query_database", query=text)
            assert '{"n": 22}' in found or '{"n": 7}' in found, found


@pytest.mark.parametrize("revision", REVISIONS)
def test_an_id_of_a_saved_source_works_at_both_until_it_is_closed(
    pair: GatePair, revision: str
) -> None:
    client = pair.client("/mcp/jdbc", revision)
    id = json.loads(client.call(1, "connect", url="shop"))["id"]
    for at in (2, 1, 2):
        assert "items" in client.call(at, "discover", connectionId=id, schemaPattern="%")
    other = pair.client("/mcp/jdbc", REVISIONS[0])
    assert "Invalid connection" in other.call(2, "discover", connectionId=id, schemaPattern="%")
    client.call(2, "close", connectionId=id)
    assert "Invalid connection" in client.call(2, "discover", connectionId=id, schemaPattern="%")


def test_what_one_process_alone_has_is_refused_elsewhere_with_its_name(pair: GatePair) -> None:
    client = pair.client("/mcp/jdbc", REVISIONS[0])
    file = pair.folder / "own.db"
    with closing(sqlite3.connect(file)) as connection, connection:
        connection.execute("CREATE TABLE IF NOT EXISTS own (n INTEGER)")
    opened = json.loads(client.call(1, "connect", url=f"jdbc:sqlite:{file}"))
    assert "own" in client.call(1, "discover", connectionId=opened["id"], schemaPattern="%")
    answer = client.call(2, "discover", connectionId=opened["id"], schemaPattern="%")
    if pair.kind == "workers":  # of which one has all calls of this caller
        assert '"own"' in answer
    else:
        assert f"opened by the gate {pair.gate_id(1)}, which has it alone" in answer
    default = pair.client("/mcp/postgres", REVISIONS[0])
    default.call(1, "query_database", query=f"set default database to {pair.own_url}")
    question = "SELECT 5 AS n"
    assert '{"n": 5}' in default.call(1, "query_database", query=question)
    answer = default.call(2, "query_database", query=question)
    if pair.kind == "workers":
        assert '{"n": 5}' in answer
    else:
        assert f"opened by the gate {pair.gate_id(1)}, which has it alone" in answer


@pytest.mark.parametrize("revision", WITH_SESSIONS)
def test_the_stream_of_a_session_hears_of_calls_at_the_other(pair: GatePair, revision: str) -> None:
    client = pair.client("/mcp", revision)
    with closing(pair.connect(1)) as listening:
        stream = events(client.get(listening))
        client.headers["Accept"] = "application/json"  # so that progress goes to that stream
        about = {"name": "query", "arguments": {"sql": "SELECT 1", "source": "shop"}}
        assert "result" in client.ask(2, "tools/call", **about, _meta={"progressToken": revision})
        heard = next(stream)
    assert heard["method"] == "notifications/progress"
    assert heard["params"]["progressToken"] == revision


def test_a_listener_hears_what_becomes_of_a_task_of_the_other(pair: GatePair) -> None:
    client = pair.client()
    client.capabilities = {"extensions": {"io.modelcontextprotocol/tasks": {}}}
    about = {"name": "query", "arguments": {"sql": SLOW, "source": "shop"}}
    task = client.ask(1, "tools/call", **about)["result"]["taskId"]
    with closing(pair.connect(2)) as listening:
        stream = events(
            client.open(listening, "subscriptions/listen", notifications={"taskIds": [task]})
        )
        assert next(stream)["params"]["notifications"]["taskIds"] == [task]
        client.ask(2, "tasks/cancel", taskId=task)
        heard = next(each for each in stream if each["params"]["status"] != "working")
    assert (heard["method"], heard["params"]["taskId"]) == ("notifications/tasks", task)
    assert heard["params"]["status"] == "cancelled"


def test_a_stream_is_taken_up_at_the_other_or_it_says_where_it_is(pair: GatePair) -> None:
    client = pair.client("/mcp", "2025-11-25")
    about = {"name": "query", "arguments": {"sql": "SELECT 41 + 1", "source": "shop"}}
    with closing(pair.connect(1)) as connection:
        text = client.open(connection, "tools/call", **about, _meta={"progressToken": 1}).read()
    first = text.partition(b"id: ")[2].partition(b"\n")[0].decode()
    for at in (1, 2):
        with closing(pair.connect(at)) as connection:
            response = client.get(connection, **{"Last-Event-ID": first})
            found = response.read().decode()
        if at == 1 or pair.kind == "workers":
            assert response.status == 200 and "[[42]]" in found.replace("\\", "")
        else:
            assert response.status == 421 and response.headers["Retry-After"] == "1"
            assert f"kept by the gate {pair.gate_id(1)}" in found
    assert "result" in client.ask(2, "tools/list")  # the session goes on


SLEEPS = "SELECT 42 AS n FROM pg_sleep(0.8)"


def test_what_came_of_a_long_call_is_read_from_either_of_them(pair: GatePair) -> None:
    about = {"name": "query", "arguments": {"sql": SLEEPS, "source": "data"}}
    client = pair.client()
    client.capabilities = {"extensions": {"io.modelcontextprotocol/tasks": {}}}
    task = client.ask(1, "tools/call", **about)["result"]["taskId"]

    def ended() -> Any:
        found = client.ask(2, "tasks/get", taskId=task)["result"]
        return found if found["status"] != "working" else None

    found = wait_until(ended, "the task has ended")
    assert (found["status"], "42" in json.dumps(found.get("result"))) == ("completed", True), found
    stranger = pair.client()
    stranger.capabilities = client.capabilities
    stranger.headers["Authorization"] = f"Bearer {pair.make_token()}"
    assert "no such task" in stranger.ask(2, "tasks/get", taskId=task)["error"]["message"]


def test_activity_at_one_has_the_calls_of_both_and_says_whose_they_are(pair: GatePair) -> None:
    client = pair.client()
    texts = [f"SELECT {n} AS of_both" for n in range(8)]
    for n, text in enumerate(texts):
        client.call(1 + n % 2, "query", source="shop", sql=text)
    file = pair.folder / "passphrase"
    file.write_text("correct horse 1\n")
    words = ("operator", "add", "ada", "--new-passphrase-file", str(file), *pair.words)
    with operator_terminal() as terminal:
        added = tidegate(*words, terminal=terminal)
    assert added.status == 0, added.err
    visitor = Visitor(f"http://127.0.0.1:{pair.port(1)}")
    with closing(visitor.client):
        visitor.sign_in(name="ada", passphrase="correct horse 1")
        lines: list[dict[str, Any]] = []
        place: str | None = ""
        for _ in range(9):
            query = urlencode({"q": "of_both", "limit": 3, "before": place or ""})

            def whole_page(query: str = query) -> Any:  # a gate may be late on a busy machine
                found = visitor.get(f"activity?{query}").json()
                return found if not found["missing"] else None

            found = wait_until(whole_page, "both have answered")
            lines += found["lines"]
            if (place := found["next"]) is None:
                break
        assert sorted(line["statement"] for line in lines) == texts
        times = [line["time"] for line in lines]
        assert times == sorted(times, reverse=True)
        gates = {pair.gate_id(1), pair.gate_id(2)} if pair.kind == "gates" else {""}
        assert {line["gate"] for line in lines} == gates
        for line in lines[-2:]:
            name = f"{line['call_id']}@{line['gate']}" if line["gate"] else line["call_id"]
            shown = visitor.get(f"activity/lines/{quote(name, safe='')}").json()
            assert shown["line"]["statement"] == line["statement"]
            assert shown["proof"]["state"] in ("verified", "after_checkpoint")
            story = visitor.get(f"activity/story?{urlencode({'session': name})}").json()
            assert line["call_id"] in [each["call_id"] for each in story["lines"]]
        filters = {"q": "of_both"}
        ticket = visitor.post("activity/export-ticket", {"format": "jsonl", "filters": filters})
        saved = visitor.get(f"activity/export?ticket={ticket.json()['ticket']}")
        exported = [json.loads(each) for each in saved.text.splitlines()]
        assert sorted(each["statement"] for each in exported) == texts
        assert saved.headers["x-tidegate-complete"] == "yes"
