"""The search over all sources: what comes too late for it is no fault of the server."""

from __future__ import annotations

import asyncio
import gc
from collections.abc import Sequence
from typing import Any

import pytest

from tidegate.config.model import LimitSettings
from tidegate.errors import Code, TidegateError
from tidegate.identity.operators import SignedIn
from tidegate.model.actors import RoleGrant
from tidegate.model.schema import Catalog
from tidegate.model.sources import Source
from tidegate.products.console import data_tree
from tidegate.products.console.data_calls import Caller, DataCalls, Place
from tidegate.products.console.data_tree import DataTree
from tidegate.store.records import OperatorEntry, OperatorSession

SHOP = Source("s1", "shop", "sqlite:////shop.db", "sqlite", "sqlite")
ADA = OperatorEntry("o1", "ada", b"", b"", (RoleGrant("admin"),), 0.0)
SESSION = OperatorSession(*("x", "o1", "link", 0.0, 0.0, 1e12), None, "", "")
CALLER = Caller(SignedIn(ADA, SESSION), "")


class LateCalls(DataCalls):
    """Calls to a database that does not answer until `answers`, and then not well."""

    def __init__(self, gateway: Any, sources: Sequence[Source]) -> None:
        super().__init__(gateway, LimitSettings(), lambda: sources)
        self.answers = asyncio.Event()

    async def catalog(self, caller: Caller, place: Place) -> Catalog:
        await self.answers.wait()
        raise TidegateError(Code.SOURCE_UNREACHABLE, "It does not answer")


def test_a_source_that_fails_after_the_search_was_answered_leaves_no_trace_in_the_log(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(data_tree, "PATIENCE_S", 0.01)
    logged: list[Any] = []

    async def scenario() -> None:
        asyncio.get_running_loop().set_exception_handler(lambda _, context: logged.append(context))
        calls = LateCalls(None, (SHOP,))
        tree = DataTree(calls)
        found = await tree.search({"q": "orders"}, CALLER)
        reason = "Its tables are still being read."
        assert found["unread"] == [{"source": "shop", "reason": reason}]
        calls.answers.set()
        while tree.is_reading:
            await asyncio.sleep(0)
        gc.collect()

    asyncio.run(scenario())
    assert logged == []
