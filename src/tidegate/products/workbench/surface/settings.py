"""The settings of the surface `workbench`: the section `[surface.workbench]`."""

from __future__ import annotations

from typing import Literal

import msgspec

from tidegate.surfaces.refused_calls import ErrorForm


class WorkbenchSettings(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """What is particular to the surface `workbench`.

    `extended` offers nine newer tools in addition to the 19 usual ones. `export_directory` is where
    `export_data` writes files: none means the user's Downloads. `http_error_status` chooses the
    HTTP status of a JSON-RPC error: `seed` the document's table, `compat` always 200, `auto` the
    table except for clients that would lose their session (Python SDK 1) or show the reply as a
    failure of the transport (TypeScript SDK). `errors` says how a refused call is answered:
    `document` with a JSON-RPC error, `protocol` with a result that has `isError` and status 200,
    `auto` as the document says, but with a result since 2026-07-28, for clients that show the
    page of its results, and for those whose model would read nothing otherwise: those named
    `mcp` (the Python SDK, by itself or in a framework), `mcp-use`, `google-adk` and
    `langchain-mcp-adapters`. A program on the Python SDK that reads
    the document's codes needs `document`, or a name of its own in `clientInfo`.
    """

    extended: bool = False
    http_error_status: Literal["auto", "seed", "compat"] = "auto"
    errors: ErrorForm = "auto"
    export_directory: str | None = None
