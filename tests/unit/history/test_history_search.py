"""History: what is found, in what order, and what is never kept."""

import pytest

from tidegate.errors import TidegateError
from tidegate.history.history import KEEP_DAYS, KEEP_ENTRIES, MAX_TEXT_CHARS, History
from tidegate.model.replies import HistoryEntry
from tidegate.sql.language import LANGUAGE as SQL
from tidegate.store.sqlite.state import SqliteState

NOW = 2_000_000_000.0


@pytest.fixture
def state(tmp_path):
    state = SqliteState(tmp_path / "state.db")
    yield state
    state.close()


@pytest.fixture
def history(state):
    history = History(state.history, lambda: NOW)
    yield history
    history.close()


def remember(history, *texts, source="shop", at=NOW, **fields):
    for number, text in enumerate(texts):
        history.add((HistoryEntry(text=text, source=source, at=at + number, **fields), SQL))


def found(history, query="", **narrowing):
    return [entry.text for entry in history.search(query, **narrowing)]


def test_a_search_sees_everything_added_before_newest_first(history):
    remember(history, "SELECT 1", "SELECT 2", "SELECT 3")
    assert found(history) == ["SELECT 3", "SELECT 2", "SELECT 1"]
    remember(history, "SELECT 4", at=NOW + 9)
    assert found(history, limit=2) == ["SELECT 4", "SELECT 3"]


def test_every_word_must_begin_a_word_of_the_statement(history):
    remember(history, "SELECT name FROM customers", "SELECT name FROM orders")
    assert found(history, "cust name") == ["SELECT name FROM customers"]
    assert found(history, "NAME sel") == ["SELECT name FROM orders", "SELECT name FROM customers"]
    assert found(history, "tomers") == []


@pytest.mark.parametrize(
    "query", ['"', "'", "(", "name AND", "NOT", "a OR name", "text:name", "na*", "^name", "\0", "-"]
)
def test_nothing_in_a_query_is_an_operator(history, query):
    remember(history, "SELECT text, name, a FROM t WHERE NOT a AND b OR c")
    assert len(found(history, query)) == 1


def test_a_name_with_underscores_is_found_whole_and_in_parts(history):
    remember(history, "SELECT customer_id FROM t", "SELECT id_customer FROM t")
    assert found(history, "customer_id") == ["SELECT customer_id FROM t"]
    assert len(found(history, "customer")) == 2


def test_a_search_is_narrowed_to_sources_and_times_inclusively(history):
    remember(history, "SELECT 1", "SELECT 2", "SELECT 3")
    remember(history, "SELECT 4", source="other", at=NOW + 1)
    assert found(history, sources=["shop"], since=NOW + 1, until=NOW + 2) == [
        "SELECT 3",
        "SELECT 2",
    ]
    assert found(history, sources=[]) == []
    assert found(history, sources={"other"}) == ["SELECT 4"]


def test_an_entry_comes_back_as_it_was_added(history):
    entry = HistoryEntry(
        text="SELECT ä", source="shop", at=NOW, actor="tok_1", surface="workbench",
        tool="execute_query", database="main", dialect="sqlite", elapsed_ms=1.5, row_count=7,
        success=False, error="no such column: ä",
    )  # fmt: skip
    history.add((entry, SQL))
    (back,) = history.search()
    assert back.id > 0
    assert HistoryEntry(**{**_fields(back), "id": 0}) == entry
    assert back.success is False


def _fields(entry):
    return {name: getattr(entry, name) for name in entry.__struct_fields__}


def test_secrets_are_not_kept_nor_the_errors_that_quote_them(history):
    remember(
        history,
        "CREATE USER bob PASSWORD 'hunter2'",
        dialect="postgres",
        success=False,
        error='syntax error at or near "hunter2"',
    )
    (entry,) = history.search()
    assert entry.text == "CREATE USER bob PASSWORD '***'"
    assert entry.error == ""
    assert history.search("hunter2") == []


def test_a_statement_in_an_unknown_language_loses_all_that_is_in_quotes_with_a_secret(history):
    history.add((HistoryEntry(text='PUT password "hunter2"', source="shop", at=NOW), None))
    assert "hunter2" not in found(history)[0]


def test_a_long_statement_is_cut(history):
    remember(history, "SELECT " + "1," * MAX_TEXT_CHARS)
    whole = 7 + 2 * MAX_TEXT_CHARS
    (kept,) = found(history)
    assert kept == ("SELECT " + "1," * MAX_TEXT_CHARS)[:MAX_TEXT_CHARS] + (
        f"... ({whole:,} characters)"
    )


def test_a_word_behind_the_cut_takes_the_literals_before_it(history):
    remember(history, "SELECT 'hunter2'" + ", 1" * MAX_TEXT_CHARS + " AS password")
    assert "hunter2" not in found(history)[0]


def test_text_that_utf8_cannot_hold_does_not_stop_the_history(history):
    remember(history, "SELECT '\udcff'", error="\udcff", database="\udcff")
    remember(history, "SELECT 2", at=NOW + 1)
    assert found(history) == ["SELECT 2", "SELECT '?'"]


def test_old_entries_go(history):
    remember(history, "SELECT 'old'", at=NOW - KEEP_DAYS * 86_400 - 1)
    remember(history, "SELECT 'kept'", at=NOW - KEEP_DAYS * 86_400)
    assert found(history) == ["SELECT 'kept'"]


def test_the_number_of_entries_stays_bounded(history, state):
    for start in range(0, KEEP_ENTRIES + 2_000, 1_000):
        remember(history, *(f"SELECT {start + n}" for n in range(1_000)), at=NOW + start)
        history.flush()
    kept = state.history.search([], sources=None, since=None, until=None, limit=20_000)
    assert KEEP_ENTRIES <= len(kept) < KEEP_ENTRIES + 1_000
    assert kept[0].text == f"SELECT {KEEP_ENTRIES + 1_999}"
    assert found(history, "999")[-1] != "SELECT 999"


def test_what_waits_is_written_on_close(state):
    history = History(state.history, lambda: NOW)
    remember(history, "SELECT 1")
    history.close()
    history.close()
    assert len(state.history.search([], sources=None, since=None, until=None, limit=9)) == 1


def test_a_store_that_fails_is_an_error_and_what_waits_still_waits(tmp_path):
    state = SqliteState(tmp_path / "state.db")
    history = History(state.history, lambda: NOW)
    remember(history, "SELECT 1")
    (tmp_path / "state.db").unlink()
    (tmp_path / "state.db").mkdir()
    with pytest.raises(TidegateError):
        history.search()
    (tmp_path / "state.db").rmdir()
    state.close()
    fresh = SqliteState(tmp_path / "state.db")
    history._store = fresh.history
    assert found(history) == ["SELECT 1"]
    history.close()
    fresh.close()
