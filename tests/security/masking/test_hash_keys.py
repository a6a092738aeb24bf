"""The key of hashes stays out of what a database answers, whatever a caller computes with a hash.

Databases quote expressions with the values of parameters in some errors, and one returns what a
function has left in a buffer. So every function and operator that a read may use is tried.
"""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from support.masking_shop import ENGINES, KEY, Shop, row_texts
from tidegate.errors import Code, TidegateError
from tidegate.gateway.masking import without_key
from tidegate.model.data_rules import DataRules
from tidegate.model.statements import Effect
from tidegate.sql.dialects import find
from tidegate.sql.judge import judge

HASHED = DataRules(masks=(("customers.email", "hash"),))
PART = 8
"""Characters of the key that no answer may hold in a row."""
CALLS = ("email", "1, email", "email, 1e308")
WAIT = frozenset({"benchmark", "master_gtid_wait", "master_pos_wait", "pg_sleep", "sleep"})
"""Functions that give nothing back and take as long as the hash says."""
OPERATORS = (
    "+", "-", "*", "/", "%", "DIV", "MOD", "||", "&&", "&", "|", "^", "<<", ">>", "AND", "OR",
    "XOR", "=", "<=>", "LIKE", "->", "->>", "**", "//", "@>", "^@",
)  # fmt: skip
OPERANDS = ("1", "-1", "1e308", "9223372036854775807", "NULL")
OTHERS = (
    "SELECT -email FROM customers",
    "SELECT ~email FROM customers",
    "SELECT max(email * 1e308) FROM customers",
    "SELECT id FROM customers WHERE email * 1e308 > 0",
    "SELECT id FROM customers ORDER BY email * 1e308",
    "SELECT contact * 1e308 FROM vip",
    "SELECT CAST(email AS SIGNED) * 1e308 FROM customers",
    "SELECT CAST(email AS DATE) FROM customers",
    "SELECT CAST(email AS DECIMAL(3, 2)) FROM customers",
    "SELECT make_set(1, concat(email, NULL)) FROM customers",
)


@pytest.fixture(scope="module", params=ENGINES)
def shop(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory):
    shop = Shop(request.param, tmp_path_factory.mktemp("shop"))
    yield shop
    shop.close()


def reads(dialect: str) -> Iterator[str]:
    """Statements that compute with a hash and that may run."""
    texts = [
        *(f"SELECT {name}({call}) FROM customers"
          for name in sorted(find(dialect).functions - WAIT) for call in CALLS),
        *(f"SELECT email {sign} {operand} FROM customers"
          for sign in OPERATORS for operand in OPERANDS),
        *(f"SELECT {operand} {sign} email FROM customers"
          for sign in OPERATORS for operand in OPERANDS),
        *OTHERS,
    ]  # fmt: skip
    yield from (text for text in texts if judge(text, dialect).effect is Effect.READ)


def answer(shop: Shop, text: str) -> str:
    """All that the database says: names and rows, or its error."""
    try:
        names, rows = shop.ask(text, HASHED)
    except TidegateError as error:
        return f"{error.message} {error.hint} {error.details}"
    return f"{names} {row_texts(rows)}"


def test_no_function_or_operator_brings_the_key_into_an_answer(shop: Shop) -> None:
    parts = [KEY[at : at + PART] for at in range(len(KEY) - PART + 1)]
    tried = 0
    for text in reads(shop.real.dialect):
        said = answer(shop, text)
        assert not any(part in said for part in parts), text
        tried += 1
    assert tried > 800


def test_a_number_out_of_range_is_called_so_without_the_expression(shop: Shop) -> None:
    if shop.name != "mysql":
        with pytest.raises(TidegateError) as refused:
            shop.ask("SELECT CAST(1e300 AS SMALLINT) + abs(-9223372036854775807 - 1)", HASHED)
        assert refused.value.code is Code.SQL_FAILED
        return
    for kind, text in (
        ("DOUBLE", "SELECT email * 1e308 FROM customers"),
        ("BIGINT UNSIGNED", "SELECT 18446744073709551615 + 1"),
    ):
        with pytest.raises(TidegateError) as refused:
            shop.ask(text, HASHED)
        assert refused.value.message == f"{kind} value is out of range."


def test_an_error_that_quotes_a_part_of_the_key_loses_its_words() -> None:
    key = "0123456789abcdef" * 4
    for place in ("message", "hint", "details"):
        quoting = TidegateError(
            Code.SQL_FAILED,
            f"bad {key[40:58]}" if place == "message" else "bad",
            hint=f"try {key[:16]}" if place == "hint" else "try",
            details={"sqlstate": "22003", "x": key[3:30] if place == "details" else 1},
        )
        shown = without_key(quoting, key)
        assert shown.code is Code.SQL_FAILED and "SQLSTATE 22003" in shown.message
        said = f"{shown.message} {shown.hint} {shown.details}"
        assert not any(key[at : at + 8] in said for at in range(len(key) - 7))


def test_an_error_with_less_of_the_key_than_can_be_guessed_is_shown_as_it_is() -> None:
    key = "0123456789abcdef" * 3 + "fedcba9876543210"
    for less in (key[:15], key[-15:]):
        quoting = TidegateError(Code.SQL_FAILED, f"bad {less}")
        assert without_key(quoting, key) is quoting
    for enough in (key[:16], key[-16:]):
        quoting = TidegateError(Code.SQL_FAILED, f"bad {enough}")
        assert enough not in without_key(quoting, key).message
