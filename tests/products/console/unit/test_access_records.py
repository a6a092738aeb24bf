"""Rights in the console while the record cannot be written: none is given, and any is taken away.
And the matrix over a thousand sources."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import Any, NamedTuple

import pytest

from tidegate.errors import Code, TidegateError
from tidegate.identity.operators import Operators, SignedIn
from tidegate.identity.pairing import PairingService, challenge_of, make_verifier
from tidegate.identity.tokens import Records, Tokens
from tidegate.model.actors import RoleGrant, Scope
from tidegate.model.sources import Source
from tidegate.products.console.admins import Consent
from tidegate.products.console.operator_accounts import (
    ChangeRoles,
    Confirmed,
    FirstPassphrase,
    GivenRole,
    Invite,
    OperatorAccounts,
)
from tidegate.products.console.pairing_requests import Approve, PairingRequests
from tidegate.products.console.token_forms import ChangeToken, MakeToken, TokenForms
from tidegate.store.records import TokenRights
from tidegate.store.sqlite.state import SqliteState

YES = "a passphrase"
SOURCE = Source("s1", "shop", "sqlite:///shop.db", "sqlite", "sqlite")


class Desk:
    """Access of one state, signed in as ada, with a record that can fail."""

    def __init__(self, directory: Path) -> None:
        self.fails = False
        self.done: list[str] = []
        self.state = SqliteState(directory / "state.db")
        records = Records(self._note, self._note_done)
        self.tokens = Tokens(self.state.tokens, records=records)
        self.operators = Operators(
            self.state.operators,
            note=lambda name, by, details: self._note(name, details),
            note_done=lambda name, by, details: self._note_done(name, details),
            note_anonymous=self._note_done,
        )
        self.service = PairingService(
            self.state.pairings,
            self.tokens,
            records=records,
            tell=self._note_done,
            owners=lambda: [each.name for each in self.operators.list()],
        )
        consent = Consent(
            self.operators,
            lambda name, by, details: self._note(name, details),
            lambda name, by, details: self._note_done(name, details),
        )
        self.forms = TokenForms(self.tokens, self.operators, lambda: [SOURCE], consent)
        self.pairings = PairingRequests(self.service, self.forms, consent)
        self.accounts = OperatorAccounts(self.operators, lambda: [SOURCE], consent)
        self.operators.add("ada", YES, (RoleGrant("admin"),), "test")
        for name in ("eve", "bob"):
            self.operators.add(name, YES, (RoleGrant("viewer"),), "test")
        self.ada, _ = self.operators.sign_in("ada", YES, "127.0.0.1", "test")

    def _note(self, name: str, details: Mapping[str, str]) -> None:
        if self.fails:
            raise TidegateError(Code.AUDIT_UNAVAILABLE, "The record cannot be written")
        self.done.append(name)

    def _note_done(self, name: str, details: Mapping[str, str]) -> None:
        self.done.append(name)

    def ask(self, client: str) -> str:
        challenge = challenge_of(make_verifier())
        wanted = TokenRights(Scope.READ_ONLY, frozenset({"shop"}))
        return self.service.ask(client, challenge, wanted, "127.0.0.1").id

    def rights(self) -> Any:
        """All that gives somebody a right."""
        return (
            self.tokens.list(),
            [(each.name, each.roles, each.hash) for each in self.operators.list()],
            self.service.waiting(),
        )


@pytest.fixture
def desk(tmp_path: Path) -> Iterator[Desk]:
    desk = Desk(tmp_path)
    yield desk
    desk.tokens.close()
    desk.state.close()


class Given(NamedTuple):
    token: dict[str, Any]
    asked: str
    invited: SignedIn


WHERE = ("127.0.0.1",)
GIVES: dict[str, Callable[[Desk, Given], object]] = {
    "make a token": lambda desk, given: desk.forms.make(
        MakeToken(name="new", scope=Scope.READ_ONLY, passphrase=YES), desk.ada, *WHERE
    ),
    "widen a token": lambda desk, given: desk.forms.change(
        given.token["id"],
        ChangeToken(scope=Scope.FULL_ACCESS, version=given.token["version"], passphrase=YES),
        desk.ada,
        *WHERE,
    ),
    "approve a request": lambda desk, given: desk.pairings.approve(
        given.asked,
        Approve(scope=Scope.READ_ONLY, sources=["shop"], passphrase=YES),
        desk.ada,
        *WHERE,
    ),
    "invite": lambda desk, given: desk.accounts.invite(
        Invite("zoe", [GivenRole("viewer")], YES), desk.ada, *WHERE
    ),
    "link": lambda desk, given: desk.accounts.invite_again("ivy", Confirmed(YES), desk.ada, *WHERE),
    "roles": lambda desk, given: desk.accounts.set_roles(
        "eve",
        ChangeRoles([GivenRole("admin")], [GivenRole("viewer")], YES),
        desk.ada,
        *WHERE,
    ),
    "first passphrase": lambda desk, given: desk.accounts.set_first_passphrase(
        FirstPassphrase("a new passphrase"), given.invited
    ),
}
TAKES: dict[str, Callable[[Desk, Given], object]] = {
    "limit a token": lambda desk, given: desk.forms.change(
        given.token["id"],
        ChangeToken(scope=Scope.READ_ONLY, sources=["shop"], version=given.token["version"]),
        desk.ada,
        *WHERE,
    ),
    "revoke a token": lambda desk, given: desk.forms.revoke(given.token["id"], desk.ada, *WHERE),
    "deny a request": lambda desk, given: desk.pairings.deny(given.asked, desk.ada, *WHERE),
    "remove an operator": lambda desk, given: desk.accounts.remove(
        "eve", Confirmed(YES), desk.ada, *WHERE
    ),
}


def prepared(desk: Desk) -> Given:
    body = MakeToken(name="old", scope=Scope.READ_WRITE, sources=["shop"], passphrase=YES)
    made = desk.forms.make(body, desk.ada, *WHERE)
    invite = Invite("ivy", [GivenRole("viewer")], YES)
    link = desk.accounts.invite(invite, desk.ada, *WHERE)["link"]
    invited, _ = desk.operators.sign_in_by_link(link, "127.0.0.1", "test")
    return Given(made["token"], desk.ask("laptop"), invited)


@pytest.mark.parametrize("name", GIVES)
def test_no_right_is_given_while_the_record_cannot_be_written(desk: Desk, name: str) -> None:
    given = prepared(desk)
    before, desk.fails = desk.rights(), True
    with pytest.raises(TidegateError) as refused:
        GIVES[name](desk, given)
    assert refused.value.code is Code.AUDIT_UNAVAILABLE
    assert desk.rights() == before
    desk.fails = False
    GIVES[name](desk, given)


@pytest.mark.parametrize("name", TAKES)
def test_any_right_is_taken_away_while_the_record_cannot_be_written(desk: Desk, name: str) -> None:
    given = prepared(desk)
    before, desk.fails = desk.rights(), True
    TAKES[name](desk, given)
    assert desk.rights() != before
