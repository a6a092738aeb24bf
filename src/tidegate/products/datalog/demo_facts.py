"""The demo's shop as a Datalog source."""

from __future__ import annotations

import json
import shutil
import sqlite3
from contextlib import closing
from functools import partial
from pathlib import Path
from typing import NamedTuple

from tidegate.app import App
from tidegate.cli.local_actor import with_app
from tidegate.config.model import Config
from tidegate.config.sources import SourceSettings
from tidegate.config.state import NO_DATABASE
from tidegate.products.datalog.commands.datalog import prepared
from tidegate.products.datalog.commands.import_file import send_records
from tidegate.products.datalog.engine.library import find_library
from tidegate.products.datalog.engine.startup_cache import StartupCache
from tidegate.products.datalog.language.import_records import as_vectors, infer, records_of

NAME = "shop-facts"


class _Part(NamedTuple):
    """A table of the shop, and what its columns become."""

    namespace: str
    query: str
    fulltext: tuple[str, ...] = ()
    vectors: tuple[str, ...] = ()


_PARTS = (
    # The one with vectors is first: they are made with the database.
    _Part(
        "products",
        "SELECT id, name, category_id, price_cents,"
        " json_array(price_cents / 1000.0, weight_g / 1000.0) AS size"
        " FROM products WHERE weight_g IS NOT NULL",
        (":products/name",),
        (":products/size",),
    ),
    _Part("categories", "SELECT id, name, parent_id FROM categories"),
)


def facts_of(shop: Path, state: Path) -> SourceSettings:
    """The source, made from the shop at first. Raises: TidegateError ENGINE_MISSING without the
    extra, STATE_FAILED."""
    prepared(StartupCache(find_library()))
    directory = state / NAME
    if not directory.exists():
        _make(shop, directory, state)
    return SourceSettings(NAME, f"datalevin://{directory}")


def _make(shop: Path, directory: Path, state: Path) -> None:
    """Make the database elsewhere first: one that is there is whole. Raises: TidegateError."""
    draft = directory.with_suffix(".new")
    shutil.rmtree(draft, ignore_errors=True)
    source = SourceSettings(NAME, f"datalevin://{draft}", access="write")
    config = Config(state=str(state), state_url=NO_DATABASE, sources=(source,))
    with_app(App.open(config), partial(_fill, shop))
    draft.replace(directory)


async def _fill(shop: Path, app: App) -> None:
    for part in _PARTS:
        records = records_of(_rows(shop, part.query), "jsonl", part.namespace)
        vectors = {name: as_vectors(records, name) for name in part.vectors}
        attributes = infer(records, f":{part.namespace}/id", part.fulltext, vectors)
        await send_records(app, NAME, attributes, records)


def _rows(shop: Path, query: str) -> str:
    """The rows of a query as lines of JSON."""
    with closing(sqlite3.connect(shop)) as database:
        database.row_factory = sqlite3.Row
        return "\n".join([json.dumps(dict(row)) for row in database.execute(query)])
