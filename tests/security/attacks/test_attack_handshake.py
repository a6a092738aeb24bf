"""A handshake file that someone has tampered with is not believed, and no token leaves for it."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from support.bridge_host import Scripted, bridged, handshake_of, replied, write
from support.command_line import Ended, Serving, serving, tidegate
from support.eventually import HANG_S
from support.free_ports import claim_port

pytestmark = pytest.mark.skipif(os.name != "posix", reason="needs file owners and modes")

UNTRUSTED = 77


@pytest.fixture
def state(tmp_path: Path) -> Path:
    path = tmp_path / "state"
    path.mkdir(mode=0o700)
    return path


@pytest.fixture
def server(state: Path) -> Iterator[Serving]:
    with serving(("serve", "--surface", "core", "--http", "127.0.0.1:0"), state) as process:
        process.until("serving")
        yield process


def check_refused(ended: Ended, said: str) -> None:
    """Assert that host and person were handshake_of, once each, and nothing else was done."""
    assert ended.status == UNTRUSTED
    (line,) = ended.out.splitlines()
    reply = json.loads(line)
    assert reply["id"] is None
    assert reply["error"]["data"]["code"] == "bridge.untrusted"
    assert said in reply["error"]["message"]
    assert said in ended.err and ended.err.count("\n") == 1


def link(file: Path) -> None:
    file.rename(file.with_name("elsewhere.json"))
    file.symlink_to(file.with_name("elsewhere.json"))


def replace_with_pipe(file: Path) -> None:
    file.unlink()
    os.mkfifo(file, 0o600)


@pytest.mark.parametrize(
    ("tamper", "said"),
    [
        (lambda file: file.chmod(0o640), "open to other users"),
        (lambda file: file.chmod(0o604), "open to other users"),
        (lambda file: file.parent.chmod(0o710), "open to other users"),
        (lambda file: file.parent.chmod(0o701), "open to other users"),
        (link, "symbolic link"),
        (replace_with_pipe, "not a regular file"),
        (lambda file: file.write_text("{"), "does not hold a handshake"),
        (lambda file: file.write_text("[]"), "does not hold a handshake"),
        (lambda file: file.write_text('{"version": 1}'), "does not hold a handshake"),
        (lambda file: file.write_text("\ud800".encode("utf-16", "surrogatepass").decode("latin-1"))
         , "does not hold a handshake"),
    ],
)  # fmt: skip
def test_a_file_that_others_could_have_made_is_refused(
    state: Path, server: Serving, tamper: Callable[[Path], Any], said: str
) -> None:
    tamper(state / "bridge" / "handshake.json")
    check_refused(tidegate("bridge", state=state), said)


@pytest.mark.skipif(os.name != "posix" or os.geteuid() != 0, reason="only root gives files away")
@pytest.mark.parametrize("which", ["bridge", "bridge/handshake.json"])
def test_a_file_of_another_user_is_refused(state: Path, server: Serving, which: str) -> None:
    os.chown(state / which, 65_534, 65_534)
    check_refused(tidegate("bridge", state=state), "belongs to another user")


@pytest.mark.parametrize(
    ("changes", "said"),
    [
        ({"version": 2}, "another version"),
        ({"host": "198.51.100.1"}, "no address of this machine"),
        ({"host": "0.0.0.0"}, "no address of this machine"),  # noqa: S104
        ({"host": "fe80::1%lo"}, "no address of this machine"),
        ({"host": "localhost"}, "no address of this machine"),
        ({"host": "127.0.0.1\r\nX: y"}, "no address of this machine"),
        ({"port": 0}, "port"),
        ({"port": 65_536}, "port"),
        ({"port": True}, "does not hold"),
        ({"port": "80"}, "does not hold"),
        ({"token": ""}, "no token"),
        ({"token": None}, "does not hold"),
        ({"token": "a\r\nb"}, "does not hold"),
        ({"key": ""}, "no token"),
        ({"pid": 1}, "cannot be a server"),
        ({"pid": -1}, "cannot be a server"),
        ({"pid": 2**40}, "has ended"),
        ({"expires_at": 1.0}, "expired"),
        ({"expires_at": float("nan")}, "expired"),
        ({"instance": "another"}, "did not write it"),
        ({"key": "another"}, "did not write it"),
        ({"paths": "/mcp"}, "does not hold"),
    ],
    ids=str,
)
def test_a_file_that_says_what_cannot_be_is_refused(
    state: Path, server: Serving, changes: dict[str, Any], said: str
) -> None:
    write(state, **changes)
    check_refused(tidegate("bridge", state=state), said)


def test_a_field_of_a_later_version_is_left_alone(state: Path, server: Serving) -> None:
    """Only the owner of the state can write the file, and a bridge that runs while Tidegate is
    upgraded reads what the next version writes."""
    write(state, more=1)
    ended = tidegate("bridge", state=state)
    assert (ended.status, ended.err) == (0, "")


def test_the_pid_of_another_process_is_refused(state: Path, server: Serving) -> None:
    write(state, pid=os.getpid())
    check_refused(tidegate("bridge", state=state), "did not write it")


def test_the_pid_of_a_process_that_has_ended_is_refused(state: Path, server: Serving) -> None:
    ended = subprocess.Popen([sys.executable, "-c", ""])
    ended.wait()
    write(state, pid=ended.pid)
    check_refused(tidegate("bridge", state=state), "has ended")


def test_who_listens_on_the_port_gets_no_token_without_the_proof(
    state: Path, tmp_path: Path
) -> None:
    """A program that has taken the port over must not learn the token."""
    other = tmp_path / "other"
    other.mkdir(mode=0o700)
    thief = Scripted(other, lambda asked: replied({}))
    with serving(("serve", "--surface", "core", "--http", "127.0.0.1:0"), state) as server:
        server.until("serving")
        write(state, port=thief.handshake.port)
        check_refused(tidegate("bridge", state=state), "did not write it")
        token = handshake_of(state)["token"]
    thief.close()
    assert not any(token in str(asked) for asked in thief.asked)


def test_a_port_where_no_one_listens_is_refused(state: Path) -> None:
    with serving(("serve", "--surface", "core", "--http", "127.0.0.1:0"), state) as server:
        server.until("serving")
        write(state, port=claim_port())
        check_refused(tidegate("bridge", state=state), "a port with no server")


def test_the_token_is_worth_nothing_from_another_address(state: Path, server: Serving) -> None:
    from tidegate.config.model import BridgeSettings
    from tidegate.errors import Code, TidegateError
    from tidegate.identity.bridge_tokens import BridgeTokens

    admission = BridgeTokens(BridgeSettings(), lambda name, details: None)
    token, _ = admission.renew()
    for address in ("127.0.0.1", "::ffff:127.0.0.1"):  # the same, as a listener at `::` has it
        assert admission.verify(token, address).id == "bridge"
    for address in ("192.0.2.7", "", "::ffff:192.0.2.7"):
        with pytest.raises(TidegateError) as refused:
            admission.verify(token, address)
        assert refused.value.code is Code.AUTH_INVALID


def test_the_directory_where_a_host_runs_is_not_imported_from(state: Path, tmp_path: Path) -> None:
    project = tmp_path / "project"
    (project / "tidegate").mkdir(parents=True)
    for trap in (project / "tidegate" / "__init__.py", project / "uvicorn.py"):
        trap.write_text(f"open({str(project / 'sprung')!r}, 'w')\n")
    program = str(Path(sys.executable).with_name("tidegate"))
    ping = '{"jsonrpc":"2.0","id":1,"method":"ping"}\n'
    ended = subprocess.run(
        [program, "bridge", "--state", str(state)],
        input=ping, capture_output=True, text=True, cwd=project, timeout=HANG_S, check=False,
    )  # fmt: skip
    os.kill(handshake_of(state)["pid"], 15)
    assert ended.returncode == 0
    assert json.loads(ended.stdout)["id"] == 1
    assert not (project / "sprung").exists()


def test_no_secret_is_in_the_list_of_processes(state: Path) -> None:
    with bridged(state, "--surface", "core") as host:
        host.open()
        pid = handshake_of(state)["pid"]
        words = Path(f"/proc/{pid}/cmdline").read_bytes()
        variables = Path(f"/proc/{pid}/environ").read_bytes()
        os.kill(pid, 15)
    assert b"tg_bridge_" not in words + variables


def test_an_older_token_ends_at_its_own_time() -> None:
    from tidegate.config.model import BridgeSettings
    from tidegate.errors import Code, TidegateError
    from tidegate.identity.bridge_tokens import LIFE_S, BridgeTokens

    now = [time.time()]
    admission = BridgeTokens(BridgeSettings(), lambda name, details: None, clock=lambda: now[0])
    first, ends = admission.renew()
    now[0] = ends - 1
    second, _ = admission.renew()
    assert admission.verify(first, "127.0.0.1").id == admission.verify(second, "127.0.0.1").id
    now[0] = ends
    with pytest.raises(TidegateError) as refused:
        admission.verify(first, "127.0.0.1")
    assert refused.value.code is Code.AUTH_EXPIRED
    assert admission.verify(second, "127.0.0.1").expires_at == ends - 1 + LIFE_S
