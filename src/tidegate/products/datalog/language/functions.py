"""What may be called in a query: names of Datalevin's built-in functions that are pure (tables).

Everything else is refused, with writes or without: a name with a namespace would be looked up in
the Java process, where `clojure.core/slurp` and `datalevin.core/transact!` are as near as `+`.
Source: `datalevin.built-ins` 1.2.8 (`query-fns`, `aggregates`). Of these, `apply`, `udf`,
`complement`, `meta`, `type` and `embedding-neighbors` are left out: they call what they are given,
show the process, or send text to another service.
"""

from __future__ import annotations

PLAIN = frozenset(
    {
        "=", "==", "not=", "!=", "<", ">", "<=", ">=", "+", "-", "*", "/", "quot", "rem", "mod",
        "inc", "dec", "max", "min", "zero?", "pos?", "neg?", "even?", "odd?", "compare", "rand",
        "rand-int", "true?", "false?", "nil?", "some?", "not", "and", "or", "identical?",
        "identity", "keyword", "name", "namespace", "vector", "list", "set", "hash-map",
        "array-map", "count", "range", "not-empty", "empty?", "contains?", "str", "pr-str",
        "print-str", "println-str", "prn-str", "subs", "get", "re-find", "re-matches", "re-seq",
        "re-pattern", "-differ?", "ground", "tuple", "untuple", "like", "not-like", "in", "not-in",
        "idoc-get",
    }
)  # fmt: skip
"""Functions and predicates of their arguments alone."""

OF_ENTITY = frozenset({"get-else", "get-some", "get-some-else", "missing?"})
"""Functions that read attributes of an entity: the database, the entity, attributes and values."""

SEARCHES = frozenset({"fulltext", "vec-neighbors", "idoc-match"})
"""Functions that search an attribute, if the second argument names one, or else all."""

NESTED = "q"
"""The function that runs a query, which is its first argument."""

MAKERS_OF_VALUES = frozenset({"keyword", "vector", "list", "tuple", "get", "re-find", "re-seq"})
"""Functions that could make a keyword, or a reference to an entity by a value, out of data."""

AGGREGATES = frozenset(
    {
        "sum", "avg", "median", "variance", "stddev", "distinct", "vec", "min", "max", "rand",
        "sample", "count", "count-distinct",
    }
)  # fmt: skip

ARITHMETIC = frozenset({"+", "-", "*", "/", "mod", "rem", "quot"})
"""What `:find` may compute of aggregates."""

TRANSFORMS = frozenset({"name", "namespace", "str", "count", "inc", "dec", "identity", "not"})
"""What `:xform` of a pull may name."""
