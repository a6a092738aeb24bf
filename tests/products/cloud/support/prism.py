"""Prism, a server of others that answers as an OpenAPI document says, by its examples."""

from __future__ import annotations

import json
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from external.install import node, node_environment, node_modules

SCRIPT = Path(__file__).with_name("prism_server.mjs")


class Prism:
    """One process, which serves one document at a time."""

    def __init__(self) -> None:
        self._process = subprocess.Popen(
            [str(node()), str(SCRIPT), str(node_modules())],
            env=node_environment(),
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
            text=True,
        )

    def serve(self, document: Path, *, checks_login: bool = True) -> str:
        """Serve a document instead of the one before; the address on loopback.

        Raises: AssertionError: Prism cannot read it.
        """
        assert self._process.stdin is not None and self._process.stdout is not None
        asked = {"document": str(document), "checksLogin": checks_login}
        self._process.stdin.write(f"{json.dumps(asked)}\n")
        self._process.stdin.flush()
        said = json.loads(self._process.stdout.readline())
        assert "url" in said, f"Prism cannot serve {document.name}: {said}"
        return said["url"]

    def close(self) -> None:
        assert self._process.stdin is not None and self._process.stdout is not None
        self._process.stdin.close()
        self._process.wait(60)
        self._process.stdout.close()


@contextmanager
def running_prism() -> Iterator[Prism]:
    prism = Prism()
    try:
        yield prism
    finally:
        prism.close()
