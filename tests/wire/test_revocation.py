"""A token that is revoked by another process: what it had open ends, and it opens nothing more."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from support.command_line import serving, tidegate
from support.eventually import wait_until
from wire.test_gate import ENDLESS, SELECT, Place, _port, _running, place  # noqa: F401
from wire.wires import MODERN, HttpPeer


class TokenPeer(HttpPeer):
    """A peer that sends a token."""

    def __init__(self, port: int, revision: str, token: str, **more: Any) -> None:
        super().__init__(port, revision, **more)
        self._token = token

    def headers(self, message: Any) -> dict[str, str]:
        return {**super().headers(message), "Authorization": f"Bearer {self._token}"}


def make(state: Path, name: str) -> str:
    return tidegate("token", "create", name, "--scope", "readOnly", state=state).out.strip()


def wait_for(place: Place, **wanted: str) -> dict[str, Any]:  # noqa: F811
    """The first record with these values, once it is there."""
    return wait_until(lambda: place.records(**wanted), f"a record of {wanted}")[0]


@pytest.mark.parametrize("revision", ["2025-11-25", MODERN])
def test_calls_streams_and_sessions_of_a_revoked_token_end_and_others_go_on(
    place: Place,  # noqa: F811
    revision: str,
) -> None:
    lost, kept = make(place.state, "lost"), make(place.state, "kept")
    words = [*place.words("core"), "--http", "127.0.0.1:0"]
    with serving(words, place.state) as server:
        port = _port(server)
        path = "/mcp/core"
        with (
            TokenPeer(port, revision, lost, path=path) as revoked,
            TokenPeer(port, revision, kept, path=path) as keeper,
        ):
            revoked.connect()
            keeper.connect()
            running = _running(revoked)
            assert revoked.call("query", {"sql": SELECT}).text
            if revision == MODERN:
                params = revoked.add_meta({"notifications": {"toolsListChanged": True}})
                listen = {"jsonrpc": "2.0", "id": "l", "method": "subscriptions/listen"}
                stream = revoked.post({**listen, "params": params})
            else:
                stream = revoked.listen()
            assert stream.status == 200
            assert tidegate("token", "revoke", "lost", state=place.state).status == 0
            assert wait_for(place, statement=ENDLESS, phase="outcome")["code"] == "call.cancelled"
            list(stream.messages())  # ends
            stream.close()
            running.close()
            message = {"jsonrpc": "2.0", "id": 9, "method": "tools/list"}
            refused = revoked.post({**message, "params": revoked.add_meta({})})
            assert refused.status == 401
            assert "invalid_token" in refused.headers["www-authenticate"]
            refused.close()
            assert keeper.call("query", {"sql": SELECT}).text
            revoked.session = None
    names = [record["name"] for record in place.records() if record["phase"] == "event"]
    assert names.count("token.revoked") == 1
    assert "login.failed" in names
