"""YAML documents become the values that JSON would have, or are refused with the line."""

from __future__ import annotations

import json

import pytest
import yaml
from hypothesis import given, settings
from hypothesis import strategies as st

from tidegate.errors import Code, TidegateError
from tidegate.products.cloud.documents import yaml_reader
from tidegate.products.cloud.documents.yaml_reader import read_yaml


@pytest.mark.parametrize(
    ("text", "value"),
    [
        (
            "a: on\nb: yes\nc: 2021-09-30\nd: 1_000",
            {"a": "on", "b": "yes", "c": "2021-09-30", "d": "1_000"},
        ),
        ("a: ~\nb:\nc: null\nd: 'null'", {"a": None, "b": None, "c": None, "d": "null"}),
        ("200: ok\n'201': made\ntrue: t", {"200": "ok", "201": "made", "true": "t"}),
        ("[0x1F, 0o17, 017, -3, 1e3, .5, 1., '7']", [31, 15, 17, -3, 1000.0, 0.5, 1.0, "7"]),
        ("a: !!str 7\nb: !!int '7'\nc: !!float '7'", {"a": "7", "b": 7, "c": 7}),
        ("a: !<tag:yaml.org,2002:js/undefined> ''\nb: !what {c: 1}", {"a": "", "b": {"c": 1}}),
        (
            "a: &x {b: 1}\nc: *x\nd: {<<: *x, e: 2}",
            {"a": {"b": 1}, "c": {"b": 1}, "d": {"e": 2, "b": 1}},
        ),
        ("a: !!python/object/apply:os.system ['true']", {"a": ["true"]}),
        ("a: |\n  two\n  lines\n", {"a": "two\nlines\n"}),
        ("", None),
    ],
)
def test_scalars_follow_the_core_schema(text: str, value: object) -> None:
    assert read_yaml(text.encode(), "a.yaml") == value


@pytest.mark.parametrize(
    ("text", "problem"),
    [
        ("a: 1\nb: 2\na: 3", "a.yaml, line 3: the key `a` is given twice"),
        ("a: &x [*x]", "a.yaml, line 1: the alias `x` names nothing before it"),
        ("a: 1\n---\nb: 2", "a.yaml, line 2: it holds several documents"),
        ("a: [1", "did not find expected ',' or ']'"),
        ("a: !!int x", "a.yaml, line 1: `x` is no int"),
        ("? [1, 2]\n: 3", "a.yaml, line 1: a key is no text"),
        ('{"a":' * 300 + "1" + "}" * 300, "a.yaml, line 1: it is nested deeper than 200 levels"),
        ("[" * 300 + "]" * 300, "a.yaml, line 1: it is nested deeper than 200 levels"),
        ('{"a": 1, "a": 2}', "a.yaml, line 1: the key `a` is given twice"),
        ('{"a": NaN, "a": 2}', "a.yaml, line 1: the key `a` is given twice"),
        ("a: {<<: 3}", "a.yaml: a merge key `<<` has a value that is no mapping"),
    ],
)
def test_what_is_no_document_is_refused_with_its_line(text: str, problem: str) -> None:
    with pytest.raises(TidegateError) as caught:
        read_yaml(text.encode(), "a.yaml")
    assert caught.value.code is Code.DOCUMENT_INVALID
    assert problem in str(caught.value)


def test_text_that_is_not_utf_8_is_refused() -> None:
    with pytest.raises(TidegateError, match=r"a\.yaml"):
        read_yaml(b"a: \xff\xfe\xfa", "a.yaml")


def test_aliases_cannot_multiply_without_bound(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(yaml_reader, "MOST_VALUES", 10_000)
    lines = ["a0: &a0 [1, 2, 3, 4, 5, 6, 7, 8, 9, 10]"]
    lines += [f"a{at}: &a{at} [{', '.join([f'*a{at - 1}'] * 10)}]" for at in range(1, 9)]
    with pytest.raises(TidegateError, match="more than 10,000 values"):
        read_yaml("\n".join(lines).encode(), "a.yaml")


_VALUES = st.recursive(
    st.none() | st.booleans() | st.integers(-(10**30), 10**30) | st.text(max_size=12),
    lambda inner: (
        st.lists(inner, max_size=4) | st.dictionaries(st.text(max_size=6), inner, max_size=4)
    ),
    max_leaves=12,
)


@given(_VALUES)
@settings(max_examples=150)
def test_json_reads_as_the_value_that_it_is(value: object) -> None:
    assert read_yaml(json.dumps({"a": value}).encode(), "a.json") == {"a": value}


@given(_VALUES)
@settings(max_examples=150)
def test_what_pyyaml_writes_reads_as_the_same_value(value: object) -> None:
    # Quoted: PyYAML follows YAML 1.1, where `on` is a boolean.
    text = yaml.safe_dump(value, default_style='"', allow_unicode=True)
    assert read_yaml(text.encode(), "a.yaml") == value
