"""A change that is tried shows its rows and leaves nothing; what might leave something is not."""

import re

import apsw
import duckdb
import psycopg
import pytest

import support.mysql_server as mysql_server
from support.engine_cases import CASES
from support.eventually import PATIENCE_S
from tidegate.engines.common.dry_run import MOST_TOUCHED
from tidegate.errors import Code, TidegateError
from tidegate.model.cancellation import NEVER
from tidegate.model.requests import Query
from tidegate.model.results import Limits
from tidegate.model.statements import Effect, Statement

REHEARSAL = Limits(max_rows=3, timeout_s=PATIENCE_S)


async def dry_run(case, engine, text, params=None):
    request = Query(Statement(text, params), limits=REHEARSAL)
    return await engine.dry_run(case.permit(request, Effect.WRITE), NEVER)


def change(case, script):
    """Change the database from outside, as another program would."""
    if case.name == "sqlite":
        connection = apsw.Connection(case.url.removeprefix("sqlite:///"))
        rows = connection.execute(script).fetchall()
        connection.close()
        return rows
    if case.name == "duckdb":
        with duckdb.connect(case.url.removeprefix("duckdb:///")) as connection:
            return connection.execute(script).fetchall()
    if case.name == "mysql":
        return mysql_server.shared().script(script, case.url.partition("?")[0].rpartition("/")[2])
    with psycopg.connect(case.url, autocommit=True) as connection:
        cursor = connection.execute(script)
        return cursor.fetchall() if cursor.description else []


@pytest.fixture(params=["duckdb", "mysql", "postgres", "sqlite"])
def supporting(request, tmp_path):
    """A case of an engine that has dry runs."""
    return CASES[request.param].prepare(tmp_path)


async def test_an_engine_without_dry_runs_says_so_and_changes_nothing(case):
    async with case.opened() as engine:
        before = await case.digest(engine)
        if engine.capabilities.dry_runs:
            shown = await dry_run(case, engine, "DELETE FROM parts")
            assert shown.affected == 20
        else:
            with pytest.raises(TidegateError) as caught:
                await dry_run(case, engine, "DELETE FROM parts")
            assert caught.value.code is Code.UNSUPPORTED
        assert await case.digest(engine) == before


UPDATES = (
    "UPDATE items SET name = 'new' WHERE id < 3",
    "UPDATE items AS i SET name = 'new' WHERE i.id < 3 -- of a few; and so on",
    "UPDATE \"items\" AS i SET name = 'new' WHERE (id = 1 OR id = 2);",
)


async def test_an_update_shows_rows_before_and_after(supporting):
    async with supporting.opened() as engine:
        before = await supporting.digest(engine)
        for update in UPDATES:
            text = update.replace('"', "`") if supporting.name == "mysql" else update
            shown = await dry_run(supporting, engine, text)
            assert (shown.affected, shown.columns, shown.reason) == (2, ("id", "name"), ""), text
            assert sorted(shown.before) == [("1", "item 1"), ("2", "item 2")], text
            assert sorted(shown.after) == [("1", "new"), ("2", "new")], text
            assert await supporting.digest(engine) == before, text


async def test_a_delete_shows_some_of_the_rows_that_would_go(supporting):
    async with supporting.opened() as engine:
        before = await supporting.digest(engine)
        shown = await dry_run(supporting, engine, "DELETE FROM parts")
        assert (shown.affected, len(shown.before), shown.after) == (20, 3, (None,) * 3)
        assert await supporting.digest(engine) == before


async def test_rows_whose_key_changes_are_left_out(supporting):
    async with supporting.opened() as engine:
        before = await supporting.digest(engine)
        shown = await dry_run(supporting, engine, "UPDATE void SET id = 99")
        assert shown.affected == 0
        shown = await dry_run(supporting, engine, "UPDATE parts SET id = id + 100 WHERE id = 1")
        assert (shown.affected, shown.before) == (1, ())
        assert "key" in shown.reason
        assert await supporting.digest(engine) == before


NOT_PLAIN = (
    ("INSERT INTO void VALUES (1, 'x') RETURNING id", None),
    ("INSERT INTO void VALUES ((SELECT 1), 'x')", None),
    ("INSERT INTO void (id) TABLE parts", None),
    ("INSERT INTO void SELECT 1, 'x' ON CONFLICT DO NOTHING", None),
    ("WITH n AS (SELECT 1 AS id) INSERT INTO void SELECT id, 'x' FROM n", None),
    ("INSERT INTO nowhere VALUES (1)", None),
    ("REPLACE INTO void VALUES (1, 'x')", None),
    ("DELETE FROM items WHERE id IN (SELECT item_id FROM parts)", None),
    ("UPDATE items SET name = 'x' WHERE id = 1 RETURNING id", None),
    ("UPDATE items SET name = 'x' FROM parts", None),
    ("WITH x AS (SELECT 1) DELETE FROM parts", None),
    ("UPDATE items SET name = :name WHERE id = 1", ("x",)),
    ("UPDATE items SET name = 'x' WHERE id = 1", ("x",)),
    ("DELETE FROM nowhere", None),
    ("DELETE FROM items WHERE name = 'a;b'", None),
    ("DELETE FROM parts WHERE id = 1 /* a;b */", None),
    ("INSERT INTO void VALUES (1, 'x') /* a;b */", None),
)


async def test_what_is_not_plain_is_not_tried(supporting):
    async with supporting.opened() as engine:
        before = await supporting.digest(engine)
        for text, params in NOT_PLAIN:
            try:
                shown = await dry_run(supporting, engine, text, params)
            except TidegateError as error:
                assert error.code is Code.SQL_FAILED, text
            else:
                assert shown.affected is None and shown.reason, text
            assert await supporting.digest(engine) == before, text


def placed(case, text):
    """The text with the placeholders of the engine."""
    if case.name in ("postgres", "duckdb"):
        return text
    return re.sub(r"\$\d", "?", text)


INSERTS = (
    ("INSERT INTO void VALUES (1, 'a')", None, [("1", "a")]),
    ("INSERT INTO void VALUES (1, 'a') /* one */ -- row", None, [("1", "a")]),
    (
        "INSERT INTO void (name, id) VALUES ('a', 1), (NULL, 2); -- two",
        None,
        [("1", "a"), ("2", None)],
    ),
    ("INSERT INTO void (id, name) VALUES ($1, $2)", (1, "a"), [("1", "a")]),
    (
        "INSERT INTO void SELECT id, name FROM items WHERE id < 3",
        None,
        [("1", "item 1"), ("2", "item 2")],
    ),
    ("INSERT INTO void (id) SELECT max(id) FROM items WHERE id < $1", (3,), [("2", None)]),
    ("INSERT INTO void SELECT id, name FROM items WHERE id < 0", None, []),
)


async def test_an_insert_shows_the_rows_that_it_would_add(supporting):
    async with supporting.opened() as engine:
        before = await supporting.digest(engine)
        for text, params, rows in INSERTS:
            shown = await dry_run(supporting, engine, placed(supporting, text), params)
            assert (shown.affected, shown.columns, shown.reason) == (
                len(rows),
                ("id", "name"),
                "",
            ), text
            assert shown.before == (None,) * len(rows), text
            assert sorted(shown.after) == rows, text
            assert await supporting.digest(engine) == before, text
            assert await supporting.ask(engine, "SELECT count(*) FROM void") == [(0,)], text


async def test_of_many_added_rows_some_are_shown(supporting):
    async with supporting.opened() as engine:
        before = await supporting.digest(engine)
        shown = await dry_run(supporting, engine, "INSERT INTO void SELECT id, 'x' FROM parts")
        assert (shown.affected, len(shown.after), shown.before) == (20, 3, (None,) * 3)
        assert await supporting.digest(engine) == before


CHANGES = (
    ("UPDATE items SET name = $1 WHERE id < $2", ("new", 3)),
    ("UPDATE items SET name = concat($1, $2) WHERE id > $3 AND id < $4", ("n", "ew", 0, 3)),
)


async def test_a_change_with_parameters_shows_its_rows(supporting):
    concat = {"postgres": "$1::text || $2::text", "mysql": "concat($1, $2)"}
    joined = concat.get(supporting.name, "$1 || $2")
    async with supporting.opened() as engine:
        before = await supporting.digest(engine)
        for text, params in CHANGES:
            update = placed(supporting, text.replace("concat($1, $2)", joined))
            shown = await dry_run(supporting, engine, update, params)
            assert sorted(shown.before) == [("1", "item 1"), ("2", "item 2")], text
            assert sorted(shown.after) == [("1", "new"), ("2", "new")], text
        shown = await dry_run(
            supporting, engine, placed(supporting, "DELETE FROM parts WHERE id = $1"), (1,)
        )
        assert (shown.affected, shown.after) == (1, (None,))
        shown = await dry_run(
            supporting, engine, placed(supporting, "DELETE FROM parts WHERE id = $1"), (1, 2)
        )
        assert shown.affected is None and "placeholder" in shown.reason
        assert await supporting.digest(engine) == before


async def test_an_insert_of_very_many_rows_is_not_tried(supporting):
    async with supporting.opened() as engine:
        before = await supporting.digest(engine)
        pairs = "INSERT INTO void (id) SELECT a.id FROM parts a, parts b, parts c, parts d"
        shown = await dry_run(supporting, engine, pairs)
        assert shown.affected is None and "more than" in shown.reason
        assert await supporting.digest(engine) == before


async def test_a_failure_is_reported_and_leaves_nothing(supporting):
    async with supporting.opened() as engine:
        before = await supporting.digest(engine)
        with pytest.raises(TidegateError) as caught:
            await dry_run(supporting, engine, "UPDATE parts SET item_id = NULL")
        assert caught.value.code is Code.SQL_FAILED
        assert await supporting.digest(engine) == before
        assert (await dry_run(supporting, engine, "DELETE FROM parts WHERE id = 1")).affected == 1


async def test_a_change_of_very_many_rows_is_not_tried(supporting):
    change(supporting, "CREATE TABLE many (id integer primary key)")
    numbers = f"SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i <= {MOST_TOUCHED}"
    rows = f"WITH RECURSIVE n(i) AS ({numbers}) SELECT i FROM n"
    if supporting.name == "mysql":
        rows = f"SELECT seq FROM seq_1_to_{MOST_TOUCHED + 1}"
    change(supporting, f"INSERT INTO many {rows}")
    async with supporting.opened() as engine:
        shown = await dry_run(supporting, engine, "DELETE FROM many")
        assert shown.affected is None and "more than" in shown.reason
        assert (
            await dry_run(supporting, engine, "DELETE FROM many WHERE id > 1")
        ).affected == MOST_TOUCHED


async def test_triggers_are_never_set_off(supporting):
    """On SQLite they are, since all that they do is rolled back, except what virtual tables do."""
    if supporting.name == "duckdb":
        change(supporting, "CREATE TRIGGER t AFTER DELETE ON parts DELETE FROM void")
    elif supporting.name == "sqlite":
        change(
            supporting,
            "CREATE VIRTUAL TABLE words USING fts5(word);"
            "CREATE TRIGGER t AFTER DELETE ON parts BEGIN INSERT INTO words VALUES ('x'); END",
        )
    elif supporting.name == "mysql":
        change(supporting, "CREATE TRIGGER t AFTER DELETE ON parts FOR EACH ROW DELETE FROM void")
    else:
        change(
            supporting,
            "CREATE FUNCTION f() RETURNS trigger LANGUAGE plpgsql AS"
            " $$ BEGIN PERFORM pg_notify('c', 'x'); RETURN OLD; END $$;"
            "CREATE TRIGGER t AFTER DELETE ON parts FOR EACH ROW EXECUTE FUNCTION f()",
        )
    async with supporting.opened() as engine:
        before = await supporting.digest(engine)
        shown = await dry_run(supporting, engine, "DELETE FROM parts WHERE id = 1")
        assert shown.affected is None and "trigger" in shown.reason
        assert await supporting.digest(engine) == before


async def test_a_word_before_the_table_is_not_taken_for_one(supporting):
    """Else another table would be looked at than the one that changes."""
    for word in ("only", "ignore", "low_priority"):
        name = f"`{word}`" if supporting.name == "mysql" else f'"{word}"'
        change(supporting, f"CREATE TABLE {name} (id integer primary key, name varchar(9))")
    async with supporting.opened() as engine:
        before = await supporting.digest(engine)
        for text in (
            "DELETE FROM ONLY parts WHERE id = 1",
            "UPDATE ONLY items SET name = 'x' WHERE id = 1",
            "UPDATE IGNORE items SET name = 'x' WHERE id = 1",
            "UPDATE LOW_PRIORITY items SET name = 'x' WHERE id = 1",
        ):
            try:
                shown = await dry_run(supporting, engine, text)
            except TidegateError as error:
                assert error.details["rule"] != "read"
            else:
                assert shown.affected is None and "plain" in shown.reason
        assert await supporting.digest(engine) == before


async def test_no_other_row_is_shown_for_one_whose_key_changes(supporting):
    change(supporting, "CREATE TABLE k (id integer primary key, name varchar(9))")
    change(supporting, "INSERT INTO k VALUES (1, 'a'), (2, 'b')")
    text = "UPDATE k SET name = name, id = id - 1 WHERE id > 0"
    if supporting.name == "mysql":
        text = "UPDATE k SET `id` = id - 1 WHERE id > 0"
    if supporting.name in ("postgres", "duckdb"):
        change(supporting, "DROP TABLE k")
        change(supporting, "CREATE TABLE k (id integer primary key, name varchar(9))")
        change(supporting, "INSERT INTO k VALUES (2, 'b'), (3, 'c')")
        if supporting.name == "postgres":
            text = "UPDATE k SET (name, ID) = (name, id - 1) WHERE id > 0"
    async with supporting.opened() as engine:
        try:
            shown = await dry_run(supporting, engine, text)
        except TidegateError as error:
            assert error.code is Code.SQL_FAILED  # it looks at uniqueness row by row
        else:
            assert (shown.affected, shown.before, shown.after) == (2, (), ())
            assert "key" in shown.reason


@pytest.mark.parametrize("engine", ["duckdb", "sqlite"])
async def test_a_column_that_is_called_rowid_tells_no_row(tmp_path, engine):
    case = CASES[engine].prepare(tmp_path)
    change(case, "CREATE TABLE r (rowid VARCHAR, name VARCHAR)")
    change(case, "INSERT INTO r VALUES ('x', 'a'), ('x', 'b')")
    async with case.opened() as engine:
        shown = await dry_run(case, engine, "UPDATE r SET name = 'z' WHERE name = 'a'")
        assert shown.affected == 1
        assert shown.after in ((), (("x", "z"),))
        shown = await dry_run(case, engine, "UPDATE r SET rowid = 'y' WHERE name = 'a'")
        assert shown.after in ((), (("y", "a"),))


async def test_rows_of_sqlite_whose_key_is_null_are_distinguished(tmp_path):
    case = CASES["sqlite"].prepare(tmp_path)
    change(
        case,
        "CREATE TABLE n (k TEXT PRIMARY KEY, name TEXT); INSERT INTO n VALUES (NULL, 'a'),"
        " (NULL, 'b'); CREATE TABLE w (k TEXT PRIMARY KEY, name TEXT) WITHOUT ROWID;"
        " INSERT INTO w VALUES ('a', 'a'), ('b', 'b')",
    )
    async with case.opened() as engine:
        for table, key in (("n", None), ("w", "a")):
            text = f"UPDATE {table} SET name = 'z' WHERE name = 'a'"
            shown = await dry_run(case, engine, text)
            assert (shown.before, shown.after) == (((key, "a"),), ((key, "z"),))


async def test_rows_of_other_tables_that_follow_in_sqlite_are_reported(tmp_path):
    case = CASES["sqlite"].prepare(tmp_path)
    change(
        case,
        "CREATE TABLE c (i INTEGER REFERENCES items (id) ON DELETE CASCADE);"
        " DELETE FROM parts; INSERT INTO c VALUES (1), (1)",
    )
    async with case.opened() as engine:
        before = await case.digest(engine)
        shown = await dry_run(case, engine, "DELETE FROM items WHERE id = 1")
        assert shown.affected == 1 and "other rows" in shown.reason
        assert await case.digest(engine) == before


TRIGGERS = {
    "the row itself": (
        "CREATE TRIGGER g AFTER UPDATE ON t BEGIN"
        " UPDATE t SET stamp = 'at ' || new.name WHERE id = new.id; END;"
        "CREATE TRIGGER h AFTER INSERT ON t BEGIN"
        " UPDATE t SET stamp = 'new ' || new.name WHERE id = new.id; END"
    ),
    "another table": (
        "CREATE TRIGGER g AFTER UPDATE ON t BEGIN INSERT INTO log VALUES (old.name); END;"
        "CREATE TRIGGER h AFTER INSERT ON t BEGIN INSERT INTO log VALUES (new.name); END;"
        "CREATE TRIGGER i BEFORE DELETE ON t BEGIN INSERT INTO log VALUES (old.name); END"
    ),
    "rows that are passed over": (
        "CREATE TRIGGER g BEFORE UPDATE ON t WHEN old.id = 1 BEGIN SELECT RAISE(IGNORE); END;"
        "CREATE TRIGGER h BEFORE INSERT ON t WHEN new.name = 'x' BEGIN SELECT RAISE(IGNORE); END;"
        "CREATE TRIGGER i BEFORE DELETE ON t WHEN old.id = 2 BEGIN SELECT RAISE(IGNORE); END"
    ),
    "rows that go": (
        "CREATE TRIGGER g AFTER UPDATE ON t BEGIN DELETE FROM t WHERE id = 1; END;"
        "CREATE TRIGGER h AFTER INSERT ON t BEGIN DELETE FROM t WHERE name = 'x'; END"
    ),
    "rows that come back": (
        "CREATE TRIGGER i AFTER DELETE ON t BEGIN INSERT INTO t VALUES (old.id, 'again', ''); END"
    ),
    "an error": "CREATE TRIGGER g AFTER UPDATE ON t BEGIN SELECT RAISE(ABORT, 'never'); END",
    "nothing": "CREATE TRIGGER g AFTER UPDATE OF stamp ON t BEGIN DELETE FROM t; END",
    "others of the table": "CREATE TRIGGER g AFTER UPDATE ON t WHEN new.id = 1 BEGIN"
    " UPDATE t SET name = 'other' WHERE id = 4; END",
    "further triggers": (
        "CREATE TRIGGER g AFTER UPDATE ON t BEGIN INSERT INTO log VALUES (1); END;"
        "CREATE TRIGGER h AFTER INSERT ON log BEGIN DELETE FROM far; END"
    ),
    "by a foreign key": (
        "CREATE TABLE child (t INTEGER REFERENCES t ON DELETE CASCADE); INSERT INTO child"
        " VALUES (1), (1); CREATE TRIGGER g AFTER DELETE ON child BEGIN INSERT INTO log VALUES"
        " (old.t); END"
    ),
}
TRIGGERED = (
    "UPDATE t SET name = 'x' WHERE id < 4",
    "UPDATE t AS a SET name = upper(a.name) WHERE a.name = 'b'",
    "DELETE FROM t WHERE id < 4",
    "INSERT INTO t (name) VALUES ('x'), ('y')",
    "INSERT INTO t SELECT id + 10, name, NULL FROM t",
)


@pytest.mark.parametrize("kind", TRIGGERS)
async def test_rows_before_and_after_triggers_of_sqlite_are_those_that_it_makes(tmp_path, kind):
    """Compared with what SQLite leaves once the change has run on a copy."""
    case = CASES["sqlite"].prepare(tmp_path)
    change(
        case,
        "CREATE TABLE t (id INTEGER PRIMARY KEY, name TEXT, stamp TEXT); CREATE TABLE log (what);"
        " INSERT INTO t VALUES (1, 'a', NULL), (2, 'b', NULL), (3, 'c', NULL), (4, 'd', NULL);"
        f" CREATE TABLE far (x); INSERT INTO far VALUES (1), (2); {TRIGGERS[kind]}",
    )
    tables = ("t", "log", "far", "child")[: 3 + (kind == "by a foreign key")]
    for text in TRIGGERED:
        copy = apsw.Connection(":memory:")
        source = apsw.Connection(case.url.removeprefix("sqlite:///"))
        with copy.backup("main", source, "main") as backup:
            backup.step()
        source.close()
        copy.execute("PRAGMA foreign_keys = on")
        was = {row[0]: row for row in copy.execute("SELECT id, name, stamp FROM t")}
        made = copy.total_changes()
        try:
            returned = copy.execute(f"{text} RETURNING id").fetchall()
        except apsw.ConstraintError:
            returned = None
        own = copy.changes()
        more = copy.total_changes() - made - own
        now = {row[0]: row for row in copy.execute("SELECT id, name, stamp FROM t")}
        async with case.opened() as engine:
            before = {name: change(case, f"SELECT * FROM {name}") for name in tables}
            if returned is None:
                with pytest.raises(TidegateError) as caught:
                    await dry_run(case, engine, text)
                assert "never" in caught.value.message
            else:
                shown = await dry_run(case, engine, text)
                keys = sorted(key for (key,) in returned)
                assert shown.affected == own == len(keys)
                pairs = [(was.get(key), now.get(key)) for key in keys]
                if not text.startswith("DELETE"):
                    pairs = [pair for pair in pairs if pair[1] is not None]
                texts = [tuple(map(_texts, pair)) for pair in pairs]
                found = list(zip(shown.before, shown.after, strict=True))
                assert len(found) == min(len(texts), len(found))
                assert all(pair in texts for pair in found)
                assert found or not texts
                assert ("other rows" in shown.reason) == (more > 0), shown.reason
                if more:
                    assert f": {more}, of " in shown.reason
            assert {name: change(case, f"SELECT * FROM {name}") for name in tables} == before


def _texts(row):
    return None if row is None else tuple(None if value is None else str(value) for value in row)


async def test_the_tables_that_triggers_of_sqlite_change_are_named(tmp_path):
    case = CASES["sqlite"].prepare(tmp_path)
    change(
        case,
        "CREATE TABLE t (id INTEGER PRIMARY KEY, name TEXT); INSERT INTO t VALUES (1, 'a');"
        " CREATE TABLE log (what); CREATE TABLE far (x); INSERT INTO far VALUES (1), (2);"
        + TRIGGERS["further triggers"],
    )
    async with case.opened() as engine:
        shown = await dry_run(case, engine, "UPDATE t SET name = 'b'")
    assert shown.reason == (
        "triggers or foreign keys would change other rows as well: 3, of far, log."
    )
    assert (shown.before, shown.after) == ((("1", "a"),), (("1", "b"),))


async def test_parameters_that_sqlite_counts_as_it_meets_them_are_not_tried(tmp_path):
    case = CASES["sqlite"].prepare(tmp_path)
    async with case.opened() as engine:
        text = "UPDATE items SET name = $2 WHERE id = $1"
        shown = await dry_run(case, engine, text, ("new", 1))
        assert shown.affected is None and "placeholder" in shown.reason


@pytest.fixture
def postgres(tmp_path):
    return CASES["postgres"].prepare(tmp_path)


HAZARDS = {
    "a serial": ("CREATE TABLE s (id serial, x int)", "INSERT INTO s (x) VALUES (1)"),
    "a serial left out by length": (
        "CREATE TABLE s (x int, id int DEFAULT nextval('counted'))",
        "INSERT INTO s VALUES (1)",
    ),
    "a serial by the word": (
        "CREATE TABLE s (id int DEFAULT nextval('counted'), x int)",
        "INSERT INTO s (id, x) VALUES (DEFAULT, 1)",
    ),
    "an identity": (
        "CREATE TABLE s (id int GENERATED ALWAYS AS IDENTITY, x int)",
        "INSERT INTO s (x) VALUES (1)",
    ),
    "a function in a default": (
        "CREATE TABLE s (t text DEFAULT logged('x'), x int)",
        "INSERT INTO s (x) VALUES (1)",
    ),
    "a sequence in values": ("", "INSERT INTO void VALUES (nextval('counted'), 'x')"),
    "a sequence in a query": ("", "INSERT INTO void SELECT nextval('counted'), 'x'"),
    "a sequence behind a view": (
        "CREATE VIEW seen AS SELECT nextval('counted') AS id",
        "INSERT INTO void SELECT id, 'x' FROM seen",
    ),
    "a rule on inserts": (
        "CREATE RULE r AS ON INSERT TO void DO ALSO SELECT nextval('counted')",
        "INSERT INTO void VALUES (1, 'x')",
    ),
    "a sequence": ("", "UPDATE items SET id = nextval('counted') WHERE id = 1"),
    "a default": (
        "ALTER TABLE items ALTER id SET DEFAULT nextval('counted')",
        "UPDATE items SET id = DEFAULT WHERE id = 1",
    ),
    "a function": ("", "UPDATE items SET name = logged(name) WHERE id = 1"),
    "a check": (
        "ALTER TABLE items ADD CHECK (logged(name) IS NOT NULL) NOT VALID",
        "UPDATE items SET name = 'x' WHERE id = 1",
    ),
    "an index": (
        "CREATE INDEX ON items (fixed(name))",
        "UPDATE items SET name = 'x' WHERE id = 1",
    ),
    "a rule": (
        "CREATE RULE r AS ON UPDATE TO items DO ALSO SELECT nextval('counted')",
        "UPDATE items SET name = 'x' WHERE id = 1",
    ),
    "a policy": (
        "ALTER TABLE items ENABLE ROW LEVEL SECURITY, FORCE ROW LEVEL SECURITY",
        "UPDATE items SET name = 'x' WHERE id = 1",
    ),
    "a domain in an array": (
        "CREATE DOMAIN d AS text CHECK (logged(VALUE) <> ''); CREATE TABLE s (id int, x d[])",
        "INSERT INTO s VALUES (1, '{a}')",
    ),
    "a domain in a row": (
        "CREATE DOMAIN d AS text CHECK (logged(VALUE) <> ''); CREATE TYPE r AS (a d);"
        " CREATE TABLE s (id int, x r)",
        "INSERT INTO s VALUES (1, '(a)')",
    ),
    "a domain in a range": (
        "CREATE DOMAIN d AS int CHECK (logged(VALUE::text) <> '');"
        " CREATE TYPE r AS RANGE (subtype = d); CREATE TABLE s (id int, x r)",
        "INSERT INTO s VALUES (1, '[1,2)')",
    ),
    "an operator class": (
        "CREATE FUNCTION compared(text, text) RETURNS int LANGUAGE sql IMMUTABLE AS"
        " $$ SELECT bttextcmp($1, $2) + 0 * nextval('counted')::int $$;"
        "CREATE OPERATOR CLASS o FOR TYPE text USING btree AS OPERATOR 1 <, OPERATOR 2 <=,"
        " OPERATOR 3 =, OPERATOR 4 >=, OPERATOR 5 >, FUNCTION 1 compared(text, text);"
        "CREATE INDEX ON void (name o); INSERT INTO void VALUES (5, 'a');"
        "SELECT setval('counted', 1, false)",
        "INSERT INTO void VALUES (6, 'b')",
    ),
    "a cascade": (
        "ALTER TABLE parts DROP CONSTRAINT parts_item_id_fkey,"
        " ADD FOREIGN KEY (item_id) REFERENCES items ON DELETE CASCADE",
        "DELETE FROM items WHERE id = 1",
    ),
    "a word that is a table, too": (
        'CREATE TABLE "only" (id int PRIMARY KEY, item_id int);'
        " CREATE FUNCTION f() RETURNS trigger LANGUAGE plpgsql AS"
        " $$ BEGIN PERFORM nextval('counted'); RETURN OLD; END $$;"
        " CREATE TRIGGER t BEFORE DELETE ON parts FOR EACH ROW EXECUTE FUNCTION f()",
        "DELETE FROM ONLY parts WHERE id = 1",
    ),
    "a row's function": (
        "CREATE FUNCTION said(items) RETURNS text LANGUAGE sql AS"
        " $$ SELECT nextval('counted')::text $$",
        "UPDATE items SET name = items.said WHERE id = 1",
    ),
    "a view": ("CREATE VIEW seen AS SELECT * FROM items", "DELETE FROM seen WHERE id = 1"),
    "a child": ("CREATE TABLE child () INHERITS (items)", "DELETE FROM items WHERE id = 1"),
}
SETTING = """
CREATE SEQUENCE counted;
CREATE FUNCTION logged(text) RETURNS text LANGUAGE sql AS $$ SELECT nextval('counted')::text $$;
CREATE FUNCTION fixed(text) RETURNS text IMMUTABLE LANGUAGE sql AS $$ SELECT $1 $$;
"""


@pytest.mark.parametrize("hazard", sorted(HAZARDS))
async def test_what_a_rollback_does_not_undo_is_never_reached(postgres, hazard):
    script, text = HAZARDS[hazard]
    change(postgres, SETTING + script)
    async with postgres.opened() as engine:
        before = await postgres.digest(engine)
        try:
            shown = await dry_run(postgres, engine, text)
        except TidegateError as error:
            assert error.code in (Code.SQL_FUNCTION, Code.POLICY_DENIED, Code.POLICY_READ_ONLY)
        else:
            assert shown.affected is None and shown.reason
        assert await postgres.digest(engine) == before
    assert change(postgres, "SELECT is_called FROM counted") == [(False,)]


async def test_a_serial_that_is_given_a_value_takes_no_number(postgres):
    change(postgres, "CREATE TABLE s (id serial, x uuid DEFAULT gen_random_uuid())")
    async with postgres.opened() as engine:
        shown = await dry_run(postgres, engine, "INSERT INTO s (id) VALUES (7)")
        assert (shown.affected, shown.after[0][0]) == (1, "7")
    assert change(postgres, "SELECT is_called FROM s_id_seq") == [(False,)]


async def test_no_version_of_a_row_changes(postgres):
    versions = "SELECT id, ctid::text, xmin::text FROM items ORDER BY id"
    before = change(postgres, versions)
    async with postgres.opened() as engine:
        shown = await dry_run(postgres, engine, "UPDATE items SET name = upper(name)")
        assert shown.affected == 10
    assert change(postgres, versions) == before


async def test_it_does_not_wait_long_for_who_holds_a_row(postgres):
    with psycopg.connect(postgres.url) as other:
        other.execute("UPDATE items SET name = 'held' WHERE id = 1")
        async with postgres.opened() as engine:
            with pytest.raises(TidegateError):
                await dry_run(postgres, engine, "DELETE FROM items WHERE id = 1")
            assert (await dry_run(postgres, engine, "DELETE FROM parts WHERE id = 1")).affected == 1
        other.rollback()


MYSQL_HAZARDS = {
    "numbers of a table": (
        "CREATE TABLE s (id INT AUTO_INCREMENT PRIMARY KEY, x INT)",
        "INSERT INTO s (x) VALUES (1)",
    ),
    "a sequence": ("CREATE SEQUENCE s", "INSERT INTO void VALUES (NEXT VALUE FOR s, 'x')"),
    "a sequence in a default": (
        "CREATE SEQUENCE s; CREATE TABLE t (id INT DEFAULT NEXTVAL(s), x INT)",
        "INSERT INTO t (x) VALUES (1)",
    ),
    "a stored function in a query": (
        "CREATE FUNCTION logged(x TEXT) RETURNS TEXT MODIFIES SQL DATA RETURN x",
        "INSERT INTO void SELECT id, logged(name) FROM items",
    ),
    "a stored function behind a view": (
        "CREATE FUNCTION logged(x TEXT) RETURNS TEXT MODIFIES SQL DATA RETURN x;"
        " CREATE VIEW seen AS SELECT id, logged(name) AS name FROM items",
        "INSERT INTO void SELECT id, name FROM seen",
    ),
    "a table without transactions": (
        "ALTER TABLE void ENGINE = MyISAM; INSERT INTO void VALUES (1, 'a')",
        "DELETE FROM void WHERE id = 1",
    ),
    "a stored function": (
        "CREATE FUNCTION logged(x TEXT) RETURNS TEXT MODIFIES SQL DATA RETURN x",
        "UPDATE items SET name = logged(name) WHERE id = 1",
    ),
    "a stored function of a known name": (
        "CREATE FUNCTION `lower`(x TEXT) RETURNS TEXT MODIFIES SQL DATA RETURN x",
        "UPDATE items SET name = {database}.lower(name) WHERE id = 1",
    ),
    "a number of its own": (
        "ALTER TABLE items MODIFY id INT AUTO_INCREMENT",
        "UPDATE items SET id = 900 WHERE id = 1",
    ),
    "a cascade": (
        "CREATE TABLE c (i INT, FOREIGN KEY (i) REFERENCES items (id) ON DELETE CASCADE)",
        "DELETE FROM items WHERE id = 1",
    ),
    "a view": ("CREATE VIEW seen AS SELECT * FROM items", "DELETE FROM seen WHERE id = 1"),
}


@pytest.mark.needs("mysql")
@pytest.mark.parametrize("hazard", sorted(MYSQL_HAZARDS))
async def test_what_innodb_does_not_undo_is_never_reached(tmp_path, hazard):
    case = CASES["mysql"].prepare(tmp_path)
    script, text = MYSQL_HAZARDS[hazard]
    change(case, script)
    database = case.url.partition("?")[0].rpartition("/")[2]
    async with case.opened() as engine:
        before = await case.digest(engine)
        try:
            shown = await dry_run(case, engine, text.format(database=database))
        except TidegateError as error:
            assert error.code in (Code.SQL_FUNCTION, Code.POLICY_DENIED)
        else:
            assert shown.affected is None and shown.reason
            assert "TRIGGER" not in shown.reason
        assert await case.digest(engine) == before
    # A stored function of a known name would be in the way of other tests on this server.
    mysql_server.shared().drop_database(database)


DUCKDB_HAZARDS = {
    "a default": (
        "CREATE TABLE s (id INT DEFAULT nextval('n'), x INT)",
        "INSERT INTO s (x) VALUES (1)",
    ),
    "values": ("", "INSERT INTO void VALUES (nextval('n'), 'x')"),
    "an update": ("", "UPDATE items SET id = nextval('n') WHERE id = 1"),
    "a query": ("", "INSERT INTO void SELECT nextval('n'), 'x'"),
    "a view": (
        "CREATE VIEW seen AS SELECT nextval('n') AS id",
        "INSERT INTO void SELECT id, 'x' FROM seen",
    ),
    "a macro": (
        "CREATE MACRO logged(x) AS nextval('n') + x",
        "UPDATE items SET id = logged(1) WHERE id = 1",
    ),
    "a macro of a known name": (
        "CREATE MACRO upper(x) AS x || nextval('n')",
        "UPDATE items SET name = upper(name) WHERE id = 1",
    ),
    "a view's rows": ("CREATE VIEW seen AS SELECT * FROM items", "DELETE FROM seen WHERE id = 1"),
}


@pytest.mark.needs("duckdb")
@pytest.mark.parametrize("hazard", sorted(DUCKDB_HAZARDS))
async def test_a_number_of_a_duckdb_sequence_is_never_taken(tmp_path, hazard):
    case = CASES["duckdb"].prepare(tmp_path)
    script, text = DUCKDB_HAZARDS[hazard]
    change(case, f"CREATE SEQUENCE n; {script}")
    async with case.opened() as engine:
        before = await case.digest(engine)
        try:
            shown = await dry_run(case, engine, text)
        except TidegateError as error:
            assert error.code in (Code.SQL_FUNCTION, Code.POLICY_DENIED)
        else:
            assert shown.affected is None and shown.reason
        assert await case.digest(engine) == before
    assert change(case, "SELECT nextval('n')") == [(1,)]
