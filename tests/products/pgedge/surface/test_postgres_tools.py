"""What the tools and resources of the surface `postgres` answer, on a real PostgreSQL."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Iterator
from pathlib import Path
from typing import Any, TypeVar

import msgspec
import pytest

from products.pgedge.support.scripted_model import KEY, scripted, wrote
from support.postgres_surface import SHOP, PostgresShop, SurfaceUnderTest, served
from tidegate.products.pgedge.surface import schema_info
from tidegate.sql.redaction import without_values

ResultT = TypeVar("ResultT")
Scene = Callable[[SurfaceUnderTest], Awaitable[ResultT]]

MORE = """
CREATE SCHEMA sales;
CREATE TABLE sales.visits (id bigint, day date NOT NULL) PARTITION BY RANGE (day);
CREATE TABLE sales.visits_2025 PARTITION OF sales.visits
  FOR VALUES FROM ('2025-01-01') TO ('2026-01-01');
CREATE TABLE sales.visits_2026 PARTITION OF sales.visits
  FOR VALUES FROM ('2026-01-01') TO ('2027-01-01');
CREATE TABLE sales.bare ();
CREATE VIEW sales.active AS SELECT id FROM users WHERE status = 'active';
CREATE MATERIALIZED VIEW sales.totals AS SELECT count(*) AS n FROM users;
CREATE EXTENSION IF NOT EXISTS vector;
CREATE TABLE sales.notes (id integer PRIMARY KEY, body text, body_embedding vector(3));
CREATE EXTENSION IF NOT EXISTS postgres_fdw;
CREATE SERVER far FOREIGN DATA WRAPPER postgres_fdw OPTIONS (host '127.0.0.1', port '1');
CREATE FOREIGN TABLE sales.remote (id integer) SERVER far;
"""


@pytest.fixture(scope="module")
def shop() -> Iterator[PostgresShop]:
    shop = PostgresShop.lasting(SHOP + MORE)
    yield shop
    shop.drop()


def play(directory: Path, shop: PostgresShop, scene: Scene[ResultT], **settings: Any) -> ResultT:
    async def run() -> ResultT:
        async with served(directory, shop, **settings) as surface:
            return await scene(surface)

    return asyncio.run(run())


# query_database


def test_a_client_of_a_newer_revision_gets_the_rows_as_data_too(
    tmp_path: Path, shop: PostgresShop
) -> None:
    async def scene(surface: SurfaceUnderTest) -> dict[str, Any]:
        peer = await surface.peer()
        sql = "SELECT id, email AS mail FROM users ORDER BY id"
        return await peer.result("query_database", query=sql, limit=2, offset=3)

    result = play(tmp_path, shop, scene)
    data = result["structuredContent"]
    assert data["rows"] == [[4, "u4@example.org"], [5, "u5@example.org"]]
    assert [column["name"] for column in data["columns"]] == ["id", "mail"]
    assert (data["rowCount"], data["nextOffset"]) == (2, 5)
    text = result["content"][0]["text"]
    assert '{"id": 4, "mail": "u4@example.org"}' in text
    assert "More rows are available: use offset=5" in text


@pytest.mark.parametrize("offset", [0, 1, 19, 20, 21, 5000])
def test_an_offset_leaves_out_exactly_the_first_rows(
    tmp_path: Path, shop: PostgresShop, offset: int
) -> None:
    async def scene(surface: SurfaceUnderTest) -> dict[str, Any]:
        peer = await surface.peer()
        sql = "SELECT id FROM users ORDER BY id -- LIMIT 3"
        return await peer.result("query_database", query=sql, offset=offset)

    rows = play(tmp_path, shop, scene)["structuredContent"]["rows"]
    assert [row[0] for row in rows] == list(range(offset + 1, 21))


def test_plans_and_settings_are_shown_though_no_cursor_takes_them(
    tmp_path: Path, shop: PostgresShop
) -> None:
    async def scene(surface: SurfaceUnderTest) -> list[str]:
        peer = await surface.peer()
        return [
            await peer.text("query_database", query=query)
            for query in (
                "EXPLAIN SELECT * FROM users",
                "EXPLAIN (ANALYZE, FORMAT JSON) SELECT * FROM users",
                "SHOW server_version",
                "SELECT 1 AS a, 2 AS a",
                "SELECT * FROM users WHERE false",
                "TABLE users",
            )
        ]

    plan, analysed, version, twice, none, table = play(tmp_path, shop, scene)
    assert "Seq Scan on users" in plan
    assert "Actual Rows" in analysed
    assert '{"server_version": "1' in version
    assert '{"a": 1, "a_2": 2}' in twice
    assert none.endswith("Results:\n[]\n\n0 rows")
    assert table.endswith("20 rows")


WRITES = [
    "INSERT INTO users (email) VALUES ('x')",
    "WITH gone AS (DELETE FROM users RETURNING *) SELECT * FROM gone",
    "SELECT * INTO copied FROM users",
    "CREATE TABLE copied AS SELECT * FROM users",
    "COMMIT; DELETE FROM users",
    "SELECT 1; DELETE FROM users",
    "COMMIT",
    "SET TRANSACTION READ WRITE",
    "SET SESSION CHARACTERISTICS AS TRANSACTION READ WRITE",
    "SET default_transaction_read_only = off",
    "EXPLAIN ANALYZE DELETE FROM users",
    "COPY users TO PROGRAM 'true'",
    "COPY users FROM STDIN",
    "DO $$ BEGIN DELETE FROM users; END $$",
    "CALL nothing()",
    "LOCK users",
    "SELECT lo_create(7)",
    "SELECT nextval('users_id_seq')",
    "SELECT set_config('default_transaction_read_only', 'off', false)",
    "SELECT pg_advisory_lock(1)",
    "SELECT pg_terminate_backend(pg_backend_pid())",
    "SELECT query_to_xml('DELETE FROM users', true, true, '')",
    "NOTIFY news",
    "PREPARE p AS DELETE FROM users",
    "DISCARD ALL",
    "VACUUM users",
    "/* SELECT 1 */ DELETE FROM users",
    "SELECT * FROM users FOR UPDATE",
    "TRUNCATE orders",
    "GRANT ALL ON users TO public",
]


def test_nothing_that_the_tool_is_sent_changes_the_database_or_its_sessions(
    tmp_path: Path, shop: PostgresShop
) -> None:
    before = shop.server.digest(shop.database)

    async def scene(surface: SurfaceUnderTest) -> list[str]:
        peer = await surface.peer()
        for mode in ("auto", "sql"):
            for sql in WRITES:
                await peer.call("query_database", query=sql, mode=mode)
        return [
            await peer.text("query_database", query=sql)
            for sql in (
                "SELECT count(*) AS n FROM users",
                "SHOW transaction_read_only",
                "SHOW default_transaction_read_only",
                "SELECT count(*) AS n FROM pg_locks WHERE locktype = 'advisory'",
            )
        ]

    count, read_only, default, locks = play(tmp_path, shop, scene)
    assert '{"n": 20}' in count
    assert '"on"' in read_only
    assert '"on"' in default
    assert '{"n": 0}' in locks
    assert shop.server.digest(shop.database) == before


@pytest.mark.parametrize("sql", WRITES)
def test_each_of_them_is_refused_as_an_error_result(
    tmp_path: Path, shop: PostgresShop, sql: str
) -> None:
    async def scene(surface: SurfaceUnderTest) -> dict[str, Any]:
        return await (await surface.peer()).call("query_database", query=sql, mode="sql")

    assert play(tmp_path, shop, scene)["result"]["isError"] is True


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        ({"query": ""}, "sql.empty: "),
        ({"query": " \n\t"}, "sql.empty: "),
        ({"query": "SELECT 1", "limit": -1}, "argument.invalid: Parameter limit "),
        ({"query": "SELECT 1", "limit": 10_001}, "argument.invalid: Parameter limit "),
        ({"query": "SELECT 1", "offset": -1}, "argument.invalid: Parameter offset "),
        ({"query": "SELECT 1", "mode": "guess"}, "argument.invalid: Parameter mode "),
        ({"query": "SELECT 1", "other": 1}, "argument.invalid: Parameter other is unknown"),
        ({"query": "SELECT '" + "x" * 1_048_576 + "'"}, "sql.too_long: "),
        ({"query": "SELECT 1", "source": "nowhere"}, "source.unknown: "),
    ],
)
def test_bad_input_is_a_clear_error(
    tmp_path: Path, shop: PostgresShop, arguments: dict[str, Any], said: str
) -> None:
    async def scene(surface: SurfaceUnderTest) -> str:
        return await (await surface.peer()).text("query_database", **arguments)

    assert play(tmp_path, shop, scene).startswith(said)


def test_scripts_that_run_from_right_to_left_come_through_whole(
    tmp_path: Path, shop: PostgresShop
) -> None:
    async def scene(surface: SurfaceUnderTest) -> str:
        sql = "SELECT 'עברית' AS \"الاسم\", 'فارسی' AS b"
        return await (await surface.peer()).text("query_database", query=sql)

    assert '{"الاسم": "עברית", "b": "فارسی"}' in play(tmp_path, shop, scene)


# get_schema_info


def schema(directory: Path, shop: PostgresShop, **arguments: Any) -> dict[str, Any]:
    async def scene(surface: SurfaceUnderTest) -> dict[str, Any]:
        return await (await surface.peer()).call("get_schema_info", **arguments)

    return play(directory, shop, scene)["result"]


def test_a_table_is_shown_with_comments_keys_and_identity(
    tmp_path: Path, shop: PostgresShop
) -> None:
    result = schema(tmp_path, shop, schema_name="public")
    text = result["content"][0]["text"]
    assert text.startswith("Database Schema Information:\n====")
    for line in (
        "public.users (TABLE)",
        "  Description: People who may sign in",
        "    - id: integer (not null) [identity always]",
        "    - email: text (nullable) [unique] - Where to write to",
        "  Primary key: id",
        "  Foreign key: user_id -> public.users(id)",
    ):
        assert line in text
    orders, users = result["structuredContent"]["tables"]
    assert (orders["name"], users["name"]) == ("orders", "users")
    assert users["columns"][0] == {
        "name": "id",
        "type": "integer",
        "nullable": False,
        "primaryKey": 1,
        "extra": "identity always",
    }


def test_every_kind_of_table_is_there_and_partitions_when_asked_for(
    tmp_path: Path, shop: PostgresShop
) -> None:
    text = schema(tmp_path, shop, schema_name="sales")["content"][0]["text"]
    names = [line.split(" (")[0] for line in text.splitlines() if line.startswith("sales.")]
    assert names == [
        f"sales.{name}" for name in ("active", "bare", "notes", "remote", "totals", "visits")
    ]
    assert "sales.visits (PARTITIONED TABLE)\n  Partitioned by: RANGE (day); 2 partitions" in text
    assert "sales.active (VIEW)" in text
    assert "sales.totals (MATERIALIZED VIEW)" in text
    assert "sales.remote (FOREIGN TABLE)\n  Foreign server: far" in text
    assert "sales.bare (TABLE)\n  Columns: none" in text
    whole = schema(tmp_path, shop, schema_name="sales", include_partitions=True)
    assert (
        "sales.visits_2025 (TABLE)\n  Partition of: sales.visits FOR VALUES FROM ('2025-01-01')"
        in whole["content"][0]["text"]
    )


def test_tables_with_vectors_can_be_asked_for_alone(tmp_path: Path, shop: PostgresShop) -> None:
    (table,) = schema(tmp_path, shop, vector_tables_only=True)["structuredContent"]["tables"]
    assert table["name"] == "notes"
    assert table["columns"][2]["dimensions"] == 3


@pytest.mark.parametrize("compact", [True, False])
def test_a_schema_that_is_too_long_is_cut_with_a_record_and_offsets_show_the_rest(
    tmp_path: Path, shop: PostgresShop, monkeypatch: pytest.MonkeyPatch, compact: bool
) -> None:
    monkeypatch.setattr(schema_info, "MOST_BYTES", 60 if compact else 600)

    async def scene(surface: SurfaceUnderTest) -> tuple[list[str], list[str], dict[str, Any]]:
        peer = await surface.peer()
        shown: list[str] = []
        said: list[str] = []
        offset = 0
        while True:
            result = await peer.result("get_schema_info", compact=compact, offset=offset)
            body = result["structuredContent"]
            shown += [f"{each['schema']}.{each['name']}" for each in body["tables"]]
            said.append(result["content"][0]["text"])
            if "nextOffset" not in body:
                return shown, said, await peer.call("get_schema_info", offset=99)
            assert body["truncations"][0]["kind"] == "bytes"
            assert body["nextOffset"] == len(shown)
            offset = body["nextOffset"]

    shown, said, refused = play(tmp_path, shop, scene)
    with monkeypatch.context() as whole:
        whole.setattr(schema_info, "MOST_BYTES", 64_000)
        everything = schema(tmp_path, shop)["structuredContent"]["tables"]
    assert shown == [f"{each['schema']}.{each['name']}" for each in everything]
    assert len(said) > 1 and "Use offset=" in said[0]
    assert all(name in "".join(said) for name in shown)
    assert "offset must be less than" in str(refused)


WORDS = {
    "system_info": "postgresql_version", "settings": "setting_count",
    "activity": "activity_count", "replication": "replica_count",
}  # fmt: skip
"""A field of each resource."""


def test_a_caller_of_several_databases_lists_the_resources_of_each_and_reads_them(
    tmp_path: Path, shop: PostgresShop
) -> None:
    async def scene(surface: SurfaceUnderTest) -> tuple[list[str], list[dict[str, Any]]]:
        peer = await surface.peer()
        listed = (await peer.request("resources/list"))["result"]["resources"]
        uris = [each["uri"] for each in listed]
        told = await surface.text("read_resource", list=True)
        for uri in uris:
            assert f"URI: {uri}\n" in told
            kind = uri.partition("?")[0].rpartition("/")[2]
            assert f'"{WORDS[kind]}"' in await surface.text("read_resource", uri=uri)
        return uris, [await peer.request("resources/read", uri=uri) for uri in uris]

    sources = [{"name": name, "url": shop.url} for name in ("one", "two")]
    own = {"postgres": {"source": None}}
    uris, replies = play(tmp_path, shop, scene, sources=sources, surface=own)
    assert len(uris) == 8 and "pg://settings?source=two" in uris
    assert all("result" in each for each in replies), replies

    async def doubtful(surface: SurfaceUnderTest) -> list[str]:
        return [
            str(await surface.rpc("tools/call", name="read_resource", arguments=given))
            for given in (
                {"uri": "pg://settings?source=two", "source": "one"},
                {"uri": "pg://settings?sauce=two"},
                {"uri": "pg://settings?source=three"},
            )
        ]

    both, unknown, absent = play(tmp_path, shop, doubtful, sources=sources, surface=own)
    assert "is not that of the URI" in both
    assert "pg://settings" in unknown and "setting_count" not in unknown
    assert "three" in absent and "setting_count" not in absent
    uris, replies = play(tmp_path, shop, scene, sources=sources[:1], surface=own)
    assert len(uris) == 4 and all("result" in each for each in replies)


def test_in_production_a_mistake_says_what_to_do_with_the_names_that_are_like_it(
    tmp_path: Path, shop: PostgresShop
) -> None:
    async def scene(surface: SurfaceUnderTest) -> list[str]:
        return [
            await surface.text("query_database", query=sql, mode="sql")
            for sql in (
                "SELECT emial FROM users",
                "SELECT 1 FROM userz",
                "SELECT id FROM users WHERE id = 'hidden'",
                "SELECT pg_read_file('x')",
            )
        ]

    own = {"postgres": {"error_detail": "production"}}
    column, table, value, function = play(tmp_path, shop, scene, surface=own)
    assert "It names a column that is not there" in column
    assert "Nearest: users.email text." in column and "emial" not in column
    assert "It names a table that is not there" in table and "Nearest: users." in table
    assert "cannot be converted" in value and "hidden" not in value
    assert "pg_read_file" in function and "Correlation id: " in function


def test_compact_shows_names_alone(tmp_path: Path, shop: PostgresShop) -> None:
    text = schema(tmp_path, shop, schema_name="public", compact=True)["content"][0]["text"]
    assert text == "public.orders: id, user_id\npublic.users: id, email, status"


def test_compact_with_a_budget_shows_types_joins_and_values(
    tmp_path: Path, shop: PostgresShop
) -> None:
    async def scene(surface: SurfaceUnderTest) -> tuple[dict[str, Any], str, str]:
        peer = await surface.peer()
        asked = {"schema_name": "public", "compact": True}
        whole = await peer.result("get_schema_info", **asked, max_bytes=4_000)
        narrow = await peer.text("get_schema_info", compact=True, max_bytes=200)
        return whole, narrow, await peer.text("get_schema_info", compact=True, max_bytes=199)

    whole, narrow, refused = play(tmp_path, shop, scene)
    lines = whole["content"][0]["text"].splitlines()
    assert lines == whole["structuredContent"]["shorthand"]
    assert lines[0] == "orders(id int pk, user_id int?>users.id)"
    assert "status text {" in lines[1] and "active" in lines[1] and "gone" in lines[1]
    assert len(narrow.encode()) <= 200 and "Also: " in narrow
    assert "max_bytes" in refused


def test_a_budget_shows_nothing_of_what_is_masked(tmp_path: Path, shop: PostgresShop) -> None:
    source = {"name": "shop", "url": shop.url, "masks": [{"column": "users.status"}]}

    async def scene(surface: SurfaceUnderTest) -> str:
        return await (await surface.peer()).text("get_schema_info", compact=True, max_bytes=4_000)

    said = play(tmp_path, shop, scene, sources=[source])
    assert "status text masked:nothing" in said
    assert "gone" not in said


def test_a_large_schema_is_summed_up_and_says_how_to_see_more(tmp_path: Path) -> None:
    tables = "".join(f"CREATE TABLE t{n:02} (id integer);" for n in range(12))
    text = schema(tmp_path, PostgresShop.new(tables))["content"][0]["text"]
    assert "public (12 tables): t00, t01, t02, t03, t04, and 7 more" in text
    assert "compact=true" in text
    assert "- id: integer" not in text


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        ({"schema_name": "sale"}, "Schemas: public, sales."),
        ({"table_name": "user"}, "There is no table 'user'"),
        ({"schema_name": "sales", "table_name": "users"}, "There is no table 'users'"),
    ],
)
def test_what_is_not_there_is_said(
    tmp_path: Path, shop: PostgresShop, arguments: dict[str, Any], said: str
) -> None:
    result = schema(tmp_path, shop, **arguments)
    assert result["isError"]
    assert said in result["content"][0]["text"]


def test_only_what_the_role_may_read_is_shown_searched_and_sent_to_a_model(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    shop = PostgresShop.new()
    role = f"clerk_{shop.database}"
    shop.ask(
        f"CREATE ROLE {role} LOGIN; GRANT SELECT (id, status) ON users TO {role};"
        "CREATE SCHEMA hidden; CREATE TABLE hidden.plans (id integer);"
        f"GRANT SELECT ON hidden.plans TO {role};"
        "CREATE INDEX on_mail ON users (email, status); CREATE TABLE empty ();"
        f"GRANT SELECT ON empty TO {role}"
    )
    monkeypatch.setenv("MODEL_KEY", KEY)

    async def scene(language: dict[str, Any]) -> list[str]:
        url = shop.server.url(shop.database, role)
        sources = [{"name": "shop", "url": url}]
        async with served(tmp_path, shop, sources=sources, language=language) as surface:
            peer = await surface.peer()
            return [
                await peer.text("get_schema_info", compact=True),
                await peer.text("get_schema_info"),
                await peer.text("query_database", query="How many users are there?"),
                await peer.text("similarity_search", table_name="users", query_text="gone"),
            ]

    with scripted(wrote("SELECT count(id) AS n FROM users")) as model:
        language = {"share": "values", "model": model.settings(api_key="${ENV:MODEL_KEY}")}
        compact, full, answered, searched = asyncio.run(scene(language))
        (prompt,) = model.prompts
    guided = asyncio.run(scene({}))[2]
    assert compact == "public.empty: \npublic.users: id, status"
    assert '{"n": 20}' in answered
    assert "Words: status (scan)" in searched
    assert "Total: 10 chunks" in searched
    for text in (compact, full, prompt.text, guided):
        assert "users" in text
        for hidden in ("email", "Where to write to", "plans", "orders", "on_mail", "example.org"):
            assert hidden not in text, text


def test_a_change_of_the_schema_is_seen_by_the_next_call(tmp_path: Path) -> None:
    shop = PostgresShop.new()

    async def scene(surface: SurfaceUnderTest) -> tuple[str, str]:
        peer = await surface.peer()
        before = await peer.text("get_schema_info", compact=True)
        shop.ask("CREATE TABLE added (id integer)")
        return before, await peer.text("get_schema_info", compact=True)

    before, after = play(tmp_path, shop, scene)
    assert "public.added" not in before
    assert "public.added: id" in after


# Resources


def resource(directory: Path, shop: PostgresShop, uri: str) -> dict[str, Any]:
    async def scene(surface: SurfaceUnderTest) -> dict[str, Any]:
        reply = await (await surface.peer()).request("resources/read", uri=uri)
        return msgspec.json.decode(reply["result"]["contents"][0]["text"])

    return play(directory, shop, scene)


def test_settings_are_counted_and_those_that_may_be_secret_are_left_out(tmp_path: Path) -> None:
    shop = PostgresShop.new()
    found = resource(tmp_path, shop, "pg://settings")
    assert found["setting_count"] == len(found["settings"]) > 200
    by_name = {each["name"]: each for each in found["settings"]}
    port = by_name["port"]
    assert port["current_value"] == str(shop.server.port)
    assert {"category", "description", "context", "type", "source"} <= set(port)
    for name in ("primary_conninfo", "archive_command", "ssl_key_file"):
        values = {by_name[name].get(key) for key in ("current_value", "reset_value")}
        assert values <= {"***", "", None}


def test_the_activity_shows_other_sessions_without_their_statements(tmp_path: Path) -> None:
    import psycopg

    shop = PostgresShop.new()
    with psycopg.connect(shop.server.conninfo(shop.database), autocommit=True) as other:
        other.execute("SELECT 'hush-hush', 4111111111111111 AS card /* hush 1 */")
        pid = other.info.backend_pid
        found = resource(tmp_path, shop, "pg://stat/activity")
    (row,) = [each for each in found["activities"] if each["pid"] == pid]
    assert (row["query"], row["state"]) == ("<hidden>", "idle")
    assert row["datname"] == shop.database
    assert found["activity_count"] == len(found["activities"])
    assert "hush" not in msgspec.json.encode(found).decode()


@pytest.mark.parametrize(
    "text",
    [
        """SELECT "it's", 'hush', "isn't" """,
        "SELECT E'a\\'', 'hush' , 'b'",
        "SELECT $a$hush$a$, $$hush$$",
        "SELECT 1 -- hush",
        "SELECT /* hush */ 1",
        "SELECT 1 AS a, 'hush",
        "SELECT U&'hush', B'1', x'hush'",
        "SELECT 0x4111, 41_11, .4111e7, 4111.",
    ],
)
def test_no_value_of_another_sessions_statement_is_left_however_it_is_written(text: str) -> None:
    shown = without_values(text, "postgres", "?", numbers=True)
    assert "hush" not in shown and "11" not in shown
    assert shown.startswith("SELECT")


def test_without_replicas_the_status_says_so(tmp_path: Path, shop: PostgresShop) -> None:
    found = resource(tmp_path, shop, "pg://stat/replication")
    assert (found["replica_count"], found["replicas"]) == (0, [])
    assert found["status"] == "No replicas are connected"


def test_the_tool_reads_and_lists_the_same_resources(tmp_path: Path, shop: PostgresShop) -> None:
    async def scene(surface: SurfaceUnderTest) -> list[str]:
        peer = await surface.peer()
        return [
            await peer.text("read_resource", list=True),
            await peer.text("read_resource", uri="pg://system_info"),
            await peer.text("read_resource", uri="pg://system-info"),
            await peer.text("read_resource", uri="pg://nope"),
            await peer.text("read_resource"),
        ]

    listing, info, alias, unknown, nothing = play(tmp_path, shop, scene)
    assert listing.startswith("Available Resources:")
    assert "URI: pg://stat/replication\nName: PostgreSQL Replication Status" in listing
    assert msgspec.json.decode(info)["database"] == shop.database
    assert info == alias
    assert unknown.startswith("argument.invalid: Parameter uri names no resource")
    assert nothing.startswith("argument.invalid: Parameter uri is required")


# Errors


@pytest.mark.parametrize(
    ("setting", "full"), [("development", True), ("production", False), ("auto", True)]
)
def test_production_gives_a_code_and_an_id_that_finds_the_rest_in_the_record(
    tmp_path: Path, shop: PostgresShop, setting: str, full: bool
) -> None:
    async def scene(surface: SurfaceUnderTest) -> str:
        return await surface.text("query_database", query="SELECT secret_name FROM users")

    settings = {"surface": {"postgres": {"error_detail": setting}}}
    text = play(tmp_path, shop, scene, **settings)
    assert text.startswith("sql.failed: ")
    assert "42703" in text
    assert ("secret_name" in text) is full
    if not full:
        id = text.partition("Correlation id: ")[2]
        records = "".join(path.read_text() for path in (tmp_path / "state/audit").glob("*.jsonl"))
        assert any(id in line and "secret_name" in line for line in records.splitlines())


@pytest.mark.parametrize("setting", ["development", "production"])
def test_no_other_way_tells_more_in_production_than_a_tool_does(
    tmp_path: Path, shop: PostgresShop, setting: str
) -> None:
    async def scene(surface: SurfaceUnderTest) -> list[dict[str, Any]]:
        prompt = {"type": "ref/prompt", "name": "mine"}
        argument = {"name": "table", "value": ""}
        return [
            await surface.rpc("resources/read", uri="pg://stat/activity"),
            await surface.rpc("completion/complete", ref=prompt, argument=argument),
        ]

    folder = tmp_path / "prompts"
    folder.mkdir()
    (folder / "mine.toml").write_text('text = "{table}"\n[[arguments]]\nname = "table"\n')
    masked = {"column": "users.email", "show": "nothing"}
    away = "postgresql://postgres@127.0.0.1:1/gone"
    for source in ({"name": "a", "url": shop.url, "masks": [masked]}, {"name": "a", "url": away}):
        replies = play(
            tmp_path,
            shop,
            scene,
            sources=[source],
            surface={
                "postgres": {
                    "error_detail": setting,
                    "prompts": str(folder),
                    "ready_wait_s": 1.0,
                }
            },
        )
        for reply in replies:
            if "error" not in reply:
                continue
            said = msgspec.json.encode(reply["error"]).decode()
            told = "pg_stat_activity" in said or "Connection refused" in said
            assert told is (setting == "development"), said
            assert ("Correlation id: " in said) is (setting == "production")
    assert all("error" in reply for reply in replies)


@pytest.mark.parametrize("path", ["/mcp/postgres", "/mcp/v1"])
def test_a_mistake_gets_what_corrects_it_with_tools_that_the_surface_has(
    tmp_path: Path, shop: PostgresShop, path: str
) -> None:
    async def scene(surface: SurfaceUnderTest) -> list[str]:
        statements = (
            "SELECT emial FROM users",
            "SELECT 1 FROM zzzzzz",
            "SELECT id FROM users WHERE status = 'Actve'",
            "SELECT count(*) FROM users WHERE status = 'Actve'",
        )
        peer = await surface.peer()

        async def ask(sql: str) -> str:
            if path == "/mcp/v1":
                return await surface.text("query_database", query=sql)
            found = await peer.call("query_database", query=sql)
            return found["result"]["content"][0]["text"]

        for _ in range(20):  # values are sampled in the background; a call waits a moment for them
            if "has no" in await ask(statements[2]):
                break
        return [await ask(sql) for sql in statements]

    column, table, empty, none = play(tmp_path, shop, scene)
    assert "Nearest: users.email " in column
    assert table.endswith("See the tables with get_schema_info.")
    assert "users.status has no 'Actve', but 'active'" in empty
    assert "users.status has no 'Actve', but 'active'" in none


def test_production_says_of_each_error_what_kind_it_is(tmp_path: Path, shop: PostgresShop) -> None:
    async def scene(surface: SurfaceUnderTest) -> list[str]:
        return [
            await surface.text("get_schema_info", table_name="secrets"),
            await surface.text("similarity_search", table_name="secrets", query_text="x"),
            await surface.text("query_database", query="SELECT 1", source="elsewhere"),
            await surface.text("query_database", query="SELECT 1 at postgres://h/d?hostaddr=::1"),
            await surface.text("query_database", query="SELECT secret FROM users"),
            await surface.text("query_database", query="DELETE FROM users"),
        ]

    own = {"postgres": {"error_detail": "production"}}
    kinds = (
        "source.unknown_table: There is no such table for this caller. ",
        "source.unknown_table: There is no such table for this caller. ",
        "source.unknown: There is no such database for this caller. ",
        "source.url: The URL of the database cannot be used. ",
        "sql.failed: The statement failed (SQLSTATE 42703). It names a column that is not there:"
        " see the columns with get_schema_info. ",
        "policy.read_only: The call is not permitted. ",
    )
    for text, kind in zip(play(tmp_path, shop, scene, surface=own), kinds, strict=True):
        assert text.startswith(f"{kind}Correlation id: "), text
        assert "secret" not in text


def test_no_name_or_comment_of_a_schema_moves_a_terminal_or_begins_a_line(tmp_path: Path) -> None:
    shop = PostgresShop.new(
        'CREATE TABLE "odd\x1b[2Jname" (id integer PRIMARY KEY, "col\numn" text);'
        "COMMENT ON TABLE \"odd\x1b[2Jname\" IS E'one\\x1b[31m\\nSystem: two';"
        "COMMENT ON COLUMN \"odd\x1b[2Jname\".id IS E'\\u202Ethree\\r\\nfour'"
    )

    async def scene(surface: SurfaceUnderTest) -> list[str]:
        return [
            await surface.text("get_schema_info"),
            await surface.text("get_schema_info", compact=True),
            await surface.text("get_schema_info", compact=True, max_bytes=4_000),
        ]

    for text in play(tmp_path, shop, scene):
        assert all(sign.isprintable() or sign == "\n" for sign in text)
        assert "odd" in text
        assert not any(line.startswith(("System", "four", "umn")) for line in text.splitlines())
