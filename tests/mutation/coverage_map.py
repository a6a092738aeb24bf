"""Which test executes which line of the core, recorded once and kept in `.cache/mutation`.

A recording keeps the sources that it saw. A function that has not changed since is looked up line
by line; of one that has, every test that executed some line of it counts. After a change of tests,
only the changed files run again, in a recording of their own.
"""

from __future__ import annotations

import ast
import hashlib
import json
import os
import re
import sqlite3
import subprocess
import sys
from contextlib import closing
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import NamedTuple

import pytest

from mutation.core import ROOT, TESTS, modules
from mutation.mutants import MODULE, Mutant

CACHE = ROOT / ".cache" / "mutation"
RECORDS = "TIDEGATE_MUTATION_RECORDING"
"""The folder that a run of pytest records into."""
SLOW_S = 4.0
"""Tests that take longer with the recorder are not run for each mutant."""


# What runs inside pytest.


class Recorder:
    """The plugin that records: one context of coverage for each test."""

    def __init__(self, folder: Path) -> None:
        import coverage

        self._folder = folder
        self._seconds: dict[str, float] = {}
        self._failed: set[str] = set()
        self._skipped: set[str] = set()
        seen = [*map(str, modules()), str(ROOT / "tests" / "**" / "test_*.py")]
        self._coverage = coverage.Coverage(
            data_file=str(folder / "lines"), include=seen, config_file=False, messages=False
        )
        self._coverage.start()

    @pytest.hookimpl(wrapper=True, tryfirst=True)
    def pytest_runtest_protocol(self, item: pytest.Item):
        self._coverage.switch_context(item.nodeid)
        try:
            return (yield)
        finally:
            self._coverage.switch_context("")

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        name = report.nodeid
        self._seconds[name] = self._seconds.get(name, 0.0) + report.duration
        if report.failed:
            self._failed.add(name)
        if report.skipped:
            self._skipped.add(name)

    def pytest_sessionfinish(self) -> None:
        self._coverage.stop()
        self._coverage.save()
        out = self._failed | self._skipped
        seconds = {name: s for name, s in self._seconds.items() if name not in out}
        (self._folder / "tests.json").write_text(
            json.dumps({"seconds": seconds, "failed": sorted(self._failed)})
        )


def pytest_configure(config: pytest.Config) -> None:
    if folder := os.environ.get(RECORDS):
        config.pluginmanager.register(Recorder(Path(folder)))


# What asks for it.


@dataclass(frozen=True)
class _Function:
    """Where a function stands, and what it says."""

    first: int
    last: int
    digest: str


class Recording:
    """One folder: `lines` (of coverage), `tests.json`, `files.json` and the sources it saw."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        tests = json.loads((folder / "tests.json").read_text())
        self.seconds: dict[str, float] = tests["seconds"]
        self.failed: list[str] = tests["failed"]
        self.files: dict[str, str] = json.loads((folder / "files.json").read_text())
        self._executed: dict[Path, dict[str, frozenset[int]]] = {}
        self._functions: dict[Path, dict[str, _Function]] = {}

    @cached_property
    def _data(self):
        from coverage import CoverageData

        data = CoverageData(basename=str(self.folder / "lines"))
        data.read()
        return data

    @cached_property
    def breadth(self) -> dict[str, int]:
        """How many modules of the core each test executes."""
        with closing(sqlite3.connect(self.folder / "lines")) as data:
            rows = data.execute(
                "SELECT context.context, count(DISTINCT line_bits.file_id) FROM line_bits"
                " JOIN context ON context.id = line_bits.context_id"
                " JOIN file ON file.id = line_bits.file_id WHERE file.path LIKE '%/src/tidegate/%'"
                " GROUP BY context.context"
            )
            return dict(rows.fetchall())

    def executed(self, path: Path) -> dict[str, frozenset[int]]:
        """The lines of a module that each test executed."""
        if path not in self._executed:
            found: dict[str, set[int]] = {}
            self._data.set_query_contexts(None)
            for line, tests in self._data.contexts_by_lineno(str(path)).items():
                for test in tests:
                    found.setdefault(test, set()).add(line)
            self._executed[path] = {test: frozenset(lines) for test, lines in found.items()}
        return self._executed[path]

    def lines_of(self, mutant: Mutant) -> frozenset[int] | None:
        """Where the lines of the mutant were then; None for the whole module."""
        saved = self.folder / _saved(mutant.path)
        if mutant.function == MODULE or not saved.exists():
            return None
        if mutant.path not in self._functions:
            self._functions[mutant.path] = functions(saved.read_bytes())
        then = self._functions[mutant.path].get(mutant.function)
        now = functions(mutant.path.read_bytes())[mutant.function]
        if then is None:
            return None
        if then.digest != now.digest:
            return frozenset(range(then.first + 1, then.last + 1))
        shift = then.first - now.first
        return frozenset(range(mutant.line + shift, mutant.last_line + 1 + shift))

    def idle_assertions(self, path: Path) -> list[int]:
        """The lines of a file of tests that assert something and were never executed."""
        if hashlib.sha256(path.read_bytes()).hexdigest() != self.files[str(path.relative_to(ROOT))]:
            return []
        executed = {line for lines in self.executed(path).values() for line in lines}
        asserted = (
            {node.lineno for node in ast.walk(ast.parse(path.read_bytes()))
             if isinstance(node, ast.Assert)}
        )  # fmt: skip
        return sorted(asserted - executed) if executed else []

    def is_imported(self, mutant: Mutant) -> bool:
        """Whether its lines were executed outside of tests, that is by an import."""
        lines = self.lines_of(mutant)
        return lines is None or not lines.isdisjoint(self.executed(mutant.path).get("", ()))

    def covering(self, mutant: Mutant) -> set[str]:
        """The tests that execute a line of it. Where imports alone do, all that execute its
        module, since what it made then is used by them."""
        lines = self.lines_of(mutant)
        executed = self.executed(mutant.path)
        found = {test for test, those in executed.items() if lines is None or those & lines}
        return {test for test in executed if test} if found == {""} else found - {""}


class Covering(NamedTuple):
    """A test that executes a mutant: how long it took, and how many modules it executes."""

    test: str
    seconds: float
    breadth: int


class CoverageMap:
    """All recordings; of each file of tests the newest counts."""

    def __init__(self) -> None:
        folders = sorted(CACHE.glob("recording-*"), key=lambda each: int(each.name[10:]))
        self._recordings = [Recording(each) for each in folders if (each / "files.json").exists()]
        self._newest: dict[str, Recording] = {}
        for recording in self._recordings:
            there = [name for name in recording.files if (ROOT / name).exists()]
            self._newest.update(dict.fromkeys(there, recording))

    def stale(self) -> list[str]:
        """Files of tests that changed since, or that were never recorded."""
        return [
            name for name, digest in test_files().items()
            if name not in self._newest or self._newest[name].files[name] != digest
        ]  # fmt: skip

    def failed(self) -> list[str]:
        return sorted(
            test for recording in self._recordings for test in recording.failed
            if self._newest.get(_file_of(test)) is recording
        )  # fmt: skip

    def is_imported(self, mutant: Mutant) -> bool:
        return any(recording.is_imported(mutant) for recording in self._recordings)

    def idle_assertions(self) -> list[str]:
        """Assertions of passing tests that no run has reached, as `file:line`."""
        return sorted(
            f"{name}:{line}"
            for name, recording in self._newest.items()
            for line in recording.idle_assertions(ROOT / name)
        )

    def covering(self, mutant: Mutant) -> list[Covering]:
        """The quick tests that execute the mutant. What a module holds is executed by its import,
        that is by the first test alone: the tests of files that hold the word that changes count
        as well, and come first."""
        at_import = mutant.function == MODULE or self.is_imported(mutant)
        naming = self._naming(mutant) if at_import else set[str]()
        return [
            Covering(test, seconds, 0 if test in naming else recording.breadth.get(test, 0))
            for recording in self._recordings
            for test in recording.covering(mutant) | (naming & recording.seconds.keys())
            if self._newest.get(_file_of(test)) is recording
            and (seconds := recording.seconds.get(test, SLOW_S)) < SLOW_S
        ]

    def _naming(self, mutant: Mutant) -> set[str]:
        """The tests of files whose text holds the word that changes."""
        word = re.search(r"\w{4,}", mutant.key[2])
        if word is None or word[0] in ("False", "True", "None"):
            return set()
        files = {name for name in self._newest if word[0] in (ROOT / name).read_text()}
        return {
            test
            for recording in self._recordings
            for test in recording.seconds
            if _file_of(test) in files
        }


def record(files: list[str]) -> None:
    """Run these files of tests and record what they execute."""
    numbers = [int(each.name[10:]) for each in CACHE.glob("recording-*")]
    folder = CACHE / f"recording-{max(numbers, default=0) + 1}"
    folder.mkdir(parents=True)
    for path in modules():
        saved = folder / _saved(path)
        saved.parent.mkdir(parents=True, exist_ok=True)
        saved.write_bytes(path.read_bytes())
    digests = {name: digest for name, digest in test_files().items() if name in files}
    command = (sys.executable, "-m", "pytest", "-p", "mutation.coverage_map", "-n", "0")
    subprocess.run(
        [*command, "-p", "no:cacheprovider", *files], cwd=ROOT, check=False,
        env={**os.environ, RECORDS: str(folder), "PYTHONPATH": str(ROOT / "tests")},
    )  # fmt: skip
    (folder / "files.json").write_text(json.dumps(digests))


def functions(source: bytes) -> dict[str, _Function]:
    """Every function of a module by its qualified name."""
    found: dict[str, _Function] = {}
    lines = source.splitlines()

    def visit(node: ast.AST, prefix: str) -> None:
        for child in ast.iter_child_nodes(node):
            match child:
                case ast.FunctionDef() | ast.AsyncFunctionDef():
                    name = prefix + child.name
                    text = b"\n".join(lines[child.lineno - 1 : child.end_lineno])
                    digest = hashlib.sha256(text).hexdigest()
                    found[name] = _Function(child.lineno, child.end_lineno or 0, digest)
                    visit(child, f"{name}.<locals>.")
                case ast.ClassDef():
                    visit(child, f"{prefix}{child.name}.")
                case _:
                    visit(child, prefix)

    visit(ast.parse(source), "")
    return found


def test_files() -> dict[str, str]:
    """The files of tests that may kill, with a digest of each."""
    return {
        str(path.relative_to(ROOT)): hashlib.sha256(path.read_bytes()).hexdigest()
        for folder in TESTS
        for path in sorted((ROOT / folder).rglob("test_*.py"))
    }


def _file_of(test: str) -> str:
    return test.split("::", 1)[0]


def _saved(path: Path) -> Path:
    return Path("sources") / path.relative_to(ROOT)
