"""Rows as DataRow messages: psycopg's function, and the one that stands in for it."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

data_rows = pytest.importorskip("tidegate.engines.postgres.data_rows", reason="needs psycopg")


@given(st.lists(st.none() | st.binary(max_size=300), max_size=20))
def test_the_function_that_stands_in_writes_the_same_bytes(row: list[bytes | None]) -> None:
    transformer = data_rows.Transformer(data_rows._context)
    psycopg, ours = bytearray(b"before"), bytearray(b"before")
    data_rows.write_row(row, transformer, psycopg)
    data_rows.write_row_plainly(row, transformer, ours)
    assert psycopg == ours
