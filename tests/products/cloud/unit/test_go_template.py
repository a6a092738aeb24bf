"""Templates of provider documents write what Go's text/template writes, and end within bounds."""

from __future__ import annotations

import json
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tidegate.errors import Code, TidegateError
from tidegate.products.cloud.documents.template_functions import TemplateError
from tidegate.products.cloud.http import go_template
from tidegate.products.cloud.http.go_template import parse_template, render_template


def render(text: str, data: Any) -> str:
    return parse_template(text).render(data)


@pytest.mark.parametrize(
    ("text", "data", "result"),
    [
        ("a {{ .b }} c", {"b": "x"}, "a x c"),
        ("a {{- .b -}} c", {"b": "x"}, "axc"),
        ("{{ .a.b.c }}", {"a": {"b": {"c": [1, {"d": None}]}}}, '[1,{"d":null}]'),
        ("{{ .absent }}|{{ toJson .absent }}", {}, "<no value>|null"),
        ("{{ if .a }}1{{ else if .b }}2{{ else }}3{{ end }}", {"b": "x"}, "2"),
        ("{{ if and .a (gt (len .a) 1) }}y{{ else }}n{{ end }}", {"a": [1, 2]}, "y"),
        ("{{ if or .a .b }}y{{ end }}{{ if not .a }}n{{ end }}", {"b": 0}, "n"),
        ("{{ range . }}{{ . }};{{ else }}none{{ end }}", [1, "b"], "1;b;"),
        ("{{ range . }}{{ . }};{{ else }}none{{ end }}", [], "none"),
        ("{{ range $k, $v := . }}{{ $k }}={{ $v }} {{ end }}", {"b": 2, "a": 1}, "a=1 b=2 "),
        (
            "{{ range $i, $v := .a }}{{ if $i }},{{ end }}{{ $.n }}{{ $v }}{{ end }}",
            {"a": [1, 2], "n": "x"},
            "x1,x2",
        ),
        ("{{ with .a }}{{ .b }}{{ else }}-{{ end }}", {"a": {"b": 5}}, "5"),
        ('{{ $s := "" }}{{ range . }}{{ $s }}{{ . }}{{ $s = "," }}{{ end }}', ["a", "b"], "a,b"),
        (
            '{{ $s := separator ", " }}{{ range . }}{{ call $s }}{{ . }}{{ end }}',
            [1, 2, 3],
            "1, 2, 3",
        ),
        ('{{ index . "a" 1 "b" }}', {"a": [0, {"b": True}]}, "true"),
        ("{{ (index .a 0).b }}", {"a": [{"b": 3}]}, "3"),
        ('{{ .a | toJson | printf "<%s>" }}', {"a": {"k": 'ü"'}}, '<{"k":"ü\\""}>'),
        (
            '{{ printf "%q:%s:%d:%v:%%" .a .a .n .b }}',
            {"a": 'x"y', "n": 7, "b": [1]},
            '"x\\"y":x"y:7:[1]:%',
        ),
        ('{{ index (jsonMapFromString (printf "{\\"a\\":%s}" .)) "a" }}', "[1,2]", "[1,2]"),
        (
            "{{ range . }}{{ kindOf . }} {{ end }}",
            [{}, [], "", 1, True, None],
            "map slice string float64 bool invalid ",
        ),
        (
            "{{ eq .a 1 2 }} {{ eq .a `2` }} {{ ne .a 3 }} {{ lt .a 3 }} {{ ge .a 3 }}",
            {"a": 2},
            "true false true true false",
        ),
        ("{{/* a comment }} */}}x{{- /* another */ -}} y", {}, "xy"),
        ('{"rows": [{{{- if . -}}"a": 1{{- end -}}}]}', {"b": 1}, '{"rows": [{"a": 1}]}'),
        ('{{ `raw \\n` }}{{ "tab\\t\\u00e9" }}', {}, "raw \\ntab\té"),
        (
            '{{ define "r" }}<{{ .a }}{{ $ }}>{{ end }}{{ range . }}{{ template "r" . }}{{ end }}',
            [{"a": 1}],
            '<1{"a":1}>',
        ),
        (
            '{{ range . }}{{ template "a" .x }}{{ end }}{{ define "a" }}{{ . }};{{ end }}',
            [{"x": 1}, {"x": "b"}],
            "1;b;",
        ),
        ('{{ block "b" .a }}[{{ . }}]{{ end }}{{ template "b" 2 }}', {"a": 1}, "[1][2]"),
        (
            '{{ define "n" }}{{ with .n }}{{ .v }}{{ template "n" . }}{{ end }}{{ end }}'
            '{{ template "n" . }}',
            {"n": {"v": 1, "n": {"v": 2}}},
            "12",
        ),
        (
            '{{ $v := 1 }}{{ define "v" }}{{ with $v := 2 }}{{ $v }}{{ end }}{{ end }}'
            '{{ template "v" }}{{ $v }}',
            {},
            "21",
        ),
        (
            "{{ range . }}{{ if eq . 2 }}{{ continue }}{{ end }}{{ if eq . 4 }}{{ break }}{{ end }}"
            "{{ . }}{{ end }}.",
            [1, 2, 3, 4, 5],
            "13.",
        ),
        (
            "{{ range . }}{{ range . }}{{ if eq . 2 }}{{break}}{{ end }}{{ . }}{{ end }};{{ end }}",
            [[1, 2, 3], [3, 2], []],
            "1;3;;",
        ),
        ("{{ range 3 }}{{ . }}{{ end }}", {}, "012"),
        (
            '{{ printf "%T %T %T" . (index . "a") (index . "b") }}',
            {"a": [1], "b": "x"},
            "map[string]interface {} []interface {} string",
        ),
        (
            '{{ toInt "12kg" }}{{ toInt .x }} {{ toBool "true" }}{{ toBool "yes" }}',
            {},
            "120 truefalse",
        ),
        (
            '{{ safeIndex . "a" }}{{ if safeIndex "text" "a" }}x{{ end }}{{ plus1 1 }}',
            {"a": 5},
            "52",
        ),
        ('{{ slice "abcdef" 1 3 }}{{ slice . 1 }}', [1, 2], "bc[2]"),
        ('{{ print 1 2 "a" 3 }} {{ println 1 "a" }}', {}, "1 2a3 1 a\n"),
        (
            '{{ title "ab cd" }} {{ html "<a>" }} {{ urlquery "a b&c" }}',
            {},
            "Ab Cd &lt;a&gt; a+b%26c",
        ),
        (
            '{{ getRegexpFirstMatch . "Algorithm: (?<any>.*)" }}'
            "{{ range getRegexpAllMatches . `(\\w+): (\\w+)` }} {{ . }}{{ end }}",
            "Public Algorithm: rsa\nMore: x",
            "rsa Algorithm rsa",
        ),
        (
            '{{ range getXPathAllOuter . "/r/as/a" }}{{ getXPath . "/a/n" }}='
            '{{ getXPath . "/a" }};{{ end }}',
            "<r><as><a><n>x</n><v>1</v></a><a><n>y &amp; z</n></a></as></r>",
            "x=x1;y & z=y & z;",
        ),
        (
            '{{ getXPath . "//v" }}',
            '<?xml version="1.0"?><r xmlns="u:v"><as><v>7</v></as></r>',
            "7",
        ),
        (
            "{{ .n }} {{ .f }}",
            {"n": 12345678901234567890, "f": 1e6},
            "12345678901234567890 1000000.0",
        ),
    ],
)
def test_templates_write(text: str, data: Any, result: str) -> None:
    assert render(text, data) == result


@pytest.mark.parametrize(
    "text",
    [
        "{{ if .a }}", "{{ end }}", "{{ .a", "{{ nothing .a }}", "{{ }}", "{{ (.a }}", "{{ .a ) }}",
        "{{ define \"x\" }}", "{{ template \"x\" }}", "{{ template x }}", "{{ 1 | 2 }}",
        "{{ define \"x\" . }}{{ end }}", "{{ if . }}{{ define \"x\" }}{{ end }}{{ end }}",
        "{{ break }}", "{{ if . }}{{ continue }}{{ end }}", "{{ range . }}{{ break 1 }}{{ end }}",
        "{{ range . }}{{ block \"x\" . }}{{ break }}{{ end }}{{ end }}", "{{ $ := }}",
        "{{ \"open }}",
        "{{ else }}", "{{ range }}{{ end }}", "{{ a := 1 }}", "{{ .a ; .b }}",
        "{{ " + "(" * 300 + ".a" + ")" * 300 + " }}", "{{ if . }}" * 300 + "{{ end }}" * 300,
        "{{ \"" * 40_000, "{{" * 100_000, "{{ /*" + "*" * 100_000, "x" * 300_000,
    ],
)  # fmt: skip
def test_what_is_not_understood_is_refused_before_it_runs(text: str) -> None:
    with pytest.raises(TemplateError):
        parse_template(text)


@pytest.mark.parametrize(
    ("text", "data"),
    [
        ("{{ index .a \"b\" }}", {}),
        ("{{ index .a 3 }}", {"a": [1]}),
        ("{{ .a.b }}", {"a": "text"}),
        ("{{ range .a }}{{ end }}", {"a": "text"}),
        ("{{ $x }}", {}),
        ("{{ $x = 1 }}", {}),
        ("{{ gt .a 1 }}", {"a": "text"}),
        ("{{ len .a }}", {"a": 1}),
        ("{{ call .a }}", {"a": 1}),
        ("{{ jsonMapFromString .a }}", {"a": "[1]"}),
        ("{{ jsonMapFromString .a }}", {"a": "{"}),
        ('{{ define "x" }}{{ template "x" . }}{{ end }}{{ template "x" . }}', {}),
        ('{{ getXPath .a "/b" }}', {"a": "<a/>"}),
        ('{{ getXPath .a "/b" }}', {"a": "no xml"}),
        ('{{ getXPath .a "b" }}', {"a": "<b/>"}),
        ('{{ getRegexpFirstMatch .a "x(.)" }}', {"a": "none"}),
        ('{{ getRegexpFirstMatch .a "(a|a)*b" }}', {"a": "a" * 99}),
        ('{{ slice .a 2 9 }}', {"a": "abc"}),
        ('{{ plus1 .a }}', {"a": "x"}),
        ("{{ printf \"%d\" .a }}", {"a": "x"}),
    ],
)  # fmt: skip
def test_input_that_does_not_fit_is_an_error_and_no_short_result(text: str, data: Any) -> None:
    with pytest.raises(TidegateError) as caught:
        render_template(text, data, "a.b.c")
    assert caught.value.code is Code.DOCUMENT_INVALID
    assert "a.b.c" in caught.value.message


def test_steps_and_output_are_bounded(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(go_template, "MOST_STEPS", 5_000)
    nested = "{{ range $.a }}" * 6 + "{{ . }}" + "{{ end }}" * 6
    with pytest.raises(TemplateError, match="steps"):
        render(nested, {"a": list(range(20))})
    monkeypatch.setattr(go_template, "MOST_OUTPUT", 1_000)
    with pytest.raises(TemplateError, match="characters"):
        render("{{ range .a }}{{ $.b }}{{ end }}", {"a": [0] * 100, "b": "x" * 100})


@given(st.text(alphabet='{}-|.$()"` \nabif=:,end1', max_size=80))
@settings(max_examples=400)
def test_any_text_is_a_template_or_refused(text: str) -> None:
    try:
        parse_template(text)
    except TemplateError as error:
        assert str(error)


@given(
    st.dictionaries(
        st.text(max_size=5), st.none() | st.integers() | st.text(max_size=5), max_size=4
    )
)
@settings(max_examples=100)
def test_flattened_rows_are_json_whatever_they_hold(row: dict[str, Any]) -> None:
    text = '{ {{ range $k, $v := . }}{{ printf "%q" $k }}: {{ toJson $v }}, {{ end }}"_end": true }'
    assert json.loads(render(text, row)) == {**row, "_end": True}
