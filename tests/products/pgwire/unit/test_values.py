"""Values in the formats of PostgreSQL, read back by psycopg's own readers."""

from __future__ import annotations

import datetime
from decimal import Decimal
from typing import Any
from uuid import UUID

import pytest
from hypothesis import given
from hypothesis import strategies as st
from psycopg.adapt import PyFormat, Transformer
from psycopg.pq import Format

from tidegate.errors import TidegateError
from tidegate.model.results import Column
from tidegate.products.pgwire.parameters import read_parameter
from tidegate.products.pgwire.row_encoder import RowEncoder
from tidegate.products.pgwire.values import wire_type

TYPES: dict[str, st.SearchStrategy[Any]] = {
    "boolean": st.booleans(),
    "smallint": st.integers(-(2**15), 2**15 - 1),
    "integer": st.integers(-(2**31), 2**31 - 1),
    "bigint": st.integers(-(2**63), 2**63 - 1),
    "numeric": st.decimals(allow_nan=False, allow_infinity=False, places=6),
    "double precision": st.floats(allow_nan=False),
    "text": st.text(st.characters(exclude_categories=["Cs"], exclude_characters="\0")),
    "bytea": st.binary(),
    "date": st.dates(),
    "timestamp without time zone": st.datetimes(),
    "timestamp with time zone": st.datetimes(timezones=st.just(datetime.UTC)),
    "time without time zone": st.times(),
    "interval": st.timedeltas(datetime.timedelta(-99_999), datetime.timedelta(99_999)),
    "uuid": st.uuids(),
}
VALUES = st.sampled_from(sorted(TYPES)).flatmap(lambda name: st.tuples(st.just(name), TYPES[name]))


def loaded(data: bytes, oid: int, form: Format) -> Any:
    return Transformer().get_loader(oid, form).load(data)


@given(VALUES, st.sampled_from([Format.TEXT, Format.BINARY]))
def test_psycopg_reads_back_what_is_written(case: tuple[str, Any], form: Format):
    name, value = case
    kind = wire_type(Column("x", name), "postgres")
    write = kind.binary if form is Format.BINARY else kind.text
    assert loaded(write(value), kind.oid, form) == value


@given(st.lists(st.none() | st.integers(-99, 99)), st.sampled_from([Format.TEXT, Format.BINARY]))
def test_psycopg_reads_back_arrays(values: list[Any], form: Format):
    kind = wire_type(Column("x", "integer[]"), "postgres")
    write = kind.binary if form is Format.BINARY else kind.text
    assert loaded(write(values), kind.oid, form) == values


@given(VALUES)
def test_parameters_that_psycopg_writes_are_read_back(case: tuple[str, Any]):
    name, value = case
    if name in ("interval", "timestamp with time zone") or isinstance(value, Decimal):
        return  # these keep another spelling of the same value
    dumper = Transformer().get_dumper(value, PyFormat.BINARY)
    data = dumper.dump(value)
    found = read_parameter(bytes(data or b""), dumper.oid, 1, "sqlite")
    if isinstance(value, (datetime.datetime, datetime.date, datetime.time)):
        assert type(value).fromisoformat(found) == value
    elif isinstance(value, UUID):
        assert UUID(found) == value
    else:
        assert found == value


@pytest.mark.parametrize(
    "digits", ["0", "-0.00", "1E+20", "1E-20", "10000", "99990000.0001", "NaN"]
)
def test_numerics_keep_their_digits(digits: str):
    kind = wire_type(Column("x", "numeric"), "postgres")
    found = loaded(kind.binary(digits), 1700, Format.BINARY)
    assert found.compare_total(Decimal(digits)) == 0 or found == Decimal(digits)


@pytest.mark.parametrize(("oid", "data"), [(23, b"abc"), (16, b"maybe"), (1700, b"1.2.3")])
def test_a_text_that_is_no_value_of_its_type_is_refused(oid: int, data: bytes):
    with pytest.raises(TidegateError) as refused:
        read_parameter(data, oid, 0, "sqlite")
    assert refused.value.details["sqlstate"] == "22P02"


@given(st.sampled_from([0, 16, 20, 21, 23, 700, 1007, 1082, 1114, 1186, 1700, 2950, 3802, 99999]),
       st.binary(max_size=40))  # fmt: skip
def test_any_bytes_are_a_value_or_a_clear_error(oid: int, data: bytes):
    try:
        read_parameter(data, oid, 1, "sqlite")
    except TidegateError as refused:
        assert refused.details["sqlstate"] in ("22P03", "0A000")


@pytest.mark.parametrize(("scale", "oid"), [(None, 1114), (6, 1114), (7, 25), (9, 25)])
def test_moments_of_more_digits_than_postgresql_has_are_text(scale: int | None, oid: int):
    column = Column("x", "timestamp", "timestamp", None, scale)
    assert wire_type(column, "h2").oid == oid


def test_a_number_with_more_digits_than_numeric_has_is_not_written_out():
    encoder = RowEncoder([Column("n", "decfloat", "decimal")], "h2", (1,))
    for text in ("1E+99999999", "1E-99999999"):
        with pytest.raises(TidegateError) as caught:
            encoder.append(bytearray(), [(Decimal(text),)])
        assert caught.value.details == {"sqlstate": "22P03"}
