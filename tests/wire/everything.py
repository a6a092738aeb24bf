"""A server with one of everything: what the conformance suite and our own tests talk to.

Run it with `python tests/wire/everything.py --stdio` or `--http PORT`.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import signal
import sys
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).parents[1]))

from tidegate.bridge.handshake_file import HandshakeFile, ServerAddress
from tidegate.bridge.handshake_writer import HandshakeWriter, ServedEndpoint
from tidegate.config.model import BridgeSettings
from tidegate.edges.edge import Edge
from tidegate.edges.http.application import HttpApplication, HttpLimits
from tidegate.edges.http.edge import HttpEdge
from tidegate.edges.http.endpoint import Endpoint, HttpConventions, JsonConventions
from tidegate.edges.http.router import Router
from tidegate.edges.http.sse import KEEP_ALIVE_S
from tidegate.edges.listening import bind
from tidegate.edges.stdio import StdioEdge
from tidegate.errors import Code, TidegateError
from tidegate.identity.bridge_tokens import BridgeTokens
from tidegate.model.actors import Actor, Scope
from tidegate.protocol import model
from tidegate.protocol.kernel import Kernel
from tidegate.protocol.model import Context, ToolResult
from tidegate.protocol.revisions import ALL
from tidegate.protocol.tasks import Task, Tasks, TaskTimes
from wire.fixture_tools import FIXTURES, PNG, WATCHED, form
from wire.task_tools import KeptRecords

TOOLS = tuple(fixture.tool for fixture in FIXTURES.values())


class Everything:
    """The server itself. Counts what the tests want to see from outside."""

    info = model.Info("everything", "1.0.0", "One of everything")
    instructions = "A server for tests."
    methods: Mapping[str, model.BareMethod] = {}
    capabilities: Mapping[str, Any] = {
        "tools": {"listChanged": True},
        "resources": {"listChanged": True, "subscribe": True},
        "prompts": {"listChanged": True},
        "completions": {},
        "logging": {},
    }

    def __init__(self) -> None:
        self.waiting = 0
        self.cancelled = 0
        self.done = 0
        self._listeners: list[Callable[[str, str | None], None]] = []

    def tell(self, kind: str, uri: str | None) -> None:
        for listener in list(self._listeners):
            listener(kind, uri)

    def subscribe(self, listener: Callable[[str, str | None], None]) -> Callable[[], None]:
        self._listeners.append(listener)
        return lambda: self._listeners.remove(listener)

    def tools(self, context: Context) -> Sequence[model.Tool]:
        return TOOLS

    async def call_tool(self, context: Context, name: str, arguments: dict[str, Any]) -> ToolResult:
        fixture = FIXTURES.get(name)
        if fixture is None:
            raise model.RpcError(model.INVALID_PARAMS, f"Unknown tool: {name}")
        return await fixture.handler(self, context, arguments)

    def still_running(self, context: Context, tool: str, id: str) -> ToolResult:
        return ToolResult([model.text(f"still running: {id}")])

    def lost(self, context: Context, tool: str, words: str) -> ToolResult:
        return ToolResult([model.text(words)], is_error=True)

    async def release(
        self, context: Context, task: Task, outcome: ToolResult | model.RpcError
    ) -> ToolResult:
        if isinstance(outcome, model.RpcError):
            raise outcome.copied()
        return outcome

    async def resources(self, context: Context) -> Sequence[model.Resource]:
        return [
            model.Resource(
                "test://static-text",
                "Static text",
                title="A text",
                description="A text that never changes",
                mime_type="text/plain",
                size=48,
                meta={"example.org/kind": "text"},
            ),
            model.Resource(
                "test://static-binary",
                "Static binary",
                description="An image that never changes",
                mime_type="image/png",
            ),
            model.Resource(
                WATCHED, "Watched", description="Can be subscribed to", mime_type="text/plain"
            ),
        ]

    def resource_templates(self, context: Context) -> Sequence[model.ResourceTemplate]:
        return [
            model.ResourceTemplate(
                "test://template/{id}/data",
                "Template",
                title="By id",
                description="A document for each id",
                mime_type="application/json",
            )
        ]

    async def read_resource(self, context: Context, uri: str) -> Sequence[model.ResourceText]:
        if uri == "test://static-text":
            content = "This is the content of the static text resource."
            return [model.ResourceText(uri, "text/plain", text=content)]
        if uri == "test://static-binary":
            return [model.ResourceText(uri, "image/png", blob=PNG)]
        if uri == WATCHED:
            return [model.ResourceText(uri, "text/plain", text="Watched content")]
        before, after = "test://template/", "/data"
        if uri.startswith(before) and uri.endswith(after):
            id = uri[len(before) : -len(after)]
            document = {"id": id, "templateTest": True, "data": f"Data for ID: {id}"}
            return [model.ResourceText(uri, "application/json", text=json.dumps(document))]
        raise model.RpcError(model.RESOURCE_NOT_FOUND, "Resource not found", {"uri": uri})

    def prompts(self, context: Context) -> Sequence[model.Prompt]:
        argument = model.PromptArgument
        return [
            model.Prompt("test_simple_prompt", "Simple", "A prompt without arguments"),
            model.Prompt(
                "test_prompt_with_arguments",
                description="A prompt with two arguments",
                arguments=(
                    argument("arg1", "First test argument", required=True, title="First"),
                    argument("arg2", "Second test argument", required=True),
                ),
            ),
            model.Prompt(
                "test_prompt_with_embedded_resource",
                description="A prompt that embeds a resource",
                arguments=(argument("resourceUri", "What to embed", required=True),),
            ),
            model.Prompt("test_prompt_with_image", description="A prompt with an image"),
            model.Prompt(
                "test_input_required_result_prompt", description="A prompt that asks first"
            ),
        ]

    async def get_prompt(
        self, context: Context, name: str, arguments: Mapping[str, str]
    ) -> model.PromptResult:
        if name == "test_simple_prompt":
            return _prompt(model.text("This is a simple prompt for testing."))
        if name == "test_prompt_with_arguments":
            arg1, arg2 = arguments.get("arg1", ""), arguments.get("arg2", "")
            return _prompt(model.text(f"Prompt with arguments: arg1='{arg1}', arg2='{arg2}'"))
        if name == "test_prompt_with_embedded_resource":
            uri = arguments.get("resourceUri", "test://example-resource")
            return _prompt(
                model.embedded(uri, "Embedded resource content for testing."),
                model.text("Please process the embedded resource above."),
            )
        if name == "test_prompt_with_image":
            image = model.image(PNG, "image/png")
            return _prompt(image, model.text("Please analyze the image above."))
        if name == "test_input_required_result_prompt":
            question = form("What context should the prompt use?", context={"type": "string"})
            answer = await context.ask("user_context", question)
            return _prompt(model.text(f"Use this context: {answer.get('content')}"))
        raise model.RpcError(model.INVALID_PARAMS, f"Unknown prompt: {name}")

    async def complete(
        self,
        context: Context,
        reference: Mapping[str, Any],
        argument: str,
        value: str,
        chosen: Mapping[str, str],
    ) -> model.Completion:
        known = ("paris", "park", "party", *chosen.values())
        values = [word for word in known if word.startswith(value)]
        return model.Completion(values, total=len(values))


def _prompt(*contents: model.Content) -> model.PromptResult:
    messages = [model.PromptMessage("user", content) for content in contents]
    return model.PromptResult(messages, description="A prompt for testing")


def _options() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__)
    where = parser.add_mutually_exclusive_group(required=True)
    where.add_argument("--stdio", action="store_true")
    where.add_argument("--http", type=int, metavar="PORT")
    parser.add_argument("--bridge", type=Path, metavar="STATE", help="be found by bridges there")
    parser.add_argument("--page-size", type=int, default=200)
    parser.add_argument("--keep-alive", type=float, default=KEEP_ALIVE_S, metavar="SECONDS")
    parser.add_argument("--after", type=float, default=20.0, metavar="SECONDS")
    parser.add_argument("--answer", type=float, default=50.0, metavar="SECONDS")
    parser.add_argument("--revisions", nargs="+", default=ALL, metavar="REVISION")
    return parser.parse_args()


def _routes(options: argparse.Namespace) -> Router:
    """What a bridge asks for, if one shall find this server."""
    if options.bridge is None:
        return Router()
    admission = BridgeTokens(BridgeSettings(), lambda name, details: None)
    place = HandshakeFile(options.bridge)
    address = ServerAddress("127.0.0.1", options.http)
    keeper = HandshakeWriter(place, admission, ServedEndpoint(address, ("/mcp",), patience_s=30))
    assert keeper.open()
    return keeper.routes()


def _identify(token: str | None, client: str) -> Actor:
    """Any token but `bad` is someone; no token is no one in particular."""
    if token == "bad":
        raise TidegateError(Code.AUTH_INVALID, "The token is not valid")
    name = token or "anonymous"
    return Actor(name, name, Scope.READ_ONLY)


def _stop_on_signal() -> asyncio.Event:
    stop = asyncio.Event()
    for sent in (signal.SIGTERM, signal.SIGINT):
        asyncio.get_running_loop().add_signal_handler(sent, stop.set)
    return stop


async def _serve_http(kernel: Kernel, options: argparse.Namespace) -> None:
    endpoints = [
        Endpoint("/mcp", kernel, HttpConventions()),
        Endpoint("/", _routes(options), JsonConventions()),
    ]
    application = HttpApplication(
        endpoints, _identify, limits=HttpLimits(keep_alive_s=options.keep_alive)
    )
    await _run(HttpEdge(application, bind("127.0.0.1", options.http)))


async def _serve_stdio(kernel: Kernel) -> None:
    actor = Actor("stdio", "stdio", Scope.READ_ONLY, kind="human")
    await _run(StdioEdge(kernel, actor))


async def _run(edge: Edge) -> None:
    """Until a signal, or the end of the edge."""
    stop = _stop_on_signal()
    await edge.start()
    ends = [asyncio.ensure_future(wait) for wait in (edge.wait_ended(), stop.wait())]
    await asyncio.wait(ends, return_when=asyncio.FIRST_COMPLETED)
    for end in ends:
        end.cancel()
    await edge.stop(1.0)


def main() -> None:
    options = _options()
    revisions = model.RevisionPolicy(tuple(options.revisions))
    settings = model.Settings(revisions, page_size=options.page_size)
    times = TaskTimes(options.after, options.answer, 3_600.0)
    kernel = Kernel(Everything(), settings, tasks=Tasks(KeptRecords(), times))
    if options.stdio:
        asyncio.run(_serve_stdio(kernel))
    else:
        asyncio.run(_serve_http(kernel, options))


if __name__ == "__main__":
    main()
