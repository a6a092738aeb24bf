"""Opens a Datalevin directory, or a database of a Datalevin server, that a caller names: as a
source of its session.

A client on stdio acts for the user who started it and may open what that user can; over HTTP the
operator lists directories and hosts. A password in the URL is held in memory until the source ends.
"""

from __future__ import annotations

import uuid
from collections.abc import Awaitable, Callable

from tidegate.config.sources import SourceSettings, TemporarySourceSettings
from tidegate.engines.registry import find, locate
from tidegate.errors import Code, TidegateError
from tidegate.gateway.configured_sources import source_from_settings
from tidegate.gateway.handlers import HandlerParts, RequestHandler
from tidegate.gateway.listed_files import is_below
from tidegate.gateway.source_connections import SourceConnections
from tidegate.gateway.temporary_sources import (
    RULE,
    SAVED,
    denied,
    files_check,
    is_listed_host,
    refuse_saved,
)
from tidegate.model.actors import Scope
from tidegate.model.requests import Call, Request
from tidegate.model.sources import Source
from tidegate.products.datalog.requests import OpenDatalog, OpenedDatalog
from tidegate.products.datalog.settings import OpeningSettings
from tidegate.secrets.references import HeldSecret
from tidegate.secrets.url_logins import split_password, with_password

STDIO_LIFETIME_S = 30 * 86_400.0
"""How long a source of a client on stdio may last: its session ends with the process."""
STDIO_SOURCES = 256
"""The most that one client on stdio may have open."""


def make_handler(parts: HandlerParts, request: type[Request]) -> RequestHandler:
    """What answers `OpenDatalog`."""
    config = parts.config
    own = config.section(OpeningSettings)
    return DatalogSources(parts.connections, config.temporary_sources, own).open


class DatalogSources:
    """Answers `OpenDatalog` requests by the settings."""

    def __init__(
        self,
        connections: SourceConnections,
        settings: TemporarySourceSettings,
        own: OpeningSettings,
    ) -> None:
        self._connections = connections
        self._settings = settings
        self._own = own

    async def open(self, call: Call, _: tuple[Source, ...]) -> OpenedDatalog:
        """Add the source. The engine is opened by the first call on it.

        Raises: TidegateError SOURCE_URL, POLICY_DENIED by the rule `source.temporary`,
        ARGUMENT_INVALID if the session has too many.
        """
        request = call.request
        if not isinstance(request, OpenDatalog):
            raise TypeError(type(request).__name__)
        url, password = split_password(request.url)
        if "$" in request.url:
            raise denied("A temporary source cannot use a secret of the server.")
        directories = self._check_allowed(call, url)
        check = files_check(self._connections, url, directories)
        try:
            if check is None:
                await refuse_saved(self._connections, url)
            else:
                await check()
        except TidegateError as error:
            if error.details.get("rule") == RULE and error.message == SAVED:
                error.hint = "Open it by the name of the source, in place of its directory or URI."
            raise
        held = HeldSecret(password) if password else None
        try:
            source = self._add(call, request.name, url, held, check)
        except BaseException:
            if held is not None:
                held.release()
            raise
        return OpenedDatalog(source, url)

    def _add(
        self,
        call: Call,
        name: str,
        url: str,
        held: HeldSecret | None,
        check: Callable[[], Awaitable[None]] | None,
    ) -> Source:
        on_stdio, limits = not call.address, self._settings
        changes = call.actor.scope.covers(Scope.READ_WRITE) and (on_stdio or self._own.changes)
        written = with_password(url, held.reference) if held is not None else url
        options: dict[str, str] = {}
        if self._own.private_copy_mb is not None and not (changes or _is_remote(url)):
            options["private_copy_mb"] = str(self._own.private_copy_mb)
        access = "write" if changes else "read"
        source = source_from_settings(
            SourceSettings(name=name, url=written, access=access, options=options)
        )
        return self._connections.add_temporary(
            source,
            str(uuid.uuid4()),
            call.session or call.actor.id,
            STDIO_LIFETIME_S if on_stdio else limits.lifetime_s,
            STDIO_SOURCES if on_stdio else limits.per_owner,
            held.release if held is not None else None,
            check,
        )

    def _check_allowed(self, call: Call, url: str) -> tuple[str, ...]:
        """Apply the rule `source.temporary`. Returns the directories that a path may be in. Raises:
        TidegateError POLICY_DENIED, SOURCE_URL."""
        entry = find(url)
        if entry.engine != "datalevin":
            raise TidegateError(Code.SOURCE_URL, "The URL is not that of a Datalevin database.")
        settings = self._settings
        path = entry.path_of(url)
        if path is not None:
            directories = self._own.directories
            if directories is None:
                directories = ("/",) if not call.address else settings.directories
            if not is_below(path, directories):
                raise denied("The directory is in none that the operator has listed.")
            return directories
        hosts = self._own.hosts
        if hosts is None:
            if not call.address:
                return ()
            hosts = settings.hosts
        place = locate(url)
        if not is_listed_host(place.host, place.port or "", hosts):
            raise denied(f"The host {place.host[:80]!r} is not on the operator's list.")
        return ()


def _is_remote(url: str) -> bool:
    return find(url).path_of(url) is None
