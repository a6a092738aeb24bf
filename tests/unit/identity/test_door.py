"""The door: who is turned away, who is locked out, and what of it is told."""

import pytest

from tidegate.errors import Code, TidegateError
from tidegate.identity.authenticator import Authenticator
from tidegate.identity.tokens import Tokens
from tidegate.model.actors import Scope
from tidegate.store.sqlite.state import SqliteState

GUESS = "tg_" + "a" * 43


class House:
    def __init__(self, path):
        self.now = 1000.0
        self.told = []
        self.state = SqliteState(path)
        self.tokens = Tokens(self.state.tokens, lambda: self.now)
        self.authenticator = Authenticator(
            self.tokens, lambda *words: self.told.append(words), clock=lambda: self.now
        )

    def code(self, bearer, address="10.0.0.1"):
        with pytest.raises(TidegateError) as caught:
            self.authenticator.authenticate(bearer, address)
        return caught.value.code

    def close(self):
        self.tokens.close()
        self.state.close()


@pytest.fixture
def house(tmp_path):
    house = House(tmp_path / "state.db")
    yield house
    house.close()


def test_nobody_comes_in_without_a_token(house):
    assert house.code(None) is Code.AUTH_MISSING
    assert house.told == []


def test_the_sixth_guess_of_an_address_is_not_even_looked_at(house):
    assert [house.code(GUESS) for _ in range(6)] == [Code.AUTH_INVALID] * 5 + [Code.AUTH_LOCKED_OUT]
    assert house.code(GUESS, "10.0.0.2") is Code.AUTH_INVALID
    house.now += 300
    assert house.code(GUESS) is Code.AUTH_INVALID


def test_failed_logins_and_the_lockout_are_told_without_the_token(house):
    for _ in range(7):
        house.code(GUESS)
    failed = ("login.failed", {"address": "10.0.0.1", "code": "auth.invalid"})
    assert house.told == [failed] * 5 + [("login.locked_out", {"address": "10.0.0.1"})]


def test_an_expired_token_counts_as_a_failure_and_says_that_it_has_expired(house):
    plaintext, _ = house.tokens.create("old", Scope.READ_ONLY, None, house.now + 1)
    house.now += 1
    assert house.code(plaintext) is Code.AUTH_EXPIRED
    assert house.told[0][1]["code"] == "auth.expired"


def test_who_holds_a_token_comes_in_from_a_locked_address(house):
    plaintext, entry = house.tokens.create("good", Scope.READ_ONLY)
    for _ in range(6):
        house.code(GUESS)
    assert house.authenticator.authenticate(plaintext, "10.0.0.1").id == entry.id


def test_a_store_that_fails_is_no_failed_login(house):
    house.state.close()
    for _ in range(6):
        assert house.code(GUESS) is Code.STATE_FAILED
    assert house.told == []
