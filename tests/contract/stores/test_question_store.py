"""The contract of `QuestionStore`."""

from msgspec import structs

from tidegate.store.records import AnswerEntry, PairEntry, PairSlot, ProviderUseEntry

PAIR = PairEntry(
    "p-1",
    "s1",
    "orders since {1:date}",
    "SELECT count(*) FROM orders WHERE placed_at >= {1:date}",
    (PairSlot("1", "date", "main.orders.placed_at"),),
    ("main.orders",),
    "d1",
    "",
    "cli",
    5.0,
)


def test_pairs_are_kept_by_source_and_come_oldest_first(state, other):
    later = structs.replace(PAIR, id="p-0", question="another", confirmed_at=6.0)
    foreign = structs.replace(PAIR, id="p-2", source_id="s2")
    for pair in (later, PAIR, foreign):
        state.questions.add_pair(pair)
    assert other.questions.pairs("s1") == (PAIR, later)
    assert other.questions.pairs("s3") == ()


def test_a_pair_takes_the_place_of_one_of_the_same_question(state, other):
    state.questions.add_pair(PAIR)
    again = structs.replace(PAIR, id="p-9", sql="SELECT 1")
    other.questions.add_pair(again)
    assert state.questions.pairs("s1") == (again,)


def test_a_pair_is_removed_from_its_own_source_only(state, other):
    state.questions.add_pair(PAIR)
    assert not other.questions.remove_pair("s2", "p-1")
    assert other.questions.remove_pair("s1", "p-1")
    assert not state.questions.remove_pair("s1", "p-1")


def test_an_answer_is_found_until_it_is_forgotten(state, other):
    old = AnswerEntry("a-1", "tok_1", "s1", "how many?", "SELECT 1", 1.0)
    new = structs.replace(old, handle="a-2", answered_at=9.0)
    state.questions.add_answer(old, 0.0)
    assert other.questions.answer("a-1") == old
    state.questions.add_answer(new, 5.0)
    assert other.questions.answer("a-1") is None
    assert other.questions.answer("a-2") == new


def test_the_use_of_providers_adds_up_by_caller_kind_and_day(state, other):
    state.questions.use("tok_1", "language", "2026-11-23", 100, 1.5)
    other.questions.use("tok_1", "language", "2026-11-23", 20, 0.5)
    other.questions.use("tok_1", "embeddings", "2026-11-23", 9, 0.25)
    other.questions.use("tok_2", "language", "2026-11-23", 7, 0.0)
    used = state.questions.used
    assert used("tok_1", "language", "2026-11-23") == ProviderUseEntry(120, 2.0)
    assert used("tok_1", "language", "2026-11-24") == ProviderUseEntry()
    state.questions.use("tok_1", "language", "2026-11-24", 1, 0.0)
    assert used("tok_1", "language", "2026-11-23") == ProviderUseEntry()
    assert used("tok_1", "embeddings", "2026-11-23") == ProviderUseEntry(9, 0.25)
    assert used("tok_2", "language", "2026-11-23") == ProviderUseEntry(7, 0.0)
