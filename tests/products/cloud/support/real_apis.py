"""Servers of others with an HTTP API of their own, for tests of the cloud engine: Debian's etcd,
Prometheus and docker-registry, each on loopback with its files in a folder that is removed.

Each has a keeper (`server_keeper.py`).
"""

from __future__ import annotations

import http.client
import shutil
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager

from support.free_ports import claim_port
from support.server_keeper import SEARCHED, Keeper, KeptServer, keep

PACKAGES = {
    "etcd": "etcd-server",
    "prometheus": "prometheus",
    "docker-registry": "docker-registry",
}
"""Programs, and the packages of Debian that bring them."""


class RealApi(KeptServer):
    """A running server; `url` is its address."""

    def __init__(self, program: str) -> None:
        super().__init__(__file__, program)

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.port}"


@contextmanager
def running(program: str) -> Iterator[RealApi]:
    """The server; the test that asks is skipped by name where its program is not installed."""
    import pytest

    if shutil.which(program, path=SEARCHED) is None:
        pytest.skip(f"needs {program} (the package {PACKAGES[program]})")
    server = RealApi(program)
    try:
        yield server
    finally:
        server.close()


class _ApiKeeper(Keeper):
    """Is ready when a GET of `path` is answered with 200."""

    path = "/"

    def prepare(self) -> None:
        """Nothing is needed."""

    def is_ready(self) -> bool:
        connection = http.client.HTTPConnection("127.0.0.1", self.port, timeout=10)
        try:
            connection.request("GET", self.path)
            return connection.getresponse().status == 200
        finally:
            connection.close()


class _EtcdKeeper(_ApiKeeper):
    path = "/health"

    def __init__(self) -> None:
        super().__init__("etcd")
        self.peer_port = claim_port()

    def command(self) -> list[str]:
        clients = f"http://127.0.0.1:{self.port}"
        peers = f"http://127.0.0.1:{self.peer_port}"
        return [
            "etcd", "--name", "one", "--data-dir", str(self.directory / "data"),
            "--listen-client-urls", clients, "--advertise-client-urls", clients,
            "--listen-peer-urls", peers, "--initial-advertise-peer-urls", peers,
            "--initial-cluster", f"one={peers}", "--unsafe-no-fsync",
        ]  # fmt: skip


class _PrometheusKeeper(_ApiKeeper):
    """Watches itself, and a port that nothing listens on."""

    path = "/-/ready"

    def __init__(self) -> None:
        super().__init__("prometheus")
        self.dead_port = claim_port()

    def prepare(self) -> None:
        (self.directory / "prometheus.yml").write_text(
            "global: {scrape_interval: 1s}\n"
            "scrape_configs:\n"
            "- job_name: itself\n"
            f"  static_configs: [{{targets: ['127.0.0.1:{self.port}']}}]\n"
            "- job_name: absent\n"
            f"  static_configs: [{{targets: ['127.0.0.1:{self.dead_port}']}}]\n"
        )

    def command(self) -> list[str]:
        return [
            "prometheus", f"--config.file={self.directory}/prometheus.yml",
            f"--storage.tsdb.path={self.directory}/data",
            f"--web.listen-address=127.0.0.1:{self.port}",
        ]  # fmt: skip


class _RegistryKeeper(_ApiKeeper):
    path = "/v2/"

    def prepare(self) -> None:
        (self.directory / "registry.yml").write_text(
            "version: 0.1\n"
            f"storage: {{filesystem: {{rootdirectory: {self.directory}/data}},"
            " delete: {enabled: true}}\n"
            f"http: {{addr: '127.0.0.1:{self.port}'}}\n"
        )

    def command(self) -> list[str]:
        return ["docker-registry", "serve", str(self.directory / "registry.yml")]


_KEEPERS: dict[str, Callable[[], Keeper]] = {
    "etcd": _EtcdKeeper,
    "prometheus": _PrometheusKeeper,
    "docker-registry": lambda: _RegistryKeeper("registry"),
}

if __name__ == "__main__":
    keep(_KEEPERS[sys.argv[1]])
