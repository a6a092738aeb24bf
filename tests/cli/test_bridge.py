"""`tidegate bridge` with a real server: started, found, lost, and what it may do."""

from __future__ import annotations

import fcntl
import json
import os
import signal
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from support.bridge_host import Host, bridged, end_server, handshake_of, wait_for_end
from support.command_line import Ended, environment, serving
from support.eventually import HANG_S, wait_until
from support.free_ports import claim_port
from tidegate.bridge.handshake_file import Handshake, HandshakeFile
from tidegate.errors import TidegateError

pytestmark = pytest.mark.skipif(os.name != "posix", reason="needs file owners and modes")

Run = Callable[..., Ended]
Contents = Callable[[], list[tuple[object, ...]]]

CORE = ("--surface", "core")
HTTP = ("serve", "--surface", "core", "--http", "127.0.0.1:0")
ENDLESS = "WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n) SELECT max(i) FROM n"


@pytest.fixture(autouse=True)
def ended(state: Path) -> Iterator[None]:
    """Nothing that a bridge has started stays."""
    yield
    end_server(state)


def read(host: Host, id: int) -> str:
    reply = host.call(id, "query", sql="SELECT name FROM towns WHERE id = 1")
    return reply["result"]["content"][0]["text"]


def starts(run: Run) -> int:
    """How many servers the record has seen start."""
    listed = run("audit", "tail", "--all", "--json", "-n", "200").out
    return listed.count('"server.started"')


def test_it_starts_a_server_and_answers(towns: Path, state: Path) -> None:
    with bridged(state, *CORE) as host:
        assert host.open()["protocolVersion"] == "2025-11-25"
        assert "Köln" in read(host, 1)
        ended = host.process.ended()
    assert (ended.status, ended.out, ended.err) == (0, "", "")
    mode = (state / "bridge" / "handshake.json").stat().st_mode
    assert (mode & 0o777, (state / "bridge").stat().st_mode & 0o777) == (0o600, 0o700)


def test_it_uses_the_server_that_runs(towns: Path, state: Path, run: Run) -> None:
    with serving(HTTP, state) as server:
        server.until("serving")
        with bridged(state, *CORE) as host:
            host.open()
            assert "Köln" in read(host, 1)
            assert handshake_of(state)["pid"] == server.process.pid
    assert starts(run) == 1


def test_two_at_once_start_one_server(towns: Path, state: Path, run: Run) -> None:
    with bridged(state, *CORE) as one, bridged(state, *CORE) as other:
        for host in (one, other):
            host.open()
            assert "Köln" in read(host, 1)
    assert starts(run) == 1


def test_a_server_that_was_killed_is_replaced_and_the_session_opened_again(
    towns: Path, state: Path
) -> None:
    with bridged(state, *CORE) as host:
        host.open()
        assert "Köln" in read(host, 1)
        first = handshake_of(state)["pid"]
        end_server(state)
        assert "Köln" in read(host, 2)
        assert handshake_of(state)["pid"] != first


def test_a_call_that_may_have_run_is_not_sent_again(towns: Path, state: Path, run: Run) -> None:
    with bridged(state, *CORE) as host:
        host.open()
        assert "Köln" in read(host, 1)
        host.ask(2, "query", sql=ENDLESS)
        # Another call that is answered proves that the first has reached the server.
        assert "Köln" in read(host, 3)
        end_server(state)
        error = host.receive(2)["error"]
        assert error["data"]["code"] == "bridge.outcome_unknown"
        assert "Köln" in read(host, 4)


def test_a_stale_file_is_replaced(towns: Path, state: Path) -> None:
    with serving(HTTP, state) as server:
        server.until("serving")
        server.process.kill()
        server.process.wait()
    assert handshake_of(state)["pid"] == server.process.pid
    with bridged(state, *CORE) as host:
        host.open()
        assert "Köln" in read(host, 1)
        assert handshake_of(state)["pid"] != server.process.pid


def test_a_bridge_does_not_take_another_that_looks_for_the_server_of_a_stale_file(
    state: Path,
) -> None:
    place = HandshakeFile(state)
    place.prepare()
    place.write(
        Handshake(1, "gone", "127.0.0.1", 1, 2**22 + 1, 2e9, "t", "k", ("/mcp",), 1.0, "", "", 0.0)
    )
    assert place.read(1e9) is None
    other = os.open(place.directory / "server.lock", os.O_RDWR)
    fcntl.flock(other, fcntl.LOCK_SH)  # as one that looks at the same moment
    assert place.read(1e9) is None
    fcntl.flock(other, fcntl.LOCK_EX)  # as a server
    with pytest.raises(TidegateError):
        place.read(1e9)
    os.close(other)


def test_a_server_takes_its_file_away_when_it_stops(state: Path) -> None:
    with serving(HTTP, state) as server:
        server.until("serving")
        assert handshake_of(state)["pid"] == server.process.pid
        assert server.tell(signal.SIGTERM).status == 0
    assert not (state / "bridge" / "handshake.json").exists()


def test_a_second_server_leaves_the_file_of_the_first(state: Path) -> None:
    with serving(HTTP, state) as first, serving(HTTP, state) as second:
        first.until("serving")
        second.until("serving")
        pid = handshake_of(state)["pid"]
        other = second if pid == first.process.pid else first
        assert other.tell(signal.SIGTERM).status == 0
        assert handshake_of(state)["pid"] == pid


def test_a_server_that_is_started_takes_its_addresses_from_that_of_a_bridge(
    towns: Path, state: Path, tmp_path: Path
) -> None:
    """As a gate that was restarted while a desktop client went on to call."""
    settings = tmp_path / "gate.toml"
    settings.write_text(f'[pg]\nlisten = "127.0.0.1:{claim_port()}"\n')
    settings.chmod(0o600)
    given = ("--config", str(settings))
    with bridged(state, *CORE, *given) as host:
        host.open()
        assert "Köln" in read(host, 1)
        with serving([*HTTP, *given], state) as server:
            server.until("serving core")
            wait_until(lambda: handshake_of(state)["pid"] == server.process.pid, "it is found")
            assert "Köln" in read(host, 2)


def test_it_may_only_read(towns: Path, state: Path, run: Run, contents: Contents) -> None:
    run("source", "remove", "towns")
    run("source", "add", "towns", f"sqlite:///{towns}", "--allow-writes")
    before = contents()
    with bridged(state, *CORE) as host:
        host.open()
        for at, sql in enumerate(("DELETE FROM towns", "UPDATE towns SET people = 1 WHERE id = 1")):
            reply = host.call(at, "query", sql=sql)
            assert reply["result"]["isError"]
    assert contents() == before


def test_it_may_write_if_the_operator_says_so(
    towns: Path, state: Path, run: Run, contents: Contents, tmp_path: Path
) -> None:
    run("source", "remove", "towns")
    run("source", "add", "towns", f"sqlite:///{towns}", "--allow-writes")
    settings = tmp_path / "tidegate.toml"
    settings.write_text('[bridge]\nscope = "readWrite"\n')
    settings.chmod(0o600)
    with bridged(state, *CORE, "--config", str(settings)) as host:
        host.open()
        host.call(1, "query", sql="UPDATE towns SET people = 7 WHERE id = 2")
    assert (2, "京都", 7) in contents()


def test_it_sees_the_sources_that_the_operator_names(
    towns: Path, state: Path, tmp_path: Path
) -> None:
    settings = tmp_path / "tidegate.toml"
    settings.write_text('[bridge]\nsources = ["elsewhere"]\n')
    settings.chmod(0o600)
    with bridged(state, *CORE, "--config", str(settings)) as host:
        host.open()
        assert "towns" not in json.dumps(host.call(1, "sources"))
        assert host.call(2, "query", sql="SELECT name FROM towns")["result"]["isError"]


def test_it_takes_no_server_with_other_settings_than_it_names(
    towns: Path, state: Path, run: Run, tmp_path: Path
) -> None:
    """Its masks are those that were asked for, or nothing is shown."""
    lax, strict = tmp_path / "lax.toml", tmp_path / "strict.toml"
    for settings in (lax, strict):
        settings.write_text("[bridge]\nidle_s = 60\n")
        settings.chmod(0o600)
    with bridged(state, *CORE, "--config", str(lax)) as host:
        host.open()
        read(host, 1)
        for named in (str(strict), '{"bridge": {"idle_s": 60}}'):
            ended = run("bridge", *CORE, "--config", named)
            assert ended.status == 69
            reply = json.loads(ended.out)
            assert reply["error"]["data"]["code"] == "bridge.no_server"
            assert "other settings" in ended.err
        with bridged(state, *CORE) as second:
            second.open()
            read(second, 1)
        link = tmp_path / "link.toml"
        link.symlink_to(lax)
        with bridged(state, *CORE, "--config", str(link)) as third:
            third.open()
            read(third, 1)


def test_the_record_shows_it_as_the_bridge(towns: Path, state: Path, run: Run) -> None:
    with bridged(state, *CORE) as host:
        host.open()
        read(host, 1)
    lines = [json.loads(line) for line in run("audit", "tail", "--json").out.splitlines()]
    calls = [line for line in lines if line.get("tool") == "query"]
    assert [call["actor"] for call in calls] == ["bridge"]
    assert "tg_bridge_" not in run("audit", "tail", "--all", "--json").out
    assert run("token", "list", "--json").json == {"tokens": []}


def test_no_token_can_have_its_name(run: Run) -> None:
    ended = run("token", "create", "bridge", "--scope", "readOnly")
    assert (ended.status, ended.out) == (2, "")
    assert run("token", "list", "--json").json == {"tokens": []}


def test_where_bridges_are_not_wanted_there_is_no_file(state: Path) -> None:
    words = ("serve", "--config", '{"http": "127.0.0.1:0", "bridge": {"enabled": false}}')
    with serving(words, state) as server:
        server.until("serving")
        assert not (state / "bridge" / "handshake.json").exists()


def test_a_server_that_it_started_ends_when_it_is_idle(
    towns: Path, state: Path, tmp_path: Path
) -> None:
    settings = tmp_path / "tidegate.toml"
    settings.write_text("[bridge]\nidle_s = 0.5\n")
    settings.chmod(0o600)
    with bridged(state, *CORE, "--config", str(settings)) as host:
        # Without a session nothing keeps the server.
        assert "tools" in host.process.ask("tools/list", {})["result"]
        try:
            watched = os.pidfd_open(handshake_of(state)["pid"])
        except (FileNotFoundError, ProcessLookupError):
            pass  # it has ended already
        else:
            wait_for_end(watched)
            os.close(watched)
        assert "tools" in host.process.ask("tools/list", {}, 2)["result"]
        assert host.process.ended().status == 0


def test_a_server_that_cannot_start_is_said_to_host_and_person(run: Run) -> None:
    ended = run("bridge", "--config", '{"surfaces": ["wrokbench"]}')
    assert ended.status == 69
    reply = json.loads(ended.out)
    assert (reply["id"], reply["error"]["data"]["code"]) == (None, "bridge.no_server")
    assert "wrokbench" in reply["error"]["message"]
    assert "wrokbench" in ended.err and ended.err.count("\n") == 1


def test_a_surface_that_the_server_does_not_serve_is_said(state: Path, run: Run) -> None:
    with serving(HTTP, state) as server:
        server.until("serving")
        ended = run("bridge", "--surface", "workbench")
    assert ended.status == 78
    assert "/mcp/core" in json.loads(ended.out)["error"]["message"]


def test_a_misspelt_surface_is_named_to_host_and_person(run: Run) -> None:
    ended = run("bridge", "--surface", "wrokbench")
    assert ended.status == 78
    message = json.loads(ended.out)["error"]["message"]
    assert "/mcp/wrokbench" in message and "/mcp/workbench" in message
    assert "wrokbench" in ended.err and ended.err.count("\n") == 1


def test_lines_are_read_however_they_are_cut(state: Path) -> None:
    with bridged(state, *CORE) as host:
        host.open()
        assert host.process.process.stdin is not None
        pipe = host.process.process.stdin.buffer  # type: ignore[attr-defined]
        pings = [{"jsonrpc": "2.0", "id": n, "method": "ping"} for n in range(4)]
        whole = b"".join(json.dumps(ping).encode() + b"\r\n" for ping in pings)
        for cut in (whole[:10], whole[10:60], b"", whole[60:]):
            pipe.write(cut)
            pipe.flush()
        received = [json.loads(host.process.line())["id"] for _ in pings]
    assert sorted(received) == [0, 1, 2, 3]


@pytest.mark.parametrize(
    ("line", "code"),
    [("{", -32700), ("\x00", -32700), ('{"id": 1', -32700), ('{"not": "it"}', -32600)],
)
def test_a_line_that_is_no_message_is_answered_and_forgotten(
    state: Path, line: str, code: int
) -> None:
    with bridged(state, *CORE) as host:
        host.open("2025-06-18")
        assert host.process.process.stdin is not None
        host.process.process.stdin.write(line + "\n")
        host.process.process.stdin.flush()
        reply = json.loads(host.process.line())
        assert (reply["id"], reply["error"]["code"]) == (None, code)
        host.process.send({"jsonrpc": "2.0", "id": 9, "method": "ping"})
        assert host.receive(9)["result"] == {}


def test_a_batch_of_the_revision_that_has_them_is_answered_as_one(towns: Path, state: Path) -> None:
    with bridged(state, *CORE) as host:
        host.open("2025-03-26")
        batch = [{"jsonrpc": "2.0", "id": n, "method": "ping"} for n in (1, 2)]
        host.process.send([*batch, {"jsonrpc": "2.0", "method": "notifications/x"}])  # type: ignore[arg-type]
        replies = json.loads(host.process.line())
    assert sorted(reply["id"] for reply in replies) == [1, 2]


def test_a_withdrawn_call_ends_in_the_database_and_is_not_answered(
    towns: Path, state: Path
) -> None:
    with bridged(state, *CORE) as host:
        host.open()
        host.ask(1, "query", sql=ENDLESS)
        assert "Köln" in read(host, 2)
        params = {"requestId": 1}
        host.process.send({"jsonrpc": "2.0", "method": "notifications/cancelled", "params": params})
        assert "Köln" in read(host, 3)
        ended = host.process.ended()
    assert (ended.status, ended.out) == (0, "")


def test_what_was_asked_before_the_end_of_the_input_is_answered(
    towns: Path, run: Run, state: Path
) -> None:
    ping = json.dumps({"jsonrpc": "2.0", "id": 5, "method": "tools/list", "params": {"_meta": {
        "io.modelcontextprotocol/protocolVersion": "2026-07-28",
        "io.modelcontextprotocol/clientCapabilities": {},
    }}})  # fmt: skip
    ended = run("bridge", *CORE, stdin=ping)
    assert (ended.status, ended.err) == (0, "")
    assert json.loads(ended.out)["id"] == 5


@pytest.mark.parametrize("words", [("bridge", *CORE), ("serve", *CORE)])
def test_an_input_that_is_nothing_is_at_its_end(state: Path, words: tuple[str, ...]) -> None:
    ended = subprocess.run(
        [sys.executable, "-m", "tidegate", *words],
        stdin=subprocess.DEVNULL, capture_output=True, env=environment(state), timeout=HANG_S,
        check=False,
    )  # fmt: skip
    assert (ended.returncode, ended.stdout) == (0, b"")


def refused(host: Host, id: int, sql: str) -> str:
    """The code of a refusal."""
    result = host.call(id, "query", sql=sql, source="towns")["result"]
    assert result["isError"], result
    return result["content"][0]["text"].partition(":")[0]


@pytest.mark.parametrize("auth", [True, False])
def test_a_bridge_that_asks_for_less_gets_no_more(
    towns: Path, state: Path, run: Run, tmp_path: Path, auth: bool
) -> None:
    run("source", "add", "other", f"sqlite:///{towns}")
    words = HTTP if auth else (*HTTP, "--no-auth")
    with serving(words, state) as server:
        server.until("serving")
        with (
            bridged(state, *CORE, "--source", "towns", "--table", "visits") as less,
            bridged(state, *CORE) as all_of_it,
        ):
            less.open()
            all_of_it.open()
            listed = less.call(1, "sources")["result"]["content"][0]["text"]
            assert listed.split(":")[0] == "towns" and "other" not in listed
            assert not less.call(2, "query", sql="SELECT id FROM visits")["result"].get("isError")
            assert refused(less, 3, "SELECT name FROM towns") == "policy.table"
            assert refused(less, 4, "SELECT name FROM visited") == "policy.table"
            assert "other" in json.dumps(all_of_it.call(5, "sources"))
            words = {"sql": "SELECT name FROM towns", "source": "other"}
            assert not all_of_it.call(6, "query", **words)["result"].get("isError")


def test_a_bridge_cannot_ask_for_more(
    towns: Path, state: Path, run: Run, contents: Contents, tmp_path: Path
) -> None:
    run("source", "update", "towns", "--access", "write")
    settings = tmp_path / "tidegate.toml"
    settings.write_text('[bridge]\nsources = ["towns"]\ntables = ["visits"]\n')
    settings.chmod(0o600)
    words = (*CORE, "--config", str(settings), "--scope", "fullAccess", "--table", "towns")
    before = contents()
    with bridged(state, *words, "--table", "visits") as host:
        host.open()
        assert refused(host, 1, "UPDATE towns SET people = 1 WHERE id = 1") == "policy.scope"
        assert refused(host, 2, "SELECT name FROM towns") == "policy.table"
        assert not host.call(3, "query", sql="SELECT id FROM visits")["result"].get("isError")
    assert contents() == before


def test_the_scope_of_a_bridge_can_be_less(
    towns: Path, state: Path, run: Run, contents: Contents, tmp_path: Path
) -> None:
    run("source", "update", "towns", "--access", "write")
    settings = tmp_path / "tidegate.toml"
    settings.write_text('[bridge]\nscope = "readWrite"\n')
    settings.chmod(0o600)
    before = contents()
    with bridged(state, *CORE, "--config", str(settings), "--scope", "readOnly") as host:
        host.open()
        assert refused(host, 1, "UPDATE towns SET people = 1 WHERE id = 1") == "policy.scope"
    assert contents() == before


def test_a_table_that_cannot_be_one_starts_no_bridge(run: Run) -> None:
    ended = run("bridge", "--table", "a.b.c.d")
    assert (ended.status, ended.err.count("\n")) == (2, 1)
