"""Children that are apart from us, and what may be known of a process by its number."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from tidegate.system.descriptors import open_pipe, waiting_bytes
from tidegate.system.private_files import open_file
from tidegate.system.processes import (
    ask_to_end,
    has_ended,
    kill,
    owner_of,
    program_of,
    start_apart,
)


def test_a_child_is_apart_and_has_of_our_descriptors_what_it_was_given(tmp_path: Path) -> None:
    read_end, write_end = open_pipe()
    kept = open_file(tmp_path / "kept", "append")
    log = open_file(tmp_path / "log", "overwrite")
    code = (
        "import os, sys\n"
        "os.write(int(sys.argv[1]), f'{os.getsid(0) == os.getpid()} '.encode())\n"
        "os.write(1, b'lost')\n"
        "os.fstat(int(sys.argv[2]))\n"
    )
    process = start_apart(
        [sys.executable, "-c", code, str(write_end), str(kept)], errors=log, inherited=[write_end]
    )
    process.wait()
    assert waiting_bytes(read_end) == 5 and os.read(read_end, 99) == b"True "
    assert "Bad file descriptor" in (tmp_path / "log").read_text()
    for descriptor in (read_end, write_end, kept, log):
        os.close(descriptor)


def test_a_process_has_an_owner_until_it_was_waited_for() -> None:
    with subprocess.Popen([sys.executable, "-c", "input()"], stdin=subprocess.PIPE) as process:
        assert owner_of(process.pid) == "us" and not has_ended(process.pid)
        kill(process.pid)
        assert process.wait() == -9
    assert owner_of(process.pid) is None and has_ended(process.pid)
    ask_to_end(process.pid)
    kill(process.pid)


@pytest.mark.skipif(os.geteuid() == 0, reason="root may signal every process")
def test_the_process_of_another_account_is_known_as_such() -> None:
    assert owner_of(1) == "others"


def test_a_number_that_no_process_can_have_is_of_none() -> None:
    assert owner_of(2**70) is None
    assert program_of(2**70) == "" == program_of(None)
