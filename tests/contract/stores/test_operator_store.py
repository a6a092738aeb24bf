"""The contract of `OperatorStore`."""

from concurrent.futures import ThreadPoolExecutor

import pytest
from msgspec import structs

from tidegate.errors import TidegateError
from tidegate.model.actors import RoleGrant
from tidegate.store.records import OperatorEntry, OperatorSession

ADA = OperatorEntry(
    *("o1", "Ada", b"salt", b"hash", (RoleGrant("approver", frozenset({"shop"})),), 100.0)
)
SESSION = OperatorSession(
    *("s1", "o1", "link", 100.0, 100.0, 1000.0, None, "127.0.0.1", "Chromium")
)


def test_an_operator_comes_back_as_it_was_added(state, other):
    state.operators.add(ADA)
    assert other.operators.list() == (ADA,)


def test_a_name_is_taken_in_any_case_of_its_letters(state, other):
    state.operators.add(ADA)
    with pytest.raises(TidegateError, match="already an operator"):
        other.operators.add(structs.replace(ADA, id="o2", name="ADA"))
    assert len(state.operators.list()) == 1


def test_only_what_is_named_of_an_operator_changes(state, other):
    state.operators.add(ADA)
    state.operators.add_link(b"l", "o1", 200.0, 100.0)
    changed = structs.replace(ADA, salt=b"s", hash=b"h", inviter="o7")
    given = structs.replace(changed, roles=(RoleGrant("admin"),), roles_by="operator:eve")
    assert state.operators.change(given, ("salt", "hash", "inviter"))
    assert other.operators.list() == (changed,)
    assert state.operators.change(given, ("roles", "roles_by"))
    assert other.operators.list() == (given,)
    assert not state.operators.change(structs.replace(ADA, id="o9"), ("salt",), ends_access=True)
    assert other.operators.use_link(b"l", 150.0) == "o1"


def test_links_and_sessions_end_with_the_change_that_ends_them(state, other):
    state.operators.add(ADA)
    state.operators.add_link(b"l", "o1", 200.0, 100.0)
    state.operators.add_session(SESSION, b"s")
    assert state.operators.change(ADA, ("hash",), ends_access=True)
    assert other.operators.use_link(b"l", 150.0) is None
    assert other.operators.sessions() == ()


def test_a_link_is_used_by_one_of_all_who_open_it_at_once(state, other):
    state.operators.add(ADA)
    state.operators.add_link(b"l", "o1", 200.0, 100.0)
    with ThreadPoolExecutor(8) as pool:
        found = list(pool.map(lambda one: one.operators.use_link(b"l", 150.0), [state, other] * 8))
    assert [one for one in found if one] == ["o1"]


def test_a_link_that_has_expired_signs_in_no_more(state):
    state.operators.add(ADA)
    state.operators.add_link(b"l", "o1", 200.0, 100.0)
    assert state.operators.use_link(b"l", 200.0) is None
    assert state.operators.use_link(b"other", 150.0) is None


def test_a_session_is_found_by_its_secret_and_ends_alone_or_with_all_of_its_operator(state, other):
    state.operators.add(ADA)
    for number in "123":
        state.operators.add_session(structs.replace(SESSION, id=f"s{number}"), number.encode())
    assert other.operators.session(b"1") == SESSION
    assert other.operators.session(b"9") is None
    other.operators.touch_session("s1", 150.0, 140.0)
    found = state.operators.session(b"1")
    assert (found.seen_at, found.confirmed_at) == (150.0, 140.0)
    assert state.operators.end_sessions(id="s1") == 1
    assert other.operators.session(b"1") is None
    assert state.operators.end_sessions(operator="o1") == 2
    assert other.operators.sessions() == ()


def test_sessions_that_have_ended_go_when_another_begins(state):
    state.operators.add(ADA)
    state.operators.add_session(SESSION, b"1")
    later = structs.replace(SESSION, id="s2", created_at=2000.0, seen_at=2000.0, ends_at=3000.0)
    state.operators.add_session(later, b"2")
    assert state.operators.sessions() == (later,)


def test_links_and_sessions_go_with_their_operator(state, other):
    state.operators.add(ADA)
    state.operators.add_link(b"l", "o1", 200.0, 100.0)
    state.operators.add_session(SESSION, b"1")
    assert other.operators.remove("o1")
    assert state.operators.use_link(b"l", 150.0) is None
    assert state.operators.session(b"1") is None
    assert not state.operators.remove("o1")
