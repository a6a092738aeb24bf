"""What lets bridges find a server on HTTP, and what it tells them of itself."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import TYPE_CHECKING

from tidegate.app import App, surface_paths
from tidegate.model.sources import Source
from tidegate.secrets.references import variables_of
from tidegate.serve.status import status_of

if TYPE_CHECKING:
    from tidegate.bridge.handshake_writer import HandshakeWriter


def open_handshake(
    app: App,
    host: str,
    port: int,
    settings: str,
    on_opened: Callable[[], None] | None,
    *,
    tls: bool,
) -> HandshakeWriter | None:
    """What lets bridges of this machine find this server, if they may."""
    from tidegate.bridge.handshake_file import HandshakeFile, ServerAddress, is_own_address
    from tidegate.bridge.handshake_writer import HandshakeWriter, ServedEndpoint

    config = app.config
    host = {"0.0.0.0": "127.0.0.1", "::": "::1"}.get(host, host)  # noqa: S104 - compared, not bound
    if not config.bridge.enabled or not is_own_address(host):
        return None
    app.bridge_tokens.listens_at = host
    return HandshakeWriter(
        HandshakeFile(app.directory),
        app.bridge_tokens,
        ServedEndpoint(
            ServerAddress(host, port, tls),
            tuple(surface_paths(config)),
            patience_s=config.limits.max_timeout_s + config.approvals.wait_s,
            settings=settings,
            siblings=app.siblings,
        ),
        on_opened=on_opened,
        variables=_variables_of(app),
        status=partial(status_of, app),
    )


def _variables_of(app: App) -> Callable[[], tuple[str, ...]]:
    """The environment variables that the sources name, read again when the sources change."""
    seen: tuple[Source, ...] | None = None
    names: tuple[str, ...] = ()

    def read() -> tuple[str, ...]:
        nonlocal seen, names
        sources = app.connections.sources()
        if sources is not seen:
            texts = [text for each in sources for text in (each.url, *dict(each.options).values())]
            names = tuple(sorted({name for text in texts for name in variables_of(text)}))
            seen = sources
        return names

    return read
