"""A conversation of the official Python SDK 1.x with a server, printed as JSON on stdout.

Run by the SDK's own interpreter, by `loaded.py`. The configuration is an object with `command` or
`url`, and optionally `revision`, `token`, `answers` (to elicitations, in order) and `calls` (pairs
of tool and arguments, made instead of the conversation with the fixtures; `resources/read` and
`prompts/get` stand for a tool, and so do `initialize`, once more, `cancel`, a call that is called
back when it runs, and `end`, which ends the session behind the client's back). With `follow` it
calls `more` for what still runs.
Imports nothing of the server.
"""

from __future__ import annotations

import asyncio
import json
from contextlib import asynccontextmanager
from typing import Any

import httpx
from mcp.client.stdio import stdio_client
from mcp.client.streamable_http import streamable_http_client
from pydantic import AnyUrl

from mcp import ClientSession, McpError, StdioServerParameters, types

CONFIG: dict[str, Any] = {}
REPORT: dict[str, Any] = {"logs": [], "updated": [], "progress": [], "session": None}
NOTIFIED = asyncio.Event()


HTTP: dict[str, str] = {}


async def note(response: httpx.Response) -> None:
    """Keep the HTTP status of what answers a call, and the session's id."""
    if any(method in response.request.content for method in (b'"tools/call"', b'"resources/read"')):
        REPORT.setdefault("statuses", []).append(response.status_code)
    if "mcp-session-id" in response.headers:
        HTTP["Mcp-Session-Id"] = response.headers["mcp-session-id"]


async def end() -> int:
    """End the session as the server knows it, past the client; returns the HTTP status."""
    headers = {**HTTP, "Authorization": f"Bearer {CONFIG['token']}"}
    async with httpx.AsyncClient(headers=headers) as other:
        return (await other.delete(CONFIG["url"])).status_code


@asynccontextmanager
async def streams():
    if "command" in CONFIG:
        program, *arguments = CONFIG["command"]
        parameters = StdioServerParameters(command=program, args=arguments)
        async with stdio_client(parameters) as (read, write):
            yield read, write
    else:
        headers = {"Authorization": f"Bearer {CONFIG['token']}"} if "token" in CONFIG else {}
        async with (
            httpx.AsyncClient(
                headers=headers, timeout=60, event_hooks={"response": [note]}
            ) as client,
            streamable_http_client(CONFIG["url"], http_client=client) as (read, write, session_id),
        ):
            yield read, write
            REPORT["session"] = session_id()


async def elicit(context: Any, params: types.ElicitRequestParams) -> types.ElicitResult:
    if CONFIG.get("answers"):
        CONFIG["answer"] = CONFIG["answers"].pop(0)
    if "answer" in CONFIG:
        REPORT.setdefault("asked", []).append(params.message)
        return types.ElicitResult(**CONFIG["answer"])
    fields = params.requestedSchema["properties"]
    return types.ElicitResult(action="accept", content=dict.fromkeys(fields, "Alice"))


async def sample(context: Any, params: types.CreateMessageRequestParams):
    text = CONFIG["sampled"].pop(0) if CONFIG.get("sampled") else "Paris"
    content = types.TextContent(type="text", text=text)
    return types.CreateMessageResult(role="assistant", content=content, model="none")


async def list_roots(context: Any) -> types.ListRootsResult:
    root = types.Root(uri=AnyUrl("file:///test/root"), name="Root")
    return types.ListRootsResult(roots=[root])


async def log(params: types.LoggingMessageNotificationParams) -> None:
    REPORT["logs"].append(params.level)


async def receive(message: Any) -> None:
    if isinstance(message, Exception):
        REPORT.setdefault("faults", []).append(repr(message))
    elif isinstance(getattr(message, "root", None), types.ResourceUpdatedNotification):
        REPORT["updated"].append(str(message.root.params.uri))
        NOTIFIED.set()


async def progress(done: float, total: float | None, message: str | None) -> None:
    REPORT["progress"].append([done, total, message])


async def code_of(call: Any) -> int | None:
    try:
        await call
    except McpError as error:
        return error.error.code
    return None


def text_of(result: types.CallToolResult) -> str:
    return result.content[0].text


async def talk(session: ClientSession) -> None:
    greeting = await session.initialize()
    REPORT["revision"] = greeting.protocolVersion
    REPORT["server"] = greeting.serverInfo.name
    if "calls" in CONFIG:
        REPORT["tools"] = [tool.name for tool in (await session.list_tools()).tools]
        REPORT["results"] = [await outcome(session, *call) for call in CONFIG["calls"]]
        return
    await tools(session)
    await resources(session)
    await prompts(session)
    await session.send_ping()
    REPORT["ping"] = True
    REPORT["cancelled"] = await cancel(session)


async def outcome(session: ClientSession, name: str, given: dict[str, Any]) -> dict[str, Any]:
    try:
        if name == "resources/read":
            read = await session.read_resource(AnyUrl(given["uri"]))
            return {"text": read.contents[0].text}
        if name == "prompts/get":
            prompt = await session.get_prompt(given["name"])
            return {"text": prompt.messages[0].content.text}
        if name == "end":
            return {"status": await end()}
        if name == "initialize":
            return {"revision": (await session.initialize()).protocolVersion}
        if name == "cancel":
            result = await called_back(session, **given)
        else:
            result = await session.call_tool(name, given)
        while CONFIG.get("follow") and "still running" in text_of(result):
            REPORT["followed"] = REPORT.get("followed", 0) + 1
            handle = json.loads(text_of(result))["more"]
            result = await session.call_tool("more", {"handle": handle})
    except McpError as error:
        return {"code": error.error.code, "message": error.error.message}
    return {
        "text": text_of(result),
        "structured": result.structuredContent,
        "is_error": bool(result.isError),
    }


async def called_back(session: ClientSession, tool: str, arguments: Any) -> types.CallToolResult:
    """What answers a call that is called back as soon as the server tells of progress."""
    started = asyncio.Event()

    async def tell(done: float, *_: Any) -> None:
        if done > 0:
            started.set()

    id = session._request_id
    call = asyncio.create_task(session.call_tool(tool, arguments, progress_callback=tell))
    await asyncio.wait_for(started.wait(), 60)
    params = types.CancelledNotificationParams(requestId=id, reason="enough")
    notification = types.CancelledNotification(params=params)
    await session.send_notification(types.ClientNotification(notification))
    return await asyncio.wait_for(call, 60)


async def tools(session: ClientSession) -> None:
    REPORT["tools"] = [tool.name for tool in (await session.list_tools()).tools]
    added = await session.call_tool("add", {"a": 1, "b": 2})
    REPORT["sum"] = [added.structuredContent, json.loads(text_of(added))]
    REPORT["tool_error"] = (await session.call_tool("test_error_handling", {})).isError
    await session.call_tool("test_tool_with_progress", {}, progress_callback=progress)
    await session.set_logging_level("alert")
    await session.call_tool("test_logging_tool", {})
    REPORT["elicited"] = text_of(await session.call_tool("confirm_name", {}))
    REPORT["sampled"] = text_of(await session.call_tool("test_sampling", {"prompt": "?"}))
    roots = await session.call_tool("test_input_required_result_list_roots", {})
    REPORT["roots"] = text_of(roots)
    kinds = (await session.call_tool("test_multiple_content_types", {})).content
    REPORT["kinds"] = [block.type for block in kinds]
    REPORT["unknown_tool"] = await code_of(session.call_tool("no_such_tool", {}))


async def resources(session: ClientSession) -> None:
    REPORT["resources"] = [str(r.uri) for r in (await session.list_resources()).resources]
    templates = (await session.list_resource_templates()).resourceTemplates
    REPORT["templates"] = [template.uriTemplate for template in templates]
    read = await session.read_resource(AnyUrl("test://static-text"))
    REPORT["read"] = read.contents[0].text
    blob = await session.read_resource(AnyUrl("test://static-binary"))
    REPORT["blob"] = blob.contents[0].mimeType
    unknown = session.read_resource(AnyUrl("test://nothing"))
    REPORT["unknown_resource"] = await code_of(unknown)
    await session.subscribe_resource(AnyUrl("test://watched-resource"))
    await session.call_tool("trigger_resource_change", {})
    await asyncio.wait_for(NOTIFIED.wait(), 60)
    await session.unsubscribe_resource(AnyUrl("test://watched-resource"))


async def prompts(session: ClientSession) -> None:
    REPORT["prompts"] = [prompt.name for prompt in (await session.list_prompts()).prompts]
    given = {"arg1": "x", "arg2": "y"}
    prompt = await session.get_prompt("test_prompt_with_arguments", given)
    REPORT["prompt"] = prompt.messages[0].content.text
    REPORT["unknown_prompt"] = await code_of(session.get_prompt("no_such_prompt"))
    reference = types.PromptReference(type="ref/prompt", name="test_prompt_with_arguments")
    completed = await session.complete(reference, {"name": "arg1", "value": "par"})
    REPORT["completion"] = completed.completion.values


async def cancel(session: ClientSession) -> int:
    """Start a call that waits, cancel it, and say how many calls the server saw cancelled."""
    before = json.loads(text_of(await session.call_tool("witness", {})))["cancelled"]
    started = asyncio.Event()

    async def tell(*_: Any) -> None:
        started.set()

    id = session._request_id
    call = asyncio.create_task(session.call_tool("wait", {}, progress_callback=tell))
    await asyncio.wait_for(started.wait(), 60)
    params = types.CancelledNotificationParams(requestId=id, reason="enough")
    notification = types.CancelledNotification(params=params)
    await session.send_notification(types.ClientNotification(notification))
    count = 0
    while count < 1:
        await asyncio.sleep(0.02)
        seen = json.loads(text_of(await session.call_tool("witness", {})))
        count = seen["cancelled"] - before
    call.cancel()
    return count


async def main() -> None:
    if "revision" in CONFIG:
        types.LATEST_PROTOCOL_VERSION = CONFIG["revision"]
    async with (
        streams() as (read, write),
        ClientSession(
            read,
            write,
            sampling_callback=sample,
            elicitation_callback=elicit,
            list_roots_callback=list_roots,
            logging_callback=log,
            message_handler=receive,
        ) as session,
    ):
        await asyncio.wait_for(talk(session), 240)
    print(json.dumps(REPORT))


def converse(config: dict[str, Any]) -> None:
    CONFIG.update(config)
    asyncio.run(main())
