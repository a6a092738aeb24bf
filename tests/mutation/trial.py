"""The trial of a mutant: the tests that execute it run, in a process of their own.

A mutant inside a function is planted by exchanging the code of the living function, in a fork of a
process that has collected the tests already. Every other mutant (a constant of a module, a default
value, what is executed while modules are imported) needs a fresh import, in a fork of a process
that has imported third-party packages only. No file is changed.
"""

from __future__ import annotations

import functools
import gc
import importlib
import importlib.machinery
import importlib.util
import json
import os
import select
import signal
import sys
import time
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from functools import partial
from importlib.abc import MetaPathFinder
from itertools import count
from pathlib import Path
from types import CodeType, FunctionType
from typing import TypeGuard

import pytest

from mutation.core import ROOT, module_name, modules
from mutation.mutants import MODULE, Mutant

START_S = 90.0
"""How long a trial may take beside its tests."""
NOT_PLANTED = "no living function has the code of the mutant"
SLOWNESS = 8
"""How many times longer than recorded the tests of a trial may take."""
_ARGUMENTS = (
    "-s", "-n", "0", "-p", "no:cacheprovider", "-p", "no:terminalreporter",
    f"--rootdir={ROOT}", f"--basetemp={ROOT / '.cache' / 'mutation' / 'temporary'}",
)  # fmt: skip


@dataclass(frozen=True)
class Result:
    status: str
    """killed, timed-out or survived; uncovered where no test executes it."""
    by: str = ""


class NotPlantedError(Exception):
    """A mutant could not be planted: a fault of these trials, which must not count as killed."""


@dataclass(frozen=True)
class Work:
    mutant: Mutant
    tests: tuple[str, ...]
    seconds: float

    @property
    def files(self) -> list[str]:
        return sorted({test.split("::", 1)[0] for test in self.tests})


# Both ways.


def _in_fork(run: Callable[[Callable[[str], None]], None], seconds: float) -> Result:
    """Run this in a fork; what it says with the function given to it is the test that failed."""
    reading, writing = os.pipe()
    child = os.fork()
    if child == 0:
        os.setpgid(0, 0)
        os.close(reading)
        nothing = os.open(os.devnull, os.O_RDWR)
        for descriptor in (0, 1, 2):
            os.dup2(nothing, descriptor)
        try:
            _use_databases_of_this_process()
            run(partial(_say, writing))
        except NotPlantedError:
            os.write(writing, NOT_PLANTED.encode() + b"\n")
        except BaseException as problem:  # noqa: BLE001  the mutant may raise anything anywhere
            os.write(writing, f"{type(problem).__name__}: {problem}"[:500].encode() + b"\n")
        os._exit(0)
    os.close(writing)
    said, end = b"", time.monotonic() + seconds
    ended = False
    while not ended and b"\n" not in said and (left := end - time.monotonic()) > 0:
        if select.select([reading], [], [], left)[0]:
            chunk = os.read(reading, 4096)
            said += chunk
            ended = not chunk
    os.close(reading)
    try:
        os.killpg(child, signal.SIGKILL)
    except (ProcessLookupError, PermissionError):
        os.kill(child, signal.SIGKILL)
    os.waitpid(child, 0)
    if said:
        by = said.split(b"\n")[0].decode(errors="replace")
        if by == NOT_PLANTED:
            raise NotPlantedError(by)
        return Result("killed", by)
    return Result("survived" if ended else "timed-out")


def _say(descriptor: int, test: str) -> None:
    os.write(descriptor, test.encode() + b"\n")


def _use_databases_of_this_process() -> None:
    """Forks share the servers that were started before; their databases need other names."""
    for name in ("support.postgres_server", "support.mysql_server"):
        module = sys.modules.get(name)
        if module is not None and hasattr(module, "_numbers"):
            vars(module)["_numbers"] = count(os.getpid() * 1000)


def limit_of(work: Work) -> float:
    return START_S + SLOWNESS * work.seconds


# By exchanging code, among collected tests.


class Exchange:
    """A plugin of pytest that makes the trials instead of running what was collected."""

    def __init__(self, works: list[Work], tell: Callable[[Mutant, Result], None]) -> None:
        self._works = works
        self._tell = tell
        self._passes: dict[str, bool] = {}
        self._functions: dict[str, list[FunctionType]] = {}
        self._caches: list[functools._lru_cache_wrapper] = []

    def pytest_collection(self) -> None:
        for path in modules():
            importlib.import_module(module_name(path))

    def pytest_runtestloop(self, session: pytest.Session) -> bool:
        gc.unfreeze()  # what the collection has frozen is not listed
        for each in gc.get_objects():
            if isinstance(each, FunctionType) and each.__code__.co_filename.startswith(str(ROOT)):
                self._functions.setdefault(each.__code__.co_filename, []).append(each)
            elif _is_cache(each) and str(each.__module__).startswith("tidegate"):
                self._caches.append(each)
        items = {item.nodeid: item for item in session.items}
        for work in self._works:
            self._tell(work.mutant, self._result(work, items))
        return True

    def _result(self, work: Work, items: dict[str, pytest.Item]) -> Result:
        chosen = [items[test] for test in work.tests if test in items]
        while True:
            planted = functools.partial(self._run, chosen, work.mutant)
            result = _in_fork(planted, limit_of(work))
            if result.status != "killed" or self._passes_unchanged(result.by, items):
                return result
            chosen = [item for item in chosen if item.nodeid != result.by]

    def _passes_unchanged(self, test: str, items: dict[str, pytest.Item]) -> bool:
        """Whether a test that failed passes without the mutant."""
        if test not in items:
            return True
        if test not in self._passes:
            alone = functools.partial(self._run, [items[test]], None)
            self._passes[test] = _in_fork(alone, START_S).status == "survived"
        return self._passes[test]

    def _run(
        self, chosen: list[pytest.Item], mutant: Mutant | None, fail: Callable[[str], None]
    ) -> None:
        if mutant is not None:
            self._plant(mutant)
        for cache in self._caches:
            cache.cache_clear()
        for item, following in zip(chosen, [*chosen[1:], None], strict=True):
            item.config.pluginmanager.register(Failures(fail), "failures")
            item.config.hook.pytest_runtest_protocol(item=item, nextitem=following)
            item.config.pluginmanager.unregister(name="failures")

    def _plant(self, mutant: Mutant) -> None:
        source = mutant.path.read_bytes()
        new = dict(exchanged(source, mutant.applied(source), str(mutant.path)))
        planted = 0
        for function in self._functions.get(str(mutant.path), ()):
            code = new.get((function.__qualname__, function.__code__.co_firstlineno))
            if code is not None and code != function.__code__:
                function.__code__ = code
                planted += 1
        if not planted:
            raise NotPlantedError


def _is_cache(value: object) -> TypeGuard[functools._lru_cache_wrapper]:
    return isinstance(value, functools._lru_cache_wrapper)


def exchanged(before: bytes, after: bytes, path: str) -> Iterator[tuple[tuple[str, int], CodeType]]:
    """The code of each function after the change, by its name and where it stood before."""
    pairs = [(compile(before, path, "exec"), compile(after, path, "exec"))]
    while pairs:
        old, new = pairs.pop()
        olds, news = _nested(old), _nested(new)
        if [each.co_name for each in olds] == [each.co_name for each in news]:
            pairs.extend(zip(olds, news, strict=True))
        yield (old.co_qualname, old.co_firstlineno), new


def _nested(code: CodeType) -> list[CodeType]:
    return [each for each in code.co_consts if isinstance(each, CodeType)]


class Failures:
    """A plugin that says which test failed, at once."""

    def __init__(self, fail: Callable[[str], None]) -> None:
        self._fail = fail

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        if report.failed:
            self._fail(report.nodeid)

    def pytest_collectreport(self, report: pytest.CollectReport) -> None:
        if report.failed:
            self._fail(f"collection of {report.nodeid}")


def can_exchange(mutant: Mutant) -> bool:
    """Whether code of living functions can take the mutant."""
    if mutant.function == MODULE:
        return False
    source = mutant.path.read_bytes()
    path = str(mutant.path)
    free = {key: code.co_freevars for key, code in exchanged(source, source, path)}
    return all(
        free[key] == code.co_freevars
        for key, code in exchanged(source, mutant.applied(source), path)
    )


def exchange_all(works: list[Work], tell: Callable[[Mutant, Result], None]) -> None:
    """Try all of these in a process that collects once. `tell` is called in this one."""
    if not works:
        return
    reading, writing = os.pipe()
    child = os.fork()
    by_number = {number: work.mutant for number, work in enumerate(works)}
    if child == 0:
        os.close(reading)
        numbers = {id(mutant): number for number, mutant in by_number.items()}

        def send(mutant: Mutant, result: Result) -> None:
            line = json.dumps([numbers[id(mutant)], result.status, result.by])
            os.write(writing, line.encode() + b"\n")

        files = sorted({file for work in works for file in work.files})
        code = pytest.main([*_ARGUMENTS, *files], plugins=[Exchange(works, send)])
        os._exit(int(code))
    os.close(writing)
    with os.fdopen(reading) as lines:
        for line in lines:
            number, status, by = json.loads(line)
            tell(by_number[number], Result(status, by))
    _, status = os.waitpid(child, 0)
    if status:
        raise SystemExit(f"collecting the tests failed with status {status}")


# By a fresh import.


class _Chosen:
    """A plugin that keeps the tests of one trial, in their order."""

    def __init__(self, tests: Iterable[str]) -> None:
        self._tests = tuple(tests)

    def pytest_collection_modifyitems(self, items: list[pytest.Item]) -> None:
        found = {item.nodeid: item for item in items}
        items[:] = [found[test] for test in self._tests if test in found]


class _Planted(importlib.machinery.SourceFileLoader):
    def __init__(self, mutant: Mutant) -> None:
        super().__init__(module_name(mutant.path), str(mutant.path))
        self._mutant = mutant

    def get_code(self, fullname: str) -> CodeType:
        source = self._mutant.applied(self._mutant.path.read_bytes())
        return compile(source, str(self._mutant.path), "exec")


class _Finder(MetaPathFinder):
    def __init__(self, mutant: Mutant) -> None:
        self._mutant = mutant

    def find_spec(self, fullname, path, target=None):
        if fullname != module_name(self._mutant.path):
            return None
        loader = _Planted(self._mutant)
        return importlib.util.spec_from_file_location(fullname, self._mutant.path, loader=loader)


_unchanged: dict[str, bool] = {}


def import_anew(work: Work) -> Result:
    """Try one mutant with modules that are imported after it was planted."""
    tests = list(work.tests)
    while True:
        result = _in_fork(functools.partial(_run_fresh, tests, work.mutant), limit_of(work))
        if result.status != "killed" or "::" not in result.by:
            return result
        if result.by not in _unchanged:
            alone = functools.partial(_run_fresh, [result.by], None)
            _unchanged[result.by] = _in_fork(alone, START_S).status == "survived"
        if _unchanged[result.by]:
            return result
        tests.remove(result.by)


def _run_fresh(tests: list[str], mutant: Mutant | None, fail: Callable[[str], None]) -> None:
    if any(name.split(".")[0] == "tidegate" for name in sys.modules):
        raise AssertionError("tidegate was imported before the mutant was planted")
    if mutant is not None:
        sys.meta_path.insert(0, _Finder(mutant))
    files = sorted({test.split("::", 1)[0] for test in tests})
    code = pytest.main([*_ARGUMENTS, "-x", *files], plugins=[_Chosen(tests), Failures(fail)])
    if code not in (pytest.ExitCode.OK, pytest.ExitCode.NO_TESTS_COLLECTED):
        fail(f"pytest ended with {code!r}")


def prepare(tests: Iterable[str]) -> None:
    """Import what trials need and never change; start the servers that these tests ask for."""
    for name in (
        "sqlglot", "apsw", "msgspec", "psycopg", "duckdb", "asyncmy", "cryptography",
        "httptools", "uvloop", "yaml", "jsonschema", "httpx", "platformdirs", "tomllib",
    ):  # fmt: skip
        importlib.import_module(name)
    texts = {Path(ROOT / test.split("::", 1)[0]) for test in tests}
    if not any(_needs_servers(path) for path in texts):
        return
    from support import mysql_server, postgres_server

    if postgres_server.available():
        postgres_server.shared()
    if mysql_server.available():
        mysql_server.shared()


def _needs_servers(path: Path) -> bool:
    conftest = path.parent / "conftest.py"
    texts = [each.read_text() for each in (path, conftest) if each.exists()]
    return any("engine_cases" in text or "_server" in text for text in texts)
