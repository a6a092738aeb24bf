"""An answer that a person gives at the caller's client counts only where the source takes it."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import apsw
import pytest
from msgspec import structs

from tidegate.approvals.approvals import ApprovalNeeded, Approvals
from tidegate.audit.log import AuditLog
from tidegate.config.model import ApprovalSettings
from tidegate.engines.registry import open_engine
from tidegate.errors import Code, TidegateError
from tidegate.gateway.gateway import Gateway
from tidegate.gateway.source_connections import SourceConnections
from tidegate.history.history import History
from tidegate.model.actors import Actor, Scope
from tidegate.model.requests import Call, Query
from tidegate.model.sources import Source
from tidegate.model.statements import Effect, Statement
from tidegate.store.sqlite.state import SqliteState

WRITER = Actor("writer", "writer", Scope.READ_WRITE)
OTHER = Actor("other", "other", Scope.READ_WRITE)
CHANGE = "UPDATE t SET name = 'b' WHERE id = 1"


class Shop:
    """A gateway over one SQLite file whose source asks about changes."""

    def __init__(self, directory: Path, **settings: Any) -> None:
        self.file = directory / "shop.db"
        with apsw.Connection(str(self.file)) as made:
            made.execute("CREATE TABLE t (id INTEGER PRIMARY KEY, name TEXT)")
            made.execute("INSERT INTO t VALUES (1, 'a')")
        self.source = Source(
            "s1", "shop", f"sqlite:///{self.file}", "sqlite", "sqlite",
            access="write", approval_for="writes",
        )  # fmt: skip
        self.state = SqliteState(directory / "state.db")
        self.audit, self.history = AuditLog(directory / "audit"), History(self.state.history)
        self.approvals = Approvals(self.state.approvals, ApprovalSettings(**settings))
        self.opened: list[SourceConnections] = []

    def gateway(self, *, approvals: bool = True, **source: Any) -> Gateway:
        """As another process has it whose settings differ in `source`."""
        settings = structs.replace(self.source, **source)
        self.opened.append(SourceConnections(self.state.sources, open_engine, [settings]))
        book = self.approvals if approvals else None
        return Gateway(self.opened[-1], self.audit, self.history, approvals=book)

    def names(self) -> list[str]:
        with apsw.Connection(str(self.file)) as seen:
            return [row[0] for row in seen.execute("SELECT name FROM t")]


@asynccontextmanager
async def shop(directory: Path, **settings: Any) -> AsyncIterator[Shop]:
    built = Shop(directory, **settings)
    try:
        yield built
    finally:
        for connections in built.opened:
            await connections.close()
        built.history.close()
        built.audit.close()
        built.state.close()


def call(text: str = CHANGE, actor: Actor = WRITER, *, can_ask: bool = True, **more: Any) -> Call:
    request = Query(Statement(text))
    return Call(
        actor, "core", "query", request,
        scope=Scope.READ_ONLY, source="shop", can_ask=can_ask, client="ide", **more,
    )  # fmt: skip


async def asked(gateway: Gateway, wanted: Call) -> ApprovalNeeded:
    with pytest.raises(ApprovalNeeded) as needed:
        await gateway.handle(wanted)
    return needed.value


async def test_an_answer_at_the_client_is_used_by_the_same_call_once(tmp_path: Path) -> None:
    async with shop(tmp_path) as built:
        gateway = built.gateway()
        needed = await asked(gateway, call())
        assert needed.client_may_ask and built.names() == ["a"]
        await gateway.answer_approval(needed, call(), True)
        assert built.approvals.find(needed.question.id).decided_by == (
            "the person at ide of writer"
        )
        await gateway.handle(call())
        assert built.names() == ["b"]
        assert (await asked(gateway, call())).question.id != needed.question.id


async def test_a_denial_at_the_client_refuses_the_call(tmp_path: Path) -> None:
    async with shop(tmp_path) as built:
        gateway = built.gateway()
        needed = await asked(gateway, call())
        await gateway.answer_approval(needed, call(), False)
        with pytest.raises(TidegateError) as refused:
            await gateway.handle(call())
        assert refused.value.code is Code.APPROVAL_DECLINED
        assert built.names() == ["a"]


@pytest.mark.parametrize(
    "now",
    [{"approval": "inbox"}, {"id": "s2"}, {"approvals": False}],
    ids=["the source asks the inbox now", "another source has its name", "nobody is asked"],
)
async def test_e_an_answer_does_not_count_where_the_settings_have_changed(
    tmp_path: Path, now: dict[str, Any]
) -> None:
    async with shop(tmp_path) as built:
        needed = await asked(built.gateway(), call())
        with pytest.raises(TidegateError) as refused:
            await built.gateway(**now).answer_approval(needed, call(), True)
        assert refused.value.code is Code.APPROVAL_NEEDED
        assert built.approvals.find(needed.question.id).state == "pending"
        assert built.names() == ["a"]


async def test_an_answer_does_not_count_where_the_client_cannot_ask(tmp_path: Path) -> None:
    async with shop(tmp_path) as built:
        gateway = built.gateway()
        needed = await asked(gateway, call(can_ask=False))
        assert not needed.client_may_ask
        with pytest.raises(TidegateError):
            await gateway.answer_approval(needed, call(), True)
        assert built.approvals.find(needed.question.id).state == "pending"


async def test_another_caller_cannot_answer(tmp_path: Path) -> None:
    async with shop(tmp_path) as built:
        gateway = built.gateway()
        needed = await asked(gateway, call())
        with pytest.raises(TidegateError):
            await gateway.answer_approval(needed, call(actor=OTHER), True)
        assert built.approvals.find(needed.question.id).state == "pending"


@pytest.mark.parametrize(
    ("source", "can_ask", "client_may_ask"),
    [({}, True, True), ({}, False, False), ({"approval": "inbox"}, True, False)],
)
async def test_the_client_is_asked_only_where_it_can_and_the_source_lets_it(
    tmp_path: Path, source: dict[str, str], can_ask: bool, client_may_ask: bool
) -> None:
    async with shop(tmp_path) as built:
        needed = await asked(built.gateway(**source), call(can_ask=can_ask))
        assert needed.client_may_ask is client_may_ask
        assert needed.code is Code.APPROVAL_NEEDED
        assert needed.details == {"effect": "write", "rule": "source.approval_for"}


@pytest.mark.parametrize(
    ("source", "can_ask", "runs"),
    [
        ({"unattended": "allow"}, False, True),
        ({"unattended": "allow"}, True, False),
        ({"unattended": "allow", "approval": "inbox"}, False, False),
        ({"unattended": "deny"}, False, False),
    ],
)
async def test_a_call_runs_unattended_only_where_the_source_says_so(
    tmp_path: Path, source: dict[str, str], can_ask: bool, runs: bool
) -> None:
    async with shop(tmp_path) as built:
        gateway = built.gateway(**source)
        if runs:
            await gateway.handle(call(can_ask=can_ask))
            assert built.names() == ["b"]
            assert built.approvals.list(everything=True) == ()
        else:
            await asked(gateway, call(can_ask=can_ask))
            assert built.names() == ["a"]


async def test_an_unattended_call_uses_an_answer_that_was_given(tmp_path: Path) -> None:
    async with shop(tmp_path) as built:
        needed = await asked(built.gateway(), call(can_ask=False))
        built.approvals.resolve(needed.question.id, "denied", "cli:ann")
        with pytest.raises(TidegateError) as refused:
            await built.gateway(unattended="allow").handle(call(can_ask=False))
        assert refused.value.code is Code.APPROVAL_DECLINED
        assert built.names() == ["a"]


async def test_a_call_that_waits_goes_on_with_the_answer(tmp_path: Path) -> None:
    async with shop(tmp_path, wait_s=30) as built:
        gateway, told = built.gateway(), []

        def answer(share: float, text: str) -> None:
            told.append((share, text))
            if text == "Waiting for approval":
                (question,) = built.approvals.list()
                built.approvals.resolve(question.id, "allowed", "cli:ann")

        await gateway.handle(call(can_ask=False, progress=answer))
        assert (0.1, "Waiting for approval") in told
        assert built.names() == ["b"]
        (used,) = built.approvals.list(everything=True)
        assert used.state == "used"


async def test_a_call_that_no_one_answers_in_time_is_told_so(tmp_path: Path) -> None:
    async with shop(tmp_path, wait_s=0.01) as built:
        needed = await asked(built.gateway(), call(can_ask=False))
        assert not needed.client_may_ask and built.names() == ["a"]
        assert needed.message == "A person must approve this call"


async def test_where_no_person_can_be_asked_the_call_is_refused(tmp_path: Path) -> None:
    async with shop(tmp_path) as built:
        with pytest.raises(TidegateError) as refused:
            await built.gateway(approvals=False).handle(call())
        assert refused.value.code is Code.APPROVAL_NEEDED
        assert built.names() == ["a"]


# The dry run that a question shows.


@pytest.mark.parametrize(("settings", "affected"), [({}, 1), ({"dry_run": False}, None)])
async def test_the_question_shows_what_would_change_and_nothing_has(
    tmp_path: Path, settings: dict[str, Any], affected: int | None
) -> None:
    async with shop(tmp_path, **settings) as built:
        needed = await asked(built.gateway(), call())
        shown = built.approvals.find(needed.question.id).dry_run
        assert (shown and shown.affected) == affected
        assert built.names() == ["a"]


async def test_what_is_no_change_of_rows_is_not_tried(tmp_path: Path) -> None:
    async with shop(tmp_path) as built:
        needed = await asked(built.gateway(), call("DROP TABLE t", confirmed=True))
        shown = built.approvals.find(needed.question.id).dry_run
        assert shown is not None and shown.affected is None
        assert "only INSERT, UPDATE and DELETE" in shown.reason
        assert needed.question.subject.effect == Effect.DESTRUCTIVE.label
        assert built.names() == ["a"]


async def test_a_change_that_fails_when_it_is_tried_says_why(tmp_path: Path) -> None:
    async with shop(tmp_path) as built:
        needed = await asked(built.gateway(), call("INSERT INTO t VALUES (1, 'twice')"))
        shown = built.approvals.find(needed.question.id).dry_run
        assert shown is not None and shown.reason.startswith("it failed: ")
        assert built.names() == ["a"]
