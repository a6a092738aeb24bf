"""Files become facts, and the schema of their attributes is inferred."""

from __future__ import annotations

import re

import pytest

from tidegate.errors import TidegateError
from tidegate.products.datalog.language.import_records import (
    Format,
    as_vectors,
    infer,
    records_of,
    schema_of,
    vector_options,
)


def test_json_lines_become_entities_with_attributes_of_a_namespace() -> None:
    text = '{"name": "Ada", "age": 80, "likes": ["tea", null], "none": null}\n\n{"geo/x": 1.5}\n'
    assert records_of(text, "jsonl", "person") == [
        {":person/name": "Ada", ":person/age": 80, ":person/likes": ["tea"]},
        {":geo/x": 1.5},
    ]


def test_fields_of_csv_are_numbers_where_they_are_written_so() -> None:
    text = 'name,zip,age,ok,at\n"A, B",01234,7,true,2024-01-02T03:04:05Z\nC,,1.5,,\n'
    assert records_of(text, "csv", "") == [
        {
            ":name": "A, B",
            ":zip": "01234",
            ":age": 7,
            ":ok": True,
            ":at": {"~date": "2024-01-02T03:04:05Z"},
        },
        {":name": "C", ":age": 1.5},
    ]


def test_edn_is_maps_or_a_vector_of_maps() -> None:
    expected = [{":a/b": 1, ":c": [":x", ":y"]}, {":a/b": 2}]
    assert records_of("{:a/b 1 :c #{:x :y}}\n{:a/b 2}", "edn", "ignored") == expected
    assert records_of("[{:a/b 1 :c #{:x :y}} {:a/b 2}] ; end", "edn", "") == expected


def test_the_schema_has_types_cardinality_and_identity() -> None:
    records = records_of(
        '{"id": "a", "n": 1, "tags": ["x"], "mixed": 1}\n{"id": "b", "n": 2.5, "mixed": "text"}',
        *("jsonl", ""),
    )
    assert schema_of(infer(records, ":id")) == {
        ":id": {":db/valueType": ":db.type/string", ":db/unique": ":db.unique/identity"},
        ":n": {":db/valueType": ":db.type/double"},
        ":tags": {":db/valueType": ":db.type/string", ":db/cardinality": ":db.cardinality/many"},
        ":mixed": {},
    }


def test_attributes_of_words_and_of_vectors_are_made_as_asked() -> None:
    lines = '{"name": "a red fox", "at": [1, 2.5]}\n{"name": "b", "at": "[3, 4]"}\n{"name": "c"}'
    records = records_of(lines, "jsonl", "p")
    vectors = {":p/at": as_vectors(records, ":p/at")}
    attributes = infer(records, None, [":p/name"], vectors)
    assert [record.get(":p/at") for record in records] == [[1.0, 2.5], [3.0, 4.0], None]
    assert schema_of(attributes) == {
        ":p/name": {
            ":db/valueType": ":db.type/string",
            ":db/fulltext": True,
            ":db.fulltext/autoDomain": True,
        },
        ":p/at": {":db/valueType": ":db.type/vec"},
    }
    assert vector_options(attributes) == {":vector-domains": {"p_at": {":dimensions": 2}}}
    assert vector_options(infer(records_of('{"n": 1}', "jsonl", ""))) == {}


@pytest.mark.parametrize(
    ("lines", "said"),
    [
        ('{"v": [1, 2]}\n{"v": [1]}', "record 2 has no list of 2 numbers"),
        ('{"v": "no"}', "record 1 has no list of some numbers"),
        ('{"v": [true]}', "record 1"),
        ('{"v": []}\n{"w": 1}', "No record has the attribute `:v`"),
    ],
)
def test_what_is_no_vector_is_refused_with_its_record(lines: str, said: str) -> None:
    records = records_of(lines, "jsonl", "")
    with pytest.raises(TidegateError, match=re.escape(said)):
        infer(records, None, (), {":v": as_vectors(records, ":v")})


def test_words_are_indexed_of_texts_alone() -> None:
    with pytest.raises(TidegateError, match="Not all values of `:n` are texts"):
        infer(records_of('{"n": 1}', "jsonl", ""), None, [":n"])


def test_a_text_that_begins_with_a_colon_stays_a_text() -> None:
    records = records_of('{"note": ":) hello"}', "jsonl", "")
    assert records == [{":note": {"~str": ":) hello"}}]
    assert infer(records)[0].type == "string"


@pytest.mark.parametrize(
    ("text", "format", "said"),
    [
        ("{", "jsonl", "Line 1"),
        ("{}\n[1]", "jsonl", "Line 2"),
        ('{"a": {"b": 1}}', "jsonl", "object"),
        ('{"a b)": 1}', "jsonl", "no name"),
        ("a,b\n1\n", "csv", "Line 2"),
        ("a,a\n1,2\n", "csv", "twice"),
        ("", "csv", "no line of names"),
        ("[1 2]", "edn", "value 1"),
        ("{:a 1", "edn", "cannot be read"),
    ],
)
def test_what_cannot_be_imported_is_named(text: str, format: Format, said: str) -> None:
    with pytest.raises(TidegateError) as caught:
        records_of(text, format, "")
    assert said in caught.value.message


def test_a_key_that_no_record_has_is_refused() -> None:
    with pytest.raises(TidegateError):
        infer([{":a": 1}], ":b")
