"""Activity: every call on record, searched, counted, and proved.

Each operator sees the calls on sources where it has a role; lines without a source are for those
with a role on all of them. Where something of a source is hidden from a viewer, it sees none of the
statements of others there, and searches none.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

import msgspec
from msgspec import structs

from tidegate.audit.activity import MOST_COUNTED, ActivityIndex
from tidegate.audit.activity_lines import Line, LineFilter, SessionPage
from tidegate.audit.proof import LogProof, Prover
from tidegate.errors import Code, TidegateError
from tidegate.identity.operators import SignedIn
from tidegate.model.actors import holds
from tidegate.model.sources import Source
from tidegate.policy.data_rules import hides_something
from tidegate.products.console.activity_pages import LeftOut, LinePage
from tidegate.products.console.sign_in import actor_of

MOST_LINES = 500
"""The most lines of one page."""
PATIENCE_S = 2.0
"""How long a page waits for a long log that is read into the index for the first time."""
STORY_LINES = 100
RECENT_LINES = 500
"""The newest lines, among which agents and their last calls are searched."""
LOOKED_BACK = 10_000
"""Lines among which the newest one that an operator may see is searched."""
MOST_AGENTS, MOST_CALLS = 8, 5
"""Of those the ones that an empty inbox shows."""
_OF_PEOPLE = frozenset({"cli", "console"})
_HIDDEN = "shown to approvers only, as the source hides columns"
_SHOWN_OF_HIDDEN = frozenset(
    {*Line.__struct_fields__, "phase", "elapsed_ms", "trace_id"} - {"statement", "message"}
)
"""The fields on record of a call whose statement is hidden that are shown: no text of it, and no
digest, by which the values in it can be guessed."""


class RecordProof(LogProof, frozen=True):
    """What is proved of a whole record, and how many lines came after its last checkpoint."""

    after_checkpoint: int | None = None


class Agent(msgspec.Struct, frozen=True):
    """A caller in a client, and when its last call was."""

    name: str
    client: str
    last_at: float


class LastCalls(msgspec.Struct, frozen=True):
    """What an empty inbox shows of a record: the agents that called last, and their last calls."""

    agents: tuple[Agent, ...]
    calls: tuple[Line, ...]


class Activity:
    """What an operator may see of the log."""

    def __init__(
        self, index: ActivityIndex, prover: Prover, sources: Callable[[], Sequence[Source]]
    ) -> None:
        self._index = index
        self._prover = prover
        self._sources = sources

    def newest(self) -> int:
        """The number of the newest line. Raises: TidegateError STATE_FAILED."""
        return self._index.update()

    def newest_for(self, signed_in: SignedIn, after: int) -> int:
        """The number of the newest line after another one that the operator may see, without the
        page's own reads; 0 if there is none. Raises: TidegateError STATE_FAILED."""
        sources = self._visible_sources(signed_in, searches=False)
        return self._index.newest_of(LineFilter(sources=sources, own=False), after)

    def read_newest(self) -> int | None:
        """The number of the newest line, after a moment of reading; None while the index lacks
        many. Raises: TidegateError STATE_FAILED."""
        newest = self._index.update(batches=1)
        return newest if self._index.share() == 1.0 else None

    def newest_seen(self, signed_in: SignedIn, newest: int) -> int:
        """The number of the newest line up to `newest` that the operator may see, without the
        page's own reads; 0 if there is none of late. Raises: TidegateError STATE_FAILED."""
        return self.newest_for(signed_in, max(0, newest - LOOKED_BACK))

    def page(
        self,
        query: Mapping[str, str],
        signed_in: SignedIn,
        *,
        before: int | None = None,
        most: int = MOST_LINES,
        patience_s: float | None = PATIENCE_S,
    ) -> LinePage:
        """A page of lines, below a number, with what is counted of all where that is the first. A
        record that is not in the index yet is read for so long, None for all of it.

        Raises: TidegateError ARGUMENT_INVALID, STATE_FAILED.
        """
        limit = page_limit(query, most)
        newest = self._index.update(seconds=patience_s)
        wanted = self._filter(query, signed_in)
        found = self._index.find(wanted, before=before, limit=limit, counts=before is None)
        found = structs.replace(
            found, lines=tuple([self._seen(line, signed_in) for line in found.lines])
        )
        if before is not None:
            return LinePage(found, LeftOut(), self._index.share())
        seen = max(self.newest_seen(signed_in, newest), found.lines[0].n if found.lines else 0)
        return LinePage(found, self._left_out(wanted), self._index.share(), seen)

    def session_page(
        self,
        query: Mapping[str, str],
        signed_in: SignedIn,
        *,
        before: int | None = None,
        patience_s: float = PATIENCE_S,
    ) -> SessionPage:
        """A page of the sessions of agents with a call that matches. Raises: as `page`."""
        self._index.update(seconds=patience_s)
        return self._index.sessions(self._filter(query, signed_in), before=before)

    def story(self, query: Mapping[str, str], signed_in: SignedIn) -> dict[str, Any]:
        """A session, with a page of its calls from the oldest on, and what proves each.

        Raises: TidegateError ARGUMENT_INVALID if there is none that the operator may see,
        STATE_FAILED.
        """
        self._index.update(seconds=PATIENCE_S)
        wanted = self._filter(query, signed_in)
        after = int(_number(query, "after", 0) or 0)
        found = self._index.story(wanted, after=after, limit=STORY_LINES)
        session = self._index.session(
            wanted.session, self._visible_sources(signed_in, searches=False)
        )
        whole = structs.replace(wanted, own=None)
        visible = found.lines or self._index.find(whole, limit=1, counts=False).lines
        if session is None or not visible:
            raise TidegateError(Code.ARGUMENT_INVALID, "There is no such session")
        places = [(each.segment, each.offset, each.seq) for each in found.lines]
        proofs = self._prover.check_lines(places)
        return {
            "session": shown_session(structs.asdict(session), own=wanted.own is None),
            "lines": [
                {
                    **structs.asdict(self._seen(line, signed_in)),
                    "proof": {"state": proof.state, "text": proof.text},
                }
                for line, proof in zip(found.lines, proofs, strict=True)
            ],
            "next": found.next,
        }

    def line(self, n: str, signed_in: SignedIn) -> tuple[dict[str, Any], Line]:
        """One line, by the id of its call or by its number, with all that is on record in it, and
        its proof.

        Raises: TidegateError ARGUMENT_INVALID if there is none that the operator may see.
        """
        is_number = n.isascii() and n.isdigit() and len(n) < 16
        line = self._index.line(int(n)) if is_number else self._index.line_of(n)
        if line is None or not self._is_visible(line, signed_in):
            raise TidegateError(Code.ARGUMENT_INVALID, f"There is no line {n[:20]}")
        proof = self._prover.check_line(line.segment, line.offset, line.seq)
        fields = dict(proof.fields)
        hidden = self._hides_line(line, signed_in)
        if hidden:
            fields = {name: fields[name] for name in fields if name in _SHOWN_OF_HIDDEN}
        shown = {
            "state": proof.state,
            "text": proof.text,
            "segment": line.segment,
            "seq": line.seq,
            "hash": "" if hidden else proof.hash,
        }
        seen = structs.asdict(self._seen(line, signed_in))
        return {"line": seen, "fields": fields, "proof": shown}, line

    def proof(
        self, signed_in: SignedIn, *, again: bool = False, patience_s: float = PATIENCE_S
    ) -> RecordProof:
        """What is proved of the whole log, which is read `again` for an admin of all sources alone.
        Where a fault is, only those read who may see all lines. Raises: TidegateError STATE_FAILED.
        """
        roles = signed_in.operator.roles
        again = again and holds(roles, "admin", None)
        proof = self._prover.check_log(again=again, patience_s=patience_s)
        if not holds(roles, "viewer", None):
            text = "Faults were found." if proof.state == "mismatch" else "No fault was found."
            proof = structs.replace(proof, text=text, lines=0, signed_until=None)
        signed = proof.signed_until
        after = None if signed is None else self._index.count_since(signed)
        return RecordProof(**structs.asdict(proof), after_checkpoint=after)

    def last_calls(self, signed_in: SignedIn) -> LastCalls:
        """The agents that called last, and their last calls. What people do at the command line and
        in the console is not among them."""
        wanted = self._filter({}, signed_in)
        try:
            self._index.update(batches=1)
            lines = self._index.find(wanted, limit=RECENT_LINES, counts=False).lines
        except TidegateError:  # questions are answered without the index, too
            lines = ()
        calls = [line for line in lines if line.call_id and line.surface not in _OF_PEOPLE]
        agents: dict[tuple[str, str], float] = {}
        for line in calls:
            agents.setdefault((line.actor_name, line.client), line.time)
        return LastCalls(
            tuple([Agent(*key, at) for key, at in list(agents.items())[:MOST_AGENTS]]),
            tuple([self._seen(line, signed_in) for line in calls[:MOST_CALLS]]),
        )

    def _left_out(self, wanted: LineFilter) -> LeftOut:
        if wanted.own is None:
            return LeftOut()
        count = self._index.count(structs.replace(wanted, own=True))
        return LeftOut(min(count, MOST_COUNTED), count > MOST_COUNTED)

    def _filter(self, query: Mapping[str, str], signed_in: SignedIn) -> LineFilter:
        words = tuple(query.get("q", "").replace("\0", " ").split())[:16]  # NUL ends SQL text
        return LineFilter(
            words=words,
            sources=self._visible_sources(signed_in, searches=bool(words)),
            source=query.get("source", ""),
            actor=query.get("actor", ""),
            outcome=query.get("outcome", ""),
            effect=query.get("effect", ""),
            surface=query.get("surface", ""),
            approval=query.get("approval", ""),
            session=self._session(query.get("session", "")),
            since=_number(query, "since", None),
            until=_number(query, "until", None),
            own=_own(query.get("own", "")),
        )

    def _session(self, name: str) -> int:
        """The number of a session by one of its calls, or as it is; 0 means all, -1 means one
        that is not there."""
        if not name or name.isdigit():
            return int(name[:15] or 0)
        line = self._index.line_of(name)
        return -1 if line is None else line.session

    def _visible_sources(self, signed_in: SignedIn, *, searches: bool) -> tuple[str, ...] | None:
        roles = signed_in.operator.roles
        hiding = [each.name for each in self._sources() if self._hides(each.name, signed_in)]
        if holds(roles, "viewer", None) and (not searches or holds(roles, "approver", None)):
            return None
        names = {each.name for each in self._sources() if signed_in.may("viewer", each.name)}
        for grant in roles:
            if not searches or grant.role != "viewer":
                names |= (grant.sources or frozenset()) - {""}
        if holds(roles, "viewer", None):
            names.add("")
        return tuple(sorted(names - set(hiding) if searches else names))

    def _is_visible(self, line: Line, signed_in: SignedIn) -> bool:
        roles = signed_in.operator.roles
        return holds(roles, "viewer", line.source or None)

    def _hides(self, source: str, signed_in: SignedIn) -> bool:
        """Whether the statements on a source are not for this operator. What a source that was
        removed hid is not known any more: all of it is hidden."""
        if not source or signed_in.may("approver", source):
            return False
        found = next((each for each in self._sources() if each.name == source), None)
        return found is None or hides_something(actor_of(signed_in), found)

    def _hides_line(self, line: Line, signed_in: SignedIn) -> bool:
        """Whether the statement of a line is not for this operator, who did not send it itself."""
        return line.actor != signed_in.actor_id and self._hides(line.source, signed_in)

    def _seen(self, line: Line, signed_in: SignedIn) -> Line:
        """A line as this operator sees it."""
        if self._hides_line(line, signed_in):
            return structs.replace(line, statement=_HIDDEN, message=_HIDDEN)
        return line


def page_limit(query: Mapping[str, str], most: int = MOST_LINES) -> int:
    """How many lines a page has. Raises: TidegateError ARGUMENT_INVALID."""
    return max(1, int(min(_number(query, "limit", 100) or 100, most)))


def shown_session(fields: dict[str, Any], *, own: bool) -> dict[str, Any]:
    """A session as the page has it; its calls are those that are shown."""
    left = 0 if own else fields["own"]
    return {"session": fields.pop("id"), **fields, "calls": fields["calls"] - left, "own": left}


def _own(text: str) -> bool | None:
    """Which lines are wanted by the filter `own`: at first none of the page's own reads."""
    if text not in ("", "shown"):
        raise TidegateError(Code.ARGUMENT_INVALID, "`own` is shown, or left out")
    return None if text else False


def _number(query: Mapping[str, str], name: str, default: float | None) -> float | None:
    text = query.get(name, "")
    if not text:
        return default
    try:
        value = float(text)
    except ValueError:
        value = float("nan")
    if not 0 <= value < 1e15:
        raise TidegateError(Code.ARGUMENT_INVALID, f"`{name}` is no number: {text[:40]!r}")
    return value
