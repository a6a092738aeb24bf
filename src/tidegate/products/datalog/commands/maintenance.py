"""Copies, dumps, loads, measures and migrates the directory of a Datalog source.

All but `migrate` go through the gate: the directory of another version is opened by no gate.
"""

from __future__ import annotations

import argparse
import os
import shutil
from pathlib import Path
from typing import Any

import msgspec

from tidegate.app import App
from tidegate.cli.consent import require_consent
from tidegate.cli.terminal import print_status, show_json, show_table
from tidegate.errors import Code, TidegateError
from tidegate.identity.builtin_actors import cli
from tidegate.model.requests import Call
from tidegate.model.results import Document, Limits
from tidegate.model.sources import Source
from tidegate.paths import expand
from tidegate.products.datalog.engine.directory import DATA, VERSION, users_of
from tidegate.products.datalog.engine.library import find_library
from tidegate.products.datalog.engine.url import place_of
from tidegate.products.datalog.requests import DatalogOperation, DatalogRequest, DatalogTarget
from tidegate.system.private_files import close_to_others, create_file, make_private_directory

_LIMITS = Limits(max_bytes=16 * 1024 * 1024, timeout_s=3_600.0)
_STORE = DatalogTarget("kv")


async def maintain(app: App, arguments: argparse.Namespace) -> int:
    """Do `arguments.action`. Raises: TidegateError."""
    done = await _ACTIONS[arguments.action](app, arguments)
    if arguments.json:
        show_json(done)
    elif arguments.action == "stat":
        _show_sizes(done)
    else:
        print_status(", ".join([f"{name} {value}" for name, value in done.items()]))
    return 0


async def _copy(app: App, arguments: argparse.Namespace) -> dict[str, Any]:
    _directory_of(app, arguments.source)
    path = _new(arguments.directory)
    make_private_directory(path, parents=False)
    asked = {"path": str(path), "compact": arguments.compact}
    try:
        await _ask(app, arguments, DatalogOperation.COPY, asked)
    except BaseException:
        shutil.rmtree(path, ignore_errors=True)
        raise
    return {"copied": str(path), "bytes": (path / DATA).stat().st_size}


async def _dump(app: App, arguments: argparse.Namespace) -> dict[str, Any]:
    _directory_of(app, arguments.source)
    path = _new(arguments.file)
    os.close(create_file(path))
    try:
        size = await _ask(app, arguments, DatalogOperation.DUMP, {"path": str(path)})
    except BaseException:
        path.unlink(missing_ok=True)
        raise
    return {"dumped": str(path), "bytes": int(size.json)}


async def _load(app: App, arguments: argparse.Namespace) -> dict[str, Any]:
    path, directory = _loadable(arguments.file, _directory_of(app, arguments.source))
    require_consent(app, "load", f"fill the source {arguments.source} from {path}", arguments)
    await _ask(app, arguments, DatalogOperation.LOAD, {"path": str(path)})
    return {"loaded": str(path), "into": str(directory)}


def _loadable(file: str, into: str) -> tuple[Path, Path]:
    """A file that is there and a directory that holds nothing. Raises: TidegateError."""
    path, directory = expand(file).absolute(), Path(into)
    if not path.is_file():
        raise TidegateError(Code.ARGUMENT_INVALID, f"There is no file {path}.")
    if directory.exists() and any(directory.iterdir()):
        raise TidegateError(
            Code.ARGUMENT_INVALID,
            f"{directory} holds data already, and a dump is loaded into a new directory.",
            hint="Add a source for another directory with --allow-writes --anyway.",
        )
    return path, directory


async def _stat(app: App, arguments: argparse.Namespace) -> dict[str, Any]:
    _directory_of(app, arguments.source)
    document = await _ask(app, arguments, DatalogOperation.STAT, {})
    found = msgspec.json.decode(document.json)
    return {
        "store": _plain(found["store"]),
        "tables": {name: _plain(each) for name, each in sorted(found["tables"].items())},
    }


async def _migrate(app: App, arguments: argparse.Namespace) -> dict[str, Any]:
    """Copy a directory of another patch release; the copy is taken for one of ours, as Datalevin
    itself does when it opens one."""
    directory = Path(_directory_of(app, arguments.source))
    path = _new(arguments.copy_to)
    ours = find_library().version
    try:
        found = (directory / VERSION).read_text("utf-8", "replace").strip()[:40]
    except OSError as error:
        raise TidegateError(
            Code.ARGUMENT_INVALID,
            f"{directory / VERSION} cannot be read: {error.strerror}.",
        ) from error
    if found.split(".")[:2] != ours.split(".")[:2]:
        raise TidegateError(
            Code.UNSUPPORTED,
            f"{directory} is of Datalevin {found}, and files of {ours} are other ones.",
            hint=f"Dump it with the program of Datalevin {found} (`dtlv -d {directory} -g -f FILE"
            " dump`), and load that file: `tidegate datalog load`.",
        )
    if users := users_of(str(directory)):
        raise TidegateError(
            Code.SOURCE_LOCKED,
            f"The process {min(users)} has {directory} open, so its files may change while they"
            " are copied.",
            hint="Stop it, and run the command again.",
        )
    shutil.copytree(directory, path, ignore=shutil.ignore_patterns("lock.mdb"), dirs_exist_ok=True)
    close_to_others(path)
    (path / VERSION).write_text(ours)
    return {"migrated": found, "to": ours, "copied": str(path)}


_ACTIONS = {"copy": _copy, "dump": _dump, "load": _load, "stat": _stat, "migrate": _migrate}


async def _ask(
    app: App, arguments: argparse.Namespace, operation: DatalogOperation, asked: dict[str, Any]
) -> Document:
    request = DatalogRequest(
        operation=operation,
        target=_STORE,
        arguments=asked,
        text=f"{operation.value} {asked.get('path', '')}".strip(),
        limits=_LIMITS,
    )
    writes = operation is DatalogOperation.LOAD
    tool = f"datalog {operation.value}"
    call = Call(cli(allow_writes=writes), "cli", tool, request, arguments.source)
    payload = (await app.gateway.handle(call)).payload
    if not isinstance(payload, Document):
        raise TypeError(type(payload).__name__)
    return payload


def _new(given: str) -> Path:
    """The path of a file or directory that is yet to be made. Raises: TidegateError."""
    path = expand(given).absolute()
    empty = path.is_dir() and not any(path.iterdir())
    if path.exists() and not empty:
        raise TidegateError(
            Code.ARGUMENT_INVALID, f"{path} is there already.", hint="Name a new one."
        )
    if not path.parent.is_dir():
        raise TidegateError(Code.ARGUMENT_INVALID, f"There is no directory {path.parent}.")
    return path


def _directory_of(app: App, name: str) -> str:
    """The directory of a Datalog source on this machine. Raises: TidegateError."""
    found: list[Source] = [each for each in app.connections.sources() if each.name == name]
    if not found:
        raise TidegateError(
            Code.SOURCE_UNKNOWN,
            f"There is no source {name!r}.",
            hint="`tidegate source list` shows them.",
        )
    if found[0].engine != "datalevin" or (place := place_of(found[0].url)).is_remote:
        raise TidegateError(
            Code.ARGUMENT_INVALID, f"The source {name} is no Datalevin directory on this machine."
        )
    return place.name


def _plain(sizes: dict[str, Any]) -> dict[str, Any]:
    return {name.removeprefix(":"): value for name, value in sizes.items()}


def _show_sizes(found: dict[str, Any]) -> None:
    names = ("entries", "depth", "branch-pages", "leaf-pages", "overflow-pages")
    rows = [
        (name, *[sizes.get(each, "") for each in names]) for name, sizes in found["tables"].items()
    ]
    show_table(("table", *names), rows)
