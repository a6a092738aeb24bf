"""Folders that many tests begin with, made once in a process and copied for each test."""

from __future__ import annotations

import atexit
import shutil
import tempfile
from collections.abc import Callable
from functools import cache
from pathlib import Path

import msgspec

from tidegate.store.sqlite.state import SqliteState

Make = Callable[[Path], None]


@cache
def _made(make: Make) -> Path:
    folder = Path(tempfile.mkdtemp(prefix="tidegate-made-"))
    atexit.register(shutil.rmtree, folder, ignore_errors=True)
    make(folder)
    return folder


def copy_made(make: Make, folder: Path) -> None:
    """Fill `folder` with what `make` made of an empty one. The sources of a state directory `state`
    in it are those of the copy."""
    template = _made(make)
    shutil.copytree(template, folder, dirs_exist_ok=True)
    if not (folder / "state" / "state.db").exists():
        return
    store = SqliteState(folder / "state" / "state.db")
    try:
        for source in store.sources.list():
            url = source.url.replace(str(template), str(folder))
            assert store.sources.change(msgspec.structs.replace(source, url=url), source)
    finally:
        store.close()
