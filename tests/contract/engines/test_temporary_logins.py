"""A temporary source logs in with what its URL says: nothing of the gate's own account counts, or
an agent would have the rights of whoever started the gate."""

from __future__ import annotations

from pathlib import Path

import msgspec
import pytest

import support.mysql_server as mysql_server
import support.postgres_server as postgres_server
from support.server_keeper import PASSWORD
from tidegate.config.sources import SourceSettings
from tidegate.engines.registry import open_engine
from tidegate.errors import Code, TidegateError
from tidegate.gateway.configured_sources import source_from_settings
from tidegate.model.sources import Source
from tidegate.secrets.references import typed


def temporary(url: str) -> Source:
    return msgspec.structs.replace(source_from_settings(SourceSettings("t", url)), temporary=True)


@pytest.fixture
def account(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> str:
    """A server that wants a password, and an account whose variables and files know it."""
    server = postgres_server.shared("wheel")
    line = f"127.0.0.1:{server.port}:*:postgres:{PASSWORD}\n"
    for path in (tmp_path / ".pgpass", tmp_path / "passes"):
        path.write_text(line)
        path.chmod(0o600)
    monkeypatch.setenv("HOME", str(tmp_path))
    monkeypatch.setenv("PGPASSFILE", str(tmp_path / "passes"))
    monkeypatch.setenv("PGPASSWORD", PASSWORD)
    monkeypatch.setenv("PGUSER", "postgres")
    return f"127.0.0.1:{server.port}/postgres"


async def test_variables_and_files_of_the_account_log_no_temporary_source_in(
    account: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    url = f"postgresql://postgres@{account}"
    saved = await open_engine(source_from_settings(SourceSettings("s", url)))
    await saved.close()  # the operator's own source may use them, so they are right
    for variable in ("PGPASSWORD", "PGPASSFILE"):
        with pytest.raises(TidegateError, match="no password supplied"):
            await open_engine(temporary(url))
        monkeypatch.delenv(variable)
    with pytest.raises(TidegateError, match="names no user"):
        await open_engine(temporary(f"postgresql://{account}"))
    with typed(PASSWORD) as reference:
        own = await open_engine(temporary(f"postgresql://postgres:{reference}@{account}"))
    await own.close()


async def test_a_service_of_the_account_refuses_temporary_sources(
    account: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("PGSERVICE", "elsewhere")
    with pytest.raises(TidegateError, match="PGSERVICE") as raised:
        await open_engine(temporary(f"postgresql://postgres@{account}"))
    assert raised.value.code is Code.POLICY_DENIED


@pytest.mark.needs("mysql")
@pytest.mark.skipif(not mysql_server.available(), reason="needs mariadb-server-core")
async def test_default_files_of_the_account_log_no_source_on_mariadb_in(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    server = mysql_server.shared()
    server.script("CREATE OR REPLACE USER clerk IDENTIFIED BY 'sesame'")
    (tmp_path / ".my.cnf").write_text("[client]\nuser=clerk\npassword=sesame\n")
    monkeypatch.setenv("HOME", str(tmp_path))
    monkeypatch.setenv("MYSQL_PWD", "sesame")
    monkeypatch.setenv("MARIADB_HOME", str(tmp_path))
    place = f"127.0.0.1:{server.port}/"
    with pytest.raises(TidegateError, match="refused the login"):
        await open_engine(temporary(f"mysql://clerk@{place}"))
    with typed("sesame") as reference:
        own = await open_engine(temporary(f"mysql://clerk:{reference}@{place}"))
    await own.close()
