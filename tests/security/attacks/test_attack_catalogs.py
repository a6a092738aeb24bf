"""A8: values and counts that databases keep beside the rows, in catalogs and statistics, and the
answers of their foreign keys. Tools that browse a schema go on working."""

from __future__ import annotations

import asyncio
import contextlib
import json
import re
from pathlib import Path
from typing import Any

import pytest

import support.mysql_server as mysql_server
import support.postgres_server as postgres_server
from contract.surfaces.engine_shops import ENGINE_SHOPS
from support.masking_shop import ENGINES, make, opened, row_texts
from support.surface_client import Peer
from support.surface_gateway import SHOP_ID, SqliteGate
from tidegate.config.model import Config
from tidegate.errors import Code, TidegateError
from tidegate.model.data_rules import DataRules
from tidegate.model.source_settings import Mask
from tidegate.surfaces.registry import SURFACES, open_surface

HIDDEN = "hush@mail.example"
DEFAULT = "hush-default@mail.example"
COUNT = 137
RULES = DataRules(
    masks=(("people.email", "nothing"), ("people.badge", "hash"), ("people.country", "nothing")),
    filters=(("letters", "sender = 7"),),
)
_PEOPLE = (
    "CREATE TABLE people (id INTEGER PRIMARY KEY, badge INTEGER, name VARCHAR(40))",
    "INSERT INTO people VALUES " + ", ".join(f"({n}, {n + 5000}, 'p{n}')" for n in range(1, 41)),
)
_LETTERS = (
    "CREATE TABLE letters (id INTEGER PRIMARY KEY, sender INTEGER, topic VARCHAR(20))",
    "INSERT INTO letters VALUES "
    + ", ".join(f"({n}, {7 if n <= 3 else 8}, 't{n % 11}')" for n in range(1, COUNT + 1)),
    "CREATE INDEX letters_topic ON letters (topic)",
    "CREATE TABLE plain (id INTEGER PRIMARY KEY, shade VARCHAR(20) DEFAULT 'teal')",
)
_ADDED = (
    f"ALTER TABLE people ADD COLUMN email VARCHAR(80) DEFAULT '{DEFAULT}'",
    "ALTER TABLE people ADD COLUMN country VARCHAR(20) DEFAULT 'Elbonia'",
    f"UPDATE people SET email = '{HIDDEN}' WHERE id < 9",
    "CREATE INDEX people_email ON people (email)",
)
_VIEWS = (
    "CREATE VIEW contacts AS SELECT id, email AS mail, country AS land FROM people",
    "CREATE VIEW addresses AS SELECT mail AS address FROM contacts",
)
VIEWS = ("contacts", "addresses")
"""Views that have the masked columns under other names."""
_ADDED = (*_ADDED, *_VIEWS)
SCRIPTS = {
    "postgres": (*_PEOPLE, *_LETTERS, *_ADDED, "ANALYZE"),
    "mysql": (*_PEOPLE, *_LETTERS, *_ADDED, "ANALYZE TABLE people", "ANALYZE TABLE letters",
              "ANALYZE TABLE people PERSISTENT FOR ALL"),
    "sqlite": (*_PEOPLE, *_LETTERS, *_ADDED, "ANALYZE"),
    "duckdb": (*_PEOPLE, *_LETTERS, *_ADDED, "ANALYZE"),
}  # fmt: skip

ATTACKS = {
    "postgres": r"""
SELECT attmissingval FROM pg_attribute
SELECT attmissingval::text FROM pg_catalog.pg_attribute WHERE attname = 'email'
SELECT a FROM pg_attribute a
SELECT to_jsonb(a) FROM pg_attribute AS a WHERE attname = 'email'
TABLE pg_attribute
SELECT pg_get_expr(adbin, adrelid) FROM pg_attrdef
SELECT adbin FROM pg_catalog.pg_attrdef
SELECT d.* FROM pg_class c JOIN pg_attrdef d ON d.adrelid = c.oid
SELECT column_default FROM information_schema.columns WHERE table_name = 'people'
SELECT row_to_json(c) FROM information_schema.columns c
SELECT reltuples, relpages, relallvisible FROM pg_class WHERE relname IN ('letters', 'people')
SELECT * FROM pg_class
SELECT x.* FROM (SELECT * FROM pg_catalog.pg_class) x
WITH c AS (SELECT * FROM pg_class) SELECT reltuples FROM c WHERE relname = 'letters'
SELECT (SELECT reltuples FROM pg_class WHERE oid = 'letters'::regclass)
SELECT pg_class.reltuples FROM pg_catalog.pg_class WHERE pg_class.relname = 'letters'
SELECT * FROM pg_stats
SELECT * FROM pg_statistic
SELECT * FROM pg_stats_ext
SELECT * FROM pg_stat_user_tables
SELECT * FROM pg_stat_all_tables
SELECT * FROM pg_statio_user_tables
SELECT pg_relation_size('letters')
SELECT pg_total_relation_size('letters'), pg_table_size('letters'), pg_indexes_size('letters')
SELECT pg_stat_get_live_tuples('letters'::regclass)
SELECT pg_database_size(current_database())
SELECT * FROM pg_sequences
EXPLAIN SELECT * FROM letters
EXPLAIN (FORMAT JSON) SELECT * FROM letters WHERE topic = 't1'
""",
    "mysql": r"""
SELECT TABLE_ROWS FROM information_schema.TABLES
SELECT * FROM information_schema.tables
SELECT table_rows, avg_row_length, data_length, auto_increment FROM information_schema.TABLES t
SELECT CARDINALITY FROM information_schema.STATISTICS
SELECT * FROM information_schema.statistics
SELECT COLUMN_DEFAULT FROM information_schema.COLUMNS WHERE TABLE_NAME = 'people'
SELECT * FROM information_schema.PARTITIONS
SELECT * FROM information_schema.INNODB_TABLESTATS
SELECT * FROM information_schema.INNODB_SYS_TABLESTATS
SELECT * FROM information_schema.COLUMN_STATISTICS
SELECT * FROM information_schema.TABLE_STATISTICS
SELECT * FROM information_schema.INNODB_BUFFER_PAGE
SELECT * FROM mysql.innodb_table_stats
SELECT * FROM mysql.innodb_index_stats
SELECT * FROM mysql.column_stats
SELECT * FROM mysql.table_stats
SELECT * FROM mysql.index_stats
SHOW TABLE STATUS
SHOW TABLE STATUS LIKE 'letters'
SHOW INDEX FROM letters
SHOW KEYS FROM people
SHOW INDEXES IN `letters`
SHOW CREATE TABLE people
SHOW CREATE TABLE letters
SHOW COLUMNS FROM people
SHOW FULL COLUMNS FROM people
SHOW FULL FIELDS FROM `people`
SHOW FULL PROCESSLIST
DESCRIBE people
DESC people email
EXPLAIN people
EXPLAIN SELECT * FROM letters
EXPLAIN FORMAT=JSON SELECT * FROM letters WHERE topic = 't1'
""",
    "sqlite": r"""
SELECT * FROM sqlite_stat1
SELECT * FROM main.sqlite_stat1
SELECT * FROM sqlite_stat4
SELECT * FROM dbstat
SELECT * FROM sqlite_sequence
SELECT * FROM sqlite_dbpage
SELECT sql FROM sqlite_master WHERE name = 'people'
SELECT sql FROM sqlite_schema WHERE tbl_name = 'people'
SELECT * FROM main.sqlite_master m
SELECT m.sql FROM main.sqlite_schema AS m
SELECT dflt_value FROM pragma_table_info('people')
SELECT * FROM pragma_table_xinfo('people')
PRAGMA table_info(people)
PRAGMA table_info('people')
PRAGMA main.table_xinfo("people")
PRAGMA page_count
SELECT * FROM pragma_page_count
SELECT * FROM pragma_page_count()
PRAGMA freelist_count
PRAGMA integrity_check
SELECT * FROM pragma_integrity_check()
SELECT * FROM pragma_foreign_key_check('letters')
SELECT * FROM pragma_stats()
""",
    "duckdb": r"""
SELECT estimated_size FROM duckdb_tables
SELECT estimated_size, sql FROM duckdb_tables()
SELECT * FROM duckdb_tables() t
SELECT t.estimated_size FROM duckdb_tables() AS t WHERE table_name = 'letters'
FROM duckdb_tables()
FROM duckdb_tables
SELECT * FROM system.main.duckdb_tables()
SELECT * FROM system.main.duckdb_tables
SELECT column_default FROM duckdb_columns
SELECT * FROM duckdb_columns() WHERE table_name = 'people'
SELECT column_default FROM information_schema.columns
SELECT reltuples FROM pg_catalog.pg_class
SELECT * FROM pg_class
SELECT * FROM pg_catalog.pg_attrdef
SELECT adbin FROM pg_attrdef
SELECT * FROM pg_attribute
SELECT sql FROM sqlite_master
SELECT * FROM sqlite_schema
SELECT * FROM duckdb_sequences()
SELECT * FROM pg_catalog.pg_sequences
SELECT * FROM pragma_storage_info('letters')
PRAGMA storage_info('letters')
PRAGMA database_size
SELECT * FROM pragma_database_size()
PRAGMA metadata_info
SELECT * FROM pragma_metadata_info()
PRAGMA table_info('people')
SELECT * FROM pragma_table_info('people')
PRAGMA show('people')
SELECT stats(email) FROM people
SELECT * FROM duckdb_memory()
EXPLAIN SELECT * FROM letters
SUMMARIZE letters
""",
}

BROWSING = {
    "postgres": {
        "SELECT table_name FROM information_schema.tables WHERE table_schema = 'public'": "people",
        "SELECT column_name, data_type, column_default FROM information_schema.columns"
        " WHERE table_schema = 'public' AND table_name = 'plain'": "teal",
        "SELECT column_name FROM information_schema.columns WHERE table_name = 'people'": "email",
        "SELECT c.relname, c.relkind, n.nspname FROM pg_catalog.pg_class c JOIN"
        " pg_catalog.pg_namespace n ON n.oid = c.relnamespace WHERE n.nspname = 'public'": "people",
        "SELECT a.attname, pg_catalog.format_type(a.atttypid, a.atttypmod), (SELECT"
        " pg_catalog.pg_get_expr(d.adbin, d.adrelid, true) FROM pg_catalog.pg_attrdef d WHERE"
        " d.adrelid = a.attrelid AND d.adnum = a.attnum AND a.atthasdef), a.attnotnull,"
        " a.attidentity, a.attgenerated FROM pg_catalog.pg_attribute a WHERE a.attrelid ="
        " 'plain'::regclass AND a.attnum > 0 AND NOT a.attisdropped ORDER BY a.attnum": "teal",
        "SELECT c2.relname, i.indisprimary, pg_catalog.pg_get_indexdef(i.indexrelid, 0, true) FROM"
        " pg_catalog.pg_class c, pg_catalog.pg_class c2, pg_catalog.pg_index i WHERE c.oid ="
        " 'people'::regclass AND c.oid = i.indrelid AND i.indexrelid = c2.oid": "people_email",
        "SELECT tablename, indexname FROM pg_indexes": "people_email",
        "SELECT relname, reltuples FROM pg_class WHERE relname = 'people'": "people",
    },
    "mysql": {
        "SELECT table_name FROM information_schema.tables WHERE table_schema = database()":
            "people",
        "SELECT column_name, column_type FROM information_schema.columns WHERE table_name ="
        " 'people' AND table_schema = database()": "email",
        "SELECT column_default FROM information_schema.columns WHERE table_name = 'plain'": "teal",
        "SELECT index_name, column_name FROM information_schema.statistics WHERE table_name ="
        " 'letters'": "letters_topic",
        "SHOW TABLES": "people",
        "SHOW FULL TABLES": "people",
        "SHOW CREATE TABLE plain": "teal",
        "SHOW COLUMNS FROM plain": "teal",
        "DESCRIBE plain": "teal",
        "SHOW INDEX FROM plain": "PRIMARY",
        "SHOW COLUMNS FROM letters WHERE Field = 'topic'": None,
    },
    "sqlite": {
        "SELECT name FROM sqlite_master WHERE type = 'table'": "people",
        "SELECT sql FROM sqlite_master WHERE name = 'plain'": "teal",
        "SELECT sql FROM sqlite_schema WHERE name = 'letters'": "sender",
        "SELECT m.name, x.name FROM sqlite_master m, pragma_index_list(m.name) x": "people_email",
        "PRAGMA table_info(plain)": "teal",
        "PRAGMA table_list": "people",
        "PRAGMA index_list(people)": "people_email",
    },
    "duckdb": {
        "SELECT table_name FROM duckdb_tables()": "people",
        "SELECT table_name FROM duckdb_tables": "people",
        "SELECT t.table_name FROM duckdb_tables() AS t": "people",
        "SELECT column_name FROM duckdb_columns() WHERE table_name = 'people'": "email",
        "SELECT column_default FROM duckdb_columns WHERE table_name = 'plain'": "teal",
        "SELECT table_name FROM information_schema.tables": "people",
        "SELECT column_name FROM information_schema.columns": "email",
        "SELECT relname FROM pg_catalog.pg_class": "people",
        "SHOW TABLES": "people",
        "DESCRIBE people": "email",
        "PRAGMA table_info('plain')": "teal",
    },
}  # fmt: skip
EACH = [pytest.param(engine, marks=pytest.mark.xdist_group(engine)) for engine in SCRIPTS]


def need(engine: str) -> None:
    if engine not in ENGINES:
        pytest.skip(f"no server of {engine} is installed here")


def outcomes(
    engine: str,
    directory: Path,
    texts: list[str],
    rules: DataRules = RULES,
    script: Any = None,
    mark: str = "hush-default",
) -> list[Any]:
    """What each text gives under the rules: its rows, or the refusal. `mark` is what the defaults
    of this database begin with: one server has those of other tests, too."""

    async def run() -> list[Any]:
        statements = [text.replace("hush-default", mark) for text in script or SCRIPTS[engine]]
        url = make(engine, directory, "catalogued", statements)
        async with opened(url) as (side,):
            found: list[Any] = []
            for text in texts:
                try:
                    _, rows = await side.ask(side.masked(text, rules))
                    found.append("\n".join(row_texts(rows)))
                except TidegateError as error:
                    found.append(error)
            return found

    return asyncio.run(run())


@pytest.mark.parametrize("engine", EACH)
def test_a8_no_catalog_or_statistic_tells_values_or_counts_that_are_hidden(engine, tmp_path):
    need(engine)
    texts = ATTACKS[engine].strip().splitlines()
    texts += [text.replace("people", view) for text in texts for view in VIEWS if "people" in text]
    found_all = outcomes(engine, tmp_path, texts, mark="hush-both")
    for text, found in zip(texts, found_all, strict=True):
        if isinstance(found, TidegateError):
            assert found.code is not Code.INTERNAL, text
            assert "hush" not in found.message, text
            continue
        assert "hush-both" not in found and HIDDEN not in found, text
        assert engine == "mysql" or "Elbonia" not in found, text
        assert not re.search(rf"\b{COUNT}(\.0)?\b", found), text


@pytest.mark.parametrize("engine", EACH)
def test_a8_the_attacks_would_succeed_without_rules(engine, tmp_path):
    """Otherwise they would prove nothing: most of the corpus tells something to whom all is
    open."""
    need(engine)

    async def run() -> str:
        url = make(engine, tmp_path, "open", list(SCRIPTS[engine]))
        async with opened(url) as (side,):
            seen = ""
            for text in ATTACKS[engine].strip().splitlines():
                with contextlib.suppress(TidegateError):
                    seen += "\n".join(row_texts((await side.ask(text))[1]))
            return seen

    seen = asyncio.run(run())
    assert DEFAULT in seen
    if engine != "sqlite":  # its rows are counted in a table of statistics, which needs more
        assert re.search(rf"\b{COUNT}(\.0)?\b", seen)


@pytest.mark.parametrize("engine", EACH)
def test_a8_the_schema_can_be_browsed_where_something_is_hidden(engine, tmp_path):
    need(engine)
    texts = list(BROWSING[engine])
    for text, found in zip(texts, outcomes(engine, tmp_path, texts), strict=True):
        assert isinstance(found, str), (text, found)
        wanted = BROWSING[engine][text]
        assert wanted is None or wanted in found, (text, found)


@pytest.mark.parametrize("engine", EACH)
def test_a8_a_mask_alone_hides_what_a_filter_beside_it_hides(engine, tmp_path):
    need(engine)
    rules = DataRules(masks=(("people.email", "partial"), ("people.country", "partial")))
    texts = ATTACKS[engine].strip().splitlines()
    found_all = outcomes(engine, tmp_path, texts, rules, mark="hush-alone")
    for text, found in zip(texts, found_all, strict=True):
        assert isinstance(found, TidegateError) or "hush-alone" not in found, text


@pytest.mark.parametrize("engine", EACH)
def test_a8_a_list_of_tables_admits_no_catalog_at_all(engine, tmp_path):
    need(engine)
    texts = [
        text
        for text in ATTACKS[engine].strip().splitlines()
        if "FROM letters" not in text and "people" not in text.lower().split("where")[0]
        and not text.startswith(("EXPLAIN", "SUMMARIZE"))
    ]  # fmt: skip
    rules = DataRules(only=("plain",))
    for text, found in zip(texts, outcomes(engine, tmp_path, texts, rules), strict=True):
        assert isinstance(found, TidegateError), text
        assert found.code in (Code.POLICY_TABLE, Code.POLICY_MASKED), (text, found)


def test_a8_a_table_called_like_one_of_postgresqls_catalog_opens_no_way_to_it(tmp_path):
    need("postgres")
    script = (*SCRIPTS["postgres"], "CREATE TABLE public.pg_class (a INT)",
              "CREATE TABLE public.pg_stats (a INT)")  # fmt: skip
    texts = ["SELECT reltuples FROM pg_class", "SELECT * FROM pg_stats"]
    found = outcomes("postgres", tmp_path, texts, script=script)
    assert isinstance(found[0], str) and str(COUNT) not in found[0]
    assert isinstance(found[1], TidegateError)


def test_a8_a_view_over_the_catalog_tells_as_little_as_the_catalog(tmp_path):
    need("postgres")
    script = (*SCRIPTS["postgres"],
              "CREATE VIEW sizes AS SELECT relname, reltuples FROM pg_class",
              "CREATE VIEW common AS SELECT most_common_vals::text AS v FROM pg_stats")  # fmt: skip
    texts = ["SELECT * FROM sizes WHERE relname = 'letters'", "SELECT * FROM common"]
    found = outcomes("postgres", tmp_path, texts, script=script)
    assert "letters" in found[0] and str(COUNT) not in found[0]
    assert isinstance(found[1], TidegateError)


# Foreign keys.

KEYS = (
    "CREATE TABLE people (id INTEGER PRIMARY KEY, badge INTEGER NOT NULL UNIQUE,"
    " email VARCHAR(80))",
    "CREATE TABLE visits (id INTEGER PRIMARY KEY, badge INTEGER, place VARCHAR(20),"
    " FOREIGN KEY (badge) REFERENCES people (badge))",
    "CREATE TABLE rooms (id INTEGER PRIMARY KEY, name VARCHAR(20))",
    "CREATE TABLE stays (id INTEGER PRIMARY KEY, room INTEGER, guest VARCHAR(40),"
    " FOREIGN KEY (room) REFERENCES rooms (id))",
    "CREATE TABLE towns (id INTEGER PRIMARY KEY, name VARCHAR(20))",
    "CREATE TABLE streets (id INTEGER PRIMARY KEY, town INTEGER,"
    " FOREIGN KEY (town) REFERENCES towns (id))",
    "INSERT INTO people VALUES (1, 5001, 'hush@mail.example')",
    "INSERT INTO visits VALUES (1, 5001, 'hall')",
    "INSERT INTO rooms VALUES (1, 'blue'), (2, 'red')",
    "INSERT INTO stays VALUES (1, 1, 'Ada')",
    "INSERT INTO towns VALUES (1, 'Elbing')",
)
KEY_RULES = DataRules(masks=(("people.badge", "nothing"),), filters=(("stays", "guest = 'Grace'"),))
ORACLES = [
    "INSERT INTO visits VALUES (7, 5001, 'hall')",
    "INSERT INTO visits (id, badge) VALUES (7, 4999)",
    "INSERT INTO visits (id, place) VALUES (7, 'hall')",
    "INSERT INTO visits SELECT 7, 5001, 'x'",
    "UPDATE visits SET badge = 5001 WHERE id = 1",
    "UPDATE visits SET place = 'x', badge = 4999 WHERE id = 1",
    "DELETE FROM rooms WHERE id = 1",
    "DELETE FROM rooms WHERE id = 2",
    "UPDATE rooms SET id = 9 WHERE id = 1",
]
PLAIN = [
    "UPDATE visits SET place = 'garden' WHERE badge = 5001",
    "DELETE FROM visits WHERE id = 77",
    "INSERT INTO rooms VALUES (3, 'green')",
    "UPDATE rooms SET name = 'sky' WHERE id = 2",
    "INSERT INTO streets VALUES (1, 1)",
    "DELETE FROM towns WHERE id = 77",
]


@pytest.mark.parametrize("engine", EACH)
def test_a8_no_foreign_key_answers_for_a_key_or_a_row_that_is_hidden(engine, tmp_path):
    need(engine)

    async def run() -> None:
        url = make(engine, tmp_path, "keys", list(KEYS))
        async with opened(url) as (side,):
            for text in ORACLES:
                with pytest.raises(TidegateError) as refused:
                    side.masked(text, KEY_RULES)
                assert refused.value.code is Code.POLICY_MASKED, text
            for text in PLAIN:
                assert side.masked(text, KEY_RULES).text == text
            _, rows = await side.ask("SELECT count(*) FROM visits")
            assert rows == [(1,)]

    asyncio.run(run())


def test_a8_a_cascade_that_meets_hidden_rows_is_refused_as_well(tmp_path):
    script = (
        "CREATE TABLE a (id INTEGER PRIMARY KEY)",
        "CREATE TABLE b (id INTEGER PRIMARY KEY, a INTEGER REFERENCES a (id) ON DELETE CASCADE)",
        "CREATE TABLE c (id INTEGER PRIMARY KEY, b INTEGER REFERENCES b)",
        "INSERT INTO a VALUES (1), (2)",
        "INSERT INTO b VALUES (1, 1)",
        "INSERT INTO c VALUES (1, 1)",
    )
    rules = DataRules(filters=(("c", "id = 2"),))

    async def run() -> None:
        async with opened(make("sqlite", tmp_path, "keys", list(script))) as (side,):
            for text in (
                "DELETE FROM a WHERE id = 1",
                "REPLACE INTO a VALUES (1)",
                "INSERT OR REPLACE INTO a VALUES (1)",
                "WITH x AS (SELECT 1) DELETE FROM a WHERE id IN (SELECT * FROM x)",
            ):
                with pytest.raises(TidegateError):
                    side.masked(text, rules)
            assert side.masked("INSERT INTO a VALUES (3)", rules)

    asyncio.run(run())


@pytest.mark.parametrize("server", [postgres_server, mysql_server])
def test_a8_runs_on_the_servers_that_are_installed(server):
    """A server that is missing is a skip by name above, and no shorter list."""
    name = server.__name__.rpartition(".")[2].partition("_")[0]
    assert bool(server.available()) == (name in ENGINES)


# What tools say of a table.


@pytest.mark.needs("workbench")
@pytest.mark.parametrize("engine", sorted(ENGINE_SHOPS))
def test_a8_no_tool_tells_the_default_of_a_masked_column(engine, tmp_path):
    shop = ENGINE_SHOPS[engine](tmp_path)
    shop.script("ALTER TABLE orders ADD COLUMN card VARCHAR(40) DEFAULT 'hush-card'")
    shop.script("CREATE VIEW paid AS SELECT id, card AS number FROM orders")
    source = shop.source(access="read", masks=(Mask("orders.card", "hash"),))
    gate = SqliteGate(tmp_path, source)
    config = Config(surface={"workbench": {"extended": True}})

    async def scenario(table: str) -> dict[str, str]:
        arguments = {"connection_id": SHOP_ID, "table": table, "include_row_counts": True}
        seen: dict[str, str] = {}
        async with gate.opened():
            for surface in SURFACES:
                peer = Peer(open_surface(surface, gate, config))
                await peer.open()
                for tool in (await peer.request("tools/list"))["result"]["tools"]:
                    known = tool["inputSchema"].get("properties", {})
                    given = {k: v for k, v in arguments.items() if k in known}
                    for extra in ({}, {"detail": "keys"}, {"words": "card"}, {"term": "card"}):
                        if extra.keys() <= known.keys():
                            reply = await peer.call(tool["name"], **given, **extra)
                            seen[f"{surface} {tool['name']} {extra}"] = json.dumps(reply)
            peer = Peer(open_surface("workbench", gate, config))
            await peer.open()
            uri = f"tablepro://connections/{SHOP_ID}/schema"
            seen[uri] = json.dumps(await peer.request("resources/read", uri=uri))
        return seen

    for table in ("orders", "paid"):
        seen = asyncio.run(scenario(table))
        assert any("customer_id" in text for text in seen.values())
        assert "card" in seen["workbench get_table_ddl {}"]
        assert [where for where, text in seen.items() if "hush-card" in text] == []
