"""No function outside the list and no attribute goes past the judge, wherever it stands."""

from __future__ import annotations

from hypothesis import given, settings
from hypothesis import strategies as st

from tidegate.errors import TidegateError
from tidegate.products.datalog.language.functions import (
    AGGREGATES,
    NESTED,
    OF_ENTITY,
    PLAIN,
    SEARCHES,
)
from tidegate.products.datalog.language.query import judge_query
from tidegate.products.datalog.language.reader import read
from tidegate.products.datalog.language.values import Keyword, List, Map, Symbol, Value, Vector
from tidegate.products.datalog.language.writer import write

_CALLED = PLAIN | OF_ENTITY | SEARCHES | {NESTED} | AGGREGATES
_WORDS = [
    "?x",
    "?e",
    "$",
    "%",
    "_",
    ".",
    "...",
    "slurp",
    "clojure.core/slurp",
    "not",
    "or",
    "and",
    "or-join",
    "not-join",
    "pull",
    "count",
    "q",
    "get-else",
    "fulltext",
    "=",
    "vector",
    "r",
]
_KEYS = ["find", "in", "where", "a/b", "secret/x", "having", "order-by", "xform"]

_leaves: st.SearchStrategy[Value] = st.one_of(
    st.sampled_from(_WORDS).map(Symbol), st.sampled_from(_KEYS).map(Keyword), st.just("x"),
    st.integers(0, 3),
)  # fmt: skip
_forms: st.SearchStrategy[Value] = st.recursive(
    _leaves,
    lambda inner: st.one_of(
        st.lists(inner, max_size=4).map(lambda items: Vector(tuple(items))),
        st.lists(inner, max_size=4).map(lambda items: List(tuple(items))),
        st.tuples(inner, inner).map(lambda pair: Map((pair,))),
    ),
    max_leaves=10,
)

_pattern = st.tuples(st.just(Symbol("?e")), _leaves | _forms, _leaves | _forms).map(Vector)
_call = st.tuples(
    st.lists(_leaves | _forms, min_size=1, max_size=4).map(lambda items: List(tuple(items))),
    st.just(Symbol("?x")),
).map(Vector)
_clauses: st.SearchStrategy[Value] = st.recursive(
    st.one_of(_pattern, _pattern, _call, _forms),
    lambda inner: st.tuples(st.sampled_from(["not", "or", "and"]).map(Symbol), inner).map(List),
    max_leaves=3,
)
_found = st.just(Symbol("?x")) | _forms


def _called(form: Value) -> set[str]:
    """The heads of the lists in a form: what could be called."""
    match form:
        case List(items) | Vector(items):
            first = items[0] if items else None
            head = {first.name} if isinstance(first, Symbol) else set[str]()
            return head.union(*map(_called, items))
        case Map(pairs):
            return set[str]().union(*(_called(key) | _called(each) for key, each in pairs))
        case _:
            return set()


def _attributes(form: Value) -> set[str]:
    match form:
        case Keyword(name):
            return {name}
        case List(items) | Vector(items):
            return set[str]().union(*map(_attributes, items))
        case Map(pairs):
            return set[str]().union(*(_attributes(key) | _attributes(each) for key, each in pairs))
        case _:
            return set()


@given(st.lists(_clauses, min_size=1, max_size=3), st.lists(_found, min_size=1, max_size=2))
@settings(max_examples=400, deadline=None)
def test_a_query_that_passes_calls_listed_functions_and_hides_no_attribute(
    clauses: list[Value], found: list[Value]
) -> None:
    query = Vector((Keyword("find"), *found, Keyword("where"), *clauses))
    try:
        reading = judge_query(read(write(query)))
    except TidegateError:
        return
    clauses = [each for each in clauses if not isinstance(each, Keyword)]
    for form in (*clauses, *found):
        words = {name for name in _called(form) if not name.startswith(("?", "$")) and name != "_"}
        assert words <= _CALLED | {"not", "or", "and", "or-join", "not-join", "pull"}
    if not reading.everything:
        for form in clauses:
            assert _attributes(form) & {"a/b", "secret/x"} <= reading.attributes
