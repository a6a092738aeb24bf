"""What a service manager such as systemd hears from a server: by the socket that it names."""

from __future__ import annotations

import json
import os
import re
import signal
import socket
from collections.abc import Iterator
from contextlib import closing
from http.client import HTTPConnection
from pathlib import Path

import pytest

from support.command_line import Serving, serving
from support.eventually import HANG_S, PATIENCE_S
from tidegate.serve.lifecycle import LAST_WORK_S
from tidegate.system.service_manager import SOCKET, ServiceManager


class Manager:
    """A socket as systemd has it."""

    def __init__(self, address: str) -> None:
        self._socket = socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM)
        self._socket.bind(address)
        self._socket.settimeout(HANG_S)

    def hear(self) -> dict[str, str]:
        lines = self._socket.recv(4_096).decode().split("\n")
        return dict(line.split("=", 1) for line in lines)

    def close(self) -> None:
        self._socket.close()


@pytest.fixture
def manager(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Manager]:
    address = str(tmp_path / "notify")
    monkeypatch.setenv(SOCKET, address)
    with closing(Manager(address)) as made:
        yield made


def words(directory: Path, **settings: object) -> tuple[str, ...]:
    file = directory / "settings.json"
    file.write_text(json.dumps({"auth": False, **settings}))
    file.chmod(0o600)
    return ("serve", "--http", "127.0.0.1:0", "--config", str(file))


def answers(server: Serving) -> bool:
    port = int(re.findall(r":(\d+)/mcp", server.until("serving"))[0])
    with closing(HTTPConnection("127.0.0.1", port, timeout=PATIENCE_S)) as connection:
        connection.request("GET", "/ready")
        return connection.getresponse().status == 200


def test_it_gets_a_report_when_callers_are_served_when_settings_are_read_and_of_the_stop(
    manager: Manager, tmp_path: Path
) -> None:
    given = words(tmp_path, drain_delay_s=0.05, stop_grace_s=7)
    with serving(given, tmp_path / "state") as server:
        assert manager.hear() == {"READY": "1"}
        assert answers(server)
        server.process.send_signal(signal.SIGHUP)
        reload = manager.hear()
        assert reload.pop("MONOTONIC_USEC").isdigit() and reload == {"RELOADING": "1"}
        assert manager.hear() == {"READY": "1"}
        server.process.send_signal(signal.SIGTERM)
        within_us = str(round((0.05 + 7 + LAST_WORK_S) * 1e6))
        assert manager.hear() == {"STOPPING": "1", "EXTEND_TIMEOUT_USEC": within_us}
        assert server.process.wait(HANG_S) == 0


def test_it_gets_nothing_of_a_start_that_fails(manager: Manager, tmp_path: Path) -> None:
    with closing(socket.create_server(("127.0.0.1", 0))) as taken:
        port = taken.getsockname()[1]
        given = ("serve", "--no-auth", "--http", f"127.0.0.1:{port}")
        with serving(given, tmp_path / "state") as server:
            assert server.process.wait(HANG_S) != 0
    with serving(words(tmp_path), tmp_path / "state") as server:
        assert manager.hear() == {"READY": "1"}, "the first that it hears is of the next start"


def test_the_name_of_the_socket_is_for_the_server_alone(
    manager: Manager, monkeypatch: pytest.MonkeyPatch
) -> None:
    found = ServiceManager.of_process()
    assert SOCKET not in os.environ
    found.report_ready()
    assert manager.hear() == {"READY": "1"}
    found.report_stopping(1)
    found.report_stopping(2)
    found.report_ready()
    assert manager.hear()["EXTEND_TIMEOUT_USEC"] == "1000000"
    assert manager.hear() == {"READY": "1"}, "the second stop is not reported"


def test_a_manager_may_have_an_abstract_name_and_may_be_gone(tmp_path: Path) -> None:
    name = f"@tidegate-test-{os.getpid()}"
    with closing(Manager(f"\0{name[1:]}")) as manager:
        ServiceManager(name).report_ready()
        assert manager.hear() == {"READY": "1"}
    ServiceManager(name).report_ready()
    ServiceManager(str(tmp_path / "nothing")).report_ready()
    ServiceManager("").report_ready()
