"""`tidegate driver fetch | list | verify | remove | bundle | import | doctor`."""

from __future__ import annotations

import argparse
from pathlib import Path
from typing import Any

import msgspec

from tidegate.app import App
from tidegate.cli.consent import require_consent
from tidegate.cli.local_actor import with_app
from tidegate.cli.settings import load_for_query, load_for_state
from tidegate.cli.source_check import absolute_file_url
from tidegate.cli.terminal import print_status, show, show_json, show_table
from tidegate.config.model import Config
from tidegate.config.sources import SourceSettings
from tidegate.errors import Code, TidegateError
from tidegate.identity.builtin_actors import cli
from tidegate.products.jdbc.commands.download import fetch_driver
from tidegate.products.jdbc.driver_preparation import drivers_of
from tidegate.products.jdbc.engine.driver_jars import named_coordinates
from tidegate.products.jdbc.maven.bundle import import_bundle, read_bundle_lock, write_bundle
from tidegate.products.jdbc.maven.lock_file import LockedDriver

CHANGED = 1
"""The exit status of `verify` if a file is not what was fetched."""


def run(arguments: argparse.Namespace) -> int:
    """Run `arguments.action`."""
    if arguments.action == "doctor":
        return _doctor(arguments)
    work = {
        "list": _list,
        "verify": _verify,
        "remove": _remove,
        "bundle": _bundle,
        "import": _import,
    }.get(arguments.action)

    async def act(app: App) -> int:
        return await _fetch(app, arguments) if work is None else work(app, arguments)

    return with_app(App.open(load_for_state(arguments)), act)


async def _fetch(app: App, arguments: argparse.Namespace) -> int:
    wanted = [named_coordinates(text) for text in arguments.coordinates]
    for coordinates in wanted:
        await fetch_driver(app, coordinates, arguments, arguments.repository)
    return 0


def _list(app: App, arguments: argparse.Namespace) -> int:
    drivers = drivers_of(app.parts).cache.lock().drivers
    if arguments.json:
        show_json(
            {"drivers": [{"driver": name, **_described(each)} for name, each in drivers.items()]}
        )
    elif not drivers:
        print_status("no driver was fetched; `tidegate driver fetch COORDINATE` fetches one")
    else:
        rows = [
            (name, len(each.jars), each.fetched_at, each.repository)
            for name, each in drivers.items()
        ]
        show_table(("driver", "jars", "fetched", "repository"), rows)
    return 0


def _described(driver: LockedDriver) -> dict[str, Any]:
    fields: dict[str, Any] = msgspec.to_builtins(driver)
    return fields


def _verify(app: App, arguments: argparse.Namespace) -> int:
    found = drivers_of(app.parts).cache.verify()
    if arguments.json:
        report = {name: [each._asdict() for each in faults] for name, faults in found.items()}
        show_json({"ok": not any(found.values()), "drivers": report})
    else:
        for name, faults in found.items():
            show(f"{'fault' if faults else 'ok':<6} {name}")
            for each in faults:
                show(f"{'':<6} {each.path}: {each.problem}")
    if any(found.values()):
        print_status("`tidegate driver fetch` downloads the first content again")
        return CHANGED
    return 0


def _remove(app: App, arguments: argparse.Namespace) -> int:
    asked: str = arguments.coordinate
    # Or a pin could be taken away unseen, and other content come in its place.
    require_consent(app, "remove", f"remove the driver {asked}", arguments)
    app.note("driver.removed", {"driver": asked})
    drivers_of(app.parts).cache.remove(asked)
    print_status(f"removed {asked}")
    return 0


def _bundle(app: App, arguments: argparse.Namespace) -> int:
    lock = write_bundle(drivers_of(app.parts).cache, Path(arguments.file), arguments.coordinates)
    size = sum(pin.size for pin in lock.files.values())
    print_status(f"wrote {arguments.file}: {', '.join(lock.drivers)} ({size:,} bytes)")
    return 0


def _import(app: App, arguments: argparse.Namespace) -> int:
    bundle = Path(arguments.file)
    names = ", ".join(read_bundle_lock(bundle).drivers)
    what = f"take over {names} from {bundle}; their code will run in Java processes"
    require_consent(app, "import", what, arguments, no_word=not app.granted_rights.exist)
    app.note("driver.imported", {"drivers": names})
    import_bundle(drivers_of(app.parts).cache, bundle)
    print_status(f"imported {names}")
    return 0


def _doctor(arguments: argparse.Namespace) -> int:
    from tidegate.cli.checks.report import FAULTY, Report
    from tidegate.products.jdbc.commands.check import check_jdbc

    report = Report(as_json=arguments.json)
    config, name = _tried(arguments)

    async def check(app: App) -> None:
        source = app.connections.find(name, cli()).source
        if source.engine != "jdbc":
            raise TidegateError(
                Code.ARGUMENT_INVALID,
                f"The source {source.name} is not a JDBC source.",
                hint=f"Use `tidegate doctor --source {source.name}`.",
            )
        async for finding in check_jdbc(app, source, arguments.timeout):
            report.add([finding])

    with_app(App.open(config), check)
    report.end()
    return FAULTY if report.faults else 0


def _tried(arguments: argparse.Namespace) -> tuple[Config, str]:
    """The settings with the source to be checked, and its name. Raises: TidegateError."""
    config = load_for_query(arguments)
    target: str = arguments.target
    if not target.lower().startswith("jdbc:"):
        return config, target
    options = dict(split_pair(text) for text in arguments.option)
    tried = SourceSettings("tried", absolute_file_url(target), options=options)
    return msgspec.structs.replace(config, sources=(tried,)), tried.name


def split_pair(text: str) -> tuple[str, str]:
    """NAME and VALUE of `NAME=VALUE`. Raises: TidegateError ARGUMENT_INVALID."""
    name, equals, value = text.partition("=")
    if not name or not equals:
        raise TidegateError(Code.ARGUMENT_INVALID, f"`--option {text[:80]}` is not NAME=VALUE.")
    return name, value
