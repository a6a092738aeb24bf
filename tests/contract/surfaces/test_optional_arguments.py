"""An optional argument that is sent as nothing is not given, at every tool of every surface.

Frameworks for agents send every argument that a tool lists. The tests of `cloud` and
`datalog` have the same of their answers.
"""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest

from support.authz_calls import OPENED, ROWS, URI
from support.authz_server import Caller, Harness, play
from support.optional_arguments import lasting, optional_of
from support.surface_gateway import SqliteGate
from tidegate.config.model import Config
from tidegate.surfaces.arguments import convert
from tidegate.surfaces.registry import SURFACES, open_surface

ALL = Config(surface={name: {"extended": True} for name in SURFACES if SURFACES[name].extended})
EXAMPLES = {"string": "x", "integer": 1, "number": 1.5, "boolean": True, "object": {}}


def example(schema: Mapping[str, Any]) -> Any:
    """A value that a schema takes."""
    if schema.get("type") == "array":
        return [example(schema["items"])]
    return schema["enum"][0] if "enum" in schema else EXAMPLES[schema.get("type", "string")]


@pytest.mark.parametrize("name", SURFACES)
def test_every_tool_takes_nothing_in_each_form_as_not_given(name: str, tmp_path: Path) -> None:
    surface = open_surface(name, SqliteGate(tmp_path), ALL)
    wrong: list[str] = []
    asked = 0
    for tool in surface.listed_tools():
        args = surface.tools_by_name[tool.name].args
        listed = tool.input_schema["properties"]
        required = {each: example(listed[each]) for each in tool.input_schema.get("required", ())}
        meant = convert(required, args)
        for argument, forms in optional_of(tool.input_schema):
            for form in forms:
                asked += 1
                if convert({**required, argument: form}, args) != meant:
                    wrong.append(f"{tool.name} {argument}={form!r}")
    assert asked
    assert wrong == []


async def answer(caller: Caller, name: str, **more: Any) -> str:
    """What a tool says to the call of its row, with more arguments."""
    given = await caller.arguments_of(name, "read", "writer")
    reply = await caller.peer.call(name.partition(" ")[0], **given | more)
    if OPENED in given:
        await caller.peer.call("close", connectionId=given[OPENED])
    return lasting(reply)


async def differing(harness: Harness) -> list[str]:
    """The calls whose answer changes by an argument that is sent as nothing."""
    callers = await harness.callers()
    found: list[str] = []
    for surface, name in ROWS:
        row, caller = harness.row((surface, name)), callers[surface, "writer"]
        if row.takes == URI:
            continue
        tool = name.partition(" ")[0]
        listed = (await caller.peer.request("tools/list"))["result"]["tools"]
        schema = next(each["inputSchema"] for each in listed if each["name"] == tool)
        await answer(caller, name)  # what is explained once in a session is
        meant = await answer(caller, name)
        for argument, forms in optional_of(schema):
            if argument in (*row.arguments, row.takes, row.text, "confirmed"):
                continue
            for form in forms:
                said = await answer(caller, name, **{argument: form})
                if said != meant:  # or what is read of the tables beside the calls has come
                    meant = await answer(caller, name)
                    said = await answer(caller, name, **{argument: form})
                if said != meant:
                    found.append(f"{surface}.{name} {argument}={form!r}: {said} not {meant}")
    return found


def test_the_answers_of_tools_for_databases_stay_the_same(tmp_path: Path) -> None:
    assert play(tmp_path, "sqlite", "readWrite", differing) == []
