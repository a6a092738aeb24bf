"""The emulations of catalogs that sessions share: of one caller on one source, bounded for all."""

from __future__ import annotations

import asyncio

import apsw
import pytest

from tidegate.model.schema import Catalog, ColumnInfo, Table
from tidegate.products.pgwire.catalog.database import CatalogDatabase
from tidegate.products.pgwire.catalog.shared import KEPT, SharedCatalogs
from tidegate.products.pgwire.catalog.tables import catalog_rows
from tidegate.products.pgwire.catalog.translation import translate

QUERY = translate("SELECT relname FROM pg_class WHERE relname = 'item'")


def database() -> CatalogDatabase:
    table = Table("main", "item", "table", (ColumnInfo("id", "integer"),))
    catalog = Catalog("shop", "main", ("main",), (table,), "1")
    session = {"current_user": "u", "current_schema": "main", "current_database": "shop"}
    return CatalogDatabase(catalog_rows(catalog, ["shop"], "shop", "u", []), session)


def test_sessions_of_one_caller_on_one_source_share_and_the_last_forgets():
    kept = SharedCatalogs()
    shared = kept.enter(("a", "shop"))
    shared.database = held = database()
    assert kept.enter(("a", "shop")) is shared
    assert kept.enter(("b", "shop")) is not shared
    assert kept.enter(("a", "other")) is not shared
    kept.leave(("a", "shop"))
    assert held.run(QUERY, ())[1] == [("item",)]
    kept.leave(("a", "shop"))
    with pytest.raises(apsw.ConnectionClosedError):
        held.run(QUERY, ())
    assert kept.enter(("a", "shop")).database is None


def test_the_oldest_make_room_for_those_of_other_callers():
    kept = SharedCatalogs()
    keys = [(str(number), "shop") for number in range(KEPT + 3)]
    entered = [kept.enter(key) for key in keys]
    for key, shared in zip(keys, entered, strict=True):
        shared.database = database()
        kept.note_use(key)
    assert [each.database is None for each in entered] == [True] * 3 + [False] * KEPT
    for key in keys:
        kept.leave(key)


async def test_what_a_thread_uses_is_forgotten_when_it_has_ended():
    kept = SharedCatalogs()
    shared = kept.enter(("a", "shop"))
    shared.database = held = database()
    running: asyncio.Future[None] = asyncio.get_running_loop().create_future()
    shared.begin(running)
    assert shared.is_running
    kept.leave(("a", "shop"))
    assert held.run(QUERY, ())[1] == [("item",)]
    running.set_result(None)
    await asyncio.sleep(0)
    with pytest.raises(apsw.ConnectionClosedError):
        held.run(QUERY, ())
