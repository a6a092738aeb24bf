"""What frameworks for agents make of a server's tools and of one refused call, as JSON on stdout.

Run by an interpreter that has them: `frameworks.py CONFIG`, where CONFIG is a JSON object with
`framework` (a key of `FRAMEWORKS`), `url`, and `call`, a pair of tool and arguments. The report has
`forms`, by the name of each form in which the framework gives tools to a model, the schema of each
tool's arguments in it, and `shown`: what the model reads as the call's result, or `raised` where
the framework shows the model nothing and ends the run.
Imports nothing of the server.
"""

# pyright: basic, reportMissingImports=false
# The frameworks are in an environment of their own, and one of them is imported in each run.

from __future__ import annotations

import asyncio
import json
import logging
import sys
import warnings
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from typing import Any

warnings.simplefilter("ignore")
logging.disable(logging.CRITICAL)

Report = dict[str, Any]
Call = tuple[str, dict[str, Any]]


@asynccontextmanager
async def session_at(url: str) -> AsyncIterator[Any]:
    """An initialized session of the official SDK, which most frameworks are built on."""
    from mcp.client.streamable_http import streamablehttp_client

    from mcp import ClientSession

    async with (
        streamablehttp_client(url) as (read, write, _),
        ClientSession(read, write) as session,
    ):
        await session.initialize()
        yield session


async def told(called: Awaitable[Any]) -> Report:
    """What a model reads of a call, or the exception that ends the agent's run."""
    try:
        return {"shown": str(await called)}
    except Exception as error:  # noqa: BLE001 - of whatever class the framework has
        return {"raised": name_of(error)}


def name_of(error: BaseException) -> str:
    """The class and the words of an error; of a group, those of its first one."""
    while isinstance(error, BaseExceptionGroup):
        error = error.exceptions[0]
    return f"{type(error).__name__}: {error}"[:2000]


async def google_genai(url: str, call: Call) -> Report:
    from google.genai import types
    from google.genai._adapters import McpToGenAiToolAdapter

    async with session_at(url) as session:
        adapter = McpToGenAiToolAdapter(session, await session.list_tools())
        declared = [one for tool in adapter.tools for one in tool.function_declarations or ()]
        forms = {one.name: one.parameters.model_dump(exclude_none=True) for one in declared}
        name, arguments = call
        called = adapter.call_tool(types.FunctionCall(name=name, args=arguments))
        return {"forms": {"gemini": forms}, **await told(called)}


async def langchain(url: str, call: Call) -> Report:
    from langchain_core.utils.function_calling import convert_to_openai_tool
    from langchain_google_genai._function_utils import convert_to_genai_function_declarations
    from langchain_mcp_adapters.tools import load_mcp_tools

    async with session_at(url) as session:
        tools = await load_mcp_tools(session)
        declared = [
            one
            for tool in tools
            for holder in convert_to_genai_function_declarations([tool])
            for one in holder.function_declarations
        ]
        forms = {
            "gemini": {one.name: _dumped(one) for one in declared},
            "openai": {
                tool.name: convert_to_openai_tool(tool)["function"]["parameters"] for tool in tools
            },
        }
        (tool,) = [each for each in tools if each.name == call[0]]
        given = {"name": call[0], "args": call[1], "id": "1", "type": "tool_call"}
        return {"forms": forms, **await told(tool.ainvoke(given))}


def _dumped(declaration: Any) -> Any:
    parameters = declaration.parameters
    if parameters is None:
        return declaration.parameters_json_schema or {"type": "object", "properties": {}}
    return parameters.model_dump(exclude_none=True)


async def openai_agents(url: str, call: Call) -> Report:
    from agents import set_tracing_disabled
    from agents.mcp import MCPServerStreamableHttp
    from agents.mcp.util import MCPUtil
    from agents.tool_context import ToolContext

    set_tracing_disabled(True)
    async with MCPServerStreamableHttp({"url": url}) as server:
        listed = await server.list_tools()
        plain = [MCPUtil.to_function_tool(tool, server, False) for tool in listed]
        strict = [MCPUtil.to_function_tool(tool, server, True) for tool in listed]
        forms = {
            "openai": {tool.name: tool.params_json_schema for tool in plain},
            # A tool that has no strict form is given as it is listed.
            "strict": {
                tool.name: tool.params_json_schema for tool in strict if tool.strict_json_schema
            },
        }
        (tool,) = [each for each in plain if each.name == call[0]]
        given = json.dumps(call[1])
        context = ToolContext(
            context=None, tool_name=call[0], tool_call_id="1", tool_arguments=given
        )
        return {"forms": forms, **await told(tool.on_invoke_tool(context, given))}


async def google_adk(url: str, call: Call) -> Report:
    from google.adk.agents.invocation_context import InvocationContext
    from google.adk.agents.llm_agent import LlmAgent
    from google.adk.sessions.in_memory_session_service import InMemorySessionService
    from google.adk.tools.mcp_tool.mcp_session_manager import StreamableHTTPConnectionParams
    from google.adk.tools.mcp_tool.mcp_toolset import McpToolset
    from google.adk.tools.tool_context import ToolContext

    toolset = McpToolset(connection_params=StreamableHTTPConnectionParams(url=url))
    try:
        tools = await toolset.get_tools()
        forms = {}
        for tool in tools:
            declaration = tool._get_declaration()
            assert declaration is not None
            forms[tool.name] = (
                declaration.parameters.model_dump(exclude_none=True)
                if declaration.parameters is not None
                else declaration.parameters_json_schema
            )
        (tool,) = [each for each in tools if each.name == call[0]]
        sessions = InMemorySessionService()
        session = await sessions.create_session(app_name="app", user_id="user")
        invocation = InvocationContext(
            session_service=sessions,
            invocation_id="1",
            agent=LlmAgent(name="agent"),
            session=session,
        )
        called = tool.run_async(args=call[1], tool_context=ToolContext(invocation))
        return {"forms": {"gemini": forms}, **await told(called)}
    finally:
        await toolset.close()


async def pydantic_ai(url: str, call: Call) -> Report:
    from pydantic_ai import Agent
    from pydantic_ai.mcp import MCPToolset
    from pydantic_ai.messages import ModelResponse, TextPart, ToolCallPart
    from pydantic_ai.models.function import FunctionModel
    from pydantic_ai.profiles.google import GoogleJsonSchemaTransformer
    from pydantic_ai.profiles.openai import OpenAIJsonSchemaTransformer

    seen: list[Any] = []
    tools: list[Any] = []

    def model(messages: list[Any], info: Any) -> ModelResponse:
        seen[:] = messages
        tools[:] = info.function_tools
        if len(messages) == 1:
            return ModelResponse([ToolCallPart(call[0], call[1])])
        return ModelResponse([TextPart("done")])

    await Agent(FunctionModel(model), toolsets=[MCPToolset(url)]).run("go")
    forms: dict[str, Any] = {"gemini": {}, "openai": {}, "strict": {}}
    for tool in tools:
        schema = tool.parameters_json_schema
        forms["gemini"][tool.name] = GoogleJsonSchemaTransformer(schema).walk()
        forms["openai"][tool.name] = OpenAIJsonSchemaTransformer(schema).walk()
        forms["strict"][tool.name] = OpenAIJsonSchemaTransformer(schema, strict=True).walk()
    parts = [part for message in seen[2:] for part in message.parts]
    return {"forms": forms, "shown": json.dumps([str(part.content) for part in parts])}


async def mcp_use(url: str, call: Call) -> Report:
    from mcp_use import MCPClient
    from mcp_use.agents.adapters.google import GoogleMCPAdapter
    from mcp_use.agents.adapters.langchain_adapter import LangChainAdapter
    from mcp_use.agents.adapters.openai import OpenAIMCPAdapter

    client = MCPClient({"mcpServers": {"it": {"url": url}}})
    try:
        gemini, openai, chain = GoogleMCPAdapter(), OpenAIMCPAdapter(), LangChainAdapter()
        for adapter in (gemini, openai, chain):
            await adapter.create_all(client)
        forms = {
            "gemini": {one.name: one.parameters_json_schema for one in gemini.tools},
            "openai": {
                one["function"]["name"]: one["function"]["parameters"] for one in openai.tools
            },
            "langchain": {one.name: one.args_schema.model_json_schema() for one in chain.tools},
        }
        return {"forms": forms, **await told(gemini.tool_executors[call[0]](**call[1]))}
    finally:
        await client.close_all_sessions()


async def fastmcp(url: str, call: Call) -> Report:
    from fastmcp import Client, FastMCP

    # Through a proxy of FastMCP's own, as agents use it that reach several servers by one.
    async with Client(FastMCP.as_proxy(url)) as client:
        forms = {tool.name: tool.inputSchema for tool in await client.list_tools()}
        called = client.call_tool(*call, raise_on_error=False)
        return {"forms": {"proxy": forms}, **await told(called)}


FRAMEWORKS: dict[str, Callable[[str, Call], Awaitable[Report]]] = {
    "google-genai": google_genai,
    "langchain": langchain,
    "openai-agents": openai_agents,
    "google-adk": google_adk,
    "pydantic-ai": pydantic_ai,
    "mcp-use": mcp_use,
    "fastmcp": fastmcp,
}


async def report_on(config: dict[str, Any]) -> Report:
    """The report of one framework; an exception is `raised`."""
    name, arguments = config["call"]
    try:
        return await FRAMEWORKS[config["framework"]](config["url"], (name, arguments))
    except BaseException as error:  # noqa: BLE001 - groups of exceptions as well
        return {"raised": name_of(error)}


if __name__ == "__main__":
    print(json.dumps(asyncio.run(report_on(json.loads(sys.argv[1]))), default=str))
