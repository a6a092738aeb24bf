"""Whatever can be called has a row: a new tool, resource or prompt fails here until it has one."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from support.authz_calls import (
    CHANGES,
    LISTINGS,
    OTHER_LANGUAGE,
    PROMPTS,
    ROWS,
    RUNS,
    SEES,
    WITHOUT_SOURCE,
)
from support.authz_engines import ENGINES, SETTINGS
from support.authz_server import ACTORS, Harness, play
from tidegate.config.sources import SourceSettings
from tidegate.surfaces.registry import SURFACES

Names = set[tuple[str, str]]


async def offered(harness: Harness) -> tuple[Names, Names]:
    """The tools and resources, and the prompts, of every surface, as a client lists them."""
    callers = await harness.callers()
    called: Names = set()
    prompts: Names = set()
    for name in SURFACES:
        peer = callers[name, "owner"].peer
        listed = {method: await every(peer, method) for method in METHODS}
        called |= {(name, tool["name"]) for tool in listed["tools/list"]}
        called |= {(name, resource["uri"]) for resource in listed["resources/list"]}
        called |= {
            (name, template["uriTemplate"]) for template in listed["resources/templates/list"]
        }
        prompts |= {(name, prompt["name"]) for prompt in listed["prompts/list"]}
    return called, prompts


METHODS = {
    "tools/list": "tools",
    "resources/list": "resources",
    "resources/templates/list": "resourceTemplates",
    "prompts/list": "prompts",
}


async def every(peer: Any, method: str) -> list[dict[str, Any]]:
    """Everything of one kind, page by page; nothing of a kind that the surface has not."""
    found: list[dict[str, Any]] = []
    cursor: dict[str, Any] = {}
    while True:
        reply = await peer.request(method, **cursor)
        if "error" in reply:
            assert reply["error"]["code"] == -32601, reply
            return found
        found += reply["result"][METHODS[method]]
        if "nextCursor" not in reply["result"]:
            return found
        cursor = {"cursor": reply["result"]["nextCursor"]}


def test_every_tool_resource_and_prompt_of_every_surface_has_a_row(tmp_path: Path) -> None:
    called, prompts = play(tmp_path, "sqlite", "readWrite", offered)
    assert called == {
        (surface, name.partition(" ")[0])
        for surface, name in (*ROWS, *LISTINGS, *WITHOUT_SOURCE, *OTHER_LANGUAGE)
    }
    assert prompts == {*PROMPTS}


def test_every_grid_has_every_setting_and_every_actor() -> None:
    for key, row in ROWS.items():
        for effect, grid in row.grids.items():
            assert effect in RUNS, key
            assert set(grid) == set(SETTINGS), key
            assert all(set(cells) == set(ACTORS) for cells in grid.values()), key
    assert set(SEES) == set(ACTORS)
    assert set(RUNS) > CHANGES


@pytest.mark.parametrize(
    "setting",
    ["access", "agents", "approval_for", "changes", "unattended", "unqualified", "approval",
     "destructive_scope"],
)  # fmt: skip
def test_every_word_that_a_setting_may_have_is_in_the_matrix(setting: str) -> None:
    from typing import get_args, get_type_hints

    words = set(get_args(get_type_hints(SourceSettings)[setting]))
    default = {field.default for field in _fields() if field.name == setting}
    used = {given.get(setting) for given in SETTINGS.values()} - {None}
    assert used | default == words


def _fields() -> Any:
    import msgspec

    return msgspec.structs.fields(SourceSettings)


def test_the_four_engines_are_all_here() -> None:
    assert set(ENGINES) == {"sqlite", "duckdb", "postgres", "mariadb"}


def test_a_prompt_that_is_not_there_is_not_given(tmp_path: Path) -> None:
    async def ask(harness: Harness) -> list[int]:
        callers = await harness.callers()
        replies = [
            await callers[name, "owner"].peer.request("prompts/get", name="any")
            for name in SURFACES
        ]
        return [reply["error"]["code"] for reply in replies]

    assert set(play(tmp_path, "sqlite", "readWrite", ask)) <= {-32601, -32602}


def test_a_prompt_asks_the_gate_for_nothing(tmp_path: Path) -> None:
    async def ask(harness: Harness) -> list[str]:
        callers = await harness.callers()
        for surface, name in PROMPTS:
            given = {"query_text": "a", "requirements": "b"}
            listed = (await callers[surface, "foreign"].peer.request("prompts/list"))["result"]
            (prompt,) = [each for each in listed["prompts"] if each["name"] == name]
            wanted = {each["name"] for each in prompt.get("arguments", ())}
            arguments = {key: value for key, value in given.items() if key in wanted}
            reply = await callers[surface, "foreign"].peer.request(
                "prompts/get", name=name, arguments=arguments
            )
            assert reply["result"]["messages"], reply
        return [path.read_text() for path in (tmp_path / "state/audit").glob("*.jsonl")]

    assert "prompt:" not in "".join(play(tmp_path, "sqlite", "blocked", ask))
