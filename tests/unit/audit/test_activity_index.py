"""The index of the audit log takes each line that the log can hold."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from tidegate.audit.activity import ActivityIndex, LineFilter

TIME = "2026-01-02T03:04:05.000000Z"


def call(number: int, **changes: Any) -> bytes:
    fields = {"seq": number, "time": TIME, "phase": "refusal", "call_id": f"c{number}", **changes}
    return json.dumps({**fields, "statement": f"SELECT {number}"}).encode() + b"\n"


@pytest.mark.parametrize(
    "line",
    [
        b"\n",
        b"{}\n",
        b"[1]\n",
        b"\xff\xfe\x00\n",
        call(2, time=5),
        call(2, time="0001-01-01T00:00:00"),
        call(2, time="9999-12-31T23:59:59-23:59"),
        call(2, rows=2**70),
        call(2, rows=[1]),
        call(2, seq={}),
        call(2, elapsed_ms="long"),
        call(2, details="none"),
        call(2, details=None),
        call(2, code=None, error=["x"]),
        call(2, code=7, error={"x": 1}),
        call(2, actor=[1], client={}, approval=[]),
        call(2, effect=["write"]),
        call(2, phase=["event"]),
        call(2, request={"a": 1}),
        call(2, client="x" * 1_000_000),
    ],
    ids=range(20),
)
def test_a_line_that_no_server_writes_does_not_hide_those_around_it(
    tmp_path: Path, line: bytes
) -> None:
    log = tmp_path / "audit"
    log.mkdir()
    (log / "000001.jsonl").write_bytes(call(1) + line + call(3))
    index = ActivityIndex(tmp_path / "activity.db", log)
    index.update()
    calls = {each.call_id for each in index.find(LineFilter()).lines}
    index.close()
    assert {"c1", "c3"} <= calls


def test_a_bounded_update_goes_on_where_the_last_one_ended(tmp_path: Path) -> None:
    log = tmp_path / "audit"
    log.mkdir()
    (log / "000001.jsonl").write_bytes(b"".join(map(call, range(1, 7_001))))
    index = ActivityIndex(tmp_path / "activity.db", log)
    assert 0 < index.update(batches=1) < 7_000
    assert index.update(batches=1) == 7_000
    assert index.update() == 7_000
    index.close()
