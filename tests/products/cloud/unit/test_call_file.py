"""The file with a line for each call: rotation, and what happens when it cannot be written."""

from __future__ import annotations

import json
import os
import resource
import stat
from collections.abc import Iterator
from pathlib import Path

import pytest

from tidegate.errors import Code, TidegateError
from tidegate.products.cloud.surface.call_file import CallFile, CallRecord

MIB = 1_048_576


def record(sql: str = "SELECT 1") -> CallRecord:
    return CallRecord(
        timestamp="2026-11-23T10:00:00Z",
        tool="run_select_query",
        mode="safe",
        decision="allow",
        query_class="select",
        sql=sql,
        duration_ms=3,
    )


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "calls" / "calls.log"


@pytest.fixture
def calls(path: Path) -> Iterator[CallFile]:
    file = CallFile(path, max_bytes=MIB)
    yield file
    file.close()


def statements(path: Path) -> list[str]:
    return [json.loads(line)["sql"] for line in path.read_text().splitlines()]


def test_a_line_holds_the_fields_that_are_known_and_only_the_owner_may_read_it(
    calls: CallFile, path: Path
) -> None:
    calls.write(record())
    assert json.loads(path.read_text()) == {
        "timestamp": "2026-11-23T10:00:00Z",
        "tool": "run_select_query",
        "mode": "safe",
        "decision": "allow",
        "query_class": "select",
        "sql": "SELECT 1",
        "duration_ms": 3,
    }
    assert stat.S_IMODE(path.stat().st_mode) == 0o600
    assert stat.S_IMODE(path.parent.stat().st_mode) == 0o700


def test_a_full_file_is_rotated_and_only_so_many_are_kept(path: Path) -> None:
    calls = CallFile(path, max_bytes=600, backups=2)
    for number in range(20):
        calls.write(record(f"SELECT {number}"))
    calls.close()
    rotated = sorted(each for each in path.parent.iterdir() if each != path)
    assert len(rotated) == 2
    assert all(each.stat().st_size <= 600 for each in (path, *rotated))
    kept = [each for file in (*rotated, path) for each in statements(file)]
    assert kept == [f"SELECT {number}" for number in range(20 - len(kept), 20)]


def test_without_a_number_every_rotated_file_is_kept(path: Path) -> None:
    calls = CallFile(path, max_bytes=600)
    for number in range(20):
        calls.write(record(f"SELECT {number}"))
    calls.close()
    found = [each for file in path.parent.iterdir() for each in statements(file)]
    assert sorted(found) == sorted(f"SELECT {number}" for number in range(20))


def test_rotated_files_are_removed_by_age_and_others_in_the_directory_are_left(path: Path) -> None:
    path.parent.mkdir()
    old = path.with_name("calls-20200101T000000.000000Z.log")
    foreign = path.with_name("calls-of-another-program.log")
    for each in (old, foreign):
        each.write_text("{}\n")
        os.utime(each, (0, 0))
    calls = CallFile(path, max_bytes=200, age_s=86_400)
    calls.write(record())
    calls.write(record())
    calls.close()
    assert not old.exists()
    assert foreign.exists()
    assert len(list(path.parent.iterdir())) == 3


def test_a_server_that_starts_removes_rotated_files_that_are_too_old_or_too_many(
    path: Path,
) -> None:
    path.parent.mkdir()
    rotated = [path.with_name(f"calls-2020010{day}T000000.000000Z.log") for day in (1, 2, 3)]
    for day, each in enumerate(rotated):
        each.write_text("{}\n")
        os.utime(each, (day, day))
    calls = CallFile(path, max_bytes=MIB, backups=1)
    calls.write(record())
    calls.close()
    assert [each for each in rotated if each.exists()] == rotated[2:]
    calls = CallFile(path, max_bytes=MIB, age_s=86_400)
    calls.write(record())
    calls.close()
    assert not rotated[2].exists()
    assert len(statements(path)) == 2


def test_files_of_earlier_starts_are_removed_by_age(path: Path) -> None:
    path.parent.mkdir()
    names = ("calls_1.log", "calls_2-20200101T000000.000000Z.log", "calls_3.log", "calls_x.log")
    earlier, rotated, recent, foreign = [path.with_name(name) for name in names]
    for each in (earlier, rotated, recent, foreign):
        each.write_text("{}\n")
        if each != recent:
            os.utime(each, (0, 0))
    calls = CallFile(path.with_name("calls_4.log"), max_bytes=MIB, age_s=86_400, series=r"calls_\d")
    calls.write(record())
    calls.close()
    left = {each.name for each in path.parent.iterdir()}
    assert left == {"calls_3.log", "calls_4.log", "calls_x.log"}


def test_a_line_that_did_not_fit_the_disk_follows_when_it_fits(calls: CallFile, path: Path) -> None:
    calls.write(record("SELECT 'before'"))
    before = path.read_bytes()
    soft, hard = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (len(before) + 40, hard))
    try:
        with pytest.raises(TidegateError) as refused:
            calls.write(record("SELECT 'during'"))
        with pytest.raises(TidegateError):
            calls.check()
        assert path.read_bytes() == before  # no part of a line is left
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, (soft, hard))
    assert refused.value.code is Code.AUDIT_UNAVAILABLE
    assert str(path) in refused.value.message
    calls.check()
    calls.write(record("SELECT 'after'"))
    assert statements(path) == ["SELECT 'before'", "SELECT 'during'", "SELECT 'after'"]


def test_a_removed_directory_is_made_again(calls: CallFile, path: Path) -> None:
    calls.write(record("SELECT 1"))
    path.unlink()
    path.parent.rmdir()
    calls.write(record("SELECT 2"))
    assert statements(path) == ["SELECT 2"]


def test_a_directory_that_cannot_be_made_again_is_an_error(calls: CallFile, path: Path) -> None:
    calls.write(record())
    path.unlink()
    path.parent.rmdir()
    path.parent.write_text("a file in its place")
    with pytest.raises(TidegateError, match="cannot be written"):
        calls.check()


def test_a_descriptor_that_another_closed_does_not_lose_a_line(calls: CallFile, path: Path) -> None:
    calls.write(record("SELECT 1"))
    descriptor = next(
        int(each)
        for each in os.listdir("/proc/self/fd")
        if os.path.realpath(f"/proc/self/fd/{each}") == str(path.resolve())
    )
    os.close(descriptor)
    other = path.parent / "other"
    reused = os.open(other, os.O_WRONLY | os.O_CREAT)
    assert reused == descriptor
    calls.write(record("SELECT 2"))
    assert statements(path) == ["SELECT 1", "SELECT 2"]
    os.write(reused, b"mine")  # the number was not closed under its new owner
    os.close(reused)
    assert other.read_text() == "mine"


def test_two_processes_lose_no_line_when_one_rotates(path: Path) -> None:
    one, other = CallFile(path, max_bytes=600), CallFile(path, max_bytes=600)
    for number in range(10):
        (one if number % 2 else other).write(record(f"SELECT {number}"))
    one.close()
    other.close()
    found = [each for file in path.parent.iterdir() for each in statements(file)]
    assert sorted(found) == [f"SELECT {number}" for number in range(10)]
