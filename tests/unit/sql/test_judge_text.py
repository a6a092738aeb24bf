"""What the raw text tells: what cannot be read is refused with a code, and what is one statement
is seen as each database sees it."""

from __future__ import annotations

import pytest

from tidegate.errors import Code
from tidegate.model.statements import Effect
from tidegate.sql.judge import judge


@pytest.mark.parametrize("text", ["", "  \n\t", ";", ";;", "-- only a comment", "/* only one */ ;"])
def test_a_text_without_a_statement_is_empty(text: str) -> None:
    assert judge(text, "sqlite").code == Code.SQL_EMPTY.value


@pytest.mark.parametrize(
    ("text", "rule"),
    [
        ("SELECT 1\x00", "text.nul"),
        ("SELECT '\ud800'", "text.surrogate"),
        ("SELECT 1 \u202e", "text.hidden_character"),
        ("SELECT 'a\u2066b'", "text.hidden_character"),
        ("SEL\u200bECT 1", "text.hidden_character"),
        ("SELECT\u00a01", "text.hidden_character"),
        ('SELECT "a\u200bb"', "text.hidden_character"),
        ("SELECT 'open", "text.unterminated"),
        ('SELECT "open', "text.unterminated"),
        ("SELECT /* open", "text.unterminated"),
        ("SELECT (1", "text.brackets"),
        ("SELECT 1)", "text.brackets"),
        ('SELECT ""', "text.empty_name"),
        ("SELECT 1 -- x\r, 2", "text.line_end"),
        ("SELECT $a(')", "text.character"),
    ],
)
def test_what_cannot_be_read_is_refused_with_its_rule(text: str, rule: str) -> None:
    judgement = judge(text, "sqlite")
    assert judgement.effect is Effect.UNKNOWN
    assert (judgement.code, judgement.rule) == (Code.SQL_UNREADABLE.value, rule)


@pytest.mark.parametrize("dialect", ["h2", "hsqldb", "derby", "oracle", "unheard of"])
@pytest.mark.parametrize(
    "text",
    [
        "SELECT 1 //* \n , f(2) -- */ 3",
        "SELECT 1 // '\n , f(2) -- '",
        "SELECT 1 //x",
        "SELECT 6//2",
    ],
)
def test_what_some_databases_read_as_a_comment_is_refused(text: str, dialect: str) -> None:
    judgement = judge(text, dialect)
    assert (judgement.effect, judgement.rule) == (Effect.UNKNOWN, "text.slash_comment")


def test_two_slashes_in_a_string_or_a_comment_are_no_comment() -> None:
    for text in ("SELECT 'a//b' /* c//d */ -- e//f", 'SELECT "a//b" FROM t', "SELECT 6 / 2"):
        assert judge(text, "h2").effect is Effect.READ


@pytest.mark.parametrize("start", ["\ufeff", "\u00a0", "\u200b", " \n\f"])
def test_blank_before_the_first_word_does_not_hide_it(start: str) -> None:
    assert judge(f"{start}SELECT 1", "sqlite").effect is Effect.READ
    assert judge(f"{start}DELETE FROM t", "sqlite").effect is Effect.WRITE


def test_joiners_and_marks_belong_in_strings() -> None:
    assert judge("SELECT 'می\u200cخواهم' FROM t", "sqlite").effect is Effect.READ


@pytest.mark.parametrize(
    "text",
    ["SELECT 1;", "SELECT 1; -- c", "SELECT 1;; ; /* c */", ";SELECT 1", "SELECT ';' ;"],
)
def test_semicolons_at_the_ends_make_no_second_statement(text: str) -> None:
    assert judge(text, "sqlite").effect is Effect.READ


@pytest.mark.parametrize(
    ("dialect", "text"),
    [
        ("postgres", "SELECT 'C:\\'  AS p; DROP TABLE users"),
        ("sqlite", "SELECT 'C:\\'  AS p; DROP TABLE users"),
        ("duckdb", "SELECT 'C:\\'  AS p; DROP TABLE users"),
        ("mysql", "SELECT 1 /* /* */ ; DROP TABLE t -- '"),
        ("sqlite", "SELECT 1 /* /* */; DROP TABLE t --*/"),
        ("sqlite", "SELECT 1 /*/*/; DROP TABLE t --*/"),
        ("sqlite", "SELECT [it's] FROM t; DROP TABLE t"),
        ("sqlite", "SELECT `it's` FROM t; DROP TABLE t"),
        ("postgres", "SELECT $$it's$$; DROP TABLE t"),
        ("postgres", "SELECT $ü$ it's $ü$; DROP TABLE t"),
        ("postgres", "SELECT E'\\''; DROP TABLE t"),
        ("postgres", "SELECT 1 AS a$x$; DROP TABLE t; --$x$"),
        ("mysql", "SELECT 1--1; DROP TABLE t"),
        ("mysql", "SELECT 1 # it's\n; DROP TABLE t"),
        ("mysql", 'SELECT "it\'s"; DROP TABLE t'),
    ],
)
def test_a_second_statement_is_found_where_the_database_finds_it(dialect: str, text: str) -> None:
    assert judge(text, dialect).code == Code.SQL_MULTIPLE.value


@pytest.mark.parametrize(
    ("dialect", "text"),
    [
        ("mysql", "SELECT 'it\\'s; DROP TABLE t'"),
        ("postgres", "SELECT E'it\\'s; DROP TABLE t'"),
        ("postgres", "SELECT $$; DROP TABLE t$$"),
        ("postgres", "SELECT 1 /* /* nested */ ; DROP TABLE t */"),
        ("duckdb", "SELECT $a$; DROP TABLE t$a$"),
        ("sqlite", "SELECT [;] FROM (SELECT 1 AS [;])"),
        ("sqlite", 'SELECT 1 AS "a;b"'),
        ("mysql", "SELECT 1 -- ; DROP TABLE t"),
        ("mysql", "SELECT `;` FROM (SELECT 1 AS `;`) x"),
    ],
)
def test_semicolons_inside_quotes_and_comments_end_nothing(dialect: str, text: str) -> None:
    assert judge(text, dialect).effect is Effect.READ


def test_a_trigger_with_its_body_is_one_statement() -> None:
    trigger = "CREATE TRIGGER x AFTER INSERT ON t BEGIN DELETE FROM u; SELECT 1; END"
    assert judge(trigger, "sqlite").effect is Effect.ADMIN
    assert judge(f"{trigger};", "sqlite").effect is Effect.ADMIN
    assert judge(f"{trigger}; DROP TABLE t", "sqlite").code == Code.SQL_MULTIPLE.value


@pytest.mark.parametrize(
    ("dialect", "text", "rule"),
    [
        ("mysql", "SELECT 1 /*!50000 INTO OUTFILE 'x' */", "text.executable_comment"),
        ("mysql", "/*M! DROP TABLE t */", "text.executable_comment"),
        ("mysql", "SELECT /*+ SET_VAR(sql_mode='') */ 1", "text.executable_comment"),
        ("postgres", 'SELECT U&"\\0041"', "text.unicode_escape"),
        ("postgres", 'SELECT U&"pg\\005fread_file"(1)', "text.unicode_escape"),
        ("postgres", "SELECT E'a'\n'b'", "text.continued_string"),
        ("oracle", "SELECT 1 /* /* */", "text.nested_comment"),
        ("oracle", "SELECT '\\' , '", "text.backslash"),
        ("postgres", "SELECT 1 <~~> 2", "operator.unlisted"),
        ("postgres", "SELECT 1 OPERATOR(public.+) 2", "function.operator"),
    ],
)
def test_what_databases_read_differently_is_refused(dialect: str, text: str, rule: str) -> None:
    judgement = judge(text, dialect)
    assert judgement.effect is Effect.UNKNOWN
    assert judgement.rule == rule


@pytest.mark.needs("duckdb")
def test_an_empty_string_may_end_a_statement_with_parameters() -> None:
    for dialect in ("postgres", "duckdb", "sqlite"):
        text = "SELECT * FROM t WHERE a = $1 AND b <> ''"
        assert judge(text, dialect).effect is Effect.READ


@pytest.mark.parametrize(
    "hint", ["SET_VAR(x=1)", "set_var(x=1)", "BKA(t) Set_Var(x=1)", "Resource(x)"]
)
def test_a_hint_that_sets_something_is_refused_in_any_spelling(hint: str) -> None:
    assert judge(f"SELECT /*+ {hint} */ 1", "mysqlx").effect is Effect.UNKNOWN
    assert judge("SELECT /*+ bka(t) */ 1", "mysqlx").effect is Effect.READ
