"""Receivers of the record: rsyslog of Debian, and hand-made ones.

The hand-made receiver of OTLP reads requests by OpenTelemetry's own definitions; its collector is
not run here. The hand-made receiver of syslog reads frames as RFC 6587 and RFC 5425 have them.
"""

from __future__ import annotations

import json
import os
import shutil
import socket
import subprocess
import threading
from collections.abc import Callable, Generator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler
from pathlib import Path
from socketserver import BaseRequestHandler
from ssl import SSLContext
from typing import Any

from opentelemetry.proto.collector.logs.v1.logs_service_pb2 import (
    ExportLogsServiceRequest,
    ExportLogsServiceResponse,
)

from support.eventually import PATIENCE_S, wait_until
from support.otlp_server import otlp_server, respond
from support.thread_server import ThreadServer, running

Certificates = tuple[Path, Path, Path]
"""The files of an authority, of a certificate and of its key."""


def rsyslogd() -> str | None:
    """Where rsyslog is installed; None if it is not."""
    return shutil.which("rsyslogd", path=f"{os.environ.get('PATH', '')}:/usr/sbin:/sbin")


class Rsyslog:
    """rsyslog, which appends what it gets to a file. It can be killed and started again."""

    def __init__(self, folder: Path, port: int, tls: Certificates | None = None) -> None:
        self._folder = folder
        self.port = port
        self.file = folder / "received.jsonl"
        self._settings = folder / "rsyslog.conf"
        self._settings.write_text(_rsyslog_settings(folder, port, tls))
        self._process: subprocess.Popen[bytes] | None = None

    def start(self) -> None:
        program = rsyslogd()
        assert program is not None
        (self._folder / "pid").unlink(missing_ok=True)
        with (self._folder / "said").open("ab") as said:
            self._process = subprocess.Popen(
                [program, "-n", "-f", str(self._settings), "-i", str(self._folder / "pid")],
                stdout=said,
                stderr=said,
            )
        wait_until(self._accepts, "rsyslog accepts connections")

    def kill(self) -> None:
        """End it as a crash does."""
        if self._process is not None:
            self._process.kill()
            self._process.wait(PATIENCE_S)
            self._process = None

    def lines(self) -> list[bytes]:
        """What it has written, whole lines. One that a kill left without its end is joined by what
        comes next to a line that is no JSON, and is left out."""
        if not self.file.exists():
            return []
        return [each for each in self.file.read_bytes().split(b"\n")[:-1] if _is_json(each)]

    def _accepts(self) -> bool:
        try:
            socket.create_connection(("127.0.0.1", self.port), PATIENCE_S).close()
        except OSError:
            return False
        return True


def _rsyslog_settings(folder: Path, port: int, tls: Certificates | None) -> str:
    driver = ""
    before = ""
    if tls is not None:
        authority, cert, key = tls
        before = (
            f'DefaultNetstreamDriver="ossl" DefaultNetstreamDriverCAFile="{authority}"'
            f' DefaultNetstreamDriverCertFile="{cert}" DefaultNetstreamDriverKeyFile="{key}"'
        )
        driver = ' StreamDriver.Name="ossl" StreamDriver.Mode="1" StreamDriver.AuthMode="anon"'
    return f"""
global(workDirectory="{folder}" maxMessageSize="64k" {before})
module(load="imtcp"{driver})
template(name="message" type="string" string="%msg%\\n")
input(type="imtcp" port="{port}" address="127.0.0.1")
action(type="omfile" file="{folder}/received.jsonl" template="message")
"""


def _is_json(text: bytes) -> bool:
    try:
        json.loads(text)
    except ValueError:
        return False
    return True


@contextmanager
def rsyslog(folder: Path, port: int, tls: Certificates | None = None) -> Generator[Rsyslog]:
    """rsyslog within a block."""
    folder.mkdir()
    server = Rsyslog(folder, port, tls)
    try:
        server.start()
        yield server
    finally:
        server.kill()


class SyslogReceiver:
    """Hand-made: reads frames with their length, each as a message of RFC 5424."""

    def __init__(self) -> None:
        self.messages: list[bytes] = []
        self.port = 0
        self.connections: set[socket.socket] = set()

    def close_all(self) -> None:
        """End the connections that are open."""
        for each in list(self.connections):
            each.shutdown(socket.SHUT_RDWR)


@contextmanager
def syslog_receiver(tls: SSLContext | None = None) -> Generator[SyslogReceiver]:
    """The hand-made receiver within a block."""
    receiver = SyslogReceiver()

    class Handler(BaseRequestHandler):
        def handle(self) -> None:
            receiver.connections.add(self.request)
            with self.request.makefile("rb") as stream:
                while size := _frame_size(stream):
                    receiver.messages.append(stream.read(size))
            receiver.connections.discard(self.request)
            if tls is not None:
                self.request.unwrap()

    server = ThreadServer(Handler)
    if tls is not None:
        server.encrypt(tls)
    with running(server):
        receiver.port = server.port
        yield receiver


def _frame_size(stream: Any) -> int:
    digits = b""
    while (byte := stream.read(1)) not in (b" ", b""):
        digits += byte
    return int(digits or 0)


class OtlpReceiver:
    """Hand-made: keeps the ids and the texts of the log records of each request. `before` and
    `after` are called when a request has come and when it is kept, and may end the answer."""

    def __init__(self) -> None:
        self.port = 0
        self.requests: list[list[str]] = []
        self.bodies: list[bytes] = []
        self.headers: list[dict[str, str]] = []
        self.before: Callable[[BaseHTTPRequestHandler, int], bool] = lambda handler, size: True
        self.after: Callable[[BaseHTTPRequestHandler], bool] = lambda handler: True
        self.rejected = 0
        self._lock = threading.Lock()

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.port}/v1/logs"

    @property
    def ids(self) -> list[str]:
        """Of all records, in the order in which they came."""
        return [each for request in list(self.requests) for each in request]

    def take(self, handler: BaseHTTPRequestHandler) -> None:
        body = handler.rfile.read(int(handler.headers["content-length"]))
        assert handler.path == "/v1/logs"
        assert handler.headers["content-type"] == "application/x-protobuf"
        if not self.before(handler, len(body)):
            return
        found = ExportLogsServiceRequest.FromString(body)
        records = [
            record
            for resource in found.resource_logs
            for scope in resource.scope_logs
            for record in scope.log_records
        ]
        ids = []
        for record in records:
            (about,) = record.attributes
            assert about.key == "log.record.uid"
            ids.append(about.value.string_value)
        with self._lock:
            self.headers.append({name.lower(): value for name, value in handler.headers.items()})
            self.requests.append(ids)
            self.bodies += [record.body.string_value.encode() for record in records]
        if self.after(handler):
            answer = ExportLogsServiceResponse()
            if self.rejected:
                answer.partial_success.rejected_log_records = self.rejected
                answer.partial_success.error_message = "too old"
            respond(handler, 200, answer.SerializeToString())


@contextmanager
def otlp_receiver(tls: SSLContext | None = None) -> Generator[OtlpReceiver]:
    """The hand-made receiver within a block."""
    receiver = OtlpReceiver()

    with otlp_server(receiver.take, tls) as port:
        receiver.port = port
        yield receiver
