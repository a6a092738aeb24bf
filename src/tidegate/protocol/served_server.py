"""One server as it is offered to every client, with what is encoded once and used often."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

from tidegate.protocol.headers import marked_arguments
from tidegate.protocol.jsonrpc import encode
from tidegate.protocol.long_calls import LongCalls
from tidegate.protocol.model import Context, Server, Settings
from tidegate.protocol.revisions import MODERN
from tidegate.protocol.session_state import SessionStates

SERVER_KEY = "io.modelcontextprotocol/serverInfo"


class ServedServer:
    """`lists` keeps encoded list pages for as long as the server returns the same list;
    `listening` has the ends of the open listen streams."""

    def __init__(self, server: Server, settings: Settings, states: SessionStates) -> None:
        self.server = server
        self.states = states
        self.settings = settings
        self.server_meta = encode({SERVER_KEY: server.info})
        self.long_calls: LongCalls | None = None
        """The calls under way, where those that last are answered before they have ended."""
        self.lists: dict[tuple[str, str, int], tuple[Sequence[Any], bytes]] = {}
        self.listening: set[Callable[[], None]] = set()
        accepted = settings.revisions.accepted
        self.knows_modern = settings.without_session is None or any(
            revision in MODERN for revision in accepted
        )
        """Whether what names the stateless era is noticed: an older server would not know it."""
        self._marked: tuple[Sequence[Any], dict[str, dict[str, str]]] = ((), {})

    def has(self, capability: str) -> bool:
        """Whether the server has a capability; a dot goes deeper (`resources.subscribe`)."""
        name, _, part = capability.partition(".")
        found = self.server.capabilities.get(name)
        return found is not None and (not part or bool(found.get(part)))

    def marked_arguments(self, context: Context, tool: str) -> Mapping[str, str] | None:
        """The arguments of a tool that headers must repeat."""
        tools = self.server.tools(context)
        if self._marked[0] is not tools:
            marks = {each.name: marked_arguments(each.input_schema) for each in tools}
            self._marked = (tools, marks)
        return self._marked[1].get(tool)

    def end_listening(self) -> None:
        """End the listen streams, which would never end by themselves."""
        for end in list(self.listening):
            end()
