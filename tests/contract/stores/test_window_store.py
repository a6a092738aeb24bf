"""The contract of `WindowStore`."""


def test_a_window_opens_with_an_empty_query_tab_and_is_found_again(state, other):
    window = state.windows.open_window("s1", "Query", 1.0)
    assert other.windows.open_window("s1", "Query", 2.0) == window
    (tab,) = other.windows.tabs(["s1"], 9)
    assert (tab.window_id, tab.kind, tab.title, tab.is_active) == (
        window.id,
        "query",
        "Query",
        True,
    )
    assert other.windows.tabs(["s2"], 9) == []


def test_a_table_has_one_tab_which_comes_to_the_front(state, other):
    tab = state.windows.open_table("s1", "Query", "main", "public", "t", 1.0)
    state.windows.open_table("s1", "Query", "main", "public", "u", 2.0)
    again = other.windows.open_table("s1", "Query", "main", "public", "t", 3.0)
    assert (again.id, again.is_active, again.focused_at) == (tab.id, True, 3.0)
    assert [(one.table, one.is_active) for one in state.windows.tabs(["s1"], 2)] == [
        ("t", True),
        ("u", False),
    ]


def test_a_tab_of_another_source_is_not_brought_to_the_front(state):
    tab = state.windows.open_table("s1", "Query", "main", "public", "t", 1.0)
    assert state.windows.focus(tab.id, ["s2"], 2.0) is None
    assert state.windows.focus(tab.id, ["s1", "s2"], 2.0).focused_at == 2.0
    assert state.windows.focus("unknown", ["s1"], 2.0) is None


def test_the_last_tab_takes_its_window_along(state, other):
    first = state.windows.open_window("s1", "Query", 1.0)
    (tab,) = state.windows.tabs(["s1"], 9)
    assert other.windows.close_tab(tab.id)
    assert not other.windows.close_tab(tab.id)
    assert state.windows.open_window("s1", "Query", 2.0).id != first.id


def test_what_a_page_shows_is_known_to_everyone(state, other):
    window = state.windows.open_window("s1", "Query", 1.0)
    state.windows.show(window.id, 5.0)
    assert other.windows.open_window("s1", "Query", 6.0).seen_at == 5.0
