"""A page that is open at one gate hears of new lines in the records of all."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import pytest

from products.console.support.two_records import SECRET_TEXT, Pair, gates
from support import postgres_state
from support.eventually import HANG_S
from tidegate.identity.operators import SignedIn
from tidegate.model.actors import RoleGrant
from tidegate.products.console import new_lines
from tidegate.products.console.new_lines import LINES, WATCH, NewLines

ALL = RoleGrant("admin", None)
SHOP = RoleGrant("viewer", frozenset({"shop"}))


class Pages:
    """Open pages of the console of the first gate, and what each operator was told."""

    def __init__(self, lines: NewLines, *readers: SignedIn) -> None:
        self.readers = readers
        self.told: list[tuple[str, str, Any]] = []
        self._lines = lines
        lines.publish_by(self._publish)

    def _publish(self, event: str, data_of: Callable[[SignedIn], Any]) -> None:
        for each in self.readers:
            if (data := data_of(each)) is not None:
                self.told.append((each.operator.name, event, data))

    def newest(self, name: str) -> dict[str, int]:
        lines = [data for who, event, data in self.told if (who, event) == (name, "line")]
        return {each["gate"]: each["n"] for each in lines}

    def silent(self, name: str) -> list[str] | None:
        """The names of the gates that do not answer, as far as that was said."""
        said = [data for who, event, data in self.told if (who, event) == (name, "gates")]
        return [each["name"] for each in said[-1]["silent"]] if said else None

    async def until(self, happened: Callable[[], object]) -> None:
        async with asyncio.timeout(HANG_S):
            while not happened():
                await self._lines.look(self.readers)
                await asyncio.sleep(0.02)


@asynccontextmanager
async def watching(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> AsyncIterator[tuple[Pair, NewLines]]:
    """Two gates that tell each other of new lines soon; with the part of the first one."""
    for name in ("ASK_S", "TELL_S", "_SOON_S"):
        monkeypatch.setattr(new_lines, name, 0.05)
    async with gates(tmp_path, monkeypatch) as pair:
        both: list[NewLines] = []
        for records, home in zip(pair.records, pair.homes, strict=True):
            assert records.others is not None
            both.append(NewLines(records.others.shared, records, home))
        yield pair, both[0]


def bodies() -> dict[str, str]:
    """The messages in the state, by kind."""
    kept = "SELECT kind, string_agg(encode(body, 'escape'), ' ') FROM tidegate.messages GROUP BY 1"
    return dict(postgres_state.ask(kept))


async def test_each_operator_hears_of_the_lines_at_another_gate_that_it_may_see(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    async with watching(tmp_path, monkeypatch) as (pair, lines):
        ada = await asyncio.to_thread(pair.sign_in, "ada", ALL)
        eve = await asyncio.to_thread(pair.sign_in, "eve", SHOP)
        own, other = pair.ids
        page = await pair.views[0].find({"q": "SELECT"}, ada)
        assert page["newest"] == {own: 11, other: 11}
        assert (await pair.views[0].find({}, eve))["newest"] == {own: 10, other: 10}
        pages = Pages(lines, ada, eve)
        await pages.until(lambda: pages.newest("ada") and pages.newest("eve"))
        assert (pages.newest("ada"), pages.newest("eve")) == ({other: 11}, {other: 10})
        pair.call(1, 40, "hidden", SECRET_TEXT)
        await pages.until(lambda: pages.newest("ada") == {other: 12})
        pair.call(1, 41, "shop", "SELECT 41")
        await pages.until(lambda: pages.newest("eve") == {other: 13})
        eves = [data for who, event, data in pages.told if (who, event) == ("eve", "line")]
        assert [data["n"] for data in eves] == [10, 13]  # not a line that she may not see
        found = bodies()
        assert {WATCH, LINES} <= found.keys()
        assert not any(ada.session.id in body or "SELECT" in body for body in found.values())


async def test_a_gate_looks_for_new_lines_only_while_a_page_is_open_elsewhere(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(new_lines, "WATCH_S", 0.5)
    async with watching(tmp_path, monkeypatch) as (pair, lines):
        ada = await asyncio.to_thread(pair.sign_in, "ada", ALL)
        read: list[int] = []
        look = pair.homes[1].read_newest

        def count() -> int | None:
            read.append(1)
            return look()

        monkeypatch.setattr(pair.homes[1], "read_newest", count)
        pages = Pages(lines, ada)
        await lines.look([])
        assert (read, bodies()) == ([], {})
        await pages.until(lambda: read)
        async with asyncio.timeout(HANG_S):
            while any(str(each.get_coro()).count("NewLines._tell") for each in asyncio.all_tasks()):
                await lines.look([])
                await asyncio.sleep(0.02)


async def test_a_gate_that_is_silent_is_named_until_it_answers(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name, seconds in (("GONE_S", 1.0), ("AGAIN_S", 0.1)):
        monkeypatch.setattr(new_lines, name, seconds)
    async with watching(tmp_path, monkeypatch) as (pair, lines):
        ada = await asyncio.to_thread(pair.sign_in, "ada", ALL)
        eve = await asyncio.to_thread(pair.sign_in, "eve", SHOP)
        pages = Pages(lines, ada, eve)
        await pages.until(lambda: pages.newest("ada"))
        pair.reading[1].cancel()
        await pages.until(lambda: pages.silent("ada"))
        assert pages.silent("eve") == [pair.ids[1]], "and no place of a machine"
        assert pages.silent("ada") != pages.silent("eve")
        pair.reading[1] = asyncio.create_task(pair.apps[1].mailbox.run())
        await pages.until(lambda: pages.silent("ada") == [])


async def test_what_no_gate_wrote_about_new_lines_is_ignored(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    async with watching(tmp_path, monkeypatch) as (pair, lines):
        ada = await asyncio.to_thread(pair.sign_in, "ada", ALL)
        own, other = pair.ids
        pages = Pages(lines, ada)
        mailbox = pair.apps[1].mailbox
        for kind, body in (
            (WATCH, b"not json"), (WATCH, b'["gate", ["no session"]]'), (LINES, b"[1, 2]"),
            (LINES, b'["gate", {"no session": 7}]'), (LINES, b'["%s", {}]' % own.encode()),
        ):  # fmt: skip
            await mailbox.send(kind, body, encrypted=True)
        await mailbox.send(LINES, b'["gate", {"%s": 7}]' % ada.session.id.encode())
        await pages.until(lambda: pages.newest("ada"))
        assert pages.newest("ada") == {other: 11}
