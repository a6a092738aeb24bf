"""What a person may approve is a closed list: code is read as its database will read it."""

from __future__ import annotations

import pytest

from tidegate.model.statements import Effect
from tidegate.sql.administration import not_in_code
from tidegate.sql.dialects import find
from tidegate.sql.judge import judge

HIDDEN = "EXECUTE ''DROP TABLE t''"
ROUTINE = "CREATE FUNCTION f() RETURNS void LANGUAGE plpgsql AS "
BODIES = {
    "postgres": "CREATE FUNCTION f() RETURNS int LANGUAGE plpgsql AS $$BEGIN {} t; END$$",
    "mysql": "CREATE PROCEDURE f() BEGIN {} t; END",
    "sqlite": "CREATE TRIGGER g AFTER INSERT ON t BEGIN {} t; END",
}
RUNS_ROWS = frozenset({"query", "change", "describe", "explain", "show", "session"})


def is_offered(text: str, dialect: str = "postgres") -> bool:
    return judge(text, dialect).administration is not None


@pytest.mark.parametrize(
    "body",
    [
        f"E'-- x\\nBEGIN {HIDDEN}; END'",
        f"E'BEGIN NULL; /* \\x2a/ {HIDDEN}; /\\x2a */ END'",
        f"E'BEGIN PERFORM 1 AS \"a\\x22; {HIDDEN}; PERFORM 1 AS \\x22b\"; END'",
        f"E'BEGIN PERFORM \\044\\044; {HIDDEN}; PERFORM \\044\\044; END'",
        f"'BEGIN '\n'{HIDDEN}; END'",
        f"'BEGIN ' '{HIDDEN}; END'",
        f"E'BEGIN '\n'{HIDDEN}; END'",
        "U&'BEGIN \\0045XECUTE ''x''; END'",
    ],
)
def test_code_that_is_spelled_so_that_it_reads_otherwise_is_refused(body: str) -> None:
    assert not is_offered(ROUTINE + body)


@pytest.mark.parametrize(
    "body",
    [
        "$$BEGIN UPDATE t SET a = '\\d' WHERE b ~ '\\w+'; END$$",
        "'BEGIN UPDATE t SET a = ''x''; END'",
        "E'BEGIN UPDATE t SET a = ''x''; END'",
        "$f$DECLARE n int := 0; BEGIN FOR i IN 1..3 LOOP n := n + i; END LOOP;"
        " IF n > 3 THEN RAISE NOTICE 'x %', n; END IF;"
        " EXCEPTION WHEN OTHERS THEN NULL; END$f$",
    ],
)
def test_plain_code_is_offered(body: str) -> None:
    assert is_offered(ROUTINE + body)


@pytest.mark.parametrize(
    ("dialect", "word"),
    [
        (dialect, word)
        for dialect in BODIES
        for word, kind in sorted(find(dialect).roots.items())
        if kind not in RUNS_ROWS and word not in ("CHECK", "COMMENT", "SECURITY")
    ],
)
def test_code_holds_no_statement_but_queries_changes_and_those_of_the_session(
    dialect: str, word: str
) -> None:
    assert word in not_in_code(find(dialect))
    assert not is_offered(BODIES[dialect].format(word), dialect)


@pytest.mark.needs("mysql")
@pytest.mark.parametrize(
    "text",
    [
        "CREATE PROCEDURE f() BEGIN DECLARE CONTINUE HANDLER FOR NOT FOUND SET @x = 1;"
        " START TRANSACTION; UPDATE t USE INDEX (i) SET a = 1 WHERE b = 2; COMMIT; END",
        "CREATE PROCEDURE f() COMMENT 'x' SQL SECURITY INVOKER SELECT a FROM t ORDER BY a DESC",
    ],
)
def test_words_that_ordinary_code_has_as_well_are_no_statements(text: str) -> None:
    assert is_offered(text, "mysql")


@pytest.mark.parametrize(
    "text",
    [
        "COPY BINARY pg_authid TO STDOUT",
        "COPY BINARY t TO STDOUT",
        'COPY t TO STDOUT (FORMAT "binary")',
        "CREATE OR REPLACE FUNCTION pg_catalog.lower(text) RETURNS text LANGUAGE sql AS 'SELECT 1'",
        'CREATE FUNCTION "pg_catalog".f() RETURNS int LANGUAGE sql AS $$SELECT 1$$',
        "CREATE FUNCTION information_schema.f() RETURNS int LANGUAGE sql AS $$SELECT 1$$",
        "DROP FUNCTION pg_catalog.lower(text)",
        'CREATE FUNCTION f() RETURNS int LANGUAGE sql SET "role" = x AS $$SELECT 1$$',
        'CREATE FUNCTION f() RETURNS int LANGUAGE plpgsql AS $$BEGIN SET "role" TO x; END$$',
        "CREATE FUNCTION f() RETURNS int LANGUAGE plpgsql AS"
        " $$BEGIN UPDATE pg_settings SET setting = 'x' WHERE name = 'role'; END$$",
    ],
)
def test_what_is_named_otherwise_than_it_is_meant_is_refused(text: str) -> None:
    assert not is_offered(text)


def test_a_copy_is_about_the_table_that_the_database_reads() -> None:
    assert judge("COPY s.t (a, b) TO STDOUT", "postgres").tables == ("s.t",)


def test_a_procedure_does_not_change_default_roles() -> None:
    assert not is_offered("CREATE PROCEDURE p() BEGIN SET DEFAULT ROLE x TO y; END", "mysql")


@pytest.mark.parametrize(
    ("dialect", "text"),
    [
        ("postgres", "INSERT INTO pg_auth_members VALUES (1, 2)"),
        ("postgres", "INSERT INTO pg_catalog.pg_auth_members (roleid) SELECT 1"),
        ("postgres", "UPDATE ONLY pg_proc AS p SET prosrc = 'x' WHERE oid = 1"),
        ("postgres", "DELETE FROM pg_toast.pg_toast_1 WHERE chunk_id = 1"),
        ("postgres", "UPDATE information_schema.sql_parts SET comments = 'x' WHERE true"),
        ("postgres", "WITH a AS (UPDATE pg_class SET relname = 'x' RETURNING 1) SELECT * FROM a"),
        ("mysql", "INSERT INTO mysql.help_topic VALUES (1)"),
        ("mysql", "DELETE FROM mysql.time_zone_name WHERE Name = 'x'"),
        ("mysql", "REPLACE INTO `mysql`.`global_priv` VALUES (1)"),
        ("duckdb", "UPDATE pg_catalog.pg_class SET relname = 'x' WHERE false"),
    ],
)
def test_a_change_of_the_servers_own_tables_is_administration(dialect: str, text: str) -> None:
    judgement = judge(text, dialect)
    assert judgement.effect >= Effect.ADMIN
    assert judgement.administration is None


@pytest.mark.parametrize(
    "text",
    [
        "INSERT INTO t SELECT relname FROM pg_class",
        "UPDATE t SET a = (SELECT count(*) FROM pg_catalog.pg_class) WHERE b = 1",
        "DELETE FROM t USING pg_class AS c WHERE c.oid = t.a",
        "UPDATE public.pg_orders SET a = 1 WHERE b = 2",
    ],
)
def test_a_change_may_read_the_servers_own_tables(text: str) -> None:
    assert judge(text, "postgres").effect is Effect.WRITE


@pytest.mark.needs("mysql")
@pytest.mark.parametrize("kind", ["FUNCTION f()", "PROCEDURE f()", "TRIGGER f ON t"])
def test_code_is_dropped_in_a_transaction_where_the_database_has_such(kind: str) -> None:
    found = judge(f"DROP {kind}", "postgres").administration
    assert found is not None and found.drops and found.in_transaction
    found = judge(f"DROP {kind.split()[0]} f", "mysql").administration
    assert found is not None and found.drops and not found.in_transaction


@pytest.mark.parametrize("name", ["f", "s.f"])
def test_a_name_may_be_the_last_of_a_statement_and_a_dot_may_not(name: str) -> None:
    assert is_offered(f"CALL {name}", "postgres")
    assert is_offered(f"CREATE TRIGGER g AFTER INSERT ON t EXECUTE FUNCTION {name}", "postgres")
    cut = judge(f"CALL {name}.", "postgres")
    assert cut.administration is None
    assert "more than a procedure" in cut.reason


@pytest.mark.parametrize("code", [".upper(1) pg_catalog", "SELECT 1; .upper(1) pg_catalog"])
def test_a_call_behind_a_dot_alone_is_of_no_listed_schema(code: str) -> None:
    made = "CREATE FUNCTION f() RETURNS int LANGUAGE sql AS"
    assert is_offered(f"{made} 'SELECT pg_catalog.upper(1)'", "postgres")
    assert not is_offered(f"{made} '{code}'", "postgres")


def test_each_table_of_a_list_is_named() -> None:
    assert judge("VACUUM t, s.u, v (a, b)", "postgres").tables == ("t", "s.u", "v")


@pytest.mark.needs("mysql")
def test_a_right_on_a_name_that_spells_a_table_of_the_server_is_refused() -> None:
    assert is_offered("GRANT SELECT ON user TO x", "mysql")
    assert not is_offered("GRANT SELECT ON `mysql.user` TO x", "mysql")


@pytest.mark.needs("mysql")
@pytest.mark.parametrize("base", ["mysql", "sys", "performance_schema", "information_schema"])
def test_a_right_on_databases_that_a_pattern_names_leaves_out_the_server_s_own(base: str) -> None:
    for pattern in (base, base.upper(), f"{base}%", f"_{base[1:]}", f"%{base[2:]}"):
        assert not is_offered(f"GRANT SELECT ON `{pattern}`.* TO x", "mysql"), pattern
    assert is_offered(f"GRANT SELECT ON `{base}\\_copy`.* TO x", "mysql")


def test_a_name_behind_a_dot_is_no_keyword_of_the_statement() -> None:
    found = judge("ALTER TABLE s.drop ADD COLUMN a int", "postgres")
    assert (found.effect, found.rule) == (Effect.WRITE, "alter")


@pytest.mark.parametrize(
    ("dialect", "text"),
    [
        ("postgres", "GRANT boss TO ann"),
        ("postgres", "REVOKE boss FROM ann"),
        ("mysql", "REVOKE 'boss' FROM 'ann'"),
        ("mysql", "RENAME USER 'a' TO 'b'"),
        (
            "mysql",
            "CREATE TRIGGER g AFTER INSERT ON t FOR EACH ROW INSERT INTO d.log (a) VALUES (1)",
        ),
        (
            "sqlite",
            "CREATE TRIGGER g AFTER INSERT ON t BEGIN INSERT INTO main.log (a) VALUES (1); END",
        ),
    ],
)
def test_what_a_person_may_approve_is_offered(dialect: str, text: str) -> None:
    assert is_offered(text, dialect)


def test_a_backup_is_never_offered() -> None:
    assert judge("BACKUP STAGE START", "mysql").effect is Effect.ADMIN
    assert not is_offered("BACKUP STAGE START", "mysql")


@pytest.mark.parametrize(
    ("code", "may_run"),
    [
        ("DO 'BEGIN DELETE FROM t; END'", False),
        ("DO $a$ BEGIN DELETE FROM t; END $a$", False),
        ("INSERT INTO t VALUES (1) ON CONFLICT DO NOTHING", True),
        ("INSERT INTO t VALUES (1) ON CONFLICT (a) DO UPDATE SET b = 'x'", True),
    ],
)
def test_a_block_of_code_within_code_is_refused(code: str, may_run: bool) -> None:
    text = f"CREATE FUNCTION f() RETURNS int LANGUAGE plpgsql AS $$BEGIN {code}; END$$"
    assert is_offered(text) is may_run


@pytest.mark.parametrize(
    ("dialect", "text", "tables"),
    [
        ("sqlite", "VACUUM", ()),
        ("sqlite", "VACUUM main", ()),
        ("sqlite", "VACUUM temp", None),
        ("sqlite", "VACUUM x main", None),
        ("sqlite", "VACUUM INTO 'x'", None),
        ("sqlite", "VACUUM main INTO 'x'", None),
        ("postgres", "VACUUM", ()),
        ("postgres", "VACUUM t", ("t",)),
        ("postgres", "VACUUM FULL s.t, u", ("s.t", "u")),
        ("postgres", "VACUUM (ANALYZE, PARALLEL 2) t (a)", ("t",)),
    ],
)
def test_a_vacuum_is_of_tables_of_the_source_s_own_database(
    dialect: str, text: str, tables: tuple[str, ...] | None
) -> None:
    judgement = judge(text, dialect)
    assert is_offered(text, dialect) is (tables is not None)
    assert judgement.effect is Effect.ADMIN
    assert judgement.tables == (tables or ())


@pytest.mark.parametrize(
    ("behind", "may_be_made"),
    [
        ("EXECUTE FUNCTION f()", True),
        ("EXECUTE PROCEDURE s.f('a', 1)", True),
        ("WHEN (new.a > 1) EXECUTE FUNCTION f()", True),
        ("WHEN (unlisted(1)) EXECUTE FUNCTION f()", False),
        ("EXECUTE FUNCTION f(unlisted(1))", False),
        ("EXECUTE FUNCTION f() COPY", False),
        ("EXECUTE FUNCTION f(GRANT)", False),
        ("EXECUTE FUNCTION pg_catalog.f()", False),
    ],
)
def test_a_trigger_is_judged_before_and_behind_the_function_that_it_calls(
    behind: str, may_be_made: bool
) -> None:
    text = f"CREATE TRIGGER g AFTER INSERT ON s.t FOR EACH ROW {behind}"
    assert is_offered(text) is may_be_made
    if may_be_made:
        assert judge(text, "postgres").tables == ("s.t",)
