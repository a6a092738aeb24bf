"""A visitor of the console: the requests that its page sends, by httpx, and its live stream."""

from __future__ import annotations

import json
import threading
from contextlib import suppress
from typing import Any

import httpx
import msgspec


class Visitor:
    """A browser at `address`, signed in or not. `origin` is where it takes the console to be, if
    that is elsewhere."""

    def __init__(self, address: str, origin: str = "") -> None:
        self.address = origin or address
        headers = {"host": origin.partition("//")[2]} if origin else {}
        self.client = httpx.Client(base_url=address, timeout=30.0, trust_env=False, headers=headers)
        self.page = self.key = ""

    def headers(self, **changes: str | None) -> dict[str, str]:
        """What the page's requests carry; a change to None leaves a header out."""
        headers: dict[str, str | None] = {
            "origin": self.address,
            "sec-fetch-site": "same-origin",
            "content-type": "application/json",
            "x-tidegate-page": self.page,
            **{name.replace("_", "-"): value for name, value in changes.items()},
        }
        return {name: value for name, value in headers.items() if value is not None}

    def post(self, path: str, body: Any = None, **changes: str | None) -> httpx.Response:
        return self.client.post(
            f"/console/api/{path}",
            content=msgspec.json.encode({} if body is None else body),
            headers=self.headers(**changes),
        )

    def get(self, path: str, **changes: str | None) -> httpx.Response:
        headers = self.headers(**{"origin": None, "content_type": None, **changes})
        return self.client.get(f"/console/api/{path}", headers=headers)

    def sign_in(self, **body: str) -> dict[str, Any]:
        """Sign in by `link`, or `name` and `passphrase`."""
        answer = self.post("sign-in", body)
        assert answer.status_code == 200, answer.text
        session: dict[str, Any] = answer.json()
        self.page, self.key = session["page"], session["key"]
        return session

    def resume(self) -> httpx.Response:
        """Load the page again, in the same browser."""
        return self.post("session", {"key": self.key})


class Stream:
    """The live stream of a visitor, read on a thread."""

    def __init__(self, visitor: Visitor) -> None:
        self.events: list[tuple[str, Any]] = []
        self.ended = threading.Event()
        self._visitor = visitor
        self._thread = threading.Thread(target=self._read, daemon=True)
        self._thread.start()

    def _read(self) -> None:
        client, name = self._visitor.client, ""
        headers = self._visitor.headers(origin=None, content_type=None)
        with (
            suppress(httpx.HTTPError),  # the test has ended, and closed its visitors
            client.stream("GET", "/console/api/events", headers=headers) as answer,
        ):
            for line in answer.iter_lines():
                if line.startswith("event: "):
                    name = line.removeprefix("event: ")
                elif line.startswith("data: "):
                    self.events.append((name, json.loads(line.removeprefix("data: "))))
        self.ended.set()

    def of(self, name: str) -> list[Any]:
        return [data for event, data in self.events if event == name]
