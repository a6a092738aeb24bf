"""`tidegate cloud shell` reads statements, completes names and keeps a history without secrets."""

from __future__ import annotations

import asyncio
import io
import json
import stat
import sys
from pathlib import Path

import pytest

from support.cloud_surface import (
    DELETE,
    RESOURCE,
    SELECT,
    running_desk,
    settings_of,
    write_desk,
)
from support.terminal import terminal
from tidegate.cli.main import main
from tidegate.cli.progress import StageLine
from tidegate.engines.registry import engine_of
from tidegate.model.sources import Source
from tidegate.products.cloud.commands.shell_input import Completer, History, split_statements
from tidegate.store.sqlite.state import SqliteState


@pytest.mark.parametrize(
    ("text", "found", "left"),
    [
        ("SELECT 1;", ["SELECT 1"], ""),
        ("SELECT 1; SHOW PROVIDERS; SEL", ["SELECT 1", "SHOW PROVIDERS"], " SEL"),
        ("SELECT ';' AS a;", ["SELECT ';' AS a"], ""),
        ('SELECT ";" FROM `;`;', ['SELECT ";" FROM `;`'], ""),
        ("SELECT 'it''s;';", ["SELECT 'it''s;'"], ""),
        ("SELECT 1 -- a; b\n;", ["SELECT 1 -- a; b"], ""),
        ("SELECT /* ; */ 1;;", ["SELECT /* ; */ 1"], ""),
        ("SELECT 'open; ", [], "SELECT 'open; "),
        ("", [], ""),
    ],
)
def test_a_statement_ends_at_a_semicolon_outside_of_quotes(
    text: str, found: list[str], left: str
) -> None:
    assert split_statements(text) == (found, left)


def test_names_are_completed_part_by_part_and_looked_up_once() -> None:
    asked: list[str] = []
    known = {
        "SHOW PROVIDERS": ["desk", "github"],
        "SHOW SERVICES IN desk": ["tickets", "teams"],
        "SHOW RESOURCES IN desk.tickets": ["tickets"],
        f"DESCRIBE {RESOURCE}": ["id", "title"],
    }

    def names(statement: str) -> list[str]:
        asked.append(statement)
        return known[statement]

    completer = Completer(names)
    assert completer.complete("SELECT * FROM d", "d") == ["DESCRIBE", "desk"]
    assert completer.complete("SELECT * FROM desk.", "desk.") == ["desk.teams", "desk.tickets"]
    assert completer.complete("SHOW METHODS IN desk.tickets.t", "desk.tickets.t") == [RESOURCE]
    assert completer.complete(f"SELECT id FROM {RESOURCE} WHERE ti", "ti") == ["title"]
    assert completer.complete("x", f"{RESOURCE}.list.x") == []
    completer.complete("SELECT * FROM d", "d")
    assert sorted(asked) == sorted(known)


def test_the_history_is_private_and_keeps_no_secret(tmp_path: Path) -> None:
    history = History(tmp_path / "history")
    assert history.load() == []
    assert history.add("SELECT\n 1") == "SELECT 1;"
    assert history.add(f"SELECT * FROM {RESOURCE} WHERE password = 'hunter2'") is None
    assert history.load() == ["SELECT 1;"]
    assert stat.S_IMODE((tmp_path / "history").stat().st_mode) == 0o600


def _settings(directory: Path, desk: object) -> str:
    return json.dumps(settings_of(directory, desk=desk))  # type: ignore[arg-type]


def test_a_script_is_answered_and_a_failure_shows_in_the_status(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    with running_desk() as desk:
        config = _settings(tmp_path, desk)
        monkeypatch.setattr(sys, "stdin", io.StringIO(f"SHOW PROVIDERS;\n{SELECT};\n"))
        assert main(["cloud", "shell", "--config", config]) == 0
        shown = capsys.readouterr()
        assert "v24.01.00001" in shown.out
        assert "Printer | on fire" in shown.out
        assert "2 rows in" in shown.err
        assert "; 1 request, 1 page" in shown.err
        script = ("SELECT * FROM desk.none.x;", f"{DELETE};", "SHOW PROVIDERS")
        monkeypatch.setattr(sys, "stdin", io.StringIO("\n".join(script)))
        assert main(["cloud", "shell", "apis", "--config", config]) == 1
        shown = capsys.readouterr()
        assert "There is no service of desk with the name `none`" in shown.err
        assert "policy." in shown.err
        assert "v24.01.00001" in shown.out
        assert desk.writes == []
    assert not (tmp_path / "state" / "cloud_shell_history").exists()


def test_rows_can_be_written_as_csv(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    with running_desk() as desk:
        config = _settings(tmp_path, desk)
        assert main(["query", "apis", SELECT, "--csv", "--config", config]) == 0
    assert capsys.readouterr().out.splitlines()[:2] == ["id,title,open", "1,Printer | on fire,true"]


class _Terminal(io.StringIO):
    def isatty(self) -> bool:
        return True


@pytest.mark.parametrize("words", [("query", "apis", SELECT), ("cloud", "shell")])
def test_a_terminal_shows_the_calls_and_pages_of_a_statement_that_takes_long(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, words: tuple[str, ...]
) -> None:
    shown = _Terminal()
    monkeypatch.setattr(sys, "stderr", shown)
    monkeypatch.setattr(sys, "stdin", io.StringIO(f"{SELECT};"))
    with running_desk() as desk:
        desk.hold.clear()
        monkeypatch.setattr(
            StageLine, "_write", lambda line, text: (shown.write(text), desk.hold.set())
        )
        assert main([*words, "--config", _settings(tmp_path, desk)]) == 0
    assert "Executing: 1 call, 0 pages" in shown.getvalue()


async def test_the_line_of_a_stage_is_written_again_and_removed() -> None:
    shown = io.StringIO()
    line = StageLine(shown, after_s=0)
    line.show(0.1, "early")
    await asyncio.sleep(0)
    await asyncio.sleep(0)
    line.show(0.3, "Executing: 2 calls\x1b[2J")
    line.clear()
    line.clear()
    parts = shown.getvalue().split("\r")[1:]
    assert parts[0] == "early\x1b[K"
    assert "\x1b[2J" not in parts[1]
    assert parts[2:] == ["\x1b[K"]


def test_documents_that_were_pulled_are_a_source_for_every_command_as_for_the_server(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    write_desk(tmp_path / "cloud")
    state = ("--state", str(tmp_path))
    assert main(["query", "cloud", "SHOW PROVIDERS", "--csv", *state]) == 0
    assert capsys.readouterr().out.splitlines() == ["name,version", "desk,v24.01.00001"]
    monkeypatch.setattr(sys, "stdin", io.StringIO("SHOW PROVIDERS;"))
    assert main(["cloud", "shell", *state]) == 0
    assert "desk" in capsys.readouterr().out
    kept = str(tmp_path / "kept.json")
    assert main(["cloud", "snapshot", "cloud", "SHOW PROVIDERS", "--output", kept, *state]) == 0
    capsys.readouterr()


@pytest.mark.parametrize(
    ("name", "url"), [("cloud", "sqlite:////nowhere.db"), ("apis", "cloud:///nowhere")]
)
@pytest.mark.parametrize("is_saved", [False, True])
def test_documents_that_were_pulled_take_the_place_of_no_source(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], name: str, url: str, is_saved: bool
) -> None:
    write_desk(tmp_path / "cloud")
    words = ["query", name, "SELECT 1", "--state", str(tmp_path)]
    if is_saved:
        state = SqliteState(tmp_path / "state.db")
        state.sources.add(Source("1", name, url, *engine_of(url)))
        state.close()
    else:
        words += ["--config", json.dumps({"sources": [{"name": name, "url": url}]})]
    assert main(words) != 0
    assert "nowhere" in capsys.readouterr().err
    words[1] = "missing"
    assert main(words) != 0
    assert f"There is no source 'missing'. Sources: {name}\n" in capsys.readouterr().err


@pytest.mark.parametrize("words", [["none"], []])
def test_without_a_source_of_this_kind_the_shell_says_how_to_add_one(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], words: list[str]
) -> None:
    assert main(["cloud", "shell", *words, "--state", str(tmp_path)]) != 0
    assert "tidegate source add" in capsys.readouterr().err


def test_a_person_types_recalls_and_completes_at_a_terminal(tmp_path: Path) -> None:
    with running_desk() as desk:
        config = tmp_path / "settings.json"
        config.write_text(_settings(tmp_path, desk))
        config.chmod(0o600)
        words = ["cloud", "shell", "--config", str(config)]
        with terminal(words, tmp_path / "state") as screen:
            screen.until("cloud> ")
            screen.type("SELECT title FROM desk.tickets.ti\t WHERE team = 'red'")
            screen.until("...> ")
            screen.type("AND id = '1';")
            screen.until("Printer | on fire")
            screen.until("cloud> ")
            screen.type("\x1b[A")  # the arrow up, and Enter
            screen.until("Printer | on fire")
            screen.until("cloud> ")
            screen.type("\x04")
            assert screen.end() == 0
    kept = (tmp_path / "state" / "cloud_shell_history").read_text().splitlines()
    expected = f"SELECT title FROM {RESOURCE} WHERE team = 'red' AND id = '1';"
    assert kept == [expected, expected]
