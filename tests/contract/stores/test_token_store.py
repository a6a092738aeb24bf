"""The contract of `TokenStore`, and when the generations change."""

import pytest
from msgspec import structs

from tidegate.errors import Code, TidegateError
from tidegate.model.actors import Scope
from tidegate.model.replies import HistoryEntry
from tidegate.model.sources import Source
from tidegate.store.records import TokenEntry


def source(name="shop", **fields):
    values = {"id": f"id-{name}", "url": "sqlite:///a.db", "engine": "sqlite", "dialect": "sqlite"}
    return Source(name=name, **{**values, **fields})


def token(name="claude", **fields):
    values = {
        "id": f"tok_{name}", "prefix": "tg_abcde", "scope": Scope.READ_ONLY, "sources": None,
        "created_at": 100.0,
    }  # fmt: skip
    return TokenEntry(name=name, **{**values, **fields})


def test_generations_change_with_the_rights_in_their_area_for_everyone(state, other):
    def generations():
        return [(h.sources.generation(), h.tokens.generation()) for h in (state, other)]

    start = generations()
    state.sources.add(source())
    added = generations()
    assert all(new[0] != old[0] and new[1] == old[1] for new, old in zip(added, start, strict=True))
    state.tokens.add(token(), b"d" * 32)
    tokened = generations()
    assert all(
        new[0] == old[0] and new[1] != old[1] for new, old in zip(tokened, added, strict=True)
    )
    state.tokens.revoke("claude", 200.0)
    assert all(new[1] != old[1] for new, old in zip(generations(), tokened, strict=True))


def test_history_and_use_are_no_change_of_rights(state, other):
    state.tokens.add(token(), b"d" * 32)
    before = [handle.tokens.generation() for handle in (state, other)]
    state.history.add([HistoryEntry(text="SELECT 1", source="shop", at=1.0)])
    state.tokens.touch({"tok_claude": 150.0})
    assert [handle.tokens.generation() for handle in (state, other)] == before


def test_a_token_is_found_by_digest_alone_and_comes_back_as_it_was(state, other):
    kept = token(
        scope=Scope.FULL_ACCESS,
        sources=frozenset({"b", "a"}),
        expires_at=500.5,
        tags=frozenset({"prod"}),
        tables=frozenset({"orders", "shop:a.b"}),
    )
    state.tokens.add(kept, b"d" * 32)
    for handle in (state, other):
        assert handle.tokens.by_digest(b"d" * 32) == kept
        assert handle.tokens.by_digest(b"e" * 32) is None
        assert handle.tokens.list() == (kept,)


def test_an_empty_allowlist_is_not_every_source(state):
    state.tokens.add(token("none", sources=frozenset()), b"1" * 32)
    state.tokens.add(token("all"), b"2" * 32)
    assert [entry.sources for entry in state.tokens.list()] == [frozenset(), None]


def test_an_empty_list_of_tables_is_not_every_table(state):
    state.tokens.add(token("none", tables=frozenset()), b"1" * 32)
    state.tokens.add(token("all"), b"2" * 32)
    assert [entry.tables for entry in state.tokens.list()] == [frozenset(), None]


def test_an_active_name_is_taken_and_a_revoked_or_expired_one_is_free(state):
    state.tokens.add(token(expires_at=200.0), b"1" * 32)
    with pytest.raises(TidegateError) as caught:
        state.tokens.add(token(id="2", created_at=199.0), b"2" * 32)
    assert caught.value.code is Code.ARGUMENT_INVALID
    state.tokens.add(token(id="3", created_at=200.0), b"3" * 32)
    assert [entry.revoked_at for entry in state.tokens.list()] == [200.0, None]
    state.tokens.revoke("claude", 300.0)
    state.tokens.add(token(id="4", created_at=400.0), b"4" * 32)
    assert [entry.id for entry in state.tokens.list()] == ["tok_claude", "3", "4"]


def test_revocation_is_for_good_and_the_token_stays_listed(state, other):
    state.tokens.add(token(), b"d" * 32)
    assert state.tokens.revoke("claude", 200.0) == token(revoked_at=200.0)
    assert state.tokens.revoke("claude", 300.0) is None
    for handle in (state, other):
        assert handle.tokens.by_digest(b"d" * 32) == token(revoked_at=200.0)
        assert handle.tokens.list() == (token(revoked_at=200.0),)


def test_other_rights_of_a_token_count_for_everyone_at_once(state, other):
    state.tokens.add(token(sources=frozenset({"a"})), b"d" * 32)
    state.tokens.touch({"tok_claude": 150.0})
    before = [handle.tokens.generation() for handle in (state, other)]
    now = token(
        scope=Scope.FULL_ACCESS, sources=None, tags=frozenset({"x"}), tables=frozenset(),
        expires_at=900.0,
    )  # fmt: skip
    assert state.tokens.change(now, token(sources=frozenset({"a"})))
    for handle, old in zip((state, other), before, strict=True):
        assert handle.tokens.generation() != old
        (kept,) = handle.tokens.list()
        assert kept == structs.replace(now, last_used_at=150.0)
        assert handle.tokens.by_digest(b"d" * 32) == kept


def test_rights_that_were_changed_meanwhile_are_not_overwritten(state, other):
    was = token()
    state.tokens.add(was, b"d" * 32)
    assert other.tokens.change(token(tables=frozenset({"orders"})), was)
    assert not state.tokens.change(token(scope=Scope.FULL_ACCESS), was)
    assert state.tokens.list() == (token(tables=frozenset({"orders"})),)
    state.tokens.revoke("claude", 200.0)
    revoked = token(tables=frozenset({"orders"}))
    assert not other.tokens.change(token(), revoked)
    assert state.tokens.list()[0].tables == frozenset({"orders"})


def test_the_time_of_last_use_never_goes_back(state):
    state.tokens.add(token(), b"d" * 32)
    state.tokens.touch({"tok_claude": 150.0, "unknown": 1.0})
    state.tokens.touch({"tok_claude": 140.0})
    assert state.tokens.list()[0].last_used_at == 150.0


def test_closing_twice_is_harmless_and_a_closed_store_says_so(state):
    state.history.search([], sources=None, since=None, until=None, limit=1)
    state.close()
    state.close()
    with pytest.raises(TidegateError) as caught:
        state.tokens.generation()
    assert caught.value.code is Code.STATE_FAILED
