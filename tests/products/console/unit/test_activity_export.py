"""An export of Activity that has more lines than one file takes says so."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any, cast

import pytest

from tidegate.audit.activity import ActivityIndex
from tidegate.audit.proof import Prover
from tidegate.identity.operators import SignedIn
from tidegate.model.actors import RoleGrant
from tidegate.products.console import activity_export
from tidegate.products.console.activity import Activity
from tidegate.products.console.all_activity import AllActivity
from tidegate.products.console.gate_records import GateRecords
from tidegate.store.records import OperatorEntry, OperatorSession


def line(number: int) -> bytes:
    fields: dict[str, Any] = {"seq": number, "time": "2026-01-02T03:04:05.000000Z"}
    fields |= {"phase": "outcome", "call_id": f"c{number}", "statement": f"SELECT {number}"}
    return json.dumps(fields).encode() + b"\n"


@pytest.mark.parametrize("form", ["csv", "jsonl"])
@pytest.mark.parametrize(("lines", "whole"), [(4, True), (5, False)])
async def test_an_export_of_activity_says_that_it_is_cut(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, form: str, lines: int, whole: bool
) -> None:
    monkeypatch.setattr(activity_export, "EXPORTED", 4)
    log = tmp_path / "audit"
    log.mkdir()
    (log / "000001.jsonl").write_bytes(b"".join(map(line, range(1, lines + 1))))
    index = ActivityIndex(tmp_path / "activity.db", log)
    operator = OperatorEntry("o1", "ada", b"", b"", (RoleGrant("admin", None),), 0.0)
    session = OperatorSession("b1", "o1", "passphrase", 0.0, 0.0, 9e9, None, "127.0.0.1", "a test")
    signed_in = SignedIn(operator, session)
    shown = Activity(index, cast("Prover", None), tuple)  # an export proves nothing
    exported = AllActivity(shown, GateRecords(shown)).export({"format": form}, signed_in, tmp_path)
    made = await exported
    index.close()
    made.close()
    assert (made.rows, made.cut == "") == (4, whole)
    assert made.name == (f"activity.{form}" if whole else f"activity.first-4-rows.{form}")
    assert made.details.get("cut", "") == made.cut
    assert dict(made.headers)[b"x-tidegate-complete"] == (b"yes" if whole else b"no")
