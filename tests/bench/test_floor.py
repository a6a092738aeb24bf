"""The harness end to end against the floor: started, asked, measured, ended."""

from contextlib import ExitStack
from pathlib import Path

import pytest
from bench.mcp import StdioSpeaker
from bench.process import Process

from bench import data, servers, workloads
from support.bench_report import shown

EFFORT = workloads.Effort(rounds=1, seconds=0.05, starts=1, memory_calls=0, memory_seconds=1)


@pytest.fixture(scope="module")
def shop(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("bench") / "shop.sqlite"
    data.make_shop(path)
    return path


@pytest.fixture
def logs(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(workloads, "LOGS", tmp_path)


@pytest.mark.usefixtures("logs")
def test_the_floor_is_measured_over_http(shop: Path) -> None:
    with ExitStack() as stack:
        floor = workloads.start(stack, servers.floor(), shop)
        running = {servers.FLOOR: floor}
        results = {
            "point-repeated": workloads.throughput(running, EFFORT, fresh=False),
            "point-fresh": workloads.throughput(running, EFFORT, fresh=True),
            "latency-1000": workloads.latency(running, EFFORT, lambda one: one.large(1_000)),
        }
        (row,) = results["point-fresh"][servers.FLOOR]
        assert row["calls"] >= workloads.CLIENTS
        assert row["cpu_per_call"] > 0
        assert row["rss"] > 1_000_000
    assert floor.process.popen.poll() is not None
    text = shown(
        results,
        versions={"floor": "1"},
        loads={"point-fresh": (0.0, 1.0)},
        failures={"tokens": "no answer"},
    )
    assert "| floor |" in text
    assert "not measured" in text
    assert "- tokens: no answer" in text


def test_the_floor_answers_on_stdio(shop: Path, tmp_path: Path) -> None:
    with Process(servers.floor().stdio(shop), tmp_path / "log", pipes=True) as process:
        speaker = StdioSpeaker(process)
        assert speaker.open()["serverInfo"]["name"] == "floor"
        answer = speaker.ask("query", {"sql": data.point(data.WARM_ID)})
        assert data.point_marker(data.WARM_ID) in answer
        assert process.cpu() > 0
        assert process.finish() > 0
    assert process.popen.returncode == 0


def test_the_company_has_212_tables_and_one_answer(tmp_path: Path) -> None:
    import sqlite3

    path = tmp_path / "company.sqlite"
    data.make_company(path)
    connection = sqlite3.connect(path)
    try:
        tables = "SELECT COUNT(*) FROM sqlite_master WHERE type = 'table'"
        assert connection.execute(tables).fetchone() == (data.TABLES,)
        first = connection.execute(data.JOIN).fetchone()
        assert first == (data.ANSWER_COUNTRY, data.ANSWER_TOTAL)
    finally:
        connection.close()
