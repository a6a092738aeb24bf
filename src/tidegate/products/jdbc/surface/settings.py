"""The settings of the surface `jdbc`: the section `[surface.jdbc]`."""

from __future__ import annotations

from typing import Annotated, Literal

import msgspec

from tidegate.surfaces.refused_calls import ErrorForm

Seconds = Annotated[float, msgspec.Meta(gt=0)]
Count = Annotated[int, msgspec.Meta(ge=1)]


class JdbcSettings(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """What is particular to the surface `jdbc`. The hosts, directories, environment variables and
    drivers of `connect` are in `temporary_sources`.

    `confirm` says whose confirmation runs a query: that of the `agent`, or that of a `person` for
    each execution, whom the client asks with a form; without forms, and for a source with
    `approval = "inbox"`, the question waits in the inbox. A confirmation of the agent counts for
    `confirmed_s` seconds. A connection ends when it lies unused for `idle_s` seconds; a caller has
    at most `connections` of them. `errors` says how a tool's call of a wrong form is answered:
    `document` with a JSON-RPC error, `protocol` with a result that has `isError`, `auto` with a
    result since 2025-11-25 and for clients whose model would read nothing otherwise: those named
    `mcp` (the Python SDK, by itself or in a framework), `mcp-use`, `google-adk` and
    `langchain-mcp-adapters`. A program on the Python SDK that reads the document's codes needs
    `document`, or a name of its own in `clientInfo`. The bare methods follow the document.
    """

    confirm: Literal["agent", "person"] = "agent"
    confirmed_s: Seconds = 600.0
    idle_s: Seconds = 1800.0
    connections: Count = 16
    errors: ErrorForm = "auto"
