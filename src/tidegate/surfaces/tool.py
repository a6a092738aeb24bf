"""A tool of a surface, given as data."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping
from typing import Any

import msgspec

from tidegate.actors import Scope
from tidegate.protocol.model import Annotations, Tool, ToolResult
from tidegate.surfaces.schema import schema_of
from tidegate.surfaces.turn import Turn

ArgumentShape = Callable[[type[msgspec.Struct]], Mapping[str, Any]]


def argument_shape(args: type[msgspec.Struct]) -> Mapping[str, Any]:
    """The schema of an argument struct as surfaces show it unless they say otherwise."""
    return schema_of(args, nullable=False)


class SurfaceTool(msgspec.Struct, frozen=True):
    """A tool as data. Schemas are derived from `args` and `output` where none is given.

    `run` gets the turn and the converted arguments. `scope` is what the tool demands whatever its
    arguments are; the gate holds it.
    """

    name: str
    description: str
    args: type[msgspec.Struct]
    run: Callable[[Turn, Any], Awaitable[ToolResult]]
    title: str | None = None
    scope: Scope = Scope.READ_ONLY
    annotations: Annotations | None = None
    output: type[msgspec.Struct] | None = None
    input_schema: Mapping[str, Any] | None = None
    output_schema: Mapping[str, Any] | None = None

    def listed(self, shape: ArgumentShape) -> Tool:
        """The tool as the protocol lists it; `shape` writes the schema of its arguments."""
        output_schema = self.output_schema
        if output_schema is None and self.output is not None:
            output_schema = schema_of(self.output)
        return Tool(
            name=self.name,
            title=self.title,
            description=self.description,
            input_schema=self.input_schema or shape(self.args),
            output_schema=output_schema,
            annotations=self.annotations,
        )
