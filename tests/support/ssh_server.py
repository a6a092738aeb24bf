"""A real `sshd` on loopback for the tests: started when asked for, gone with who asked.

Debian's `sshd` (package `openssh-server`), on a free port, with a host key, a configuration and
authorized keys of its own. It has a keeper (`server_keeper.py`), and lets no one in but its user.

Three keys are made: `welcome` may forward ports, `barred` may not, `stranger` is not known.
"""

from __future__ import annotations

import contextlib
import os
import pwd
import shutil
import signal
import socket
import subprocess
from pathlib import Path

from support.server_keeper import NOBODY, SEARCHED, Keeper, KeptServer, keep

__all__ = ["NOBODY", "Server", "available"]

KEYS = ("welcome", "barred", "stranger")


class Server(KeptServer):
    """A running server. `known_hosts` holds its host key, `strange_hosts` another one."""

    def __init__(self) -> None:
        super().__init__(__file__)
        self.user = _user()

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
        """Let nothing through the connections that are there, and tell no one."""
        self._command("freeze")

    def thaw(self) -> None:
        """Let everything through again."""
        self._command("thaw")


def available() -> bool:
    """Whether a server can be started here."""
    return all(shutil.which(name, path=SEARCHED) for name in ("sshd", "ssh", "ssh-keygen"))


def _user() -> str:
    return pwd.getpwuid(NOBODY if os.getuid() == 0 else os.getuid()).pw_name


def _descendants(number: int) -> list[int]:
    """A connection has two processes, and either would hold the line."""
    children = Path(f"/proc/{number}/task/{number}/children").read_text().split()
    return [each for child in children for each in (int(child), *_descendants(int(child)))]


class _Keeper(Keeper):
    def __init__(self) -> None:
        super().__init__("sshd")
        self.directory.chmod(0o755)

    def prepare(self) -> None:
        """Make the keys and write the configuration."""
        public: dict[str, str] = {}
        for name in (*KEYS, "host", "other_host"):
            path = self.directory / name
            subprocess.run(  # as ourselves: the client's keys are ours
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
        self.give(self.directory / "host")

    def command(self) -> list[str]:
        return [str(shutil.which("sshd", path=SEARCHED)), "-D", "-e", "-f", "sshd_config"]

    def is_ready(self) -> bool:
        with socket.create_connection(("127.0.0.1", self.port), 10) as probe:
            return bool(probe.recv(1))

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

    def stop(self, how: int | None = None) -> None:
        if self.process is not None:
            self.cut()
        super().stop(how)


if __name__ == "__main__":
    keep(_Keeper)
