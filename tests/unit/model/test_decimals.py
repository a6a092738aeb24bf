"""Decimals as texts: none is written out to a gigabyte."""

from __future__ import annotations

from decimal import Decimal

import pytest

from tidegate.model.decimals import plain
from tidegate.results.numbers import _shorten
from tidegate.sql.dialects import DIALECTS, find


@pytest.mark.parametrize(
    ("given", "text"),
    [("1E+3", "1000"), ("-0.0000001", "-0.0000001"), ("1E+1000", "1" + "0" * 1000)],
)
def test_a_decimal_is_written_out(given: str, text: str) -> None:
    assert plain(Decimal(given)) == text


@pytest.mark.parametrize("given", ["1E+999999999", "-1E-999999999", "1E+1001"])
def test_one_of_too_many_digits_keeps_its_exponent(given: str) -> None:
    assert plain(Decimal(given)) == given
    assert _shorten(Decimal(given)) == given


@pytest.mark.parametrize("dialect", sorted(DIALECTS))
def test_no_dialect_writes_a_literal_of_a_billion_digits(dialect: str) -> None:
    assert len(find(dialect).literal(Decimal("1E+999999999"))) < 100
