"""`tidegate doctor`: what is right, what is not, and one thing to do about each."""

from __future__ import annotations

import asyncio
import json
import os
import sqlite3
import subprocess
import sys
from collections.abc import Callable, Iterable
from contextlib import closing
from pathlib import Path
from socketserver import BaseRequestHandler
from typing import Any

import pytest

from support.command_line import Ended, environment, serving, tidegate
from support.eventually import HANG_S, wait_until
from support.free_ports import claim_port
from support.thread_server import thread_server
from tidegate.cli.checks.finding import Finding
from tidegate.cli.checks.report import Report
from tidegate.cli.commands.doctor import check
from tidegate.cli.parser import build
from tidegate.store.passwords import Passwords

Run = Callable[..., Ended]
SECRET = "Ebb-and-Fl0w"


@pytest.fixture(autouse=True)
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A person without any client, in a directory without a project."""
    path = tmp_path / "home"
    (path / "work").mkdir(parents=True)
    monkeypatch.setenv("HOME", str(path))
    for name in (
        "XDG_CONFIG_HOME", "XDG_DATA_HOME", "CLAUDE_CONFIG_DIR", "CODEX_HOME", "COPILOT_HOME",
    ):  # fmt: skip
        monkeypatch.delenv(name, raising=False)
    monkeypatch.chdir(path / "work")
    return path


def found(ended: Ended, check: str) -> list[dict[str, str]]:
    return [each for each in ended.json["checks"] if each["check"] == check]


def states(ended: Ended, check: str) -> set[str]:
    return {each["state"] for each in found(ended, check)}


def is_faulty(ended: Ended, check: str, said: str) -> None:
    """The check has a fault that says so and what to do, and the whole command fails."""
    assert ended.status == 1, ended
    faults = [each for each in found(ended, check) if each["state"] == "fault"]
    assert [each for each in faults if said in each["text"] and each["to_do"]], ended.out
    assert ended.json["ok"] is False


def test_a_sound_installation_has_no_fault(run: Run, towns: Path) -> None:
    ended = run("doctor", "--json")
    assert ended.status == 0, ended.out
    assert ended.json["ok"] is True
    checked = {each["check"] for each in ended.json["checks"]}
    assert checked >= {
        "python", "extras", "settings", "state", "database", "server", "source towns", "record",
        "clients", "disk", "clock", "terminal",
    }  # fmt: skip
    assert "SQLite" in found(ended, "source towns")[0]["text"]


def test_a_rule_that_closes_a_source_is_a_fault(run: Run, towns: Path, tmp_path: Path) -> None:
    run("source", "update", "towns", "--mask", "towns.name=hash", "--filter", "towns: di > 1")
    is_faulty(run("doctor", "--json"), "source towns", "there is no column `di`")
    run("source", "update", "towns", "--filter", "towns: id > 1")
    assert "fault" not in states(run("doctor", "--json"), "source towns")
    settings = tmp_path / "settings.toml"
    settings.write_text(
        f'[[sources]]\nname = "hills"\nurl = "sqlite:///{towns}"\n'
        '[[masks]]\ncolumn = "towns.nmae"\ntokens = ["some"]\n'
    )
    settings.chmod(0o600)
    ended = run("doctor", "--json", "--config", str(settings))
    is_faulty(ended, "source hills", "names a column that `towns` does not have")


def test_a_rule_for_a_caller_who_is_not_there_is_noted(
    run: Run, towns: Path, tmp_path: Path
) -> None:
    assert run("token", "create", "reporting", "--scope", "readOnly").status == 0
    settings = tmp_path / "settings.toml"
    settings.write_text(
        '[[masks]]\ncolumn = "towns.name"\ntokens = ["reprting"]\n'
        '[[filters]]\ntable = "towns"\nwhere = "id > 1"\ntokens = ["reporting", "bridge"]\n'
        'operators = ["ada"]\n'
    )
    settings.chmod(0o600)
    ended = run("doctor", "--json", "--config", str(settings))
    notes = [each["text"] for each in found(ended, "source towns") if "not there" in each["text"]]
    assert notes == [
        "the mask `towns.name` names the token `reprting`, which is not there",
        "the filter on `towns` names the operator `ada`, which is not there",
    ]


def test_a_rule_for_a_tag_that_no_source_has_is_noted(
    run: Run, towns: Path, tmp_path: Path
) -> None:
    settings = tmp_path / "settings.toml"
    settings.write_text('[[masks]]\ncolumn = "towns.name"\ntag = "prodution"\n')
    settings.chmod(0o600)
    ended = run("doctor", "--json", "--config", str(settings))
    assert "the tag `prodution`, and none has it" in str(found(ended, "settings"))
    assert run("source", "update", "towns", "--tag", "prodution").status == 0
    ended = run("doctor", "--json", "--config", str(settings))
    assert "none has it" not in str(found(ended, "settings"))


def test_a_login_for_a_provider_without_a_document_is_noted(run: Run, tmp_path: Path) -> None:
    folder = tmp_path / "registry" / "src" / "shop" / "v1"
    folder.mkdir(parents=True)
    (folder / "provider.yaml").write_text("id: shop\nname: shop\nversion: v1\n")
    assert run("source", "add", "api", f"cloud://{tmp_path}/registry").status == 0
    settings = tmp_path / "settings.toml"
    login = 'auth = { type = "bearer", credentialsenvvar = "SHOP" }'
    settings.write_text("".join(f"[cloud.providers.{n}]\n{login}\n" for n in ("shop", "shp")))
    settings.chmod(0o600)
    said = str(found(run("doctor", "--json", "--config", str(settings)), "source api"))
    assert "`cloud.providers.shp` is in the settings" in said
    assert "`cloud.providers.shop` is" not in said


def test_an_entry_is_looked_at_once_where_the_project_is_the_home_directory(
    run: Run, home: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert run("install", "cursor").status == 0
    monkeypatch.chdir(home)
    entries = found(run("doctor", "--json"), "client cursor")
    assert len([each for each in entries if "starts and answers" in each["text"]]) == 1


def test_each_line_says_its_state_and_what_to_do(run: Run, towns: Path) -> None:
    ended = run("doctor")
    lines = ended.out.splitlines()
    assert {line.split()[0] for line in lines if line.strip()} <= {"ok", "note", "fault", "to"}
    at = next(at for at, line in enumerate(lines) if line.startswith("note   source towns"))
    assert lines[at + 1].strip() == "to do: tidegate source harden towns"
    assert "no faults" in ended.err


def test_nothing_is_made_where_nothing_is_yet(tmp_path: Path, home: Path) -> None:
    before = sorted(home.rglob("*"))
    assert tidegate("doctor", state=tmp_path / "new").status == 0
    assert not (tmp_path / "new").exists()
    assert sorted(home.rglob("*")) == before


def spoil_rights(state: Path) -> None:
    (state / "state.db").chmod(0o644)


def spoil_database(state: Path) -> None:
    (state / "state.db").write_bytes(b"SQLite format 3\0" + os.urandom(8_192))


def spoil_record(state: Path) -> None:
    (segment,) = (state / "audit").glob("*.jsonl")
    segment.write_text(segment.read_text().replace("source.added", "source.edited", 1))


def spoil_clock(state: Path) -> None:
    (segment,) = (state / "audit").glob("*.jsonl")
    line = {"seq": 99, "time": "2999-01-01T00:00:00Z", "phase": "event", "name": "x", "hash": ""}
    segment.write_text(segment.read_text() + json.dumps(line) + "\n")


def spoil_owner(state: Path) -> None:
    state.chmod(0o777)


@pytest.mark.parametrize(
    ("spoil", "check", "said"),
    [
        (spoil_rights, "state", "state.db"),
        (spoil_owner, "state", "Every user can write"),
        (spoil_database, "database", "state.db"),
        (spoil_record, "record", "000001.jsonl line"),
        (spoil_clock, "clock", "before the newest record"),
    ],
)
def test_a_state_that_is_spoilt_is_named(
    run: Run, towns: Path, state: Path, spoil: Callable[[Path], None], check: str, said: str
) -> None:
    spoil(state)
    is_faulty(run("doctor", "--json"), check, said)


def test_a_process_that_holds_the_lock_of_the_state_is_told(
    run: Run, towns: Path, state: Path
) -> None:
    with closing(sqlite3.connect(state / "state.db", isolation_level=None)) as holding:
        holding.execute("BEGIN IMMEDIATE")
        is_faulty(run("doctor", "--json"), "database", "locked")
    assert states(run("doctor", "--json"), "database") == {"ok"}


def test_sources_that_do_not_work_are_named_and_the_others_are_checked(
    run: Run, towns: Path, tmp_path: Path
) -> None:
    port = claim_port()
    sources: dict[str, tuple[dict[str, Any], str]] = {
        "gone": ({"url": "sqlite:////no/such.db"}, "There is no file"),
        "down": (
            {"url": f"postgresql://me@127.0.0.1:{port}/x"},
            f"127.0.0.1:{port}: PostgreSQL cannot be",
        ),
        "unset": (
            {"url": "mysql://me:${ENV:NOT_SET_HERE}@127.0.0.1/x"}, "`NOT_SET_HERE` is not set",
        ),
        "wrong": ({"url": f"sqlite:///{towns}", "options": {"timout": "3"}}, "no option `timout`"),
        "unknown": ({"url": f"sqlte:///{towns}"}, "No engine opens"),
    }  # fmt: skip
    path = tmp_path / "settings.json"
    path.write_text(
        json.dumps({"sources": [{"name": name, **each} for name, (each, _) in sources.items()]})
    )
    ended = run("doctor", "--json", "--config", str(path))
    for name, (_, said) in sources.items():
        is_faulty(ended, f"source {name}", said)
    assert "fault" not in states(ended, "source towns")


def test_settings_that_cannot_be_read_keep_nothing_else_from_being_checked(
    run: Run, towns: Path, tmp_path: Path
) -> None:
    (tmp_path / "settings.json").write_text('{"surface": ["core"]}')
    ended = run("doctor", "--json", "--config", str(tmp_path / "settings.json"))
    is_faulty(ended, "settings", "surface")
    assert "ok" in states(ended, "source towns")


def test_an_unknown_source_is_a_fault(run: Run, towns: Path) -> None:
    ended = run("doctor", "--json", "--source", "town")
    is_faulty(ended, "source town", "no such source")
    assert found(ended, "source towns") == []


def test_sources_that_do_not_answer_are_tried_at_the_same_time_and_given_up(
    state: Path, tmp_path: Path
) -> None:
    met: list[int] = []

    class Silent(BaseRequestHandler):
        def handle(self) -> None:
            met.append(self.client_address[1])
            while self.request.recv(1_024):
                pass

    with thread_server(Silent) as port:
        sources = [
            {"name": f"s{number}", "url": f"postgresql://me@127.0.0.1:{port}/x"}
            for number in range(3)
        ]
        words = ["doctor", "--json", "--config", json.dumps({"sources": sources})]
        with serving([*words, "--timeout", "600"], state):
            # One after the other, the second would begin when the first is given up.
            wait_until(lambda: len(met) >= 3, "three connections at a time")
        ended = tidegate(*words, "--timeout", "1", state=state)
    for number in range(3):
        is_faulty(ended, f"source s{number}", "did not answer within 1 s")


def write_entry(home: Path, entry: dict[str, Any]) -> None:
    (home / ".cursor").mkdir(exist_ok=True)
    text = json.dumps({"mcpServers": {"tidegate": entry, "other": {"command": "/bin/false"}}})
    (home / ".cursor" / "mcp.json").write_text(text)


@pytest.mark.parametrize("kind", [("--bridge",), ("--stdio",)])
def test_an_entry_is_started_as_a_desktop_does_and_nothing_of_it_stays(
    run: Run, towns: Path, kind: tuple[str]
) -> None:
    assert run("install", "cursor", *kind).status == 0
    ended = run("doctor", "--json")
    assert ended.status == 0, ended.out
    (entry,) = found(ended, "client cursor")
    assert entry["state"] == "ok" and "starts and answers" in entry["text"]
    assert run("status").status == 69


def test_the_entry_of_each_client_is_started_or_its_server_asked(run: Run, towns: Path) -> None:
    clients = ("codex", "copilot", "gemini", "junie", "opencode", "windsurf", "zed")
    url = f"http://127.0.0.1:{claim_port()}/mcp"
    for client in clients:
        assert run("install", client, "--stdio").status == 0
    ended = run("doctor", "--json")
    for client in clients:
        (entry,) = found(ended, f"client {client}")
        assert entry["state"] == "ok" and "starts and answers" in entry["text"]
        assert run("install", client, "--http", url, "--force").status == 0
    ended = run("doctor", "--json")
    for client in clients:
        is_faulty(ended, f"client {client}", "no server answers at")


@pytest.mark.parametrize("client", ["codex", "opencode"])
def test_a_variable_that_an_entry_names_is_missed(run: Run, state: Path, client: str) -> None:
    with serving(["serve", "--http", "127.0.0.1:0"], state) as server:
        url = server.until("serving").split("http://")[1].split()[0].rstrip(",")
        words = ("--http", f"http://{url.partition('/')[0]}/mcp", "--token-env", "NO_SUCH_TOKEN")
        assert run("install", client, *words).status == 0
        (entry,) = found(run("doctor", "--json"), f"client {client}")
    assert entry["state"] == "note" and "NO_SUCH_TOKEN" in entry["text"]


def test_a_server_that_ran_before_stays(run: Run, towns: Path, state: Path) -> None:
    run("install", "cursor")
    with serving(["serve", "--http", "127.0.0.1:0"], state) as server:
        server.until("serving")
        ended = run("doctor", "--json")
        assert states(ended, "client cursor") == {"ok"}
        assert f"process {server.process.pid}" in found(ended, "server")[0]["text"]
        assert run("status", "--json").json["pid"] == server.process.pid


def test_entries_that_do_not_start_are_named(run: Run, towns: Path, home: Path) -> None:
    port = claim_port()
    of_uv = "echo 'error: Failed to fetch: x' >&2; echo '  cause: y' >&2; echo 'hint: z' >&2"
    entries = {
        ".cursor/mcp.json": {"command": "/no/such/tidegate", "args": ["bridge"]},
        ".gemini/settings.json": {
            "command": sys.executable, "args": ["-m", "tidegate", "bridge", "--stat"],
        },
        ".codeium/windsurf/mcp_config.json": {"command": "/bin/false", "args": []},
        ".copilot/mcp-config.json": {"url": f"http://127.0.0.1:{port}/mcp/core"},
        ".claude.json": {"url": "ftp://x"},
        ".junie/mcp/mcp.json": {"command": "/bin/sh", "args": ["-c", of_uv]},
    }  # fmt: skip
    for file, entry in entries.items():
        (home / file).parent.mkdir(parents=True, exist_ok=True)
        (home / file).write_text(json.dumps({"mcpServers": {"tidegate": entry}}))
    ended = run("doctor", "--json")
    is_faulty(ended, "client cursor", "No such file")
    is_faulty(ended, "client gemini", "--stat")
    is_faulty(ended, "client windsurf", "without an answer")
    is_faulty(ended, "client copilot", f"no server answers at 127.0.0.1:{port}")
    is_faulty(ended, "client claude-code", "no URL of HTTP")
    is_faulty(ended, "client junie", "does not start: Failed to fetch: x")


class Unread(Report):
    """What is read of it ends before the extras."""

    def add(self, findings: Iterable[Finding]) -> None:
        for each in findings:
            if each.check == "extras":
                raise BrokenPipeError
            super().add([each])


def test_what_an_entry_has_started_is_ended_if_no_one_reads_the_report_to_its_end(
    home: Path, state: Path, tmp_path: Path
) -> None:
    script = f"read line; echo '{{\"result\": {{}}}}'; cat; touch {tmp_path}/ended"
    write_entry(home, {"command": "/bin/sh", "args": ["-c", script]})
    arguments = build(["doctor"]).parse_args(["doctor", "--json", "--state", str(state)])
    with pytest.raises(BrokenPipeError):
        asyncio.run(check(arguments, Unread(as_json=True)))
    assert (tmp_path / "ended").exists()


def test_an_entry_of_another_state_is_a_note(
    run: Run, towns: Path, home: Path, tmp_path: Path
) -> None:
    other = tmp_path / "other"
    other.mkdir(mode=0o700)
    run("install", "cursor", "--stdio", "--state", str(other))
    said = [each["text"] for each in found(run("doctor", "--json"), "client cursor")]
    assert any(str(other) in text for text in said)
    settings = tmp_path / "gate.json"
    settings.write_text(json.dumps({"state": str(other)}))
    words = ["-m", "tidegate", "serve", "--config", str(settings)]
    write_entry(home, {"command": sys.executable, "args": words})
    said = [each["text"] for each in found(run("doctor", "--json"), "client cursor")]
    assert any(f"uses the state directory {other}" in text for text in said), said


def test_an_extra_that_a_source_needs_and_that_is_missing_is_named(
    state: Path, tmp_path: Path
) -> None:
    url = f"postgresql://me@127.0.0.1:{claim_port()}/x"
    code = (
        "import sys; sys.modules['psycopg'] = None\n"
        "from tidegate.cli.main import main; sys.exit(main(sys.argv[1:]))"
    )
    settings = json.dumps({"sources": [{"name": "pg", "url": url}]})
    done = subprocess.run(
        [sys.executable, "-c", code, "doctor", "--json", "--config", settings],
        capture_output=True, text=True, timeout=HANG_S, env=environment(state), check=False,
    )  # fmt: skip
    ended = Ended(done.returncode, done.stdout, done.stderr)
    is_faulty(ended, "extras", "the extra `postgres` is not installed, and the source pg needs it")
    assert "install" in found(ended, "extras")[0]["to_do"]


def test_no_secret_is_in_the_report(
    run: Run, home: Path, state: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("SHOP_PW", SECRET)
    token = run("token", "create", "ann", "--scope", "readOnly").out.strip()
    url = f"postgresql://me:${{ENV:SHOP_PW}}@127.0.0.1:{claim_port()}/x"
    assert run("source", "add", "shop", url, "--anyway").status == 0
    code = f"import sys; sys.exit('cannot use {token} of http://me:{SECRET}@db/')"
    write_entry(home, {"command": sys.executable, "args": ["-c", code, "tidegate"]})
    for words in (("doctor",), ("doctor", "--json")):
        ended = run(*words)
        assert ended.status == 1 and "client cursor" in ended.out
        assert SECRET not in ended.out + ended.err and token not in ended.out + ended.err


def test_a_password_that_a_killed_command_left_is_named_with_what_removes_it(
    run: Run, state: Path, towns: Path
) -> None:
    passwords = Passwords(state)
    url = f"postgresql://ann:{passwords.save('far', SECRET)}@127.0.0.1:1/x"
    assert run("source", "add", "far", url, "--anyway").status == 0
    passwords.save("towns.reader", SECRET)  # of an account that `source harden` has printed
    for left in ("gone", "towns"):
        passwords.save(left, SECRET)
    ended = run("doctor", "--source", "towns", "--json")
    assert ended.status == 0 and SECRET not in ended.out
    noted = found(ended, "password")
    assert {each["state"] for each in noted} == {"note"}
    named = [Path(each["to_do"].removeprefix("rm ")) for each in noted]
    assert [path.name.rpartition(".")[0] for path in named] == ["gone", "towns"]
    for path in named:
        path.unlink()
    assert found(run("doctor", "--source", "towns", "--json"), "password") == []
