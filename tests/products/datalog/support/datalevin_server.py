"""A Datalevin server on loopback: `datalevin_server.clj` on the jar of the package `datalevin`."""

from __future__ import annotations

import hashlib
import os
import shutil
import signal
import subprocess
from pathlib import Path
from urllib.parse import quote

from support.free_ports import claim_port
from tidegate.products.datalog.engine.library import find_library
from tidegate.products.datalog.engine.startup_cache import StartupCache

PROGRAM = Path(__file__).with_suffix(".clj")
PASSWORD = "s/cr:t p@ss%41"
"""Needs each of its signs encoded in a URL."""

USERS = f"""{{"ann" {{:password "{PASSWORD}" :make? true :change? true}}
 "guest" {{:password "guest word" :make? false :change? false}}}}"""


class DatalevinServer:
    """One server, which can be killed and started again on its port and its databases."""

    def __init__(self, root: Path) -> None:
        self.root = root
        self.databases = root / "databases"
        self.port = claim_port()
        self._process: subprocess.Popen[str] | None = None
        (root / "users.edn").write_text(USERS)

    def start(self) -> None:
        cache = StartupCache(find_library())
        command = cache.command(cache.build(), "512m", self.root)
        command = command[: command.index("-cp") + 2]
        command += ["clojure.main", str(PROGRAM), str(self.root), str(self.port)]
        with (self.root / "log").open("w") as log:
            self._process = subprocess.Popen(
                command, stdout=subprocess.PIPE, stderr=log, text=True, cwd=self.root
            )
        assert self._process.stdout is not None
        said = self._process.stdout.readline()
        assert said == f"listens {self.port}\n", (said, (self.root / "log").read_text()[-2000:])

    def stop(self) -> None:
        """Kill it, as a machine that fails does."""
        process, self._process = self._process, None
        if process is not None:
            os.kill(process.pid, signal.SIGKILL)
            process.wait(30)
            assert process.stdout is not None
            process.stdout.close()

    def url(self, database: str, user: str = "ann", password: str = PASSWORD) -> str:
        return f"dtlv://{user}:{quote(password, safe='')}@127.0.0.1:{self.port}/{database}"

    def names(self) -> list[str]:
        """The databases that there are."""
        return sorted(each.name for each in self.databases.iterdir())

    def digest(self, database: str) -> str:
        """What a database holds, from a copy of its file: without the meta pages and the locks,
        which every opening writes."""
        data = (self.databases / database / "data.mdb").read_bytes()
        return hashlib.sha256(data[8192:]).hexdigest()

    def remove(self) -> None:
        self.stop()
        shutil.rmtree(self.root, ignore_errors=True)
