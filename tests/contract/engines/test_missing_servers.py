"""A real server that is not installed is a test skipped by name, never a shorter list of tests."""

from __future__ import annotations

import pytest

from contract.surfaces.engine_shops import ENGINE_SHOPS
from support import authz_engines, jdbc_cases, masking_shop, mysql_server, postgres_server
from support.engine_cases import CASES


def test_e_every_engine_is_in_every_list() -> None:
    assert set(CASES) == {
        "duckdb",
        "files",
        *(f"jdbc-{product}" for product in jdbc_cases.PRODUCTS),
        "memory",
        "mysql",
        "postgres",
        "postgres-debian",
        "sqlite",
    }
    assert set(ENGINE_SHOPS) == {"duckdb", "mariadb", "postgres", "sqlite"}
    assert set(masking_shop.ENGINES) == {"duckdb", "mysql", "postgres", "sqlite"}
    assert set(authz_engines.ENGINES) == {"duckdb", "mariadb", "postgres", "sqlite"}


def test_e_a_server_of_the_system_that_is_missing_skips_the_test_that_asks(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(mysql_server, "available", lambda: False)
    with pytest.raises(pytest.skip.Exception, match="mariadb-server-core"):
        mysql_server.shared.__wrapped__()
    monkeypatch.setattr(postgres_server, "available", dict)
    with pytest.raises(pytest.skip.Exception, match="the package postgresql"):
        postgres_server._shared.__wrapped__("debian")


def test_e_a_server_of_the_requirements_that_is_missing_is_a_failure(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(postgres_server, "available", dict)
    with pytest.raises(FileNotFoundError, match="requirements"):
        postgres_server._shared.__wrapped__("wheel")
