"""Activity of all gates on a state: their pages as one, with the gate of each line.

A gate that does not answer is named, and its lines are missing. They come with the next page, if it
answers then. Gates that have started since the first page are not in the next ones.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import Coroutine, Mapping
from pathlib import Path
from typing import Any, TypeVar

import msgspec
from msgspec import structs

from tidegate.audit.activity_lines import Line, Session, SessionPage
from tidegate.errors import TidegateError
from tidegate.identity.operators import SignedIn
from tidegate.products.console.activity import (
    MOST_AGENTS,
    MOST_CALLS,
    Activity,
    LastCalls,
    RecordProof,
    page_limit,
    shown_session,
)
from tidegate.products.console.activity_export import EXPORTED, NotExported, export_lines
from tidegate.products.console.activity_pages import (
    Cursor,
    LeftOut,
    LinePage,
    MergedLines,
    Piece,
    add_counts,
    add_facets,
    merge_pieces,
    read_cursor,
    write_cursor,
)
from tidegate.products.console.downloads import MadeFile
from tidegate.products.console.gate_records import (
    EXPORT_PAGE,
    LONG_WAIT_S,
    Collected,
    GateRecords,
)
from tidegate.typed_values import decode_json

MOST_SESSIONS = 50
_Found = TypeVar("_Found")


class AllActivity:
    """What an operator may see of all `records`; `home` is that of this gate."""

    def __init__(self, home: Activity, records: GateRecords) -> None:
        self._home = home
        self._records = records

    async def find(self, query: Mapping[str, str], signed_in: SignedIn) -> dict[str, Any]:
        """A page of lines. Raises: TidegateError ARGUMENT_INVALID, STATE_FAILED."""
        limit = page_limit(query)
        cursor = read_cursor(query.get("before", ""), self._records.own)

        def read(asked: dict[str, str], before: int | None) -> LinePage:
            return self._home.page(asked, signed_in, before=before)

        found = await self._records.collect("lines", query, signed_in, LinePage, read)
        merged, rest = merge_pieces(
            {gate: _piece(page) for gate, page in found.pages.items()}, limit
        )
        firsts = list(found.pages.values()) if cursor is None else []
        return {
            "lines": [{**structs.asdict(line), "gate": gate} for gate, line in merged],
            "next": self._go_on(rest, found, cursor),
            "counts": add_counts(firsts),
            "facets": add_facets(firsts),
            "newest": {gate: page.newest for gate, page in found.pages.items()},
            "read": min([page.read for page in found.pages.values()], default=1.0),
            **await self._records.name(found, signed_in),
        }

    async def sessions(self, query: Mapping[str, str], signed_in: SignedIn) -> dict[str, Any]:
        """A page of the sessions of agents with a call that matches. Raises: as `find`."""
        cursor = read_cursor(query.get("before", ""), self._records.own)

        def read(asked: dict[str, str], before: int | None) -> SessionPage:
            return self._home.session_page(asked, signed_in, before=before)

        found = await self._records.collect("sessions", query, signed_in, SessionPage, read)
        pieces = {gate: _sessions_piece(page) for gate, page in found.pages.items()}
        merged, rest = merge_pieces(pieces, MOST_SESSIONS)
        merged.sort(key=lambda each: -each[1].ended_at)
        own = query.get("own", "") != ""
        return {
            "sessions": [
                _at(shown_session(structs.asdict(session), own=own), gate)
                for gate, session in merged
            ],
            "next": self._go_on(rest, found, cursor),
            **await self._records.name(found, signed_in),
        }

    async def story(self, query: Mapping[str, str], signed_in: SignedIn) -> dict[str, Any]:
        """A session, with a page of its calls. Raises: as `Activity.story`, and TidegateError
        STATE_FAILED if its gate does not answer."""

        def read(name: str) -> dict[str, Any]:
            return self._home.story({**query, "session": name}, signed_in)

        gate, found = await self._records.find_one("story", "session", query, signed_in, read)
        lines = [{**line, "gate": gate} for line in found["lines"]]
        return {**found, "session": _at(found["session"], gate), "lines": lines}

    @property
    def own(self) -> str:
        """The id of this gate."""
        return self._records.own

    @property
    def is_alone(self) -> bool:
        """Whether there is no other gate, as the state is not shared."""
        return not self._records.own

    async def recent(self, signed_in: SignedIn) -> dict[str, Any]:
        """For an empty inbox: the agents that called last, and their last calls. Raises:
        TidegateError STATE_FAILED."""

        def read(asked: dict[str, str], before: int | None) -> LastCalls:
            return self._home.last_calls(signed_in)

        found = await self._records.collect("recent", {}, signed_in, LastCalls, read)
        return {**shown_calls(found.pages), **await self._records.name(found, signed_in)}

    async def line(self, name: str, signed_in: SignedIn) -> dict[str, Any]:
        """One line, by the id of its call or its number, and the id of its gate if that is known.
        Raises: as `Activity.line`, and TidegateError STATE_FAILED if its gate does not answer."""

        def read(name: str) -> dict[str, Any]:
            return self._home.line(name, signed_in)[0]

        query = {"line": name}
        gate, found = await self._records.find_one("line", "line", query, signed_in, read)
        return {**found, "line": {**found["line"], "gate": gate}}

    async def proof(self, signed_in: SignedIn, *, again: bool) -> dict[str, Any]:
        """What each gate proves of its whole record: this one's, and those of `others`. It is read
        `again` here alone. Raises: TidegateError STATE_FAILED."""

        def read(asked: dict[str, str], before: int | None) -> RecordProof:
            try:
                return self._home.proof(signed_in, again=again)
            except TidegateError as error:
                if self.is_alone:
                    raise
                return RecordProof("unknown", error.message, time.time())

        found = await self._records.collect("proof", {}, signed_in, RecordProof, read)
        named = await self._records.name(found, signed_in)
        shown = {
            gate: {**structs.asdict(proof), "gate": gate, "name": named["gates"].get(gate, "")}
            for gate, proof in found.pages.items()
        }
        own = shown.pop(self.own)
        others = sorted(shown.values(), key=lambda each: each["name"])
        return {**own, "others": others, "missing": named["missing"]}

    async def export(
        self, query: Mapping[str, str], signed_in: SignedIn, directory: Path
    ) -> MadeFile:
        """The lines that match, newest first, as a file of JSON lines or CSV.

        Raises: TidegateError ARGUMENT_INVALID, LIMIT_BYTES, STATE_FAILED.
        """
        loop = asyncio.get_running_loop()
        lines = _AllLines(self._home, self._records, query, signed_in, loop)
        form = query.get("format", "jsonl")
        return await asyncio.to_thread(export_lines, form, directory, lines.read(), lines.find_rest)

    def _go_on(self, rest: Cursor, found: Collected[Any], before: Cursor | None) -> Any:
        """Where the next page begins. Gates that have not answered are asked then, too; not once
        they alone are left."""
        if not self._records.own:
            return rest.get("")
        silent = [gate for gate, why in found.missing.items() if why != "gone"]
        more: Cursor = {gate: (before or {}).get(gate) for gate in silent}
        return write_cursor({**rest, **more}) if rest else None


def shown_calls(pages: Mapping[str, LastCalls]) -> dict[str, Any]:
    """The last calls of these gates and who made them, newest first, as the page has them."""
    agents: dict[tuple[str, str], float] = {}
    for each in [agent for page in pages.values() for agent in page.agents]:
        key = each.name, each.client
        agents[key] = max(each.last_at, agents.get(key, each.last_at))
    latest = sorted(agents.items(), key=lambda each: -each[1])[:MOST_AGENTS]
    calls = [(line, gate) for gate, page in pages.items() for line in page.calls]
    calls.sort(key=lambda each: -each[0].time)
    return {
        "agents": [{"name": who, "client": client, "last_at": at} for (who, client), at in latest],
        "calls": [{**structs.asdict(line), "gate": gate} for line, gate in calls[:MOST_CALLS]],
    }


class _AllLines:
    """The lines of all gates for one export, read page by page on a thread. `loop` asks the other
    gates."""

    def __init__(
        self,
        home: Activity,
        records: GateRecords,
        query: Mapping[str, str],
        signed_in: SignedIn,
        loop: asyncio.AbstractEventLoop,
    ) -> None:
        name, _, self._gate = query.get("session", "").partition("@")
        self._home = home
        self._records = records
        self._query = {**query, "session": name, "limit": str(EXPORT_PAGE)}
        self._signed_in = signed_in
        self._loop = loop
        self._firsts: list[LinePage] = []
        self._lacks: list[str] = []

    def read(self) -> MergedLines:
        """All of them, newest first."""
        serving, gone = self._wait_for(self._records.list_others())
        cursor: Cursor = dict.fromkeys([self._records.own, *serving])
        if self._gate or self._query["session"].isdigit():
            only = self._gate or self._records.own
            cursor = {gate: None for gate in cursor if gate == only}
            gone = [gate for gate in gone if gate == only]
        self._lacks += [
            f"without the lines of the gate {each}, which does not run" for each in gone
        ]
        count, is_first = 0, True
        while cursor and count <= EXPORTED:
            pages = self._read_pages(cursor, "the lines" if is_first else "older lines")
            self._firsts += pages.values() if is_first else ()
            pieces = {gate: _piece(page) for gate, page in pages.items()}
            merged, cursor = merge_pieces(pieces, EXPORT_PAGE)
            is_first, count = False, count + len(merged)
            yield from merged

    def find_rest(self) -> NotExported:
        """What is not among them."""
        own = add_counts(self._firsts)["own"]
        return NotExported(tuple(self._lacks), LeftOut(**own))

    def _read_pages(self, cursor: Cursor, what: str) -> dict[str, LinePage]:
        records, query, signed_in = self._records, self._query, self._signed_in
        others = {gate: n for gate, n in cursor.items() if gate != records.own}
        pages: dict[str, LinePage] = {}
        if records.own in cursor:
            before = cursor[records.own]
            pages[records.own] = self._home.page(
                query, signed_in, before=before, most=EXPORT_PAGE, patience_s=None
            )
        answers = self._wait_for(records.ask("export", query, signed_in, others, LONG_WAIT_S))
        for gate in others:
            try:
                pages[gate] = decode_json(answers[gate].read(), LinePage)
            except (KeyError, TidegateError, msgspec.MsgspecError):
                self._lacks.append(f"without {what} of the gate {gate}, which did not answer")
        return pages

    def _wait_for(self, work: Coroutine[Any, Any, _Found]) -> _Found:
        return asyncio.run_coroutine_threadsafe(work, self._loop).result()


def _at(session: dict[str, Any], gate: str) -> dict[str, Any]:
    """A session as the page has it, by a name that says at which gate it is."""
    name = f"{session['session']}@{gate}" if gate else session["session"]
    return {**session, "session": name, "gate": gate}


def _piece(page: LinePage) -> Piece[Line]:
    return Piece([(line.n, line.time, line) for line in page.found.lines], page.found.next)


def _sessions_piece(page: SessionPage) -> Piece[Session]:
    known = {session.id: session for session in page.sessions}
    items = [(n, at, known[id]) for id, (n, at) in page.newest.items() if id in known]
    return Piece(items, page.next)
