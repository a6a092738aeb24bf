"""The trace context of a caller is read as W3C has it, and what is malformed is not there."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from opentelemetry.trace import format_span_id, format_trace_id

from tidegate.products.otel.trace_context import read_context, read_contexts

TRACE, SPAN = "4bf92f3577b34da6a3ce929d0e0e4736", "00f067aa0ba902b7"
GOOD = f"00-{TRACE}-{SPAN}-01"
OTHER = GOOD.replace("4bf9", "5cf9")


def test_a_context_has_the_ids_flags_and_state_of_its_caller() -> None:
    found = read_context(f" {GOOD}\t", "rojo=00f067aa0ba902b7,congo=t61rcWkgMzE")
    assert found is not None
    assert format_trace_id(found.trace_id) == TRACE
    assert format_span_id(found.span_id) == SPAN
    assert (found.is_remote, found.trace_flags.sampled) == (True, True)
    assert dict(found.trace_state) == {"rojo": SPAN, "congo": "t61rcWkgMzE"}


@pytest.mark.parametrize(
    "parent",
    [
        "", "00", GOOD.upper(), GOOD[:-1], f"{GOOD}0", f"{GOOD}-00", f"ff{GOOD[2:]}",
        f"0g{GOOD[2:]}",
        f"00-{'0' * 32}-{SPAN}-01", f"00-{TRACE}-{'0' * 16}-01", f"{GOOD}, {GOOD}", f"{GOOD}\n",
        f"cc{GOOD[2:]}-{'x' * 300}", f"cc{GOOD[2:]}x", GOOD.replace("-", "_"), 7, None, [GOOD],
        {"traceparent": GOOD}, GOOD.replace("4", "\u0664"),
    ],
)  # fmt: skip
def test_what_is_malformed_is_no_context(parent: Any) -> None:
    assert read_context(parent, None) is None
    assert read_contexts({"traceparent": parent}, {}).parent is None


def test_a_later_version_may_have_more_after_what_is_known() -> None:
    assert read_context(f"cc{GOOD[2:]}-what-comes", None) is not None


@pytest.mark.parametrize(
    "state",
    ["bad\nWARNING forged", "a=1,a=2", "a=1,A=2", "a", ",".join(f"k{n}=1" for n in range(33))],
)
def test_a_malformed_state_is_left_out_and_nothing_of_it_is_logged(
    state: str, caplog: pytest.LogCaptureFixture
) -> None:
    found = read_context(GOOD, state)
    assert found is not None
    assert not found.trace_state
    assert not caplog.records


@given(st.text(max_size=80), st.text(max_size=80) | st.none() | st.integers())
def test_no_text_is_an_error(parent: str, state: Any) -> None:
    found = read_context(parent, state)
    assert found is None or found.is_valid
    read_contexts({"traceparent": parent, "tracestate": state}, {b"traceparent": parent.encode()})


@pytest.mark.parametrize("state", ["", "no list", 7, None, "a=1," * 200 + "b=2"])
def test_a_state_that_is_none_leaves_the_context(state: Any) -> None:
    found = read_context(GOOD, state)
    assert found is not None
    assert not found.trace_state


def ids(meta: str | None, header: str | None) -> tuple[str | None, str | None]:
    """The traces of parent and link."""
    headers = {} if header is None else {b"traceparent": header.encode()}
    found = read_contexts({} if meta is None else {"traceparent": meta}, headers)
    parent, link = (None if each is None else format_trace_id(each.trace_id) for each in found)
    return parent, link


def test_meta_comes_before_the_header_which_is_then_a_link() -> None:
    other = OTHER[3:35]
    assert ids(None, None) == (None, None)
    assert ids(GOOD, None) == (TRACE, None)
    assert ids(None, GOOD) == (TRACE, None)
    assert ids(GOOD, OTHER) == (TRACE, other)
    assert ids("malformed", OTHER) == (other, None)
    assert ids(GOOD, "malformed") == (TRACE, None)
    assert ids("malformed", "malformed") == (None, None)
    assert read_contexts({"traceparent": GOOD}, None).parent is not None
