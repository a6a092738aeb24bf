"""What every test runs under."""

from __future__ import annotations

import asyncio
import gc
import inspect
import os
import signal
import sys
import tempfile
from collections.abc import Generator
from pathlib import Path

import pytest
from hypothesis import HealthCheck, settings

import tiers
import without
from support import off_loop
from support.cheap_hashes import make_hashes_cheap
from support.eventually import HANG_S
from support.quick_starts import start_quickly
from support.state_template import copy_states

# The tests start hundreds of processes, which would each compile the package again where the
# environment says that no bytecode is written.
sys.dont_write_bytecode = False
os.environ.pop("PYTHONDONTWRITEBYTECODE", None)

# Thousands of tests make a state, a log and databases, which are synced to disk at every change. In
# memory that costs nothing. A person's choice of a place stays.
MEMORY = Path("/dev/shm")
MEMORY_BYTES = 4 * 1024**3
"""What must be free there; a run with two workers takes a third of it."""


def _keep_files_in_memory() -> None:
    if {"TMPDIR", "PYTEST_DEBUG_TEMPROOT"} & os.environ.keys() or not os.access(MEMORY, os.W_OK):
        return
    about = os.statvfs(MEMORY)
    if about.f_bavail * about.f_frsize >= MEMORY_BYTES and not about.f_flag & os.ST_NOEXEC:
        os.environ["TMPDIR"] = str(MEMORY)
        tempfile.tempdir = None


_keep_files_in_memory()
make_hashes_cheap()
off_loop.install()
start_quickly()
copy_states()

# No time limit on an example, nor on making one: a loaded machine is slow, and slowness is measured
# in bench/. The same examples in each run: a change is judged by what it changes. Others are looked
# for with `./dev test --hypothesis-profile=hunt`.
settings.register_profile(
    "repeatable",
    deadline=None,
    database=None,
    derandomize=True,
    suppress_health_check=[HealthCheck.too_slow],
)
settings.register_profile("hunt", settings.get_profile("repeatable"), derandomize=False)
settings.load_profile("repeatable")

# A shell starts what runs in its background with SIGINT ignored, and children inherit that: a
# command that a test interrupts would never end.
if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:
    signal.signal(signal.SIGINT, signal.default_int_handler)


def pytest_addoption(parser: pytest.Parser) -> None:
    tiers.add_option(parser)
    without.add_option(parser)


def pytest_ignore_collect(collection_path: Path, config: pytest.Config) -> bool | None:
    if config.option.quick and tiers.is_whole(collection_path):
        return True
    absent = config.option.without
    is_test = absent and collection_path.match("test_*.py")
    return True if is_test and without.file_needs(collection_path, absent) else None


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    if config.option.quick:
        tiers.choose(config, items)
    if config.option.without:
        without.choose(config, items)


def pytest_runtest_logreport(report: pytest.TestReport) -> None:
    """Name a test when it fails: a run that is ended from outside says nothing at its end."""
    if report.failed and "PYTEST_XDIST_WORKER" not in os.environ:
        reason = str(report.longrepr).rstrip().rsplit("\n", 1)[-1][:500]
        print(f"\nFAILED {report.nodeid} ({report.when}) {reason}", flush=True)


@pytest.hookimpl(wrapper=True)
def pytest_collection() -> Generator[None, object, object]:
    """What is collected stays to the end: the garbage collector need not look through it, neither
    while it grows nor at each test."""
    gc.disable()
    try:
        return (yield)
    finally:
        gc.freeze()
        gc.enable()


@pytest.hookimpl(tryfirst=True)
def pytest_pyfunc_call(pyfuncitem: pytest.Function) -> bool | None:
    """Give each coroutine test a loop of its own."""
    if not inspect.iscoroutinefunction(pyfuncitem.obj):
        return None
    names = inspect.signature(pyfuncitem.obj).parameters
    test = pyfuncitem.obj(**{name: pyfuncitem.funcargs[name] for name in names})
    asyncio.run(asyncio.wait_for(test, HANG_S))
    return True
