"""Whose yes counts: by the mode, the owner of the call, and where the yes is given."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from pathlib import Path
from typing import Literal

import pytest
from msgspec import structs

from tidegate.approvals.approval_request import ApprovalRequest
from tidegate.approvals.approvals import ApprovalNeeded, Approvals, Identities
from tidegate.config.model import ApprovalSettings
from tidegate.errors import Code, TidegateError
from tidegate.model.actors import Actor, RoleGrant, Scope
from tidegate.model.decisions import Verdict
from tidegate.model.requests import Call, Query
from tidegate.model.sources import Source
from tidegate.model.statements import DryRun, Effect, Judgement, Statement
from tidegate.store.records import OperatorEntry
from tidegate.store.sqlite.state import SqliteState

TEXT = "DELETE FROM t WHERE id = 1"
SHOP = Source("s1", "shop", "sqlite:////shop.db", "sqlite", "sqlite")
OWNED = Actor("t1", "claude", Scope.READ_WRITE, owner="ada")
UNOWNED = Actor("t2", "claude", Scope.READ_WRITE)
ADMIN = (RoleGrant("admin"),)


def account(name: str, inviter: str = "", roles: tuple[RoleGrant, ...] = ADMIN) -> OperatorEntry:
    return OperatorEntry(f"id-{name}", name, b"s", b"h", roles, 0.0, inviter)


def among(
    directory: Path, mode: str, operators: Sequence[OperatorEntry]
) -> tuple[Approvals, SqliteState]:
    state = SqliteState(directory / "state.db")
    settings = structs.replace(ApprovalSettings(), four_eyes=mode)
    return Approvals(
        state.approvals, settings, identities=Identities(operators=lambda: tuple(operators))
    ), state


def approvals(directory: Path, mode: str, operators: int) -> tuple[Approvals, SqliteState]:
    # With one operator, eve is one who was removed: nobody answers under a name that is not there.
    return among(directory, mode, [account("ada"), account("eve")][:operators])


def request_of(actor: Actor, source: Source = SHOP) -> ApprovalRequest:
    judgement = Judgement(Effect.WRITE, "sql.write", "It deletes rows", tables=("t",))
    verdict = Verdict("ask", "source.approval_for", "A person must approve this call")
    return ApprovalRequest(actor, source, Statement(TEXT), judgement, verdict)


COUNTS = {
    # mode, operators, has an owner -> whose yes counts: the owner, another, one without an account
    ("off", 1, True): {"ada", "eve", ""},
    ("off", 2, True): {"eve"},
    ("off", 2, False): {"ada", "eve", ""},
    ("own", 1, True): set[str](),
    ("own", 2, True): {"eve"},
    ("own", 2, False): {"ada", "eve", ""},
    ("always", 1, True): set[str](),
    ("always", 2, True): {"eve"},
    ("always", 2, False): set[str](),
}


@pytest.mark.parametrize(("mode", "operators", "owned"), COUNTS)
def test_a_yes_counts_as_the_mode_says_and_no_other_grants(
    tmp_path: Path, mode: str, operators: int, owned: bool
) -> None:
    made, state = approvals(tmp_path, mode, operators)
    actor = OWNED if owned else UNOWNED
    for name in ("ada", "ADA", *(("eve",) if operators > 1 else ()), ""):
        question = asyncio.run(made.request(request_of(actor)))
        counts = name.lower() in COUNTS[mode, operators, owned]
        assert (made.why_not(question, name) is None) is counts, name
        if counts:
            by = f"operator:{name}" if name else "cli:ann"
            assert made.resolve(question.id, "allowed", by, operator=name).state == "allowed"
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
        asyncio.run(made.approve(request_of(actor), call, dry_run, may_wait=True))
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
        asyncio.run(made.approve(request_of(OWNED, source), call, dry_run, may_wait=True))
    state.close()


# Accounts and tokens that are one person's

ADA, BOB = account("ada"), account("bob")
SECOND = account("ada2", inviter=ADA.person)
THIRD = account("ada3", inviter=SECOND.person)
ASKS = Actor("t3", "claude", Scope.READ_WRITE, owner="bob", maker=ADA.person)


@pytest.mark.parametrize("mode", ["off", "own", "always"])
@pytest.mark.parametrize(
    ("actor", "operators", "count"),
    [
        # A token of bob's that ada made is ada's as well, and that of the accounts of hers.
        (ASKS, [ADA, SECOND, THIRD, BOB], set[str]()),
        (ASKS, [ADA, BOB, account("eve")], {"eve"}),
        # An account of ada's making made it: ada does not answer either.
        (structs.replace(ASKS, maker=THIRD.person), [ADA, THIRD, BOB], set[str]()),
        (structs.replace(ASKS, owner="ada3"), [ADA, SECOND, THIRD, BOB], {"bob"}),
        # ada's own call, and accounts that she invited, or that were invited with hers.
        (OWNED, [ADA, SECOND, THIRD], set[str]()),
        (structs.replace(OWNED, owner="ada2"), [ADA, SECOND, THIRD], set[str]()),
        (structs.replace(OWNED, owner="ada2"), [ADA, SECOND, BOB], {"bob"}),
        # The account of the one who invited is gone, or has another id by now.
        (structs.replace(OWNED, owner="ada2"), [SECOND, THIRD], set[str]()),
        (OWNED, [SECOND, BOB], set[str]()),
        (OWNED, [account("ada", inviter=ADA.person), SECOND, BOB], {"bob"}),
        # The person at the command line gave the second one a passphrase.
        (OWNED, [ADA, structs.replace(SECOND, inviter="")], {"ada2"}),
        # A token without an owner that ada made in the console.
        (structs.replace(ASKS, owner=""), [ADA, SECOND, BOB], {"bob"}),
    ],
)
def test_a_second_account_or_token_of_ones_making_does_not_agree_with_oneself(
    tmp_path: Path,
    mode: str,
    actor: Actor,
    operators: Sequence[OperatorEntry],
    count: set[str],
) -> None:
    made, state = among(tmp_path, mode, operators)
    question = asyncio.run(made.request(request_of(actor)))
    for name in ("", *(each.name for each in operators)):
        if name in count:
            continue
        with pytest.raises(TidegateError) as caught:
            made.resolve(question.id, "allowed", f"operator:{name}", operator=name)
        assert caught.value.code is Code.OPERATOR_CONSENT, name
        assert made.find(question.id).state == "pending"
    for name in count:
        assert made.why_not(question, name) is None
    state.close()


@pytest.mark.parametrize(
    ("operators", "answers", "gone"),
    [([SECOND, BOB], "bob", "ada"), ([ADA, SECOND], "bob", "bob"), ([SECOND], "bob", "bob")],
)
def test_the_account_that_is_gone_is_named(
    tmp_path: Path, operators: Sequence[OperatorEntry], answers: str, gone: str
) -> None:
    made, state = among(tmp_path, "own", operators)
    question = asyncio.run(made.request(request_of(OWNED)))
    why = made.why_not(question, answers)
    assert why is not None and why.startswith(f"{gone} has no account any more")
    state.close()


@pytest.mark.parametrize("minutes", [0, 30])
@pytest.mark.parametrize("unattended", ["allow", "deny"])
@pytest.mark.parametrize(
    ("by", "then"),
    [
        ("operator:ada", [ADA, BOB]),  # the second operator came
        ("cli:ann", [ADA, BOB]),
        ("the person at cursor of claude", [ADA, BOB]),
        ("operator:bob", [ADA, account("eve")]),  # the one who allowed it was removed
        ("operator:bob", [ADA, account("bob", roles=(RoleGrant("viewer"),))]),
        ("operator:bob", [ADA, account("bob", roles=(RoleGrant("admin", frozenset({"x"})),))]),
    ],
)
def test_a_grant_ends_where_its_yes_would_not_count_any_more(
    tmp_path: Path,
    minutes: int,
    unattended: Literal["allow", "deny"],
    by: str,
    then: Sequence[OperatorEntry],
) -> None:
    operators = [ADA, BOB] if by == "operator:bob" else [ADA]
    made, state = among(tmp_path, "off", operators)
    source = structs.replace(SHOP, unattended=unattended)
    question = asyncio.run(made.request(request_of(OWNED, source)))
    asyncio.run(made.attach_dry_run(question, DryRun(1)))
    name = by.removeprefix("operator:") if by.startswith("operator:") else ""
    made.resolve(question.id, "allowed", by, operator=name, minutes=minutes)
    operators[:] = then
    answer = asyncio.run(made.find_answer(request_of(OWNED, source)))
    assert answer is None
    assert (made.find(question.id).state, made.find(question.id).uses) == ("expired", 0)
    asked = asyncio.run(made.request(request_of(OWNED, source)))
    assert (asked.state, asked.id != question.id) == ("pending", True)
    state.close()


def test_a_grant_goes_on_where_its_yes_still_counts(tmp_path: Path) -> None:
    operators = [ADA, BOB]
    made, state = among(tmp_path, "own", operators)
    question = asyncio.run(made.request(request_of(OWNED)))
    made.resolve(question.id, "allowed", "operator:bob", operator="bob")
    operators.append(account("eve"))
    operators[1] = account("bob", roles=(RoleGrant("approver", frozenset({"shop"})),))
    assert asyncio.run(made.request(request_of(OWNED))).id == question.id
    assert made.find(question.id).state == "used"
    state.close()


@pytest.mark.parametrize(
    ("others", "nobody"),
    [
        ([], True),
        ([account("eve", roles=(RoleGrant("viewer"),))], True),
        ([account("eve", roles=(RoleGrant("approver", frozenset({"other"})),))], True),
        ([account("eve", inviter="id-ada")], True),
        ([account("eve", roles=(RoleGrant("approver", frozenset({"shop"})),))], False),
    ],
)
def test_a_refused_yes_says_whether_anybody_else_may_answer(
    tmp_path: Path, others: list[OperatorEntry], nobody: bool
) -> None:
    asked, state = among(tmp_path, "own", [account("ada"), *others])
    question = asyncio.run(asked.request(request_of(OWNED)))
    why = asked.why_not(question, "ada")
    assert why is not None
    assert ("No other operator may answer for shop now" in why) is nobody
    with pytest.raises(TidegateError) as refused:
        asked.resolve(question.id, "allowed", by="operator:ada", operator="ada")
    assert ("Ask an admin" in refused.value.hint) is nobody
    assert state.approvals.find(question.id).state == "pending"  # type: ignore[union-attr]
    state.close()
