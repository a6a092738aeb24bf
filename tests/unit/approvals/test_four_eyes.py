"""Whose yes counts: by the mode, the owner of the call, and where the yes is given."""

from __future__ import annotations

import asyncio
from pathlib import Path

import pytest
from msgspec import structs

from tidegate.approvals.approval_request import ApprovalRequest
from tidegate.approvals.approvals import ApprovalNeeded, Approvals
from tidegate.config.model import ApprovalSettings
from tidegate.errors import Code, TidegateError
from tidegate.model.actors import Actor, Scope
from tidegate.model.decisions import Verdict
from tidegate.model.requests import Call, Query
from tidegate.model.sources import Source
from tidegate.model.statements import DryRun, Effect, Judgement, Statement
from tidegate.store.sqlite.state import SqliteState

TEXT = "DELETE FROM t WHERE id = 1"
SHOP = Source("s1", "shop", "sqlite:////shop.db", "sqlite", "sqlite")
OWNED = Actor("t1", "claude", Scope.READ_WRITE, owner="ada")
UNOWNED = Actor("t2", "claude", Scope.READ_WRITE)


def approvals(directory: Path, mode: str, operators: int) -> tuple[Approvals, SqliteState]:
    state = SqliteState(directory / "state.db")
    settings = structs.replace(ApprovalSettings(), four_eyes=mode)
    made = Approvals(state.approvals, settings, count_operators=lambda: operators)
    return made, state


def request_of(actor: Actor, source: Source = SHOP) -> ApprovalRequest:
    judgement = Judgement(Effect.WRITE, "sql.write", "It deletes rows", tables=("t",))
    verdict = Verdict("ask", "source.approval_for", "A person must approve this call")
    return ApprovalRequest(actor, source, Statement(TEXT), judgement, verdict)


COUNTS = {
    # mode, operators, has an owner -> whose yes counts: the owner, another, one without an account
    ("off", 1, True): {"ada", "eve", ""},
    ("off", 2, True): {"eve"},
    ("off", 2, False): {"ada", "eve", ""},
    ("own", 1, True): {"eve"},
    ("own", 2, True): {"eve"},
    ("own", 2, False): {"ada", "eve", ""},
    ("always", 1, True): {"eve"},
    ("always", 2, True): {"eve"},
    ("always", 2, False): set[str](),
}


@pytest.mark.parametrize(("mode", "operators", "owned"), COUNTS)
def test_a_yes_counts_as_the_mode_says_and_no_other_grants(
    tmp_path: Path, mode: str, operators: int, owned: bool
) -> None:
    made, state = approvals(tmp_path, mode, operators)
    actor = OWNED if owned else UNOWNED
    for name in ("ada", "ADA", "eve", ""):
        question = asyncio.run(made.request(request_of(actor)))
        counts = name.lower() in COUNTS[mode, operators, owned]
        assert (made.why_not(question, name) is None) is counts, name
        if counts:
            assert made.resolve(question.id, "allowed", name, operator=name).state == "allowed"
            assert asyncio.run(made.request(request_of(actor))).state == "used"
            continue
        for minutes in (0, 5):
            with pytest.raises(TidegateError) as caught:
                made.resolve(question.id, "allowed", name, operator=name, minutes=minutes)
            assert caught.value.code is Code.OPERATOR_CONSENT
        assert made.find(question.id).state == "pending"
    # Anyone may say no.
    question = asyncio.run(made.request(request_of(actor)))
    assert made.resolve(question.id, "denied", "ada", operator="ada").state == "denied"
    state.close()


@pytest.mark.parametrize(("mode", "operators", "owned"), COUNTS)
def test_a_client_is_asked_only_where_its_answer_would_count(
    tmp_path: Path, mode: str, operators: int, owned: bool
) -> None:
    made, state = approvals(tmp_path, mode, operators)
    actor = OWNED if owned else UNOWNED
    call = Call(actor, "core", "query", Query(Statement(TEXT)), "shop", can_ask=True)

    async def dry_run() -> DryRun:
        return DryRun(1)

    with pytest.raises(ApprovalNeeded) as caught:
        asyncio.run(made.approve(request_of(actor), call, dry_run))
    assert caught.value.client_may_ask is ("" in COUNTS[mode, operators, owned])
    state.close()


def test_a_call_that_four_eyes_keep_from_its_client_does_not_run_unattended(
    tmp_path: Path,
) -> None:
    made, state = approvals(tmp_path, "own", 2)
    source = structs.replace(SHOP, unattended="allow")
    call = Call(OWNED, "core", "query", Query(Statement(TEXT)), "shop", can_ask=True)

    async def dry_run() -> DryRun:
        return DryRun(1)

    with pytest.raises(ApprovalNeeded):
        asyncio.run(made.approve(request_of(OWNED, source), call, dry_run))
    state.close()
