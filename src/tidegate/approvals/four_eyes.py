"""Whose yes counts where two people must agree, as far as it is known who is who.

An operator with the rights for it can make itself a second account, or a token in the name of
someone else. So an account counts as the person by whose invitation it got in, and the call of a
token as that of its owner and of the account that made it. What is given at the command line counts
for what it says: an owner of the state directory can do anything.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Literal

from tidegate.model.actors import holds
from tidegate.store.records import OperatorEntry, PendingApproval, Subject, operator_of

Mode = Literal["off", "own", "always"]
NO_OTHER = "No other operator may answer"


def why_not(
    mode: Mode, subject: Subject, operator: str, operators: Sequence[OperatorEntry]
) -> str | None:
    """Why a yes of this operator does not count, and who could answer if no one can now; empty is
    one that was given in no account, at the command line or in the caller's client. None if it
    counts."""
    why = _why_not(mode, subject, operator, operators)
    if why is None or not (subject.owner or subject.maker):
        return why
    for each in operators:
        if holds(each.roles, "approver", subject.source) and (
            _why_not(mode, subject, each.name, operators) is None
        ):
            return why
    source = subject.source
    return (
        f"{why}. {NO_OTHER} for {source} now: an admin makes one an approver in"
        f" Access, or `tidegate operator roles NAME --role approver --source {source}` does"
    )


def _why_not(
    mode: Mode, subject: Subject, operator: str, operators: Sequence[OperatorEntry]
) -> str | None:
    owner = subject.owner
    is_known = bool(owner or subject.maker)
    if mode == "off" and is_known and len(operators) > 1:
        mode = "own"
    if mode == "off" or (mode == "own" and not is_known):
        return None
    if not is_known:
        return (
            "It is not known whose call this is, and two people must agree"
            " (`approvals.four_eyes`): give the caller a token with an owner"
        )
    if not operator:
        who = f"other than {owner}" if owner else "other than the one who made its token"
        return f"An operator must answer in the console, {who}"
    if operator.casefold() == owner.casefold():
        return "The call is yours: another operator must answer"
    own, account = _find(owner, operators), _find(operator, operators)
    if account is None or (owner and own is None):
        name = operator if account is None else owner
        return f"{name} has no account any more, so it is not known that two people agree"
    if account.id == subject.maker:
        return (
            "You made the token of this call: another operator must answer. One that is made at the"
            f" command line (`tidegate token create NAME --owner {owner}`) is its owner's alone"
        )
    persons = {subject.maker, "" if own is None else own.person} - {""}
    if account.person not in persons:
        return None
    return (
        "It is not known that two people agree: your account or that of the caller's owner was made"
        " in the console by the other, or both by the same operator. That ends when the person at"
        f" the command line gives you a passphrase: `tidegate operator passphrase {account.name}`"
    )


def counts_still(mode: Mode, question: PendingApproval, operators: Sequence[OperatorEntry]) -> bool:
    """Whether a yes that was given before would count now: there may be more operators by now, or
    the one who gave it may have lost the right to."""
    name = operator_of(question.decided_by)
    if _why_not(mode, question.subject, name, operators) is not None:
        return False
    if not name:
        return True
    account = _find(name, operators)
    return account is not None and holds(account.roles, "approver", question.subject.source)


def _find(name: str, operators: Sequence[OperatorEntry]) -> OperatorEntry | None:
    return next((each for each in operators if each.name.casefold() == name.casefold()), None)
