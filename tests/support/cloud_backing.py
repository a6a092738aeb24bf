"""A server with a source of cloud providers on the wire, and proxies before it."""

from __future__ import annotations

from collections.abc import AsyncIterator, Iterator, Mapping
from contextlib import asynccontextmanager, contextmanager
from pathlib import Path
from typing import Any, NamedTuple

import psycopg

from support.audit_records import records
from support.cloud_surface import ADDRESS, Desk, merged, running_desk, write_desk
from support.wire_server import WireServer, wire_server
from tidegate.app import App
from tidegate.config.loading import convert_settings


class Backing(NamedTuple):
    """A server with the source `cloud` in the mode `safe`, and what is behind it."""

    server: WireServer
    desk: Desk

    def connect(self, user: str) -> psycopg.Connection:
        return psycopg.connect(self.server.conninfo("cloud", user), autocommit=True)

    def audited(self, statement: str) -> list[dict[str, Any]]:
        """What its audit log says of a statement."""
        lines = records(self.server.folder / "state")
        return [each for each in lines if each.get("statement") == statement]

    def dsn(self, *, port: int = 0, scheme: str = "postgresql") -> str:
        """For a proxy; the password is in the file that it names."""
        secret = self.server.folder / "proxy.secret"
        secret.write_text(self.server.secrets["proxy"])
        place = f"127.0.0.1:{port or self.server.port}"
        return f"{scheme}://proxy:${{FILE:{secret}}}@{place}/cloud"


@contextmanager
def backing_server(folder: Path, *options: str, **settings: Any) -> Iterator[Backing]:
    """One, with the documents of the help desk."""
    write_desk(folder / "registry")
    source = {"name": "cloud", "url": f"cloud://{folder}/registry", "access": "write"}
    with running_desk() as desk:
        endpoints = {"endpoints": {ADDRESS: desk.url}}
        with wire_server(folder, *options, sources=[source], cloud=endpoints, **settings) as server:
            yield Backing(server, desk)


@asynccontextmanager
async def proxy_of(
    backing: Backing,
    directory: Path,
    surface: Mapping[str, Any] | None = None,
    *,
    port: int = 0,
    **settings: Any,
) -> AsyncIterator[App]:
    """An application whose source of cloud providers is the server behind. Its file of calls is
    `calls.log` in the directory."""
    calls = {"server": {"audit": {"file": {"path": str(directory / "calls.log")}}}}
    url = backing.dsn(port=port, scheme="cloud+postgresql")
    whole = {
        "state": str(directory / "state"),
        "sources": [{"name": "cloud", "url": url, "access": "write"}],
        "surface": {"cloud": merged(calls, surface or {})},
        **settings,
    }
    app = App.open(convert_settings(whole))
    try:
        yield app
    finally:
        await app.close()
