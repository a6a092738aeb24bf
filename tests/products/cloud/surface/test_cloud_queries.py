"""SELECT and its validation through the tools of `cloud`: rows, texts, errors, and the line that
each call leaves."""

from __future__ import annotations

import asyncio
import json
import os
from collections.abc import Iterator
from datetime import datetime
from pathlib import Path

import pytest

from support.cloud_api import Farm, write_farm
from support.cloud_api import Reply as ApiReply
from support.cloud_surface import (
    ADDRESS,
    DELETE,
    INSERT,
    MODERN,
    RESOURCE,
    SELECT,
    CloudClient,
    Desk,
    opened,
    recorded,
    running_desk,
)
from support.http_application import ask
from tidegate.edges.http.application import HttpApplication
from tidegate.protocol.session_state import settled
from tidegate.serve.edges import http_endpoints


@pytest.fixture(scope="module")
def desk() -> Iterator[Desk]:
    with running_desk() as running:
        yield running


async def test_rows_come_in_select_order_with_escaped_cells(tmp_path: Path, desk: Desk) -> None:
    async with opened(tmp_path, desk=desk) as app:
        client = CloudClient(app)
        text, payload = await client.good(
            "run_select_query", sql=f"SELECT title, id FROM {RESOURCE} WHERE team = 'red'"
        )
        assert [list(row) for row in payload["rows"]] == [["title", "id"], ["title", "id"]]
        assert payload["rows"][1]["title"] == "Line one\nline two"
        assert text == (
            "| title | id |\n|---|---|\n| Printer \\| on fire | 1 |\n| Line one\\nline two | 2 |\n"
        )


async def test_a_constant_and_columns_of_one_name_are_all_there(tmp_path: Path) -> None:
    async with opened(tmp_path) as app:
        client = CloudClient(app)
        sql = "SELECT 1 AS n, 'ok' AS status, 2 AS n"
        text, payload = await client.good("run_select_query", sql=sql)
        assert payload == {"rows": [{"n": 1, "status": "ok", "n_2": 2}]}
        assert "| 1 | ok | 2 |" in text


async def test_nothing_found_is_an_empty_list_and_says_so(tmp_path: Path, desk: Desk) -> None:
    async with opened(tmp_path, desk=desk) as app:
        client = CloudClient(app)
        missing = f"SELECT id FROM {RESOURCE} WHERE team = 'red' AND id = '404'"
        text, payload = await client.good("run_select_query", sql=missing)
        assert payload == {"rows": []}
        assert text == "**no results**"


async def test_what_a_limit_cut_is_said_with_the_calls_and_pages_that_were_made(
    tmp_path: Path, desk: Desk
) -> None:
    async with opened(tmp_path, desk=desk) as app:
        text, payload = await CloudClient(app).good("run_select_query", sql=SELECT, row_limit=1)
        assert payload["truncated"] == [{"kind": "rows", "limit": 1, "returned": 1}]
        assert (payload["calls"], payload["pages"]) == (1, 1)
        assert text.endswith("Truncated: 1 shown, the limit of rows is 1 (1 calls, 1 pages).\n")


async def test_replies_from_the_cache_are_said_with_their_age(tmp_path: Path, desk: Desk) -> None:
    kept = {"options": {"cache_seconds": "600"}}
    async with opened(tmp_path, desk=desk, source=kept) as app:
        client = CloudClient(app)
        _, first = await client.good("run_select_query", sql=SELECT)
        desk.requests.clear()
        text, again = await client.good("run_select_query", sql=SELECT)
        assert again["rows"] == first["rows"] and "cached" not in first
        assert again["cached"]["hits"] == 1 and again["cached"]["age_s"] >= 0
        assert "From the cache: 1 of the lists" in text
        assert desk.requests == []
        _, fresh = await client.good(
            "run_select_query", sql=SELECT.replace(" ", " /*+ FRESH */ ", 1)
        )
        assert "cached" not in fresh and len(desk.requests) == 1


async def test_the_surface_has_a_path_of_its_own_over_http(tmp_path: Path, desk: Desk) -> None:
    async with opened(tmp_path, {"server": {"mode": "read_only"}}, desk, auth=False) as app:
        http = HttpApplication(http_endpoints(app), app.authenticate)
        meta = {
            "io.modelcontextprotocol/protocolVersion": MODERN,
            "io.modelcontextprotocol/clientCapabilities": {},
            "io.modelcontextprotocol/clientInfo": {"name": "c", "version": "1"},
        }
        message = {
            "jsonrpc": "2.0",
            "id": 1,
            "method": "tools/call",
            "params": {"name": "server_info", "arguments": {}, "_meta": meta},
        }
        headers = {
            "accept": "application/json, text/event-stream",
            "mcp-protocol-version": MODERN,
            "mcp-method": "tools/call",
            "mcp-name": "server_info",
        }
        answer = await ask(http, "POST", "/mcp/cloud", message, headers)
        info = answer.json["result"]["structuredContent"]
        assert (info["transport"], info["mode"]) == ("http", "read_only")
        await settled()


async def test_an_upstream_error_is_an_error_with_its_status(tmp_path: Path, desk: Desk) -> None:
    async with opened(tmp_path, desk=desk) as app:
        failing = SELECT.replace("'red'", "'failing'")
        text = await CloudClient(app).bad("run_select_query", sql=failing)
        assert text.startswith('upstream http error: {"http_status": 403, "retryable": false}: ')
        assert '{"message": "not for you"}. The provider desk asks for a login' in text


async def test_an_upstream_error_says_when_to_try_again(tmp_path: Path) -> None:
    farm = Farm(lambda *asked: ApiReply(429, {"message": "slowly"}, Retry_After="3600"))
    try:
        folder = str(write_farm(tmp_path / "registry"))
        source = {"url": f"cloud://{folder}", "options": dict(farm.options)}
        async with opened(tmp_path, source=source) as app:
            sql = "SELECT name FROM farm.live.fields"
            text = await CloudClient(app).bad("run_select_query", sql=sql)
    finally:
        farm.close()
    assert text.startswith('upstream http error: {"http_status": 429, "retryable": true}: ')
    assert text.endswith("Retry in 3,600 s, as the provider asks.")


async def test_missing_parameters_are_named_with_where_to_find_them(tmp_path: Path) -> None:
    async with opened(tmp_path) as app:
        client = CloudClient(app)
        sql = f"SELECT id FROM {RESOURCE}"
        text = await client.bad("run_select_query", sql=sql)
        assert "cannot find matching operation" in text
        assert f"SHOW METHODS IN {RESOURCE}. SELECT has these methods: " in text
        some = await client.bad("run_select_query", sql=f"{sql} WHERE id = '1'")
        assert some.endswith("Of these get lacks team; list lacks team.")
        _, payload = await client.good("validate_select_query", sql=sql)
        assert payload["valid"] is False
        assert payload["errors"] == [text]
        several = await client.bad("run_select_query", sql="SELECT 1; SELECT 2")
        assert several.count("Send one statement at a time.") == 1


async def test_to_validate_a_query_names_its_method_and_sends_nothing(
    tmp_path: Path, desk: Desk
) -> None:
    desk.requests.clear()
    async with opened(tmp_path, desk=desk) as app:
        text, payload = await CloudClient(app).good("validate_select_query", sql=SELECT)
        (chosen,) = payload.pop("explain_output")
        assert payload == {"valid": True}
        assert (chosen["method"], chosen["parameters"], chosen["calls"]) == ("list", "team", "1")
        assert text.startswith("# Validation Result\n\n## Record 1\n\nerrors: null\n")
        assert '"method":"list"' in text
        assert text.endswith("valid: true\n")
    assert desk.requests == []


async def test_each_call_leaves_one_line_without_rows_or_secrets(
    tmp_path: Path, desk: Desk
) -> None:
    async with opened(tmp_path, desk=desk) as app:
        client = CloudClient(app)
        await client.good("list_services", provider="desk", row_limit=5)
        secret = f"SELECT id FROM {RESOURCE} WHERE team = 'red' AND password = 'hunter2'"
        await client.call("run_select_query", sql=secret)
        await client.good("server_info")
    listed, queried, info = recorded(tmp_path)
    datetime.fromisoformat(listed["timestamp"])
    assert listed.pop("duration_ms") >= 0
    del listed["timestamp"]
    assert listed == {
        "tool": "list_services",
        "mode": "safe",
        "decision": "allow",
        "query_class": "select",
        "args": {"provider": "desk", "row_limit": 5},
    }
    assert queried["sql"].endswith("password = '***'")
    assert queried["args"]["sql"] == queried["sql"]
    assert "args" not in info
    text = (tmp_path / "calls.log").read_text()
    assert "hunter2" not in text
    assert "Printer" not in text


def _break(directory: Path, how: str) -> None:
    """Make the file of calls impossible to write."""
    path = directory / "calls.log"
    if how == "directory":
        path.unlink(missing_ok=True)
        path.mkdir()  # no file can be there
    elif how == "disk":
        path.unlink(missing_ok=True)
        path.symlink_to("/dev/full")
    else:
        path.parent.mkdir(exist_ok=True)


@pytest.mark.parametrize("how", ["directory", "disk"])
@pytest.mark.parametrize(
    ("failure_mode", "reads", "changes"),
    [("strict", False, False), ("strict_mutations", True, False), ("best_effort", True, True)],
)
async def test_while_no_line_can_be_written_the_failure_mode_decides(
    tmp_path: Path, how: str, failure_mode: str, reads: bool, changes: bool
) -> None:
    audit = {"failure_mode": failure_mode}
    settings = {"server": {"mode": "full_access", "audit": audit}}
    with running_desk() as desk:
        _break(tmp_path, how)
        async with opened(tmp_path, settings, desk) as app:
            client = CloudClient(app)
            read = await client.call("run_select_query", sql=SELECT)
            assert bool(read.get("isError")) is not reads
            changed = await client.call("run_mutation_query", sql=INSERT)
            again = await client.call("run_mutation_query", sql=INSERT)
        if changes:
            assert len(desk.writes) == 2
        else:
            # On the full disk the line of the read is pending: it is known before anything is sent.
            assert desk.writes == []
            for each in (changed, again):
                assert "cannot be written" in each["content"][0]["text"]


async def test_a_change_that_could_not_be_recorded_is_recorded_when_that_is_possible(
    tmp_path: Path,
) -> None:
    settings = {"server": {"mode": "full_access"}}
    path = tmp_path / "calls.log"
    with running_desk() as desk:
        _break(tmp_path, "disk")
        async with opened(tmp_path, settings, desk) as app:
            client = CloudClient(app)
            text = await client.bad("run_mutation_query", sql=DELETE)
            assert "The statement ran, do not repeat it" in text
            assert str(path) not in text  # an agent learns the name alone
            path.unlink()
            await client.good("run_mutation_query", sql=INSERT)
        assert len(desk.writes) == 2
    assert [line["sql"] for line in recorded(tmp_path)] == [DELETE, INSERT]


async def test_a_removed_directory_loses_no_line_of_a_change(tmp_path: Path) -> None:
    place = {"path": str(tmp_path / "calls" / "calls.log")}
    settings = {"server": {"mode": "full_access", "audit": {"file": place}}}
    with running_desk() as desk:
        async with opened(tmp_path, settings, desk) as app:
            client = CloudClient(app)
            await client.good("run_mutation_query", sql=INSERT)
            (tmp_path / "calls" / "calls.log").unlink()
            (tmp_path / "calls").rmdir()
            await client.good("run_mutation_query", sql=DELETE)
            assert recorded(tmp_path / "calls")[0]["sql"] == DELETE
            (tmp_path / "calls" / "calls.log").unlink()
            (tmp_path / "calls").rmdir()
            (tmp_path / "calls").write_text("in its place")
            before = len(desk.writes)
            assert "cannot be written" in await client.bad("run_mutation_query", sql=INSERT)
            assert len(desk.writes) == before


async def test_a_descriptor_closed_by_another_loses_no_line_of_a_change(tmp_path: Path) -> None:
    settings = {"server": {"mode": "full_access"}}
    path = (tmp_path / "calls.log").resolve()
    with running_desk() as desk:
        async with opened(tmp_path, settings, desk) as app:
            client = CloudClient(app)
            await client.good("run_mutation_query", sql=INSERT)
            for each in os.listdir("/proc/self/fd"):
                if os.path.realpath(f"/proc/self/fd/{each}") == str(path):
                    os.close(int(each))
            await client.good("run_mutation_query", sql=DELETE)
        assert len(desk.writes) == 2
    assert [line["sql"] for line in recorded(tmp_path)] == [INSERT, DELETE]


async def test_a_disabled_audit_writes_no_file_and_the_gate_records_all_the_same(
    tmp_path: Path,
) -> None:
    settings = {"server": {"mode": "full_access", "audit": {"disabled": True}}}
    with running_desk() as desk:
        async with opened(tmp_path, settings, desk) as app:
            await CloudClient(app).good("run_mutation_query", sql=INSERT)
        assert len(desk.writes) == 1
    assert not (tmp_path / "calls.log").exists()
    (segment,) = (tmp_path / "state" / "audit").glob("*.jsonl")
    lines = [json.loads(line) for line in segment.read_text().splitlines()]
    phases = [line["phase"] for line in lines if line.get("request") == "query"]
    assert phases == ["intent", "outcome"]


async def test_no_more_calls_and_statements_run_at_once_than_the_settings_admit(
    tmp_path: Path, desk: Desk
) -> None:
    settings = {
        "server": {"max_concurrent_requests": 8},
        "backend": {"max_connections": 1, "connection_timeout": "1ms"},
    }
    desk.hold.clear()
    try:
        async with opened(tmp_path, settings, desk) as app:
            client, other = CloudClient(app), CloudClient(app)
            first = asyncio.ensure_future(client.call("run_select_query", sql=SELECT))
            await asyncio.to_thread(desk.arrived.wait, 30)
            # Both clients have surfaces of their own, as the paths of a server have.
            refused = await client.bad("list_providers")
            assert "as many calls run as `surface.cloud.backend.max_connections` admits" in refused
            assert not (await other.call("list_providers")).get("isError")
            desk.hold.set()
            assert not (await first).get("isError")
    finally:
        desk.hold.set()


async def test_a_request_ends_at_its_timeout(tmp_path: Path, desk: Desk) -> None:
    settings = {"server": {"request_timeout": "200ms"}}
    desk.hold.clear()
    try:
        async with opened(tmp_path, settings, desk) as app:
            text = await CloudClient(app).bad("run_select_query", sql=SELECT)
            assert text.startswith("The statement was stopped after 0.")
    finally:
        desk.hold.set()


async def test_what_masks_and_filters_hide_is_in_no_answer_of_any_tool(
    tmp_path: Path, desk: Desk
) -> None:
    rules = {
        "masks": [{"column": f"{RESOURCE}.title", "show": "partial"}],
        "filters": [{"table": RESOURCE, "where": "open = 1"}],
    }
    async with opened(tmp_path, {"server": {"mode": "full_access"}}, desk, rules) as app:
        client = CloudClient(app)
        text, payload = await client.good("run_select_query", sql=SELECT)
        assert payload["rows"] == [{"id": "1", "title": "P***re", "open": 1}]
        assert "Printer" not in text
        assert (await client.good("validate_select_query", sql=SELECT))[1]["valid"] is True
        before = len(desk.requests)
        text = await client.bad("run_mutation_query", sql=DELETE)
        assert "hidden from this caller" in text
        assert len(desk.requests) == before
    assert "1" in desk.tickets


async def test_who_gave_a_token_reads_how_many_calls_and_pages_were_made(
    tmp_path: Path, desk: Desk
) -> None:
    teams = ", ".join(f"'team {number}'" for number in range(30))
    statement = f"SELECT id FROM {RESOURCE} WHERE team IN ({teams})"
    async with opened(tmp_path, {}, desk) as app:
        client = CloudClient(app)
        arguments = {"sql": statement}
        await client.request("tools/call", name="run_select_query", arguments=arguments)
        assert client.notes == []
        await client.request(
            "tools/call",
            name="run_select_query",
            arguments=arguments,
            _meta={"progressToken": "p"},
        )
    assert {note["progressToken"] for note in client.notes} == {"p"}
    assert "Executing: 1 call, 0 pages" in [note["message"] for note in client.notes]
    shares = [note["progress"] for note in client.notes]
    assert shares == sorted(set(shares))
    assert (shares[0], shares[-1]) == (0.0, 1.0)


async def test_an_account_that_was_denied_is_named_in_the_payload_and_in_the_text(
    tmp_path: Path, desk: Desk
) -> None:
    secret = tmp_path / "secret"
    secret.write_text("token-of-a-person")
    login = {"type": "bearer", "credentialsfilepath": str(secret)}
    cloud = {
        "endpoints": {ADDRESS: desk.url},
        "providers": {"desk": {"accounts": {"live": {"auth": login}}}},
    }
    query = f"count(*) AS n FROM {RESOURCE} WHERE team IN ('red', 'failing') AND account = 'live'"
    async with opened(tmp_path, {}, desk, cloud=cloud) as app:
        client = CloudClient(app)
        await client.bad("run_select_query", sql=f"SELECT {query}")
        text, payload = await client.good(
            "run_select_query", sql=f"SELECT /*+ ON_ERROR = skip */ {query}"
        )
    assert payload["rows"] == [{"n": len(desk.tickets)}]
    assert payload["skipped"] == [
        {"resource": RESOURCE, "error": "credential.refused", "account": "live",
         "http_status": 403},
    ]  # fmt: skip
    assert f"Partial: denied and left out were {RESOURCE} of the account live (HTTP 403)" in text
    assert "other aggregates are of the rest alone." in text
    assert recorded(tmp_path)[-1]["decision"] == "allow"


async def test_a_call_with_wrong_arguments_has_a_line_and_an_event(
    tmp_path: Path, desk: Desk
) -> None:
    async with opened(tmp_path, {"server": {"mode": "full_access"}}, desk) as app:
        client = CloudClient(app)
        before = len(desk.requests)
        await client.bad("run_mutation_query", sql=DELETE, rows=[1, "token=hunter2abcdef"])
        await client.bad("list_services")
        await client.bad("run_select_query", sql=7)
        assert len(desk.requests) == before
    lines = recorded(tmp_path)
    assert [(each["tool"], each["query_class"], each["decision"]) for each in lines] == [
        ("run_mutation_query", "mutation_delete", "refuse_immediate"),
        ("list_services", "select", "refuse_immediate"),
        ("run_select_query", "select", "refuse_immediate"),
    ]
    assert lines[0]["sql"] == DELETE
    assert "hunter2" not in json.dumps(lines)
    (segment,) = (tmp_path / "state" / "audit").glob("*.jsonl")
    events = segment.read_text()
    for tool in ("run_mutation_query", "list_services", "run_select_query"):
        assert f'"tool":"{tool}"' in events
    assert "hunter2" not in events
