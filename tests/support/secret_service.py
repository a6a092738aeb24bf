"""The keyring of a Linux desktop: GNOME's, on a D-Bus session of its own."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
from collections.abc import Generator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from support.eventually import HANG_S, wait_until

PROGRAMS = ("dbus-daemon", "gnome-keyring-daemon")


def missing() -> list[str]:
    """The programs that are not installed here."""
    return [program for program in PROGRAMS if shutil.which(program) is None]


class SecretService:
    """`address` is that of the session's bus."""

    def __init__(self, address: str, environment: dict[str, str]) -> None:
        self.address = address
        self._environment = environment

    def entries(self) -> dict[str, str]:
        """What the keyring holds of Tidegate, read without Tidegate: secrets by name."""
        found = self._ask(
            "items = default(bus).search_items({'service': 'tidegate'});"
            "print(json.dumps({i.get_attributes()['username']: i.get_secret().decode()"
            " for i in items}))"
        )
        entries: dict[str, str] = json.loads(found)
        return entries

    def lock(self) -> None:
        """Lock it. Nothing is there by which a person could unlock it again."""
        self._ask("default(bus).lock()")

    def answers(self) -> bool:
        """Whether it is up and unlocked."""
        try:
            return self._ask("print(default(bus).is_locked())") == "False\n"
        except subprocess.CalledProcessError:
            return False

    def _ask(self, code: str) -> str:
        begin = (
            "import json, secretstorage; default = secretstorage.get_default_collection;"
            "bus = secretstorage.dbus_init();"
        )
        done = subprocess.run(
            [sys.executable, "-c", begin + code],
            env=self._environment, capture_output=True, text=True, timeout=HANG_S, check=True,
        )  # fmt: skip
        return done.stdout


@contextmanager
def secret_service(directory: Path) -> Generator[SecretService]:
    """A keyring that is unlocked, with its files in `directory`."""
    bus = directory / "bus"
    kept = {"PATH": os.environ["PATH"], "HOME": str(directory), "XDG_RUNTIME_DIR": str(directory)}
    kept["DBUS_SESSION_BUS_ADDRESS"] = f"unix:path={bus}"
    quiet: dict[str, Any] = {
        "stdout": subprocess.DEVNULL,
        "stderr": subprocess.DEVNULL,
        "env": kept,
    }
    address = f"--address=unix:path={bus}"
    daemons = [subprocess.Popen(["dbus-daemon", "--session", "--nofork", address], **quiet)]
    try:
        wait_until(bus.exists, "the bus of the session")
        words = ["gnome-keyring-daemon", "--foreground", "--unlock", "--components=secrets"]
        daemons.append(subprocess.Popen(words, stdin=subprocess.PIPE, **quiet))
        pipe = daemons[-1].stdin
        assert pipe is not None
        pipe.write(b"password of the keyring")
        pipe.close()
        service = SecretService(kept["DBUS_SESSION_BUS_ADDRESS"], kept)
        wait_until(service.answers, "the keyring")
        yield service
    finally:
        for daemon in reversed(daemons):
            daemon.kill()
            daemon.wait(HANG_S)
