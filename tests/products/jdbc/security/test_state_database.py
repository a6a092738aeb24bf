"""A database that holds the state of a gate is no source by a driver of JDBC either."""

from __future__ import annotations

from pathlib import Path

import pytest

from support import jdbc_drivers
from tidegate.engines.common import state_databases
from tidegate.engines.registry import engine_of, open_engine
from tidegate.errors import Code, TidegateError
from tidegate.model.sources import Source

TABLES = tuple(f'CREATE TABLE "tidegate"."{name}" (a INTEGER)' for name in state_databases.TABLES)


async def test_the_database_of_the_state_is_refused(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(state_databases, "_looked_for", True)
    url = jdbc_drivers.new_database("h2", tmp_path, ('CREATE SCHEMA "tidegate"', *TABLES))
    options = {
        "driver_path": jdbc_drivers.driver_path("h2"),
        "user": jdbc_drivers.USERS["h2"],
        "jvm_options": jdbc_drivers.QUICK,
    }
    source = Source("s", "s", url, *engine_of(url), options=tuple(options.items()))
    with pytest.raises(TidegateError) as refused:
        await open_engine(source)
    assert refused.value.code is Code.POLICY_DENIED
