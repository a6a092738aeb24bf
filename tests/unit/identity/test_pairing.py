"""Pairing: one person's yes, one verifier, one token. Whatever else is sent makes no token."""

import threading

import pytest

from tidegate.errors import Code, TidegateError
from tidegate.identity.pairing import (
    CODE_S,
    MOST,
    MOST_OF_ADDRESS,
    PairingService,
    Refused,
    challenge_of,
    make_verifier,
)
from tidegate.identity.tokens import Records, Tokens
from tidegate.model.actors import Scope
from tidegate.model.deadlines import Clocks
from tidegate.store.records import TokenRights
from tidegate.store.sqlite.state import SqliteState

VERIFIER = "v" * 43
WANTED = TokenRights(Scope.READ_WRITE, frozenset({"shop"}), frozenset({"eu"}), 3600.0)


class Harness:
    def __init__(self, directory):
        self.now = 1_000_000.0
        self.noted = []
        self.reported = []
        self.state = SqliteState(directory / "state.db")
        self.tokens = Tokens(self.state.tokens, self.clock, records=Records(self.note, self.note))
        self.pairing_service = self.another()

    def another(self):
        """The pairer of another process, with lockouts of its own."""
        return PairingService(
            self.state.pairings,
            self.tokens,
            records=Records(self.note, self.note),
            tell=lambda name, details: self.reported.append((name, dict(details))),
            clocks=Clocks(wall=self.clock),
        )

    def clock(self):
        return self.now

    def note(self, name, details):
        self.noted.append((name, dict(details)))

    def ask(self, client="claude", wanted=WANTED, address="10.0.0.1", verifier=VERIFIER):
        return self.pairing_service.ask(client, challenge_of(verifier), wanted, address)

    def refusal(self, code, verifier=VERIFIER, address="10.0.0.1"):
        with pytest.raises(Refused) as caught:
            self.pairing_service.exchange(code, verifier, address)
        return caught.value.reason

    def close(self):
        self.tokens.close()
        self.state.close()


@pytest.fixture
def harness(tmp_path):
    harness = Harness(tmp_path)
    yield harness
    harness.close()


def error_of(call, *given):
    with pytest.raises(TidegateError) as caught:
        call(*given)
    return caught.value.code


def test_an_approved_request_becomes_the_token_that_was_asked_for(harness):
    asked = harness.ask()
    assert harness.refusal(asked.code) == "pending"
    harness.pairing_service.approve(asked.id)
    actor = harness.tokens.verify(
        harness.pairing_service.exchange(asked.code, VERIFIER, "10.0.0.1")
    )
    assert (actor.name, actor.scope) == ("claude", Scope.READ_WRITE)
    assert (actor.sources, actor.tags) == (frozenset({"shop"}), frozenset({"eu"}))
    assert actor.expires_at == harness.now + 3600


def test_the_operator_grants_less_under_another_name(harness):
    asked = harness.ask()
    less = TokenRights(Scope.READ_ONLY, frozenset({"demo"}), None, 60.0)
    harness.pairing_service.approve(asked.id, less, "narrow")
    actor = harness.tokens.verify(
        harness.pairing_service.exchange(asked.code, VERIFIER, "10.0.0.1")
    )
    assert (actor.name, actor.scope) == ("narrow", Scope.READ_ONLY)
    assert (actor.sources, actor.tags) == (frozenset({"demo"}), None)


def test_the_operator_narrows_a_token_to_tables(harness):
    asked = harness.ask()
    harness.pairing_service.approve(
        asked.id, TokenRights(Scope.READ_ONLY, tables=frozenset({"orders"}))
    )
    actor = harness.tokens.verify(
        harness.pairing_service.exchange(asked.code, VERIFIER, "10.0.0.1")
    )
    assert actor.tables == frozenset({"orders"})


def test_more_than_was_asked_for_is_not_granted(harness):
    asked = harness.ask()
    given = (asked.id, TokenRights(Scope.FULL_ACCESS))
    assert error_of(harness.pairing_service.approve, *given) is Code.ARGUMENT_INVALID
    assert harness.refusal(asked.code) == "pending"


def test_a_code_works_once(harness):
    asked = harness.ask()
    harness.pairing_service.approve(asked.id)
    harness.pairing_service.exchange(asked.code, VERIFIER, "10.0.0.1")
    assert harness.refusal(asked.code) == "gone"
    assert len(harness.tokens.list()) == 1


def test_of_many_who_fetch_at_once_one_gets_a_token(harness):
    asked = harness.ask()
    harness.pairing_service.approve(asked.id)
    got, barrier = [], threading.Barrier(8)

    def fetch():
        pairing_service = harness.another()
        barrier.wait()
        try:
            got.append(pairing_service.exchange(asked.code, VERIFIER, "10.0.0.1"))
        except Refused as refused:
            got.append(refused.reason)

    threads = [threading.Thread(target=fetch) for _ in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert sorted(got)[:7] == ["gone"] * 7
    assert len(harness.tokens.list()) == 1


@pytest.mark.parametrize("approved", [False, True])
def test_a_wrong_verifier_spoils_the_code(harness, approved):
    asked = harness.ask()
    if approved:
        harness.pairing_service.approve(asked.id)
    assert harness.refusal(asked.code, "w" * 43) == "mismatch"
    assert harness.refusal(asked.code) == "gone"
    assert harness.pairing_service.waiting() == ()
    assert error_of(harness.pairing_service.approve, asked.id) is Code.ARGUMENT_INVALID
    assert harness.tokens.list() == ()


def test_a_request_that_no_one_answers_ends_after_five_minutes(harness):
    asked = harness.ask()
    harness.now += CODE_S
    assert harness.refusal(asked.code) == "gone"
    assert harness.pairing_service.waiting() == ()
    assert error_of(harness.pairing_service.approve, asked.id) is Code.ARGUMENT_INVALID


def test_an_approved_code_ends_five_minutes_after_the_approval(harness):
    asked = harness.ask()
    harness.now += CODE_S - 1
    harness.pairing_service.approve(asked.id)
    harness.now += CODE_S
    assert harness.refusal(asked.code) == "gone"
    assert harness.tokens.list() == ()


def test_a_denied_request_stays_denied(harness):
    asked = harness.ask()
    harness.pairing_service.deny(asked.id)
    assert harness.refusal(asked.code) == "denied"
    assert error_of(harness.pairing_service.approve, asked.id) is Code.ARGUMENT_INVALID
    assert harness.tokens.list() == ()


def test_an_unknown_code_is_unknown_and_five_failures_lock_the_address_out(harness):
    asked = harness.ask()
    for _ in range(5):
        assert harness.refusal("c" * 43) == "unknown"
    given = (asked.code, VERIFIER, "10.0.0.1")
    assert error_of(harness.pairing_service.exchange, *given) is Code.AUTH_LOCKED_OUT
    assert error_of(harness.ask) is Code.AUTH_LOCKED_OUT
    harness.pairing_service.approve(asked.id)
    harness.now += 899
    assert error_of(harness.pairing_service.exchange, *given) is Code.AUTH_LOCKED_OUT
    harness.now += 1
    assert harness.refusal(asked.code) == "gone"
    assert harness.tokens.list() == ()


def test_an_address_has_ten_requests_waiting_and_all_of_them_fifty(harness):
    for number in range(MOST):
        harness.ask(address=f"10.0.0.{number // MOST_OF_ADDRESS}")
    assert error_of(harness.ask, "one", WANTED, "10.0.0.0") is Code.LIMIT_RATE
    assert error_of(harness.ask, "one", WANTED, "10.9.9.9") is Code.LIMIT_RATE
    assert len(harness.pairing_service.waiting()) == MOST
    harness.now += CODE_S
    assert harness.ask("one", WANTED, "10.9.9.9").id


def test_the_addresses_of_one_ipv6_network_share_what_may_wait(harness):
    for number in range(MOST_OF_ADDRESS):
        harness.ask(address=f"2001:db8:1:2::{number:x}")
    assert error_of(harness.ask, "one", WANTED, "2001:db8:1:2:ffff::1") is Code.LIMIT_RATE
    assert len(harness.pairing_service.waiting()) == MOST_OF_ADDRESS
    assert harness.ask("one", WANTED, "2001:db8:1:3::1").id


@pytest.mark.parametrize(
    "challenge",
    ["", "a" * 42, "a" * 44, "a" * 42 + "=", "a" * 42 + "+", "a" * 42 + "\n", "ä" * 43],
)
def test_a_challenge_is_43_characters_of_base64url(harness, challenge):
    given = ("claude", challenge, WANTED, "10.0.0.1")
    assert error_of(harness.pairing_service.ask, *given) is Code.ARGUMENT_INVALID
    assert harness.pairing_service.waiting() == ()


@pytest.mark.parametrize("verifier", ["", "v" * 42, "v" * 129, "v" * 42 + " ", "v" * 43 + "\n"])
def test_a_verifier_is_43_to_128_unreserved_characters(harness, verifier):
    asked = harness.ask()
    harness.pairing_service.approve(asked.id)
    given = (asked.code, verifier, "10.0.0.1")
    assert error_of(harness.pairing_service.exchange, *given) is Code.ARGUMENT_INVALID
    assert harness.tokens.list() == ()


@pytest.mark.parametrize("name", ["", "a\nb", "claude\u202eecalp", "a\x9b2J", "x" * 65])
def test_a_name_that_could_deceive_the_operator_is_refused(harness, name):
    assert error_of(harness.ask, name) is Code.ARGUMENT_INVALID
    wanted = TokenRights(sources=frozenset({name}))
    assert error_of(harness.ask, "claude", wanted) is Code.ARGUMENT_INVALID
    assert harness.pairing_service.waiting() == ()


def test_a_name_that_is_taken_is_refused_before_anything_is_approved(harness):
    harness.tokens.create("claude", TokenRights(Scope.READ_ONLY))
    asked = harness.ask()
    assert error_of(harness.pairing_service.approve, asked.id) is Code.ARGUMENT_INVALID
    harness.pairing_service.approve(asked.id, name="claude 2")
    assert harness.pairing_service.exchange(asked.code, VERIFIER, "10.0.0.1")


def test_an_id_is_found_however_it_is_written(harness):
    asked = harness.ask()
    assert harness.pairing_service.find(asked.id.lower().replace("-", "")).client == "claude"


def test_neither_the_code_nor_the_token_is_in_the_state(harness, tmp_path):
    asked = harness.ask()
    harness.pairing_service.approve(asked.id)
    token = harness.pairing_service.exchange(asked.code, VERIFIER, "10.0.0.1")
    harness.close()
    for path in tmp_path.iterdir():
        content = path.read_bytes()
        for secret in (asked.code, token, VERIFIER):
            assert secret.encode() not in content


def test_every_step_is_on_record_without_a_secret(harness):
    asked, other = harness.ask(), harness.ask("other")
    harness.pairing_service.deny(other.id)
    harness.pairing_service.approve(asked.id)
    token = harness.pairing_service.exchange(asked.code, VERIFIER, "10.0.0.1")
    harness.refusal("c" * 43)
    assert [name for name, _ in harness.reported] == [
        "pairing.asked",
        "pairing.asked",
        "pairing.failed",
    ]
    assert [name for name, _ in harness.noted] == [
        "pairing.denied", "pairing.approved", "pairing.exchanged", "token.created",
    ]  # fmt: skip
    said = repr(harness.noted + harness.reported)
    assert asked.code not in said
    assert token not in said


def test_where_the_record_cannot_be_written_nothing_is_granted(harness):
    asked = harness.ask()

    def fail(name, details):
        raise TidegateError(Code.AUDIT_UNAVAILABLE, "the disk is full")

    harness.note = fail
    pairing_service = harness.another()
    assert error_of(pairing_service.approve, asked.id) is Code.AUDIT_UNAVAILABLE
    assert harness.refusal(asked.code) == "pending"


def test_a_verifier_made_here_fits_its_challenge_as_the_standard_says():
    assert challenge_of("dBjftJeZ4CVP-mB92K27uhbUJU1p1r_wW1gFWFOEjXk") == (
        "E9Melhoa2OwvFrEMTJguCHaoeK1t8URWbuGJSstw-cM"
    )
    assert len({make_verifier() for _ in range(20)}) == 20
    assert len(challenge_of(make_verifier())) == 43
