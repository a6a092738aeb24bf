"""`tidegate health`: what a probe learns where no curl is."""

from __future__ import annotations

import json
import re
import signal
import socket
from contextlib import closing
from pathlib import Path

from cli.conftest import Run
from support.certificates import Authority
from support.command_line import Serving, serving
from support.eventually import wait_until


def address(server: Serving) -> str:
    return re.findall(r"(https?://\S+)/mcp", server.until("serving"))[0]


def words(**settings: object) -> tuple[str, ...]:
    return ("serve", "--http", "127.0.0.1:0", "--config", json.dumps({"auth": False, **settings}))


def test_a_server_that_can_work_is_ready_and_one_that_drains_only_alive(
    run: Run, state: Path
) -> None:
    with serving(words(drain_delay_s=600), state) as server:
        url = address(server)
        ready = run("health", url)
        assert (ready.status, ready.out, ready.err) == (0, "ready\n", "")
        server.process.send_signal(signal.SIGTERM)
        wait_until(lambda: run("health", f"{url}/ready").status == 69, "it is not ready")
        refused = run("health", f"{url}/ready").err
        assert refused == f"tidegate: {url}/ready: not_ready; failing server: server.stopping\n"
        assert run("health", f"{url}/health").out == "ok\n", "a probe of life lets it drain"


def test_without_a_url_it_asks_where_the_settings_say(run: Run, state: Path) -> None:
    with closing(socket.create_server(("127.0.0.1", 0))) as free:
        port = free.getsockname()[1]
    settings = json.dumps({"auth": False, "http": f"127.0.0.1:{port}"})
    refused = run("health", "--config", settings)
    assert refused.status == 69 and f"http://127.0.0.1:{port} cannot be reached" in refused.err
    with serving(("serve", "--config", settings), state) as server:
        server.until("serving")
        assert run("health", "--config", settings).out == "ready\n"
        anywhere = json.dumps({"http": f"0.0.0.0:{port}"})
        assert run("health", "--config", anywhere).status == 0
    assert run("health").status == 2


def test_it_asks_over_https_whatever_the_certificate_names(
    run: Run, state: Path, tmp_path: Path
) -> None:
    cert, key = Authority(tmp_path, "authority").sign("gate", "gate.example")
    tls = {"cert": str(cert), "key": str(key)}
    with serving(words(tls=tls), state) as server:
        assert run("health", address(server)).out == "ready\n"


def test_what_is_no_server_of_ours_is_not_ready(run: Run) -> None:
    with closing(socket.create_server(("127.0.0.1", 0))) as silent:
        url = f"http://127.0.0.1:{silent.getsockname()[1]}"
        late = run("health", url, "--timeout", "0.2")
        assert late.status == 69 and "does not answer within 0.2 s" in late.err
    assert run("health", "ftp://gate").status == 2
