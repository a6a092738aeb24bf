"""What `config check` says of connections: those of all gates that are live on the state, beside
the limit of each database."""

import pytest
from msgspec import structs

import support.postgres_server as postgres_server
from support import postgres_state
from support.eventually import PATIENCE_S
from tidegate.audit.shipped import gate_id
from tidegate.cli import connection_totals as shown_totals
from tidegate.cli.connection_totals import connection_totals
from tidegate.config.model import Config
from tidegate.config.sources import SourceSettings
from tidegate.model.sources import Source
from tidegate.store.gates import GateEntry
from tidegate.store.sqlite.state import SqliteState


@pytest.fixture
def state(tmp_path):
    postgres_state.empty_state()
    opened = postgres_state.open_state(tmp_path)
    yield opened
    opened.close()


def lives(state, id, processes, expires_in=60.0):
    now = state.now()
    state.gates.claim(GateEntry(id, f"h {id}", "p", "k", processes, b"", now, now + expires_in))


def totals(tmp_path, url, monkeypatch, **settings):
    monkeypatch.setenv("TIDEGATE_STATE_URL", postgres_state.state_url())
    monkeypatch.setattr(shown_totals, "_PATIENCE_S", PATIENCE_S)
    source = SourceSettings(name="shop", url=url)
    return list(connection_totals(Config(state=str(tmp_path), sources=(source,), **settings)))


def test_the_pools_of_all_live_gates_are_shown_beside_what_the_servers_admit(
    tmp_path, state, monkeypatch
):
    server = postgres_server.shared()
    url = server.url(server.new_database())
    url += ("&" if "?" in url else "?") + "pool=4"
    limit = int(server.ask("SHOW max_connections")[0][0])
    limit -= int(server.ask("SHOW superuser_reserved_connections")[0][0])
    (tmp_path / "audit").mkdir()
    lives(state, gate_id(tmp_path / "audit"), 9)  # this gate, which the settings are about
    lives(state, "other", 3)
    lives(state, "a command", 0)
    lives(state, "ended", 5, expires_in=0.0)
    source, of_state = totals(tmp_path, url, monkeypatch, workers=2)
    assert source.startswith(
        "source shop: 2 workers x 2 = 4 connections for each gate; 2 gates: 8; its server admits "
    )
    assert of_state.startswith("state: 5 processes x 8 = 40 connections (2 gates); ")
    assert int(of_state.rsplit(" ", 1)[1]) == limit

    many = url.replace("pool=4", "pool=1000")
    assert "2000; MORE than its server admits" in totals(tmp_path, many, monkeypatch)[0]


def test_saved_sources_count_and_are_not_opened(tmp_path, state, monkeypatch):
    """A row that someone has written past the gates must not lead a command anywhere."""
    saved = Source("src_1", "saved", "postgresql://u@127.0.0.1:1/x?pool=6", "postgres", "postgres")
    state.sources.add(saved)
    state.sources.add(structs.replace(saved, id="src_2", name="shop"))
    lines = totals(tmp_path, "postgresql://u@127.0.0.1:1/shop", monkeypatch, workers=2)
    assert [line.partition(":")[0] for line in lines] == ["source shop", "source saved", "state"]
    assert "2 workers x 3 = 6 connections for each gate; see that its server admits" in lines[1]


def test_sources_that_are_files_of_this_machine_are_named(tmp_path, state, monkeypatch):
    saved = Source("src_1", "saved", "sqlite:////srv/saved.db", "sqlite", "sqlite")
    state.sources.add(saved)
    (tmp_path / "shop.db").touch()
    lines = totals(tmp_path, f"sqlite:///{tmp_path}/shop.db", monkeypatch)
    assert [line.partition(",")[0] for line in lines if line.startswith("note: source")] == [
        f"note: source shop is {tmp_path}/shop.db of this machine",
        "note: source saved cannot be opened at this machine: There is no file at /srv/saved.db.",
    ]


def test_saved_sources_of_a_state_in_a_file_count_for_its_workers(tmp_path, monkeypatch):
    monkeypatch.delenv("TIDEGATE_STATE_URL", raising=False)
    assert list(connection_totals(Config(state=str(tmp_path), workers=2))) == []
    opened = SqliteState(tmp_path / "state.db")
    url = "postgresql://u@127.0.0.1:1/x"
    opened.sources.add(Source("src_1", "saved", url, "postgres", "postgres"))
    opened.close()
    (line,) = connection_totals(Config(state=str(tmp_path), workers=2))
    assert line.startswith("source saved: 2 workers x 5 = 10 connections for each gate; ")


def test_a_server_that_does_not_answer_is_said_in_its_line(tmp_path, state, monkeypatch):
    line = totals(tmp_path, "postgresql://u@127.0.0.1:1/shop", monkeypatch)[0]
    assert "1 worker x 10 = 10 connections for each gate; what its server admits cannot" in line


def test_one_process_alone_asks_no_source(tmp_path, monkeypatch):
    monkeypatch.delenv("TIDEGATE_STATE_URL", raising=False)
    source = SourceSettings(name="shop", url="postgresql://u@127.0.0.1:1/shop")
    assert list(connection_totals(Config(state=str(tmp_path), sources=(source,)))) == []
