"""What a server says of its own condition: to callers without a token, and to `tidegate status`."""

from __future__ import annotations

from typing import Any

import msgspec

from tidegate.app import App
from tidegate.errors import TidegateError
from tidegate.identity.builtin_actors import cli

STATUS_SOURCES = 100
"""How many sources `tidegate status` shows."""
_URGENCY = {"error": 0, "connected": 1}


def without_names(app: App) -> dict[str, str]:
    """What does not work, for callers without a token: sources are counted and errors left out."""
    problems = app.conditions.degraded()
    sources = sum(part.startswith("source ") for part in problems)
    files = sum(part.startswith("token file ") for part in problems)
    others = [part for part in problems if not part.startswith(("source ", "token file "))]
    shown = dict.fromkeys(others, "see the log of the server")
    shown |= {"sources": f"{sources} cannot be opened"} if sources else {}
    return shown | ({"token files": f"{files} cannot be used"} if files else {})


def status_of(app: App) -> dict[str, Any]:
    """What `tidegate status` shows of this server: its sources, those that fail first and then
    those that are open, and what fails. While the state cannot be read there are no sources."""
    try:
        entries = app.connections.list_for(cli())
    except TidegateError:  # `readiness` says why
        entries = ()
    first = sorted(entries, key=lambda entry: _URGENCY.get(entry.state.status, 2))
    sources = [
        {
            "name": entry.source.name,
            "engine": entry.source.engine,
            "status": entry.state.status,
            "error": entry.state.error,
        }
        for entry in first[:STATUS_SOURCES]
    ]
    count = len(entries)
    # the webhook and the sources that are listed have lines of their own
    listed = {"webhook", *(f"source {each['name']}" for each in sources if each["error"])}
    degraded = {
        part: reason for part, reason in app.conditions.degraded().items() if part not in listed
    }
    return {
        "sources": sources,
        "source_count": count,
        "failing": {**degraded, **app.readiness.reasons()},
        "console": app.console_address,
        "webhook": msgspec.to_builtins(app.webhook.health),
    }
