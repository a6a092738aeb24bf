"""What a call crosses is counted: once for each call, on every thread, and only in the package."""

import asyncio
import importlib
import sys
import threading
from collections.abc import Iterator
from pathlib import Path

import pytest
from bench.path import FIGURES, PACKAGE, Entry, Recorder, figures, middle

from bench import grounds, path, workloads
from support.bench_report import shown

EFFORT = workloads.Effort(rounds=1, seconds=0.02, starts=1, memory_calls=0, memory_seconds=1)
ONE = """
import asyncio
from crossed.two import Two, double

async def answer():
    await asyncio.sleep(0)
    values = [double(n) for n in range(2)]
    return values, await Two().wait(), list(map(double, values))
"""
TWO = """
import asyncio

def double(n):
    return 2 * n

class Two:
    def __init__(self):
        self.cell = 1

    async def wait(self):
        def add(n):
            return n + self.cell
        await asyncio.sleep(0)
        return add(1)
"""


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    package = tmp_path / "crossed"
    package.mkdir()
    for name, text in (("__init__", ""), ("one", ONE), ("two", TWO)):
        (package / f"{name}.py").write_text(text)
    monkeypatch.syspath_prepend(tmp_path)
    yield package
    for name in [name for name in sys.modules if name.partition(".")[0] == "crossed"]:
        del sys.modules[name]


def recorder(folder: Path) -> Recorder:
    return Recorder(f"{folder}/")


def test_a_call_is_counted_once_however_often_it_waits(folder: Path) -> None:
    one = importlib.import_module("crossed.one")
    watched = recorder(folder)
    entries: list[Entry] = []

    async def main() -> None:
        watched.start()
        await one.answer()
        entries.extend(watched.stop())

    asyncio.run(main())
    assert [(entry.file, entry.function) for entry in entries] == [
        ("one.py", "answer"),
        ("two.py", "double"),
        ("two.py", "double"),
        ("two.py", "Two.__init__"),
        ("two.py", "Two.wait"),
        ("two.py", "Two.wait.<locals>.add"),
        ("two.py", "double"),
        ("two.py", "double"),
    ]
    assert figures(entries) == {"calls": 8, "functions": 5, "files": 2, "changes of file": 7}


def test_another_thread_is_counted(folder: Path) -> None:
    two = importlib.import_module("crossed.two")
    watched = recorder(folder)
    watched.watch_threads()
    try:
        watched.start()
        thread = threading.Thread(target=two.double, args=(1,))
        thread.start()
        thread.join()
        assert watched.stop() == [Entry("double", "two.py", "")]
        two.double(1)
    finally:
        threading.setprofile(None)  # pyright: ignore[reportArgumentType]


def test_a_call_that_met_other_work_does_not_count() -> None:
    assert middle([{"calls": 7.0}, {"calls": 90.0}, {"calls": 7.0}]) == {"calls": 7}


def test_the_way_through_the_package_is_counted_and_shown(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(grounds, "WORK", tmp_path)

    def some(names=(), wide=()):
        yield from grounds.grounds(names=("SQLite",), wide=wide)
        yield "PostgreSQL: not here"

    monkeypatch.setattr(path, "grounds", some)
    rows = path.path(EFFORT)
    (warm,), (literal,), (shape,) = (
        rows[f"SQLite, {kind}"] for kind in (path.WARM, path.LITERAL, path.SHAPE)
    )
    assert warm.keys() == set(FIGURES)
    assert 10 < warm["files"] <= warm["functions"] <= warm["calls"]
    assert warm["calls"] < literal["calls"] < shape["calls"]
    text = shown({"path": rows})
    assert "| SQLite, warm |" in text
    assert "| PostgreSQL: not here |" in text


def test_nothing_names_a_module_of_the_package() -> None:
    assert path.__file__ is not None
    assert f"{PACKAGE}." not in Path(path.__file__).read_text()
