"""Rankings joined by place, chunks of texts, BM25, and the choice of unlike chunks."""

from __future__ import annotations

from math import log

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tidegate.search import bm25
from tidegate.search.chunks import Chunk, count_tokens, cut
from tidegate.search.selection import choose, fuse, places


def test_the_score_of_a_row_is_the_sum_of_its_weighted_reciprocal_places():
    fused = fuse([(0.7, ["a", "b"]), (1.0, ["b", "c"])])
    assert fused == pytest.approx({"b": 0.7 / 62 + 1 / 61, "c": 1 / 62, "a": 0.7 / 61})
    assert list(fused) == ["b", "c", "a"]


def test_rows_of_equal_score_are_in_the_order_of_the_first_ranking():
    assert list(fuse([(1.0, ["a"]), (1.0, ["b"])])) == ["a", "b"]


def test_places_count_from_one():
    assert places(["x", "y"]) == {"x": 1, "y": 2}


@given(st.text(alphabet=st.sampled_from("ab \n日本ж"), max_size=400), st.integers(10, 60))
def test_chunks_hold_every_word_in_order_and_are_no_longer_than_asked(text: str, size: int):
    chunks = cut(text, size)
    assert [chunk.number for chunk in chunks] == list(range(1, len(chunks) + 1))
    covered = set[int]()
    for chunk in chunks:
        assert text[chunk.start : chunk.end] == chunk.text
        covered.update(range(chunk.start, chunk.end))
        assert chunk.tokens <= size + 2
    assert all(character.isspace() for at, character in enumerate(text) if at not in covered)
    assert [chunk.start for chunk in chunks] == sorted({chunk.start for chunk in chunks})


def test_neighbouring_chunks_share_about_the_overlap():
    text = " ".join(f"word{number}" for number in range(200))
    first, second, *_ = cut(text, 100)
    assert len(first.text.split()) == 75
    shared = set(first.text.split()) & set(second.text.split())
    assert len(shared) == 18


def test_a_text_without_spaces_is_cut_inside():
    assert [len(chunk.text) for chunk in cut("日" * 100, 40)] == [34, 34, 32]
    assert len(cut("x" * 10_000, 50)) > 1


def test_tokens_are_more_than_words_and_none_for_no_text():
    assert count_tokens("") == 0
    assert count_tokens("three plain words") == 4
    assert count_tokens("日本語") == 3


def test_bm25_prefers_rare_words_and_short_texts():
    texts = ["red boots", "red boots and many other things besides", "red sky", "blue sky"]
    scores = bm25.score(texts, ["red", "boots"])
    assert scores[0] > scores[1] > scores[2] > scores[3] == 0


def test_the_document_frequencies_of_the_table_count_where_they_are_known():
    here = bm25.score(["a1 b1", "b1"], ["a1", "b1"])
    there = bm25.score(["a1 b1", "b1"], ["a1", "b1"], {"a1": 1_000, "b1": 1}, 1_000)
    assert here[0] > here[1]
    assert there[1] > there[0] - there[1] * 0.9
    assert bm25.idf(1, 1_000) == pytest.approx(log(999.5 / 1.5 + 1))


@given(st.floats(0, 1e9), st.floats(0, 1e9))
def test_no_word_counts_against_a_text(count: float, total: float):
    assert bm25.idf(count, total) >= 0


def test_terms_are_folded_and_counted_once():
    assert bm25.terms("The BOOTS, the boots! a 7") == ["the", "boots", "7"]
    assert bm25.terms("a b") == ["a", "b"]
    assert bm25.terms("?!") == []


def test_with_lambda_one_the_order_is_that_of_relevance():
    found = choose([0.2, 0.9, 0.5], lambda a, b: 1.0, 1.0, 3)
    assert [place for place, _ in found] == [1, 2, 0]


def test_what_is_like_something_chosen_comes_later_by_its_highest_similarity():
    alike = {frozenset((0, 1)): 0.95, frozenset((0, 2)): 0.0, frozenset((1, 2)): 0.0}
    found = choose([1.0, 0.9, 0.5], lambda a, b: alike[frozenset((a, b))], 0.5, 3)
    assert [place for place, _ in found] == [0, 2, 1]
    # Not the lowest one: place 1 is unlike place 2 and still like place 0.
    assert found[2][1] == pytest.approx(0.5 * 0.9 - 0.5 * 0.95)


def test_no_more_are_chosen_than_asked():
    assert len(choose([1.0] * 9, lambda a, b: 0.0, 0.6, 4)) == 4
    assert choose([], lambda a, b: 0.0, 0.6, 4) == []


def test_a_chunk_knows_where_it_stands():
    assert cut("one two", 10) == [Chunk(1, "one two", 3, 0, 7)]
