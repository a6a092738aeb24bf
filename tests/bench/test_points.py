"""The point query on other engines: who takes part, how they log in, and one engine end to end."""

from pathlib import Path

import pytest
from bench.mcp import StdioSpeaker
from bench.process import Process
from bench.report import POINT_TITLES

from bench import data, grounds, points, servers, workloads
from support.bench_report import shown

EFFORT = workloads.Effort(rounds=1, seconds=0.05, starts=1, memory_calls=0, memory_seconds=1)


@pytest.fixture
def work(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(grounds, "WORK", tmp_path)
    monkeypatch.setattr(workloads, "LOGS", tmp_path)


def ground(name: str, login: grounds.Login | None) -> grounds.Ground:
    def bare(database: str) -> grounds.Bare:
        raise AssertionError

    return grounds.Ground(name, "a driver", "duckdb:///somewhere/{}.duckdb".format, bare, "", login)


def test_every_workload_has_a_title() -> None:
    for engine in points.ENGINES:
        for name in points.workloads(engine):
            assert engine in POINT_TITLES[name]


def test_a_database_server_is_reached_by_a_login() -> None:
    login = grounds.Login(4321, "reader", "two words")
    makers = points.contestants(ground("PostgreSQL", login), with_peers=True)
    assert list(makers) == [servers.GATE, servers.TOOLBOX, servers.DBHUB]
    launch = makers[servers.TOOLBOX]().http(80, Path("unused"))
    assert launch.env["POSTGRES_PORT"] == "4321"
    assert launch.env["POSTGRES_PASSWORD"] == "two words"
    assert launch.argv[1:3] == ("--prebuilt", "postgres")


def test_the_gate_is_given_a_reference_to_the_password(monkeypatch: pytest.MonkeyPatch) -> None:
    asked: dict[str, object] = {}
    monkeypatch.setattr(points, "core", lambda **source: asked.update(source))
    login = grounds.Login(4321, "reader", "two words")
    points.contestants(ground("MariaDB", login), with_peers=False)[servers.GATE]()
    assert asked["url"] == "mariadb://reader:${ENV:BENCH_PASSWORD}@127.0.0.1:4321/shop"
    assert asked["env"] == {"BENCH_PASSWORD": "two words"}


def test_on_a_file_of_duckdb_the_floor_takes_part() -> None:
    makers = points.contestants(ground("DuckDB", None), with_peers=True)
    assert list(makers) == [servers.FLOOR, servers.GATE]
    launch = makers[servers.FLOOR]().http(80, Path("unused"))
    assert launch.argv[-2:] == ("/somewhere/shop.duckdb", "80")


def test_another_version_takes_part(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    asked: list[dict[str, object]] = []
    monkeypatch.setattr(points, "core", lambda **source: asked.append(source))
    makers = points.contestants(ground("DuckDB", None), with_peers=False, before=tmp_path)
    makers[servers.GATE]()
    makers[servers.BEFORE]()
    assert asked[1] == asked[0] | {"tree": tmp_path}


def test_another_version_runs_from_its_own_tree(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    program = tmp_path / "tree/.venv/bin/tidegate"
    program.parent.mkdir(parents=True)
    program.write_text("#!/bin/sh\necho a token\n")
    program.chmod(0o755)
    monkeypatch.setattr(servers.peers, "WORK", tmp_path)
    before = servers.core(tree=tmp_path / "tree")
    assert before.name == servers.BEFORE
    assert before.headers == {"Authorization": "Bearer a token"}
    assert before.stdio(tmp_path / "shop.sqlite").argv[0] == str(program)


def test_no_server_is_measured_where_the_engine_is_missing() -> None:
    assert points.measured("MariaDB: not here", EFFORT, fresh=True) == {"MariaDB: not here": []}
    assert points.measured({}, EFFORT, fresh=True) == {}


@pytest.mark.usefixtures("work")
def test_the_floor_on_duckdb_is_measured_and_shown(tmp_path: Path) -> None:
    with points.running("DuckDB", with_peers=False, only=["floor"]) as found:
        rows = points.measured(found, EFFORT, fresh=True)
    assert rows[servers.FLOOR][0]["cpu_per_call"] > 0
    floor = servers.floor(tmp_path / "duckdb/shop.duckdb")
    with Process(floor.stdio(tmp_path), tmp_path / "log", pipes=True) as process:
        speaker = StdioSpeaker(process)
        answer = speaker.ask("query", {"sql": data.point(data.WARM_ID)})
    assert data.point_marker(data.WARM_ID) in answer
    text = shown({"point-duckdb-fresh": rows, "point-mariadb-fresh": {"not here": []}})
    assert "## Point query on DuckDB, a new literal" in text
    assert "| floor |" in text
    assert "| not here |" in text


@pytest.mark.parametrize("name", ["postgres_server", "mysql_server"])
def test_the_servers_of_the_tests_are_where_the_bench_looks(name: str) -> None:
    source = Path(grounds.__file__).read_text()
    assert f'tests_module("support.{name}")' in source
    assert (Path(__file__).parents[1] / f"support/{name}.py").exists()
