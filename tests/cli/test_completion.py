"""`tidegate completion`: a real shell, in which a person types the beginning of a word and TAB."""

from __future__ import annotations

import os
import pty
import select
import shutil
import subprocess
import sys
import time
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path

import pytest

from support.command_line import Ended, environment, tidegate
from support.eventually import PATIENCE_S
from tidegate.cli.supported_clients import CLIENTS

Run = Callable[..., Ended]
SHELLS = {
    "bash": ("bash", "--norc", "--noprofile", "-i"),
    "zsh": ("zsh", "-f", "-i"),
    "fish": ("fish", "--no-config", "-i"),
}


@pytest.fixture(params=sorted(SHELLS))
def shell(request: pytest.FixtureRequest) -> str:
    if shutil.which(request.param) is None:
        pytest.skip(f"{request.param} is not installed")
    return request.param


class Typist:
    """A person at a shell on a terminal."""

    def __init__(self, shell: str, state: Path, home: Path) -> None:
        self._master, slave = pty.openpty()
        program = Path(sys.executable).parent
        variables = environment(state) | {
            "PATH": f"{program}:/usr/bin:/bin", "TERM": "dumb", "HOME": str(home), "PS1": "> ",
        }  # fmt: skip
        self._process = subprocess.Popen(
            SHELLS[shell], preexec_fn=lambda: os.login_tty(slave), pass_fds=[slave], env=variables
        )
        os.close(slave)
        self.said = ""

    def type(self, text: str) -> None:
        os.write(self._master, text.encode())

    def until(self, text: str) -> None:
        deadline = time.monotonic() + PATIENCE_S
        while text not in self.said:
            left = deadline - time.monotonic()
            assert left > 0, f"it never said {text!r}, but {self.said}"
            if select.select([self._master], [], [], left)[0]:
                self.said += os.read(self._master, 65_536).decode(errors="replace")

    def close(self) -> None:
        self._process.kill()
        self._process.wait(PATIENCE_S)
        with suppress(OSError):
            os.close(self._master)


def completed(shell: str, state: Path, tmp_path: Path, typed: str, wanted: str) -> None:
    """Typing that and TAB leaves a line which prints `wanted` when it is entered."""
    script = tmp_path / f"completion.{shell}"
    script.write_text(tidegate("completion", shell).out)
    typist = Typist(shell, state, tmp_path)
    try:
        typist.type(f"source {script}; echo rea''dy\n")
        typist.until("ready")
        # The script must have been read before the TAB, or the shell completes files.
        typist.type(f"{typed}\t")
        typist.type("\n")
        typist.until(wanted)
    finally:
        typist.close()


@pytest.mark.parametrize(
    ("typed", "wanted"),
    [
        ("tidegate vers", "tidegate 0."),
        ("tidegate source show tow", "sqlite:///"),
        ("tidegate token show lapt", "readOnly"),
        ("tidegate token list --js", '"tokens"'),
    ],
)
def test_a_tab_completes(
    run: Run, towns: Path, state: Path, tmp_path: Path, shell: str, typed: str, wanted: str
) -> None:
    run("token", "create", "laptop", "--scope", "readOnly")
    completed(shell, state, tmp_path, typed, wanted)


def asked(line: str, state: Path) -> list[str]:
    """What a shell gets for a line, by the protocol of argcomplete."""
    read, write = os.pipe()
    variables = environment(state) | {
        "_ARGCOMPLETE": "1", "_ARGCOMPLETE_IFS": "\n", "COMP_LINE": line,
        "COMP_POINT": str(len(line)), "_ARGCOMPLETE_STDOUT_FILENAME": f"/dev/fd/{write}",
    }  # fmt: skip
    done = subprocess.run(
        [Path(sys.executable).with_name("tidegate")], env=variables, pass_fds=[write], check=False,
        capture_output=True, text=True, timeout=PATIENCE_S,
    )  # fmt: skip
    os.close(write)
    with os.fdopen(read) as pipe:
        answer = pipe.read()
    assert (done.stdout, done.stderr) == ("", "")
    return [word.strip() for word in answer.split("\n") if word.strip()]


def test_commands_options_choices_and_names_are_completed(run: Run, towns: Path, state: Path):
    run("token", "create", "laptop", "--scope", "readOnly")
    run("token", "create", "gone", "--scope", "readOnly")
    run("token", "revoke", "gone")
    assert {"doctor", "source", "token"} <= {*asked("tidegate ", state)}
    assert {*asked("tidegate source re", state)} == {"remove", "rename"}
    approvals = asked("tidegate source update towns --appr", state)
    assert {*approvals} == {"--approval-for", "--approval"}
    scopes = asked("tidegate token create x --scope read", state)
    assert {*scopes} == {"readOnly", "readWrite"}
    assert asked("tidegate query t", state) == ["towns"]
    assert {*asked("tidegate install c", state)} == {name for name in CLIENTS if name[0] == "c"}
    assert {*asked("tidegate setup --client w", state)} == {"windsurf"}
    assert "laptop" in asked("tidegate token edit ", state)
    assert "gone" not in asked("tidegate token revoke ", state)


@pytest.mark.parametrize("spoil", ["none", "damaged"])
def test_a_state_that_cannot_be_read_completes_nothing_and_is_not_made(
    tmp_path: Path, spoil: str
) -> None:
    state = tmp_path / "state"
    if spoil == "damaged":
        state.mkdir(mode=0o700)
        (state / "state.db").write_text("not a database")
    assert [word for word in asked("tidegate query t", state) if not word.startswith("-")] == []
    assert state.exists() == (spoil == "damaged")


def test_argcomplete_costs_a_command_nothing(tmp_path: Path) -> None:
    code = (
        "import sys; from tidegate.cli.main import main; main(['token', 'list']);"
        "print([name for name in sys.modules if name.startswith('argcomplete')])"
    )
    done = subprocess.run(
        [sys.executable, "-c", code], env=environment(tmp_path / "state"), text=True, check=False,
        capture_output=True, timeout=PATIENCE_S,
    )  # fmt: skip
    assert done.stdout == "[]\n", done
