"""The live streams of the console under load: what is made for all pages is made once, and pages
that do not read take a bounded part of the memory."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from tidegate.approvals.approval_request import ApprovalRequest
from tidegate.approvals.approvals import Approvals
from tidegate.errors import Code, TidegateError
from tidegate.identity.operators import Operators, SignedIn
from tidegate.model.actors import Actor, RoleGrant, Scope
from tidegate.model.cancellation import Cancellation
from tidegate.model.decisions import Verdict
from tidegate.model.sources import Source
from tidegate.model.statements import Effect, Judgement, Statement
from tidegate.products.console import live
from tidegate.products.console.inbox import Inbox
from tidegate.products.console.live import LiveFeed
from tidegate.store.records import PendingApproval
from tidegate.store.sqlite.state import SqliteState

SHOP = Source("s1", "shop", "sqlite:////shop.db", "sqlite", "sqlite")
AGENT = Actor("t1", "claude", Scope.READ_WRITE)


class Page:
    """The sending side of a stream to a page that reads nothing."""

    def __init__(self) -> None:
        self.parts: list[bytes] = []
        self.aborted = False

    @property
    def backlog(self) -> int:
        return 0 if self.aborted else sum(map(len, self.parts))

    def push(self, part: bytes) -> None:
        self.parts.append(part)

    def abort(self) -> None:
        self.aborted = True

    def cards(self) -> int:
        return sum(b"\nevent: card\n" in part for part in self.parts)


class CountingInbox(Inbox):
    """Counts the cards that are made."""

    made = 0

    def card(self, question: PendingApproval, signed_in: SignedIn) -> dict[str, Any]:
        self.made += 1
        return super().card(question, signed_in)


class Desk:
    """A feed over a state of its own, with operators who have signed in."""

    def __init__(self, directory: Path) -> None:
        self.state = SqliteState(directory / "state.db")
        nothing = lambda *_: None  # noqa: E731
        self.operators = Operators(
            self.state.operators, note=nothing, note_done=nothing, note_anonymous=nothing
        )
        self.approvals = Approvals(self.state.approvals)
        self.inbox = CountingInbox(self.approvals, self.operators, lambda: (SHOP,), lambda _: None)
        self.feed = LiveFeed(self.approvals, self.operators, self.inbox, lambda: "build")

    def sign_in(self, name: str, *roles: RoleGrant) -> SignedIn:
        if all(each.name != name for each in self.operators.list()):
            self.operators.add(name, "correct horse 1", roles, "test")
        return self.operators.sign_in(name, "correct horse 1", "127.0.0.1", "")[0]

    async def open(self, signed_in: SignedIn) -> Page:
        page = Page()
        served = self.feed.serve(page, Cancellation(), signed_in, "")
        self.tasks.append(asyncio.create_task(served))
        while not page.parts:
            await asyncio.sleep(0)
        return page

    def ask(self, text: str) -> None:
        judgement = Judgement(Effect.WRITE, "sql.write", "It deletes rows", tables=("t",))
        verdict = Verdict("ask", "source.approval_for", "A person must approve this call")
        request = ApprovalRequest(AGENT, SHOP, Statement(text), judgement, verdict)
        asyncio.run(self.approvals.request(request))

    tasks: list[asyncio.Task[None]]

    async def close(self) -> None:
        for task in self.tasks:
            task.cancel()
        await asyncio.gather(*self.tasks, return_exceptions=True)


@pytest.fixture
def desk(tmp_path: Path) -> Iterator[Desk]:
    desk = Desk(tmp_path)
    desk.tasks = []
    yield desk
    desk.state.close()


async def until(condition: Any) -> None:
    deadline = time.monotonic() + 20
    while not condition():
        assert time.monotonic() < deadline
        await asyncio.sleep(0.01)


def test_a_card_is_made_once_for_all_pages_of_operators_who_see_the_same(desk: Desk) -> None:
    ada = desk.sign_in("ada", RoleGrant("admin"))
    eve = desk.sign_in("eve", RoleGrant("viewer"))
    bob = desk.sign_in("bob", RoleGrant("admin", frozenset({"other"})))

    async def scenario() -> None:
        pages = [await desk.open(each) for each in (ada,) * 30 + (eve,) * 20 + (bob,) * 5]
        desk.inbox.made = 0
        await asyncio.to_thread(desk.ask, "DELETE FROM t WHERE id = 1")
        await until(lambda: all(page.cards() == 1 for page in pages[:50]))
        assert desk.inbox.made == 2
        assert not any(page.cards() for page in pages[50:])
        await desk.close()

    asyncio.run(scenario())


def test_pages_that_do_not_read_are_cut_off_before_they_fill_the_memory(
    desk: Desk, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(live, "MOST_UNREAD", 300_000)
    ada = desk.sign_in("ada", RoleGrant("admin"))

    async def scenario() -> None:
        pages = [await desk.open(ada) for _ in range(20)]
        reads = await desk.open(ada)
        for number in range(4):
            await asyncio.to_thread(desk.ask, f"DELETE FROM t WHERE name = '{'x' * 9_000}{number}'")
            seen = number + 1
            await until(lambda seen=seen: reads.cards() == seen)
            held = sum(page.backlog for page in [*pages, reads])
            assert held <= 300_000 + reads.backlog
            kept = [part for part in reads.parts if b"\nevent: card\n" in part]
            assert len(kept) == seen and not reads.aborted
            reads.parts[:] = [part[:60] for part in reads.parts]  # it has read them
        assert any(page.aborted for page in pages)
        await desk.close()

    asyncio.run(scenario())


def test_pages_that_come_at_once_are_followed_by_one_task_and_all_count(desk: Desk) -> None:
    ada = desk.sign_in("ada", RoleGrant("admin"))
    looks: list[int] = []

    async def look(readers: object) -> None:
        looks.append(1)
        await asyncio.sleep(0)

    async def scenario() -> None:
        desk.feed.follow(look)
        refused = 0
        for _ in range(live.MOST_STREAMS + 4):
            try:
                desk.feed.check_room(ada)
            except TidegateError as error:
                assert error.code is Code.LIMIT_RATE
                refused += 1
                continue
            served = desk.feed.serve(Page(), Cancellation(), ada, "")
            desk.tasks.append(asyncio.create_task(served))
            await asyncio.sleep(0)  # it has begun, and waits for the state
        assert refused == 4
        await until(lambda: len(looks) > 2)
        names = [str(each.get_coro()).split(" ")[2] for each in asyncio.all_tasks()]
        assert names.count("LiveFeed._follow") == 1
        await desk.close()

    asyncio.run(scenario())


def test_pages_come_back_when_following_the_state_fails_in_a_way_that_no_one_knows(
    desk: Desk,
) -> None:
    ada = desk.sign_in("ada", RoleGrant("admin"))
    fails: list[bool] = []

    async def look(readers: object) -> None:
        if fails:
            raise OSError(5, "Input/output error")

    async def scenario() -> None:
        desk.feed.follow(look)
        page = await desk.open(ada)
        fails.append(True)
        await until(lambda: page.aborted)
        fails.clear()
        again = await desk.open(ada)
        await asyncio.to_thread(desk.ask, "DELETE FROM t WHERE id = 1")
        await until(lambda: again.cards() == 1)
        await desk.close()

    asyncio.run(scenario())
