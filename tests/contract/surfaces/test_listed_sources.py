"""A listing shows every source, whatever its URL is; one that cannot be read is shown as such."""

from __future__ import annotations

import asyncio
from pathlib import Path
from typing import Any

import msgspec
import pytest

from support.command_line import tidegate
from support.surface_client import WRITER, Peer
from support.surface_gateway import SqliteGate, sqlite_source
from support.surface_shop import build_shop
from support.url_forms import FORMS, UNREADABLE_URLS
from tidegate.config.model import Config
from tidegate.engines.registry import find, locate
from tidegate.errors import TidegateError
from tidegate.model.sources import Source
from tidegate.surfaces.registry import open_surface


def is_known(url: str) -> bool:
    """Whether an engine that is there reads such URLs."""
    try:
        return bool(find(url))
    except TidegateError:
        return False


URLS = [url for url in (*(url for url, _ in FORMS), *UNREADABLE_URLS[:8]) if is_known(url)]


@pytest.fixture
def sources(tmp_path: Path) -> list[Source]:
    shop = sqlite_source(build_shop(tmp_path / "shop.db"))
    return [
        msgspec.structs.replace(
            shop,
            id=f"11111111-2e3d-4b14-9c3a-1d2f4ad1f6{place:02}",
            name=f"s{place}",
            url=url,
            engine=find(url).engine,
            dialect=find(url).engine,
        )
        for place, url in enumerate(URLS)
    ]


def listed(directory: Path, sources: list[Source], surface: str, tool: str) -> dict[str, Any]:
    async def whole() -> dict[str, Any]:
        gate = SqliteGate(directory, *sources)
        async with gate.opened():
            peer = Peer(open_surface(surface, gate, Config()), WRITER)
            await peer.open()
            return await peer.result(tool)

    return asyncio.run(whole())


@pytest.mark.needs("workbench")
def test_list_connections_shows_every_source_at_its_place(
    tmp_path: Path, sources: list[Source]
) -> None:
    result = listed(tmp_path, sources, "workbench", "list_connections")
    shown = {each["name"]: each for each in result["structuredContent"]["connections"]}
    assert set(shown) == {source.name for source in sources}
    for source in sources:
        keys = ("host", "port", "database", "username")
        where = tuple(shown[source.name][key] for key in keys)
        assert where == msgspec.structs.astuple(locate(source.url)), source.url
    text = msgspec.json.encode(result).decode()
    assert "PW" not in text
    assert "secrets" not in text


def test_core_lists_every_source(tmp_path: Path, sources: list[Source]) -> None:
    text = listed(tmp_path, sources, "core", "sources")["content"][0]["text"]
    assert len(text.splitlines()) == len(sources)


def test_the_command_line_lists_every_source_and_saves_none_that_cannot_be_read(
    tmp_path: Path,
) -> None:
    state = tmp_path / "state"
    state.mkdir(mode=0o700)
    urls = {
        "file": "postgresql://me:${FILE:/run/secrets/pw}@db.invalid/shop",
        "hosts": "postgresql://h1.invalid:5432,h2.invalid:5433/shop",
    }
    for name, url in urls.items():
        assert tidegate("source", "add", name, url, "--anyway", state=state).status == 0
    unreadable = {
        "postgresql://db:99999/shop": "port 99999",
        "postgresql://[::1/shop": "host and port in the source's URL cannot be read",
    }
    for url, said in unreadable.items():
        ended = tidegate("source", "add", "odd", url, "--anyway", state=state)
        assert ended.status != 0
        assert said in ended.err
    saved = tidegate("source", "list", "--json", state=state).json["sources"]
    assert {source["name"]: source["url"] for source in saved} == urls
    assert tidegate("source", "list", state=state).status == 0
