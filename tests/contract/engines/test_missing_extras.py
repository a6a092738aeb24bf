"""A driver that is not installed, or not usable: the error names the extra.

Each case is a child process in which some packages cannot be imported.
"""

import json
import subprocess
import sys

import pytest

from support.eventually import HANG_S
from tidegate.config.installation import add_command
from tidegate.errors import Code

OPENING = """
import asyncio, json, sys

class Absent:
    def __init__(self, names):
        self.names = names
    def find_spec(self, name, path=None, target=None):
        if name.partition(".")[0] in self.names:
            raise ModuleNotFoundError(f"No module named '{name}'", name=name)

url, *absent = sys.argv[1:]
sys.meta_path.insert(0, Absent(absent))
if "psycopg_binary" in absent:  # a psycopg that finds no libpq on the system either
    import ctypes.util
    ctypes.util.find_library = lambda name: None

from tidegate.engines.registry import engine_of, open_engine
from tidegate.errors import TidegateError
from tidegate.model.sources import Source

async def main():
    engine, dialect = engine_of(url)
    try:
        await open_engine(Source("s", "s", url, engine, dialect))
    except TidegateError as error:
        return [error.code.value, error.message, error.hint]

print(json.dumps(asyncio.run(main())))
"""


@pytest.mark.parametrize(
    ("url", "absent", "needed"),
    [
        ("postgresql://nobody@127.0.0.1:1/none", ["psycopg"], "`psycopg`"),
        ("postgresql://nobody@127.0.0.1:1/none", ["psycopg_binary", "psycopg_c"], "a library"),
        ("mysql://nobody@127.0.0.1:1/none", ["asyncmy"], "`asyncmy`"),
        ("duckdb:///none.duckdb", ["duckdb"], "`duckdb`"),
        ("files:///", ["duckdb"], "`duckdb`"),
    ],
)
def test_an_engine_whose_driver_is_missing_names_the_extra(tmp_path, url, absent, needed):
    done = subprocess.run(
        [sys.executable, "-c", OPENING, url, *absent],
        capture_output=True,
        check=True,
        cwd=tmp_path,
        timeout=HANG_S,
    )
    code, message, hint = json.loads(done.stdout)
    scheme = url.partition(":")[0]
    extra = {"postgresql": "postgres", "files": "duckdb"}.get(scheme, scheme)
    assert code == Code.ENGINE_MISSING.value
    assert needed in message
    assert hint == f"Run: {add_command(extra)}"
