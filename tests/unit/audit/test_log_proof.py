"""The proof of the whole log is made on a thread of its own."""

from __future__ import annotations

from datetime import UTC, datetime
from pathlib import Path
from threading import Event

import pytest

from tidegate.audit import proof
from tidegate.audit.proof import Prover
from tidegate.audit.verify import Report
from tidegate.errors import Code, TidegateError

INTACT = Report(True, 1, 7, 0, None, (), ())


def test_a_long_log_is_checked_while_others_are_answered(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    goes_on = Event()

    def verify(directory: Path, keys: Path) -> Report:
        goes_on.wait()
        return INTACT

    monkeypatch.setattr(proof, "verify", verify)
    monkeypatch.setattr(proof, "PATIENCE_S", 0.0)
    prover = Prover(tmp_path, tmp_path)
    first = prover.check_log()
    assert (first.state, first.running) == ("unknown", True)
    goes_on.set()
    found = prover.check_log(again=True)
    assert (found.state, found.lines, found.running) == ("after_checkpoint", 7, False)


def test_a_log_that_cannot_be_read_fails_for_all_who_ask(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def verify(directory: Path, keys: Path) -> Report:
        raise TidegateError(Code.STATE_FAILED, "The log cannot be read")

    monkeypatch.setattr(proof, "verify", verify)
    prover = Prover(tmp_path, tmp_path)
    for _ in range(2):
        with pytest.raises(TidegateError, match="The log cannot be read"):
            prover.check_log(again=True)


def test_a_log_that_could_not_be_checked_to_its_end_is_not_called_verified(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    signed = datetime(2026, 1, 31, tzinfo=UTC)
    report = Report(True, 1, 7, 1, signed, (), (), ("nothing from outside the log was there",))
    monkeypatch.setattr(proof, "verify", lambda directory, keys: report)
    found = Prover(tmp_path, tmp_path).check_log(again=True)
    assert found.state == "after_checkpoint"
    assert "not checked: nothing from outside the log was there" in found.text
