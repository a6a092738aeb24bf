"""Locks between open files: who is kept out, who is not, and when a lock ends."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Callable, Generator
from pathlib import Path

import pytest

from tidegate.system.file_locks import (
    end_lock,
    is_locked,
    part_lock_holders,
    take_lock,
    try_lock,
    wait_for_lock,
)

Open = Callable[[], int]

HOLDER = """
import sys
from pathlib import Path
from tidegate.system.file_locks import take_lock
from tidegate.system.private_files import open_file
take_lock(open_file(Path(sys.argv[1]), "read and write"))
print("held", flush=True)
sys.stdin.read()
"""


@pytest.fixture
def another(tmp_path: Path) -> Generator[Open]:
    """Opens the same file again."""
    path = tmp_path / "lock"
    opened: list[int] = []

    def open_again() -> int:
        opened.append(os.open(path, os.O_RDWR | os.O_CREAT))
        return opened[-1]

    yield open_again
    for descriptor in opened:
        os.close(descriptor)


def test_one_open_file_has_the_lock_until_it_lets_go(another: Open) -> None:
    first, second = another(), another()
    take_lock(first)
    assert not try_lock(second)
    end_lock(first)
    assert try_lock(second)


def test_a_shared_lock_keeps_out_a_holder_alone_and_no_other_shared_one(another: Open) -> None:
    first, second, third = another(), another(), another()
    assert try_lock(first, shared=True) and try_lock(second, shared=True)
    assert not try_lock(third)


def test_those_who_ask_for_a_holder_do_not_see_each_other(another: Open) -> None:
    asking, holder = another(), another()
    assert not is_locked(asking)
    take_lock(holder)
    assert is_locked(asking)
    end_lock(holder)
    assert not is_locked(asking) and try_lock(holder)  # nothing of the question is left


def test_a_file_that_cannot_be_locked_counts_as_locked(another: Open) -> None:
    read_end, write_end = os.pipe()
    os.close(read_end)
    os.close(write_end)
    assert is_locked(read_end)


def test_a_lock_that_another_keeps_is_given_up_after_the_time(another: Open) -> None:
    first, second = another(), another()
    take_lock(first)
    assert not wait_for_lock(second, 0.02, 0.005)
    end_lock(first)
    assert wait_for_lock(second, 0.02, 0.005)


def test_the_lock_of_a_killed_process_is_free(another: Open, tmp_path: Path) -> None:
    mine = another()
    words = [sys.executable, "-c", HOLDER, str(tmp_path / "lock")]
    with subprocess.Popen(words, stdin=subprocess.PIPE, stdout=subprocess.PIPE) as process:
        assert process.stdout is not None and process.stdout.readline() == b"held\n"
        assert is_locked(mine)
        process.kill()
        process.wait()
        assert try_lock(mine)


def test_holders_of_parts_of_a_file_are_found(tmp_path: Path) -> None:
    path = tmp_path / "data"
    path.write_bytes(b"0123456789")
    assert part_lock_holders(path) == set()
    code = (
        "import fcntl, sys; file = open(sys.argv[1], 'r+b'); fcntl.lockf(file, fcntl.LOCK_EX, 1, 4)"
        "; print('held', flush=True); sys.stdin.read()"
    )
    words = [sys.executable, "-c", code, str(path)]
    with subprocess.Popen(words, stdin=subprocess.PIPE, stdout=subprocess.PIPE) as process:
        assert process.stdout is not None and process.stdout.readline() == b"held\n"
        assert part_lock_holders(path) == {process.pid}
        process.kill()
    assert part_lock_holders(path) == set()
