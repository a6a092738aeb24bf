"""The contract of `Store`, held by every store. `other` is the same state, opened once more."""

import pytest

from tidegate.actors import Scope
from tidegate.errors import Code, GateError
from tidegate.sources import Mask, Source
from tidegate.store.api import HistoryEntry, TokenEntry
from tidegate.store.sqlite import SqliteStore

STORES = {"sqlite": lambda directory: SqliteStore(directory / "state.db")}


@pytest.fixture(params=sorted(STORES))
def open_store(request, tmp_path):
    opened = []

    def open_store():
        opened.append(STORES[request.param](tmp_path))
        return opened[-1]

    yield open_store
    for store in opened:
        store.close()


@pytest.fixture
def store(open_store):
    return open_store()


@pytest.fixture
def other(store, open_store):
    return open_store()


def source(name="shop", **fields):
    values = {"id": f"id-{name}", "url": "sqlite:///a.db", "engine": "sqlite", "dialect": "sqlite"}
    return Source(name=name, **{**values, **fields})


def token(name="claude", **fields):
    values = {
        "id": f"tok_{name}", "prefix": "tg_abcde", "scope": Scope.READ_ONLY, "sources": None,
        "created_at": 100.0,
    }  # fmt: skip
    return TokenEntry(name=name, **{**values, **fields})


def entries(store, *words, sources=None, since=None, until=None, limit=100):
    found = store.search_history(words, sources=sources, since=since, until=until, limit=limit)
    return [entry.text for entry in found]


def test_a_source_comes_back_as_it_was_saved(store, other):
    saved = source(
        external_access="readWrite", ai_policy="never", safe_mode="alert", tags=("a", "b ä")
    )
    store.add_source(saved)
    for handle in (store, other):
        assert handle.source("shop") == saved
        assert handle.sources() == (saved,)


def test_sources_are_listed_by_name(store):
    for name in ("b", "a", "C"):
        store.add_source(source(name))
    assert [each.name for each in store.sources()] == ["C", "a", "b"]


def test_a_name_or_id_that_is_taken_is_refused_and_nothing_changes(store):
    store.add_source(source())
    for taken in (source(url="sqlite:///b.db", id="new"), source("new", id="id-shop")):
        with pytest.raises(GateError) as caught:
            store.add_source(taken)
        assert caught.value.code is Code.ARGUMENT_INVALID
    assert store.sources() == (source(),)


def test_a_removed_source_is_gone_for_everyone_at_once(store, other):
    store.add_source(source())
    assert other.source("shop") is not None
    assert other.sources()
    assert store.remove_source("shop")
    assert not store.remove_source("shop")
    for handle in (store, other):
        assert handle.source("shop") is None
        assert handle.sources() == ()


def test_a_replaced_source_is_new_for_everyone_at_once(store, other):
    store.add_source(source())
    assert other.source("shop").ai_policy == "alwaysAllow"
    store.remove_source("shop")
    store.add_source(source(ai_policy="never"))
    assert other.source("shop").ai_policy == "never"
    assert store.source("shop").ai_policy == "never"


def test_a_changed_source_keeps_its_id_and_is_new_for_everyone_at_once(store, other):
    store.add_source(source())
    assert other.source("shop").safe_mode == "silent"
    changed = source(safe_mode="alert", tags=("prod",), masks=(Mask("t.a"),))
    assert store.change_source(changed, source())
    assert other.source("shop") == store.source("shop") == changed
    assert not store.change_source(source(id="id-other"), source(id="id-other"))
    assert not store.change_source(source(name="gone"), source(name="gone"))
    assert other.sources() == (changed,)


def test_a_mask_that_another_process_added_meanwhile_is_not_lost(store, other):
    store.add_source(source())
    read = other.source("shop")
    masked = source(masks=(Mask("t.a"),))
    assert store.change_source(masked, source())
    assert not other.change_source(source(safe_mode="alert"), read)
    assert other.source("shop") == store.source("shop") == masked


def test_a_source_that_was_missing_is_found_once_it_is_there(store, other):
    assert other.source("shop") is None
    store.add_source(source())
    assert other.source("shop") == source()


def test_generations_change_with_the_rights_in_their_area_for_everyone(store, other):
    def generations():
        return [(h.generation("sources"), h.generation("tokens")) for h in (store, other)]

    start = generations()
    store.add_source(source())
    added = generations()
    assert all(new[0] != old[0] and new[1] == old[1] for new, old in zip(added, start, strict=True))
    store.add_token(token(), b"d" * 32)
    tokened = generations()
    assert all(
        new[0] == old[0] and new[1] != old[1] for new, old in zip(tokened, added, strict=True)
    )
    store.revoke_token("claude", 200.0)
    assert all(new[1] != old[1] for new, old in zip(generations(), tokened, strict=True))


def test_history_and_use_are_no_change_of_rights(store, other):
    store.add_token(token(), b"d" * 32)
    before = [handle.generation("tokens") for handle in (store, other)]
    store.add_history([HistoryEntry(text="SELECT 1", source="shop", at=1.0)])
    store.touch_tokens({"tok_claude": 150.0})
    assert [handle.generation("tokens") for handle in (store, other)] == before


def test_a_token_is_found_by_digest_alone_and_comes_back_as_it_was(store, other):
    kept = token(
        scope=Scope.FULL_ACCESS,
        sources=frozenset({"b", "a"}),
        expires_at=500.5,
        tags=frozenset({"prod"}),
        tables=frozenset({"orders", "shop:a.b"}),
    )
    store.add_token(kept, b"d" * 32)
    for handle in (store, other):
        assert handle.token_by_digest(b"d" * 32) == kept
        assert handle.token_by_digest(b"e" * 32) is None
        assert handle.tokens() == (kept,)


def test_an_empty_allowlist_is_not_every_source(store):
    store.add_token(token("none", sources=frozenset()), b"1" * 32)
    store.add_token(token("all"), b"2" * 32)
    assert [entry.sources for entry in store.tokens()] == [frozenset(), None]


def test_an_empty_list_of_tables_is_not_every_table(store):
    store.add_token(token("none", tables=frozenset()), b"1" * 32)
    store.add_token(token("all"), b"2" * 32)
    assert [entry.tables for entry in store.tokens()] == [frozenset(), None]


def test_history_is_narrowed_to_one_actor(store):
    store.add_history(
        [HistoryEntry(text=f"SELECT {n}", source="s", at=n, actor=f"a{n % 2}") for n in range(4)]
    )
    found = store.search_history(
        ["select"], sources=None, since=None, until=None, limit=9, actor="a1"
    )
    assert [entry.text for entry in found] == ["SELECT 3", "SELECT 1"]


def test_an_active_name_is_taken_and_a_revoked_or_expired_one_is_free(store):
    store.add_token(token(expires_at=200.0), b"1" * 32)
    with pytest.raises(GateError) as caught:
        store.add_token(token(id="2", created_at=199.0), b"2" * 32)
    assert caught.value.code is Code.ARGUMENT_INVALID
    store.add_token(token(id="3", created_at=200.0), b"3" * 32)
    assert [entry.revoked_at for entry in store.tokens()] == [200.0, None]
    store.revoke_token("claude", 300.0)
    store.add_token(token(id="4", created_at=400.0), b"4" * 32)
    assert [entry.id for entry in store.tokens()] == ["tok_claude", "3", "4"]


def test_revocation_is_for_good_and_the_token_stays_listed(store, other):
    store.add_token(token(), b"d" * 32)
    assert store.revoke_token("claude", 200.0) == token(revoked_at=200.0)
    assert store.revoke_token("claude", 300.0) is None
    for handle in (store, other):
        assert handle.token_by_digest(b"d" * 32) == token(revoked_at=200.0)
        assert handle.tokens() == (token(revoked_at=200.0),)


def test_the_time_of_last_use_never_goes_back(store):
    store.add_token(token(), b"d" * 32)
    store.touch_tokens({"tok_claude": 150.0, "unknown": 1.0})
    store.touch_tokens({"tok_claude": 140.0})
    assert store.tokens()[0].last_used_at == 150.0


def test_history_is_shared_and_newest_first(store, other):
    store.add_history([HistoryEntry(text=f"SELECT {n}", source="s", at=1.0) for n in range(3)])
    other.add_history([HistoryEntry(text="SELECT 'old'", source="s", at=0.5)])
    store.add_history([])
    expected = ["SELECT 2", "SELECT 1", "SELECT 0", "SELECT 'old'"]
    assert entries(store) == entries(other) == expected
    assert entries(store, limit=2) == expected[:2]


def test_words_are_prefixes_and_all_must_be_there(store):
    store.add_history(
        [
            HistoryEntry(text="SELECT Größe FROM customers", source="s", at=1.0),
            HistoryEntry(text="SELECT size FROM customers", source="s", at=2.0),
        ]
    )
    assert entries(store, "cust", "gro") == ["SELECT Größe FROM customers"]
    assert entries(store, "cust") == ["SELECT size FROM customers", "SELECT Größe FROM customers"]
    assert entries(store, "omers") == []
    assert entries(store, "customers OR nothing") == []


@pytest.mark.parametrize(
    "word", ['"', '""', '"select', "select*", "(select", "{select}", "+", "😀"]
)
def test_words_hold_no_operators(store, word):
    store.add_history([HistoryEntry(text="SELECT 1", source="s", at=1.0)])
    assert entries(store, word) == ["SELECT 1"]


def test_history_is_narrowed_by_source_and_by_times_inclusively(store):
    store.add_history(
        [HistoryEntry(text=f"SELECT {n}", source="ab"[n % 2], at=float(n)) for n in range(6)]
    )
    assert entries(store, sources=["a"]) == ["SELECT 4", "SELECT 2", "SELECT 0"]
    assert entries(store, sources=["a", "b"], since=2.0, until=3.0) == ["SELECT 3", "SELECT 2"]
    assert entries(store, sources=()) == []


def test_trimming_keeps_the_newest_and_forgets_their_words(store):
    store.add_history([HistoryEntry(text=f"word{n}", source="s", at=float(n)) for n in range(10)])
    assert store.trim_history(5, 7.0) == 7
    assert entries(store) == ["word9", "word8", "word7"]
    assert entries(store, "word1") == []
    assert store.trim_history(5, 7.0) == 0


def test_closing_twice_is_harmless_and_a_closed_store_says_so(store):
    store.search_history([], sources=None, since=None, until=None, limit=1)
    store.close()
    store.close()
    with pytest.raises(GateError) as caught:
        store.generation("tokens")
    assert caught.value.code is Code.STATE_FAILED
