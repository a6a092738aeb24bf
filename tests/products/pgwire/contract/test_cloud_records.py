"""Statements for cloud providers over the wire obey the server's mode and stand in its file of
calls."""

from __future__ import annotations

from pathlib import Path

import psycopg
import pytest

from support.cloud_surface import (
    ADDRESS,
    DELETE,
    RESOURCE,
    SELECT,
    UPDATE,
    recorded,
    running_desk,
    write_desk,
)
from support.wire_server import wire_server

pytestmark = pytest.mark.needs("cloud")


def test_the_mode_holds_and_each_statement_has_its_line(tmp_path: Path) -> None:
    write_desk(tmp_path / "registry")
    source = {"name": "cloud", "url": f"cloud://{tmp_path}/registry", "access": "write"}
    server_settings = {
        "mode": "delete_safe",
        "audit": {"file": {"path": str(tmp_path / "calls.log")}},
    }
    failing = f"SELECT id FROM {RESOURCE} WHERE team = 'failing' AND id = 'secret=hunter2'"
    with (
        running_desk() as desk,
        wire_server(
            tmp_path,
            sources=[source],
            cloud={"endpoints": {ADDRESS: desk.url}},
            surface={"cloud": {"server": server_settings}},
        ) as server,
        psycopg.connect(server.conninfo("cloud", "writer"), autocommit=True) as client,
    ):
        assert len(client.execute(SELECT).fetchall()) == len(desk.tickets)
        assert client.execute(UPDATE).rowcount == 1
        writes = list(desk.writes)
        for statement in (DELETE, f"{SELECT}; {DELETE}", failing):
            with pytest.raises(psycopg.Error):
                client.execute(statement)
        assert desk.writes == writes
        assert "1" in desk.tickets
    lines = recorded(tmp_path)
    assert {each["tool"] for each in lines} == {"pgwire"}
    assert {each["mode"] for each in lines} == {"delete_safe"}
    assert [(each["decision"], each["query_class"]) for each in lines] == [
        ("allow", "select"),
        ("allow", "mutation_create"),
        ("needs_approval_unavailable", "mutation_delete"),
        ("allow", "select"),
        ("needs_approval_unavailable", "mutation_delete"),
        ("allow", "select"),
    ]
    assert lines[0]["sql"] == lines[0]["args"]["sql"] == SELECT
    assert "HTTP" in lines[-1]["error"] or "http_status" in lines[-1]["error"]


def test_nothing_runs_while_the_line_of_a_change_cannot_be_written(tmp_path: Path) -> None:
    write_desk(tmp_path / "registry")
    source = {"name": "cloud", "url": f"cloud://{tmp_path}/registry", "access": "write"}
    (tmp_path / "blocked").write_text("")
    audit = {"file": {"path": str(tmp_path / "blocked" / "calls.log")}}
    with (
        running_desk() as desk,
        wire_server(
            tmp_path,
            sources=[source],
            cloud={"endpoints": {ADDRESS: desk.url}},
            surface={"cloud": {"server": {"mode": "full_access", "audit": audit}}},
        ) as server,
        psycopg.connect(server.conninfo("cloud", "writer"), autocommit=True) as client,
    ):
        with pytest.raises(psycopg.Error, match="file of calls"):
            client.execute(UPDATE)
        assert desk.requests == []
