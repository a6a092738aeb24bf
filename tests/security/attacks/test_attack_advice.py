"""Attacks on the advice: comparing names costs more than the mistake that asked for it."""

from __future__ import annotations

import pytest

from support.attack_target import Target
from tidegate.model.schema import Catalog, ColumnInfo, Table
from tidegate.search import suggestions


def large() -> Catalog:
    tables: list[Table] = []
    for n in range(1_000):
        columns = tuple(ColumnInfo(f"c{n}_{m}", "int") for m in range(12))
        tables.append(Table("main", f"t{n}_orders", "table", columns))
    return Catalog("d", "main", ("main",), tuple(tables), "1")


def test_few_names_of_a_large_schema_are_compared(monkeypatch: pytest.MonkeyPatch) -> None:
    compared: list[int] = []

    def compare(word: str, names: list[str], n: int, cutoff: float) -> list[str]:
        compared.append(len(names))
        return names[:1]

    monkeypatch.setattr(suggestions, "get_close_matches", compare)
    assert suggestions.nearest_columns("c7_13", large()) == ["t7_orders.c7_1 int"]
    assert suggestions.nearest_tables("t7_order", large())
    assert max(compared) <= 500
    assert suggestions.nearest_columns("x" * 1_000_000, large()) == []


def test_the_nearest_of_a_large_schema_are_still_found() -> None:
    assert suggestions.nearest_tables("t77_order", large())[0] == "t77_orders"


def test_names_without_end_are_refused_in_few_words(server: Target) -> None:
    name = "ab cd" * 200_000
    answer = server.query("SELECT 1", source=name)
    assert answer.text.startswith("source.unknown: ")
    assert len(answer.text) < 300
    assert server.call("describe", tables=[name] * 2).refused
    assert server.call("search", words=" ".join(map(str, range(200_000)))).status == 200
