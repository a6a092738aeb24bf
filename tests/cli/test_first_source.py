"""`tidegate bridge --first-source-env`: a URL from a client's form becomes the first source of a
state, for reading, and of no state that ever held rights."""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

import support.postgres_server as postgres_server
from support.bridge_host import INITIALIZE, READY, end_server
from support.command_line import Ended, environment, tidegate
from support.eventually import HANG_S

Run = Callable[..., Ended]
VARIABLE = "TIDEGATE_DATABASE_URL"


@pytest.fixture(autouse=True)
def ended(state: Path) -> Iterator[None]:
    """No server that a bridge has started stays."""
    yield
    end_server(state)


def bridge(state: Path, url: str, *messages: dict[str, Any]) -> Ended:
    """Start what the bundle starts, send it messages, and read until as many are answered."""
    process = subprocess.Popen(
        [sys.executable, "-m", "tidegate", "bridge", "--first-source-env", VARIABLE],
        env=environment(state) | {VARIABLE: url}, text=True,
        stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.PIPE,
    )  # fmt: skip
    assert process.stdin is not None and process.stdout is not None
    answers = ""
    for message in messages:
        process.stdin.write(json.dumps(message) + "\n")
        process.stdin.flush()
        if "id" in message:
            answers += process.stdout.readline()
    out, err = process.communicate(timeout=HANG_S)
    return Ended(process.returncode, answers + out, err)


def call(tool: str, **arguments: str) -> tuple[dict[str, Any], ...]:
    params = {"name": tool, "arguments": arguments}
    request = {"jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": params}
    return (INITIALIZE, READY, request)


def sources(run: Run) -> list[dict[str, Any]]:
    return run("source", "list", "--json").json["sources"]


def added(run: Run) -> int:
    return run("audit", "tail", "--all", "--json", "-n", "200").out.count('"source.added"')


def test_a_new_state_takes_it_and_its_first_question_is_answered(
    state: Path, run: Run, database: Path
) -> None:
    done = bridge(state, str(database), *call("query", sql="SELECT count(*) FROM towns"))
    assert done.status == 0 and "[3]" in done.out, done.err
    (source,) = sources(run)
    assert (source["name"], source["access"]) == ("small", "read")
    assert added(run) == 1


def test_it_is_for_reading(state: Path, database: Path) -> None:
    done = bridge(state, f"sqlite:///{database}", *call("query", sql="DELETE FROM towns"))
    assert "policy.read_only" in done.out


def test_the_next_start_with_the_same_url_changes_and_says_nothing(
    state: Path, run: Run, database: Path
) -> None:
    for _ in range(2):
        done = bridge(state, str(database))
        assert done.status == 0 and "was not added" not in done.err
    assert added(run) == 1


@pytest.mark.parametrize(
    "rights",
    [
        ("token", "create", "t", "--scope", "readOnly", "--expires", "1d"),
        ("passphrase", "set", "--new-passphrase-file", "-"),
        None,
    ],
    ids=["a token", "a passphrase", "a server that ran"],
)
def test_a_state_that_held_rights_takes_nothing_and_the_console_is_named(
    state: Path, run: Run, database: Path, rights: tuple[str, ...] | None
) -> None:
    if rights is None:
        serve = tidegate("serve", state=state, stdin="")
        assert serve.status == 0
    else:
        given = run(*rights, stdin="a long passphrase\n" if "passphrase" in rights else None)
        assert given.status == 0, given.err
    done = bridge(state, str(database), *call("sources"))
    assert "was not added" in done.err and "`tidegate console`" in done.err
    assert "No sources" in done.out and "`tidegate console`" in done.out
    assert sources(run) == [] and added(run) == 0


def test_a_source_that_was_removed_does_not_come_back(
    state: Path, run: Run, database: Path, tmp_path: Path
) -> None:
    assert bridge(state, str(database)).status == 0
    assert run("source", "remove", "small").status == 0
    done = bridge(state, str(database))
    assert "was not added" in done.err and sources(run) == []


def test_another_url_is_not_added_beside_the_first(
    state: Path, run: Run, database: Path, tmp_path: Path
) -> None:
    other = tmp_path / "other.db"
    other.write_bytes(database.read_bytes())
    assert bridge(state, str(database)).status == 0
    assert "was not added" in bridge(state, str(other)).err
    assert [source["name"] for source in sources(run)] == ["small"]


@pytest.mark.parametrize("url", ["", "  ", "${user_config.database_url}"])
def test_a_field_that_was_left_empty_is_no_database(state: Path, run: Run, url: str) -> None:
    assert bridge(state, url).status == 0
    assert sources(run) == []


def test_a_database_that_is_not_reached_is_said_and_tried_again_at_the_next_start(
    state: Path, run: Run, database: Path
) -> None:
    aside = database.with_name("aside.db")
    database.rename(aside)
    done = bridge(state, f"sqlite:///{database}")
    assert done.status != 0 and "There is no file" in done.err
    aside.rename(database)
    assert bridge(state, f"sqlite:///{database}").status == 0
    assert len(sources(run)) == 1


def test_a_server_that_is_down_is_said_without_the_password(state: Path, run: Run) -> None:
    done = bridge(state, "postgresql://reader:geheim@127.0.0.1:1/shop")
    assert done.status != 0 and "Nothing was saved" in done.err
    assert "--anyway" not in done.err and "geheim" not in done.err
    assert sources(run) == [] and not any((state / "passwords").glob("*"))


def test_the_password_of_the_url_is_kept_in_a_file_and_shown_nowhere(state: Path, run: Run) -> None:
    server = postgres_server.shared("wheel")
    secret = postgres_server.PASSWORD
    url = f"postgresql://postgres:{secret}@127.0.0.1:{server.port}/{server.new_database()}"
    done = bridge(state, url, *call("query", sql="SELECT 41 + 1 AS answer"))
    assert "[42]" in done.out, done.err
    (source,) = sources(run)
    assert "${FILE:" in source["url"]
    shown = done.out + done.err + run("audit", "tail", "--all", "--json", "-n", "200").out
    assert secret not in shown
    kept = [path for path in (state / "passwords").iterdir() if secret in path.read_text()]
    assert len(kept) == 1 and kept[0].stat().st_mode & 0o077 == 0


def test_the_server_that_the_bridge_starts_does_not_have_the_variable(
    state: Path, database: Path
) -> None:
    done = bridge(state, str(database), *call("sources"))
    assert "small" in done.out
    handshake = json.loads((state / "bridge" / "handshake.json").read_text())
    environ = Path(f"/proc/{handshake['pid']}/environ")
    if not environ.exists():
        pytest.skip("needs /proc")
    assert f"{VARIABLE}=" not in environ.read_bytes().decode()
