"""A real `sshd` on loopback for the tests: started when asked for, gone with who asked.

Debian's `sshd` (package `openssh-server`), on a free port, with a host key, a configuration and
authorized keys of its own in a folder that is removed. It is kept by a small keeper process, which
ends it when its standard input closes. As root it runs as `nobody`, and lets nobody else in.

Three keys are made: `welcome` may forward ports, `barred` may not, `stranger` is not known.
"""

from __future__ import annotations

import contextlib
import json
import os
import pwd
import shutil
import signal
import socket
import subprocess
import sys
import tempfile
from pathlib import Path

NOBODY = 65534
START_S = 60
KEYS = ("welcome", "barred", "stranger")
_PATH = f"{os.environ.get('PATH', '')}:/usr/sbin:/usr/local/sbin"


class Server:
    """A running server. `known_hosts` holds its host key, `strange_hosts` another one."""

    def __init__(self) -> None:
        self._keeper = subprocess.Popen(
            [sys.executable, __file__], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
        )
        assert self._keeper.stdout is not None
        ready = json.loads(self._keeper.stdout.readline())
        self.directory = Path(ready["directory"])
        self.port: int = ready["port"]
        self.user: str = ready["user"]

    def options(self, key: str = "welcome", hosts: str = "known_hosts", port: int = 0) -> str:
        """The part of a source's URL that leads through this server, and reads no settings of
        whoever runs the tests."""
        files = self.directory
        return (
            f"ssh={self.user}@127.0.0.1:{port or self.port}&ssh_key={files}/{key}"
            f"&ssh_known_hosts={files}/{hosts}&ssh_config={files}/ssh_config"
        )

    def cut(self) -> None:
        """End the connections that are there, and go on listening."""
        self._command("cut")

    def freeze(self) -> None:
        """Let nothing through the connections that are there, and tell nobody."""
        self._command("freeze")

    def thaw(self) -> None:
        """Let everything through again."""
        self._command("thaw")

    def stop(self) -> None:
        """End the connections, and listen no more."""
        self._command("stop")

    def start(self) -> None:
        self._command("start")

    def close(self) -> None:
        """End it and remove its files."""
        assert self._keeper.stdin is not None and self._keeper.stdout is not None
        self._keeper.stdin.close()
        self._keeper.wait(START_S)
        self._keeper.stdout.close()

    def _command(self, word: str) -> None:
        assert self._keeper.stdin is not None and self._keeper.stdout is not None
        self._keeper.stdin.write(word + "\n")
        self._keeper.stdin.flush()
        assert self._keeper.stdout.readline().strip() == word


def available() -> bool:
    """Whether a server can be started here."""
    return all(shutil.which(name, path=_PATH) for name in ("sshd", "ssh", "ssh-keygen"))


# What the keeper does.


def _drop_rights() -> dict[str, object]:
    return {"user": NOBODY, "group": NOBODY, "extra_groups": ()} if os.getuid() == 0 else {}


def _free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return probe.getsockname()[1]


def _descendants(number: int) -> list[int]:
    """A connection has two processes, and either would hold the line."""
    children = Path(f"/proc/{number}/task/{number}/children").read_text().split()
    return [each for child in children for each in (int(child), *_descendants(int(child)))]


class _Keeper:
    def __init__(self) -> None:
        self.directory = Path(tempfile.mkdtemp(prefix="tidegate-sshd-"))
        self.directory.chmod(0o755)
        self.port = _free_port()
        owner = NOBODY if os.getuid() == 0 else os.getuid()
        self.user = pwd.getpwuid(owner).pw_name
        self.process: subprocess.Popen[str] | None = None

    def prepare(self) -> None:
        """Make the keys and write the configuration."""
        public: dict[str, str] = {}
        for name in (*KEYS, "host", "other_host"):
            path = self.directory / name
            subprocess.run(
                ["ssh-keygen", "-q", "-t", "ed25519", "-N", "", "-C", name, "-f", str(path)],
                check=True,
            )
            public[name] = path.with_suffix(".pub").read_text()
        files = {
            "authorized_keys": f"restrict,port-forwarding {public['welcome']}"
            f"restrict {public['barred']}",
            "known_hosts": f"[127.0.0.1]:{self.port} {public['host']}",
            "strange_hosts": f"[127.0.0.1]:{self.port} {public['other_host']}",
            "ssh_config": "",
            "sshd_config": f"Port {self.port}\nListenAddress 127.0.0.1\nPidFile none\nUsePAM yes\n"
            f"HostKey {self.directory}/host\nAuthorizedKeysFile {self.directory}/authorized_keys\n"
            "StrictModes no\nPasswordAuthentication no\nKbdInteractiveAuthentication no\n"
            "PrintMotd no\nMaxStartups 100\n",
        }
        for name, text in files.items():
            (self.directory / name).write_text(text)
        if os.getuid() == 0:
            os.chown(self.directory / "host", NOBODY, NOBODY)

    def start(self) -> None:
        self.process = subprocess.Popen(
            [str(shutil.which("sshd", path=_PATH)), "-D", "-e", "-f", "sshd_config"],
            cwd=self.directory,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.DEVNULL,
            stderr=(self.directory / "log").open("ab"),
            text=True,
            **_drop_rights(),
        )
        while self.process.poll() is None:
            where = ("127.0.0.1", self.port)
            with contextlib.suppress(OSError), socket.create_connection(where, 1) as probe:
                if probe.recv(1):
                    return
            with contextlib.suppress(subprocess.TimeoutExpired):
                self.process.wait(0.02)
        raise SystemExit((self.directory / "log").read_text())

    def cut(self) -> None:
        self._tell(signal.SIGKILL)

    def freeze(self) -> None:
        self._tell(signal.SIGSTOP)

    def thaw(self) -> None:
        self._tell(signal.SIGCONT)

    def _tell(self, number: signal.Signals) -> None:
        assert self.process is not None
        for child in _descendants(self.process.pid):
            with contextlib.suppress(ProcessLookupError):
                os.kill(child, number)

    def stop(self) -> None:
        if self.process is not None:
            self.cut()
            self.process.terminate()
            self.process.wait(START_S)
            self.process = None

    def serve(self) -> None:
        try:
            self.prepare()
            self.start()
            ready = {"directory": str(self.directory), "port": self.port, "user": self.user}
            print(json.dumps(ready), flush=True)
            for line in sys.stdin:
                getattr(self, line.strip())()
                print(line.strip(), flush=True)
        finally:
            self.stop()
            shutil.rmtree(self.directory, ignore_errors=True)


if __name__ == "__main__":
    for number in (signal.SIGINT, signal.SIGTERM):  # we end when our input does, and tidy up
        signal.signal(number, lambda *_: None)
    _Keeper().serve()
