"""A conversation of the official Python SDK 2.x with a server, printed as JSON on stdout.

Run by the SDK's own interpreter, by `loaded.py`. The configuration is an object with `command` or
`url`, `mode` (auto, legacy or a revision) and optionally `token`, `answers` (to elicitations, in
order) and `calls` (pairs of tool and arguments, made instead of the conversation with the fixtures;
an argument `$name` is the member of that name in the last structured result that had it;
`resources/read` and `prompts/get` stand for a tool, and so does `end`, which ends the session
behind the client's back). With `tasks` the client takes tasks, by an extension of the SDK's kind.
Imports nothing of the server.
"""

# pyright: reportMissingImports=false
# The SDK is in an environment of its own.

from __future__ import annotations

import asyncio
import json
import warnings
from typing import Any, ClassVar, Literal

import httpx2
from mcp.client.extension import ClaimContext, ClientExtension, ResultClaim
from mcp.client.streamable_http import streamable_http_client

from mcp import Client, MCPError, StdioServerParameters, types

warnings.simplefilter("ignore")
CONFIG: dict[str, Any] = {}
REPORT: dict[str, Any] = {"logs": [], "updated": [], "progress": []}
NOTIFIED = asyncio.Event()


HTTP: dict[str, str] = {}
KNOWN: dict[str, Any] = {}


async def note(response: httpx2.Response) -> None:
    """Keep the HTTP status of what answers a call, and the session's id."""
    if any(method in response.request.content for method in (b'"tools/call"', b'"resources/read"')):
        REPORT.setdefault("statuses", []).append(response.status_code)
    if "mcp-session-id" in response.headers:
        HTTP["Mcp-Session-Id"] = response.headers["mcp-session-id"]


async def end() -> int:
    """End the session as the server knows it, past the client; returns the HTTP status."""
    headers = {**HTTP, "Authorization": f"Bearer {CONFIG['token']}"}
    async with httpx2.AsyncClient(headers=headers) as other:
        return (await other.delete(CONFIG["url"])).status_code


class CreatedTask(types.Result):
    result_type: Literal["task"]
    task_id: str


class TaskState(types.Result):
    status: str
    result: dict[str, Any] | None = None


class GetTask(types.Request[dict[str, Any], str]):
    method: str = "tasks/get"
    name_param: ClassVar[str] = "taskId"


class TaskClient(ClientExtension):
    """What a client writes to take tasks: the SDK has the place for it."""

    identifier = "io.modelcontextprotocol/tasks"

    def claims(self) -> list[ResultClaim[Any]]:
        return [ResultClaim(result_type="task", model=CreatedTask, resolve=self.wait)]

    async def wait(self, created: CreatedTask, context: ClaimContext) -> types.CallToolResult:
        REPORT.setdefault("tasks", []).append(created.task_id)
        get = GetTask(params={"taskId": created.task_id})
        while True:
            state = await context.session.send_request(get, TaskState)
            if state.status == "completed":
                return types.CallToolResult.model_validate(state.result)
            await asyncio.sleep(0.02)


def server() -> Any:
    if "command" in CONFIG:
        program, *arguments = CONFIG["command"]
        return StdioServerParameters(command=program, args=arguments)
    if "token" in CONFIG:
        headers = {"Authorization": f"Bearer {CONFIG['token']}"}
        client = httpx2.AsyncClient(headers=headers, timeout=60, event_hooks={"response": [note]})
        return streamable_http_client(CONFIG["url"], http_client=client)
    return CONFIG["url"]


async def elicit(context: Any, params: types.ElicitRequestParams) -> types.ElicitResult:
    if CONFIG.get("answers"):
        CONFIG["answer"] = CONFIG["answers"].pop(0)
    if "answer" in CONFIG:
        REPORT.setdefault("asked", []).append(params.message)
        return types.ElicitResult(**CONFIG["answer"])
    fields = params.requested_schema["properties"]
    return types.ElicitResult(action="accept", content=dict.fromkeys(fields, "Alice"))


async def sample(context: Any, params: types.CreateMessageRequestParams):
    text = CONFIG["sampled"].pop(0) if CONFIG.get("sampled") else "Paris"
    content = types.TextContent(type="text", text=text)
    return types.CreateMessageResult(role="assistant", content=content, model="none")


async def list_roots(context: Any) -> types.ListRootsResult:
    return types.ListRootsResult(roots=[types.Root(uri="file:///test/root", name="Root")])


async def log(params: types.LoggingMessageNotificationParams) -> None:
    REPORT["logs"].append(params.level)


async def receive(message: Any) -> None:
    if isinstance(message, Exception):
        REPORT.setdefault("faults", []).append(repr(message))
    elif isinstance(message, types.ResourceUpdatedNotification):
        REPORT["updated"].append(str(message.params.uri))
        NOTIFIED.set()


async def progress(done: float, total: float | None, message: str | None) -> None:
    REPORT["progress"].append([done, total, message])


async def code_of(call: Any) -> int | None:
    try:
        await call
    except MCPError as error:
        return error.code
    return None


def text_of(result: types.CallToolResult) -> str:
    return result.content[0].text


async def talk(client: Client) -> None:
    REPORT["revision"] = client.protocol_version
    if "calls" in CONFIG:
        REPORT["tools"] = [tool.name for tool in (await client.list_tools()).tools]
        REPORT["results"] = [await outcome(client, *call) for call in CONFIG["calls"]]
        return
    await tools(client)
    info = client.server_info
    REPORT["server"] = info.name if info is not None else None
    await resources(client)
    await prompts(client)
    if client.protocol_version < "2026-07-28":
        await client.send_ping()
        REPORT["ping"] = True
    REPORT["cancelled"] = await cancel(client)


def known(value: Any) -> Any:
    """`$name` stands for the member `name` of the last structured result that had one."""
    if isinstance(value, str) and value.startswith("$"):
        return KNOWN.get(value[1:], value)
    return value


async def outcome(client: Client, name: str, given: dict[str, Any]) -> dict[str, Any]:
    try:
        if name == "resources/read":
            read = await client.read_resource(given["uri"])
            return {"text": read.contents[0].text}
        if name == "prompts/get":
            prompt = await client.get_prompt(given["name"])
            return {"text": prompt.messages[0].content.text}
        if name == "end":
            return {"status": await end()}
        result = await client.call_tool(name, {key: known(each) for key, each in given.items()})
    except MCPError as error:
        return {"code": error.code, "message": error.message}
    if not result.is_error and isinstance(result.structured_content, dict):
        KNOWN.update(result.structured_content)
    return {
        "text": text_of(result),
        "structured": result.structured_content,
        "is_error": bool(result.is_error),
    }


async def tools(client: Client) -> None:
    REPORT["tools"] = [tool.name for tool in (await client.list_tools()).tools]
    added = await client.call_tool("add", {"a": 1, "b": 2})
    REPORT["sum"] = [added.structured_content, json.loads(text_of(added))]
    REPORT["tool_error"] = (await client.call_tool("test_error_handling", {})).is_error
    await client.call_tool("test_tool_with_progress", {}, progress_callback=progress)
    if client.protocol_version < "2026-07-28":
        await client.set_logging_level("alert")
    await client.call_tool("test_logging_tool", {})
    headed = await client.call_tool("test_x_mcp_header", {"region": "eu", "priority": 3})
    REPORT["headed"] = text_of(headed)
    REPORT["elicited"] = text_of(await client.call_tool("confirm_name", {}))
    REPORT["sampled"] = text_of(await client.call_tool("test_sampling", {"prompt": "?"}))
    roots = await client.call_tool("test_input_required_result_list_roots", {})
    REPORT["roots"] = text_of(roots)
    rounds = await client.call_tool("test_input_required_result_multi_round", {})
    REPORT["rounds"] = text_of(rounds)
    kinds = (await client.call_tool("test_multiple_content_types", {})).content
    REPORT["kinds"] = [block.type for block in kinds]
    REPORT["unknown_tool"] = await code_of(client.call_tool("no_such_tool", {}))


async def resources(client: Client) -> None:
    REPORT["resources"] = [str(r.uri) for r in (await client.list_resources()).resources]
    templates = (await client.list_resource_templates()).resource_templates
    REPORT["templates"] = [template.uri_template for template in templates]
    read = await client.read_resource("test://static-text")
    REPORT["read"] = read.contents[0].text
    REPORT["blob"] = (await client.read_resource("test://static-binary")).contents[0].mime_type
    unknown = client.read_resource("test://nothing")
    REPORT["unknown_resource"] = await code_of(unknown)
    await watch(client)


async def watch(client: Client) -> None:
    """Subscribe to a resource, in the way of the era, and hear that it changed."""
    uri = "test://watched-resource"
    if client.protocol_version < "2026-07-28":
        await client.subscribe_resource(uri)
        await client.call_tool("trigger_resource_change", {})
        await asyncio.wait_for(NOTIFIED.wait(), 60)
        await client.unsubscribe_resource(uri)
        return
    async with client.listen(tools_list_changed=True, resource_subscriptions=[uri]) as received:
        await client.call_tool("trigger_resource_change", {})
        event = await asyncio.wait_for(anext(received), 60)
        REPORT["updated"].append(str(event.uri))
        await client.call_tool("test_trigger_tool_change", {})
        REPORT["changed"] = type(await asyncio.wait_for(anext(received), 60)).__name__


async def prompts(client: Client) -> None:
    REPORT["prompts"] = [prompt.name for prompt in (await client.list_prompts()).prompts]
    given = {"arg1": "x", "arg2": "y"}
    prompt = await client.get_prompt("test_prompt_with_arguments", given)
    REPORT["prompt"] = prompt.messages[0].content.text
    asked = await client.get_prompt("test_prompt_with_image")
    REPORT["prompt_kinds"] = [message.content.type for message in asked.messages]
    REPORT["unknown_prompt"] = await code_of(client.get_prompt("no_such_prompt"))
    reference = types.PromptReference(type="ref/prompt", name="test_prompt_with_arguments")
    completed = await client.complete(reference, {"name": "arg1", "value": "par"})
    REPORT["completion"] = completed.completion.values


async def cancel(client: Client) -> int:
    """Start a call that waits, give it up, and say how many calls the server saw cancelled."""
    before = json.loads(text_of(await client.call_tool("witness", {})))["cancelled"]
    started = asyncio.Event()

    async def tell(*_: Any) -> None:
        started.set()

    call = asyncio.create_task(client.call_tool("wait", {}, progress_callback=tell))
    await asyncio.wait_for(started.wait(), 60)
    call.cancel()
    count = 0
    while count < 1:
        await asyncio.sleep(0.02)
        seen = json.loads(text_of(await client.call_tool("witness", {})))
        count = seen["cancelled"] - before
    return count


async def main() -> None:
    async with Client(
        server(),
        mode=CONFIG["mode"],
        sampling_callback=sample,
        elicitation_callback=elicit,
        list_roots_callback=list_roots,
        logging_callback=log,
        log_level="alert",
        message_handler=receive,
        extensions=[TaskClient()] if CONFIG.get("tasks") else None,
    ) as client:
        await asyncio.wait_for(talk(client), 240)
    print(json.dumps(REPORT))


def converse(config: dict[str, Any]) -> None:
    CONFIG.update(config)
    asyncio.run(main())
