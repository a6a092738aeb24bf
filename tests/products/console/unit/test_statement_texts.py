"""Texts of the editor are read beside the event loop, which goes on for everybody else."""

from __future__ import annotations

import asyncio
import sqlite3
from collections.abc import Awaitable, Callable
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest

from support.surface_gateway import SqliteGate
from tidegate.config.model import LimitSettings
from tidegate.errors import TidegateError
from tidegate.identity.operators import SignedIn
from tidegate.model.actors import RoleGrant
from tidegate.model.sources import Source
from tidegate.products.console.data_calls import Caller, DataCalls
from tidegate.products.console.statements import Explained, Statements, Text, TextAt
from tidegate.store.records import OperatorEntry, OperatorSession

LONG = {
    "one statement": "SELECT " + ", ".join([f"a{n}" for n in range(30_000)]),
    "many statements": "SELECT a FROM t;\n" * 15_000,
    "characters of two units": "SELECT '😀', a;\n" * 16_000,
}
Ask = Callable[[Statements, Caller, str], Awaitable[Any]]


async def judge(statements: Statements, caller: Caller, text: str) -> Any:
    return await statements.judge(Text("shop", statement=text), caller)


async def complete(statements: Statements, caller: Caller, text: str) -> Any:
    body = TextAt("shop", statement=text, at=len(text))
    return await statements.complete(body, caller)


async def explain(statements: Statements, caller: Caller, text: str) -> Any:
    body = Explained("shop", statement=text, params={"x": 1})
    with pytest.raises(TidegateError):
        await statements.explain(body, caller)


@pytest.mark.parametrize("text", LONG.values(), ids=LONG)
@pytest.mark.parametrize("ask", [judge, complete, explain])
def test_the_event_loop_goes_on_while_a_long_text_is_read(
    tmp_path: Path, ask: Ask, text: str
) -> None:
    with closing(sqlite3.connect(tmp_path / "shop.db")) as connection:
        connection.execute("CREATE TABLE t (a INTEGER)")
    source = Source("s1", "shop", f"sqlite:///{tmp_path}/shop.db", "sqlite", "sqlite")
    roles = (RoleGrant("viewer", None),)
    operator = OperatorEntry("o1", "vera", b"", b"", roles, 0.0)
    session = OperatorSession("b1", "o1", "passphrase", 0.0, 0.0, 9e9, None, "127.0.0.1", "a test")
    caller = Caller(SignedIn(operator, session), "127.0.0.1")

    async def turns() -> int:
        gate = SqliteGate(tmp_path, source)
        async with gate.opened():
            assert gate._gateway is not None
            calls = DataCalls(gate._gateway, LimitSettings(), lambda: [source])
            statements = Statements(calls)
            await ask(statements, caller, "SELECT a FROM t")  # what is imported at first use
            asked = asyncio.ensure_future(ask(statements, caller, text))
            count = 0
            while not asked.done():
                await asyncio.sleep(0)
                count += 1
            await asked
            return count

    assert asyncio.run(turns()) > 1_000  # about a hundred where it stands still
