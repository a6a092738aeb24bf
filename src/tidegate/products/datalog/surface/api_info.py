"""`api_info`: what the server can do. Starts no JVM: versions come from installed packages."""

from __future__ import annotations

from importlib.metadata import PackageNotFoundError, version

import msgspec

from tidegate.model.actors import Scope
from tidegate.products.datalog.surface.settings import DatalogSettings
from tidegate.surfaces.tool_context import ToolContext

FEATURES = (
    "api-info", "conn-lifecycle", "datalog-core", "kv-core", "search", "tagged-i64", "vector",
)  # fmt: skip
"""The parts of Datalevin's JSON API that the tools reach."""


def api_info(context: ToolContext, settings: DatalogSettings, most_bytes: int) -> bytes:
    """The result as JSON. `most_bytes` of a result are read before it is cut."""
    request = context.context
    return msgspec.json.encode(
        {
            "mcp": {
                "protocolVersion": request.revision,
                "transport": "http" if request.address else "stdio",
                "allowWrites": context.actor.scope.covers(Scope.READ_WRITE),
                "limits": {
                    "maxResultItems": settings.max_items,
                    "maxResponseBytes": settings.max_reply_bytes,
                },
            },
            "datalevin": {
                "json-api-version": 1,
                "datalevin-version": _installed("datalevin"),
                "features": FEATURES,
                "limits": {
                    "max-result-items": settings.max_items,
                    "max-response-bytes": most_bytes,
                },
            },
        }
    )


def _installed(package: str) -> str | None:
    try:
        return version(package)
    except PackageNotFoundError:
        return None
