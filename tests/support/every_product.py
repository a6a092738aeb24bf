"""Starts the gate and does one small thing of each part of every product that is there, in each of
several folders in which the package is: `cli/test_products.py` has taken a product out of each.

A process of its own does it for each folder. It is forked once the libraries of others are loaded,
which take longer than all of the rest. The package itself is loaded in the fork alone.
"""

from __future__ import annotations

import asyncio
import json
import os
import sys
import traceback
from importlib import import_module
from pathlib import Path

LIBRARIES = (
    *("apsw", "asyncmy", "duckdb", "httpx", "msgspec", "psycopg", "sqlglot.dialects.spark2"),
    *("sqlglot.optimizer", "ssl", "support.free_ports", "uvicorn", "yaml"),
)
INVALID_ARGUMENTS = -32602


async def call_tools(directory: Path) -> None:
    """Call a tool of each surface on one source: one that needs no argument, if it has any."""
    from support.surface_client import READER, Peer
    from support.surface_gateway import SqliteGate, sqlite_source
    from support.surface_shop import build_shop
    from tidegate.config.model import Config
    from tidegate.surfaces.registry import SURFACES, open_surface

    gate = SqliteGate(directory, sqlite_source(build_shop(directory / "shop.db")))
    async with gate.opened():
        for name in SURFACES:
            peer = Peer(open_surface(name, gate, Config()), READER)
            await peer.open()
            tools = (await peer.request("tools/list"))["result"]["tools"]
            tools.sort(key=lambda each: len(each["inputSchema"].get("required", ())))
            reply = await peer.call(tools[0]["name"])
            assert "result" in reply or reply["error"]["code"] == INVALID_ARGUMENTS, (name, reply)


def use_product(name: str) -> None:
    """Import what a product has beside its surfaces, and ask it for a little."""
    from tidegate.config.loading import convert_table
    from tidegate.engines.registry import locate
    from tidegate.model.statements import Effect
    from tidegate.product import built_in, load
    from tidegate.sql.judge import judge

    product = next(each for each in built_in() if each.name == name)
    for prefix, entry in product.engines.items():
        assert getattr(import_module(entry.module), entry.attribute)
        assert import_module(entry.language).LANGUAGE
        assert locate(f"{prefix.rstrip(':')}:///shop")
    for dialect in product.dialects:
        assert judge("SELECT a FROM t", dialect).effect is Effect.READ
    for section, place in product.settings.items():
        assert convert_table({}, load(place), section)
    for module in product.vocabularies.values():
        import_module(module)
    places = [product.command_hooks, product.settings_format, product.listener, product.pages]
    if product.demo_source is not None:
        places.append(product.demo_source.place)
    for place in (*places, *product.steps.values()):
        assert not place or load(place)


def use_all(directory: Path) -> None:
    """What is done in a folder: a query at the command line, the tools of surfaces, the help of all
    commands, and `use_product` for each. Writes the names of the products to `products.json`."""
    from tidegate.cli.main import main
    from tidegate.cli.parser import build
    from tidegate.product import built_in

    settings = directory / "tidegate.toml"
    settings.write_text('[[sources]]\nname = "own"\nurl = "sqlite://"\n')
    words = ("--config", str(settings), "--state", str(directory / "state"))
    output = ("--output", str(directory / "answer.json"))
    assert main(["query", "own", "SELECT 7 AS x", *output, *words]) == 0
    assert json.loads((directory / "answer.json").read_text()) == [{"x": 7}]
    asyncio.run(call_tools(directory))
    parser = build()
    shown = parser.format_help()
    assert parser.parse_args(["demo"]).demo_sources == []
    for product in built_in():
        use_product(product.name)
        assert all(word in shown for word in product.commands), product.name
    names = [product.name for product in built_in()]
    (directory / "products.json").write_text(json.dumps(names))


def fork(directory: Path) -> int:
    """The status of a process of its own that uses the package of a folder."""
    if child := os.fork():
        return os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])
    try:
        sys.path.insert(0, str(directory))
        use_all(directory)
    except BaseException:  # noqa: BLE001 - whatever it is, the fork ends here
        traceback.print_exc()
        os._exit(1)
    os._exit(0)


if __name__ == "__main__":
    for library in LIBRARIES:
        import_module(library)
    loaded = [name for name in sys.modules if name.partition(".")[0] == "tidegate"]
    assert loaded == [], loaded
    sys.exit(max((fork(Path(directory)) for directory in sys.argv[1:]), default=0))
