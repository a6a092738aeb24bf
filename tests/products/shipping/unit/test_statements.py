"""The events of statements, which are made apart: the same as `call_event` makes."""

from __future__ import annotations

import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tidegate.audit import chain
from tidegate.audit.event import Event, encode
from tidegate.products.shipping import statements
from tidegate.products.shipping.calls import call_event
from tidegate.products.shipping.events import make_events
from tidegate.products.shipping.ocsf import Line, decode
from tidegate.products.shipping.ocsf import encode as encode_event
from tidegate.products.shipping.statements import statement_events

UID = "g/000001/1"
USUAL: dict[str, Any] = {
    "seq": 1, "time": "2026-11-30T06:30:54.351168Z", "phase": "outcome", "call_id": "c1",
    "actor": "tok_1", "actor_name": "agent", "client": "x/1", "surface": "core", "tool": "query",
    "source": "shop", "request": "query", "effect": "read", "verdict": "allow", "rule": "all",
    "digest": "sha256:ab", "statement": "SELECT 1", "rows": 1, "bytes": 3, "elapsed_ms": 0.25,
    "statement_class": "select", "address": "192.0.2.7", "hash": "ab" * 32,
}  # fmt: skip
TEXTS = st.one_of(
    st.text(max_size=12),
    st.sampled_from(
        ["", "mark", "mark of a digest", "mark of an id", '"rows":1', "100%d %b %", "ü\u202e\u0000",
         "2001-02-03T04:05:06Z", "outcome", "refusal", "SELECT \"a\"\n", "\ud83d", "::1"]
    ),
)  # fmt: skip
NUMBERS = st.one_of(st.integers(-(2**63), 2**64), st.floats(allow_nan=False), st.just(1))
VALUES = st.one_of(
    TEXTS, NUMBERS, st.none(), st.booleans(), st.dictionaries(TEXTS, TEXTS, max_size=2)
)


def general(text: bytes) -> Any:
    """The event of the line as `call_event` makes it."""
    return json.loads(encode_event(call_event(decode(text), UID)))


def made_of(text: bytes) -> Any:
    """The event of the line as it is made apart; None if it is not."""
    made = statement_events(text + b"\n", 0, UID.removesuffix("1"))
    if made is None:
        return None
    event, number = made
    assert (event.count(b"\n"), event[-1:], number) == (1, b"\n", 1)
    return json.loads(event)


@st.composite
def lines(draw: st.DrawFn) -> bytes:
    """A line that differs from the usual one in a few fields, in any spelling of JSON."""
    fields = USUAL | draw(
        st.dictionaries(st.sampled_from(list(USUAL)[2:]), st.one_of(TEXTS, NUMBERS), max_size=4)
    )
    fields |= draw(st.dictionaries(st.sampled_from(Line.__struct_fields__), VALUES, max_size=2))
    for name in draw(st.lists(st.sampled_from(list(USUAL)), max_size=2)):
        fields.pop(name, None)
    if draw(st.integers(0, 4)) == 0:
        fields = dict(draw(st.permutations(list(fields.items()))))
    ascii_only, separators = draw(st.booleans()), draw(st.sampled_from([(",", ":"), (", ", ": ")]))
    text = json.dumps(fields, ensure_ascii=ascii_only, separators=separators)
    return text.encode("utf-8", "surrogatepass")


@given(lines())
def test_an_event_is_what_call_event_makes(text: bytes) -> None:
    try:
        made = made_of(text)
    except (ValueError, OverflowError) as error:
        with pytest.raises(type(error)):
            general(text)
    else:
        assert made is None or made == general(text)


@given(st.lists(st.tuples(st.integers(0, 2**31), st.text(max_size=3)), min_size=1, max_size=9))
def test_events_that_are_made_together_are_those_of_their_lines_one_by_one(
    fields: list[tuple[int, str]],
) -> None:
    lines = [
        json.dumps(USUAL | {"seq": number, "rows": rows, "client": client}).encode() + b"\n"
        for number, (rows, client) in enumerate(fields, 1)
    ]
    alone = [statement_events(line, number, "g/1/") for number, line in enumerate(lines)]
    made = b"".join(one[0] for one in alone if one is not None)
    assert statement_events(b"".join(lines), 0, "g/1/") == (made, len(lines))


@given(
    st.fixed_dictionaries(
        {"statement": st.text(min_size=1), "call_id": st.text(min_size=1)},
        optional={
            "rows": st.integers(0, 2**63), "bytes": st.integers(0, 2**63), "client": st.text(),
            "elapsed_ms": st.floats(0, 1e18), "rule": st.text(), "digest": st.text(min_size=1),
        },
    )
)  # fmt: skip
def test_the_outcome_of_a_statement_is_made_apart_whatever_its_texts(
    fields: dict[str, Any],
) -> None:
    text = json.dumps(USUAL | fields, separators=(",", ":")).encode()
    assert made_of(text) == general(text)


@pytest.mark.parametrize(
    "fields",
    [
        {"phase": "refusal"}, {"phase": "intent"}, {"error": "no such table"}, {"trace_id": "ab"},
        {"transaction": "t1"}, {"arguments": {}}, {"length": 9_000}, {"on_behalf_of": "carol"},
        {"outside_transaction": True}, {"source": ""}, {"statement": ""}, {"digest": ""},
        {"call_id": ""}, {"rows": None}, {"seq": 2}, {"made_up": 1},
        {"time": "2026-11-30T06:30:54Z"}, {"time": "2026-11-30T06:30:54.351168+01:00"},
        {"time": "2026-11-30T06:30:54.35116Z"}, {"time": "2026-11-30T06:30:54.35 168Z"},
    ],
)  # fmt: skip
def test_a_line_of_another_form_is_left_to_call_event(fields: dict[str, Any]) -> None:
    text = json.dumps(USUAL | fields, separators=(",", ":")).encode()
    assert made_of(text) is None


def test_a_read_that_the_gate_records_is_made_apart() -> None:
    event = Event(
        call_id="c1", phase="outcome", actor="tok_1", source="shop", request="query",
        effect="read", verdict="allow", rule="all", statement="SELECT 'ü\u202e'", rows=1, bytes=3,
        elapsed_ms=1.2345678901234567, statement_class="select", truncated="rows",
    )  # fmt: skip
    line, _ = chain.seal(encode(event, 1, 1_796_020_254.351), chain.START)
    (event,) = make_events("g", "000001.jsonl", line + b"\n")
    assert made_of(line) == json.loads(event) == general(line)


@pytest.mark.parametrize("fraction", ["821000", "999999", "000999", "001000", "351168"])
def test_the_time_of_an_event_is_exact_to_the_millisecond(fraction: str) -> None:
    text = json.dumps(USUAL | {"time": f"2026-11-30T06:30:54.{fraction}Z"}).encode()
    assert made_of(text)["time"] == general(text)["time"] == 1_796_020_254_000 + int(fraction[:3])


def test_lines_among_others_keep_their_order_and_numbers() -> None:
    usual = [json.dumps(USUAL | {"seq": number}).encode() for number in range(1, 7)]
    refusal = json.dumps(USUAL | {"seq": 3, "phase": "refusal", "code": "policy.denied"}).encode()
    text = b"\n".join([*usual[:2], refusal, b"no line", b"", *usual[4:], b""])
    events = b"".join(make_events("g", "000001.jsonl", text)).splitlines()
    found = [json.loads(each)["metadata"] for each in events]
    assert [each["uid"] for each in found] == [f"g/000001/{number}" for number in range(1, 7)]
    assert [each["event_code"] for each in found] == [
        "call.outcome", "call.outcome", "call.refusal", "record.unreadable", "call.outcome",
        "call.outcome",
    ]  # fmt: skip


def test_many_lines_are_made_a_few_at_a_time_and_none_is_left_out() -> None:
    text = b"".join(json.dumps(USUAL | {"seq": number}).encode() + b"\n" for number in range(1, 99))
    pieces = list(make_events("g", "000001.jsonl", text))
    assert max(piece.count(b"\n") for piece in pieces) < 49
    found = [json.loads(line)["metadata"]["sequence"] for line in b"".join(pieces).splitlines()]
    assert found == list(range(1, 99))


def test_what_is_known_of_callers_stays_small(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(statements, "_MOST_TEMPLATES", 8)
    statements._templates.clear()
    for number in range(40):
        text = json.dumps(USUAL | {"client": f"c{number}"}, separators=(",", ":")).encode()
        assert made_of(text) == general(text)
        assert len(statements._templates) <= 8
