"""The contract of `PairingStore`."""

from concurrent.futures import ThreadPoolExecutor

from tidegate.model.actors import Scope
from tidegate.store.records import Pairing, TokenRights

WANTED = TokenRights(
    Scope.READ_WRITE, frozenset({"shop"}), frozenset({"prod"}), 60.0, frozenset({"t"})
)


def pairing(id="AB12", **fields):
    values = {"client": "claude", "address": "10.0.0.1", "challenge": "c", "wanted": WANTED}
    return Pairing(id, asked_at=100.0, expires_at=200.0, **{**values, **fields})


def add(state, one, digest=b"d", most=9, most_of_origin=9):
    return state.pairings.add(
        one, digest, most=most, most_of_origin=most_of_origin, origin=lambda address: address
    )


def test_a_request_is_found_by_id_and_by_the_digest_of_its_code(state, other):
    assert add(state, pairing())
    assert other.pairings.find("AB12") == other.pairings.by_digest(b"d") == pairing()
    assert other.pairings.list() == (pairing(),)
    assert other.pairings.find("CD34") is other.pairings.by_digest(b"e") is None


def test_pending_requests_are_bounded_per_address_and_in_all(state):
    assert add(state, pairing("1"), b"1", most=2, most_of_origin=1)
    assert not add(state, pairing("2"), b"2", most=2, most_of_origin=1)
    assert add(state, pairing("3", address="10.0.0.2"), b"3", most=2, most_of_origin=1)
    assert not add(state, pairing("4", address="10.0.0.3"), b"4", most=2, most_of_origin=1)


def test_a_request_is_decided_once_and_not_after_it_expired(state, other):
    add(state, pairing())
    assert not state.pairings.resolve("AB12", "approved", 200.0)
    with ThreadPoolExecutor(8) as pool:
        done = list(
            pool.map(
                lambda one: one[0].pairings.resolve("AB12", one[1], 150.0, granted=WANTED),
                [(state, "approved"), (other, "denied")] * 8,
            )
        )
    assert done.count(True) == 1


def test_a_code_is_exchanged_once(state, other):
    add(state, pairing())
    assert not state.pairings.end("AB12", "approved", "exchanged")
    assert state.pairings.resolve(
        "AB12", "approved", 150.0, expires_at=300.0, token_name="claude", granted=WANTED
    )
    found = other.pairings.find("AB12")
    assert (found.granted, found.token_name, found.expires_at) == (WANTED, "claude", 300.0)
    with ThreadPoolExecutor(8) as pool:
        ended = list(
            pool.map(
                lambda one: one.pairings.end("AB12", "approved", "exchanged"), [state, other] * 8
            )
        )
    assert ended.count(True) == 1


def test_what_expired_is_forgotten(state, other):
    add(state, pairing())
    state.pairings.forget(200.0)
    assert len(other.pairings.list()) == 1
    state.pairings.forget(201.0)
    assert other.pairings.list() == ()
