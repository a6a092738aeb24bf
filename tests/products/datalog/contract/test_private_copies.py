"""The strict mode: a directory that is only read keeps each of its bytes."""

from __future__ import annotations

import asyncio
import hashlib
import os
import signal
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from support.datalog import NEVER, Datalog, Opened
from tidegate.errors import Code, TidegateError
from tidegate.model.results import Limits
from tidegate.products.datalog.engine import private_copies
from tidegate.products.datalog.engine.library import find_library
from tidegate.products.datalog.engine.startup_cache import StartupCache
from tidegate.products.datalog.engine.url import place_of
from tidegate.products.datalog.engine.workers import HEAP, Worker

NAMES = "[:find [?n ...] :where [_ :name ?n]]"


def state_of(directory: Path) -> dict[str, tuple[str, int, int]]:
    """A hash of each file, and the time and number under which the system has it."""
    return {
        path.name: (
            hashlib.sha256(path.read_bytes()).hexdigest(),
            path.stat().st_mtime_ns,
            path.stat().st_ino,
        )
        for path in directory.iterdir()
    }


@pytest.fixture(autouse=True)
def root(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Where the copies are: a place of the test's own."""
    root = tmp_path / "copies"
    monkeypatch.setattr(private_copies, "copies_root", lambda: root)
    return root


def copies(root: Path) -> list[Path]:
    return sorted(root.glob("*/copy-*"))


@pytest.fixture
def directory(datalog: Datalog, tmp_path: Path) -> Path:
    """A database that no process has open."""
    people = datalog.make(tmp_path / "people")
    people.ask("open_kv", "kv", create=True)
    people.ask("kv_transact", "kv", create=True, dbi="notes", txs=[[":put", 1, "one"]])
    people.close()
    return tmp_path / "people"


@pytest.fixture
def application(datalog: Datalog) -> Iterator[Worker]:
    """Another program that uses the directory."""
    worker = Worker(StartupCache(find_library()), HEAP)
    yield worker
    datalog.run(worker.close())


def change(datalog: Datalog, application: Worker, directory: Path, facts: Any) -> None:
    place = place_of(f"datalevin://{directory}")
    request = {
        "operation": "transact",
        "place": place.name,
        "target": {"kind": "database", "options": {}, "client": {}},
        "arguments": {"txData": facts},
        "writes?": True,
        "most": 200,
    }
    datalog.run(application.ask(request, place, 60.0, NEVER, changes=True))


def read_all(source: Opened) -> None:
    """One of each operation that reads, and refusals of those that write."""
    source.ask("open_database")
    assert len(source.query(NAMES)) == 4
    source.ask("pull", selector=["*"], eid=1)
    source.ask("pull_many", selector=["*"], eids=[1, 2])
    source.ask("entity", eid=1)
    source.ask("datoms", index="eav")
    source.ask("search_datoms", a=":name")
    source.ask("count_datoms")
    source.ask("fulltext_datoms", query="red")
    source.catalog()
    source.ask("open_kv", "kv")
    assert source.ask("kv_get", "kv", dbi="notes", key=1) == "one"
    source.ask("kv_range", "kv", dbi="notes", keyRange=[":all"])
    source.ask("stat", "kv")
    for operation, kind, arguments in (
        ("transact", "database", {"txData": [{":name": "Eve"}]}),
        ("open_database", "database", {"create": True}),
        ("kv_transact", "kv", {"dbi": "notes", "txs": [[":del", 1]]}),
        ("kv_get", "kv", {"dbi": "absent", "key": 1}),
        ("open_search_index", "search_index", {"options": {":domain": "new"}}),
    ):
        source.refused(operation, kind, **arguments)


def test_not_a_byte_of_the_directory_changes(datalog: Datalog, directory: Path) -> None:
    before = state_of(directory)
    held = datalog.open(directory, private_copy_mb="64")
    read_all(held)
    assert state_of(directory) == before
    held.close()
    assert state_of(directory) == before
    # Without it the first opening changes files, which is why there is a strict mode.
    read_all(datalog.open(directory))
    assert state_of(directory) != before


def test_a_directory_that_may_not_be_written_can_be_read(datalog: Datalog, directory: Path) -> None:
    (directory / "lock.mdb").unlink()
    source = datalog.open(directory, private_copy_mb="64")
    assert len(source.query(NAMES)) == 4
    assert not (directory / "lock.mdb").exists()


def test_clients_share_one_copy_which_is_private_and_removed_with_the_last(
    datalog: Datalog, directory: Path, root: Path
) -> None:
    first = datalog.open(directory, private_copy_mb="64")
    second = datalog.open(directory, private_copy_mb="64")
    assert first.query(NAMES) == second.query(NAMES)
    (copy,) = copies(root)
    assert copy.stat().st_mode & 0o777 == 0o700
    assert root.stat().st_mode & 0o777 == 0o700
    first.close()
    assert copy.exists()
    assert len(second.query(NAMES)) == 4
    second.close()
    assert list(root.iterdir()) == []


def test_a_read_follows_a_change_by_another_program(
    datalog: Datalog, application: Worker, directory: Path, root: Path
) -> None:
    source = datalog.open(directory, private_copy_mb="64")
    assert len(source.query(NAMES)) == 4
    for number in range(3):
        change(datalog, application, directory, [{":name": f"new {number}"}])
        # Without a wait: the next read has it.
        assert f"new {number}" in source.query(NAMES)
    assert len(copies(root)) == 1


def test_each_copy_is_whole_while_another_program_writes(
    datalog: Datalog, application: Worker, tmp_path: Path
) -> None:
    """Each transaction adds a pair, so a copy of one moment has an even number of facts."""
    directory = tmp_path / "pairs"
    made = datalog.open(directory, "write")
    made.ask("open_database", create=True, schema={":n": {":db/valueType": ":db.type/long"}})
    made.close()
    source = datalog.open(directory, private_copy_mb="64")
    place = place_of(f"datalevin://{directory}")

    def pair(number: int) -> dict[str, Any]:
        return {
            "operation": "transact",
            "place": place.name,
            "target": {"kind": "database", "options": {}, "client": {}},
            "arguments": {"txData": [{":n": number}, {":n": number}]},
            "writes?": True,
            "most": 200,
        }

    async def write() -> None:
        for number in range(100):
            await application.ask(pair(number), place, 60.0, NEVER, changes=True)

    async def read() -> list[int]:
        found: list[int] = []
        writing = asyncio.create_task(write())
        while not writing.done():
            try:
                request = source.permit(_count_request())
                document: Any = await source.engine.run(request, NEVER)
                found.append(int(document.json))
            except TidegateError as error:
                assert error.code is Code.SOURCE_BUSY
            await asyncio.sleep(0)
        await writing
        return found

    found = datalog.run(read())
    assert found
    assert all(count % 2 == 0 for count in found)
    assert found == sorted(found)
    assert source.ask("count_datoms", a=":n") == 200


def _count_request() -> Any:
    from tidegate.products.datalog.requests import DatalogOperation, DatalogRequest, DatalogTarget

    return DatalogRequest(
        operation=DatalogOperation.COUNT_DATOMS,
        target=DatalogTarget("database"),
        arguments={"a": ":n"},
    )


def test_a_killed_worker_reads_the_copy_again(datalog: Datalog, directory: Path) -> None:
    source = datalog.open(directory, private_copy_mb="64")
    before = state_of(directory)
    assert len(source.query(NAMES)) == 4
    os.kill(source.engine._worker.pid, signal.SIGKILL)
    assert len(source.query(NAMES)) == 4
    assert state_of(directory) == before


def test_what_a_killed_process_left_is_removed(
    datalog: Datalog, directory: Path, root: Path
) -> None:
    left = [root / "killed", root / ".new-killed", root / ".new-beginning"]
    for path in left:
        (path / "copy-1").mkdir(parents=True)
        (path / "copy-1" / "data.mdb").write_bytes(b"x" * 1000)
    (left[0] / "held").touch()
    os.utime(left[1], (1, 1))
    source = datalog.open(directory, private_copy_mb="64")
    assert len(source.query(NAMES)) == 4
    assert [path.exists() for path in left] == [False, False, True]


def test_a_copy_has_a_limit_and_leaves_room(
    datalog: Datalog, directory: Path, root: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with (directory / "data.mdb").open("r+b") as file:
        file.seek(0, os.SEEK_END)
        file.write(b"x" * 2 * 1024 * 1024)
    source = datalog.open(directory, private_copy_mb="1")
    assert source.refused("query", query=NAMES).code is Code.LIMIT_BYTES
    source.close()
    monkeypatch.setattr(private_copies, "ROOM_LEFT", 1 << 60)
    source = datalog.open(directory, private_copy_mb="64")
    assert source.refused("query", query=NAMES).code is Code.STATE_FAILED
    source.close()
    assert list(root.iterdir()) == []


def test_a_write_ahead_log_is_refused(datalog: Datalog, directory: Path) -> None:
    (directory / "txlog").mkdir()
    source = datalog.open(directory, private_copy_mb="64")
    error = source.refused("query", query=NAMES)
    assert error.code is Code.UNSUPPORTED
    assert "txlog" in error.message


def test_a_copy_that_is_late_serves_the_next_request(datalog: Datalog, directory: Path) -> None:
    source = datalog.open(directory, private_copy_mb="64")
    error = source.refused("query", query=NAMES, limits=Limits(timeout_s=1e-9))
    assert error.code is Code.LIMIT_TIME
    assert len(source.query(NAMES)) == 4


@pytest.mark.parametrize("value", ["", "0", "-1", "1.5", "many", "9" * 12, "²"])
def test_the_limit_is_a_number_of_megabytes(datalog: Datalog, directory: Path, value: str) -> None:
    with pytest.raises(TidegateError) as caught:
        datalog.open(directory, private_copy_mb=value)
    assert caught.value.code is Code.CONFIG_INVALID


def test_what_may_be_written_has_no_copy(datalog: Datalog, directory: Path) -> None:
    with pytest.raises(TidegateError) as caught:
        datalog.open(directory, "write", private_copy_mb="64")
    assert caught.value.code is Code.CONFIG_INVALID
    with pytest.raises(TidegateError) as caught:
        datalog.open("dtlv://127.0.0.1:1/facts", private_copy_mb="64")
    assert caught.value.code is Code.CONFIG_INVALID


def test_a_sparse_file_is_copied_without_its_holes(
    datalog: Datalog, directory: Path, root: Path
) -> None:
    os.truncate(directory / "data.mdb", 1 << 33)
    source = datalog.open(directory, private_copy_mb="64")
    assert len(source.query(NAMES)) == 4
    used = [(copy / "data.mdb").stat().st_blocks * 512 for copy in copies(root)]
    assert max(used) < 64 * 1024 * 1024
