"""What gives no right and is trusted all the same: who writes it past the gates has no gate
send it, run it, or take it for what a person checked.
"""

from types import SimpleNamespace

from msgspec import structs

from contract.stores.test_seals import (
    BOUNDS,
    SOURCE,
    SUBJECT,
    Postgres,
    allow,
    keep,
    place,  # noqa: F401 - a fixture
    refusal,
    state,  # noqa: F401 - a fixture
)
from contract.stores.test_seals_put_back import lists, put_back
from support import postgres_state
from tidegate.budgets.meter import Meter
from tidegate.errors import Code
from tidegate.identity.granted_rights import GrantedRights
from tidegate.identity.lockout import Lockout
from tidegate.model.budgets import Budget
from tidegate.model.changes import ChangeEntry
from tidegate.store.records import AnswerEntry, PairEntry, PendingApproval, WebhookMessage
from tidegate.store.saved_queries import QueryContent, SavedQuery

MESSAGE = WebhookMessage("m1", "approval.asked", "a1", b"{}", "waiting", 1.0, 1.0, followed=True)
QUERY = SavedQuery("q1", "s1", "ada", "daily", shared_with="viewer", changed_by="ada")
PAIR = PairEntry("p1", "s1", "how many", "SELECT 1", (), ("main.t",), "d", "r", "ada", 1.0)
ANSWER = AnswerEntry("a-1", "t1", "s1", "how many", "SELECT 1", 1.0)
CHANGE = ChangeEntry("c1", "shop", "s1", "t1", "ann", 100.0, 200.0, tables=("items",), rows=1)


def ask_for(state):  # noqa: F811
    return state.approvals.admit(
        PendingApproval("a1", "d", "pending", "t1", SUBJECT, 100.0), BOUNDS
    )


def test_a_sealed_yes_counts_once_also_where_its_use_is_removed(place, state, tmp_path):  # noqa: F811
    assert state.shared.use_once("request state of a", "n1", 700.0, 100.0)
    assert not state.shared.use_once("request state of a", "n1", 700.0, 101.0)
    place.ask("DELETE FROM used_values")
    assert not state.shared.use_once("request state of a", "n1", 700.0, 102.0)
    (tmp_path / "b").mkdir()
    other = place.open(directory=tmp_path / "b")
    assert not other.shared.use_once("request state of a", "n1", 700.0, 103.0)
    assert other.shared.use_once("request state of b", "n1", 700.0, 104.0)
    assert other.shared.use_once("request state of a", "n1", 1700.0, 701.0)  # that one had ended


def test_a_sealed_yes_counts_nowhere_while_the_uses_are_not_as_a_gate_left_them(place, state):  # noqa: F811
    assert state.shared.use_once("k", "n1", 700.0, 100.0)
    kept = lists(place, "used_values")
    assert state.shared.use_once("k", "n2", 700.0, 100.0)
    place.ask("DELETE FROM used_values")
    put_back(place, "used_values", kept)
    other = place.open()
    for gate in (state, other):
        assert refusal(lambda gate=gate: gate.shared.use_once("k", "n2", 700.0, 101.0)).code is (
            Code.STATE_FAILED
        )
    place.ask("DELETE FROM seals WHERE area = 'used_values'")
    assert refusal(lambda: state.shared.use_once("k", "n3", 700.0, 101.0)).code is Code.STATE_FAILED


def test_a_lock_that_is_removed_from_the_table_holds_and_so_it_does_where_it_was_seen(place, state):  # noqa: F811
    for shared, until in ((state.shared, 400.0), (state.shared, 500.0)):
        shared.lock_sealed("login ip", until, 100.0)
    place.ask("DELETE FROM locks")
    assert place.open().shared.sealed_until("login ip", 200.0) == 500.0
    ended = lists(place, "used_values")
    here, there = (Lockout(shared=each.shared) for each in (state, place.open()))
    for _ in range(5):
        there.failed("10.0.0.9", 200.0)
    assert refusal(lambda: here.check("10.0.0.9", 201.0)).code is Code.AUTH_LOCKED_OUT
    place.ask("DELETE FROM locks")
    place.ask("DELETE FROM failures")
    put_back(place, "used_values", ended)  # as it was before
    for lockout in (here, there):
        assert refusal(lambda it=lockout: it.check("10.0.0.9", 202.0)).code is Code.AUTH_LOCKED_OUT
    fresh = Lockout(shared=state.shared)
    error = refusal(lambda: fresh.check("10.0.0.9", 203.0))
    assert error.code is Code.STATE_FAILED and "past the gates" in error.message and error.hint


def test_that_rights_were_given_is_not_forgotten_with_its_row(place, state):  # noqa: F811
    """Without it the first one who comes to a server's state needs no one's consent."""
    rights = GrantedRights(state, SimpleNamespace(list=list))
    assert not rights.exist
    rights.note()
    place.ask("DELETE FROM locks")
    assert rights.exist


async def test_a_gate_takes_no_more_of_a_budget_than_it_has(place, state):  # noqa: F811
    """Though its use is removed from the state, where it is put again."""
    budget = Budget("b1", "rows", "day", 100, source="shop")
    assert state.budgets.add(budget)

    async def take(*given):
        return state.budgets.take(*given)

    async def give_back(*given):
        state.budgets.give_back(*given)

    meter, held = Meter(budget, take, give_back), 0
    for _ in range(9):
        await meter.refill(30, 1_000.0)
        while meter.hold(10, 1_000.0):
            held += 10
        place.ask("DELETE FROM budget_use")
    assert held == 100
    await meter.refill(30, 1_000.0)
    assert state.budgets.taken(0)["b1", meter.began] >= 100
    assert state.budgets.take("b1", meter.began, 1) is None  # for others, too


def test_a_message_that_was_changed_or_made_in_the_table_is_not_sent(place, state):  # noqa: F811
    ask_for(state)
    assert state.webhook.add(MESSAGE)
    place.ask("UPDATE webhook_messages SET body = %s", b'{"link":"https://evil.example"}')
    place.ask(
        "INSERT INTO webhook_messages (id, type, approval, body, state, made_at, next_at, attempts,"
        " followed) SELECT 'm9', type, 'a9', body, state, made_at, next_at, attempts, followed"
        " FROM webhook_messages"
    )
    assert [state.webhook.take(5.0, 65.0) for _ in range(3)] == [None] * 3
    # It is made again, of the question itself.
    assert [each.id for _, each in state.webhook.new_questions(99, 9)] == ["a1"]
    assert state.webhook.add(MESSAGE)
    assert state.webhook.take(70.0, 130.0).body == b"{}"


def test_a_message_says_nothing_of_a_question_that_was_changed_in_the_table(place, state):  # noqa: F811
    """Who puts the question back before a person answers would have another one answered."""
    ask_for(state)
    place.ask("UPDATE approvals SET subject = replace(subject, 'DELETE', 'SELECT')")
    assert state.webhook.new_questions(0, 9) == ()
    state.webhook.add(structs.replace(MESSAGE, state="listed"))
    assert state.webhook.listed() == ()
    place.ask("UPDATE approvals SET subject = replace(subject, 'SELECT', 'DELETE')")
    assert [each.id for each in state.webhook.listed()] == ["a1"]
    place.ask("UPDATE approvals SET state = 'allowed'")
    assert state.webhook.answered(9) == ()


def test_a_saved_query_whose_text_was_changed_in_the_table_is_not_given(place, state):  # noqa: F811
    state.queries.add(QUERY, QueryContent("SELECT 1"))
    state.queries.change(structs.replace(QUERY, version=1), 1, QueryContent("SELECT 2"))
    state.queries.note_run("q1", "eve", 1)
    assert state.queries.last_runs("eve", ["q1"]) == {"q1": 1}
    place.ask("UPDATE query_versions SET text = 'DELETE FROM t' WHERE version = 2")
    assert "past the gates" in refusal(lambda: state.queries.version("q1", 2)).message
    assert state.queries.version("q1", 1).content.text == "SELECT 1"
    assert [each.version for each in state.queries.versions("q1")] == [1]
    place.ask("UPDATE query_runs SET version = 2")  # that the person has run it as it is now
    assert state.queries.last_runs("eve", ["q1"]) == {}
    state.queries.note_run("q1", "eve", 2)
    assert state.queries.last_runs("eve", ["q1"]) == {"q1": 2}


def test_a_statement_that_no_person_confirmed_answers_no_question(place, state):  # noqa: F811
    state.questions.add_pair(PAIR)
    state.questions.add_answer(ANSWER, 0.0)
    assert state.questions.pairs("s1") == (PAIR,) and state.questions.answer("a-1") == ANSWER
    place.ask("UPDATE confirmed_pairs SET sql = 'SELECT 2'")
    place.ask("UPDATE answers SET sql = 'SELECT 2'")  # before a person confirms it
    assert state.questions.pairs("s1") == () and state.questions.answer("a-1") is None
    state.questions.add_pair(PAIR)
    place.ask("UPDATE confirmed_pairs SET source_id = 's2'")
    assert state.questions.pairs("s2") == ()


def test_what_was_confirmed_for_a_source_is_so_under_its_new_name(place, state):  # noqa: F811
    state.sources.add(SOURCE)
    state.changes.prepare(CHANGE, b"key", b"image", 1_000)
    state.changes.prepare(structs.replace(CHANGE, id="c2"), b"key", b"image", 1_000)
    place.ask("UPDATE changes SET actor = 't2' WHERE id = 'c2'")
    state.questions.add_pair(PAIR)
    state.questions.add_pair(structs.replace(PAIR, id="p2", question="why"))
    place.ask("UPDATE confirmed_pairs SET sql = 'SELECT 2' WHERE id = 'p2'")
    state.sources.rename(SOURCE, structs.replace(SOURCE, name="store", id="s2"), 130.0)
    assert state.questions.pairs("s2") == (structs.replace(PAIR, source_id="s2"),)
    renamed = structs.replace(CHANGE, source="store", source_id="s2")
    assert state.changes.list(["s2"], limit=9) == (renamed,)


def test_a_change_that_was_written_past_the_gates_is_as_if_it_were_not_there(place, state):  # noqa: F811
    other_call = structs.replace(CHANGE, id="c2", call_id="k2")
    state.changes.prepare(CHANGE, b"key", b"image", 1_000)
    state.changes.prepare(other_call, b"key", b"image", 1_000)
    place.ask("UPDATE changes SET actor = 't2', call_id = 'k1' WHERE id = 'c1'")
    assert state.changes.find("c1") is None and state.changes.has_foreign("c1")
    assert state.changes.find("c2") == other_call and not state.changes.has_foreign("c2")
    assert state.changes.of_call("k1") is None and state.changes.of_call("k2") == other_call
    assert state.changes.list(["s1"], limit=9) == state.changes.starting("c") == (other_call,)
    assert not state.changes.confirm(CHANGE)
    assert place.ask("SELECT state FROM changes WHERE id = 'c1'") == [("prepared",)]
    place.ask("UPDATE changes SET actor = 't1', call_id = '' WHERE id = 'c1'")
    assert state.changes.confirm(CHANGE) and state.changes.find("c1").state == "done"
    state.changes.forget(200.0)
    assert place.ask("SELECT * FROM stamps WHERE area = 'changes'") == []


def test_what_became_of_a_change_is_known_though_its_row_was_put_back(place, state, tmp_path):  # noqa: F811
    (tmp_path / "b").mkdir()
    other = place.open(directory=tmp_path / "b")
    undo = structs.replace(CHANGE, id="c2", undoes="c1", expires_at=300.0)
    entries = {each.id: each for each in (CHANGE, undo, structs.replace(CHANGE, id="c3"))}
    for each in entries.values():
        state.changes.prepare(each, b"key", b"image", 1_000)
    state.changes.confirm(CHANGE)
    tables = ("changes", "stamps")
    rows = [keep(place, table, "true") for table in tables]
    place.ask("DELETE FROM changes WHERE id = 'c1'")  # while its undo runs
    state.changes.confirm(undo)
    state.changes.discard(entries["c3"])
    for restore in rows:
        restore()
    for gate in (state, other):
        current = [gate.changes.current(each) for each in entries.values()]
        assert current == [structs.replace(CHANGE, state="undone"), undo, None]
    place.ask("DELETE FROM seals WHERE area = 'used_values'")
    assert refusal(lambda: other.changes.current(CHANGE)).code is Code.STATE_FAILED


def test_a_state_that_was_sealed_before_there_were_stamps_gets_them_once(place, state):  # noqa: F811
    former = lists(place, "cluster")
    state.questions.add_pair(PAIR)
    state.close()
    forget_stamps(place)
    again = place.open()
    assert again.questions.pairs("s1") == (PAIR,)
    assert again.shared.use_once("k", "n1", 700.0, 100.0)
    again.close()
    place.ask("DELETE FROM stamps")
    assert place.open().questions.pairs("s1") == ()
    assert len(former) == 1


def test_changes_that_were_kept_before_they_had_stamps_get_them_once(place, state):  # noqa: F811
    state.questions.add_pair(PAIR)
    state.changes.prepare(CHANGE, b"key", b"image", 1_000)
    assert state.shared.use_once("k", "n1", 700.0, 100.0)
    state.close()
    forget_stamps(place, stamps=b"")
    place.ask("UPDATE confirmed_pairs SET sql = 'SELECT 2'")
    again = place.open()
    assert again.changes.find("c1") == CHANGE and again.questions.pairs("s1") == ()
    assert not again.shared.use_once("k", "n1", 700.0, 101.0)
    again.close()
    place.ask("UPDATE changes SET actor = 't2'")
    assert place.open().changes.find("c1") is None


def forget_stamps(place, **macs):  # noqa: F811
    """What a version has left that knew none, or fewer."""
    from tidegate.store.seal_lives import CLUSTER
    from tidegate.store.sealed_lists import SealedList, SealKeys

    ((_, number, body, mac),) = lists(place, CLUSTER)
    keys = SealKeys(postgres_state.KEY, "")
    made = keys.read(CLUSTER, 0, number, (bytes(body), bytes(mac)))
    life = SealedList(number, {"life": made.macs["life"], **macs})
    put_back(place, CLUSTER, [(0, number, *keys.write(CLUSTER, 0, life))])
    if macs:
        place.ask("DELETE FROM stamps WHERE area = 'changes'")
        return
    place.ask("DELETE FROM stamps")
    place.ask("DELETE FROM seals WHERE area = 'used_values'")


def test_who_says_that_the_state_was_on_this_server_before_revives_no_grant(tmp_path):
    """After a failover the first gate ends what may have been used up on the former server."""
    postgres_state.empty_state()
    server = Postgres(tmp_path)
    gate = server.open()
    try:
        allow(gate)
        server.ask("UPDATE about SET epoch_at = 1, timeline = timeline")
        gate.read_versions()
        assert gate.approvals.answer("d", BOUNDS, 120.0) is None
        ((epoch,),) = server.ask("SELECT epoch_at FROM about")
        assert epoch > 1_000_000.0
        allow(gate, "a2", "d2")
        gate.read_versions()
        assert server.ask("SELECT epoch_at FROM about") == [(epoch,)]
        assert gate.approvals.answer("d2", BOUNDS, 120.0) is not None
    finally:
        server.close()
