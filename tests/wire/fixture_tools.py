"""The tools of the fixture server.

Those whose names begin with `test_`, and `json_schema_2020_12_tool`, are what the conformance
suite asks for; the others serve our own tests.
"""

from __future__ import annotations

import asyncio
import json
from collections.abc import Awaitable, Callable, Mapping
from typing import Any, Protocol

from msgspec import structs

from tidegate.protocol import model
from tidegate.protocol.model import Ask, Context, ToolResult

PNG = (
    "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAA"
    "DUlEQVR42mP8z8BQDwAEhQGAhKmMIQAAAABJRU5ErkJggg=="
)
WAV = "UklGRiYAAABXQVZFZm10IBAAAAABAAEAQB8AAAB9AAACABAAZGF0YQIAAAA="
WATCHED = "test://watched-resource"


class Counters(Protocol):
    """What the tools change in the server that they belong to."""

    waiting: int
    cancelled: int
    done: int

    def tell(self, kind: str, uri: str | None) -> None: ...


Handler = Callable[[Counters, Context, dict[str, Any]], Awaitable[ToolResult]]
NO_ARGUMENTS: dict[str, Any] = {"type": "object", "properties": {}, "additionalProperties": False}


class Fixture:
    """A tool and the function that answers it."""

    def __init__(self, tool: model.Tool, handler: Handler) -> None:
        self.tool = tool
        self.handler = handler


FIXTURES: dict[str, Fixture] = {}


def tool(
    description: str,
    input_schema: Mapping[str, Any] = NO_ARGUMENTS,
    **extra: Any,
) -> Callable[[Handler], Handler]:
    """Register the decorated function as a tool under its own name."""

    def register(handler: Handler) -> Handler:
        name = handler.__name__
        FIXTURES[name] = Fixture(model.Tool(name, description, input_schema, **extra), handler)
        return handler

    return register


def arguments(**properties: Any) -> dict[str, Any]:
    """An input schema in which every named argument is required."""
    return {"type": "object", "properties": properties, "required": list(properties)}


def said(value: str, *, is_error: bool = False) -> ToolResult:
    return ToolResult([model.text(value)], is_error=is_error)


def form(message: str, **properties: Any) -> Ask:
    """A question to the person, every field required."""
    schema = {"type": "object", "properties": properties, "required": list(properties)}
    return Ask("elicitation/create", {"message": message, "requestedSchema": schema})


def prompt_model(message: str, max_tokens: int = 100) -> Ask:
    """A question to the client's language model."""
    content = {"type": "text", "text": message}
    params = {"messages": [{"role": "user", "content": content}], "maxTokens": max_tokens}
    return Ask("sampling/createMessage", params)


ROOTS = Ask("roots/list", {})


# Content


@tool("Returns one text block")
async def test_simple_text(server: Counters, context: Context, given: dict[str, Any]):
    return said("This is a simple text response for testing.")


@tool("Returns an image")
async def test_image_content(server: Counters, context: Context, given: dict[str, Any]):
    return ToolResult([model.image(PNG, "image/png")])


@tool("Returns a sound")
async def test_audio_content(server: Counters, context: Context, given: dict[str, Any]):
    return ToolResult([model.audio(WAV, "audio/wav")])


@tool("Returns an embedded resource")
async def test_embedded_resource(server: Counters, context: Context, given: dict[str, Any]):
    return ToolResult(
        [model.embedded("test://embedded-resource", "This is an embedded resource content.")]
    )


@tool("Returns text, an image and a resource")
async def test_multiple_content_types(server: Counters, context: Context, given: dict[str, Any]):
    document = json.dumps({"test": "data", "value": 123})
    return ToolResult(
        [
            model.text("Multiple content types test:"),
            model.image(PNG, "image/png"),
            model.embedded("test://mixed-content-resource", document, "application/json"),
        ]
    )


@tool("Returns a tool error")
async def test_error_handling(server: Counters, context: Context, given: dict[str, Any]):
    return said("This tool intentionally returns an error for testing", is_error=True)


# Notifications while a call runs


@tool("Sends three log messages")
async def test_tool_with_logging(server: Counters, context: Context, given: dict[str, Any]):
    context.log("info", "Tool execution started")
    await asyncio.sleep(0.05)
    context.log("info", "Tool processing data")
    await asyncio.sleep(0.05)
    context.log("info", "Tool execution completed")
    return said("Logged three messages")


@tool("Logs at every level")
async def test_logging_tool(server: Counters, context: Context, given: dict[str, Any]):
    for level in model.LOG_LEVELS:
        context.log(level, {"level": level}, "everything")
    return said("Logged at every level")


@tool("Reports progress three times")
async def test_tool_with_progress(server: Counters, context: Context, given: dict[str, Any]):
    for done in (0, 50, 100):
        context.progress(done, 100, f"{done} of 100")
        await asyncio.sleep(0.05)
    return said("Progress reported" if context.wants_progress else "Nobody asked for progress")


@tool("Closes its stream before it answers")
async def test_reconnection(server: Counters, context: Context, given: dict[str, Any]):
    await context.close_stream(retry_ms=100)
    await asyncio.sleep(0.1)
    return said("Answered after the stream was closed")


# Questions to the client


@tool("Asks the client's model", arguments(prompt={"type": "string"}))
async def test_sampling(server: Counters, context: Context, given: dict[str, Any]):
    answer = await context.ask("sampled", prompt_model(str(given.get("prompt", ""))))
    return said(f"LLM response: {answer['content']['text']}")


@tool("Asks the person", arguments(message={"type": "string"}))
async def test_elicitation(server: Counters, context: Context, given: dict[str, Any]):
    question = form(
        str(given.get("message", "")),
        username={"type": "string", "description": "User's response"},
        email={"type": "string", "description": "User's email address"},
    )
    answer = await context.ask("user", question)
    return said(f"User response: action={answer['action']}, content={answer.get('content')}")


@tool("Asks the person, with defaults")
async def test_elicitation_sep1034_defaults(
    server: Counters, context: Context, given: dict[str, Any]
):
    question = form(
        "Please check these defaults",
        name={"type": "string", "default": "John Doe"},
        age={"type": "integer", "default": 30},
        score={"type": "number", "default": 95.5},
        status={
            "type": "string",
            "enum": ["active", "inactive", "pending"],
            "default": "active",
        },
        verified={"type": "boolean", "default": True},
    )
    return _completed(await context.ask("defaults", question))


@tool("Asks the person to choose")
async def test_elicitation_sep1330_enums(server: Counters, context: Context, given: dict[str, Any]):
    plain = ["option1", "option2", "option3"]
    titled = [
        {"const": f"value{n}", "title": f"{word} Option"}
        for n, word in enumerate(("First", "Second", "Third"), 1)
    ]
    question = form(
        "Please choose",
        untitledSingle={"type": "string", "enum": plain},
        titledSingle={"type": "string", "oneOf": titled},
        legacyEnum={
            "type": "string",
            "enum": ["opt1", "opt2", "opt3"],
            "enumNames": ["Option One", "Option Two", "Option Three"],
        },
        untitledMulti={"type": "array", "items": {"type": "string", "enum": plain}},
        titledMulti={"type": "array", "items": {"anyOf": titled}},
    )
    return _completed(await context.ask("choices", question))


def _completed(answer: Mapping[str, Any]) -> ToolResult:
    content = json.dumps(answer.get("content"))
    return said(f"Elicitation completed: action={answer['action']}, content={content}")


@tool("Needs a client that samples")
async def test_missing_capability(server: Counters, context: Context, given: dict[str, Any]):
    await context.ask("needed", prompt_model("Are you there?"))
    return said("The client can sample")


@tool("Asks for a name")
async def test_input_required_result_elicitation(
    server: Counters, context: Context, given: dict[str, Any]
):
    question = form("What is your name?", name={"type": "string"})
    answer = await context.ask("user_name", structs.replace(question, volunteered=True))
    return said(f"Hello, {(answer.get('content') or {}).get('name', 'stranger')}!")


@tool("Asks the person while it answers in a stream")
async def test_streaming_elicitation(server: Counters, context: Context, given: dict[str, Any]):
    question = form("Go on?", ok={"type": "boolean"})
    return said(f"action={(await context.ask('go_on', question))['action']}")


@tool("Asks the client's model for a capital")
async def test_input_required_result_sampling(
    server: Counters, context: Context, given: dict[str, Any]
):
    question = prompt_model("What is the capital of France?")
    answer = await context.ask("capital_question", question)
    return said(answer["content"]["text"])


@tool("Asks for the client's roots")
async def test_input_required_result_list_roots(
    server: Counters, context: Context, given: dict[str, Any]
):
    answer = await context.ask("client_roots", ROOTS)
    return said(f"Roots: {', '.join(root['uri'] for root in answer['roots'])}")


@tool("Asks for a confirmation and checks the state")
async def test_input_required_result_request_state(
    server: Counters, context: Context, given: dict[str, Any]
):
    await context.ask("confirm", form("Please confirm", ok={"type": "boolean"}))
    return said("state-ok")


@tool("Asks three things at once")
async def test_input_required_result_multiple_inputs(
    server: Counters, context: Context, given: dict[str, Any]
):
    answers = await context.ask_all(
        {
            "user_name": form("What is your name?", name={"type": "string"}),
            "greeting": prompt_model("Generate a greeting", 50),
            "client_roots": ROOTS,
        }
    )
    return said(f"Answers: {', '.join(sorted(answers))}")


@tool("Asks two things, one after the other")
async def test_input_required_result_multi_round(
    server: Counters, context: Context, given: dict[str, Any]
):
    first = await context.ask("step1", form("Step 1: What is your name?", name={"type": "string"}))
    second = await context.ask(
        "step2", form("Step 2: What is your favorite color?", color={"type": "string"})
    )
    return said(f"{first.get('content')} and {second.get('content')}")


@tool("Asks for a confirmation; its state must not be changed")
async def test_input_required_result_tampered_state(
    server: Counters, context: Context, given: dict[str, Any]
):
    await context.ask("confirm", form("Please confirm", ok={"type": "boolean"}))
    return said("The state came back unchanged")


@tool("Asks only what the client can answer")
async def test_input_required_result_capabilities(
    server: Counters, context: Context, given: dict[str, Any]
):
    asks: dict[str, Ask] = {}
    if context.can("sampling"):
        asks["sampled"] = prompt_model("Say hello")
    if context.can("elicitation"):
        asks["asked"] = form("Say hello", hello={"type": "string"})
    answers = await context.ask_all(asks) if asks else {}
    return said(f"Answers: {', '.join(sorted(answers))}")


# Schemas and headers


@tool(
    "Has a schema with words of JSON Schema 2020-12",
    {
        "$schema": "https://json-schema.org/draft/2020-12/schema",
        "type": "object",
        "$defs": {
            "address": {
                "$anchor": "addressDef",
                "type": "object",
                "properties": {"street": {"type": "string"}, "city": {"type": "string"}},
            }
        },
        "properties": {
            "name": {"type": "string"},
            "address": {"$ref": "#/$defs/address"},
            "contactMethod": {"type": "string", "enum": ["phone", "email"]},
            "phone": {"type": "string"},
            "email": {"type": "string"},
        },
        "allOf": [{"anyOf": [{"required": ["phone"]}, {"required": ["email"]}]}],
        "if": {
            "properties": {"contactMethod": {"const": "phone"}},
            "required": ["contactMethod"],
        },
        "then": {"required": ["phone"]},
        "else": {"required": ["email"]},
        "additionalProperties": False,
    },
)
async def json_schema_2020_12_tool(server: Counters, context: Context, given: dict[str, Any]):
    return said(json.dumps(given))


@tool(
    "Has arguments that a client repeats in headers",
    {
        "type": "object",
        "properties": {
            "region": {"type": "string", "x-mcp-header": "Region"},
            "priority": {"type": "integer", "x-mcp-header": "Priority"},
            "urgent": {"type": "boolean", "x-mcp-header": "Urgent"},
            "note": {"type": "string"},
        },
        "required": ["region"],
    },
)
async def test_x_mcp_header(server: Counters, context: Context, given: dict[str, Any]):
    return said(f"region={given.get('region')}")


# Changes that subscribers are notified of


@tool("Tells subscribers that the tools changed")
async def test_trigger_tool_change(server: Counters, context: Context, given: dict[str, Any]):
    server.tell("tools", None)
    return said("Told")


@tool("Tells subscribers that the prompts changed")
async def test_trigger_prompt_change(server: Counters, context: Context, given: dict[str, Any]):
    server.tell("prompts", None)
    return said("Told")


@tool("Tells subscribers that the watched resource changed")
async def trigger_resource_change(server: Counters, context: Context, given: dict[str, Any]):
    server.tell("resource", WATCHED)
    return said("Told")


# For our own tests


@tool(
    "Adds two numbers",
    arguments(a={"type": "number"}, b={"type": "number"}),
    title="Sum",
    output_schema=arguments(sum={"type": "number"}),
    annotations=model.Annotations(title="Sum", read_only_hint=True, open_world_hint=False),
    meta={"example.org/kind": "arithmetic"},
)
async def add(server: Counters, context: Context, given: dict[str, Any]):
    a, b = given.get("a"), given.get("b")
    if not isinstance(a, (int, float)) or not isinstance(b, (int, float)):
        return said("a and b must be numbers", is_error=True)
    return ToolResult(body=json.dumps({"sum": a + b}).encode(), meta={"example.org/exact": True})


@tool("Returns its arguments as they came", {"type": "object"})
async def echo(server: Counters, context: Context, given: dict[str, Any]):
    return ToolResult(body=json.dumps(given, ensure_ascii=False).encode())


@tool("Returns a text of a given size", arguments(bytes={"type": "integer"}))
async def large(server: Counters, context: Context, given: dict[str, Any]):
    return said("x" * int(given.get("bytes", 0)))


@tool("Says what the server knows of this call")
async def whoami(server: Counters, context: Context, given: dict[str, Any]):
    known = {
        "actor": context.actor.id,
        "revision": context.revision,
        "client": context.client.name,
        "capabilities": sorted(context.client_capabilities),
    }
    return ToolResult(body=json.dumps(known).encode())


@tool("Waits until it is cancelled, or five minutes")
async def wait(server: Counters, context: Context, given: dict[str, Any]):
    over: asyncio.Future[None] = asyncio.get_running_loop().create_future()
    server.waiting += 1

    def stop() -> None:
        if not over.done():
            over.set_result(None)

    context.cancellation.listen(stop)
    context.progress(0, 1, "waiting")
    try:
        await asyncio.wait_for(over, 300)
    finally:
        server.waiting -= 1
        server.cancelled += context.cancellation.cancelled
    return said("Cancelled")


@tool("Counts the calls of `wait` that run and that were cancelled")
async def witness(server: Counters, context: Context, given: dict[str, Any]):
    seen = {"waiting": server.waiting, "cancelled": server.cancelled, "done": server.done}
    return ToolResult(body=json.dumps(seen).encode())


@tool("Asks, then counts itself as done", {"type": "object"})
async def confirm_once(server: Counters, context: Context, given: dict[str, Any]):
    answer = await context.ask("confirm", form("Really?", ok={"type": "boolean"}))
    if answer["action"] == "accept":
        server.done += 1
    return said(f"{answer['action']}, done {server.done}")


@tool("Asks for a name and says it")
async def confirm_name(server: Counters, context: Context, given: dict[str, Any]):
    answer = await context.ask("who", form("Who are you?", name={"type": "string"}))
    return said(f"{answer['action']}: {(answer.get('content') or {}).get('name')}")


@tool("Says nothing for as long as it is told to", {"type": "object"})
async def pause(server: Counters, context: Context, given: dict[str, Any]):
    await asyncio.sleep(given["seconds"])
    server.done += 1
    return said("paused")


@tool("Fails in a way that no one foresaw")
async def crash(server: Counters, context: Context, given: dict[str, Any]):
    raise ZeroDivisionError("the secret of the crash")
