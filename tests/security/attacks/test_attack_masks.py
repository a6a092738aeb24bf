"""Attempts at masked values by way of what the database makes of them by itself: statistics by
macro, full-text indexes, tables over tables, computed columns."""

from __future__ import annotations

import asyncio

import pytest

import support.mysql_server as mysql_server
import support.postgres_server as postgres_server
from support.masking_shop import make, opened, row_texts
from tidegate.errors import Code, TidegateError
from tidegate.model.data_rules import DataRules

HIDDEN = "hush@mail.example"
ENGINES = [
    "sqlite",
    "duckdb",
    pytest.param(
        "postgres", marks=pytest.mark.skipif(not postgres_server.available(), reason="no server")
    ),
    pytest.param(
        "mysql", marks=pytest.mark.skipif(not mysql_server.available(), reason="no server")
    ),
]
ON_MYSQL = pytest.mark.skipif(not mysql_server.available(), reason="no server")


def outcome(engine, directory, script, masks, texts):
    """What each text gives under the masks: its rows, or the code of the refusal."""

    async def run():
        data_rules = DataRules(tuple((column, "nothing") for column in masks))
        async with opened(make(engine, directory, "masked", script)) as (side,):
            found = []
            for text in texts:
                try:
                    _, rows = await side.ask(side.masked(text, data_rules))
                    found.append(row_texts(rows))
                except TidegateError as error:
                    found.append(error.code)
            return found

    return asyncio.run(run())


PEOPLE = (
    "CREATE TABLE people (id INTEGER PRIMARY KEY, email VARCHAR(80))",
    f"INSERT INTO people VALUES (1, '{HIDDEN}')",
)


@pytest.mark.needs("duckdb")
@pytest.mark.parametrize(
    "text",
    [
        "SELECT * FROM histogram(people, email)",
        "SELECT * FROM histogram_values('people', email)",
        "FROM h: histogram('people', email)",
        "SELECT count FROM (VALUES (1)) v(i), LATERAL histogram_values(people, email)",
        "SELECT * FROM (VALUES (1)) v(i) JOIN system.main.histogram('people', email) h ON true",
        'PIVOT "histogram"(people, email) ON bin USING count(*)',
        "SUMMARIZE histogram(people, email)",
    ],
)
def test_no_macro_of_duckdb_reads_a_masked_table_by_its_name(tmp_path, text):
    assert outcome("duckdb", tmp_path, PEOPLE, ["people.email"], [text]) == [Code.POLICY_MASKED]


@pytest.mark.needs("duckdb")
def test_a_histogram_of_masked_values_is_still_an_aggregate(tmp_path):
    texts = ["SELECT cardinality(histogram(email)) FROM people"]
    assert outcome("duckdb", tmp_path, PEOPLE, ["people.email"], texts) == [["(None,)"]]


@pytest.mark.needs("duckdb")
@pytest.mark.parametrize(
    "text",
    [
        "SELECT upper('a')",
        "SELECT 'a'.UPPER()",
        "SELECT main.\"Upper\"('a')",
        "SELECT * FROM range(2)",
        "SELECT * FROM shouted",
    ],
)
def test_a_macro_that_takes_the_place_of_a_function_of_duckdb_reads_nothing(tmp_path, text):
    script = (
        *PEOPLE,
        "CREATE MACRO Upper(x) AS (SELECT max(email) FROM people)",
        "CREATE MACRO range(x) AS TABLE FROM people",
        "CREATE VIEW shouted AS SELECT upper(email) AS e FROM people",
    )
    texts = [text, "SELECT lower('A')"]
    outcomes = outcome("duckdb", tmp_path, script, ["people.email"], texts)
    assert outcomes == [Code.POLICY_MASKED, ["('a',)"]]


INDEXED = (
    *PEOPLE,
    "CREATE VIRTUAL TABLE found USING fts5(email, content='people', content_rowid='id')",
    "INSERT INTO found(found) VALUES ('rebuild')",
    "CREATE VIRTUAL TABLE words USING fts5vocab('found', 'row')",
    "CREATE VIEW seen AS SELECT * FROM found",
    "CREATE VIRTUAL TABLE notes USING fts5(body)",
    "INSERT INTO notes VALUES ('hush')",
    "CREATE VIRTUAL TABLE notes_words USING fts5vocab(notes, row)",
    'CREATE VIRTUAL TABLE old USING fts4(content="people", email)',
)


@pytest.mark.parametrize(
    "text",
    [
        "SELECT email FROM found",
        "SELECT highlight(found, 0, '', '') FROM found WHERE found MATCH 'hush'",
        "SELECT term FROM words",
        "SELECT * FROM seen",
        "SELECT * FROM old",
    ],
)
def test_a_full_text_index_does_not_tell_what_its_table_hides(tmp_path, text):
    assert outcome("sqlite", tmp_path, INDEXED, ["people.email"], [text]) == [Code.POLICY_MASKED]


def test_the_words_of_a_masked_full_text_table_are_hidden_too(tmp_path):
    texts = ["SELECT term FROM notes_words", "SELECT * FROM notes", "SELECT * FROM people"]
    outcomes = outcome("sqlite", tmp_path, INDEXED, ["notes.body"], texts)
    assert outcomes == [Code.POLICY_MASKED, ["(None,)"], [f"(1, '{HIDDEN}')"]]


def test_an_index_with_a_rule_of_its_own_is_read_by_that_rule(tmp_path):
    masks = ["people.email", "found.email"]
    texts = ["SELECT email FROM found", "SELECT email FROM people"]
    assert outcome("sqlite", tmp_path, INDEXED, masks, texts) == [["(None,)"], ["(None,)"]]


@pytest.mark.needs("mysql")
@ON_MYSQL
def test_a_table_that_merges_masked_ones_is_refused(tmp_path):
    columns = "(id INT, email VARCHAR(80))"
    script = (
        f"CREATE TABLE one {columns} ENGINE=MyISAM",
        f"CREATE TABLE two {columns} ENGINE=MyISAM",
        f"INSERT INTO one VALUES (1, '{HIDDEN}')",
        f"CREATE TABLE both_ {columns} ENGINE=MERGE UNION=(one, two)",
    )
    texts = ["SELECT * FROM both_", "SELECT * FROM one"]
    outcomes = outcome("mysql", tmp_path, script, ["one.email"], texts)
    assert outcomes == [Code.POLICY_MASKED, ["(1, None)"]]


@pytest.mark.parametrize("engine", ENGINES)
def test_a_column_computed_from_a_masked_one_is_masked_with_it(tmp_path, engine):
    kind = "" if engine == "duckdb" else " STORED"
    script = (
        "CREATE TABLE people (id INTEGER, email VARCHAR(80), low VARCHAR(80)"
        f" GENERATED ALWAYS AS (lower(email)){kind})",
        f"INSERT INTO people (id, email) VALUES (1, '{HIDDEN}')",
        "CREATE VIEW lows AS SELECT low FROM people",
    )
    texts = ["SELECT low FROM people", "SELECT * FROM lows", "SELECT id FROM people"]
    outcomes = outcome(engine, tmp_path, script, ["people.email"], texts)
    assert outcomes == [["(None,)"], ["(None,)"], ["(1,)"]]


@pytest.mark.parametrize("engine", ["duckdb", "sqlite", *ENGINES[3:]])
def test_a_column_computed_from_a_hidden_computed_one_is_masked_too(tmp_path, engine):
    script = (
        "CREATE TABLE people (id INTEGER, email VARCHAR(80),"
        " low VARCHAR(80) GENERATED ALWAYS AS (lower(email)),"
        " short VARCHAR(80) GENERATED ALWAYS AS (substr(low, 1, 9)))",
        f"INSERT INTO people (id, email) VALUES (1, '{HIDDEN}')",
    )
    outcomes = outcome(engine, tmp_path, script, ["people.email"], ["SELECT short FROM people"])
    assert outcomes == [["(None,)"]]


@pytest.mark.parametrize("engine", ENGINES)
def test_a_column_computed_from_others_is_still_returned(tmp_path, engine):
    kind = "" if engine == "duckdb" else " STORED"
    script = (
        "CREATE TABLE items (email VARCHAR(80), price INTEGER, gross INTEGER"
        f" GENERATED ALWAYS AS (price * 2){kind})",
        f"INSERT INTO items (email, price) VALUES ('{HIDDEN}', 4)",
    )
    outcomes = outcome(engine, tmp_path, script, ["items.email"], ["SELECT gross FROM items"])
    assert outcomes == [["(8,)"]]
