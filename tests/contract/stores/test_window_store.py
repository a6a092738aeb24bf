"""The contract of `WindowStore`."""

import pytest

from tidegate.errors import Code, TidegateError
from tidegate.store.records import (
    MAX_CLOSED_TABS,
    MAX_TABS,
    MAX_TABS_BYTES,
    NewTab,
    OperatorEntry,
)


def table(name, first="Query"):
    return NewTab("table", name, name, "main", "public", first_title=first)


def query(text="", title="Query"):
    return NewTab("query", title, text=text)


def operator(name):
    return OperatorEntry(name, name, b"salt", b"hash", (), 1.0)


def test_a_window_opens_with_an_empty_query_tab_and_is_found_again(state, other):
    window = state.windows.open_window("ada", "s1", "Query", 1.0)
    assert other.windows.open_window("ada", "s1", "Query", 2.0) == window
    (tab,) = other.windows.tabs("ada", ["s1"], 9)
    assert (tab.window_id, tab.kind, tab.title, tab.is_active) == (
        window.id,
        "query",
        "Query",
        True,
    )
    assert other.windows.tabs("ada", ["s2"], 9) == []


def test_a_table_has_one_tab_which_comes_to_the_front(state, other):
    tab = state.windows.open_tab("ada", "s1", table("t"), 1.0)
    state.windows.open_tab("ada", "s1", table("u"), 2.0)
    again = other.windows.open_tab("ada", "s1", table("t"), 3.0)
    assert (again.id, again.is_active, again.focused_at) == (tab.id, True, 3.0)
    assert [(one.table, one.is_active) for one in state.windows.tabs("ada", ["s1"], 2)] == [
        ("t", True),
        ("u", False),
    ]


def test_a_tab_of_another_source_is_not_brought_to_the_front(state):
    tab = state.windows.open_tab("ada", "s1", table("t"), 1.0)
    assert state.windows.focus("ada", tab.id, ["s2"], 2.0) is None
    assert state.windows.focus("ada", tab.id, ["s1", "s2"], 2.0).focused_at == 2.0
    assert state.windows.focus("ada", "unknown", ["s1"], 2.0) is None


def test_each_owner_has_windows_of_its_own(state, other):
    tab = state.windows.open_tab("ada", "s1", query("SELECT 1"), 1.0)
    theirs = other.windows.open_tab("eve", "s1", table("t"), 2.0)
    assert tab.window_id != theirs.window_id
    assert [one.id for one in state.windows.tabs("eve", ["s1"], 9)][:1] == [theirs.id]
    assert state.windows.tabs("", ["s1"], 9) == []
    assert state.windows.find("eve", tab.id) is None
    assert state.windows.focus("eve", tab.id, ["s1"], 3.0) is None
    assert not state.windows.write("eve", tab.id, tab.version, text="DROP TABLE t")
    assert not state.windows.close_tab("eve", tab.id)
    assert other.windows.find("ada", tab.id) == tab


def test_what_is_written_over_another_version_is_not_kept(state, other):
    tab = state.windows.open_tab("ada", "s1", query(), 1.0)
    assert state.windows.write("ada", tab.id, tab.version, text="SELECT 1", title="one")
    assert not other.windows.write("ada", tab.id, tab.version, text="SELECT 2")
    now = other.windows.find("ada", tab.id)
    assert (now.text, now.title, now.version) == ("SELECT 1", "one", tab.version + 1)
    assert other.windows.write("ada", tab.id, now.version, position=7.5)
    assert state.windows.find("ada", tab.id).position == 7.5


def test_the_chart_of_a_tab_is_kept_with_it_also_while_it_is_closed(state, other):
    tab = state.windows.open_tab("ada", "s1", query(), 1.0)
    assert tab.chart == ""
    assert state.windows.write("ada", tab.id, tab.version, chart='{"mark":"bar"}')
    assert state.windows.write("ada", tab.id, tab.version + 1, text="SELECT 1")
    assert other.windows.find("ada", tab.id).chart == '{"mark":"bar"}'
    state.windows.close_tab("ada", tab.id)
    assert other.windows.reopen("ada", ["s1"], 2.0).chart == '{"mark":"bar"}'


def test_the_last_tab_takes_its_window_along(state, other):
    first = state.windows.open_window("ada", "s1", "Query", 1.0)
    (tab,) = state.windows.tabs("ada", ["s1"], 9)
    assert other.windows.close_tab("ada", tab.id)
    assert not other.windows.close_tab("ada", tab.id)
    assert state.windows.open_window("ada", "s1", "Query", 2.0).id != first.id


def test_closed_tabs_are_opened_again_the_last_one_first(state, other):
    tabs = [state.windows.open_tab("ada", "s1", query(f"SELECT {n}"), n) for n in range(30)]
    for tab in tabs[1:]:
        state.windows.close_tab("ada", tab.id)
    assert other.windows.reopen("ada", ["s2"], 50.0) is None
    assert other.windows.reopen("eve", ["s1"], 50.0) is None
    reopened = []
    while (tab := other.windows.reopen("ada", ["s1"], 50.0)) is not None:
        reopened.append(tab.text)
    assert reopened == [f"SELECT {29 - n}" for n in range(MAX_CLOSED_TABS)]


def test_a_closed_table_that_was_opened_since_is_no_second_tab(state):
    tab = state.windows.open_tab("ada", "s1", table("t", ""), 1.0)
    state.windows.close_tab("ada", tab.id)
    new = state.windows.open_tab("ada", "s1", table("t", ""), 2.0)
    assert state.windows.reopen("ada", ["s1"], 3.0).id == new.id
    assert len(state.windows.tabs("ada", ["s1"], 9)) == 1


def test_only_the_oldest_tabs_of_the_same_owner_make_room(state):
    state.windows.open_tab("eve", "s1", query("hers"), 0.0)
    for n in range(MAX_TABS + 5):
        state.windows.open_tab("ada", "s1", query(str(n)), 1.0 + n)
    texts = [tab.text for tab in state.windows.tabs("ada", ["s1"], 2 * MAX_TABS)]
    assert (len(texts), texts[0], texts[-1]) == (MAX_TABS, str(MAX_TABS + 4), "5")
    assert [tab.text for tab in state.windows.tabs("eve", ["s1"], 9)] == ["hers"]


def test_the_texts_of_one_owner_have_a_bound_together_and_what_is_over_it_changes_nothing(state):
    whole = "é" * (MAX_TABS_BYTES // 4)
    first = state.windows.open_tab("ada", "s1", query(whole), 1.0)
    state.windows.open_tab("ada", "s2", query(whole), 2.0)
    before = state.windows.tabs("ada", ["s1", "s2"], 9)
    for more in (
        lambda: state.windows.open_tab("ada", "s1", query("x"), 3.0),
        lambda: state.windows.write("ada", first.id, first.version, text=whole + "x"),
    ):
        with pytest.raises(TidegateError) as refused:
            more()
        assert refused.value.code is Code.LIMIT_BYTES
        assert state.windows.tabs("ada", ["s1", "s2"], 9) == before
    assert state.windows.open_tab("eve", "s1", query("x"), 4.0)
    assert state.windows.write("ada", first.id, first.version, text="short")
    assert state.windows.open_tab("ada", "s1", query("x"), 5.0)


def test_what_a_page_shows_is_known_to_everyone(state, other):
    window = state.windows.open_window("ada", "s1", "Query", 1.0)
    assert (window.seen_at, other.windows.seen_at("ada")) == (None, None)
    state.windows.show(["ada"], 5.0)
    assert other.windows.open_window("ada", "s1", "Query", 6.0).seen_at == 5.0
    assert other.windows.open_tab("ada", "s2", table("t"), 6.0).seen_at == 5.0
    assert other.windows.open_window("eve", "s1", "Query", 6.0).seen_at is None


def test_what_happens_to_tabs_is_told_to_other_processes_in_order(state, other):
    begun = other.windows.last_event()
    tab = state.windows.open_tab("ada", "s1", query(), 1.0, "claude")
    state.windows.write("ada", tab.id, tab.version, text="SELECT 1")
    state.windows.focus("ada", tab.id, ["s1"], 2.0, "claude")
    state.windows.close_tab("ada", tab.id)
    events = other.windows.events(begun)
    assert [(one.action, one.by, one.owner) for one in events] == [
        ("opened", "claude", "ada"),
        ("changed", "", "ada"),
        ("focused", "claude", "ada"),
        ("closed", "", "ada"),
    ]
    assert [one.tab and one.tab.text for one in events] == [None, None, None, "SELECT 1"]
    assert other.windows.events(events[-1].n) == []
    assert other.windows.last_event() == events[-1].n


def test_the_first_operator_gets_the_windows_of_no_one_and_no_later_one_does(state):
    state.windows.open_tab("", "s1", query("before"), 1.0)
    state.operators.add(operator("ada"))
    assert [tab.text for tab in state.windows.tabs("ada", ["s1"], 9)] == ["before"]
    state.windows.open_tab("", "s1", query("between"), 2.0)
    state.operators.add(operator("eve"))
    assert state.windows.tabs("eve", ["s1"], 9) == []
    assert [tab.text for tab in state.windows.tabs("", ["s1"], 9)] == ["between"]


def test_an_operator_that_is_removed_leaves_no_tab_to_another_of_its_name(state):
    state.operators.add(operator("ada"))
    state.operators.add(operator("eve"))
    tab = state.windows.open_tab("ada", "s1", query("secret"), 1.0)
    closed = state.windows.open_tab("ada", "s1", query("closed"), 1.0)
    state.windows.close_tab("ada", closed.id)
    state.operators.remove("ada")
    state.operators.add(operator("ada"))
    assert state.windows.find("ada", tab.id) is None
    assert state.windows.reopen("ada", ["s1"], 2.0) is None
    assert all(event.owner != "ada" for event in state.windows.events(0))


def test_an_event_is_of_no_tab_that_is_open_again_or_closed_by_now(state, other):
    begun = state.windows.last_event()
    tab = state.windows.open_tab("ada", "s1", table("t", ""), 1.0)
    state.windows.close_tab("ada", tab.id)
    closed = {event.action: event.tab for event in other.windows.events(begun)}
    assert closed["opened"] is None and closed["closed"].id == tab.id
    state.windows.reopen("ada", ["s1"], 2.0)
    events = other.windows.events(begun)
    assert [event.tab is None for event in events if event.action == "closed"] == [True]
    assert events[-1].tab.id == tab.id
