"""PostgreSQL's aggregates, and its functions that describe the catalog, are read."""

from __future__ import annotations

import pytest

import support.postgres_server as postgres_server
from support.engine_cases import CASES
from tidegate.model.statements import Effect
from tidegate.sql.judge import judge

SERVERS = [name for name in sorted(CASES) if name.startswith("postgres")]
LISTED = """
SELECT DISTINCT proname::text FROM pg_proc WHERE pronamespace = 'pg_catalog'::regnamespace
  AND (prokind = 'a' OR prokind = 'f' AND provolatile <> 'v' AND proname ~ '^pg_get_') ORDER BY 1
"""
REVIEWED = {"pg_get_replication_slots"}
"""What other servers have read."""


@pytest.mark.parametrize("server", SERVERS)
def test_an_aggregate_and_what_describes_the_catalog_is_read(server: str) -> None:
    rows = postgres_server.shared(server.partition("-")[2] or "wheel").ask(LISTED)
    found = {str(name) for (name,) in rows}
    assert {"array_agg", "count", "pg_get_userbyid", "pg_get_viewdef"} <= found
    refused = {
        name for name in found if judge(f"SELECT {name}(a) FROM t", "postgres").effect > Effect.READ
    }
    assert refused - REVIEWED == set()
