"""What each mode of the surface `cloud` refuses and asks, by what a statement does. A provider of
our own counts what is sent to it."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from support.cloud_surface import (
    DELETE,
    EXEC,
    INSERT,
    MODERN,
    REPLACE,
    RESOURCE,
    SELECT,
    UPDATE,
    CloudClient,
    Desk,
    answering,
    opened,
    recorded,
    running_desk,
)
from support.surface_client import READER

HANDSHAKE = "2025-11-25"
QUERY_TOOLS = ("run_select_query", "run_mutation_query", "run_lifecycle_operation")
CLASSES = {
    INSERT: "mutation_create",
    UPDATE: "mutation_create",
    REPLACE: "mutation_create",
    DELETE: "mutation_delete",
    EXEC: "lifecycle",
}
LOOK_ELSEWHERE = (
    " and the MCP client does not support elicitation. Restart the server in 'full_access' mode if"
    " you trust this client, or use an elicitation-capable client"
)
WAITS = (
    ". The question waits in the Inbox, which `tidegate console` on the server's machine opens. Ask"
    " the user to answer it there, then send the same call again."
)
"""What is said after the document's words while a question waits."""


@pytest.fixture(scope="module")
def desk() -> Iterator[Desk]:
    with running_desk() as running:
        yield running


def refused(tool: str, why: str) -> str:
    return f'tool "{tool}" refused: {why}'


async def test_read_only_refuses_every_change_whatever_the_tool(tmp_path: Path, desk: Desk) -> None:
    desk.requests.clear()
    async with opened(tmp_path, {"server": {"mode": "read_only"}}, desk) as app:
        client = CloudClient(app, reply=answering("accept"))
        for tool in QUERY_TOOLS:
            for statement in CLASSES:
                text = await client.bad(tool, sql=statement)
                assert text == refused(tool, "server is in 'read_only' mode")
        assert client.asked == []
    assert desk.requests == []
    lines = recorded(tmp_path)
    assert {line["decision"] for line in lines} == {"refuse_immediate"}
    assert {line["query_class"] for line in lines} == set(CLASSES.values())
    assert len(lines) == len(QUERY_TOOLS) * len(CLASSES)


@pytest.mark.parametrize("statement", [INSERT, DELETE, f"{UPDATE} RETURNING id"])
async def test_a_change_through_the_tool_for_queries_says_that_it_was_made(
    tmp_path: Path, statement: str
) -> None:
    with running_desk() as desk:
        async with opened(tmp_path, {"server": {"mode": "full_access"}}, desk) as app:
            text, payload = await CloudClient(app).good("run_select_query", sql=statement)
    assert text.startswith("The operation was despatched successfully\n")
    assert payload["messages"] == ["The operation was despatched successfully"]
    assert payload["rows"] == ([{"id": "1"}] if "RETURNING" in statement else [])
    assert len(desk.writes) == 1


async def test_the_older_read_only_setting_is_that_mode(tmp_path: Path, desk: Desk) -> None:
    async with opened(tmp_path, {"server": {"read_only": True}}, desk) as app:
        client = CloudClient(app)
        text = await client.bad("run_mutation_query", sql=DELETE)
        assert text == refused("run_mutation_query", "server is in 'read_only' mode")
        assert (await client.good("server_info"))[1]["is_read_only"] is True


@pytest.mark.parametrize(
    ("mode", "asked"),
    [("safe", set(CLASSES)), ("delete_safe", {DELETE, EXEC})],
)
async def test_what_needs_approval_is_refused_where_no_person_can_be_asked(
    tmp_path: Path, desk: Desk, mode: str, asked: set[str]
) -> None:
    desk.requests.clear()
    async with opened(tmp_path, {"server": {"mode": mode}}, desk) as app:
        client = CloudClient(app)
        for statement in asked:
            text = await client.bad("run_select_query", sql=statement)
            assert text == refused(
                "run_select_query", f"server is in '{mode}' mode{LOOK_ELSEWHERE}{WAITS}"
            )
    assert desk.writes == []
    assert {line["decision"] for line in recorded(tmp_path)} == {"needs_approval_unavailable"}


@pytest.mark.parametrize("revision", [HANDSHAKE, MODERN])
@pytest.mark.parametrize(
    ("action", "why", "decision"),
    [
        ("decline", "user declined approval", "needs_approval_declined"),
        ("cancel", f"approval prompt was dismissed{WAITS}", "needs_approval_cancelled"),
        ("shrug", f'unexpected elicitation action "shrug"{WAITS}', "needs_approval_declined"),
    ],
)
async def test_what_a_person_does_not_accept_is_not_sent(
    tmp_path: Path, desk: Desk, revision: str, action: str, why: str, decision: str
) -> None:
    desk.requests.clear()
    async with opened(tmp_path, desk=desk) as app:
        client = CloudClient(app, revision=revision, reply=answering(action))
        text = await client.bad("run_mutation_query", sql=DELETE)
        assert text == refused("run_mutation_query", why)
        (asked,) = client.asked
        assert asked["requestedSchema"] == {"type": "object", "properties": {}}
        assert asked["message"] == (
            f"Approve run_mutation_query (mutation_delete)?\n\nSQL: {DELETE}\n\n"
            "Would send 1 request, and has sent none:\n"
            "  | desk: DELETE https://desk.example/v1/teams/red/tickets/1\n"
            "Now there, and what would become of it:\n"
            "  | id 1, title Printer | on fire, open true, team red (deleted)"
        )
    assert desk.writes == []
    (line,) = recorded(tmp_path)
    assert line["decision"] == decision
    assert line["error"] == text
    assert line["sql"] == DELETE


async def test_a_form_that_nobody_answers_ends_the_call_and_frees_its_place(
    tmp_path: Path, desk: Desk
) -> None:
    desk.requests.clear()
    settings = {"server": {"max_concurrent_requests": 1}}
    async with opened(tmp_path, settings, desk, approvals={"wait_s": 0.2}) as app:
        client = CloudClient(app, reply=answering(""))
        text = await client.bad("run_mutation_query", sql=DELETE)
        why = "elicitation transport error: no one answered the form within 0.2 s"
        assert text == refused("run_mutation_query", f"{why}{WAITS}")
        assert len(client.asked) == 1
        assert "requestId" in client.notes[-1]  # the client can close the form
        await client.good("server_info")
        (question,) = app.approvals.list()
        assert question.state == "pending"
    assert desk.writes == []
    assert recorded(tmp_path)[0]["decision"] == "needs_approval_declined"


UNREADABLE = (
    "DROP TABLE x",
    "SET AUTH = 1",
    "AUTH LOGIN desk",
    "PURGE cache",
    "MERGE INTO x USING y",
    "WITH gone AS (DELETE FROM a.b.c WHERE d = '1') SELECT 1",
    f"{SELECT}; {DELETE}",
    f"SELECT 1;{DELETE}",
    f"{SELECT};;{DELETE}",
    "/* SELECT */ GRANT ALL",
    f"WITH x AS (SELECT replace('a', 'b', 'c')) {DELETE}",
    "",
    ";",
    "BEGIN",
)


@pytest.mark.parametrize("mode", ["read_only", "safe", "delete_safe", "full_access"])
async def test_what_cannot_be_read_is_refused_in_every_mode(
    tmp_path: Path, desk: Desk, mode: str
) -> None:
    desk.requests.clear()
    async with opened(tmp_path, {"server": {"mode": mode}}, desk) as app:
        client = CloudClient(app, reply=answering("accept"))
        for tool in QUERY_TOOLS:
            for statement in UNREADABLE:
                await client.bad(tool, sql=statement)
        assert client.asked == []
    assert desk.requests == []
    lines = recorded(tmp_path)
    assert {line["query_class"] for line in lines} == {"unknown"}
    assert {line["decision"] for line in lines} == {"refuse_immediate"}


@pytest.mark.parametrize("mode", ["read_only", "full_access"])
async def test_to_validate_a_statement_runs_nothing_of_it(
    tmp_path: Path, desk: Desk, mode: str
) -> None:
    desk.requests.clear()
    async with opened(tmp_path, {"server": {"mode": mode}}, desk) as app:
        client = CloudClient(app)
        for statement in (*CLASSES, *UNREADABLE, f"ANALYZE {DELETE}", f"SELECT 1; {DELETE}"):
            text, payload = await client.good("validate_select_query", sql=statement)
            assert payload["valid"] is False
            (problem,) = payload["errors"]
            assert problem
            assert "valid: false" in text
    assert desk.requests == []


async def test_the_stricter_of_mode_and_source_wins(tmp_path: Path, desk: Desk) -> None:
    desk.requests.clear()
    everything = {"server": {"mode": "full_access"}}
    async with opened(tmp_path, everything, desk, {"access": "read"}) as app:
        text = await CloudClient(app).bad("run_mutation_query", sql=DELETE)
        assert text.startswith("The source is read-only for callers")
    async with opened(tmp_path, everything, desk, {"approval_for": "writes"}) as app:
        client = CloudClient(app, reply=answering("decline"))
        text = await client.bad("run_mutation_query", sql=DELETE)
        assert text == refused("run_mutation_query", "user declined approval")
        assert len(client.asked) == 1
    async with opened(tmp_path, everything, desk) as app:
        text = await CloudClient(app, READER).bad("run_mutation_query", sql=DELETE)
        assert "need the scope readWrite" in text
    assert desk.writes == []


async def test_a_token_sees_only_the_resources_on_its_list(tmp_path: Path, desk: Desk) -> None:
    from msgspec import structs

    desk.requests.clear()
    other = structs.replace(READER, tables=frozenset({"desk.tickets.comments"}))
    async with opened(tmp_path, desk=desk) as app:
        text = await CloudClient(app, other).bad("run_select_query", sql=SELECT)
        assert f"This token may not use the table `{RESOURCE}`" in text
    assert desk.requests == []


async def test_the_mode_holds_on_another_surface_too(tmp_path: Path, desk: Desk) -> None:
    from support.surface_client import OWNER, Peer

    desk.requests.clear()
    async with opened(tmp_path, {"server": {"mode": "read_only"}}, desk) as app:
        peer = Peer(app.surface("core"), OWNER)
        await peer.open()
        listed = (await peer.request("tools/list"))["result"]["tools"]
        tool = next(each["name"] for each in listed if each["name"] in ("query", "run", "sql"))
        reply = await peer.call(tool, sql=DELETE)
        assert "its mode is 'read_only'" in str(reply)
    assert desk.requests == []


SENT = {
    INSERT: ("POST", "/v1/teams/red/tickets"),
    UPDATE: ("PATCH", "/v1/teams/red/tickets/1"),
    REPLACE: ("PUT", "/v1/teams/red/tickets/1"),
    EXEC: ("POST", "/v1/teams/red/close"),
    DELETE: ("DELETE", "/v1/teams/red/tickets/1"),
}
"""What each change sends, in an order in which all succeed."""


@pytest.mark.parametrize("tool", QUERY_TOOLS)
async def test_full_access_sends_each_change_once_and_asks_nothing(
    tmp_path: Path, tool: str
) -> None:
    with running_desk() as desk:
        async with opened(tmp_path, {"server": {"mode": "full_access"}}, desk) as app:
            client = CloudClient(app, reply=answering("decline"))
            for statement in SENT:
                await client.good(tool, sql=statement)
            assert client.asked == []
        assert desk.writes == list(SENT.values())
    lines = recorded(tmp_path)
    assert [line["decision"] for line in lines] == ["allow"] * len(SENT)
    assert [line["query_class"] for line in lines] == [CLASSES[each] for each in SENT]


@pytest.mark.parametrize("revision", [HANDSHAKE, MODERN])
async def test_delete_safe_sends_changes_and_asks_about_delete_and_exec(
    tmp_path: Path, revision: str
) -> None:
    with running_desk() as desk:
        async with opened(tmp_path, {"server": {"mode": "delete_safe"}}, desk) as app:
            client = CloudClient(app, revision=revision, reply=answering("accept"))
            for statement in SENT:
                await client.good("run_mutation_query", sql=statement)
        assert desk.writes == list(SENT.values())
    asked = [each["message"].partition("SQL: ")[2].split("\n")[0] for each in client.asked]
    assert asked == [EXEC, DELETE]
    assert [line["decision"] for line in recorded(tmp_path)] == [
        "allow", "allow", "allow", "needs_approval_accepted", "needs_approval_accepted",
    ]  # fmt: skip


@pytest.mark.parametrize("revision", [HANDSHAKE, MODERN])
async def test_what_a_person_accepts_is_sent_once_and_is_asked_again_the_next_time(
    tmp_path: Path, revision: str
) -> None:
    with running_desk() as desk:
        async with opened(tmp_path, desk=desk) as app:
            client = CloudClient(app, revision=revision, reply=answering("accept"))
            text, payload = await client.good("run_mutation_query", sql=INSERT)
            assert payload["messages"] == ["The operation was despatched successfully"]
            assert payload["timestamp"].endswith("+00:00 UTC")
            assert text == (
                "# Mutation Result\n\n## Record 1\n\n"
                "messages: [The operation was despatched successfully]\n"
                f"timestamp: {payload['timestamp']}\n"
            )
            await client.good("run_mutation_query", sql=INSERT)
            assert len(client.asked) == 2
        assert desk.writes == [SENT[INSERT]] * 2


async def test_an_upstream_failure_after_approval_keeps_the_decision(tmp_path: Path) -> None:
    with running_desk() as desk:
        async with opened(tmp_path, desk=desk) as app:
            client = CloudClient(app, reply=answering("accept"))
            text = await client.bad("run_mutation_query", sql=DELETE.replace("'1'", "'77'"))
        assert text.startswith('upstream http error: {"http_status": 404, "retryable": false}: ')
    (line,) = recorded(tmp_path)
    assert line["decision"] == "needs_approval_accepted"
    assert line["error"] == text


async def test_a_grant_from_the_inbox_is_used_by_the_same_call(tmp_path: Path) -> None:
    with running_desk() as desk:
        async with opened(tmp_path, desk=desk) as app:
            client = CloudClient(app)
            await client.bad("run_mutation_query", sql=INSERT)
            (question,) = app.approvals.list()
            app.approvals.resolve(question.id, "allowed", "the operator")
            await client.good("run_mutation_query", sql=INSERT)
            await client.bad("run_mutation_query", sql=INSERT)
        assert desk.writes == [SENT[INSERT]]
    assert [line["decision"] for line in recorded(tmp_path)] == [
        "needs_approval_unavailable", "needs_approval_accepted", "needs_approval_unavailable",
    ]  # fmt: skip


async def test_with_a_wait_the_refusal_says_that_the_question_is_still_there(
    tmp_path: Path, desk: Desk
) -> None:
    desk.requests.clear()
    async with opened(tmp_path, desk=desk, approvals={"wait_s": 0.05}) as app:
        text = await CloudClient(app).bad("run_mutation_query", sql=INSERT)
        assert text.startswith(
            refused("run_mutation_query", "server is in 'safe' mode and the MCP")
        )
        assert text.endswith(WAITS)
        assert len(app.approvals.list()) == 1
    assert desk.writes == []
