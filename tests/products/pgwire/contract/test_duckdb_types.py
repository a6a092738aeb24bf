"""Over the wire a value of DuckDB is what DuckDB itself writes, or is refused in words."""

from __future__ import annotations

from pathlib import Path

import psycopg
import pytest

from support.duckdb_types import Oracle, is_same, make_types
from support.wire_server import wire_server

pytestmark = pytest.mark.needs("duckdb")


def test_no_type_of_duckdb_loses_a_digit_on_the_wire(tmp_path: Path) -> None:
    url = make_types(tmp_path / "types.duckdb")
    oracle = Oracle(url)
    wrong: list[object] = []
    plain = [
        name
        for name in oracle.columns
        if not any(word in name for word in ("array", "list", "struct", "map", "tuple", "deep_"))
        and name not in ("bool", "blob", "interval", "union")
    ]
    try:
        with wire_server(tmp_path, sources=[{"name": "types", "url": url}]) as server:
            conninfo = server.conninfo("types", "reader")
            with psycopg.connect(conninfo, autocommit=True) as connection:
                for name in plain:
                    found = connection.execute(f'SELECT "{name}" FROM types').pgresult
                    for row in (1, 2, 3):
                        [(kind, written)] = oracle.leaves(name, row)
                        # A text of PostgreSQL's protocol ends at a NUL, which is left out.
                        leaf = kind, written and written.replace("\0", "")
                        value = found.get_value(row - 1, 0)
                        given = None if value is None else value.decode()
                        if not is_same(leaf, given):
                            wrong.append((name, leaf, given))
                for name in ("timestamp_ns", "timestamp_tz_ns", "time_ns", "union"):
                    found = connection.execute(f'SELECT "{name}" FROM types', binary=True).pgresult
                    assert found.ftype(0) == 25, name
    finally:
        oracle.close()
    assert wrong == []
