"""The figures of other gates on the state, which each of them counts for itself.

A page that shows figures asks for those of all gates by a message, and each gate that serves the
console sends what it has counted, by step and source. They are added to the own ones as they come.
A gate that has sent none for a while is one whose figures are missing.
"""

from __future__ import annotations

import asyncio
from array import array
from collections.abc import Awaitable, Callable
from contextlib import suppress
from typing import NamedTuple

import msgspec

from tidegate.errors import TidegateError
from tidegate.gateway.call_figures import BINS, OTHERS, CallFigures, Cell, Span
from tidegate.store.messages import MOST_BODY, Mailbox
from tidegate.typed_values import json_decoder

ASK, FIGURES = "figures.ask", "figures.are"
ASK_S = 5.0
"""Between two messages that ask for the figures of a span."""
SHOWN_S = 20.0
"""Figures are shown for so long; they are asked for and sent again in time."""

Steps = list[list[tuple[str, Cell]]]


class SentCell(msgspec.Struct, frozen=True, array_like=True):
    """The calls on one source in one step: by outcome, and in pairs how many were in which bin."""

    step: int
    source: str
    outcomes: tuple[int, int, int, int, int]
    bins: tuple[int, ...]


class SentFigures(msgspec.Struct, frozen=True, array_like=True):
    """The figures of a gate; `complete` as of `Now`."""

    gate: str
    span: Span
    complete: bool
    cells: tuple[SentCell, ...]


class _Known(NamedTuple):
    at: float
    sent: SentFigures


class GateFigures:
    """The figures of all gates but this one, `own`. `complete` counts what the record of this gate
    has, and says whether that is all. Used on the event loop."""

    def __init__(
        self,
        mailbox: Mailbox,
        figures: CallFigures,
        own: str,
        complete: Callable[[], Awaitable[bool]],
    ) -> None:
        self._mailbox = mailbox
        self._figures = figures
        self._own = own
        self._complete = complete
        self._asked_at: dict[Span, float] = {}
        self._known: dict[tuple[str, Span], _Known] = {}
        self._decoder = json_decoder(SentFigures)
        self._telling: set[asyncio.Task[None]] = set()
        mailbox.handle(ASK, self._on_ask)
        mailbox.handle(FIGURES, self._on_figures)

    async def ask(self, span: Span) -> None:
        """Have the other gates send theirs. Never raises: without the state none come."""
        now = asyncio.get_running_loop().time()
        if now - self._asked_at.get(span, float("-inf")) >= ASK_S:
            self._asked_at[span] = now
            with suppress(TidegateError):
                await self._mailbox.send(ASK, span.encode())

    def add_to(self, span: Span, first: int, steps: Steps) -> tuple[frozenset[str], bool]:
        """Add what is known of the others to the steps, the first of which has that number. Returns
        the gates that are in it, and whether each has counted all that its record has."""
        now = asyncio.get_running_loop().time()
        self._known = {key: each for key, each in self._known.items() if now - each.at < SHOWN_S}
        found = [each.sent for (_, of), each in self._known.items() if of == span]
        for sent in found:
            for each in sent.cells:
                if 0 <= each.step - first < len(steps):
                    steps[each.step - first].append((each.source, _cell_of(each)))
        return frozenset(each.gate for each in found), all(each.complete for each in found)

    def _on_figures(self, sender: str, body: bytes) -> None:
        with suppress(msgspec.DecodeError):  # of another release
            sent = self._decoder.decode(body)
            now = asyncio.get_running_loop().time()
            self._known[sent.gate, sent.span] = _Known(now, sent)

    def _on_ask(self, sender: str, body: bytes) -> None:
        for span in ("hour", "day"):
            if body == span.encode():
                telling = asyncio.get_running_loop().create_task(self._tell(sender, span))
                self._telling.add(telling)
                telling.add_done_callback(self._telling.discard)

    async def _tell(self, to: str, span: Span) -> None:
        complete = await self._complete()
        first, steps = self._figures.steps(span)
        cells = [
            _sent(first + place, source, cell)
            for place, step in enumerate(steps)
            for source, cell in step
        ]
        body = encode_figures(SentFigures(self._own, span, complete, tuple(cells)))
        with suppress(TidegateError):  # it is asked for again
            await self._mailbox.send(FIGURES, body, to=to)


def encode_figures(figures: SentFigures) -> bytes:
    """As much of it as one message takes: all, without times, or without sources as well."""
    body = msgspec.json.encode(figures)
    if len(body) > MOST_BODY:
        cells = tuple([msgspec.structs.replace(each, bins=()) for each in figures.cells])
        body = msgspec.json.encode(msgspec.structs.replace(figures, cells=cells))
    if len(body) > MOST_BODY:
        sums: dict[int, Cell] = {}
        for each in figures.cells:
            sums.setdefault(each.step, Cell()).add(_cell_of(each))
        cells = tuple([_sent(step, OTHERS, cell) for step, cell in sums.items()])
        body = msgspec.json.encode(msgspec.structs.replace(figures, cells=cells))
    return body


def _sent(step: int, source: str, cell: Cell) -> SentCell:
    outcomes = (cell.ok, cell.asked, cell.denied, cell.failed, cell.cancelled)
    bins: list[int] = []
    for place, count in enumerate(cell.bins or ()):
        if count:
            bins += (place, count)
    return SentCell(step, source, outcomes, tuple(bins))


def _cell_of(sent: SentCell) -> Cell:
    cell = Cell()
    cell.ok, cell.asked, cell.denied, cell.failed, cell.cancelled = sent.outcomes
    if sent.bins:
        cell.bins = array("I", bytes(4 * BINS))
        for place, count in zip(sent.bins[::2], sent.bins[1::2], strict=False):
            if 0 <= place < BINS:
                cell.bins[place] += count
    return cell
