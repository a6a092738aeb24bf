"""A DuckDB shop, and ways to change it from outside."""

import subprocess
import sys
from contextlib import contextmanager
from pathlib import Path

import pytest

from support.engine_cases import CASES
from support.eventually import PATIENCE_S
from tidegate.model.sources import Source


@pytest.fixture
def shop(tmp_path):
    """The shop, with two statements at once. A process that was killed may hold its lock for a
    while: who asks next waits for it."""
    case = CASES["duckdb"].prepare(tmp_path)
    case.path = Path(case.url.removeprefix("duckdb:///"))
    url = f"{case.url}?timeout={PATIENCE_S}&workers=2"
    case.source = Source("s1", "shop", url, "duckdb", "duckdb")
    return case


@pytest.fixture
def hurried_shop(shop):
    """The same, and no one waits for a lock."""
    url = f"{shop.url}?timeout=0.1&workers=2"
    shop.source = Source("s1", "shop", url, "duckdb", "duckdb")
    return shop


@pytest.fixture
def opened_elsewhere():
    """Another process that has the file open, to write it or to read it."""

    @contextmanager
    def opened(path, *, read_only):
        script = (
            "import duckdb, sys\n"
            f"c = duckdb.connect({str(path)!r}, read_only={read_only})\n"
            "print('open', flush=True)\n"
            "sys.stdin.read()\n"
        )
        other = subprocess.Popen(
            [sys.executable, "-c", script], stdin=subprocess.PIPE, stdout=subprocess.PIPE
        )
        try:
            assert other.stdout.readline() == b"open\n"
            yield other.pid
        finally:
            other.communicate()

    return opened
