"""The contract of `SourceStore`."""

import pytest

from tidegate.errors import Code, TidegateError
from tidegate.model.sources import Mask, RowFilter, Source


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
