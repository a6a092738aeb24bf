"""What can happen to a database file under us. Each ends in a coded error; the next call works."""

import shutil
import subprocess
import sys
from contextlib import contextmanager
from pathlib import Path

import apsw
import pytest

from support.eventually import HANG_S
from tidegate.engines.registry import open_engine
from tidegate.errors import Code, TidegateError
from tidegate.model.results import Limits
from tidegate.model.sources import Source
from tidegate.model.statements import Effect

COUNT = "SELECT count(*) FROM items"
POINT = "SELECT name FROM items WHERE id = 3"
ADD = "INSERT INTO void VALUES (1, 'one')"


def path_of(case):
    return Path(case.url.removeprefix("sqlite:///"))


async def code_of(awaitable):
    with pytest.raises(TidegateError) as caught:
        await awaitable
    return caught.value.code


@contextmanager
def locked(path, how):
    """Another process that holds a lock on the file."""
    script = (
        "import apsw, sys\n"
        f"c = apsw.Connection({str(path)!r})\n"
        f"c.execute('BEGIN {how}')\n"
        "c.execute(\"UPDATE items SET name = 'theirs' WHERE id = 3\")\n"
        "print('locked', flush=True)\n"
        "sys.stdin.read()\n"
    )
    other = subprocess.Popen(
        [sys.executable, "-c", script], stdin=subprocess.PIPE, stdout=subprocess.PIPE
    )
    try:
        assert other.stdout.readline() == b"locked\n"
        yield
    finally:
        other.communicate()


async def test_a_lock_of_another_process_is_reported_and_passes(shop):
    shop.source = Source("s1", "shop", f"{shop.url}?timeout=0.1", "sqlite", "sqlite")
    async with shop.opened() as engine:
        with locked(path_of(shop), "EXCLUSIVE"):
            assert await code_of(shop.ask(engine, POINT)) is Code.SOURCE_BUSY
            assert await code_of(shop.ask(engine, ADD, effect=Effect.WRITE)) is Code.SOURCE_BUSY
            assert await code_of(engine.schema_version()) is Code.SOURCE_BUSY
        assert await shop.ask(engine, POINT) == [("item 3",)]
        await shop.ask(engine, ADD, effect=Effect.WRITE)


async def test_waiting_for_a_lock_ends_with_the_time_limit(shop):
    async with shop.opened() as engine:
        with locked(path_of(shop), "EXCLUSIVE"):
            limits = Limits(timeout_s=0.1)
            assert await code_of(shop.ask(engine, COUNT, limits=limits)) is Code.LIMIT_TIME
        assert await shop.ask(engine, COUNT) == [(10,)]


async def test_a_source_opens_while_another_process_writes(shop):
    with locked(path_of(shop), "IMMEDIATE"):
        async with shop.opened() as engine:
            assert await shop.ask(engine, POINT) == [("item 3",)]


async def test_reading_goes_on_beside_a_writer_in_wal_mode(shop):
    connection = apsw.Connection(str(path_of(shop)))
    connection.execute("PRAGMA journal_mode = WAL")
    async with shop.opened() as engine:
        with locked(path_of(shop), "IMMEDIATE"):
            assert await shop.ask(engine, POINT) == [("item 3",)]
            assert await shop.ask(engine, COUNT) == [(10,)]
    connection.close()


async def test_a_replaced_file_is_read_again(shop, tmp_path):
    copy = tmp_path / "copy.db"
    shutil.copy(path_of(shop), copy)
    connection = apsw.Connection(str(copy))
    connection.execute(
        "UPDATE items SET name = 'replaced' WHERE id = 3; DELETE FROM items WHERE id = 4"
    )
    connection.close()
    async with shop.opened() as engine:
        stamp = await engine.schema_version()
        assert await shop.ask(engine, COUNT) == [(10,)]
        copy.replace(path_of(shop))
        assert await shop.ask(engine, POINT) == [("replaced",)]
        assert await shop.ask(engine, COUNT) == [(9,)]
        assert await engine.schema_version() != stamp


async def test_a_removed_file_is_reported_and_found_again(shop, tmp_path):
    async with shop.opened() as engine:
        await shop.ask(engine, POINT)
        away = path_of(shop).rename(tmp_path / "away.db")
        for text in (POINT, COUNT):
            assert await code_of(shop.ask(engine, text)) is Code.SOURCE_UNREACHABLE
        assert not path_of(shop).exists()
        away.rename(path_of(shop))
        assert await shop.ask(engine, POINT) == [("item 3",)]
        assert await shop.ask(engine, COUNT) == [(10,)]


async def test_a_file_replaced_by_something_else_is_reported(shop, tmp_path):
    good = path_of(shop).read_bytes()
    async with shop.opened() as engine:
        await shop.ask(engine, POINT)
        for content in (b"Dear Sir or Madam, " * 400, good):
            other = tmp_path / "other"
            other.write_bytes(content)
            other.replace(path_of(shop))
            if content is good:
                assert await shop.ask(engine, POINT) == [("item 3",)]
            else:
                assert await code_of(shop.ask(engine, POINT)) is Code.SOURCE_URL
                assert await code_of(shop.ask(engine, POINT)) is Code.SOURCE_URL


async def test_damaged_pages_are_reported_and_whole_ones_are_still_read(shop):
    path = path_of(shop)
    connection = apsw.Connection(str(path))
    page = connection.execute("SELECT rootpage FROM sqlite_schema WHERE name = 'parts'").get
    connection.close()
    content = bytearray(path.read_bytes())
    content[(page - 1) * 4096 : page * 4096] = b"\xa5" * 4096
    path.write_bytes(content)
    async with shop.opened() as engine:
        for _ in range(3):
            text = "SELECT item_id FROM parts"
            assert await code_of(shop.ask(engine, text)) is Code.SOURCE_UNREACHABLE
            assert await shop.ask(engine, POINT) == [("item 3",)]
            assert await shop.ask(engine, COUNT) == [(10,)]
        counts = await shop.browse(engine, "counts")
        assert ("main", "items") in counts.rows
        assert ("main", "parts") not in counts.rows


async def test_a_file_cut_short_is_reported(shop):
    path = path_of(shop)
    path.write_bytes(path.read_bytes()[:5000])
    assert await code_of(open_engine(shop.source)) is Code.SOURCE_UNREACHABLE


async def test_a_change_that_a_crash_cut_off_is_reported(shop):
    path = path_of(shop)
    crash = (
        "import apsw, os\n"
        f"c = apsw.Connection({str(path)!r})\n"
        "c.execute('PRAGMA cache_size = 1')\n"
        "c.execute('BEGIN')\n"
        "c.execute('INSERT INTO void SELECT id, hex(randomblob(50000)) FROM items')\n"
        "os._exit(1)\n"
    )
    async with shop.opened() as engine:
        assert await shop.ask(engine, POINT) == [("item 3",)]
        subprocess.run([sys.executable, "-c", crash], check=False)
        for text in (POINT, COUNT):
            assert await code_of(shop.ask(engine, text)) is Code.SOURCE_UNREACHABLE
        assert await code_of(open_engine(shop.source)) is Code.SOURCE_UNREACHABLE
        connection = apsw.Connection(str(path))
        assert connection.execute("SELECT count(*) FROM void").fetchall() == [(0,)]
        connection.close()
        assert await shop.ask(engine, POINT) == [("item 3",)]
        assert await shop.ask(engine, COUNT) == [(10,)]


FULL_DISK = """
import asyncio, resource, signal, sys
sys.path.insert(0, sys.argv[1])
from pathlib import Path
from support.engine_cases import CASES
from tidegate.errors import TidegateError
from tidegate.model.statements import Effect

async def main():
    case = CASES["sqlite"].prepare(Path(sys.argv[2]))
    path = Path(case.url.removeprefix("sqlite:///"))
    signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
    async with case.opened() as engine:
        hard = resource.getrlimit(resource.RLIMIT_FSIZE)[1]
        resource.setrlimit(resource.RLIMIT_FSIZE, (path.stat().st_size + 8192, hard))
        fill = "INSERT INTO void SELECT id + 100, hex(randomblob(100000)) FROM items"
        try:
            await case.ask(engine, fill, effect=Effect.WRITE)
            print("no error")
        except TidegateError as error:
            print(error.code.value)
        print(await case.ask(engine, "SELECT count(*) FROM void"))
        resource.setrlimit(resource.RLIMIT_FSIZE, (hard, hard))
        await case.ask(engine, fill, effect=Effect.WRITE)
        print(await case.ask(engine, "SELECT count(*) FROM void"))
        print(await case.ask(engine, "PRAGMA integrity_check"))

asyncio.run(main())
"""


def test_a_full_disk_changes_nothing_and_passes(tmp_path):
    tests = Path(__file__).parents[2]
    reported = subprocess.run(
        [sys.executable, "-c", FULL_DISK, str(tests), str(tmp_path)],
        capture_output=True,
        text=True,
        check=True,
        timeout=HANG_S,
    )
    assert reported.stdout.splitlines() == [
        "source.unreachable",
        "[(0,)]",
        "[(10,)]",
        "[('ok',)]",
    ]
