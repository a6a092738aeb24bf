"""The backing server of the surface `cloud`: its DSN as a source, and the wait until it answers."""

from __future__ import annotations

import argparse
import asyncio
import math
import re
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, Final
from urllib.parse import quote

from msgspec import structs

from tidegate.cli.terminal import print_status
from tidegate.config.errors import invalid
from tidegate.config.model import Config
from tidegate.config.sources import SourceSettings
from tidegate.engines.registry import find
from tidegate.errors import Code, TidegateError
from tidegate.model.actors import Actor, Scope
from tidegate.model.replies import ConnectionState
from tidegate.model.requests import Call, Connect
from tidegate.products.cloud.settings import CloudSettings
from tidegate.products.cloud.surface.settings import PLAIN_TOOLS, CloudSurfaceSettings, settings_of
from tidegate.secrets.readers import UNRESOLVED

if TYPE_CHECKING:
    from tidegate.app import App
    from tidegate.serve.lifecycle import Shutdown

SOURCE: Final = "cloud"
"""The name of the source for the backing server."""
OPTION: Final = "--proxy"
_KEY: Final = "surface.cloud.backend.dsn"
_SCHEME: Final = "cloud+postgresql://"
WAITS_S: Final = (0.5, 1.0, 2.0, 3.0, 4.0)
"""Between the attempts to reach it at the start."""
_SERVER: Final = Actor("server", "server", Scope.READ_ONLY, kind="human")
_PAIR: Final = re.compile(r"\s*(\w+)\s*=\s*(?:'((?:[^'\\]|\\.)*)'|([^\s'\\]*))(?=\s|\Z)")


def given_dsn(config: Config, arguments: argparse.Namespace) -> str | None:
    """The DSN of the backing server, or None. Raises: TidegateError CONFIG_INVALID if
    the option and the settings both name one."""
    dsn = _settings(config).backend.proxied_dsn
    if arguments.proxy and dsn is not None:
        raise invalid(
            f"`{OPTION}` and `{_KEY}` both name the backing server.", hint="Give one of them."
        )
    return arguments.proxy or dsn


def with_backing_server(config: Config, dsn: str, *, access: Any) -> Config:
    """The settings with the backing server as the source of the surface.

    Raises: TidegateError CONFIG_INVALID, SOURCE_URL; neither shows the DSN.
    """
    settings = _settings(config)
    if "cloud" not in config.surfaces:
        raise invalid(
            f"`{OPTION}` is for the surface `cloud`, which is not served.",
            hint="Add --surface cloud.",
        )
    for source in config.sources:
        if find(source.url).engine == "cloud" or source.name == SOURCE:
            raise invalid(
                f"The source `{source.name}` and the backing server are both what the surface"
                " `cloud` would be about.",
                hint=f"Remove the source or `{OPTION}`.",
            )
    if settings.source not in (None, SOURCE):
        raise invalid(
            "`surface.cloud.source` names a source, and the statements run on the backing server.",
            hint="Remove it.",
        )
    if config.section(CloudSettings) != CloudSettings():
        raise invalid(
            "The section `cloud` is about providers that this server asks itself, and the backing"
            " server asks them.",
            hint="Move it to the settings of the backing server.",
        )
    backend = settings.backend
    options = {
        "connect_timeout": str(math.ceil(backend.connection_timeout_s)),
        "pool": str(backend.max_connections),
        "plain_postgresql": "on" if _needs_select_alone(settings) else "off",
    }
    if backend.app_name:
        options["application_name"] = backend.app_name
    try:
        source = SourceSettings(name=SOURCE, url=source_url(dsn), access=access, options=options)
    except TidegateError as error:
        raise TidegateError(
            error.code,
            f"The DSN of the backing server cannot be used. {error.message}",
            hint=f"{error.hint} Or set PGPASSWORD, or keep it in a password file (`passfile`).",
        ) from None
    cloud = config.surface.get("cloud", {}) | {"source": SOURCE}
    return structs.replace(
        config,
        sources=(*config.sources, source),
        surface=config.surface | {"cloud": cloud},
    )


def source_url(dsn: str) -> str:
    """The DSN, a URL or libpq's `name=value` pairs, as the URL of a source.

    Raises: TidegateError CONFIG_INVALID, without the DSN.
    """
    scheme, separator, rest = dsn.strip().partition("://")
    if separator and scheme.lower() in ("postgresql", "postgres"):
        return _SCHEME + rest
    pairs: list[tuple[str, str]] = []
    at = 0
    while found := _PAIR.match(dsn, at):
        value = found[3] if found[2] is None else re.sub(r"\\(.)", r"\1", found[2])
        pairs.append((found[1], value))
        at = found.end()
    if not pairs or dsn[at:].strip():
        raise invalid(
            "The DSN of the backing server cannot be read.",
            hint="Write postgresql://USER@HOST:PORT/cloud?sslmode=verify-full, or host=HOST"
            " port=PORT dbname=cloud user=USER.",
        )
    return (
        _SCHEME + "/?" + "&".join(f"{name}={quote(value, safe='${}:/')}" for name, value in pairs)
    )


def is_backing_server(source: SourceSettings) -> bool:
    """Whether a source is the one that `with_backing_server` has made."""
    return source.name == SOURCE and source.url.startswith(_SCHEME)


def _settings(config: Config) -> CloudSurfaceSettings:
    return settings_of(config)


def _needs_select_alone(settings: CloudSurfaceSettings) -> bool:
    """Whether no enabled tool sends a statement that PostgreSQL does not know."""
    return bool(settings.enabled_tools) and set(settings.enabled_tools) <= PLAIN_TOOLS


async def wait_for_backing_server(
    app: App, shutdown: Shutdown, waits_s: Sequence[float] = WAITS_S
) -> None:
    """Connect to the backing server, and try again for a while if it does not answer yet. Returns
    early if this server is to stop.

    Raises: TidegateError SOURCE_UNREACHABLE, and at once what trying again does not help.
    """
    for number, wait_s in enumerate((*waits_s, None), 1):
        call = Call(_SERVER, "server", "proxy", Connect(), SOURCE)
        try:
            state = (await app.gateway.handle(call)).payload
        except TidegateError as error:
            waits = error.code in (Code.SOURCE_UNREACHABLE, Code.SOURCE_BUSY)
            if error.details.get("cause") == UNRESOLVED:
                raise TidegateError(
                    error.code,
                    error.message,
                    hint="Set that variable, or write that file, where the proxy starts.",
                    details=error.details,
                ) from None
            if wait_s is None or not waits or "cause" in error.details:
                raise
            print_status(
                f"tidegate: {error.message.rstrip('.')}. Trying again in {wait_s:g} s"
                f" ({number} of {len(waits_s)})."
            )
            try:
                await asyncio.wait_for(shutdown.stop.wait(), wait_s)
            except TimeoutError:
                continue
            return
        if isinstance(state, ConnectionState) and state.current is not None:
            print_status(f"tidegate: the backing server is {state.current.server_version}")
        return
