"""Reads the configuration object of StackQL's MCP server as settings of ours.

It is the whole file, or the value of `surface.cloud`. The surface's own settings follow or refuse
each of its keys; here is only what it means for the rest of the server.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, cast

from tidegate.config.errors import invalid
from tidegate.config.loading import Note, SettingsFormat

_KEYS = frozenset({
    "server", "backend", "enabled_tools", "enabled_prompts", "enabled_resources",
    "disable_instructions", "query_library",
})  # fmt: skip


def is_stackql(settings: object) -> bool:
    """Whether parsed settings hold keys of that configuration: ours have no such keys."""
    return isinstance(settings, dict) and bool(_KEYS & cast("dict[Any, Any]", settings).keys())


def translate(
    settings: dict[str, Any], environment: Mapping[str, str], note: Note
) -> dict[str, Any]:
    """The same as settings of ours, not checked yet.

    Its `mode` alone says what may change, as its document has it: with another one than `read_only`
    a caller on stdio may write, and sources that are named on the command line admit changes.
    Raises: TidegateError CONFIG_INVALID if settings of ours are among its keys.
    """
    own = sorted(settings.keys() - _KEYS)
    if own:
        from difflib import get_close_matches

        near = get_close_matches(own[0], _KEYS, 1, 0.8)
        if near:
            raise invalid(
                f"`{own[0]}` is no key of StackQL's configuration.",
                hint=f"Did you mean `{near[0]}`?",
            )
        theirs = sorted(settings.keys() & _KEYS)[0]
        raise invalid(
            f"`{theirs}` is a key of StackQL's configuration and `{own[0]}` is not: they"
            " cannot be used together.",
            hint=f"Put `{theirs}` under `surface.cloud`.",
        )
    server = settings.get("server")
    keys = cast("dict[str, Any]", server) if isinstance(server, dict) else {}
    mode = keys.get("mode") or ("read_only" if keys.get("read_only") else "safe")
    return {
        "surfaces": ["cloud"],
        "surface": {"cloud": settings},
        "allow_writes": mode != "read_only",
    }


FORMAT = SettingsFormat(is_stackql, translate)
