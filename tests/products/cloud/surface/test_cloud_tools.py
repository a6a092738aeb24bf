"""The tools and the prompt of the surface `cloud`: names, inputs, outputs and texts."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from support.cloud_surface import RESOURCE, CloudClient, Desk, opened, running_desk
from support.surface_client import READER

HIERARCHY = {"provider", "service", "resource"}
TOOLS: dict[str, tuple[set[str], set[str], set[str]]] = {
    "server_info": (
        set(), set(), {"version", "platform", "transport", "sql_backend", "mode", "is_read_only"},
    ),
    "list_providers": (set(), {"row_limit"}, {"rows"}),
    "list_services": ({"provider"}, {"row_limit"}, {"rows"}),
    "list_resources": ({"provider", "service"}, {"row_limit"}, {"rows"}),
    "list_methods": (HIERARCHY, {"row_limit"}, {"rows"}),
    "describe_resource": (HIERARCHY, {"row_limit"}, {"rows"}),
    "describe_method": (HIERARCHY | {"method"}, {"row_limit"}, {"rows"}),
    "list_registry": (set(), {"provider", "version"}, {"rows"}),
    "pull_provider": ({"provider"}, {"version"}, {"messages", "timestamp"}),
    "validate_select_query": ({"sql"}, {"row_limit"}, {"valid"}),
    "run_select_query": ({"sql"}, {"row_limit"}, {"rows"}),
    "run_mutation_query": ({"sql"}, {"row_limit"}, {"messages", "timestamp"}),
    "run_lifecycle_operation": ({"sql"}, {"row_limit"}, {"messages", "timestamp"}),
}  # fmt: skip
"""By tool: required arguments, optional ones, and what each result has."""
CALLS: dict[str, dict[str, Any]] = {
    "list_providers": {},
    "list_services": {"provider": "desk"},
    "list_resources": {"provider": "desk", "service": "tickets"},
    "list_methods": {"provider": "desk", "service": "tickets", "resource": "tickets"},
    "describe_resource": {"provider": "desk", "service": "tickets", "resource": "tickets"},
    "describe_method": {
        "provider": "desk", "service": "tickets", "resource": "tickets", "method": "create",
    },
}  # fmt: skip


@pytest.fixture(scope="module")
def desk() -> Any:
    with running_desk() as running:
        yield running


async def test_the_tools_are_those_of_the_document_with_their_inputs_and_outputs(
    tmp_path: Path,
) -> None:
    async with opened(tmp_path) as app:
        reply = await CloudClient(app).request("tools/list")
        listed = {
            tool["name"]: (
                set(tool["inputSchema"].get("required", ())),
                set(tool["inputSchema"]["properties"])
                - set(tool["inputSchema"].get("required", ())),
                set(tool["outputSchema"]["required"]),
            )
            for tool in reply["result"]["tools"]
        }
        assert list(listed) == list(TOOLS)
        assert listed == TOOLS


async def test_no_tool_that_runs_a_given_statement_claims_to_read_only(tmp_path: Path) -> None:
    async with opened(tmp_path) as app:
        reply = await CloudClient(app).request("tools/list")
        hints = {tool["name"]: tool["annotations"] for tool in reply["result"]["tools"]}
        for tool in ("run_select_query", "run_mutation_query", "run_lifecycle_operation"):
            assert not hints[tool].get("readOnlyHint")
        assert hints["run_mutation_query"]["destructiveHint"] is True
        assert hints["pull_provider"] == {
            "readOnlyHint": False,
            "destructiveHint": False,
            "idempotentHint": True,
            "openWorldHint": True,
        }


async def test_the_prompt_teaches_to_look_at_the_methods_first(tmp_path: Path) -> None:
    async with opened(tmp_path) as app:
        client = CloudClient(app)
        listed = (await client.request("prompts/list"))["result"]["prompts"]
        assert [prompt["name"] for prompt in listed] == ["write_safe_select"]
        assert not listed[0].get("arguments")
        got = (await client.request("prompts/get", name="write_safe_select"))["result"]
        (message,) = got["messages"]
        assert message["role"] == "user"
        assert "SHOW methods IN <provider>.<service>.<resource>" in message["content"]["text"]
        assert "**required** WHERE clause" in message["content"]["text"]


async def test_server_info_says_who_serves_what_and_how(tmp_path: Path) -> None:
    async with opened(tmp_path) as app:
        text, payload = await CloudClient(app, READER).good("server_info")
        assert payload["mode"] == "safe"
        assert payload["is_read_only"] is False
        assert payload["transport"] == "stdio"
        assert payload["sql_backend"] == "sqlite3"
        assert payload["provider_registry"].endswith("/registry")
        assert text.startswith("# Server Info\n\n## Record 1\n\n")
        assert "is_read_only: false\nmode: safe\n" in text


@pytest.mark.parametrize("tool", CALLS)
async def test_discovery_gives_the_names_of_the_documents(tmp_path: Path, tool: str) -> None:
    async with opened(tmp_path) as app:
        text, payload = await CloudClient(app, READER).good(tool, **CALLS[tool])
        rows = payload["rows"]
        expected = {
            "list_providers": [{"name": "desk", "version": "v24.01.00001"}],
            "list_services": [{"id": "tickets:v1", "name": "tickets", "title": "Tickets"}],
            "list_resources": [{"name": "tickets", "id": RESOURCE, "title": "Tickets"}],
            "describe_resource": [
                {"name": "id", "type": "string"},
                {"name": "title", "type": "string"},
                {"name": "open", "type": "boolean"},
            ],
        }
        if tool in expected:
            assert rows == expected[tool]
        if tool == "list_methods":
            found = {row["MethodName"]: (row["RequiredParams"], row["SQLVerb"]) for row in rows}
            assert found["list"] == ("team", "SELECT")
            assert found["delete"] == ("id, team", "DELETE")
            assert found["close"] == ("team", "EXEC")
        if tool == "describe_method":
            kinds = {(row["name"], row["param_type"]) for row in rows}
            assert ("team", "input_required") in kinds
            assert ("title", "input_optional") in kinds
            assert ("title", "output") in kinds
        if tool.startswith("describe"):
            title = "Resource" if tool == "describe_resource" else "Method"
            assert text.startswith(f"# {title}\n\n## Record 1\n\n")
        else:
            header = "| " + " | ".join(rows[0]) + " |\n" + "|---" * len(rows[0]) + "|\n"
            assert text.startswith(header)


async def test_a_name_cannot_be_more_than_a_name(tmp_path: Path, desk: Desk) -> None:
    async with opened(tmp_path, desk=desk) as app:
        client = CloudClient(app)
        for provider in ("desk; DELETE FROM x", 'desk" LIKE "%', "desk' OR '1", "desk--", "a.b"):
            text = await client.bad("list_services", provider=provider)
            assert "provider" in text.lower()
        for version in ("v1; REGISTRY LIST", "1 2", "../x"):
            text = await client.bad("pull_provider", provider="desk", version=version)
            assert text.startswith("Parameter version is no version")
        assert desk.writes == []


async def test_an_unknown_name_says_what_is_unknown(tmp_path: Path) -> None:
    async with opened(tmp_path) as app:
        client = CloudClient(app)
        assert "nowhere" in await client.bad("list_services", provider="nowhere")
        wrong = await client.bad(
            "describe_method", provider="desk", service="tickets", resource="tickets", method="nope"
        )
        assert "SHOW METHODS IN desk.tickets.tickets" in wrong


async def test_a_row_limit_is_kept_and_what_was_cut_is_said(tmp_path: Path) -> None:
    async with opened(tmp_path) as app:
        text, payload = await CloudClient(app).good(
            "list_methods", provider="desk", service="tickets", resource="tickets", row_limit=2
        )
        assert len(payload["rows"]) == 2
        assert payload["truncated"] == [{"kind": "rows", "limit": 2, "returned": 2}]
        assert text.endswith("\n\nTruncated: 2 shown, the limit of rows is 2.\n")


async def test_a_wrong_argument_is_named(tmp_path: Path) -> None:
    async with opened(tmp_path) as app:
        client = CloudClient(app)
        assert "provider is required" in await client.bad("list_services")
        assert "Parameter row_limit is wrong" in await client.bad("list_providers", row_limit=-1)
        assert "Parameter sql is required" in await client.bad("run_select_query")


async def test_an_unknown_tool_is_refused(tmp_path: Path) -> None:
    async with opened(tmp_path) as app:
        reply = await CloudClient(app).request("tools/call", name="drop_all", arguments={})
        assert reply["error"] == {"code": -32602, "message": 'unknown tool "drop_all"'}


async def test_json_is_the_text_where_the_server_renders_json(tmp_path: Path) -> None:
    async with opened(tmp_path, {"server": {"render": "json"}}) as app:
        text, payload = await CloudClient(app).good("list_providers")
        assert text == '{"rows":[{"name":"desk","version":"v24.01.00001"}]}'
        assert payload == {"rows": [{"name": "desk", "version": "v24.01.00001"}]}


async def test_a_narrowed_surface_shows_and_answers_only_what_it_names(tmp_path: Path) -> None:
    named = {"enabled_tools": ["server_info"], "disable_instructions": True}
    async with opened(tmp_path, named) as app:
        client = CloudClient(app)
        reply = await client.request("tools/list")
        assert [tool["name"] for tool in reply["result"]["tools"]] == ["server_info"]
        refused = await client.request("tools/call", name="list_providers", arguments={})
        assert refused["error"]["message"] == 'unknown tool "list_providers"'
        assert client.surface.instructions is None


async def test_the_extended_surface_has_a_search_and_a_format(tmp_path: Path) -> None:
    async with opened(tmp_path, {"extended": True}) as app:
        client = CloudClient(app)
        listed = (await client.request("tools/list"))["result"]["tools"]
        assert [tool["name"] for tool in listed] == [
            *TOOLS, "search_resources", "reload_credentials",
        ]  # fmt: skip
        text, payload = await client.good("search_resources", words="Ticket desk", format="json")
        assert payload["rows"] == [
            {"path": RESOURCE, "provider": "desk", "service": "tickets", "resource": "tickets"}
        ]
        assert text.startswith('{"rows":[')
        assert (await client.good("search_resources", words="it's"))[0] == "**no results**"
        assert "invalid format" in await client.bad("list_providers", format="html")
        text, _ = await client.good("reload_credentials")
        assert "Logins are read again before the next request to: desk" in text
        await client.good("list_providers")
        assert "readWrite" in await CloudClient(app, READER).bad("reload_credentials")
