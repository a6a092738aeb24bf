"""What a request does that is no statement: there is no text to read, so its kind decides."""

from __future__ import annotations

from tidegate.calls import (
    Browse,
    Connect,
    Disconnect,
    FocusTab,
    ListSources,
    ListTabs,
    More,
    OpenTable,
    OpenWindow,
    Request,
    SearchHistory,
    Switch,
)
from tidegate.statements import Effect, Judgement


def _metadata(name: str, reason: str) -> Judgement:
    return Judgement(Effect.READ, f"request.{name}", reason, metadata=True)


METADATA = _metadata("metadata", "reads names, not data")
_CONNECT = _metadata("connect", "opens a connection")
_DISCONNECT = _metadata("disconnect", "closes a connection")
_SWITCH = _metadata("switch", "says where the caller's later statements run")
_HISTORY = _metadata("history", "reads statements that were run")
_DESK = _metadata("desk", "opens, shows or lists windows of the console")
_MORE = _metadata("more", "shows rows that were read under a permit")

JUDGEMENTS: dict[type[Request], Judgement] = {
    Browse: METADATA,
    ListSources: METADATA,
    More: _MORE,
    Connect: _CONNECT,
    Disconnect: _DISCONNECT,
    Switch: _SWITCH,
    SearchHistory: _HISTORY,
    OpenWindow: _DESK,
    OpenTable: _DESK,
    FocusTab: _DESK,
    ListTabs: _DESK,
}
"""By the kind of request. `Query` and `Explain` are not here: their text is judged."""
