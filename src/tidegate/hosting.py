"""What a server shows on HTTP by its settings: a path for each surface, and beside them what
callers without a token need, and what bridges need to find it.
"""

from __future__ import annotations

import os
import socket
from collections.abc import Callable, Iterable
from pathlib import Path

from tidegate.config.addresses import LOOPBACK
from tidegate.config.model import Config
from tidegate.config.oauth import resource_url
from tidegate.edges.bridge.handshake import Place
from tidegate.edges.bridge.keeper import Keeper
from tidegate.edges.challenge import Challenge, challenge_of, resource_pages
from tidegate.edges.pages import Serve
from tidegate.edges.pairing import pages as pairing_pages
from tidegate.identity.bridge import BridgePass, Note
from tidegate.identity.door import Verifier
from tidegate.identity.pairing import Pairer
from tidegate.protocol.kernel import Kernel
from tidegate.sources import Source
from tidegate.surfaces.surface import Surface

REALMS = {"workbench": "TablePro MCP"}
"""What a surface's document calls itself in challenges, where it does."""


def kernels_of(config: Config, surface: Callable[[str], Surface]) -> dict[str, Kernel]:
    """One kernel for each surface, on its own path; `/mcp` is the first of them."""
    kernels: dict[str, Kernel] = {}
    for name in config.surfaces:
        made = surface(name)
        kernels[f"/mcp/{name}"] = Kernel(made, made.settings)
    kernels["/mcp"] = kernels[f"/mcp/{config.surfaces[0]}"]
    return kernels


def challenges_of(config: Config, paths: Iterable[str]) -> dict[str, Challenge]:
    """What callers of each path are told who hold no token."""
    first, oauth = config.surfaces[0], config.oauth
    made: dict[str, Challenge] = {}
    for path in paths:
        realm = REALMS.get(path.removeprefix("/mcp").strip("/") or first, "tidegate")
        made[path] = Challenge(realm) if oauth is None else challenge_of(oauth, path, realm)
    return made


def pages_of(
    config: Config, paths: Iterable[str], pairer: Pairer, keeper: Keeper | None
) -> dict[str, Serve]:
    """What is served beside MCP: how a client gets a token, and how a bridge knows the server."""
    pages: dict[str, Serve] = {}
    if config.auth and config.pairing:
        pages |= pairing_pages(pairer)
    if config.oauth is not None:
        pages |= resource_pages(config.oauth, paths)
    if keeper is not None:
        pages |= keeper.pages()
    return pages


def verifier_of(config: Config) -> Verifier | None:
    """Who knows the tokens of the authorization server, if there is one."""
    settings = config.oauth
    if settings is None:
        return None
    from tidegate.identity.oauth import OAuth  # needs an extra

    names = {resource_url(settings, path) for path in _paths(config)} | {*settings.audience}
    return OAuth(settings, frozenset(names))


def keeper_of(
    config: Config,
    directory: Path,
    listener: socket.socket,
    note: Note,
    sources: Callable[[], Iterable[Source]],
    settings: str,
) -> tuple[Keeper | None, BridgePass | None]:
    """What lets bridges find this server, if they may and could, and the token that it gives."""
    host, port = listener.getsockname()[:2]
    host = {"0.0.0.0": "127.0.0.1", "::": "::1"}.get(host, host)  # noqa: S104  compared, not bound
    if not config.bridge.enabled or host not in LOOPBACK or os.name != "posix":
        return None, None
    admission = BridgePass(config.bridge, note, sources=sources)
    patience_s = config.limits.max_timeout_s + config.approvals.wait_s
    paths = tuple(_paths(config))
    place = Place(directory)
    keeper = Keeper(place, admission, host, port, paths, patience_s, settings=settings)
    return keeper, admission


def _paths(config: Config) -> list[str]:
    """Where MCP is served."""
    return ["/mcp", *(f"/mcp/{name}" for name in config.surfaces)]
