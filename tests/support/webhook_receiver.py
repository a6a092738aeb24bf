"""A server of HTTPS that takes messages of the webhook, as a customer's would: it verifies each
signature by itself, and answers what a test says."""

from __future__ import annotations

import base64
import hashlib
import hmac
import json
import queue
import ssl
from collections.abc import Callable, Generator, Iterable
from contextlib import AbstractContextManager, contextmanager
from http.server import BaseHTTPRequestHandler
from pathlib import Path
from typing import Any, NamedTuple, TypeVar

from support.certificates import Authority
from support.eventually import HANG_S
from support.thread_server import thread_http_server

KEY = bytes(range(32))
SECRET = f"whsec_{base64.b64encode(KEY).decode()}"
PATH = "/hooks/T0KEN-in-the-path"


class Received(NamedTuple):
    """One message that came, with whether its signature is right."""

    id: str
    timestamp: int
    body: bytes
    is_signed: bool
    headers: dict[str, str]

    @property
    def json(self) -> Any:
        return json.loads(self.body)

    @property
    def data(self) -> Any:
        return self.json["data"]


Answer = Callable[[BaseHTTPRequestHandler], None]


class Receiver:
    """Answers one message after the other; the last answer stays."""

    def __init__(self, folder: Path, answers: Iterable[Answer]) -> None:
        self._answers = list(answers) or [status(204)]
        self._came: queue.Queue[Received] = queue.Queue()
        self.paths: list[str] = []
        self.authority = Authority(folder, "hooks")
        self.certificate = self.authority.sign("hooks.example", "127.0.0.1", "hooks.example")
        self.secret_file = folder / "webhook.secret"
        self.secret_file.write_text(SECRET + "\n")
        self.port = 0

    @property
    def url(self) -> str:
        return f"https://127.0.0.1:{self.port}{PATH}"

    def settings(self, **changes: Any) -> dict[str, Any]:
        """The settings of a webhook that leads here."""
        given = {
            "url": self.url,
            "secret": f"${{FILE:{self.secret_file}}}",
            "addresses": ["127.0.0.1"],
            "ca_file": str(self.authority.file),
        }
        return {**given, **changes}

    def next(self) -> Received:
        """The next message; fails if none comes."""
        return self._came.get(timeout=HANG_S)

    @property
    def is_quiet(self) -> bool:
        """Whether no message came that no test has looked at."""
        return self._came.empty()

    def take(self, handler: BaseHTTPRequestHandler) -> None:
        """Keep the message of a request and answer it."""
        body = handler.rfile.read(int(handler.headers["content-length"]))
        headers = {name.lower(): value for name, value in handler.headers.items()}
        self.paths.append(handler.path)
        answer = self._answers[0] if len(self._answers) == 1 else self._answers.pop(0)
        self._came.put(
            Received(
                *(headers["webhook-id"], int(headers["webhook-timestamp"]), body),
                _is_signed(headers, body),
                headers,
            )
        )
        answer(handler)


def _is_signed(headers: dict[str, str], body: bytes) -> bool:
    text = f"{headers['webhook-id']}.{headers['webhook-timestamp']}.".encode() + body
    wanted = base64.b64encode(hmac.new(KEY, text, hashlib.sha256).digest()).decode()
    given = [each.partition(",") for each in headers["webhook-signature"].split(" ")]
    return any(version == "v1" and hmac.compare_digest(wanted, each) for version, _, each in given)


def status(code: int, **headers: str) -> Answer:
    """Answers with a status and no body."""

    def answer(handler: BaseHTTPRequestHandler) -> None:
        handler.send_response(code)
        for name, value in headers.items():
            handler.send_header(name.replace("_", "-"), value)
        handler.send_header("content-length", "0")
        handler.end_headers()

    return answer


ReceiverT = TypeVar("ReceiverT", bound=Receiver)


def receiving(folder: Path, *answers: Answer) -> AbstractContextManager[Receiver]:
    """A receiver on 127.0.0.1 with a certificate of its own authority."""
    return running(Receiver, folder, *answers)


@contextmanager
def running(kind: type[ReceiverT], folder: Path, *answers: Answer) -> Generator[ReceiverT]:
    """A receiver of this kind on 127.0.0.1 with a certificate of its own authority."""
    folder.mkdir(exist_ok=True)
    receiver = kind(folder, answers)

    class Handler(BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            receiver.take(self)

        def log_message(self, format: str, *args: Any) -> None:
            """Say nothing on stderr."""

    tls = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    tls.load_cert_chain(*receiver.certificate)
    with thread_http_server(Handler, tls) as port:
        receiver.port = port
        yield receiver
