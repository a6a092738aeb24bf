"""`tidegate ask` as its users have it: a question with a model, confirmed, checked and moved."""

from __future__ import annotations

import json
import sqlite3
from collections.abc import Callable
from pathlib import Path

import yaml

from products.pgedge.support.scripted_model import scripted, wrote
from support.command_line import Ended

Run = Callable[..., Ended]
QUESTION = "How many towns are there?"
SQL = "SELECT count(*) AS n FROM towns"


def test_an_answer_is_confirmed_checked_and_imported_on_another_source(
    run: Run, towns: Path, tmp_path: Path
) -> None:
    with scripted(wrote(SQL)) as model:
        settings = ("--config", json.dumps({"language": {"model": model.settings()}}))
        asked = run("ask", "towns", QUESTION, "--json", *settings)
        assert asked.status == 0, asked.err
        assert asked.json["sql"] == SQL
        assert asked.json["page"]["rows"] == [[3]]
        assert run("ask", "towns", "--confirm", asked.json["handle"], *settings).status == 0
        checked = run("ask", "towns", "--check", *settings)
        assert (checked.status, len(model.prompts)) == (0, 1)
        assert "1 of 1 as confirmed" in checked.err
    again = run("ask", "towns", "how many towns are there", "--json")
    assert (again.json["origin"], again.json["page"]["rows"]) == ("pair", [[3]])
    exported = run("ask", "towns", "--export")
    copy = tmp_path / "copy.db"
    with sqlite3.connect(copy) as connection:
        connection.execute("CREATE TABLE towns (id INTEGER PRIMARY KEY, name TEXT)")
        connection.execute("INSERT INTO towns VALUES (1, 'Oslo')")
    connection.close()
    assert run("source", "add", "copy", f"sqlite:///{copy}").status == 0
    imported = run("ask", "copy", "--import", "-", stdin=exported.out)
    assert (imported.status, imported.err) == (0, "confirmed 1 question\n")
    there = run("ask", "copy", QUESTION, "--json")
    assert (there.json["origin"], there.json["page"]["rows"]) == ("pair", [[1]])
    ids = [pair["id"] for pair in yaml.safe_load(exported.out)["pairs"]]
    assert [pair["id"] for pair in yaml.safe_load(run("ask", "copy", "--export").out)["pairs"]] == (
        ids
    )


def test_a_check_finds_other_rows_and_a_table_that_has_changed(run: Run, towns: Path) -> None:
    pair = f"pairs:\n- {{question: '{QUESTION}', sql: '{SQL}'}}\n"
    assert run("ask", "towns", "--import", "-", stdin=pair).status == 0
    for change, state in (
        ("INSERT INTO towns (id, name) VALUES (9, 'Oslo')", "differs"),
        ("ALTER TABLE towns ADD COLUMN country TEXT", "lapsed"),
    ):
        with sqlite3.connect(towns) as connection:
            connection.execute(change)
        connection.close()
        checked = run("ask", "towns", "--check", "--json")
        assert checked.status == 65
        assert [each["state"] for each in json.loads(checked.out)] == [state]


def test_a_file_that_cannot_be_imported_says_why_and_confirms_nothing(
    run: Run, towns: Path, tmp_path: Path
) -> None:
    missing = run("ask", "towns", "--import", str(tmp_path / "nowhere.yaml"))
    assert (missing.status, "No such file" in missing.err) == (2, True)
    bad = "pairs:\n- {question: 'Gone?', sql: 'DELETE FROM towns'}\n"
    refused = run("ask", "towns", "--import", "-", stdin=bad)
    assert refused.status != 0
    assert "'Gone?' cannot be kept" in refused.err
    assert yaml.safe_load(run("ask", "towns", "--export").out) == {"pairs": []}
    both = run("ask", "towns", QUESTION, "--import", "-", stdin=bad)
    assert (both.status, "alternatives" in both.err) == (2, True)
