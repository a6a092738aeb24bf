"""The spans of calls that are recognized by their bytes are those of calls that are read whole, and
so are the traces that the record names."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from products.otel.support.collector import collector
from support.repeated_conversation import OWN_TRACE, VARYING, Desk, compare
from tidegate.products.otel.service import make_service

SPAN = "00f067aa0ba902b7"
NO_DURATION = {"start": 0, "end": 0, "id": "", "resource": {}}


def parent(number: int) -> str:
    return f"00-{OWN_TRACE}{number:026x}-{SPAN}-01"


def test_traces_of_recognized_calls_are_those_of_calls_that_are_read_whole(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with collector() as seen:

        async def script(desk: Desk) -> None:
            seen.spans.clear()
            service = make_service(desk.app)
            assert service is not None
            service.start()
            line = await desk.line(desk.token())
            asked = 0
            for number, (meta, headers) in enumerate(
                [
                    ({}, {}),
                    ({"traceparent": parent(1)}, {}),
                    ({"traceparent": parent(1), "tracestate": "a=1"}, {}),
                    ({}, {"traceparent": parent(2), "tracestate": "b=2"}),
                    ({}, {"traceparent": parent(3), "tracestate": "b=3"}),
                    ({"traceparent": parent(4)}, {"traceparent": parent(5)}),
                    ({"traceparent": "malformed"}, {"traceparent": parent(6)}),
                    ({"traceparent": f"{parent(7)[:-1]}0"}, {}),
                ]
            ):
                for sql in (
                    *(
                        f"SELECT id FROM customers WHERE id = {n}"
                        for n in range(number, number + 4)
                    ),
                    *(f"SELECT nowhere FROM customers WHERE id = {n}" for n in range(2)),
                    "DROP TABLE customers",
                ):
                    await line.call({"sql": sql}, meta=meta, headers=headers)
                    asked += 1
            service.stop()
            names = {span.id: span.name for span in seen.spans}
            for span in sorted(seen.spans, key=lambda each: (each.start, each.kind)):
                told = span._replace(**NO_DURATION, parent=names.get(span.parent, span.parent))
                desk.replies.append(re.sub(r"'[^']*-[0-9a-f]+'", "#", VARYING.sub("#", f"{told}")))
            assert len(desk.replies) > 2 * asked

        otel = {"endpoint": seen.url, "metrics": False, "traces_per_s": 1_000}
        recognized = compare(tmp_path, monkeypatch, script, settings={"otel": otel})
    assert sum(recognized) >= 8 * 5
