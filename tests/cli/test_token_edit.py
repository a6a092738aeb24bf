"""`tidegate token show` and `token edit`: what is not said stays, only a person gives more, and a
running server follows at once."""

from __future__ import annotations

import http.client
import json
from collections.abc import Callable, Iterator
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest

from support.command_line import Ended, serving, tidegate
from support.eventually import wait_until

Run = Callable[..., Ended]


@pytest.fixture
def secret(run: Run, towns: Path) -> str:
    """A token `ann` for one table of the source `towns`, for 30 days."""
    words = ("--source", "towns", "--table", "towns", "--expires", "30d")
    return run("token", "create", "ann", "--scope", "readWrite", *words).out.strip()


def shown(run: Run, name: str = "ann") -> Any:
    return run("token", "show", name, "--json").json


def test_everything_of_a_token_is_shown_but_its_secret(run: Run, secret: str) -> None:
    fields = shown(run)
    assert (fields["scope"], fields["sources"], fields["tables"], fields["sees"]) == (
        "readWrite", ["towns"], ["towns"], ["towns"],
    )  # fmt: skip
    assert fields["state"] == "active" and fields["expires_at"]
    ended = run("token", "show", "ann")
    assert "readWrite" in ended.out and secret not in ended.out + json.dumps(fields)


@pytest.mark.parametrize("action", ["show", "edit"])
def test_an_unknown_token_is_answered_with_the_nearest(run: Run, secret: str, action: str) -> None:
    words = ("--scope", "readOnly") if action == "edit" else ()
    ended = run("token", action, "an", *words, stdin="")
    assert (ended.status, ended.out) == (2, "") and "Did you mean 'ann'?" in ended.err


@pytest.mark.parametrize(
    ("words", "changed"),
    [
        (("--scope", "readOnly"), {"scope": "readOnly"}),
        (("--expires", "1h"), {"expires_at": ...}),
        (("--scope", "readWrite"), {}),
        ((), {}),
    ],
)
def test_taking_away_asks_no_one_and_what_is_not_said_stays(
    run: Run, secret: str, words: tuple[str, ...], changed: dict[str, Any]
) -> None:
    before = shown(run)
    assert tidegate_edit(run, *words, stdin="").status == 0
    now = shown(run)
    assert {name for name in before if before[name] != now[name]} == set(changed)
    assert all(now[name] == value for name, value in changed.items() if value is not ...)


def tidegate_edit(run: Run, *words: str, **how: Any) -> Ended:
    return run("token", "edit", "ann", *words, **how)


GIVING = [
    (("--scope", "fullAccess"), {"scope": "fullAccess"}),
    (("--all-sources",), {"sources": None}),
    (("--all-tables",), {"tables": None}),
    (("--table", "towns", "--table", "visits"), {"tables": ["towns", "visits"]}),
    (("--table", "visits"), {"tables": ["visits"]}),
    (("--tag", "eu"), {"tags": ["eu"]}),
    (("--expires", "90d"), {}),
    (("--expires", "never"), {"expires_at": None}),
    (("--scope", "readOnly", "--all-tables"), {"scope": "readOnly", "tables": None}),
]


@pytest.mark.parametrize(("words", "changed"), GIVING)
def test_giving_more_asks_a_person(
    run: Run, secret: str, words: tuple[str, ...], changed: dict[str, Any]
) -> None:
    run("source", "update", "towns", "--tag", "eu")
    before = shown(run)
    refused = tidegate_edit(run, *words, stdin="edit\n")
    assert refused.status == 77 and "terminal" in refused.err
    assert shown(run) == before
    assert tidegate_edit(run, *words).status == 0
    now = shown(run)
    assert now != before
    assert {name: now[name] for name in changed} == changed


@pytest.mark.parametrize(
    ("words", "status", "said"),
    [
        (("--source", "town"), 66, "Did you mean 'towns'?"),
        (("--table", "town"), 66, "Did you mean 'towns'?"),
        (("--all-tables", "--table", "towns"), 2, "--all-tables goes with no list"),
        (("--expires", "soon"), 2, "not a time span"),
    ],
)
def test_what_cannot_be_meant_changes_nothing(
    run: Run, secret: str, words: tuple[str, ...], status: int, said: str
) -> None:
    before = shown(run)
    ended = tidegate_edit(run, *words)
    assert ended.status == status and said in ended.err
    assert shown(run) == before


def test_a_revoked_token_is_not_edited(run: Run, secret: str) -> None:
    run("token", "revoke", "ann")
    ended = tidegate_edit(run, "--scope", "readOnly")
    assert ended.status == 2 and "is revoked" in ended.err
    assert shown(run)["state"] == "revoked"


def test_both_are_on_record(run: Run, secret: str) -> None:
    tidegate_edit(run, "--scope", "readOnly")
    tidegate_edit(run, "--scope", "fullAccess")
    lines = run("audit", "tail", "--json").out.splitlines()
    scopes = [
        record["details"]["scope"]
        for record in map(json.loads, lines)
        if record.get("name") == "token.changed"
    ]
    assert scopes == ["readOnly", "fullAccess"]


@pytest.fixture
def port(state: Path, secret: str) -> Iterator[int]:
    with serving(["serve", "--http", "127.0.0.1:0"], state) as server:
        server.until("serving")
        address = tidegate("status", "--json", state=state).json["address"]
        yield int(address.rpartition(":")[2])


def asked(port: int, secret: str, table: str) -> str:
    """The answer to a query of that table."""
    body = {
        "jsonrpc": "2.0", "id": 1, "method": "tools/call",
        "params": {
            "name": "query", "arguments": {"sql": f"SELECT count(*) AS n FROM {table}"},
            "_meta": {
                "io.modelcontextprotocol/protocolVersion": "2026-07-28",
                "io.modelcontextprotocol/clientCapabilities": {},
            },
        },
    }  # fmt: skip
    headers = {
        "Authorization": f"Bearer {secret}", "Content-Type": "application/json",
        "MCP-Protocol-Version": "2026-07-28", "Mcp-Method": "tools/call", "Mcp-Name": "query",
    }  # fmt: skip
    with closing(http.client.HTTPConnection("127.0.0.1", port)) as connection:
        connection.request("POST", "/mcp/core", json.dumps(body), headers)
        return connection.getresponse().read().decode()


def test_a_running_server_follows_at_once(run: Run, port: int, secret: str) -> None:
    assert "policy.table" in asked(port, secret, "visits")
    assert tidegate_edit(run, "--table", "visits").status == 0
    wait_until(lambda: "policy.table" not in asked(port, secret, "visits"), "the wider list")
    assert "policy.table" in asked(port, secret, "towns")


def test_a_stream_that_began_with_more_rights_ends(run: Run, port: int, secret: str) -> None:
    headers = {"Authorization": f"Bearer {secret}", "Content-Type": "application/json"}
    headers["Accept"] = "application/json, text/event-stream"
    hello = {
        "jsonrpc": "2.0", "id": 1, "method": "initialize",
        "params": {
            "protocolVersion": "2025-06-18", "capabilities": {},
            "clientInfo": {"name": "test", "version": "1"},
        },
    }  # fmt: skip
    with closing(http.client.HTTPConnection("127.0.0.1", port)) as connection:
        connection.request("POST", "/mcp/core", json.dumps(hello), headers)
        answer = connection.getresponse()
        answer.read()
        session = {"Mcp-Session-Id": answer.headers["Mcp-Session-Id"]}
        connection.request(
            "GET", "/mcp/core", headers={**headers, **session, "MCP-Protocol-Version": "2025-06-18"}
        )
        stream = connection.getresponse()
        assert stream.status == 200
        assert tidegate_edit(run, "--scope", "readOnly", stdin="").status == 0
        while stream.readline():  # it ends, or the test hangs
            pass
