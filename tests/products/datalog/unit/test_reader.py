"""The EDN reader takes what `clojure.edn/read-string` takes, and says where it cannot."""

from __future__ import annotations

import math
from decimal import Decimal
from uuid import UUID

import pytest

from tidegate.errors import Code, TidegateError
from tidegate.products.datalog.language.reader import read
from tidegate.products.datalog.language.values import (
    BigInteger,
    Character,
    Instant,
    Keyword,
    List,
    Map,
    Set,
    Symbol,
    Value,
    Vector,
)


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ("nil", None),
        ("true", True),
        ("-5", -5),
        ("+7", 7),
        ("0x1F", 31),
        ("017", 15),
        ("2r101", 5),
        ("9223372036854775807", 2**63 - 1),
        ("9223372036854775808", BigInteger(2**63)),
        ("5N", BigInteger(5)),
        ("1.50M", Decimal("1.50")),
        ("1e3", 1000.0),
        ("3.", 3.0),
        ("##-Inf", -math.inf),
        ('"a\\n\\u00e9\\101"', "a\né" + "A"),
        ("\\a", Character("a")),
        ("\\newline", Character("\n")),
        ("\\u0041", Character("A")),
        (":person/name", Keyword("person/name")),
        ("?e", Symbol("?e")),
        ("/", Symbol("/")),
        ("datalevin.core/q", Symbol("datalevin.core/q")),
        ("#{1 2}", Set((1, 2))),
        ("{:a 1, :b [2]}", Map(((Keyword("a"), 1), (Keyword("b"), Vector((2,)))))),
        ("(or #_ignored [?e :a] ; a comment\n)", List((Symbol("or"), read("[?e :a]")))),
        ('#inst "1970-01-01T00:00:01.5Z"', Instant(1500)),
        ('#inst "1970-01-01T01:00:00+01:00"', Instant(0)),
        (
            '#uuid "f81d4fae-7dec-11d0-a765-00a0c91e6bf6"',
            UUID("f81d4fae-7dec-11d0-a765-00a0c91e6bf6"),
        ),
    ],
)
def test_a_value_is_read(text: str, value: Value) -> None:
    found = read(text)
    assert found == value and type(found) is type(value)


@pytest.mark.parametrize(
    ("text", "position"),
    [
        ("", 0),
        ("1 2", 2),
        ("[1 2", 0),
        ("[1 2)", 4),
        ("]", 0),
        ("{:a}", 0),
        ("{:a 1 :a 2}", 6),
        ("{1 :a 1N :b}", 6),
        ("#{[1] (1)}", 6),
        ("#{1 1}", 4),
        ("#foo 1", 0),
        ("#inst 5", 0),
        ('#inst "2026-13-01"', 0),
        ('#uuid "5"', 0),
        ("##Big", 0),
        ("08", 0),
        ("1/2", 0),
        ("12abc", 0),
        ("2r9", 0),
        ('"open', 0),
        ('"\\q"', 1),
        ('"\\ud800"', 0),
        ("\\wrong", 0),
        (":", 0),
        ("::a", 0),
        ("a:", 0),
        ("a/", 0),
        ("^{:a 1} b", 0),
        ("`a", 0),
        ("@a", 0),
        ("#_", 2),
        ("#(+ 1 %)", 0),
        ("#=(+ 1 2)", 0),
        ("[1\n  ~x]", 5),
    ],
)
def test_what_clojure_would_not_read_is_refused_with_its_place(text: str, position: int) -> None:
    with pytest.raises(TidegateError) as refused:
        read(text)
    assert refused.value.code is Code.DATALOG_UNREADABLE
    assert refused.value.details["position"] == position


def test_the_place_is_given_as_line_and_column() -> None:
    with pytest.raises(TidegateError) as refused:
        read("[:find ?e\n :where [?e :a #x 5]]")
    assert refused.value.details == {"position": 25, "line": 2, "column": 16}
    assert "(line 2, column 16)" in refused.value.message


@pytest.mark.parametrize("opening", ["[", "(", "{", "#{", "#_ ", "#inst "])
def test_a_text_nested_without_end_is_refused_before_it_is_read(opening: str) -> None:
    with pytest.raises(TidegateError) as refused:
        read(opening * 10_000)
    assert refused.value.code is Code.DATALOG_TOO_DEEP


def test_a_text_above_the_limit_is_not_read() -> None:
    with pytest.raises(TidegateError) as refused:
        read('"' + "x" * 102_400 + '"')
    assert refused.value.code is Code.DATALOG_TOO_LONG
