"""nginx, HAProxy and Caddy with the settings of the page on proxies, in front of a server."""

from __future__ import annotations

import os
import re
import shutil
import socket
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from support.eventually import PATIENCE_S, wait_until
from support.free_ports import claim_port

PAGE = Path(__file__).parents[2] / "docs" / "howto" / "run-behind-a-proxy.md"
NAMES = ("nginx", "haproxy", "caddy")
_PATH = f"{os.environ.get('PATH', '')}:/usr/sbin:/sbin"
_BIND = {"nginx": "", "haproxy": "bind :80", "caddy": ":80 {"}


def program(name: str) -> str | None:
    """Where the proxy is installed; None if it is not."""
    return shutil.which(name, path=_PATH)


def settings(name: str, number: int = 0) -> str:
    """The page's settings for a proxy, of several the one with that number."""
    return re.findall(rf"```{name}\n(.*?)```", PAGE.read_text(), re.DOTALL)[number]


@contextmanager
def proxied(name: str, server: int, folder: Path, patience_s: float) -> Iterator[int]:
    """The port of a proxy before the port `server`, which waits `patience_s` for each byte."""
    port = claim_port()
    milliseconds = f"{round(patience_s * 1000)}ms"
    text = settings(name).replace("127.0.0.1:8080", f"127.0.0.1:{server}")
    text = re.sub(
        r"(proxy_read_timeout|timeout (?:client|server)) \w+", rf"\1 {milliseconds}", text
    )
    if name == "nginx":
        text = (
            f"daemon off; master_process off; pid {folder}/pid; error_log {folder}/log;\n"
            f"events {{}}\nhttp {{ access_log off; client_body_temp_path {folder}/body;\n"
            f"proxy_temp_path {folder}/proxy; fastcgi_temp_path {folder}/f;\n"
            f"uwsgi_temp_path {folder}/u; scgi_temp_path {folder}/s;\n"
            f"server {{ listen 127.0.0.1:{port};\n{text}}} }}\n"
        )
    text = text.replace("bind :80", f"bind 127.0.0.1:{port}")
    text = text.replace(":80 {", f"http://127.0.0.1:{port} {{")
    if name == "caddy":
        text = "{\n    admin off\n    auto_https off\n}\n" + text
    place = folder / f"{name}.conf"
    place.write_text(text)
    path = program(name)
    assert path is not None
    command = {
        "nginx": [path, "-c", str(place), "-e", f"{folder}/log"],
        "haproxy": [path, "-db", "-f", str(place)],
        "caddy": [path, "run", "--config", str(place), "--adapter", "caddyfile"],
    }[name]
    with _running(command, folder):
        wait_until(lambda: _answers(port), f"{name} answers")
        yield port


@contextmanager
def passing_on(folder: Path, http: int, wire: int = 1) -> Iterator[tuple[int, int]]:
    """The ports of an HAProxy that passes connections on to the ports `http` and `wire` as they
    are, with the page's settings: it connects from 127.0.0.2 and names its clients."""
    ports = claim_port(), claim_port()
    text = settings("haproxy", 1)
    for theirs, served, bound, port in (
        ("8080", http, ":443", ports[0]), ("5433", wire, ":5432", ports[1])
    ):  # fmt: skip
        text = text.replace(f"127.0.0.1:{theirs}", f"127.0.0.1:{served}")
        text = text.replace(f"bind {bound}", f"bind 127.0.0.1:{port}")
    with run_haproxy(folder, text):
        wait_until(lambda: accepts(ports[0]), "haproxy answers")
        yield ports


@contextmanager
def run_haproxy(folder: Path, text: str) -> Iterator[None]:
    """HAProxy with these settings."""
    path = program("haproxy")
    assert path is not None
    place = folder / "haproxy.conf"
    place.write_text(text)
    with _running([path, "-db", "-f", str(place)], folder):
        yield


@contextmanager
def _running(command: list[str], folder: Path) -> Iterator[None]:
    environment = {**os.environ, "HOME": str(folder), "XDG_DATA_HOME": str(folder)}
    with (folder / "said").open("wb") as said:
        process = subprocess.Popen(command, stdout=said, stderr=said, env=environment)
    try:
        yield
    finally:
        process.kill()  # in good order, one would wait for its connections
        process.wait(PATIENCE_S)


def accepts(port: int) -> bool:
    """Whether a port of this machine takes connections."""
    try:
        socket.create_connection(("127.0.0.1", port), PATIENCE_S).close()
    except OSError:
        return False
    return True


def _answers(port: int) -> bool:
    from http.client import HTTPConnection

    connection = HTTPConnection("127.0.0.1", port, timeout=PATIENCE_S)
    try:
        connection.request("GET", "/health")
        return connection.getresponse().status == 200
    except OSError:
        return False
    finally:
        connection.close()
