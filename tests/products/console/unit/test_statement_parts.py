"""A text is parted into its statements, and its characters are counted as JavaScript does."""

import pytest

from tidegate.products.console.statement_parts import Utf16, statement_parts


def parts(text: str, dialect: str = "sqlite") -> list[str]:
    return [text[part.start : part.end] for part in statement_parts(text, dialect)[0]]


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("", []),
        (" ;; -- nothing\n;", []),
        ("SELECT 1", ["SELECT 1"]),
        ("SELECT 1;\n SELECT 2 ;", ["SELECT 1", "SELECT 2"]),
        ("SELECT ';' ; SELECT \";\"", ["SELECT ';'", 'SELECT ";"']),
        ("-- a; b\nSELECT 1; /* ; */ SELECT 2", ["SELECT 1", "SELECT 2"]),
        (
            "CREATE TRIGGER t AFTER UPDATE ON a BEGIN SELECT CASE WHEN 1 THEN 2 END; SELECT 3; END;"
            " SELECT 4",
            [
                "CREATE TRIGGER t AFTER UPDATE ON a BEGIN SELECT CASE WHEN 1 THEN 2 END; SELECT 3;"
                " END",
                "SELECT 4",
            ],
        ),
        ("CREATE TABLE t (a); SELECT 1", ["CREATE TABLE t (a)", "SELECT 1"]),
    ],
)
def test_a_text_is_parted_where_its_statements_end(text: str, expected: list[str]) -> None:
    assert parts(text) == expected


@pytest.mark.needs("mysql")
@pytest.mark.parametrize(
    "block",
    [
        "IF a THEN SELECT 1; END IF",
        "l: LOOP LEAVE l; END LOOP",
        "WHILE a DO SET a = 0; END WHILE",
        "REPEAT SET a = 1; UNTIL a END REPEAT",
        "FOR r IN (SELECT 1) DO SELECT 2; END FOR",
        "CASE a WHEN 1 THEN SELECT 1; END CASE",
        "BEGIN SELECT 1; END",
    ],
)
def test_a_body_goes_on_after_a_block_in_it_has_ended(block: str) -> None:
    whole = f"CREATE PROCEDURE p(a INT) BEGIN {block}; SELECT 3; END"
    assert parts(f"{whole}; SELECT 4", "mysql") == [whole, "SELECT 4"]


def test_the_body_of_a_postgres_function_is_no_statement_of_its_own() -> None:
    text = "CREATE FUNCTION f() RETURNS int LANGUAGE sql AS $$ SELECT 1; SELECT 2 $$; SELECT f()"
    assert parts(text, "postgres") == [text[: text.rindex(";")], "SELECT f()"]


def test_a_text_that_cannot_be_read_is_one_statement_with_the_place_of_the_fault() -> None:
    found, unreadable = statement_parts(" SELECT 1; SELECT 'x ", "postgres")
    assert [(part.start, part.end) for part in found] == [(1, 20)]
    assert unreadable is not None and unreadable.at == 18


@pytest.mark.parametrize("text", ["abc", "é😀x", "😀😀", ""])
def test_places_are_counted_in_utf_16(text: str) -> None:
    units = Utf16(text)
    for at in range(len(text) + 1):
        counted = len(text[:at].encode("utf-16-le")) // 2
        assert units.units(at) == counted
        assert units.characters(counted) == at
    assert units.characters(10_000) == len(text)
