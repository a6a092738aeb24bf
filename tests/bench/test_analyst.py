"""The scripted analyst against a real server."""

from pathlib import Path

import pytest

from bench import analyst, servers, workloads


def test_core_answers_sixteen_questions_in_six_calls_and_sixteen_kilobytes(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(analyst, "DATABASE", tmp_path / "analyst.sqlite")
    monkeypatch.setattr(workloads, "LOGS", tmp_path)
    monkeypatch.setattr(servers.peers, "WORK", tmp_path)
    core = servers.core()
    row = workloads.analysts({core.name: core})[core.name][0]
    assert row["calls"] <= 6
    assert row["total"] <= 16_000
