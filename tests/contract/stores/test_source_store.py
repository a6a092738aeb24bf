"""The contract of `SourceStore`."""

import pytest

from tidegate.errors import Code, TidegateError
from tidegate.model.actors import Scope
from tidegate.model.replies import HistoryEntry
from tidegate.model.source_settings import Mask, RowFilter
from tidegate.model.sources import Source
from tidegate.store.records import ApprovalBounds, PendingApproval, Subject, TokenEntry


def source(name="shop", **fields):
    values = {"id": f"id-{name}", "url": "sqlite:///a.db", "engine": "sqlite", "dialect": "sqlite"}
    return Source(name=name, **{**values, **fields})


def test_a_source_comes_back_as_it_was_saved(state, other):
    saved = source(access="write", agents="deny", approval_for="writes", tags=("a", "b ä"))
    state.sources.add(saved)
    for handle in (state, other):
        assert handle.sources.find("shop") == saved
        assert handle.sources.list() == (saved,)


def test_sources_are_listed_by_name(state):
    for name in ("b", "a", "C"):
        state.sources.add(source(name))
    assert [each.name for each in state.sources.list()] == ["C", "a", "b"]


def test_a_name_or_id_that_is_taken_is_refused_and_nothing_changes(state):
    state.sources.add(source())
    for taken in (source(url="sqlite:///b.db", id="new"), source("new", id="id-shop")):
        with pytest.raises(TidegateError) as caught:
            state.sources.add(taken)
        assert caught.value.code is Code.ARGUMENT_INVALID
    assert state.sources.list() == (source(),)


def test_a_removed_source_is_gone_for_everyone_at_once(state, other):
    state.sources.add(source())
    assert other.sources.find("shop") is not None
    assert other.sources.list()
    assert state.sources.remove("shop")
    assert not state.sources.remove("shop")
    for handle in (state, other):
        assert handle.sources.find("shop") is None
        assert handle.sources.list() == ()


def test_a_replaced_source_is_new_for_everyone_at_once(state, other):
    state.sources.add(source())
    assert other.sources.find("shop").agents == "allow"
    state.sources.remove("shop")
    state.sources.add(source(agents="deny"))
    assert other.sources.find("shop").agents == "deny"
    assert state.sources.find("shop").agents == "deny"


def test_a_changed_source_keeps_its_id_and_is_new_for_everyone_at_once(state, other):
    state.sources.add(source())
    assert other.sources.find("shop").approval_for == "nothing"
    changed = source(approval_for="writes", tags=("prod",), masks=(Mask("t.a"),))
    assert state.sources.change(changed, source())
    assert other.sources.find("shop") == state.sources.find("shop") == changed
    assert not state.sources.change(source(id="id-other"), source(id="id-other"))
    assert not state.sources.change(source(name="gone"), source(name="gone"))
    assert other.sources.list() == (changed,)


def test_a_mask_that_another_process_added_meanwhile_is_not_lost(state, other):
    state.sources.add(source())
    read = other.sources.find("shop")
    masked = source(masks=(Mask("t.a"),))
    assert state.sources.change(masked, source())
    assert not other.sources.change(source(approval_for="writes"), read)
    assert other.sources.find("shop") == state.sources.find("shop") == masked


def test_a_source_that_was_missing_is_found_once_it_is_there(state, other):
    assert other.sources.find("shop") is None
    state.sources.add(source())
    assert other.sources.find("shop") == source()


def test_a_saved_source_keeps_its_masks_and_filters(state, other):
    source = Source(
        *("s1", "shop", "sqlite:///shop.db", "sqlite", "sqlite"),
        tags=("prod",),
        destructive_scope="fullAccess",
        masks=(Mask("customers.email", "hash", except_tokens=("billing",)),),
        filters=(RowFilter("orders", "owner = {actor.name}", tag="prod"),),
    )
    state.sources.add(source)
    state.sources.add(Source("s2", "plain", "sqlite:///plain.db", "sqlite", "sqlite"))
    assert other.sources.find("shop") == source
    assert [one.masks for one in other.sources.list()] == [(), source.masks]


def token(name, **lists):
    return TokenEntry(name, name, "tg_", Scope.READ_ONLY, created_at=1.0, **lists)


def test_a_renamed_source_takes_its_tokens_and_its_history_along(state, other):
    state.sources.add(source())
    lists = {"sources": frozenset({"shop", "b"}), "tables": frozenset({"shop:a.t", "shopping:t"})}
    for number, entry in enumerate((token("ann", **lists), token("all", sources=None))):
        state.tokens.add(entry, bytes([number]))
    before = other.tokens.generation()
    now = source("store")
    assert state.sources.rename(source(), now, 9.0) == ("ann",)
    for handle in (state, other):
        assert handle.sources.list() == (now,)
        ann, everything = handle.tokens.list()
        assert ann.sources == {"store", "b"} and ann.tables == {"store:a.t", "shopping:t"}
        assert everything.sources is None
        assert handle.tokens.generation() != before
    # The old name and id are free.
    state.sources.add(source())


@pytest.mark.parametrize(
    "lists",
    [{"sources": frozenset({"store"})}, {"sources": None, "tables": frozenset({"store:t"})}],
)
def test_a_source_does_not_get_a_name_that_a_token_was_given(state, lists):
    state.sources.add(source())
    state.tokens.add(token("ann", sources=frozenset({"shop"})), b"1")
    state.tokens.add(token("bob", **lists), b"2")
    kept = state.tokens.list()
    with pytest.raises(TidegateError) as caught:
        state.sources.rename(source(), source("store"), 9.0)
    assert caught.value.code is Code.ARGUMENT_INVALID and "bob" in caught.value.message
    assert state.sources.list() == (source(),) and state.tokens.list() == kept


def test_a_source_does_not_get_the_name_of_another_one(state):
    for name in ("shop", "store"):
        state.sources.add(source(name))
    state.tokens.add(token("ann", sources=frozenset({"shop"})), b"1")
    kept = state.tokens.list()
    with pytest.raises(TidegateError) as caught:
        state.sources.rename(source(), source("store", id="new"), 9.0)
    assert caught.value.code is Code.ARGUMENT_INVALID
    assert state.sources.list() == (source("shop"), source("store"))
    assert state.tokens.list() == kept


def test_a_source_that_was_changed_meanwhile_is_not_renamed(state):
    state.sources.add(source(access="write"))
    assert state.sources.rename(source(), source("store"), 9.0) is None
    assert state.sources.list() == (source(access="write"),)


def test_history_and_windows_of_a_renamed_source_follow_and_its_approvals_expire(state, other):
    state.sources.add(source())
    state.sources.add(source("b"))
    state.history.add(
        [HistoryEntry(text="SELECT 1", source=name, at=1.0) for name in ("shop", "b")]
    )
    window = state.windows.open_window("ada", "id-shop", "Query", 1.0)
    bounds = ApprovalBounds(grants_since=0.0, denials_since=0.0, most=9, most_of_actor=9)
    for name, id in (("shop", "pending"), ("shop", "allowed"), ("b", "other")):
        words = ("claude", "client/1", "core", "query", name, f"id-{name}", "DELETE", "write")
        asked = PendingApproval(id, id, "pending", "tok", Subject(*words, "", ""), 1.0)
        state.approvals.admit(asked, bounds)
    assert state.approvals.resolve("allowed", "allowed", "ada", "", 2.0)
    now = source("store")
    assert state.sources.rename(source(), now, 9.0) == ()
    for handle in (state, other):
        found = handle.history.search([], sources=["store"], since=None, until=None, limit=9)
        assert [entry.source for entry in found] == ["store"]
        assert handle.windows.open_window("ada", now.id, "Query", 2.0).id == window.id
        ended = {each.id: (each.state, each.ended_at) for each in handle.approvals.list()}
        expired = ("expired", 9.0)
        assert ended == {"pending": expired, "allowed": expired, "other": ("pending", None)}
    assert other.approvals.answer("allowed", bounds, 10.0) is None
