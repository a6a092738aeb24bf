"""One server as it is offered to every client, with what is encoded once and used often."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Any

from tidegate.protocol.apps import shows_apps
from tidegate.protocol.headers import marked_arguments
from tidegate.protocol.jsonrpc import encode
from tidegate.protocol.long_calls import LongCalls
from tidegate.protocol.model import Context, Server, Settings
from tidegate.protocol.revisions import MODERN
from tidegate.protocol.session_state import SessionStates

if TYPE_CHECKING:  # which serves what is here
    from tidegate.protocol.methods import Method

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
        self._tool_names: tuple[Sequence[Any], frozenset[str]] = ((), frozenset())
        self._marked: tuple[Sequence[Any], dict[str, dict[str, str]]] = ((), {})

    def capabilities_for(self, client: Mapping[str, Any]) -> Mapping[str, Any]:
        """What the server has for a client with these capabilities."""
        own, more = self.server.capabilities, self.settings.app_capabilities
        return {**own, **more} if more and shows_apps(client) else own

    def methods_for(
        self, known: Mapping[str, Method], client: Mapping[str, Any]
    ) -> dict[str, Method]:
        """Those of the methods that the server has for a client with these capabilities."""
        own = self.capabilities_for(client)
        return {name: method for name, method in known.items() if _has(own, method.capability)}

    def marked_arguments(self, context: Context, tool: str) -> Mapping[str, str] | None:
        """The arguments of a tool that headers must repeat."""
        tools = self.server.tools(context)
        if self._marked[0] is not tools:
            marks = {each.name: marked_arguments(each.input_schema) for each in tools}
            self._marked = (tools, marks)
        return self._marked[1].get(tool)

    def has_tool(self, context: Context, name: str) -> bool:
        """Whether a client of this kind can call a tool of that name."""
        tools = self.server.tools(context)
        if self._tool_names[0] is not tools:
            self._tool_names = (tools, frozenset(each.name for each in tools))
        return name in self._tool_names[1]

    def end_listening(self) -> None:
        """End the listen streams, which would never end by themselves."""
        for end in list(self.listening):
            end()


def _has(capabilities: Mapping[str, Any], wanted: str | None) -> bool:
    """Whether a capability is among these; a dot goes deeper (`resources.subscribe`)."""
    if wanted is None:
        return True
    name, _, part = wanted.partition(".")
    found = capabilities.get(name)
    return found is not None and (not part or bool(found.get(part)))
