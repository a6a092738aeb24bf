"""`generate` of `record`: the rows as code for tests, in both forms of a call."""

from __future__ import annotations

from decimal import Decimal

import pytest

from products.jdbc.support.fixture_cases import import_code
from support import postgres_server
from support.jdbc_drivers import driver_path, new_database
from support.jdbc_surface import QUERY, make_file, served
from support.server_keeper import PASSWORD


async def test_a_confirmed_query_becomes_code_in_each_language(tmp_path):
    async with served(tmp_path) as jdbc:
        peer = jdbc.peer()
        id = await peer.connected(jdbc.url)
        given = {"parameters": ["active"], "generate": ["java", "scala", "python"]}
        done = await peer.recorded(id, QUERY, fixtureName="active users", **given)
        assert set(done["code"]) == {"java", "scala", "python"}
        assert done["rows"] == [[1, "Alice", "alice@example.com"]]
        assert "class ActiveUsersFixture" in done["code"]["java"]
        assert "RowLists.rowList3(" in done["code"]["java"]
        assert "object ActiveUsersFixture" in done["code"]["scala"]
        module = import_code(done["code"]["python"], tmp_path / "written.py")
        assert [tuple(row) for row in module.ACTIVE_USERS_ROWS] == [
            (1, "Alice", "alice@example.com")
        ]
        assert (module.ACTIVE_USERS_SQL, module.ACTIVE_USERS_PARAMETERS) == (QUERY, ("active",))
        tool = await peer.request(
            "tools/call",
            name="record",
            arguments={"query": QUERY, "connectionId": id, "confirmed": True, **given},
        )
        assert "error" in tool  # MCP's own methods need the handshake
        again = await peer.bare("record", query=QUERY, connectionId=id, confirmed=True, **given)
        assert "class RecordedFixture" in again["code"]["java"]


async def test_each_set_of_parameters_is_a_result_of_its_own(tmp_path):
    async with served(tmp_path) as jdbc:
        peer = jdbc.peer()
        id = await peer.connected(jdbc.url)
        sets = [["active"], ["gone"]]
        done = await peer.recorded(id, QUERY, parameterSets=sets, generate=["python"])
        module = import_code(done["code"]["python"], tmp_path / "written.py")
        assert module.RECORDED_ROWS[0].name == "Alice"
        assert module.RECORDED_2_ROWS[0].name == "Bob"


async def test_limits_cut_the_code_and_the_rows_alike(tmp_path):
    async with served(tmp_path) as jdbc:
        peer = jdbc.peer()
        id = await peer.connected(jdbc.url)
        query = "SELECT name FROM users ORDER BY id"
        done = await peer.recorded(id, query, maxRows=1, generate=["python"])
        assert done["truncations"] == [{"execution": 1, "kind": "rows", "limit": 1, "returned": 1}]
        module = import_code(done["code"]["python"], tmp_path / "written.py")
        assert [row.name for row in module.RECORDED_ROWS] == ["Alice"]


async def test_a_result_that_no_row_list_holds_has_no_code_and_says_why(tmp_path):
    async with served(tmp_path) as jdbc:
        peer = jdbc.peer()
        id = await peer.connected(jdbc.url)
        query = "SELECT " + ", ".join([f"{n} AS c{n}" for n in range(53)])
        done = await peer.recorded(id, query, generate=["java", "python"])
        assert done["code"]["java"] is None
        assert "RecordedRow" in done["code"]["python"]
        assert "1 to 52" in done["codeWarnings"][0]
        wrong = await peer.fault("record", query=query, generate=["cobol"])
        assert wrong["code"] == -32602


VALUES = """SELECT 9223372036854775807::int8 AS big, 1.50::numeric AS amount, 'NaN'::float8 AS nan,
 0.1::float4 AS small, '\\x00ff'::bytea AS bytes,
 '2026-07-01 12:00:00.000001+02'::timestamptz AS at,
 E'it''s "q" \\\\u0041\\n' AS words, NULL::int4 AS nothing, true AS flag"""


@pytest.mark.parametrize("driver", [False, True])
async def test_values_of_postgres_come_from_the_database_and_not_from_json(tmp_path, driver):
    server = postgres_server.shared()
    name = server.new_database()
    more = {"driver": "org.postgresql.Driver"} if driver else {}
    settings = {"driver_path": driver_path("postgresql")} if driver else {}
    async with served(tmp_path, jdbc=settings) as jdbc:
        peer = jdbc.peer()
        url = f"jdbc:postgresql://127.0.0.1:{server.port}/{name}"
        id = await peer.connected(url, user="postgres", password=PASSWORD, **more)
        done = await peer.recorded(id, VALUES, generate=["python", "java"])
        row = import_code(done["code"]["python"], tmp_path / "written.py").RECORDED_ROWS[0]
        assert (row.big, row.amount, repr(row.nan)) == (2**63 - 1, Decimal("1.50"), "nan")
        assert (row.bytes, row.words, row.nothing) == (b"\x00\xff", 'it\'s "q" \\u0041\n', None)
        assert row.at.timestamp() == 1782900000.000001
        assert row.flag is True
        for expression in ("9223372036854775807L", 'new BigDecimal("1.50")', "Double.NaN", "0.1f",
                           "2026-07-01T10:00:00.000001Z", "(Integer) null"):  # fmt: skip
            assert expression in done["code"]["java"]


async def test_an_offset_of_h2_stays(tmp_path):
    script = (
        "CREATE TABLE t (at TIMESTAMP(6) WITH TIME ZONE, id UUID)",
        "INSERT INTO t VALUES (TIMESTAMP WITH TIME ZONE '2026-07-01 12:00:00-03:30',"
        " '00000000-0000-0000-0000-000000000007')",
    )
    url = new_database("h2", tmp_path / "files", script)
    async with served(tmp_path, jdbc={"driver_path": driver_path("h2")}) as jdbc:
        peer = jdbc.peer()
        id = await peer.connected(url)
        done = await peer.recorded(id, "SELECT * FROM t", generate=["java"])
        assert 'OffsetDateTime.parse("2026-07-01T12:00:00-03:30")' in done["code"]["java"]
        assert "UUID.fromString(" in done["code"]["java"]
        assert len(done["codeWarnings"]) == 2


async def test_masked_values_are_masked_in_the_code(tmp_path):
    (tmp_path / "files").mkdir()
    url = make_file(tmp_path / "files" / "masked.db").replace("jdbc:sqlite:", "sqlite:///")
    source = {"name": "shop", "url": url, "masks": [{"column": "users.email"}]}
    async with served(tmp_path, sources=[source]) as jdbc:
        peer = jdbc.peer()
        id = await peer.connected("shop")
        query = "SELECT id, email FROM users"
        done = await peer.recorded(id, query, generate=["python", "java", "scala"])
        assert "note" in done
        assert "alice@" not in str(done)
