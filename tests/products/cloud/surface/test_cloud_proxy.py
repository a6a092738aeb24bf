"""The surface `cloud` before a backing server: the same answers, gate and records as alone."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from products.cloud.support.stackql_server import DELETE as STACKQL_DELETE
from products.cloud.support.stackql_server import DENIED, stackql_server
from support.audit_records import records
from support.cloud_backing import Backing, backing_server, proxy_of
from support.cloud_surface import (
    DELETE,
    EXEC,
    INSERT,
    REPLACE,
    RESOURCE,
    SELECT,
    UPDATE,
    CloudClient,
    Reply,
    answering,
    opened,
    recorded,
)
from support.permits import permit_for
from support.surface_client import OWNER
from support.tcp_proxy import between
from tidegate.app import App
from tidegate.config.loading import convert_settings
from tidegate.engines.registry import engine_of
from tidegate.errors import Code, TidegateError
from tidegate.identity.tokens import Tokens
from tidegate.model.actors import Scope
from tidegate.model.cancellation import NEVER, Cancellation
from tidegate.model.requests import Call, Query
from tidegate.model.sources import Source
from tidegate.model.statements import Effect, Statement
from tidegate.products.cloud.proxy.connection import BackingConnection
from tidegate.products.cloud.proxy.cursor import read_notices
from tidegate.products.cloud.proxy.engine import CloudProxyEngine
from tidegate.products.cloud.proxy.url import read_target
from tidegate.store.records import TokenRights
from tidegate.store.sqlite.state import SqliteState

pytestmark = pytest.mark.needs("pgwire")

PLACE = {"provider": "desk", "service": "tickets", "resource": "tickets"}
FAILING = f"SELECT id FROM {RESOURCE} WHERE team = 'failing'"
RANDOM = UPDATE.replace("'Changed'", "hex(randomblob(4))")
CALLS: list[tuple[str, dict[str, Any]]] = [
    ("list_providers", {}),
    ("list_services", {"provider": "desk"}),
    ("list_resources", {"provider": "desk", "service": "tickets"}),
    ("list_resources", {"provider": "desk", "service": "none"}),
    ("list_methods", PLACE),
    ("describe_resource", PLACE),
    ("describe_method", {**PLACE, "method": "list"}),
    ("list_registry", {}),
    ("pull_provider", {"provider": "desk"}),
    ("validate_select_query", {"sql": SELECT}),
    ("validate_select_query", {"sql": f"SELECT id FROM {RESOURCE}"}),
    ("validate_select_query", {"sql": DELETE}),
    ("run_select_query", {"sql": SELECT}),
    ("run_select_query", {"sql": SELECT, "row_limit": 1}),
    ("run_select_query", {"sql": f"{SELECT} AND id = 'none'"}),
    ("run_select_query", {"sql": FAILING}),
    ("run_select_query", {"sql": "SELECT 1 AS n, 'ok' AS s, 1.5 AS x, NULL AS e, 2 AS n"}),
    ("run_select_query", {"sql": "SELECT 1; DELETE FROM desk.tickets.tickets"}),
    ("run_select_query", {"sql": "SELEC 1"}),
    ("run_mutation_query", {"sql": UPDATE}),
    ("run_mutation_query", {"sql": f"{INSERT} RETURNING id, title"}),
    ("run_mutation_query", {"sql": UPDATE.replace("'red'", "'failing'")}),
    ("run_lifecycle_operation", {"sql": EXEC}),
]


@pytest.fixture(scope="module")
def backing(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Backing]:
    with backing_server(tmp_path_factory.mktemp("backing")) as running:
        yield running


def without_times(result: dict[str, Any]) -> dict[str, Any]:
    payload = result.get("structuredContent", {})
    if "timestamp" not in payload:
        return result
    stamp = payload["timestamp"]
    return json.loads(json.dumps(result).replace(stamp, "NOW"))


async def test_every_tool_answers_through_a_proxy_as_it_does_alone(
    tmp_path: Path, backing: Backing
) -> None:
    (tmp_path / "proxy").mkdir()
    (tmp_path / "alone").mkdir()
    async with (
        proxy_of(backing, tmp_path / "proxy") as proxy,
        opened(tmp_path / "alone", desk=backing.desk) as alone,
    ):
        clients = [CloudClient(each, reply=answering("accept")) for each in (proxy, alone)]
        listed = [await each.request("tools/list") for each in clients]
        assert listed[0] == listed[1]
        for tool, arguments in CALLS:
            found = [without_times(await each.call(tool, **arguments)) for each in clients]
            assert found[0] == found[1], (tool, arguments)
    lines = [recorded(tmp_path / each) for each in ("proxy", "alone")]
    for line in (*lines[0], *lines[1]):
        del line["timestamp"], line["duration_ms"]
    assert lines[0] == lines[1]


async def test_a_proxy_reads_its_token_again_where_the_server_behind_refuses_it(
    tmp_path: Path, tmp_path_factory: pytest.TempPathFactory
) -> None:
    with backing_server(tmp_path_factory.mktemp("rotated")) as backing:
        async with proxy_of(backing, tmp_path) as app:
            client = CloudClient(app)
            first = (await client.call("run_select_query", sql=SELECT))["structuredContent"]
            store = SqliteState(backing.server.folder / "state" / "state.db")
            tokens = Tokens(store.tokens)
            tokens.revoke("proxy")
            secret, _ = tokens.create("proxy", TokenRights(Scope.READ_WRITE), proxy=True)
            tokens.close()
            store.close()
            while "refuses the login" not in str(await client.call("run_select_query", sql=SELECT)):
                pass  # the server ends what the token has open in its own time
            (backing.server.folder / "proxy.secret").write_text(secret)
            again = (await client.call("run_select_query", sql=SELECT))["structuredContent"]
            assert again["rows"] == first["rows"] != []


@pytest.mark.parametrize("mode", ["read_only", "safe", "delete_safe", "full_access"])
async def test_each_mode_decides_at_the_proxy_as_it_does_alone(
    tmp_path: Path, backing: Backing, mode: str
) -> None:
    decisions: list[list[str]] = []
    settings = {"server": {"mode": mode}}
    for name in ("proxy", "alone"):
        directory = tmp_path / name
        directory.mkdir()
        served = (
            proxy_of(backing, directory, settings)
            if name == "proxy"
            else opened(directory, settings, backing.desk)
        )
        async with served as app:
            replies: list[Reply | None] = [None, answering("accept"), answering("decline")]
            for reply in replies:
                client = CloudClient(app, reply=reply)
                for sql in (SELECT, INSERT, REPLACE, DELETE, EXEC):
                    if sql is DELETE:
                        backing.desk.tickets["1"] = {"id": "1", "title": "x", "open": True}
                    await client.call("run_mutation_query", sql=sql)
        decisions.append([each["decision"] for each in recorded(directory)])
    assert decisions[0] == decisions[1]
    assert len(decisions[0]) == 15


async def test_the_backing_server_records_for_whom_a_change_is_and_asks_nobody(
    tmp_path: Path, backing: Backing
) -> None:
    sql = UPDATE.replace("Changed", "For whom")
    async with proxy_of(backing, tmp_path) as app:
        client = CloudClient(app, reply=answering("accept"))
        await client.good("run_mutation_query", sql=sql)
        assert len(client.asked) == 1
    assert backing.desk.tickets["1"]["title"] == "For whom"
    lines = backing.audited(sql)
    assert {each["on_behalf_of"] for each in lines} == {f"{OWNER.name} ({OWNER.id})"}
    assert {each["verdict"] for each in lines} == {"ask"}
    own = [each for each in records(tmp_path / "state") if each.get("statement") == sql]
    phases = [each["phase"] for each in own if each["request"] == "query"]
    assert phases == ["refusal", "intent", "outcome"]  # it is refused until the person has answered


async def test_an_approval_at_the_proxy_is_bound_to_the_requests_that_were_shown(
    tmp_path: Path, backing: Backing
) -> None:
    async with proxy_of(backing, tmp_path) as app:
        client = CloudClient(app, reply=answering("accept"))
        sent = len(backing.desk.writes)
        # Its requests are others when it is sent again, and the approval was none of these.
        assert "A person must approve" in await client.bad("run_mutation_query", sql=RANDOM)
        assert "PATCH https://desk.example/v1/teams/red/tickets/1" in client.asked[0]["message"]
    assert len(backing.desk.writes) == sent


async def test_a_cancelled_call_is_cancelled_on_the_backing_server(
    tmp_path: Path, backing: Backing
) -> None:
    sql = f"{SELECT} AND title = 'cancelled'"
    async with proxy_of(backing, tmp_path) as app:
        backing.desk.hold.clear()
        backing.desk.arrived.clear()
        try:
            cancellation = Cancellation()
            call = Call(
                *(OWNER, "cloud", "t", Query(Statement(sql)), "cloud"), cancellation=cancellation
            )
            running = asyncio.create_task(app.gateway.handle(call))
            assert await asyncio.to_thread(backing.desk.arrived.wait, 20)
            cancellation.cancel()
            with pytest.raises(TidegateError) as failed:
                await asyncio.wait_for(running, 20)
        finally:
            backing.desk.hold.set()
        assert failed.value.code is Code.CALL_CANCELLED
        await CloudClient(app).good("run_select_query", sql=SELECT)
    *_, ended = backing.audited(sql)
    assert (ended["phase"], ended["code"]) == ("outcome", "call.cancelled")


@pytest.mark.parametrize(
    ("tool", "sql", "said"),
    [
        ("run_mutation_query", UPDATE, "it may have taken effect. Look whether it did"),
        ("run_select_query", SELECT, "broke"),
    ],
    ids=["change", "read"],
)
async def test_a_connection_that_breaks_is_said_and_the_next_call_connects_again(
    tmp_path: Path, backing: Backing, tool: str, sql: str, said: str
) -> None:
    settings = {"server": {"mode": "full_access"}}
    async with (
        between("127.0.0.1", backing.server.port) as line,
        proxy_of(backing, tmp_path, settings, port=line.port) as app,
    ):
        client = CloudClient(app)
        await client.good("run_select_query", sql=SELECT)
        backing.desk.hold.clear()
        backing.desk.arrived.clear()
        sent = len(backing.desk.requests)
        try:
            running = asyncio.create_task(client.bad(tool, sql=sql))
            assert await asyncio.to_thread(backing.desk.arrived.wait, 20)
            line.cut()
            assert said in await asyncio.wait_for(running, 20)
        finally:
            backing.desk.hold.set()
        await client.good("run_select_query", sql=SELECT)
        line.cut()  # an idle connection this time: the next call sees it
        await client.good("run_mutation_query", sql=UPDATE)
        writes = [each for each in backing.desk.requests[sent:] if each[0] == "PATCH"]
        assert len(writes) == (2 if tool == "run_mutation_query" else 1)


async def test_of_idle_connections_to_a_server_that_stalls_one_is_tried(
    tmp_path: Path, backing: Backing
) -> None:
    async with between("127.0.0.1", backing.server.port) as line:
        url = backing.dsn(port=line.port, scheme="cloud+postgresql") + "?connect_timeout=1"
        sources = [{"name": "cloud", "url": url, "access": "write"}]
        async with proxy_of(backing, tmp_path, sources=sources) as app:
            client = CloudClient(app)
            calls = [client.good("run_select_query", sql=SELECT) for _ in range(5)]
            await asyncio.gather(*calls)
            before = line.accepted
            assert before >= 3
            line.stall()
            assert "no answer" in await client.bad("run_select_query", sql=SELECT)
            # For each one that is tried there is a request to cancel, and then a new connection.
            assert line.accepted - before <= 2
            line.flow()
            await client.good("run_select_query", sql=SELECT)


async def test_a_caller_with_masks_is_refused_at_a_proxy(tmp_path: Path, backing: Backing) -> None:
    masks = [{"column": f"{RESOURCE}.title"}]
    sent = len(backing.desk.requests)
    async with proxy_of(backing, tmp_path, masks=masks) as app:
        client = CloudClient(app)
        assert "backing server" in await client.bad("run_select_query", sql=SELECT)
        await client.good("list_providers")
    assert len(backing.desk.requests) == sent


async def test_several_proxies_use_one_backing_server_at_once(
    tmp_path: Path, backing: Backing
) -> None:
    folders = [tmp_path / str(number) for number in range(3)]
    for folder in folders:
        folder.mkdir()
    settings = {"server": {"mode": "full_access"}}
    async with (
        proxy_of(backing, folders[0], settings) as first,
        proxy_of(backing, folders[1], settings) as second,
        proxy_of(backing, folders[2], settings) as third,
    ):
        writes = len(backing.desk.writes)
        apps = (first, second, third)
        changes = [UPDATE.replace("Changed", f"By {number}") for number in range(3)]
        calls = [
            CloudClient(app).good(tool, sql=sql)
            for app, change in zip(apps, changes, strict=True)
            for tool, sql in [("run_select_query", SELECT)] * 4 + [("run_mutation_query", change)]
        ]
        await asyncio.gather(*calls)
        assert len(backing.desk.writes) == writes + 3
    for folder, change in zip(folders, changes, strict=True):
        assert len(recorded(folder)) == 5
        assert len(backing.audited(change)) == 2


@pytest.mark.parametrize(
    "sql",
    [
        "SELECT set_config('tidegate.on_behalf_of', 'someone', false)",
        "SET tidegate.on_behalf_of = 'someone'",
        "DISCARD ALL",
        "COPY (SELECT 1) TO STDOUT",
        "EXPLAIN DIGEST SELECT 1",
        "BEGIN",
    ],
)
async def test_an_agent_reaches_no_command_of_the_session_behind(
    tmp_path: Path, backing: Backing, sql: str
) -> None:
    async with proxy_of(backing, tmp_path, {"server": {"mode": "full_access"}}) as app:
        client = CloudClient(app)
        for tool in ("run_select_query", "run_mutation_query"):
            await client.bad(tool, sql=sql)
    (decision,) = {each["decision"] for each in recorded(tmp_path)}
    assert decision == "refuse_immediate"
    assert backing.audited(sql) == []


async def test_logins_are_not_read_again_through_a_proxy(tmp_path: Path, backing: Backing) -> None:
    async with proxy_of(backing, tmp_path, {"extended": True}) as app:
        text = await CloudClient(app).bad("reload_credentials")
        assert "at the backing server, which reads them before each request" in text
        info = (await CloudClient(app).good("server_info"))[1]
        assert info["provider_registry"] == f"postgresql://127.0.0.1:{backing.server.port}/cloud"


async def test_a_source_behind_has_a_catalog_and_describes_statements(
    tmp_path: Path, backing: Backing
) -> None:
    from tidegate.model.requests import Browse, Prepare

    async with proxy_of(backing, tmp_path) as app:

        async def ask(request: Any) -> Any:
            return (await app.gateway.handle(Call(OWNER, "t", "t", request, "cloud"))).payload

        catalog = await ask(Browse(aspect="catalog", schema="desk.tickets"))
        assert catalog.schemas == ("desk.tickets",)
        (table,) = catalog.tables
        assert {"id", "title", "open"} == {column.name for column in table.columns}
        sent = len(backing.desk.requests)
        prepared = await ask(Prepare(Statement(SELECT)))
        assert [column.name for column in prepared.columns] == ["id", "title", "open"]
        assert len(backing.desk.requests) == sent


async def test_a_stackql_behind_answers_and_its_http_errors_keep_their_status(
    tmp_path: Path,
) -> None:
    with stackql_server() as stackql:
        url = f"cloud+postgresql://stackql@127.0.0.1:{stackql.port}/stackql"
        config = {
            "state": str(tmp_path / "state"),
            "sources": [{"name": "cloud", "url": url, "access": "write"}],
            "surface": {"cloud": {"server": {"audit": {"disabled": True}}}},
        }
        app = App.open(convert_settings(config))
        try:
            client = CloudClient(app, reply=answering("accept"))
            _, listed = await client.good("list_providers")
            assert listed["rows"] == [{"name": "github", "version": "v24.11.00274"}]
            sql = "SELECT name FROM github.repos.repos WHERE org = 'psycopg'"
            assert (await client.good("run_select_query", sql=sql))[1]["rows"] == [
                {"name": "psycopg"}
            ]
            assert (await client.good("validate_select_query", sql=sql))[1]["valid"]
            text = await client.bad("run_select_query", sql=DENIED)
            assert text.startswith(
                'upstream http error: {"http_status": 403, "retryable": false}: Must have'
            )
            await client.good("run_mutation_query", sql=STACKQL_DELETE)
            assert stackql.statements[-1] == STACKQL_DELETE
            for hidden in (
                "SELECT '; DELETE FROM github.repos.repos' AS n",
                "SELECT 'a\\' AS n, ' FROM github.repos.repos -- ' AS m",
                "SELECT 1 --(SELECT name FROM github.repos.repos)",
                "SELECT 1 /*! , (SELECT name FROM github.repos.repos) */ AS n",
                "SELECT ARRAY [(SELECT name FROM github.repos.repos)]",
            ):
                assert "semicolon" in await client.bad("run_select_query", sql=hidden)
            assert stackql.statements[-1] == STACKQL_DELETE
            assert client.asked[0]["message"].endswith(f"SQL: {STACKQL_DELETE}")
        finally:
            await app.close()


DEEP = '{"a":' * 100_000 + "1" + "}" * 100_000
FIELDS = b"SERROR\0VERROR\0CXX000\0Mno\0Dsql.failed, " + DEEP.encode() + b"\0\0"
CUT = b"SWARNING\0VWARNING\0C01004\0Mcut\0D" + DEEP.encode() + b"\0\0"
NOTE = b"SNOTICE\0VNOTICE\0C01004\0Mcut\0D" + b"x" * 900_000 + b"\0\0"


@pytest.mark.parametrize(
    ("sent", "error"),
    [((b"E", FIELDS), "no"), ((b"N", CUT), ""), ((b"N", NOTE), "")],
    ids=["error", "warning", "flood"],
)
async def test_what_a_hostile_server_behind_says_is_bounded_and_no_fault(
    sent: tuple[bytes, bytes], error: str
) -> None:
    sql = "SELECT name FROM github.repos.repos WHERE org = 'psycopg'"
    with stackql_server() as server:
        times = 400 if sent[1] is NOTE else 1
        server.before = lambda text: [sent] * times if text == sql else ()
        url = f"cloud+postgresql://a@127.0.0.1:{server.port}/cloud"
        connection = await BackingConnection.open(read_target(url, {}))
        try:
            if error:
                with pytest.raises(TidegateError) as caught:
                    await connection.ask(sql, 20)
                assert (caught.value.code, caught.value.message) == (Code.SQL_FAILED, error)
            else:
                assert await connection.ask(sql, 20) == [["psycopg"]]
            assert len(connection.notices) < 300
            assert read_notices(connection.notices)[0] == ()
        finally:
            connection.close()


@pytest.mark.parametrize(
    "answer", [[], [("{}", "x")], [("[[",)], [(DEEP,)], [('{"affected": "x"}',)]]
)
async def test_a_preview_that_is_none_is_an_error_that_says_so(
    answer: list[tuple[str, ...]], tmp_path: Path
) -> None:
    with stackql_server() as server:
        server.reported = {"tidegate.version": "9", "tidegate.dialect": "cloud"}
        names = tuple("abc"[: len(answer[0]) if answer else 1])
        server.answers = {
            f"EXPLAIN {what} {STACKQL_DELETE}": (names, answer) for what in ("PREVIEW", "DIGEST")
        }
        server.accepted = ("SET ",)
        url = f"cloud+postgresql://a@127.0.0.1:{server.port}/cloud"
        source = Source("s", "cloud", url, *engine_of(url), access="write")
        engine = await CloudProxyEngine.open(source)
        permit = permit_for(source, Query(Statement(STACKQL_DELETE)), Effect.WRITE)
        with pytest.raises(TidegateError) as caught:
            await engine.dry_run(permit, NEVER)
        assert "does not answer EXPLAIN PREVIEW" in caught.value.message
        await engine.close()
