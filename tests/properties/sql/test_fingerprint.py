"""Statements that differ in plain values only are judged alike; others keep their own words."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tidegate.model.statements import Effect
from tidegate.sql.fingerprint import fingerprint, split_at_literals
from tidegate.sql.judge import judge, judge_uncached

DIALECTS = ("sqlite", "postgres", "mysql", "duckdb", "default")
SHAPES = (
    "SELECT {n}, name FROM t WHERE id = {n} AND name = '{s}' ORDER BY 1 LIMIT {n}",
    "SELECT * FROM a JOIN b ON a.id = b.id WHERE price > {n}.5 AND note LIKE '{s}' OFFSET {n}",
    "SELECT count(*) FROM t WHERE d >= '{s}' AND d < '{s}' GROUP BY x{n}",
    "DELETE FROM t WHERE id = {n} OR name = '{s}'",
    "DELETE FROM t WHERE id = {n} OR {n} > 9",
    "SELECT tidegate_hash('{s}', {n}) FROM t WHERE a = '{s}' AND b = {n}",
    "UPDATE t SET name = '{s}', n = {n}",
    "INSERT INTO t VALUES ({n}, '{s}')",
    "SELECT * FROM '{s}' WHERE id = {n}",
    "SELECT * FROM t, '{s}'",
    "SELECT readfile('{s}'), load_extension('{s}') WHERE {n} = {n}",
    "SELECT pg_sleep({n}), query_to_xml('{s}', true, true, '')",
    "PRAGMA user_version = {n}",
    "SELECT {n} INTO OUTFILE '{s}'",
    "SELECT * FROM t WHERE a = '{s}' INTO OUTFILE '{s}'",
    "EXPLAIN SELECT * FROM t WHERE id = {n}",
    "SELECT {n}; DROP TABLE t{n}",
    'SELECT "t"."a {n}" FROM "t" WHERE "t"."id" = {n} AND "t"."b" = \'{s}\' LIMIT {n}',
    "SELECT `t`.`a{n}` FROM `t` WHERE `t`.`id` = {n} AND `t`.`b` LIKE '{s}' OR a = ${n}",
    "SELECT `{s}` FROM t WHERE a = '{s}' AND b = {n}",
    'SELECT "{s}" FROM t WHERE a = \'{s}\' AND b = "{s}"',
    "SELECT \"a\" = '{s}' || `b` || '{s}', ` = '{s}' FROM t WHERE c = '{n}'",
    "SELECT {n} = '\"{s}' FROM t; DELETE FROM t WHERE a = '\"' OR b = '{s}'",
    "SELECT a -> '{s}' ->> '{s}' FROM t WHERE a => '{s}' AND f(b => '{s}', c := '{s}')",
    "SELECT * FROM t WHERE a = E'{s}' OR a = N'{s}' OR a = x'{s}' OR a = U&'{s}' OR a=_u'{s}'",
    "SELECT * FROM t WHERE a = '{s}''{s}' OR a = '{s}'\n'{s}' OR id={n}and id=.{n} OR id={n}.",
    "SELECT * FROM t WHERE a = '{s}' ESCAPE '{s}' FETCH FIRST {n} ROWS ONLY",
    "SELECT TOP {n} a{n} FROM t{n} WHERE b = '{s}' OPTION (MAXDOP {n})",
    "SELECT substr(a, instr(a, '@{s}')) FROM t WHERE a LIKE '%@{s}' AND b = @v AND c = {n}",
    "SELECT CASE WHEN a LIKE '%_@_%.%_' THEN instr(a, '@') END FROM t WHERE b = '@{s}' OR c = {n}",
    "SELECT @'{s}', @@x{n} FROM t WHERE a = @'{s}' AND b = @`{s}` AND c = '{s}' LIMIT {n}",
    "WITH x AS (DELETE FROM t WHERE id = {n} RETURNING *) SELECT * FROM x WHERE s = '{s}'",
)
values = st.text(st.characters(codec="utf-8", exclude_categories=("Cs",)), max_size=12).map(
    lambda text: text.replace("'", "''")
)
nasty = st.sampled_from(
    ["", "; DROP TABLE t", "''", "x'' OR 1=1", "/etc/passwd", "a.csv", "--", "7"]
)


@given(
    st.sampled_from(SHAPES),
    st.integers(0, 10**20),
    st.one_of(values, nasty),
    st.sampled_from(DIALECTS),
)
def test_what_is_judged_by_its_template_is_judged_the_same_by_itself(
    shape: str, number: int, text: str, dialect: str
) -> None:
    statement = shape.format(n=number, s=text)
    judged, alone = judge(statement, dialect), judge_uncached(statement, dialect)
    assert judged == alone


@pytest.mark.parametrize(
    "text",
    [
        "SELECT 1 -- it's",
        "SELECT /* 5 */ 5",
        "SELECT $$5$$",
        "SELECT E'\\' OR 1=1'",
        "SELECT [5] FROM t",
        "SELECT 5 \u2028",
        "SELECT @a FROM t WHERE b = 5",
        "SELECT '@' FROM t WHERE b = 5 AND c = @'d'",
        "SELECT \"it's\" FROM t WHERE b = @c AND d = 'e'",
        "SELECT a FROM t WHERE b = 5 AND c = 'never ends @",
    ],
)
def test_a_text_whose_literals_are_uncertain_stays_as_it_is(text: str) -> None:
    assert fingerprint(text) == text


def test_an_at_sign_in_quotes_makes_nothing_uncertain() -> None:
    assert fingerprint("SELECT f(a, '@') FROM t WHERE b = 'c@d' AND e = 12") == (
        "SELECT f(a, '@') FROM t WHERE b = 'x' AND e = 7"
    )


def test_names_and_table_strings_are_kept() -> None:
    quoted = """SELECT "a 5", `b 5`, "it's 5", $5 FROM t WHERE c = """
    assert fingerprint(f"{quoted}'y' AND d = 12") == f"{quoted}'x' AND d = 7"
    kept = "SELECT t1.c2 FROM 'file.csv', 'b' WHERE c2 = x'41' AND d = 1e5"
    assert fingerprint(kept) == kept.replace("1e5", "1e5")
    assert fingerprint("SELECT a FROM t WHERE b = 12 AND c = 'y' AND d > 1.25") == (
        "SELECT a FROM t WHERE b = 7 AND c = 'x' AND d > 7.5"
    )


def test_a_change_is_judged_by_its_own_values() -> None:
    few, every = [judge(f"DELETE FROM t WHERE id = 1 OR {n} > 7", "sqlite") for n in (7, 8)]
    assert (few.unqualified, every.unqualified) == (False, True)


def test_a_refused_statement_is_judged_by_its_own_words() -> None:
    judgement = judge("SELECT * FROM t WHERE id = 3; DROP TABLE t", "sqlite")
    assert judgement.effect is not Effect.READ
    assert judgement == judge_uncached("SELECT * FROM t WHERE id = 3; DROP TABLE t", "sqlite")


@pytest.mark.parametrize("mark", ["?1", "?12", ":1", "$1", "$12"])
def test_the_number_of_a_placeholder_is_no_value(mark: str) -> None:
    assert fingerprint(f"SELECT {mark}, 5 FROM t WHERE id = {mark}") == (
        f"SELECT {mark}, 7 FROM t WHERE id = {mark}"
    )


@pytest.mark.parametrize(
    ("text", "pieces"),
    [
        ("SELECT 1", ("SELECT ", "1", "")),
        (
            "SELECT a FROM t WHERE b = 'x y' AND c > 25 LIMIT 10",
            ("SELECT a FROM t WHERE b = '", "x y", "' AND c > ", "25", " LIMIT ", "10", ""),
        ),
        ("SELECT a FROM t WHERE b = ''", ("SELECT a FROM t WHERE b = '", "", "'")),
        ("SELECT 'x' FROM t WHERE b > 1.5", ("SELECT 'x' FROM t WHERE b > 1.5",)),
        ("SELECT 1 -- 'x'", None),
    ],
)
def test_a_text_is_split_at_the_values_that_are_compared(
    text: str, pieces: tuple[str, ...] | None
) -> None:
    assert split_at_literals(text) == pieces
