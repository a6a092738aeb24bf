"""A9: a field that holds the separator of another program's CSV is quoted."""

from __future__ import annotations

import csv
import io

import pytest

from tidegate.model.results import Column
from tidegate.results.formats import CsvWriter


@pytest.mark.parametrize("value", ["a;b", ";", "a;=1+1", 'say ";"', "plain, and;more"])
def test_a9_a_field_with_a_semicolon_is_one_field_for_readers_of_either_kind(value: str) -> None:
    chunks: list[bytes] = []
    writer = CsvWriter(chunks.append)
    writer.begin((Column("a", "text"),))
    writer.write([(value,)])
    text = b"".join(chunks).decode()
    for separator in (",", ";"):
        assert list(csv.reader(io.StringIO(text), delimiter=separator))[1] == [value]
