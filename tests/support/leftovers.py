"""A plugin that fails the test which leaves something behind: `./dev test -p support.leftovers`.

What a test leaves open (a socket, a pipe, a process, a task) is otherwise found by the garbage
collector, at some time, during some other test. Here it collects after each test, which takes a few
times longer, so the plugin is not part of a usual run. A process or a thread that a module leaves
running is named at the module's end.
"""

from __future__ import annotations

import gc
import sys
import threading
from collections.abc import Generator
from pathlib import Path

import pytest

_SHARED = ("support/", "support.", "multiprocessing.")
"""Parts of the command lines of what is kept until the tests end."""


def _processes() -> dict[int, str]:
    found: dict[int, str] = {}
    for task in Path("/proc/self/task").iterdir():
        try:
            for number in (task / "children").read_text().split():
                line = Path(f"/proc/{number}/cmdline").read_bytes().replace(b"\0", b" ")
                found[int(number)] = line.decode(errors="replace")
        except (FileNotFoundError, ProcessLookupError):
            continue  # ended meanwhile
    return {number: line for number, line in found.items() if not _is_shared(line)}


def _is_shared(line: str) -> bool:
    return any(part in line for part in _SHARED)


def _collect() -> list[str]:
    """Collect garbage, and what it complained about."""
    found: list[str] = []
    before = sys.unraisablehook
    sys.unraisablehook = lambda fault: found.append(f"{fault.exc_value!r} in {fault.object!r}")
    try:
        gc.collect()
    finally:
        sys.unraisablehook = before
    return found


class Leftovers:
    def __init__(self) -> None:
        self._module = ""
        self._threads: set[threading.Thread] = set()
        self._processes: set[int] = set()

    @pytest.hookimpl(wrapper=True, tryfirst=True)
    def pytest_runtest_protocol(self, item: pytest.Item) -> Generator[None, object, object]:
        if self._module != item.nodeid.partition("::")[0]:
            self._module = item.nodeid.partition("::")[0]
            self._threads = set(threading.enumerate())
            self._processes = set(_processes())
        return (yield)

    @pytest.hookimpl(wrapper=True, tryfirst=True)
    def pytest_runtest_teardown(
        self, item: pytest.Item, nextitem: pytest.Item | None
    ) -> Generator[None, object, object]:
        result = yield
        found = _collect()
        assert not found, f"{item.nodeid} leaves {found}"
        if nextitem is None or nextitem.nodeid.partition("::")[0] != self._module:
            threads = [each.name for each in threading.enumerate() if each not in self._threads]
            processes = {k: v for k, v in _processes().items() if k not in self._processes}
            assert not threads and not processes, f"{self._module} leaves {threads} {processes}"
        return result


def pytest_configure(config: pytest.Config) -> None:
    config.pluginmanager.register(Leftovers())
