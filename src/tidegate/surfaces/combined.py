"""Several surfaces as one server, for stdio, where there is one connection and no path."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

from tidegate import __version__
from tidegate.errors import Code, TidegateError
from tidegate.protocol.apps import shows_apps
from tidegate.protocol.model import (
    BareMethod,
    Completion,
    Context,
    Info,
    Prompt,
    PromptResult,
    Resource,
    ResourceTemplate,
    ResourceText,
    RevisionPolicy,
    RpcError,
    Settings,
    ToolResult,
)
from tidegate.protocol.model import Tool as ListedTool
from tidegate.protocol.tasks import Task
from tidegate.surfaces.surface import Surface


class CombinedServer:
    """`protocol.model.Server` over other surfaces. A tool's name belongs to one of them.

    Raises: TidegateError CONFIG_INVALID if two surfaces have a tool of the same name.
    """

    def __init__(self, surfaces: Sequence[Surface]) -> None:
        self._surfaces = tuple(surfaces)
        self._owner: dict[str, Surface] = {}
        for surface in surfaces:
            for name in surface.tools_by_name:
                other = self._owner.setdefault(name, surface)
                if other is not surface:
                    raise TidegateError(
                        Code.CONFIG_INVALID,
                        f"The surfaces {other.name} and {surface.name} both have a tool {name}",
                        hint="Serve them over HTTP, where each has its own path, or drop one.",
                    )
        self.methods: dict[str, BareMethod] = {}
        for surface in surfaces:
            for name, method in surface.methods.items():
                if name in self.methods:
                    raise TidegateError(
                        Code.CONFIG_INVALID,
                        f"Two surfaces have a method {name}; one of them is {surface.name}",
                        hint="Serve them over HTTP, where each has its own path, or drop one.",
                    )
                self.methods[name] = method
        self.info = Info("tidegate", __version__, "Tidegate")
        texts = [surface.instructions for surface in surfaces if surface.instructions]
        self.instructions = "\n".join(texts) or None
        self.capabilities: Mapping[str, Any] = {
            name: value for surface in surfaces for name, value in surface.capabilities.items()
        }
        accepted = set[str]().union(*(s.settings.revisions.accepted for s in surfaces))
        early = [s.settings.methods_without_session for s in surfaces]
        self.settings = Settings(
            RevisionPolicy(tuple(sorted(accepted))),
            methods_without_session=next(filter(None, early), None),
            app_capabilities={
                name: value for s in surfaces for name, value in s.settings.app_capabilities.items()
            },
        )
        self.stdio_settings = self.settings
        self._listed: dict[bool, tuple[ListedTool, ...]] = {}

    def tools(self, context: Context) -> Sequence[ListedTool]:
        shows = shows_apps(context.client_capabilities)
        if shows not in self._listed:
            self._listed[shows] = tuple(t for s in self._surfaces for t in s.tools(context))
        return self._listed[shows]

    async def call_tool(self, context: Context, name: str, arguments: dict[str, Any]) -> ToolResult:
        return await self._owner.get(name, self._surfaces[0]).call_tool(context, name, arguments)

    def still_running(self, context: Context, tool: str, id: str) -> ToolResult:
        return self._owner.get(tool, self._surfaces[0]).still_running(context, tool, id)

    def lost(self, context: Context, tool: str, words: str) -> ToolResult:
        return self._owner.get(tool, self._surfaces[0]).lost(context, tool, words)

    async def release(
        self, context: Context, task: Task, outcome: ToolResult | RpcError
    ) -> ToolResult:
        owner = self._owner.get(task.record.tool, self._surfaces[0])
        return await owner.release(context, task, outcome)

    async def resources(self, context: Context) -> Sequence[Resource]:
        return [r for surface in self._surfaces for r in await surface.resources(context)]

    def resource_templates(self, context: Context) -> Sequence[ResourceTemplate]:
        return [r for surface in self._surfaces for r in surface.resource_templates(context)]

    async def read_resource(self, context: Context, uri: str) -> Sequence[ResourceText]:
        for surface in self._surfaces:
            if surface.has_resource(context, uri):
                return await surface.read_resource(context, uri)
        return await self._surfaces[0].read_resource(context, uri)

    def prompts(self, context: Context) -> Sequence[Prompt]:
        return [p for surface in self._surfaces for p in surface.prompts(context)]

    async def get_prompt(
        self, context: Context, name: str, arguments: Mapping[str, str]
    ) -> PromptResult:
        for surface in self._surfaces:
            if name in surface.prompts_by_name:
                return await surface.get_prompt(context, name, arguments)
        return await self._surfaces[0].get_prompt(context, name, arguments)

    async def complete(
        self,
        context: Context,
        reference: Mapping[str, Any],
        argument: str,
        value: str,
        chosen: Mapping[str, str],
    ) -> Completion:
        owners = (each for each in self._surfaces if each.completers(reference) is not None)
        owner = next(owners, self._surfaces[0])
        return await owner.complete(context, reference, argument, value, chosen)

    def subscribe(self, listener: Callable[[str, str | None], None]) -> Callable[[], None]:
        stops = [surface.subscribe(listener) for surface in self._surfaces]

        def stop() -> None:
            for each in stops:
                each()

        return stop
