"""JSON lines in a file: whole lines whatever was killed, rotated or full."""

from __future__ import annotations

import json
import os
import stat
import threading
from pathlib import Path

import pytest

from tidegate.products.shipping.destination import FileDestination


def batch(*names: str) -> bytes:
    return b"".join(f'{{"id":"{name}"}}\n'.encode() for name in names)


def test_batches_follow_each_other_and_are_acknowledged_at_once(tmp_path: Path) -> None:
    file = tmp_path / "record.jsonl"
    destination = FileDestination(file)
    destination.send(batch("a", "b"))
    destination.send(batch("c"))
    assert destination.acknowledged() == 2
    assert file.read_bytes() == b'{"id":"a"}\n{"id":"b"}\n{"id":"c"}\n'
    assert stat.S_IMODE(file.stat().st_mode) == 0o600


@pytest.mark.parametrize("left", [b"", b"{", b'{"id":"' + b"x" * 200_000])
def test_what_a_kill_left_of_a_line_is_cut_off(tmp_path: Path, left: bytes) -> None:
    file = tmp_path / "record.jsonl"
    file.write_bytes(b'{"id":"a"}\n' + left)
    FileDestination(file).send(batch("b"))
    assert file.read_bytes() == b'{"id":"a"}\n{"id":"b"}\n'


def test_a_file_that_was_rotated_begins_again_with_the_rights_it_was_given(tmp_path: Path) -> None:
    file = tmp_path / "record.jsonl"
    destination = FileDestination(file)
    destination.send(batch("a"))
    file.rename(tmp_path / "record.jsonl.1")
    file.touch(0o640)
    file.chmod(0o640)
    destination.send(batch("b"))
    assert file.read_bytes() == b'{"id":"b"}\n'
    assert stat.S_IMODE(file.stat().st_mode) == 0o640


def test_gates_that_share_a_file_do_not_write_over_each_other(tmp_path: Path) -> None:
    file = tmp_path / "record.jsonl"

    def write(name: str) -> None:
        destination = FileDestination(file)
        for number in range(100):
            destination.send(batch(f"{name}{number}", f"{name}{number}-more"))

    writers = [threading.Thread(target=write, args=(name,)) for name in "abc"]
    for each in writers:
        each.start()
    for each in writers:
        each.join()
    lines = file.read_bytes().splitlines()
    assert len(lines) == len(set(lines)) == 600
    assert all(json.loads(line)["id"] for line in lines)


def test_a_full_disk_takes_nothing_of_a_batch(tmp_path: Path) -> None:
    (tmp_path / "full").symlink_to("/dev/full")
    destination = FileDestination(tmp_path / "full")
    with pytest.raises(OSError, match=os.strerror(28)):
        destination.send(batch("a"))
    assert destination.acknowledged() == 0
