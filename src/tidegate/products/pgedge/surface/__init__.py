"""The surface `postgres`: the tools and resources of a natural-language agent for PostgreSQL.

Its document is a contract for names, texts, codes and shapes. There are two endpoints: `/mcp/v1`
answers as the document says, `/mcp/postgres` as every revision of the standard says. On stdio the
negotiated revision decides (`error_codes.py`). The gateway decides what a call may do.
"""

from __future__ import annotations

from typing import Any

from tidegate import __version__
from tidegate.config.addresses import http_address, is_this_machine
from tidegate.config.model import Config
from tidegate.products.pgedge.surface.databases import Databases
from tidegate.products.pgedge.surface.error_codes import REVISION, ErrorCodes, Variant
from tidegate.products.pgedge.surface.errors import Detail, error_renderer, shown_message
from tidegate.products.pgedge.surface.prompts import prompts
from tidegate.products.pgedge.surface.query import query_tool
from tidegate.products.pgedge.surface.resources import Resources, read_resource_tool
from tidegate.products.pgedge.surface.schema_info import schema_tool
from tidegate.products.pgedge.surface.settings import PostgresSettings
from tidegate.products.pgedge.surface.similarity import EMBEDDING_TOOL, similarity_tool
from tidegate.protocol.model import Info, RevisionPolicy, Settings
from tidegate.protocol.revisions import ALL
from tidegate.surfaces.api import OnRejectedCall
from tidegate.surfaces.surface import Primitives, Refusals, ServerProfile, Surface
from tidegate.surfaces.tool_context import Gate

CAPABILITIES: dict[str, Any] = {"tools": {}, "resources": {}, "prompts": {}, "completions": {}}
"""At 2024-11-05, which does not know completions, these are the document's three."""

DOCUMENT_INFO = Info("pgedge-postgres-mcp", "1.0.0-alpha2")
"""The name that the document shows, for clients that check it."""

DEFAULTS = Config()


def surface(
    gate: Gate,
    *,
    config: Config = DEFAULTS,
    settings: PostgresSettings | None = None,
    on_rejected_call: OnRejectedCall | None = None,
    variant: Variant = "standard",
) -> Surface:
    """The surface over `gate`, within the limits that `config` sets."""
    settings = settings or PostgresSettings()
    codes = ErrorCodes(variant)
    databases = Databases(settings)
    resources = Resources(databases, codes)
    host = http_address(config.http)[0] if config.http else "localhost"
    detail = Detail(settings.error_detail, loopback=is_this_machine(host))
    own = Info("tidegate-postgres", __version__, "Tidegate for PostgreSQL")
    if variant == "document":
        served = Settings(
            RevisionPolicy((REVISION,), fallback=REVISION),
            strict_lifecycle=False,
            without_session=REVISION,
        )
    else:
        served = Settings(RevisionPolicy(ALL))

    return Surface(
        gate,
        ServerProfile(
            name="postgres",
            info=DOCUMENT_INFO if settings.server_info == "document" else own,
            settings=served,
            capabilities=CAPABILITIES,
        ),
        Primitives(
            tools=(
                query_tool(databases, config.limits),
                schema_tool(databases),
                similarity_tool(databases),
                EMBEDDING_TOOL,
                read_resource_tool(resources),
            ),
            resources=resources.readable(),
            list_resources=resources.for_caller,
            prompts=prompts(databases, settings.prompts),
        ),
        Refusals(
            render_error=error_renderer(codes, detail),
            error_message=lambda error, context: shown_message(error, context, detail),
            unknown_tool=codes.refuse_tool,
            unknown_resource=codes.unknown_resource,
        ),
        on_rejected_call=on_rejected_call,
    )
