"""The layers are taken away one by one, and come back."""

import asyncio
import os
from pathlib import Path

import pytest
from bench.figures import increments

from bench import engines, grounds, layers, streaming, workloads
from support.bench_report import shown
from tidegate.gateway import steps

EFFORT = workloads.Effort(rounds=1, seconds=0.02, starts=1, memory_calls=0, memory_seconds=1)


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("work")


@pytest.fixture
def work(folder: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The databases in a folder of these tests, the state in one of each test."""
    monkeypatch.setattr(grounds, "WORK", folder)
    monkeypatch.setattr(engines, "STATE", tmp_path / "state")
    monkeypatch.setattr(layers, "STATE", tmp_path / "state")


def only_sqlite(monkeypatch: pytest.MonkeyPatch, module: object) -> None:
    def some(names=(), wide=()):
        yield from grounds.grounds(names=("SQLite",), wide=wide)
        yield "MariaDB: not here"

    monkeypatch.setattr(module, "grounds", some)


def test_what_the_stages_add_is_the_whole() -> None:
    found = increments([("engine", 2.0), ("judge", 3.0), ("audit", 2.5), ("edge", 4.0)])
    assert [name for name, _, _ in found] == ["engine", "judge", "audit", "edge"]
    assert [more for _, more, _ in found] == [2.0, 1.0, -0.5, 1.5]
    assert sum(share for _, _, share in found) == 1


def test_the_last_stage_has_no_stand_in_and_the_first_all() -> None:
    assert layers.stand_ins("HTTP edge") == {}
    assert layers.stand_ins("history") == {}
    assert layers.stand_ins("audit") == layers.LEFT_OUT["history"]
    everything = {name for swaps in layers.LEFT_OUT.values() for name in swaps}
    assert layers.stand_ins("pipeline").keys() == everything
    assert (
        layers.stand_ins("policy")["record_outcome"] is layers.LEFT_OUT["audit"]["record_outcome"]
    )


def test_the_real_parts_are_back_behind_a_stage_that_failed() -> None:
    real = steps.STATEMENT_STEPS
    with pytest.raises(ZeroDivisionError), layers.swapped(layers.stand_ins("pipeline")):
        assert real != steps.STATEMENT_STEPS
        raise ZeroDivisionError
    assert steps.STATEMENT_STEPS is real


def test_a_part_that_the_pipeline_no_longer_has_is_an_error() -> None:
    with pytest.raises(LookupError), layers.swapped({"no_such_part": None}):
        pass


@pytest.mark.usefixtures("work")
def test_every_layer_is_measured_and_shown(monkeypatch: pytest.MonkeyPatch) -> None:
    only_sqlite(monkeypatch, layers)
    rows = layers.layers(EFFORT)
    (row,) = rows["SQLite"]
    assert all(row[f"{stage} cpu"] > 0 for stage in layers.STAGES)
    assert min(row["a mask, a new literal cpu"], row["a mask cpu"]) > 0
    text = shown({"layers": rows})
    assert "| database's opinion |" in text
    assert "MariaDB: not here" in text


@pytest.mark.usefixtures("work")
def test_an_engine_is_measured_beside_its_driver_and_shown(monkeypatch: pytest.MonkeyPatch) -> None:
    only_sqlite(monkeypatch, engines)
    monkeypatch.setattr(engines, "WIDE", (3,))
    rows = engines.engines(EFFORT)
    assert rows["MariaDB: not here"] == []
    (row,) = rows["SQLite, 10,000 rows"]
    assert row.keys() == {
        f"{who} {what}" for who in engines.CONTESTANTS for what in ("cpu", "wall")
    }
    assert min(row.values()) > 0
    text = shown({"engines": rows})
    assert "| SQLite, point query |" in text
    assert "| SQLite, schema of 3 tables |" in text


@pytest.mark.usefixtures("work")
def test_an_export_is_measured() -> None:
    (ground,) = grounds.grounds(names=("SQLite",), wide=())
    found = asyncio.run(streaming.streamed(ground.url("shop"), 2_000))
    assert found["peak"] >= found["before"] > 0
    assert found["written"] > 100_000


def test_the_disk_is_not_waited_for_and_then_it_is_again() -> None:
    real = os.fsync, os.fdatasync
    with pytest.raises(ZeroDivisionError), layers.unsynced():
        assert os.fsync is not real[0]
        os.fsync(-1)
        os.fdatasync(-1)
        raise ZeroDivisionError
    assert (os.fsync, os.fdatasync) == real
