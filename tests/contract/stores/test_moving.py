"""A state that moves from a file into PostgreSQL and back, and is used in one place at a time."""

import threading

import pytest
from msgspec import structs
from psycopg.conninfo import conninfo_to_dict

import support.postgres_server as postgres_server
from support.eventually import PATIENCE_S, wait_until
from tidegate.errors import Code, TidegateError
from tidegate.model.actors import Scope
from tidegate.model.budgets import Budget
from tidegate.model.changes import ChangeEntry
from tidegate.model.replies import HistoryEntry
from tidegate.model.sources import Source
from tidegate.model.tasks import TaskRecord
from tidegate.store import moving
from tidegate.store.gates import GateEntry
from tidegate.store.opening import open_state
from tidegate.store.records import (
    AnswerEntry,
    ApprovalBounds,
    NewTab,
    OperatorEntry,
    OperatorSession,
    PairEntry,
    Pairing,
    PendingApproval,
    Subject,
    TokenEntry,
    TokenRights,
    WebhookMessage,
)
from tidegate.store.saved_queries import QueryContent, SavedQuery
from tidegate.store.shipping import Position

BOUNDS = ApprovalBounds(0.0, 0.0, 99, 99)
TOKEN = TokenEntry("t1", "ann", "tg_", Scope.READ_WRITE, frozenset({"shop"}), 1.0, proxy=True)
SUBJECT = Subject("a", "", "core", "query", "shop", "s1", "DELETE \x00 é", "write", "r", "")


@pytest.fixture
def url():
    server = postgres_server.shared()
    return server.url(server.new_database())


def fill(state):
    """A row in every table."""
    state.sources.add(Source("s1", "shop", "sqlite:///a.db", "sqlite", "sqlite", tags=("x",)))
    state.tokens.add(structs.replace(TOKEN, id="t0", expires_at=0.5), b"0" * 32)
    state.tokens.add(TOKEN, b"1" * 32)
    state.pairings.add(
        Pairing("AB12", "claude", "ip", "c", TokenRights(), asked_at=1.0, expires_at=9.0),
        b"d", most=9, most_of_origin=9, origin=str,
    )  # fmt: skip
    state.operators.add(OperatorEntry("o1", "Ada", b"s\x00", b"h", (), 1.0))
    state.operators.add_link(b"l", "o1", 9.0, 1.0)
    state.operators.add_session(
        OperatorSession("n1", "o1", "link", 1.0, 1.0, 9.0, None, "ip", "b"), b"s"
    )
    state.approvals.admit(PendingApproval("a1", "d", "pending", "t1", SUBJECT, 1.0), BOUNDS)
    state.webhook.add(
        WebhookMessage("m1", "approval.asked", "a1", b"{}", "waiting", 1.0, 1.0, followed=True)
    )
    state.changes.prepare(
        ChangeEntry("c1", "shop", "s1", "t1", "ann", 1.0, 9.0, tables=("t",), rows=1, size=9),
        b"key", b"\xffimage", 99,
    )  # fmt: skip
    state.history.add([HistoryEntry(text="SELECT Größe", source="shop", at=1.0, success=False)])
    state.history.search(["gro"], sources=None, since=None, until=None, limit=1)
    state.shared.keep_unrecorded(b"event")
    state.windows.show(["Ada"], 1.0)
    for title in ("one", "two"):
        tab = state.windows.open_tab("Ada", "s1", NewTab("query", title, text="SELECT 1"), 1.0)
    first = state.windows.tabs("Ada", ["s1"], 9)[-1]
    state.windows.close_tab("Ada", first.id)
    state.staged_edits.write("Ada", tab.id, 0, b"body", 1.0)
    state.tasks.add(TaskRecord("k", "t1", "core", "query", "one", 1.0, 1.0, 9.0, changes=True))
    state.questions.add_pair(PairEntry("p1", "s1", "q", "S", (), ("t",), "d", "", "cli", 1.0))
    state.questions.add_answer(AnswerEntry("h", "t1", "s1", "q", "S", 1.0), 0.0)
    state.questions.use("t1", "language", "2026-11-23", 5, 1.5)
    state.shared.secret("seal")
    state.shared.use_once("nonce", "n", 9.0, 1.0)
    state.shared.add_failure("ip", 1.0, most=9, window_s=60.0)
    state.shared.lock("ip", 9.0)
    state.queries.add(SavedQuery("q1", "s1", "Ada", "mine"), QueryContent("SELECT 1"))
    state.queries.note_run("q1", "Ada", 1)
    state.queries.attach(tab.id, "Ada", "q1", 1)
    state.shipping.set_destinations("aa", ["siem"])
    state.shipping.save("aa", "siem", {"000001.jsonl": Position(5, 2, True)})
    state.budgets.add(Budget("b1", "calls", "minute", 100, token="ann"))
    state.budgets.take("b1", 60, 1)
    state.messages.send("one", "", "hello", b"\x00body", 1.0)
    state.gates.claim(GateEntry("g1", "holder", "a:/place", "key", 2, b"head", 1.0, 9.0))


def read(state):
    """All that the state says of itself."""
    tabs = state.windows.tabs("Ada", ["s1"], 9)
    return (
        state.sources.list(), state.tokens.list(), state.tokens.by_digest(b"1" * 32),
        state.pairings.list(), state.pairings.by_digest(b"d"), state.operators.list(),
        state.operators.sessions(), state.approvals.list(), state.approvals.spans(0.0),
        state.webhook.new_questions(0, 9), state.webhook.waiting(), state.changes.image("c1"),
        state.changes.find("c1"), state.shared.unrecorded(),
        state.history.search(["gro"], sources=None, since=None, until=None, limit=9),
        tabs, state.windows.events(0), state.windows.seen_at("Ada"),
        [state.staged_edits.find("Ada", each.id) for each in tabs], state.tasks.find("k"),
        state.questions.pairs("s1"), state.questions.answer("h"),
        state.questions.used("t1", "language", "2026-11-23"), state.shared.secret("seal"),
        state.shared.use_once("nonce", "n", 9.0, 1.0), state.shared.locked_until("ip", 1.0),
        state.queries.list(["s1"]), state.queries.version("q1", 1),
        state.queries.last_runs("Ada", ["q1"]), state.queries.attached("Ada"),
        state.shipping.positions("aa", "siem"), state.budgets.list(), state.budgets.taken(0),
        state.messages.read("two", 0, 9), state.gates.list(),
    )  # fmt: skip


def refusal(act):
    with pytest.raises(TidegateError) as caught:
        act()
    assert caught.value.code in (Code.STATE_FAILED, Code.ARGUMENT_INVALID)
    return caught.value.message


def test_a_state_moves_to_postgresql_and_back_as_it_was_and_each_time_the_old_one_ends(
    url, tmp_path
):
    file = open_state(None, tmp_path)
    fill(file)
    before = read(file)
    counted = file.read_versions()
    rows = moving.move_to_postgres(tmp_path, url)
    assert rows >= len(moving.TABLES)

    place = moving.name_of(url)
    assert place in refusal(lambda: open_state(None, tmp_path))
    for change in (lambda: file.tokens.revoke("ann", 2.0), lambda: file.shared.lock("x", 2.0)):
        assert place in refusal(change)  # of a process that had it open
    assert place in refusal(file.read_versions)
    file.close()

    shared = open_state(url, tmp_path)
    assert read(shared) == before
    now = shared.read_versions()
    assert all(now[topic] > number for topic, number in counted.items())
    shared.tokens.add(structs.replace(TOKEN, id="t2", name="bob"), b"2" * 32)
    assert shared.webhook.newest_question() == 1
    empty = tmp_path / "empty"
    empty.mkdir()
    open_state(None, empty).close()
    assert "There is a state" in refusal(lambda: moving.move_to_postgres(empty, url))
    assert "There is a state" in refusal(lambda: moving.move_to_sqlite(url, empty))

    before = read(shared)
    moving.move_to_sqlite(url, tmp_path)
    assert str(tmp_path) in refusal(lambda: shared.tokens.revoke("ann", 2.0))
    assert str(tmp_path) in refusal(shared.operators.list)
    assert str(tmp_path) in refusal(lambda: open_state(url, tmp_path))
    shared.close()
    file = open_state(None, tmp_path)
    assert read(file) == before
    file.close()
    moving.move_to_postgres(tmp_path, url)  # once more, over what was left there
    open_state(url, tmp_path).close()


def test_a_process_whose_state_has_moved_says_where_and_that_a_person_must_act(url, tmp_path):
    file = open_state(None, tmp_path)
    file.versions.follow()
    moving.move_to_postgres(tmp_path, url)
    wait_until(lambda: file.versions.is_stale, "the state is not seen any more")
    error = file.versions.stale_error()
    assert moving.name_of(url) in error.message and "state_url" in error.hint
    assert error.retry_after_s is None and "etry" not in error.in_full
    password = conninfo_to_dict(url).get("password")
    assert not password or str(password) not in error.in_full
    file.close()

    shared = open_state(url, tmp_path)
    shared.versions.follow()
    moving.move_to_sqlite(url, tmp_path)
    wait_until(lambda: shared.versions.is_stale, "the state is not seen any more")
    error = shared.versions.stale_error()
    assert str(tmp_path) in error.message and "starts it again" in error.hint
    assert error.retry_after_s is None
    assert str(tmp_path) not in error.without_secrets().in_full  # of a caller elsewhere
    shared.close()


def test_every_table_of_both_states_is_moved(url, tmp_path):
    file = open_state(None, tmp_path)
    with file._requests.reading() as connection:
        rows = connection.execute("SELECT name FROM sqlite_schema WHERE type = 'table'").fetchall()
    mine = {name for (name,) in rows if not name.startswith(("sqlite_", "history_"))}
    open_state(url, tmp_path).close()
    import psycopg

    with psycopg.connect(url) as connection:
        rows = connection.execute(
            "SELECT tablename FROM pg_tables WHERE schemaname = 'tidegate'"
        ).fetchall()
    theirs = {name for (name,) in rows}
    assert mine - {"generations"} == theirs - moving.OWN_TABLES == set(moving.TABLES)
    file.close()


def test_a_move_that_was_ended_in_the_middle_leaves_no_two_states_and_is_finished_by_the_next(
    url, tmp_path, monkeypatch
):
    file = open_state(None, tmp_path)
    fill(file)
    file.close()

    def end(*_):
        raise KeyboardInterrupt

    monkeypatch.setattr(moving, "_set_flag", end)
    with pytest.raises(KeyboardInterrupt):
        moving.move_to_postgres(tmp_path, url)
    monkeypatch.undo()
    refusal(lambda: open_state(None, tmp_path))
    assert "not whole" in refusal(lambda: open_state(url, tmp_path))
    assert moving.move_to_postgres(tmp_path, url) == 0
    open_state(url, tmp_path).close()

    monkeypatch.setattr(moving, "_put_in_place", end)
    with pytest.raises(KeyboardInterrupt):
        moving.move_to_sqlite(url, tmp_path)
    monkeypatch.undo()
    refusal(lambda: open_state(None, tmp_path))
    refusal(lambda: open_state(url, tmp_path))
    moving.move_to_sqlite(url, tmp_path)
    open_state(None, tmp_path).close()


def test_what_is_written_while_the_state_moves_is_refused_or_moved(url, tmp_path):
    shared = open_state(url, tmp_path)
    fill(shared)
    kept, refused = [], threading.Event()

    def write():
        for number in range(5_000):
            try:
                shared.shared.lock(f"key {number}", 1e9)
            except TidegateError:
                refused.set()
                return
            kept.append(number)

    writer = threading.Thread(target=write)
    writer.start()
    wait_until(lambda: len(kept) > 20, "some writes")
    moving.move_to_sqlite(url, tmp_path)
    writer.join(PATIENCE_S)
    assert refused.is_set()
    file = open_state(None, tmp_path)
    assert all(file.shared.locked_until(f"key {number}", 1.0) for number in kept)
    file.close()
    shared.close()
