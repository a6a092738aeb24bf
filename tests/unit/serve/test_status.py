"""What a server says of its own condition."""

from __future__ import annotations

import sqlite3
from contextlib import closing
from pathlib import Path

import pytest

from support.surface_client import OWNER
from tidegate.app import App
from tidegate.config.model import Config
from tidegate.config.sources import SourceSettings
from tidegate.errors import Code, TidegateError
from tidegate.model.requests import Call, Query
from tidegate.model.statements import Statement
from tidegate.serve.status import status_of


async def test_an_open_source_of_which_calls_fail_is_not_shown_as_connected(tmp_path: Path) -> None:
    file, away = tmp_path / "shop.db", tmp_path / "away.db"
    with closing(sqlite3.connect(file)) as made:
        made.execute("CREATE TABLE t(id)")
    app = App.open(
        Config(
            state=str(tmp_path / "state"), sources=(SourceSettings("shop", f"sqlite:///{file}"),)
        )
    )

    async def ask(text: str) -> None:
        await app.gateway.handle(Call(OWNER, "core", "query", Query(Statement(text)), "shop"))

    def shown() -> tuple[str, str | None]:
        (source,) = status_of(app)["sources"]
        return source["status"], source["error"]

    try:
        await ask("SELECT 1")
        assert shown() == ("connected", None)
        file.rename(away)
        with pytest.raises(TidegateError) as raised:
            await ask("SELECT 2")
        assert raised.value.code is Code.SOURCE_UNREACHABLE
        assert shown() == ("error", raised.value.message)
        away.rename(file)
        await ask("SELECT 1")
        assert shown() == ("connected", None)
    finally:
        await app.close()
