"""The authenticator: who is refused, who is locked out, and what is recorded."""

import asyncio

import pytest

from tidegate.errors import Code, TidegateError
from tidegate.identity.authenticator import Authenticator
from tidegate.identity.tokens import Tokens
from tidegate.model.actors import Actor, Scope
from tidegate.store.records import TokenRights
from tidegate.store.sqlite.state import SqliteState

GUESS = "tg_" + "a" * 43


class Harness:
    def __init__(self, path):
        self.now = 1000.0
        self.reported = []
        self.state = SqliteState(path)
        self.tokens = Tokens(self.state.tokens, lambda: self.now)
        self.authenticator = Authenticator(
            self.tokens, lambda *words: self.reported.append(words), clock=lambda: self.now
        )

    def admit(self, bearer, address="10.0.0.1"):
        async def wait():
            found = self.authenticator.authenticate(bearer, address)
            return found if isinstance(found, Actor) else await found

        return asyncio.run(wait())

    def code(self, bearer, address="10.0.0.1"):
        with pytest.raises(TidegateError) as caught:
            self.admit(bearer, address)
        return caught.value.code

    def close(self):
        self.tokens.close()
        self.state.close()


@pytest.fixture
def harness(tmp_path):
    harness = Harness(tmp_path / "state.db")
    yield harness
    harness.close()


def test_no_one_comes_in_without_a_token(harness):
    assert harness.code(None) is Code.AUTH_MISSING
    assert harness.reported == []


def test_the_sixth_guess_of_an_address_is_not_even_looked_at(harness):
    assert [harness.code(GUESS) for _ in range(6)] == [Code.AUTH_INVALID] * 5 + [
        Code.AUTH_LOCKED_OUT
    ]
    assert harness.code(GUESS, "10.0.0.2") is Code.AUTH_INVALID
    harness.now += 300
    assert harness.code(GUESS) is Code.AUTH_INVALID


def test_failed_logins_and_the_lockout_are_reported_without_the_token(harness):
    for _ in range(7):
        harness.code(GUESS)
    failed = ("login.failed", {"address": "10.0.0.1", "code": "auth.invalid"})
    assert harness.reported == [failed] * 5 + [("login.locked_out", {"address": "10.0.0.1"})]


def test_an_expired_token_counts_as_a_failure_and_says_that_it_has_expired(harness):
    plaintext, _ = harness.tokens.create(
        "old", TokenRights(Scope.READ_ONLY), expires_at=harness.now + 1
    )
    harness.now += 1
    assert harness.code(plaintext) is Code.AUTH_EXPIRED
    assert harness.reported[0][1]["code"] == "auth.expired"


def test_who_holds_a_token_comes_in_from_a_locked_address(harness):
    plaintext, entry = harness.tokens.create("good", TokenRights(Scope.READ_ONLY))
    for _ in range(6):
        harness.code(GUESS)
    assert harness.admit(plaintext).id == entry.id


def test_a_store_that_fails_is_no_failed_login(harness):
    harness.state.close()
    for _ in range(6):
        assert harness.code(GUESS) is Code.STATE_FAILED
    assert harness.reported == []


def test_a_token_is_read_once_until_rights_change(harness):
    plaintext, entry = harness.tokens.create("good", TokenRights(Scope.READ_ONLY))
    authenticate = harness.authenticator.authenticate
    assert harness.admit(plaintext).id == entry.id
    assert authenticate(plaintext, "10.0.0.1").id == entry.id  # at once, from memory
    harness.tokens.create("other", TokenRights(Scope.READ_ONLY))
    assert harness.tokens.known(plaintext) is None
    assert harness.admit(plaintext).id == entry.id
    harness.tokens.revoke("good")
    assert harness.code(plaintext) is Code.AUTH_INVALID
