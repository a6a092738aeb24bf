"""`tidegate datalog warm-up | import | copy | dump | load | stat | migrate | undo`."""

from __future__ import annotations

import argparse

from tidegate.app import App
from tidegate.cli.local_actor import with_app
from tidegate.cli.progress import progress
from tidegate.cli.settings import load_for_query
from tidegate.cli.terminal import print_status, show_json, show_table
from tidegate.products.datalog.commands.import_file import import_file
from tidegate.products.datalog.commands.maintenance import maintain
from tidegate.products.datalog.commands.undo import undo
from tidegate.products.datalog.engine.library import find_library
from tidegate.products.datalog.engine.startup_cache import Built, StartupCache

STEPS = 100


def run(arguments: argparse.Namespace) -> int:
    """Run `arguments.action`."""
    if arguments.action == "import":
        return _import(arguments)
    if arguments.action == "undo":
        return _undo(arguments)
    if arguments.action != "warm-up":
        return _maintain(arguments)
    cache = StartupCache(find_library(arguments.java))
    if arguments.status:
        return _status(cache, as_json=arguments.json)
    if arguments.clear:
        freed = cache.clear()
        if arguments.json:
            show_json({"removed_bytes": freed})
        else:
            print_status(f"removed {_megabytes(freed)}")
        return 0
    return _build(cache, as_json=arguments.json)


def _import(arguments: argparse.Namespace) -> int:
    async def work(app: App) -> int:
        return await import_file(app, arguments)

    return with_app(App.open(load_for_query(arguments)), work)


def _undo(arguments: argparse.Namespace) -> int:
    async def work(app: App) -> int:
        return await undo(app, arguments)

    return with_app(App.open(load_for_query(arguments)), work)


def _maintain(arguments: argparse.Namespace) -> int:
    async def work(app: App) -> int:
        return await maintain(app, arguments)

    return with_app(App.open(load_for_query(arguments)), work)


def prepared(cache: StartupCache) -> Built:
    """What a worker starts from, which is built if it is not there. Raises: TidegateError."""
    known = cache.find()
    if known is not None:
        return known
    done = 0
    with progress("Preparing Datalevin", STEPS) as advance:

        def report(share: float, doing: str) -> None:
            nonlocal done
            reached = round(share * STEPS)
            advance(doing, max(0, reached - done))
            done = max(done, reached)

        return cache.build(report)


def _build(cache: StartupCache, *, as_json: bool) -> int:
    known = prepared(cache)
    if as_json:
        show_json({"state": "ready", "path": str(cache.directory), "seconds": known.seconds})
    else:
        print_status(f"ready: {cache.directory} (built in {known.seconds:.0f} s)")
    return 0


def _status(cache: StartupCache, *, as_json: bool) -> int:
    states = cache.states()
    if as_json:
        show_json(
            {
                "datalevin": cache.library.version,
                "java": cache.library.java.program,
                "java_version": cache.library.java.version,
                "builds": [
                    {
                        "state": each.state,
                        "path": str(each.directory),
                        "bytes": each.size,
                        "seconds": each.seconds,
                    }
                    for each in states
                ],
            }
        )
        return 0
    rows = [(each.state, _megabytes(each.size), str(each.directory)) for each in states]
    show_table(("state", "size", "directory"), rows)
    java = cache.library.java
    print_status(f"Datalevin {cache.library.version} on Java {java.version} ({java.program})")
    return 0


def _megabytes(size: int) -> str:
    return f"{size / 1_000_000:.0f} MB"
