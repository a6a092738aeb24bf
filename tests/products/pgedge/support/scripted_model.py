"""A model server on loopback that answers what a test tells it to, in the dialect that is asked.

It speaks OpenAI's chat completions, Anthropic's messages and Ollama's chat, and can fail in the
ways in which such servers fail.
"""

from __future__ import annotations

import json
import threading
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler
from typing import Any, NamedTuple

from support.thread_server import ThreadHttpServer

KEY = "test-key-0123456789abcdef"


class Prompt(NamedTuple):
    """A request as it came: the system prompt, the messages, and the raw form."""

    path: str
    headers: dict[str, str]
    system: str
    messages: list[dict[str, str]]
    body: dict[str, Any]

    @property
    def text(self) -> str:
        return "\n".join([self.system, *(message["content"] for message in self.messages)])

    @property
    def question(self) -> str:
        """The question of the first message."""
        return self.messages[0]["content"].rpartition("Question: ")[2]

    @property
    def last(self) -> str:
        return self.messages[-1]["content"]


class Fault(NamedTuple):
    """Something else than a model's reply: a status and a body, or what happens to the socket.

    `kind`: `status`, `html`, `cut` (half of a body), `endless` (a body without end), `hang` (no
    answer until the server stops), `no_text` (JSON of another shape).
    """

    kind: str
    status: int = 500
    headers: dict[str, str] = {}  # noqa: RUF012 - never changed
    text: str = ""


Reply = str | Fault
Script = Callable[[Prompt], Reply]


class ScriptedModel:
    """The server. `prompts` are the requests that came."""

    def __init__(self, script: Script) -> None:
        self.script = script
        self.prompts: list[Prompt] = []
        self.closed_early = threading.Event()
        self.stopping = threading.Event()
        model = self

        class Handler(BaseHTTPRequestHandler):
            protocol_version = "HTTP/1.1"

            def do_POST(self) -> None:
                model.answer(self)

            def log_message(self, format: str, *args: object) -> None:
                return

        self._server = ThreadHttpServer(Handler)
        self.port = self._server.port

    def settings(self, provider: str = "openai", **more: Any) -> dict[str, Any]:
        """The `language.model` that leads here."""
        path = "" if provider == "ollama" else "/v1"
        return {
            "provider": provider,
            "model": "scripted",
            "base_url": f"http://127.0.0.1:{self.port}{path}",
            "retries": 0,
            **more,
        }

    def answer(self, handler: BaseHTTPRequestHandler) -> None:
        length = int(handler.headers.get("content-length", 0))
        body = json.loads(handler.rfile.read(length))
        messages = [dict(message) for message in body["messages"]]
        system = body.get("system", "")
        if messages[0]["role"] == "system":
            system = messages.pop(0)["content"]
        prompt = Prompt(handler.path, dict(handler.headers), system, messages, body)
        self.prompts.append(prompt)
        reply = self.script(prompt)
        if isinstance(reply, Fault):
            self._fail(handler, reply)
        else:
            self._send(handler, 200, "application/json", _shaped(handler.path, reply))

    def _send(
        self,
        handler: BaseHTTPRequestHandler,
        status: int,
        kind: str,
        body: bytes,
        headers: dict[str, str] | None = None,
    ) -> None:
        handler.send_response(status)
        handler.send_header("Content-Type", kind)
        handler.send_header("Content-Length", str(len(body)))
        for name, value in (headers or {}).items():
            handler.send_header(name, value)
        handler.end_headers()
        handler.wfile.write(body)

    def _fail(self, handler: BaseHTTPRequestHandler, fault: Fault) -> None:
        handler.close_connection = True
        if fault.kind == "status":
            body = json.dumps({"error": {"message": fault.text}}).encode()
            self._send(handler, fault.status, "application/json", body, fault.headers)
        elif fault.kind == "html":
            self._send(handler, 200, "text/html", b"<html><body>Sign in</body></html>")
        elif fault.kind == "no_text":
            self._send(handler, 200, "application/json", b'{"choices": [{"message": null}]}')
        elif fault.kind == "cut":
            handler.wfile.write(b'HTTP/1.1 200 OK\r\nContent-Length: 1000\r\n\r\n{"choices": [')
        elif fault.kind == "endless":
            handler.wfile.write(b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n")
            chunk = b"10000\r\n" + b" " * 65_536 + b"\r\n"
            try:
                while not self.stopping.is_set():
                    handler.wfile.write(chunk)
            except OSError:
                self.closed_early.set()
        elif fault.kind == "hang":
            while not self.stopping.wait(0.01):
                try:
                    handler.connection.setblocking(False)
                    if handler.connection.recv(1) == b"":
                        self.closed_early.set()
                        return
                except BlockingIOError:
                    continue
                except OSError:
                    self.closed_early.set()
                    return

    @contextmanager
    def running(self) -> Iterator[ScriptedModel]:
        self._server.start()
        try:
            yield self
        finally:
            self.stopping.set()
            self._server.close()


def _shaped(path: str, text: str) -> bytes:
    """The reply in the shape of the API at a path."""
    if path.endswith("/messages"):
        return json.dumps(
            {
                "model": "scripted-1",
                "content": [{"type": "text", "text": text}],
                "stop_reason": "end_turn",
                "usage": {"input_tokens": 100, "output_tokens": 20},
            }
        ).encode()
    if path.endswith("/api/chat"):
        return json.dumps(
            {
                "model": "scripted-1",
                "message": {"role": "assistant", "content": text},
                "done_reason": "stop",
                "prompt_eval_count": 100,
                "eval_count": 20,
            }
        ).encode()
    return json.dumps(
        {
            "model": "scripted-1",
            "choices": [
                {"message": {"role": "assistant", "content": text}, "finish_reason": "stop"}
            ],
            "usage": {"prompt_tokens": 100, "completion_tokens": 20},
        }
    ).encode()


@contextmanager
def scripted(*replies: Reply) -> Iterator[ScriptedModel]:
    """A server that gives these replies, one after the other, and the last one again."""
    left: list[Reply] = list(replies)

    def script(prompt: Prompt) -> Reply:
        return left.pop(0) if len(left) > 1 else left[0]

    with ScriptedModel(script).running() as model:
        yield model


def wrote(sql: str, assumptions: Sequence[str] = ()) -> str:
    """A reply in the form that prompts ask for."""
    return json.dumps({"sql": sql, "assumptions": list(assumptions)})
