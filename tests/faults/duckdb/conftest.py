"""A DuckDB shop, and ways to change it from outside."""

import subprocess
import sys
from contextlib import contextmanager
from pathlib import Path

import pytest

from support.engine_cases import CASES
from tidegate.model.sources import Source


@pytest.fixture
def shop(tmp_path):
    """The shop, with two statements at once and a short wait for locks."""
    case = CASES["duckdb"].prepare(tmp_path)
    case.path = Path(case.url.removeprefix("duckdb:///"))
    case.source = Source("s1", "shop", f"{case.url}?timeout=0.1&workers=2", "duckdb", "duckdb")
    return case


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
