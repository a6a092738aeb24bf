"""`tidegate serve` for cloud providers: StackQL's configuration as the settings, on stdio."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from support.cloud_surface import DELETE, SELECT, running_desk, write_desk
from support.command_line import tidegate

HELLO: list[dict[str, Any]] = [
    {
        "jsonrpc": "2.0",
        "id": 1,
        "method": "initialize",
        "params": {
            "protocolVersion": "2025-06-18",
            "capabilities": {},
            "clientInfo": {"name": "c", "version": "1"},
        },
    },
    {"jsonrpc": "2.0", "method": "notifications/initialized"},
]


def talk(
    state: Path, config: str, *calls: tuple[str, dict[str, Any]], words: Any = ()
) -> list[Any]:
    """The results of tool calls to a server on stdio."""
    messages = [
        *HELLO,
        *(
            {
                "jsonrpc": "2.0",
                "id": number,
                "method": "tools/call",
                "params": {"name": name, "arguments": arguments},
            }
            for number, (name, arguments) in enumerate(calls, 2)
        ),
    ]
    given = "".join(f"{json.dumps(each)}\n" for each in messages)
    ended = tidegate("serve", "--config", config, state=state, stdin=given)
    assert ended.status == 0, ended.err
    replies = {each["id"]: each for each in map(json.loads, ended.out.splitlines())}
    return [replies[number]["result"] for number in range(2, len(calls) + 2)]


def test_the_configuration_alone_serves_the_documents_of_the_state_directory(
    tmp_path: Path,
) -> None:
    write_desk(tmp_path / "cloud")
    with running_desk() as desk:
        info, listed, refused = talk(
            tmp_path,
            '{"server": {"name": "inventory", "mode": "safe"}}',
            ("server_info", {}),
            ("list_providers", {}),
            ("run_mutation_query", {"sql": DELETE}),
        )
        assert desk.requests == []
    assert info["structuredContent"]["mode"] == "safe"
    assert info["structuredContent"]["provider_registry"] == f"file://{tmp_path / 'cloud'}"
    assert listed["structuredContent"]["rows"][0]["name"] == "desk"
    assert "and the MCP client does not support elicitation" in refused["content"][0]["text"]
    (calls,) = (tmp_path / "cloud-calls").iterdir()
    tools = [json.loads(line)["tool"] for line in calls.read_text().splitlines()]
    assert sorted(tools) == ["list_providers", "run_mutation_query", "server_info"]


@pytest.mark.parametrize("is_off", [True, False])
def test_the_start_says_where_the_lines_of_calls_go(tmp_path: Path, is_off: bool) -> None:
    write_desk(tmp_path / "cloud")
    config = json.dumps({"server": {"audit": {"disabled": is_off}}})
    ended = tidegate("serve", "--config", config, state=tmp_path, stdin=json.dumps(HELLO[0]) + "\n")
    assert ended.status == 0, ended.err
    said = [line for line in ended.err.splitlines() if line.startswith("sink file: ")]
    if is_off:
        assert said == []
        return
    (line,) = said
    path = Path(line.removeprefix("sink file: "))
    assert path.parent == tmp_path / "cloud-calls"


def test_full_access_alone_lets_a_caller_on_stdio_change_what_is_there(tmp_path: Path) -> None:
    folder = write_desk(tmp_path / "documents")
    with running_desk() as desk:
        options = json.dumps({"endpoints": {"https://desk.example/v1": desk.url}})
        config = {
            "surfaces": ["cloud"],
            "allow_writes": True,
            "sources": [{"name": "apis", "url": f"cloud://{folder}", "access": "write",
                         "options": {"settings": options}}],
            "surface": {"cloud": {"server": {"mode": "full_access"}}},
        }  # fmt: skip
        (changed,) = talk(tmp_path, json.dumps(config), ("run_mutation_query", {"sql": DELETE}))
        assert not changed.get("isError"), changed
        assert len(desk.writes) == 1


@pytest.mark.parametrize(
    ("server", "words", "named"),
    [
        ({"address": "127.0.0.1:1"}, ("--http", "127.0.0.1:2"), "--http"),
        ({"transport": "sse"}, (), "surface.cloud.server.transport"),
        ({"mode": "yolo"}, (), "surface.cloud.server.mode"),
    ],
)
def test_what_cannot_be_followed_is_refused_before_anything_is_served(
    tmp_path: Path, server: dict[str, Any], words: tuple[str, ...], named: str
) -> None:
    config = json.dumps({"server": server})
    ended = tidegate("serve", "--config", config, *words, state=tmp_path)
    assert ended.status == 78
    assert named in ended.err
    assert SELECT not in ended.out
