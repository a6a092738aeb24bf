"""What a client sets in its session holds for its statements as at PostgreSQL itself: the same
client sends the same statements to both, and values, types, tags, errors and what is reported are
compared. What is not applied is refused."""

from __future__ import annotations

import shutil
import subprocess
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import asyncpg
import psycopg
import pytest

from support import postgres_server
from support.eventually import HANG_S
from support.jdbc_drivers import QUICK, jars_of
from support.postgres_surface import PostgresShop
from support.wire_server import WireServer, wire_server

PROGRAM = Path(__file__).parent / "clients" / "ZonedClient.java"
ZONES = ["UTC", "America/New_York", "Asia/Kolkata", "Pacific/Auckland", "Europe/Berlin"]
ORDERS = ["ISO, MDY", "ISO, DMY", "ISO, YMD", "ISO"]
LATE = "timestamptz '2024-01-31 23:30:00+00'"

TABLE = "DROP TABLE IF EXISTS day; CREATE TABLE day (made date, at timestamptz, local timestamp);"
DAYS = [
    "SELECT date '03/04/2025', '03-04-2025'::date::text, to_date('05 06 2025', 'DD MM YYYY')",
    "SELECT '13/04/2025'::date",
    "SELECT '2025-04-03'::date, '3 Apr 2025'::date, 'April 3, 2025'::date::text",
    "INSERT INTO day VALUES ('03/04/2025', '03/04/2025 10:00', '03/04/2025 11:00') RETURNING *",
    "INSERT INTO day VALUES ('25/12/2025', NULL, NULL)",
    "SELECT made::text, at::text, local::text FROM day WHERE made > '01/02/2025' ORDER BY made",
    "UPDATE day SET made = '07/08/2025' WHERE made = '03/04/2025'",
    "DELETE FROM day WHERE made = '07/08/2025' RETURNING made",
]
MOMENTS = [
    f"SELECT {LATE}, {LATE}::date, {LATE}::text, {LATE}::time, {LATE}::timestamp",
    f"SELECT extract(hour FROM {LATE}), date_trunc('day', {LATE}), to_char({LATE}, 'DD HH24 TZ')",
    "SELECT timestamptz '2024-06-01 12:00', ('2024-06-01 12:00'::timestamp)::timestamptz",
    "SELECT current_setting('TimeZone') || '', date '2024-06-01' = timestamptz '2024-06-01 00:00'",
    f"SELECT array_agg(m), json_build_object('m', min(m)) FROM (VALUES ({LATE})) AS t (m)",
    "INSERT INTO day VALUES (now(), '2024-02-01 00:10', '2024-02-01 00:10+05') RETURNING at, local",
    "SELECT at::date, at::text, local FROM day",
    "DELETE FROM day WHERE at = '2024-02-01 00:10'",
    f"COPY (SELECT {LATE} AS m) TO STDOUT",
]
PARAMETERS = ("TimeZone", "DateStyle", "IntervalStyle", "standard_conforming_strings")


@pytest.fixture(scope="module")
def days(postgres: PostgresShop) -> PostgresShop:
    postgres.ask(TABLE)
    return postgres


def answer(connection: psycopg.Connection[Any], text: str, *, binary: bool = False) -> Any:
    """The rows of a statement with their types, its tag, or its SQLSTATE."""
    try:
        if text.startswith("COPY"):
            with connection.cursor().copy(text) as copy:
                return [bytes(part) for part in copy]
        cursor = connection.execute(text, binary=binary)
    except psycopg.Error as error:
        return error.sqlstate
    if cursor.description is None:
        return cursor.statusmessage
    shown = cursor.fetchall()
    types = [(each.name, each.type_code) for each in cursor.description]
    return types, [[str(value) for value in row] for row in shown], cursor.statusmessage


def both(
    server: WireServer,
    days: PostgresShop,
    texts: Sequence[str],
    *,
    binary: bool = False,
    **more: Any,
) -> list[list[Any]]:
    """What PostgreSQL itself and the gate answer to the same client."""
    found: list[list[Any]] = []
    for info in (days.server.conninfo(days.database), server.conninfo("pg")):
        days.ask("TRUNCATE day")
        with psycopg.connect(info, autocommit=True, **more) as connection:
            answers: list[Any] = []
            for text in texts:
                answers.append(answer(connection, text, binary=binary))
                status = connection.info.parameter_status
                answers.append({name: status(name) for name in PARAMETERS})
            found.append(answers)
    return found


@pytest.mark.parametrize("binary", [False, True], ids=["text", "binary"])
@pytest.mark.parametrize("order", ORDERS)
def test_dates_are_read_and_stored_in_the_order_that_the_session_set(
    server: WireServer, days: PostgresShop, order: str, binary: bool
):
    texts = [f"SET DateStyle = '{order}'", "SHOW DateStyle", *DAYS, "RESET DateStyle", *DAYS[:1]]
    direct, gate = both(server, days, texts, binary=binary)
    assert gate == direct


@pytest.mark.parametrize("zone", [*ZONES, "<+05:30>-05:30", "posix/Europe/Berlin", "EST5EDT", "-7"])
def test_moments_are_those_of_the_time_zone_that_the_session_set(
    server: WireServer, days: PostgresShop, zone: str
):
    ways = [f"SET TIME ZONE '{zone}'", f"SELECT set_config('TimeZone', '{zone}', false)"]
    for way in ways:
        direct, gate = both(server, days, [way, "SHOW TIME ZONE", *MOMENTS])
        assert gate == direct


@pytest.mark.parametrize(
    "options",
    [
        "-c TimeZone=Asia/Kolkata -c DateStyle=DMY",
        "--timezone=Asia/Kolkata --datestyle=ISO,\\ DMY",
        "-cTimeZone=UTC -c statement_timeout=30s",
    ],
)
def test_options_of_the_start_up_message_are_applied(
    server: WireServer, days: PostgresShop, options: str
):
    texts = [*DAYS[:2], *MOMENTS[:4], "RESET ALL", *MOMENTS[:1], "SHOW TimeZone"]
    direct, gate = both(server, days, texts, options=options)
    assert gate == direct


def test_the_environment_of_a_client_is_applied(
    server: WireServer, days: PostgresShop, monkeypatch: pytest.MonkeyPatch
):
    for name, value in (("PGTZ", "Europe/Berlin"), ("PGDATESTYLE", "ISO, DMY")):
        monkeypatch.setenv(name, value)
    direct, gate = both(server, days, [*DAYS, *MOMENTS])
    assert gate == direct
    monkeypatch.setenv("PGTZ", "Mars/Olympus")
    with pytest.raises(psycopg.OperationalError, match='invalid value for parameter "TimeZone"'):
        psycopg.connect(server.conninfo("pg"))


BLOCKS = [
    ["BEGIN", "SET LOCAL TimeZone = 'Asia/Tokyo'", "COMMIT"],
    ["BEGIN", "SET TimeZone = 'Asia/Tokyo'", "COMMIT"],
    ["BEGIN", "SET TimeZone = 'Asia/Tokyo'", "ROLLBACK"],
    ["BEGIN", "SAVEPOINT a", "SET DateStyle = DMY", "ROLLBACK TO a", "COMMIT"],
    ["BEGIN", "SET TimeZone = 'Asia/Tokyo'", "SAVEPOINT a", "RESET TimeZone", "ROLLBACK TO a"],
    ["BEGIN", "SET TimeZone = 'Asia/Tokyo'", "SELECT 1/0", "ROLLBACK"],
    ["BEGIN", "SELECT set_config('TimeZone', 'Asia/Tokyo', true)", "COMMIT"],
    ["SET TimeZone = 'Asia/Tokyo'", "DISCARD ALL"],
    ["SET TimeZone = 'Asia/Tokyo'", "RESET ALL"],
    ["SET TimeZone = 'Asia/Tokyo'", "SET TIME ZONE DEFAULT"],
    ["SET TimeZone = 'Asia/Tokyo'", "SET TIME ZONE LOCAL"],
    ["SET TIME ZONE INTERVAL '+02:00' HOUR TO MINUTE"],
    ["SET TIME ZONE -5"],
    ["SET LOCAL TimeZone = 'Asia/Tokyo'"],
    ["SET TimeZone = 'nowhere'"],
    ["SET DateStyle = 'ISO, XYZ'"],
    ["SET DateStyle = 'DMY'", "SET DateStyle = 'ISO'"],
    ["SET search_path = 'no, such', public", "SHOW search_path"],
    ["SET search_path TO nowhere", "SELECT count(*) FROM day", "SHOW search_path"],
    ['SET search_path TO nowhere, "Public", public', "SELECT count(*) FROM day"],
    ["SET row_security = off", "SHOW row_security"],
    ["SET lock_timeout = '3s'", "SHOW lock_timeout"],
    ["SET nonsense = 1"],
    ["SHOW nonsense"],
    ["RESET nonsense"],
    ["SHOW work_mem"],
    ["SET xmloption = content"],
    ["SET transaction_timeout = 0"],
]


@pytest.mark.parametrize("texts", BLOCKS, ids=" / ".join)
def test_settings_end_with_blocks_savepoints_and_resets_as_at_postgresql(
    server: WireServer, days: PostgresShop, texts: list[str]
):
    seen = [part for text in texts for part in (text, MOMENTS[0], DAYS[0])]
    direct, gate = both(server, days, seen)
    assert gate == direct


@pytest.mark.parametrize(
    "startup",
    [
        {"TimeZone": "Europe/Berlin", "DateStyle": "ISO", "extra_float_digits": "2"},  # pgjdbc
        {"TimeZone": "Asia/Tokyo", "application_name": "npgsql"},
        {"statement_timeout": "5000", "idle_in_transaction_session_timeout": "9000"},  # node-pg
        {"DateStyle": "ISO, DMY", "search_path": "public"},
    ],
)
async def test_parameters_of_a_start_up_message_are_applied_and_are_what_reset_goes_back_to(
    server: WireServer, days: PostgresShop, startup: dict[str, str]
):
    found: list[Any] = []
    targets: list[dict[str, Any]] = [
        {"host": str(days.server.directory), "port": days.server.port, "user": "postgres"},
        {"host": "127.0.0.1", "port": server.port, "user": "writer"},
    ]
    for target, database in zip(targets, (days.database, "pg"), strict=True):
        connection = await asyncpg.connect(
            **target, database=database, password=server.secrets["writer"],
            server_settings=startup, statement_cache_size=0,
        )  # fmt: skip
        try:
            for text in ("SET TIME ZONE 'Africa/Lagos'; SET DateStyle = 'YMD'", "RESET ALL"):
                found.append(await connection.fetch(DAYS[2]))
                found.append(await connection.fetchrow(MOMENTS[0].replace("::time,", "::text,")))
                found += [
                    await connection.fetchval(f"SHOW {name}") for name in ("TimeZone", *startup)
                ]
                await connection.execute(text)
            settings = connection.get_settings()
            found.append([settings.TimeZone, settings.DateStyle])
        finally:
            await connection.close()
    half = len(found) // 2
    assert found[half:] == found[:half]


def test_pgjdbc_reads_the_same_in_five_time_zones(
    server: WireServer, days: PostgresShop, tmp_path: Path
):
    if shutil.which("javac") is None:
        pytest.skip("needs a Java compiler (the package default-jdk-headless)")
    subprocess.run(["javac", "-d", str(tmp_path), str(PROGRAM)], check=True, timeout=HANG_S)
    texts = [each for each in (*MOMENTS, *DAYS) if not each.startswith("COPY")]
    texts.append("SELECT x, x::timestamptz::date, x::text FROM (SELECT ? AS x) AS t")
    (tmp_path / "texts").write_text("\n".join(texts))
    direct = f"jdbc:postgresql://127.0.0.1:{days.server.port}/{days.database}"
    gate = f"jdbc:postgresql://127.0.0.1:{server.port}/pg"
    printed: list[str] = []
    for url, user, password in (
        (direct, "postgres", postgres_server.PASSWORD),
        (gate, "writer", server.secrets["writer"]),
    ):
        days.ask("TRUNCATE day")
        path = f"{tmp_path}:{jars_of('postgresql')}"
        done = subprocess.run(
            ["java", QUICK, "-XX:+UseSerialGC", "-cp", path, "ZonedClient", url, user, password,
             str(tmp_path / "texts"), *ZONES],
            capture_output=True, text=True, timeout=HANG_S, check=False,
        )  # fmt: skip
        assert done.returncode == 0, done.stderr
        printed.append(done.stdout)
    assert printed[1] == printed[0]
    assert len(printed[0].splitlines()) == len(texts) * len(ZONES) * 2


@pytest.mark.parametrize(
    "text",
    [
        "SET DateStyle = 'German'",
        "SET DateStyle = 'SQL, DMY'",
        "SET DateStyle = 'Postgres'",
        "SET bytea_output = 'escape'",
        "SET IntervalStyle = 'iso_8601'",
        "SET extra_float_digits = 0",
        "SET standard_conforming_strings = off",
        "SET client_encoding = 'LATIN1'",
        "SET xmloption = document",
        "SET array_nulls = off",
        "SET transform_null_equals = on",
        "SET timezone_abbreviations = 'Australia'",
        "SET backslash_quote = on",
        "SET lc_numeric = 'POSIX'",
        "SET gin_fuzzy_search_limit = 1",
        "SET app.tenant = '7'",
        "SELECT set_config('app.tenant', '7', false)",
        "SET role = 'pg_monitor'",
        "SET work_mem = '77MB'",
    ],
)
def test_a_setting_that_is_not_applied_is_refused_and_nothing_changes(
    server: WireServer, days: PostgresShop, text: str
):
    shown = "SELECT '\\x00'::bytea, interval '1 day', 0.1::float8, current_setting('role') || ''"
    with psycopg.connect(server.conninfo("pg"), autocommit=True) as gate:
        before = answer(gate, shown)
        assert answer(gate, text) == "22023"
        assert answer(gate, shown) == before


LOCAL = {
    "application_name", "client_min_messages", "statement_timeout", "jit", "synchronize_seqscans",
    "idle_in_transaction_session_timeout", "default_transaction_read_only",
    "default_transaction_isolation", "transaction_isolation", "transaction_read_only",
}  # fmt: skip
"""What is kept by the edge: it changes no answer, or the edge itself does what it says."""


@pytest.mark.parametrize("kind", postgres_server.KINDS)
def test_every_setting_of_the_server_is_applied_or_refused(tmp_path: Path, kind: str):
    if kind not in postgres_server.available():
        pytest.skip(f"needs the server {kind!r}")
    database = postgres_server.shared(kind)
    listed = database.ask(
        "SELECT name, vartype, enumvals, min_val, max_val, setting FROM pg_settings"
        " WHERE context IN ('user', 'superuser') ORDER BY 1"
    )
    source = {"name": "pg", "url": database.url(), "access": "write"}
    wrong: list[str] = []
    with (
        wire_server(tmp_path, sources=[source]) as served,
        psycopg.connect(served.conninfo("pg"), autocommit=True) as gate,
    ):
        for name, kind_of, words, least, most, now in listed:
            before = gate.execute(f"SHOW {name}").fetchone()
            value = _another(kind_of, words, least, most, now)
            state = answer(gate, f"SET {name} = '{value}'")
            after = gate.execute(f"SHOW {name}").fetchone()
            held = gate.execute("SELECT current_setting(%s) || ''", (name,)).fetchone()
            if state != "SET":
                wrong += [f"{name}: refused, and {after}"] if after != before else []
                wrong += [f"{name}: {state}"] if state not in _REFUSALS else []
            elif name not in LOCAL and held not in (after, (f"{after[0]}, pg_temp",)):
                wrong.append(f"{name}: accepted as {after}, and it is {held}")
            gate.execute(f"RESET {name}")
    assert len(listed) > 100
    assert not wrong, "\n".join(wrong)


_REFUSALS = {"22023", "42501", "55P02", "42704", "22P02", "0A000", "25001", "42602"}


def _another(kind: str, words: list[str] | None, least: str, most: str, now: str) -> str:
    """A value that a setting may have and has not."""
    if kind == "bool":
        return "off" if now == "on" else "on"
    if words is not None:
        return next((each for each in words if each != now), now)
    if kind == "string":
        return "Asia/Tokyo" if now == "UTC" else "C"
    return least if now != least else most


def test_what_one_session_sets_reaches_no_other_statement_on_the_same_connection(tmp_path: Path):
    shop = PostgresShop.new(TABLE)
    source = {"name": "pg", "url": f"{shop.url}&pool=1", "access": "write"}
    text = f"SELECT {LATE}::date::text, '03/04/2025'::date::text, current_setting('TimeZone') || ''"
    with (
        wire_server(tmp_path, sources=[source]) as served,
        psycopg.connect(served.conninfo("pg"), autocommit=True) as one,
        psycopg.connect(served.conninfo("pg", "reader"), autocommit=True) as other,
    ):
        one.execute("SET TIME ZONE 'Asia/Tokyo'")
        one.execute("SET DateStyle = 'DMY'")
        own = [("2024-02-01", "2025-04-03", "Asia/Tokyo")]
        plain = [("2024-01-31", "2025-03-04", "UTC")]
        for _ in range(7):  # often enough to be prepared
            assert one.execute(text).fetchall() == own
            assert other.execute(text).fetchall() == plain
        one.execute("INSERT INTO day VALUES ('03/04/2025')")
        assert other.execute(text).fetchall() == plain
        assert shop.ask("SELECT made::text FROM day") == [("2025-04-03",)]


def test_the_zone_of_the_account_is_that_of_its_sessions_and_of_no_other_road(tmp_path: Path):
    shop = PostgresShop.new(TABLE)
    shop.ask(f"ALTER DATABASE {shop.database} SET TimeZone = 'Asia/Tokyo'")
    shop.ask(f"ALTER DATABASE {shop.database} SET DateStyle = 'SQL, DMY'")
    source = {"name": "pg", "url": shop.url, "access": "write"}
    text = f"SELECT {LATE}::date::text, '03/04/2025'::date::text"
    with (
        wire_server(tmp_path, sources=[source]) as served,
        psycopg.connect(served.conninfo("pg"), autocommit=True) as gate,
    ):
        assert gate.info.parameter_status("TimeZone") == "Asia/Tokyo"
        assert gate.info.parameter_status("DateStyle") == "ISO, DMY"
        assert gate.execute(text).fetchall() == [("2024-02-01", "2025-04-03")]
        gate.execute("SET TIME ZONE 'UTC'")
        assert gate.execute(text).fetchall() == [("2024-01-31", "2025-04-03")]
        gate.execute("RESET TIME ZONE")
        assert gate.execute(text).fetchall() == [("2024-02-01", "2025-04-03")]


HIDING: list[dict[str, Any]] = [
    {"filters": [{"table": "day", "where": "made < '01/02/2024'"}]},
    {"filters": [{"table": "day", "where": "at::date = local::date"}]},
    {"filters": [{"table": "day", "where": "at < local"}]},
    {"masks": [{"column": "day.at", "show": "partial"}]},
    {"masks": [{"column": "day.at", "show": "hash"}]},
]


@pytest.mark.parametrize("rules", HIDING)
def test_no_session_moves_what_is_hidden_by_its_time_zone(tmp_path: Path, rules: dict[str, Any]):
    shop = PostgresShop.new(TABLE)
    source = {"name": "pg", "url": shop.url, "access": "write", **rules}
    with (
        wire_server(tmp_path, sources=[source]) as served,
        psycopg.connect(served.conninfo("pg", "reader"), autocommit=True) as gate,
    ):
        plain = gate.execute("SELECT * FROM day").fetchall()
        for change in ("SET TimeZone = '<x>-150'", "SET DateStyle = 'DMY'"):
            gate.execute(change)
            with pytest.raises(psycopg.Error, match="depends on the time zone") as caught:
                gate.execute("SELECT * FROM day")
            assert "SET TIME ZONE 'UTC'" in str(caught.value)
            gate.execute("RESET ALL")
        assert gate.execute("SELECT * FROM day").fetchall() == plain


def test_rules_on_plain_columns_leave_sessions_their_time_zone(server: WireServer):
    with psycopg.connect(server.conninfo("masked", "reader"), autocommit=True) as gate:
        gate.execute("SET TIME ZONE 'Asia/Tokyo'")
        found = gate.execute(f"SELECT count(*), {LATE}::date::text FROM sale, item").fetchall()
        assert found == [(3, "2024-02-01")]


@pytest.mark.parametrize("source", ["lite", "duck", "maria", "cloud"])
def test_a_source_that_is_no_postgresql_keeps_its_own_zone_and_says_so(
    server: WireServer, source: str, request: pytest.FixtureRequest
):
    if source == "maria":
        request.getfixturevalue("needs_mariadb")
    notices: list[str] = []
    options = "-c TimeZone=Asia/Tokyo -c DateStyle=ISO"
    with psycopg.connect(server.conninfo(source), autocommit=True, options=options) as gate:
        assert gate.info.parameter_status("TimeZone") == "UTC"
        assert gate.execute("SHOW TimeZone").fetchone() == ("UTC",)
        gate.add_notice_handler(lambda notice: notices.append(notice.message_primary or ""))
        for text in ("SET TimeZone = 'Asia/Tokyo'", "SET DateStyle = 'ISO, DMY'",
                     "SET lock_timeout = 5", "SET search_path = a, b"):  # fmt: skip
            assert answer(gate, text) == "22023"
        for text in ("SET TimeZone = 'UTC'", "SET DateStyle = 'ISO, MDY'", "SET lock_timeout = 0",
                     "SET search_path = main, public"):  # fmt: skip
            assert answer(gate, text) == "SET"
