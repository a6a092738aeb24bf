"""What the index of the audit log finds: lines, one for each call, and sessions."""

from __future__ import annotations

from typing import Literal

import msgspec

Ending = Literal["asked", "denied", "failed", "cancelled"]
"""How a call ends that was not answered. One that was `asked` ended with a question to a person."""
Outcome = Literal["ok", "unknown", "pending", "event"] | Ending
_OWN_TOOLS = frozenset(
    {"browse", "list", "history", "window", "count", "triggers", "saved_query", "describe_editing"}
)
_OWN_EFFECTS = frozenset({"", "read", "session"})
_TO_BE_SEEN = frozenset({"denied", "failed", "asked"})
_DECIDED = frozenset({"policy", "approval", "auth", "host"})


class Line(msgspec.Struct, frozen=True):
    """One call, or one event of the server. `n` is its number in the index, which another build of
    it may give to another line. `segment`, `offset` and `seq` say where its last record is."""

    n: int
    time: float
    call_id: str
    segment: str
    offset: int
    seq: int
    session: int
    actor: str
    actor_name: str
    client: str
    address: str
    surface: str
    tool: str
    source: str
    request: str
    statement: str
    effect: str
    verdict: str
    rule: str
    outcome: Outcome
    code: str
    message: str
    rows: int | None
    ms: float | None
    approval: str
    event: str


class Session(msgspec.Struct, frozen=True):
    """The calls of one caller with one client, without a pause of over half an hour. `own` of them
    are reads of the console's page for itself. `call_id` is one of its calls, by which any build of
    the index finds it."""

    id: int
    actor: str
    actor_name: str
    client: str
    started_at: float
    ended_at: float
    calls: int
    denied: int
    writes: int
    own: int
    call_id: str = ""


class SessionPage(msgspec.Struct, frozen=True):
    """Sessions, newest first; `next` is where the next page begins, None at the end. A session of a
    page before may come again. `newest` has the number and time of the newest line of each that
    matches, by the session's id, in the order of these numbers."""

    sessions: tuple[Session, ...]
    next: int | None
    newest: dict[int, tuple[int, float]] = {}


class LineFilter(msgspec.Struct, frozen=True):
    """Selects lines. `words` are beginnings of words, all of which a line holds. `sources` are
    those that the reader may see, None all; the empty one means lines without a source, which
    are for those who may see all. With `own`, false or true, only lines that are no reads of the
    console's page for itself, or only these."""

    words: tuple[str, ...] = ()
    sources: tuple[str, ...] | None = None
    source: str = ""
    actor: str = ""
    outcome: str = ""
    effect: str = ""
    surface: str = ""
    session: int = 0
    approval: str = ""
    since: float | None = None
    until: float | None = None
    own: bool | None = None


class Found(msgspec.Struct, frozen=True):
    """Lines, newest first; `next` is where the next page begins, None at the end. `total` counts
    those that match, up to `MOST_COUNTED`, with `more` after it; `facets` count the values of
    these by field."""

    lines: tuple[Line, ...]
    next: int | None
    total: int = 0
    more: bool = False
    facets: dict[str, list[tuple[str, int]]] = {}


def is_own_read(surface: str, tool: str, effect: str, outcome: str) -> bool:
    """Whether a call is one that the console's page makes for itself: names of sources and tables,
    tabs, the size of a table. Rows that a person saw and statements do not count, nor does a call
    that was refused or failed."""
    return (
        surface == "console"
        and tool in _OWN_TOOLS
        and effect in _OWN_EFFECTS
        and outcome not in _TO_BE_SEEN
    )


def ending_of(phase: str, code: str, verdict: str, approval: str) -> Ending:
    """How a call ended that has an error's code on record. `approval` is the id of the question
    that a person was asked, if one was."""
    if code == "approval.needed" and approval:
        return "asked"
    if phase == "refusal" and code.partition(".")[0] in _DECIDED:
        return "denied"
    if code == "call.cancelled":
        return "cancelled"
    return "denied" if phase == "refusal" and verdict == "deny" else "failed"
