"""The contract of `SavedQueryStore`."""

import pytest

from tidegate.errors import Code, TidegateError
from tidegate.model.sources import Source
from tidegate.store.records import NewTab, OperatorEntry
from tidegate.store.saved_queries import (
    MOST_QUERIES,
    MOST_QUERY_BYTES,
    MOST_VERSIONS,
    QueryContent,
    QueryParameter,
    SavedQuery,
)

LEAST = QueryParameter("least", "decimal", "the smallest total", "10")


def query(id="q1", name="Big orders", owner="ada", source="s1", **more):
    fields = {"text_by": owner, "changed_by": owner, "changed_at": 1.0, **more}
    return SavedQuery(id, source, owner, name, **fields)


def content(text="SELECT 1", **more):
    return QueryContent(text, **more)


def renamed(entry, **changes):
    fields = {name: getattr(entry, name) for name in entry.__struct_fields__}
    return SavedQuery(**{**fields, **changes})


def test_a_query_is_found_with_its_text_its_parameters_and_its_chart(state, other):
    wanted = query(folder="sales", description="each week", shared_with="viewer", schema="public")
    held = content("SELECT :least", parameters=(LEAST,), chart='{"mark":"bar"}')
    added = state.queries.add(wanted, held)
    assert (added.version, added.text_version) == (1, 1)
    assert other.queries.find("q1") == added == wanted
    assert other.queries.find("q2") is None
    version = other.queries.version("q1", 1)
    assert (version.content, version.changed_by, version.changed_at) == (held, "ada", 1.0)
    assert other.queries.version("q1", 2) is None
    assert other.queries.version("q2", 1) is None


def test_queries_are_listed_by_source_folder_and_name(state, other):
    for id, name, folder, source in (
        ("q1", "b", "", "s1"),
        ("q2", "a", "x", "s1"),
        ("q3", "a", "", "s2"),
        ("q4", "a", "", "s1"),
    ):
        state.queries.add(query(id, name, source=source, folder=folder), content())
    assert [each.id for each in other.queries.list(["s1"])] == ["q4", "q1", "q2"]
    assert [each.id for each in other.queries.list(["s1", "s2"])] == ["q3", "q4", "q1", "q2"]
    assert other.queries.list([]) == []


def test_a_change_of_its_text_is_a_version_and_one_of_its_name_is_none(state, other):
    added = state.queries.add(query(), content("SELECT 1"))
    moved = state.queries.change(renamed(added, name="Orders", folder="x"), 1, None)
    assert (moved.name, moved.folder, moved.version, moved.text_version) == ("Orders", "x", 2, 1)
    changed = renamed(moved, changed_by="bob", changed_at=2.0)
    third = other.queries.change(changed, 2, content("SELECT 2"))
    assert (third.version, third.text_version, third.text_by) == (3, 3, "bob")
    moved = state.queries.change(renamed(third, folder="y", changed_by="ada"), 3, None)
    assert (moved.text_version, moved.text_by, moved.changed_by) == (3, "bob", "ada")
    assert state.queries.find("q1") == moved
    listed = state.queries.versions("q1")
    assert [(each.version, each.changed_by, each.changed_at) for each in listed] == [
        (3, "bob", 2.0),
        (1, "ada", 1.0),
    ]
    assert state.queries.version("q1", 1).content.text == "SELECT 1"
    assert state.queries.version("q1", 3).content.text == "SELECT 2"


def test_what_was_written_over_another_version_is_refused(state, other):
    added = state.queries.add(query(), content("SELECT 1"))
    assert state.queries.change(renamed(added, name="mine"), 1, content("SELECT 2"))
    assert other.queries.change(renamed(added, name="theirs"), 1, content("SELECT 3")) is None
    assert other.queries.change(renamed(added, name="theirs"), 1, None) is None
    assert other.queries.find("q1").name == "mine"
    assert [each.version for each in other.queries.versions("q1")] == [2, 1]
    assert not other.queries.remove("q1", 1)
    assert other.queries.remove("q1", 2)
    assert state.queries.change(renamed(added, version=2), 2, None) is None
    assert state.queries.find("q1") is None
    assert state.queries.versions("q1") == []
    assert not state.queries.remove("q1", 2)


def test_a_change_moves_a_query_to_no_other_source_and_no_other_owner(state):
    added = state.queries.add(query(), content())
    changed = state.queries.change(renamed(added, owner="eve", source_id="s2", name="x"), 1, None)
    assert (changed.owner, changed.source_id, changed.name) == ("ada", "s1", "x")
    assert state.queries.find("q1") == changed


def test_one_owner_has_a_name_once_in_a_folder_of_a_source(state):
    first = state.queries.add(query(), content())
    for other in (
        query("q2", folder="x"),
        query("q3", source="s2"),
        query("q4", owner="eve"),
    ):
        state.queries.add(other, content())
    before = state.queries.list(["s1", "s2"])
    second = state.queries.find("q2")
    for taken in (
        lambda: state.queries.add(query("q5"), content()),
        lambda: state.queries.change(renamed(second, folder=""), 1, None),
    ):
        with pytest.raises(TidegateError) as refused:
            taken()
        assert refused.value.code is Code.ARGUMENT_INVALID
        assert state.queries.list(["s1", "s2"]) == before
    assert state.queries.change(renamed(first, description="same name"), 1, None)


def test_the_oldest_versions_go(state):
    entry = state.queries.add(query(), content("0"))
    for number in range(1, MOST_VERSIONS + 3):
        entry = state.queries.change(entry, number, content(str(number)))
    kept = [each.version for each in state.queries.versions("q1")]
    assert (len(kept), kept[0], kept[-1]) == (MOST_VERSIONS, MOST_VERSIONS + 3, 4)


def test_all_versions_of_one_owner_have_a_bound_and_what_is_over_it_changes_nothing(state):
    half = "é" * (MOST_QUERY_BYTES // 4 - 100)
    entry = state.queries.add(query(), content(half))
    entry = state.queries.change(entry, 1, content(half))
    for more in (
        lambda: state.queries.change(entry, 2, content("x" * 1_000)),
        lambda: state.queries.add(query("q2", "other"), content("x" * 1_000)),
    ):
        with pytest.raises(TidegateError) as refused:
            more()
        assert refused.value.code is Code.LIMIT_BYTES
        assert state.queries.list(["s1"]) == [entry]
    assert state.queries.change(entry, 2, None)
    assert state.queries.add(query("q2", owner="eve"), content("x" * 1_000))
    assert MOST_QUERIES == 1_000


def test_what_each_operator_ran_last_is_known(state, other):
    state.queries.add(query(), content())
    state.queries.add(query("q2", "two"), content())
    state.queries.note_run("q1", "eve", 1)
    state.queries.note_run("q1", "eve", 3)
    state.queries.note_run("q2", "ada", 1)
    state.queries.note_run("gone", "ada", 1)
    assert other.queries.last_runs("eve", ["q1", "q2"]) == {"q1": 3}
    assert other.queries.last_runs("ada", ["q1", "q2", "gone"]) == {"q2": 1}
    state.queries.remove("q1", 1)
    assert other.queries.last_runs("eve", ["q1"]) == {}


def test_a_tab_holds_a_query_until_one_of_them_is_gone(state, other):
    state.queries.add(query(), content())
    state.queries.add(query("q2", "two"), content())
    tab = state.windows.open_tab("ada", "s1", NewTab("query", "Big orders", text="SELECT 1"), 1.0)
    state.queries.attach(tab.id, "ada", "q1", 1)
    assert other.queries.attached("ada") == {tab.id: ("q1", 1)}
    assert other.queries.attached("eve") == {}
    state.queries.attach(tab.id, "ada", "q2", 4)
    assert other.queries.attached("ada") == {tab.id: ("q2", 4)}
    state.windows.close_tab("ada", tab.id)
    state.queries.attach("of no tab", "ada", "q1", 1)
    assert other.queries.attached("ada")[tab.id] == ("q2", 4)
    state.queries.remove("q2", 1)
    assert tab.id not in other.queries.attached("ada")


def test_a_source_with_another_name_keeps_its_queries(state):
    source = Source(id="s1", name="a", url="x", engine="e", dialect="d")
    state.sources.add(source)
    state.queries.add(query(), content())
    now = Source(id="s2", name="b", url="x", engine="e", dialect="d")
    assert state.sources.rename(source, now, 1.0) == ()
    assert [each.id for each in state.queries.list(["s2"])] == ["q1"]
    assert state.queries.list(["s1"]) == []


def test_an_operator_that_is_removed_leaves_what_it_shared_and_nothing_else(state):
    state.operators.add(OperatorEntry("o1", "ada", b"salt", b"hash", (), 1.0))
    state.queries.add(query("q1"), content())
    state.queries.add(query("q2", "shared", shared_with="viewer"), content())
    state.queries.note_run("q2", "ada", 1)
    state.operators.remove("o1")
    (left,) = state.queries.list(["s1"])
    assert (left.id, left.owner) == ("q2", "")
    assert state.queries.last_runs("ada", ["q2"]) == {}
