"""Options of Datalevin: one list for the judge and the engine."""

from __future__ import annotations

from typing import Any

import pytest

from tidegate.errors import Code, TidegateError
from tidegate.products.datalog.language.judge import judge_operation
from tidegate.products.datalog.language.options import ALLOWED, check_options
from tidegate.products.datalog.requests import DatalogTarget, TargetKind

KINDS: tuple[TargetKind, ...] = ("database", "kv", "search_index", "vector_index")
FUNCTION = {"~edn": "clojure.core/slurp"}


def test_names_and_values_come_in_one_spelling() -> None:
    assert check_options("open_database", None) == {}
    assert check_options("search_documents", {"display": "refs", ":top": 3}) == {
        ":display": ":refs",
        ":top": 3,
    }
    domains = {"notes": {"include-text?": True, "search-opts": {"display": ":texts"}}}
    assert check_options("open_database", {"search-domains": domains}) == {
        ":search-domains": {
            "notes": {":include-text?": True, ":search-opts": {":display": ":texts"}}
        }
    }
    vectors = {":dimensions": 3, "metric-type": "cosine"}
    assert check_options("open_vector_index", vectors)[":metric-type"] == ":cosine"


@pytest.mark.parametrize("operation", sorted(ALLOWED))
@pytest.mark.parametrize(
    "value", [FUNCTION, {"~edn": "(fn [x] x)"}, -1, 10**12, None, [[]], "../x"]
)
def test_no_option_takes_a_function_or_a_value_without_bounds(operation: str, value: Any) -> None:
    for name in ALLOWED[operation]:
        with pytest.raises(TidegateError) as caught:
            check_options(operation, {f":{name}": value})
        assert caught.value.code is Code.ARGUMENT_INVALID
        assert f":{name}" in caught.value.message


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize(
    "name",
    [
        *("temp?", "flags", "inmemory?", "wal?", "spill-opts", "snapshot-dir", "runtime-opts"),
        *(
            "analyzer",
            "query-analyzer",
            "embedding-opts",
            "embedding-domains",
            "db-name",
            "ha-mode",
        ),
        *("doc-filter", "vec-filter", "client-opts", "dir", "udf-registry"),
    ],
)
def test_what_is_not_on_the_list_is_refused_before_anything_is_opened(
    kind: TargetKind, name: str
) -> None:
    options = {":dimensions": 2} if kind == "vector_index" else {}
    judge_operation(f"open_{kind}", {}, target=DatalogTarget(kind, options))
    for target in (
        DatalogTarget(kind, {**options, f":{name}": True}),
        DatalogTarget(kind, options, {f":{name}": True}),
    ):
        with pytest.raises(TidegateError) as caught:
            judge_operation(f"close_{kind}", {}, target=target)
        assert caught.value.code is Code.ARGUMENT_INVALID


@pytest.mark.parametrize(
    "option",
    [
        {":search-opts": {":analyzer": FUNCTION}},
        {":search-domains": {"../x": {}}},
        {":search-domains": {"x": {":domain": "../../x"}}},
        {":vector-domains": {"x": {":dimensions": 10**9}}},
        {":vector-opts": {":search-opts": {":vec-filter": FUNCTION}}},
        {":search-domains": {str(number): {} for number in range(65)}},
    ],
)
def test_options_within_options_are_checked_alike(option: dict[str, Any]) -> None:
    with pytest.raises(TidegateError):
        check_options("open_database", option)
