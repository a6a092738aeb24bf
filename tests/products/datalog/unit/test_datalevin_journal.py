"""The journal of a Datalog source: what it keeps, and how a change is taken back."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from tidegate.errors import Code, TidegateError
from tidegate.products.datalog.engine.journal import Fact, Journal, Record, inverse

REPORT = json.dumps(
    {
        "tx-data": [
            {"e": 1, "a": ":age", "v": 80, "tx": 3, "added": False},
            {"e": 1, "a": ":age", "v": {"~i64": "9007199254740993"}, "tx": 3, "added": True},
        ],
        "tempids": {},
    }
).encode()


def test_a_change_is_kept_and_read_again_past_a_line_that_was_cut_off(tmp_path: Path) -> None:
    journal = Journal(str(tmp_path / "journal"))
    assert list(journal.records()) == []
    journal.check()
    journal.append("call-1", "ann", REPORT)
    with (tmp_path / "journal").open("a") as file:
        file.write('{"id": "call-2", "ti\n')
    journal.append("call-3", "ann", REPORT)
    records = list(journal.records())
    assert [(each.id, each.actor) for each in records] == [("call-1", "ann"), ("call-3", "ann")]
    assert inverse(records[0], {}) == [
        [":db/retract", 1, ":age", {"~i64": "9007199254740993"}],
        [":db/add", 1, ":age", 80],
    ]
    assert (tmp_path / "journal").stat().st_mode & 0o777 == 0o600


def test_a_journal_that_cannot_be_written_is_said_before_the_change_and_after_it(
    tmp_path: Path,
) -> None:
    (tmp_path / "link").symlink_to(tmp_path / "elsewhere")
    for path in (tmp_path, tmp_path / "none" / "journal", tmp_path / "link"):
        journal = Journal(str(path))
        with pytest.raises(TidegateError, match="Nothing was changed") as before:
            journal.check()
        assert before.value.code is Code.STATE_FAILED
        with pytest.raises(TidegateError, match="The change took effect") as after:
            journal.append("call", "ann", REPORT)
        assert after.value.code is Code.AUDIT_OUTCOME
    assert not (tmp_path / "elsewhere").exists()


def test_a_text_with_a_colon_is_taken_back_as_what_it_was() -> None:
    record = Record("1", 0.0, "ann", (Fact(1, ":a", ":x", True),))
    assert inverse(record, {":a": "string"}) == [[":db/retract", 1, ":a", {"~str": ":x"}]]
    assert inverse(record, {":a": "keyword"}) == [[":db/retract", 1, ":a", ":x"]]
    with pytest.raises(TidegateError, match="text or a keyword"):
        inverse(record, {":a": "any"})
