"""Which texts are commands of the session, and how texts are parted."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tidegate.model.transactions import TransactionModes
from tidegate.products.pgwire.command_reader import begins_statement, read_command, split
from tidegate.products.pgwire.parsed_commands import (
    Begin,
    Characteristics,
    CloseCursor,
    CopyOut,
    Deallocate,
    Declare,
    Discard,
    End,
    Fetch,
    Refused,
    Reset,
    Savepoint,
    SetConfig,
    Setting,
    SetValue,
    Show,
    Unlisten,
    UnlockAll,
)
from tidegate.products.pgwire.placeholders import place_parameters


@pytest.mark.parametrize(
    ("text", "command"),
    [
        ("begin", Begin()),
        (
            "START TRANSACTION ISOLATION LEVEL SERIALIZABLE, READ ONLY;",
            Begin(TransactionModes("serializable", reads_only=True), "START TRANSACTION"),
        ),
        ("BEGIN READ WRITE", Begin(TransactionModes(reads_only=False))),
        ("/* x */ commit", End(commit=True)),
        ("END WORK", End(commit=True)),
        ("ROLLBACK AND CHAIN", End(commit=False, chain=True)),
        ("ABORT", End(commit=False)),
        ("rollback to savepoint A", Savepoint("ROLLBACK", "a")),
        ('RELEASE "A"', Savepoint("RELEASE", "A")),
        (
            "SET SESSION CHARACTERISTICS AS TRANSACTION READ ONLY",
            Characteristics(True, TransactionModes(reads_only=True)),
        ),
        ("SET search_path TO a, 'B'", SetValue("search_path", 'a, "B"')),
        ("SET LOCAL x.y = -3", SetValue("x.y", "-3", local=True)),
        ("SET TIME ZONE 'UTC'", SetValue("timezone", "UTC")),
        ("SET x TO DEFAULT", SetValue("x", None)),
        ("SHOW TRANSACTION ISOLATION LEVEL", Show("transaction_isolation")),
        ("RESET ALL", Reset("all")),
        ("DISCARD ALL", Discard("ALL")),
        ("DEALLOCATE PREPARE ALL", Deallocate(None)),
        ("CLOSE c", CloseCursor("c")),
        ("DECLARE c NO SCROLL CURSOR WITH HOLD FOR SELECT 1;", Declare("c", "SELECT 1", True)),
        ("FETCH FORWARD 10 FROM c", Fetch("c", 10, False)),
        ("MOVE ALL IN c", Fetch("c", None, True)),
        ("UNLISTEN *", Unlisten()),
        ("SELECT pg_advisory_unlock_all()", UnlockAll()),
        (
            "SELECT current_setting('jit') AS a, pg_catalog.set_config('jit', 'off', false)",
            SetConfig((Setting("a", "jit", None), Setting("set_config", "jit", "off"))),
        ),
        ("COPY t (a, b) TO STDOUT", CopyOut("SELECT a, b FROM t ", "text", False, "\t", "\\N")),
        (
            "COPY (SELECT ')', 2) TO STDOUT WITH (FORMAT csv, HEADER true, DELIMITER ';')",
            CopyOut("SELECT ')', 2", "csv", True, ";", ""),
        ),
        ("COPY t TO STDOUT (FORMAT binary)", CopyOut("SELECT * FROM t ", "binary", False, "", "")),
        ("COPY t TO STDOUT WITH BINARY", CopyOut("SELECT * FROM t ", "binary", False, "", "")),
        (
            'COPY (SELECT 1) TO STDOUT ("format" binary)',
            CopyOut("SELECT 1", "binary", False, "", ""),
        ),
    ],
)
def test_commands_are_read_whole(text: str, command: object):
    assert read_command(text) == command


@pytest.mark.parametrize(
    ("options", "sqlstate"),
    [
        ("FORMAT parquet", "22023"),
        ("FORMAT binary, DELIMITER ','", "42601"),
        ("FORMAT binary, HEADER", "42601"),
        ("FORMAT csv, QUOTE 'x'", "0A000"),
        ("DELIMITER 'ab'", "0A000"),
        ("DELIMITER 'é'", "0A000"),
        ("ENCODING latin1", "0A000"),
    ],
)
def test_an_option_of_copy_that_is_not_carried_out_says_so(options: str, sqlstate: str):
    command = read_command(f"COPY t TO STDOUT ({options})")
    assert isinstance(command, Refused)
    assert command.sqlstate == sqlstate


@pytest.mark.parametrize(
    ("text", "begins"),
    [
        ("selct 1", False), ("frobnicate", False), ("'x'", False), ("12", False),
        ("prepare p as select 1", True), ("/* x */ vacuum", True), ("(select 1)", True),
        ("PRAGMA user_version", True), ("'unterminated", True),
    ],
)  # fmt: skip
def test_a_text_whose_first_word_begins_no_statement_is_known(text: str, begins: bool):
    assert begins_statement(text, "sqlite") is begins


@pytest.mark.parametrize(
    "text",
    [
        "SELECT 1",
        "BEGIN; DELETE FROM t",
        "BEGIN SOMETHING",
        "COMMIT PREPARED 'x'",
        "SET ROLE admin",
        "SHOW a b",
        "FETCH BACKWARD 1 FROM c",
        "FETCH PRIOR FROM c",
        "COPY t FROM STDIN",
        "COPY t TO PROGRAM 'sh'",
        "COPY t TO '/tmp/x'",
        "SELECT pg_advisory_unlock_all(), secret FROM t",
        "SELECT set_config('x', 'y', NULL)",
        "SELECT set_config('x', name, false) FROM t",
        "SELECT 'unterminated",
        "",
        ";",
    ],
)
def test_what_is_not_read_to_its_end_is_left_to_the_gate(text: str):
    assert read_command(text) is None


@given(st.text(alphabet="abcSET=;'\"()$-/* \n1", max_size=60))
def test_a_text_falls_into_parts_that_hold_all_of_it(text: str):
    parts = split(text, "postgres")
    assert all(part.strip() == part or parts == [text] for part in parts)
    assert "".join(parts).replace(";", "").replace(" ", "").replace("\n", "") in text.replace(
        ";", ""
    ).replace(" ", "").replace("\n", "") or parts == [text]
    read_command(text)


@pytest.mark.parametrize(
    ("dialect", "text", "order"),
    [
        ("postgres", "SELECT ($1::bigint), '$2', $2, ($1::bigint)", ()),
        ("duckdb", "SELECT $1, '$2', $2, $1", ()),
        ("sqlite", "SELECT ?1, '$2', ?2, ?1", ()),
        ("mysql", "SELECT ?, '$2', ?, ?", (1, 2, 1)),
    ],
)
def test_parameters_are_written_as_the_source_reads_them(
    dialect: str, text: str, order: tuple[int, ...]
):
    placed = place_parameters("SELECT $1, '$2', $2, $1", dialect, ("bigint", None))
    assert (placed.text, placed.order, placed.most) == (text, order, 2)


@pytest.mark.parametrize(
    ("dialect", "text"),
    [
        ("sqlite", "SELECT ?1, ?2, ?1::nonsense, ?3"),
        ("mysql", "SELECT ?, ?, ?::nonsense, ?"),
        ("duckdb", "SELECT $1::int8, $2 :: double precision, $1::nonsense, $3"),
    ],
)
def test_a_cast_of_a_parameter_names_its_type(dialect: str, text: str):
    asked = "SELECT $1::int8, $2 :: double precision, $1::nonsense, $3"
    placed = place_parameters(asked, dialect, ())
    assert placed.types == (20, 701, 0)
    assert placed.text == text


def test_a_text_without_parameters_stays_as_it_is():
    assert place_parameters("SELECT '$1'", "sqlite", ()) == ("SELECT '$1'", (), 0, ())


@pytest.mark.parametrize(
    ("dialect", "text", "written"),
    [
        ("sqlite", "SELECT 'a'::text, '-5'::bigint -- c", "SELECT 'a', -5 -- c"),
        ("sqlite", "x = $1::character varying(3) AND y", "x = ?1 AND y"),
        ("sqlite", "x::integer, 'a::text', ('b')::text", "x::integer, 'a::text', ('b')::text"),
        ("mysql", "x = $2::timestamp without time zone", "x = ?"),
        ("duckdb", "x = $1::integer AND y = 'a'::text", "x = $1::integer AND y = 'a'::text"),
        ("cloud", 'SELECT "a.b".c.d FROM "a.b-c".d', 'SELECT a.b.c.d FROM a."b-c".d'),
        ("cloud", """SELECT "a.b", '"a.b".c' FROM x""", """SELECT "a.b", '"a.b".c' FROM x"""),
        ("sqlite", 'SELECT "a.b".c', 'SELECT "a.b".c'),
    ],
)
def test_casts_of_constants_and_paths_are_written_as_the_source_reads_them(
    dialect: str, text: str, written: str
):
    assert place_parameters(text, dialect, ()).text == written
