"""A client that gives no request much time, and does what the replies to it say."""

from __future__ import annotations

import json
import threading
import time
from collections.abc import Callable, Mapping
from http.client import HTTPException
from typing import Any

from support.eventually import HANG_S, PATIENCE_S
from wire.wires import HttpPeer

AGAIN = ("nothing ran", "had changed nothing", "Send the call again.")
"""What says that a call can be sent again without harm."""
USED = "What a person approved was used by another call"
POLL_S = 0.1


class NoReply(Exception):
    """The server was killed before it replied."""


class PatientClient:
    """One call, until its end, whatever becomes of the server.

    `connect` opens a connection to the server that runs now, `up` is set while there is one, and
    `count` says how often the call has taken effect.
    """

    def __init__(
        self,
        connect: Callable[[], HttpPeer],
        up: threading.Event,
        count: Callable[[], int],
    ) -> None:
        self._connect = connect
        self._up = up
        self._count = count
        self._peer: HttpPeer | None = None
        self._never = threading.Event()
        self._deadline = time.monotonic() + HANG_S
        self.sent = 0

    def finish(self, arguments: Mapping[str, Any]) -> str:
        """The text that the call ends in; empty if it took effect, and the server was killed
        before it said so."""
        while True:
            self.sent += 1
            try:
                reply = self._exchange("tools/call", {"name": "query", "arguments": arguments})
            except NoReply:
                if self._count():
                    return ""
                continue
            text = self._wait(reply)
            if USED in text:  # by a call before this one, whose process was killed
                if self._count():
                    return ""
                continue
            if not any(words in text for words in AGAIN):
                return text
            assert self._count() == 0, f"{text}: but it took effect"

    def _wait(self, reply: dict[str, Any]) -> str:
        """The text at the end of a call whose first reply this is."""
        if reply.get("resultType") == "task":
            return self._wait_for_task(reply["taskId"])
        text, handle = _text_of(reply), ""
        while "still running" in text or "in another process" in text:
            if "still running" in text:
                handle = json.loads(text)["more"]
            arguments = {"handle": handle}
            text = _text_of(self._insist("tools/call", {"name": "more", "arguments": arguments}))
        return text

    def _wait_for_task(self, id: str) -> str:
        while True:
            found = self._insist("tasks/get", {"taskId": id})
            if found["status"] == "completed":
                return _text_of(found["result"])
            if found["status"] != "working":
                assert found["status"] == "failed", found
                return found["error"]["message"]
            self._never.wait(POLL_S)

    def _insist(self, method: str, params: Mapping[str, Any]) -> dict[str, Any]:
        """Ask what changes nothing until there is a reply."""
        while True:
            try:
                return self._exchange(method, params)
            except NoReply:
                pass

    def _exchange(self, method: str, params: Mapping[str, Any]) -> dict[str, Any]:
        """Raises: NoReply, a moment after it was noticed: a server that is gone for good must not
        have its clients take the processor until the deadline."""
        assert time.monotonic() < self._deadline, "the server gave no reply any more"
        assert self._up.wait(PATIENCE_S), "the server has not come up again"
        try:
            if self._peer is None:
                self._peer = self._connect()
            return self._peer.request(method, params).result
        except (OSError, HTTPException):
            self._peer = None
            self._never.wait(POLL_S)
            raise NoReply from None


def _text_of(result: dict[str, Any]) -> str:
    return result["content"][0]["text"]
