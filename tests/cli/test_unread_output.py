"""A client on stdio that does not read its output, or has gone, keeps no one else waiting."""

from __future__ import annotations

import json
import os
import signal
import threading
from collections.abc import Iterator
from pathlib import Path
from urllib.request import urlopen

import pytest

from cli.test_serve import META, address
from support.bridge_host import end_server
from support.command_line import Serving, serving
from support.eventually import HANG_S, wait_until

pytestmark = pytest.mark.skipif(os.name != "posix", reason="needs pipes that can be watched")

QUICK = ("--config", json.dumps({"stop_grace_s": 0.3}))
STDIO = ("serve", "--surface", "workbench", *QUICK)
MANY = 60
"""Lists of tools of 19 kB, which no pipe holds."""


@pytest.fixture(autouse=True)
def ended(state: Path) -> Iterator[None]:
    """Nothing that a bridge has started stays."""
    yield
    end_server(state)


def ask(process: Serving, count: int = MANY) -> None:
    for id in range(count):
        request = {"jsonrpc": "2.0", "id": id, "method": "tools/list", "params": {"_meta": META}}
        process.send(request)


def ask_and_leave_unread(process: Serving) -> None:
    """Ask for more than the pipe holds, and wait until it is full."""
    ask(process)
    assert process.process.stdout is not None
    fd = process.process.stdout.fileno()

    def is_full() -> bool:
        import fcntl
        import termios

        held = fcntl.ioctl(fd, termios.FIONREAD, bytes(4))
        return int.from_bytes(held, "little") > 40_000

    wait_until(is_full, "the pipe is full")


def test_http_is_answered_while_the_client_on_stdio_reads_nothing(state: Path) -> None:
    words = (*STDIO, "--stdio", "--http", "127.0.0.1:0", "--no-auth")
    with serving(words, state) as server:
        at = address(server)
        ask_and_leave_unread(server)
        for _ in range(3):
            with urlopen(f"{at}/health", timeout=HANG_S) as answered:
                assert answered.status == 200
        server.process.send_signal(signal.SIGTERM)
        assert server.process.wait(HANG_S) == 0


@pytest.mark.parametrize("words", [STDIO, ("bridge", "--surface", "workbench")])
def test_what_was_left_unread_arrives_whole_and_in_order_of_need(
    state: Path, words: tuple[str, ...]
) -> None:
    with serving(words, state) as server:
        ask_and_leave_unread(server)
        replies = [json.loads(server.line()) for _ in range(MANY)]
        assert sorted(reply["id"] for reply in replies) == list(range(MANY))
        assert all(reply["result"]["tools"] for reply in replies)
        assert server.ended().status == 0


@pytest.mark.parametrize("words", [STDIO, ("bridge", "--surface", "workbench")])
@pytest.mark.parametrize("signals", [1, 2])
def test_signals_end_it_though_nothing_is_read(
    state: Path, words: tuple[str, ...], signals: int
) -> None:
    with serving(words, state) as server:
        ask_and_leave_unread(server)
        for _ in range(signals):
            server.process.send_signal(signal.SIGTERM)
        assert server.process.wait(HANG_S) == 0


def test_the_end_of_the_input_ends_it_though_nothing_is_read(state: Path) -> None:
    with serving(STDIO, state) as server:
        ask_and_leave_unread(server)
        assert server.process.stdin is not None
        server.process.stdin.close()
        assert server.process.wait(HANG_S) == 0
        server.process.stdin = None


@pytest.mark.parametrize("words", [STDIO, ("bridge", "--surface", "workbench")])
@pytest.mark.parametrize("asked", [0, 1])
def test_a_client_that_closed_its_end_ends_it(
    state: Path, words: tuple[str, ...], asked: int
) -> None:
    with serving(words, state) as server:
        ask(server, 1)
        assert json.loads(server.line())["id"] == 0
        assert server.process.stdout is not None
        server.process.stdout.close()
        ask(server, asked)
        assert server.process.wait(HANG_S) == 0
        server.process.stdout = None


def test_input_rests_while_the_output_is_full(state: Path) -> None:
    """So a client that reads nothing does not fill the memory with replies."""
    with serving(STDIO, state) as server:
        asked = 0

        def go_on() -> None:
            nonlocal asked
            for _ in range(8):
                ask(server, 400)
                asked += 400

        writer = threading.Thread(target=go_on, daemon=True)
        writer.start()
        ids = [json.loads(server.line())["id"] for _ in range(3_200)]
        writer.join(HANG_S)
        assert (len(ids), asked) == (3_200, 3_200)
