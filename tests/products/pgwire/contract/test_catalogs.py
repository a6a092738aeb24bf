"""PostgreSQL's catalogs of a source that has none: what psql and drivers ask for."""

from __future__ import annotations

import os
import shutil
import sqlite3
import subprocess

import psycopg
import pytest

from support.eventually import HANG_S
from support.wire_server import WireServer


def shown(server: WireServer, command: str, user: str = "writer", database: str = "shop") -> str:
    if shutil.which("psql") is None:
        pytest.skip("needs psql (the package postgresql-client)")
    found = subprocess.run(
        ["psql", "-X", "-c", command, server.conninfo(database, user)],
        capture_output=True, text=True, timeout=HANG_S, check=False, env={**os.environ},
    )  # fmt: skip
    assert found.returncode == 0, found.stderr
    return found.stdout


@pytest.mark.parametrize(
    ("command", "words"),
    [
        (r"\d", ("dear", "item", "sale", "view", "table")),
        (r"\dt", ("item", "sale")),
        (r"\dv", ("dear",)),
        (r"\di", ("sale_item",)),
        (r"\l", ("shop", "pg")),
        (r"\dn", ("main",)),
        (r"\du", ("writer",)),
        (r"\df", ("0 rows",)),
        (
            r"\d sale",
            (
                '"sale_pkey" PRIMARY KEY',
                '"sale_item" btree (item)',
                "ON DELETE CASCADE",
                "not null",
            ),
        ),
        (r"\d item", ("double precision", "Referenced by", 'TABLE "sale"')),
        (r"\d+ dear", ("View definition", "price > 50")),
    ],
)
def test_commands_of_psql_show_a_source_that_is_no_postgresql(
    server: WireServer, command: str, words: tuple[str, ...]
):
    said = shown(server, command)
    for word in words:
        assert word in said, said


@pytest.mark.parametrize(
    "command",
    [
        *(
            r"\d item",
            r"\d+ item",
            r"\d sale",
            r"\dt",
            r"\di",
            r"\dn",
            r"\dv",
            r"\ds",
            r"\df",
            r"\da",
        ),
        *(r"\dT", r"\du", r"\dg", r"\dx", r"\dp", r"\ddp", r"\dd", r"\do", r"\dC", r"\dD", r"\dc"),
        *(r"\des", r"\dew", r"\det", r"\dF", r"\dFp", r"\dFt", r"\dL", r"\dA", r"\dAc", r"\dAf"),
        *(r"\dP", r"\drds", r"\dRp", r"\dX", r"\dy", r"\db", r"\dE", r"\dm", r"\z", r"\dconfig"),
    ],
)
def test_psql_shows_a_postgresql_of_which_something_is_masked_as_one_without_masks(
    server: WireServer, command: str
):
    assert shown(server, command, database="masked") == shown(server, command, database="pg")


def test_the_catalog_of_a_masked_source_tells_no_counts_and_no_values(server: WireServer):
    with psycopg.connect(server.conninfo("masked"), autocommit=True) as gate:
        assert gate.execute("SELECT name, id FROM item ORDER BY id").fetchone() == (None, 1)
        counts = gate.execute(
            "SELECT relname, n_live_tup, n_tup_ins, seq_tup_read, last_analyze FROM"
            " pg_stat_user_tables WHERE relname IN ('item', 'sale') ORDER BY relname"
        ).fetchall()
        assert counts == [("item", None, None, None, None), ("sale", None, None, None, None)]
        for text in (
            "SELECT * FROM pg_stats",
            "SELECT * FROM pg_sequences",
            "SELECT * FROM pg_stat_activity",
            "SELECT * FROM pg_locks",
            "SELECT * FROM pg_statio_user_tables",
            "SELECT * FROM pg_stat_xact_user_tables",
            "SELECT pg_relation_size('sale')",
            "SELECT pg_stat_get_live_tuples('sale'::regclass)",
            "SELECT * FROM pg_stats_ext_exprs",
            "SELECT * FROM information_schema.user_mapping_options",
        ):
            with pytest.raises(psycopg.Error) as caught:
                gate.execute(text)
            assert caught.value.sqlstate == "42501", text


def test_the_information_schema_and_functions_of_the_session_answer(server: WireServer):
    with psycopg.connect(server.conninfo(), autocommit=True) as gate:
        text = (
            "SELECT column_name, data_type, is_nullable FROM information_schema.columns"
            " WHERE table_name = %s ORDER BY ordinal_position"
        )
        assert gate.execute(text, ("sale",)).fetchall() == [
            ("id", "bigint", "NO"), ("item", "bigint", "NO"), ("count", "bigint", "YES"),
        ]  # fmt: skip
        row = gate.execute("SELECT version(), current_database(), current_user").fetchone()
        assert row is not None
        assert row[0].startswith("PostgreSQL 17")
        assert row[1:] == ("shop", "writer")
        flags = "SELECT attname, attnotnull FROM pg_attribute WHERE attrelid = 'item'::regclass"
        assert gate.execute(flags + " AND attnum > 0 ORDER BY attnum").fetchall() == [
            ("id", True), ("name", True), ("price", False), ("made", False),
        ]  # fmt: skip


@pytest.mark.parametrize(
    "text",
    [
        "SELECT * FROM pg_class, LATERAL (SELECT 1) AS x",
        "SELECT lo_import('/etc/passwd') FROM pg_class",
        "SELECT load_extension('x') FROM pg_class",
        "WITH RECURSIVE t AS (SELECT 1 AS n UNION ALL SELECT n + 1 FROM t) SELECT count(*)"
        " FROM pg_class, t",
        "SELECT 1 FROM pg_class WHERE relname ~ '(a+)+$'",
        f"SELECT 1 FROM pg_class WHERE '{'a' * 60}!' ~ '^(a|a)*$'",
        "SELECT * FROM pg_class, item",
    ],
)
def test_what_is_not_emulated_is_refused_and_reaches_nothing(server: WireServer, text: str):
    with psycopg.connect(server.conninfo(), autocommit=True) as gate:
        with pytest.raises((psycopg.errors.FeatureNotSupported, psycopg.errors.QueryCanceled)):
            gate.execute(text)
        assert gate.execute("SELECT count(*) FROM item").fetchone() == (3,)


SETTING = "SELECT setting FROM pg_settings WHERE name = 'application_name'"


def test_sessions_that_share_a_catalog_have_settings_of_their_own(server: WireServer):
    with (
        psycopg.connect(server.conninfo(application_name="one"), autocommit=True) as one,
        psycopg.connect(server.conninfo(application_name="two"), autocommit=True) as two,
        psycopg.connect(server.conninfo(user="reader"), autocommit=True) as other,
    ):
        for _ in range(2):
            assert one.execute(SETTING).fetchone() == ("one",)
            assert two.execute(SETTING).fetchone() == ("two",)
            assert other.execute("SELECT current_user FROM pg_database").fetchone() == ("reader",)
        two.execute("SET application_name = 'three'")
        assert two.execute(SETTING).fetchone() == ("three",)
        assert one.execute(SETTING).fetchone() == ("one",)


def test_a_table_that_comes_and_goes_is_seen_by_every_session(server: WireServer):
    asked = "SELECT count(*) FROM pg_class WHERE relname = 'fresh'"
    with (
        psycopg.connect(server.conninfo(), autocommit=True) as one,
        psycopg.connect(server.conninfo(), autocommit=True) as two,
    ):
        assert [each.execute(asked).fetchone() for each in (one, two)] == [(0,), (0,)]
        one.execute("CREATE TABLE fresh (id INTEGER)")
        try:
            assert [each.execute(asked).fetchone() for each in (two, one)] == [(1,), (1,)]
        finally:
            file = sqlite3.connect(server.folder / "shop.db")
            file.execute("DROP TABLE fresh")
            file.close()
        assert [each.execute(asked).fetchone() for each in (one, two)] == [(0,), (0,)]
