"""JSON arguments become the values that Datalevin keeps, and values are shown as its document
says."""

from __future__ import annotations

import math
from decimal import Decimal
from typing import Any
from uuid import UUID

import pytest

from tidegate.errors import Code, TidegateError
from tidegate.products.datalog.language.json_values import decode, encode, keyword_name, plain_text
from tidegate.products.datalog.language.reader import read
from tidegate.products.datalog.language.values import (
    BigInteger,
    Instant,
    Keyword,
    Map,
    Set,
    Symbol,
    Value,
    Vector,
)


@pytest.mark.parametrize(
    ("given", "value"),
    [
        (30, 30),
        (2**63, BigInteger(2**63)),
        (":a/b", Keyword("a/b")),
        (":", ":"),
        ({"~str": ":a"}, ":a"),
        ({"~i64": "30"}, 30),
        ({"~bigint": "30"}, BigInteger(30)),
        ({"~bigdec": "1.50"}, Decimal("1.50")),
        ({"~date": "1970-01-01T00:00:01Z"}, Instant(1000)),
        ({"~date": 1000}, Instant(1000)),
        ({"~bytes": "AAE="}, b"\x00\x01"),
        ({"~edn": "[?e :a #{1}]"}, read("[?e :a #{1}]")),
        ({"~set": [1, "a"]}, Set((1, "a"))),
        ({"~map": [[1, ":b"]]}, Map(((1, Keyword("b")),))),
        (
            {":db/id": -1, "name": ["x"]},
            Map(((Keyword("db/id"), -1), ("name", Vector(("x",))))),
        ),
    ],
)
def test_an_argument_becomes_a_value(given: Any, value: Value) -> None:
    found = decode(given)
    assert found == value and type(found) is type(value)


@pytest.mark.parametrize(
    "given",
    [
        {"~i64": "zz"},
        {"~i64": str(2**63)},
        {"~i64": True},
        {"~uuid": "x"},
        {"~date": "yesterday"},
        {"~bytes": "?"},
        {"~set": [1, 1]},
        {"~map": [[1]]},
        {"~map": [[1, 2], [1, 3]]},
        {"~what": 1},
        ":) smile",
    ],
)
def test_a_tag_that_does_not_fit_is_refused(given: Any) -> None:
    with pytest.raises(TidegateError) as refused:
        decode(given)
    assert refused.value.code is Code.ARGUMENT_INVALID


def test_an_argument_nested_without_end_is_refused() -> None:
    given: Any = []
    for _ in range(500):
        given = [given]
    with pytest.raises(TidegateError) as refused:
        decode(given)
    assert refused.value.code is Code.DATALOG_TOO_DEEP


@pytest.mark.parametrize(
    ("value", "shown"),
    [
        (Keyword("a"), ":a"),
        (":a", {"~str": ":a"}),
        (Symbol("x"), {"~edn": "x"}),
        (2**53 - 1, 2**53 - 1),
        (2**53, {"~i64": "9007199254740992"}),
        (BigInteger(5), {"~bigint": "5"}),
        (Decimal("1.50"), {"~bigdec": "1.50"}),
        (Instant(1500), {"~date": "1970-01-01T00:00:01.500Z"}),
        (UUID(int=1), {"~uuid": "00000000-0000-0000-0000-000000000001"}),
        (b"\x00\x01", {"~bytes": "AAE="}),
        (Set((2, 1)), {"~set": [1, 2]}),
        (Map(((1, 2),)), {"~map": [[1, 2]]}),
        (Map((("~set", 2),)), {"~map": [["~set", 2]]}),
        (Map(((Keyword("b"), 2), (Keyword("a"), 1))), {":a": 1, ":b": 2}),
        (math.nan, {"~edn": "##NaN"}),
    ],
)
def test_a_value_is_shown_as_the_document_says(value: Value, shown: Any) -> None:
    assert encode(value) == shown


def test_text_may_begin_with_a_colon_and_an_index_has_two_spellings() -> None:
    assert plain_text(":) smile") == ":) smile"
    assert plain_text({"~str": ":red"}) == ":red"
    assert keyword_name(":eav") == keyword_name("eav") == "eav"
