"""`tidegate tables`, `describe`, `source show` and `config`: what is there, and what is set."""

from __future__ import annotations

import re
import sqlite3
from collections.abc import Callable
from contextlib import closing
from pathlib import Path

import tidegate.cli
from support.command_line import Ended

Run = Callable[..., Ended]


def test_tables_are_listed(run: Run, towns: Path) -> None:
    found = run("tables", "towns", "--json").json["tables"]
    assert [(each["name"], each["kind"], each["columns"]) for each in found] == [
        ("towns", "table", 3),
        ("visited", "view", 1),
        ("visits", "table", 2),
    ]
    assert "visits" in run("tables", "towns").out
    assert run("tables", "nowhere").status == 66


def test_a_table_is_described_with_its_keys(run: Run, towns: Path) -> None:
    shown = run("describe", "towns", "VISITS")
    assert shown.status == 0, shown.err
    assert "main.visits (table)" in shown.out
    assert "-> towns.id" in shown.out and "primary" in shown.out
    (table,) = run("describe", "towns", "main.towns", "--json").json["tables"]
    assert [column["name"] for column in table["columns"]] == ["id", "name", "people"]
    unknown = run("describe", "towns", "town")
    assert (unknown.status, "Tables there: towns, visited, visits" in unknown.err) == (66, True)


def test_a_mask_shows_nothing_that_the_source_hides(run: Run, database: Path, state: Path) -> None:
    url = f"sqlite:///{database}"
    assert run("source", "add", "towns", url, "--mask", "towns.name=hash").status == 0
    shown = run("source", "show", "towns")
    assert shown.status == 0, shown.err
    assert url in shown.out and "towns.name" in shown.out and "hash" in shown.out
    entry = run("source", "show", "towns", "--json").json
    assert (entry["access"], entry["from"]) == ("read", "state")
    unknown = run("source", "show", "town")
    assert (unknown.status, "Did you mean 'towns'?" in unknown.err) == (66, True)


def test_masked_columns_are_marked_where_a_table_is_described(run: Run, towns: Path) -> None:
    assert "masked" not in run("describe", "towns", "towns").out
    run("source", "update", "towns", "--mask", "towns.name=hash", "--mask", "towns.people")
    lines = run("describe", "towns", "towns").out.splitlines()
    marked = {line.split()[0]: line.split("masked: ")[1] for line in lines if "masked: " in line}
    assert marked == {"name": "hash", "people": "nothing"}


def test_a_source_of_the_settings_is_shown(run: Run, database: Path, tmp_path: Path) -> None:
    path = tmp_path / "settings.toml"
    path.write_text(f'[[sources]]\nname = "towns"\nurl = "sqlite:///{database}"\n')
    path.chmod(0o600)
    entry = run("source", "show", "towns", "--config", str(path), "--json").json
    assert (entry["engine"], entry["from"]) == ("sqlite", "settings")


def test_settings_are_checked_and_shown(run: Run, database: Path, tmp_path: Path) -> None:
    path = tmp_path / "settings.toml"
    good = f'[[sources]]\nname = "towns"\nurl = "sqlite:///{database}"\n'
    path.write_text(good)
    path.chmod(0o600)
    ended = run("config", "check", "--config", str(path))
    assert (ended.status, ended.out) == (0, "")
    assert f"{path}: the settings are valid, with 1 source" in ended.err
    shown = run("config", "show", "--config", str(path)).json
    assert [source["name"] for source in shown["sources"]] == ["towns"]
    assert "allow_writes" not in shown
    assert "allow_writes" in run("config", "show", "--all", "--config", str(path)).json
    path.write_text(good + f'[[sources]]\nname = "gone"\nurl = "sqlite:///{tmp_path}/none.db"\n')
    wrong = run("config", "check", "--config", str(path))
    assert (wrong.status, "source gone: There is no file at" in wrong.err) == (78, True)
    path.write_text('surfces = ["core"]\n')
    unknown = run("config", "check", "--config", str(path))
    assert (unknown.status, "surfaces" in unknown.err) == (78, True)
    assert run("config", "check").status == 2


def test_records_since_yesterday_name_the_time_zone(run: Run, towns: Path) -> None:
    run("query", "towns", "SELECT 1")
    for word in ("yesterday", "today", "2020-01-31"):
        ended = run("audit", "tail", "--since", word)
        assert ended.status == 0 and "SELECT 1" in ended.out
        assert "is meant; times shown are UTC" in ended.err
    assert "is meant" not in run("audit", "tail", "--since", "2h").err


HOSTILE = "hi \x1b[2J\x1b]52;c;aGk=\x07\x9b2K \u202eereht"


def test_names_of_the_database_do_not_reach_the_terminal_as_control_characters(
    run: Run, towns: Path
) -> None:
    name = HOSTILE.replace('"', '""')
    with closing(sqlite3.connect(towns)) as connection, connection:
        connection.execute(f'CREATE TABLE "{name}" (id INTEGER PRIMARY KEY, "{name}" text)')
        connection.execute(f'INSERT INTO "{name}" VALUES (1, ?)', (HOSTILE,))
    ended = [
        run("tables", "towns"),
        run("describe", "towns", HOSTILE),
        run("ask", "towns", "What is there?"),
        run("query", "towns", f'SELECT * FROM "{name}"'),
        run("query", "towns", f"SELECT * FROM missing_{HOSTILE}"),
        run("search", "check", "towns", HOSTILE),
        run("explain", "towns", f'SELECT * FROM "{name}"'),
    ]
    assert ended[1].status == 0, ended[1].err
    for each in ended:
        assert not set("\x1b\x07\x9b\u202e") & set(each.out + each.err), each


def test_the_command_line_prints_by_its_terminal_module_alone() -> None:
    """Whatever else prints would have to think of control characters by itself."""
    folder = Path(tidegate.cli.__file__).parent
    printing = {
        path.relative_to(folder).as_posix()
        for path in folder.rglob("*.py")
        if re.search(r"^\s+print\(", path.read_text(), re.MULTILINE)
    }
    assert printing == {"terminal.py", "main.py", "commands/version.py"}
