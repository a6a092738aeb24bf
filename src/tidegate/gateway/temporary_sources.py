"""Opens sources at run time that last as long as the session that asked for them.

The rule `source.temporary` decides by the settings: a temporary source is on a host, or in a
directory, that the operator has listed. Nothing is listed by default. The URL comes from a caller,
so it may hold no reference to a secret of ours, no way around the list (a second host, a socket,
an SSH tunnel), and the source is read-only.
"""

from __future__ import annotations

import asyncio
import re
import uuid
from collections.abc import Awaitable, Callable, Iterable
from urllib.parse import parse_qsl

from tidegate.config.sources import SourceSettings, TemporarySourceSettings
from tidegate.engines.common.url import (
    FOLDER_SCHEME,
    parse_file_url,
    parse_folder_url,
    parse_server_url,
    scheme_of,
)
from tidegate.engines.registry import find, locate
from tidegate.errors import Code, TidegateError
from tidegate.gateway.configured_sources import source_from_settings
from tidegate.gateway.database_identities import DatabaseIdentity, file_place_of, place_of
from tidegate.gateway.listed_files import FileMark, fault_of, is_below, marks_of
from tidegate.gateway.source_connections import SourceConnections
from tidegate.model.requests import Call, CloseTemporary, OpenTemporary
from tidegate.model.sources import Source
from tidegate.product import EngineEntry
from tidegate.secrets.references import HeldSecret
from tidegate.secrets.url_logins import split_password, with_password
from tidegate.sql import dialects

RULE = "source.temporary"
HARMLESS_OPTIONS = frozenset({"sslmode", "connect_timeout"})
"""Options of a server's URL that cannot lead to another server or read a file of ours."""

SAVED = "That database is a source of this server already."
_HOST = re.compile(r"[0-9a-f:.]+|[\w.-]+", re.IGNORECASE)


class TemporarySources:
    """Answers `OpenTemporary` requests by the settings."""

    def __init__(self, connections: SourceConnections, settings: TemporarySourceSettings) -> None:
        self._connections = connections
        self._settings = settings

    async def open(self, call: Call, _: tuple[Source, ...]) -> Source:
        """The source that was opened. Raises: as `open_temporary`."""
        request = call.request
        if not isinstance(request, OpenTemporary):
            raise TypeError(type(request).__name__)
        check_allowed(request.url, self._settings)
        check = files_check(self._connections, request.url, self._settings.directories)
        if check is None:
            await refuse_saved(self._connections, request.url)
        else:
            await check()
        owner = call.session or call.actor.id
        return open_temporary(
            self._connections, request.name, request.url, owner, self._settings, check
        )

    async def close(self, call: Call, _: tuple[Source, ...]) -> bool:
        """Close a source that the caller opened. Returns whether there was one."""
        request = call.request
        if not isinstance(request, CloseTemporary):
            raise TypeError(type(request).__name__)
        owner = call.session or call.actor.id
        return await self._connections.close_temporary(owner, request.name)


async def refuse_saved(
    connections: SourceConnections, url: str, directories: tuple[str, ...] = ("/",)
) -> None:
    """Refuse a database that is a source already: its masks, filters and callers would not hold
    for another way to it. Files are checked in the directories. Raises: TidegateError
    POLICY_DENIED, SOURCE_URL."""
    dialect = dialects.find(find(url).dialect_of(url))
    wanted = await place_of(url)
    if wanted.path is not None:
        saved = [each.url for each in connections.sources() if find(each.url).path_reader]
        await asyncio.to_thread(_refuse_shared_files, url, wanted, saved, directories)
        return
    for source in connections.sources():
        if dialects.find(source.dialect) is not dialect or locate(source.url).port != wanted.port:
            continue  # another server, whatever its host means: that is not resolved
        known = await place_of(source.url)
        reached = wanted.is_same_server if dialect.reads_other_databases else wanted.is_same
        if reached(known):
            raise denied(SAVED)


def _refuse_shared_files(
    url: str, wanted: DatabaseIdentity, saved: Iterable[str], directories: tuple[str, ...]
) -> None:
    """Refuse a database of files that are those of a saved source, under whatever name. Raises:
    TidegateError POLICY_DENIED."""
    entry = find(url)
    path = entry.path_of(url)
    marks = frozenset[FileMark]()
    if path is not None:
        marks = marks_of(path, directories, **_form_of(entry))
    for each in saved:
        known = file_place_of(each)
        if known is None or known.path is None:
            continue
        if wanted.shares_files(known) or marks & marks_of(
            known.path, is_folder=find(each).is_folder
        ):
            raise denied(SAVED)


def _form_of(entry: EngineEntry) -> dict[str, bool]:
    """How an engine finds the files of a database, as `fault_of` takes it. That of folders of
    files checks each link itself."""
    return {"is_folder": entry.is_folder, "leaves_out_links": entry.engine == FOLDER_SCHEME}


def open_temporary(
    connections: SourceConnections,
    name: str,
    url: str,
    owner: str,
    settings: TemporarySourceSettings,
    check: Callable[[], Awaitable[None]] | None = None,
) -> Source:
    """Add a source that only `owner` (the id of a session's state, or of an actor) sees.

    It is gone with `SourceConnections.close_temporary_of(owner)`, at the latest after
    `settings.lifetime_s` seconds, and so is a password that its URL held. The engine is opened by
    the first call on it. `check` is that of `files_check`.
    Raises: TidegateError POLICY_DENIED by the rule `source.temporary`, ARGUMENT_INVALID if the name
    is taken or the owner has too many; SOURCE_URL, SOURCE_UNREACHABLE, CONFIG_INVALID as for any
    source.
    """
    check_allowed(url, settings)
    plain, password = split_password(url)
    held = HeldSecret(password) if password else None
    try:
        whole = plain if held is None else with_password(plain, held.reference)
        source = source_from_settings(SourceSettings(name=name, url=whole))
        return connections.add_temporary(
            source,
            str(uuid.uuid4()),
            owner,
            settings.lifetime_s,
            settings.per_owner,
            held.release if held is not None else None,
            check,
        )
    except BaseException:
        if held is not None:
            held.release()
        raise


def check_allowed(url: str, settings: TemporarySourceSettings) -> None:
    """Apply the rule `source.temporary`. Raises: TidegateError POLICY_DENIED, SOURCE_URL."""
    entry = find(url)
    if "$" in url:
        raise denied("A temporary source cannot use a secret of the server.")
    if dialects.find(entry.dialect_of(url)).in_files:
        plain = url.partition("?")[0]
        is_folder = scheme_of(url) == FOLDER_SCHEME
        path = parse_folder_url(plain, ())[0] if is_folder else parse_file_url(plain, ()).path
        if "?" in url or path is None or not is_below(path, settings.directories):
            raise denied("The file is in no directory that the operator has listed.")
        return
    server = parse_server_url(url)
    place = server.places[0]
    if len(server.places) > 1 or _HOST.fullmatch(place.host) is None:
        raise denied("The URL names no host that could be checked.")
    options = parse_qsl(server.query, keep_blank_values=True)
    unfit = [option for option, _ in options if option not in HARMLESS_OPTIONS]
    if unfit:
        raise denied(f"The URL has the option {unfit[0][:80]!r}, which could lead elsewhere.")
    if not is_listed_host(place.host, place.port or entry.port or "", settings.hosts):
        raise denied(f"The host {place.host[:80]!r} is not on the operator's list.")


def is_listed_host(host: str, port: int | str, listed: tuple[str, ...]) -> bool:
    """Whether a host is on a list of `host` and `host:port`; an IPv6 address may be in brackets."""
    known = {allowed.lower() for allowed in listed}
    lowered = host.lower()
    bracketed = f"[{lowered}]" if ":" in lowered else lowered
    return bool(lowered) and bool({lowered, bracketed, f"{bracketed}:{port}"} & known)


def files_check(
    connections: SourceConnections, url: str, directories: tuple[str, ...]
) -> Callable[[], Awaitable[None]] | None:
    """A check that the files of a database are still what a caller may open, to be made before and
    after it is opened, and before each call on it: a program that may write in a listed directory
    can put a link in a file's place at any time. None for a server or a database in memory.

    It raises: TidegateError POLICY_DENIED by the rule `source.temporary`.
    """
    entry = find(url)
    path = entry.path_of(url)
    if path is None:
        return None

    def look() -> None:
        fault = fault_of(path, directories, **_form_of(entry))
        if fault is not None:
            raise denied(fault)

    async def check() -> None:
        await refuse_saved(connections, url, directories)
        await asyncio.to_thread(look)

    return check


def denied(reason: str) -> TidegateError:
    """The refusal by the rule."""
    return TidegateError(
        Code.POLICY_DENIED,
        reason,
        hint="Ask the operator to list it under `temporary_sources`, or to add the source.",
        details={"rule": RULE},
    )
