"""Which URL and which options of a source a person may type in a page.

A page is nearer to other pages and to agents than a terminal is. What is typed there leads to one
server by its name or address, or to files below folders that the settings list; it refers to no
secret of this machine, and takes none along to another server. Anything else is for the command
line and the settings file.
"""

from __future__ import annotations

import asyncio
import re
import socket
from collections.abc import Mapping
from typing import NamedTuple
from urllib.parse import parse_qsl

from tidegate.config.addresses import may_hold_databases
from tidegate.engines.common.url import FOLDER_SCHEME, parse_server_url
from tidegate.engines.registry import find
from tidegate.errors import Code, TidegateError
from tidegate.gateway.listed_files import fault_of, is_below
from tidegate.gateway.temporary_sources import HARMLESS_OPTIONS
from tidegate.model.sources import Source
from tidegate.product import EngineEntry
from tidegate.secrets.url_logins import (
    Authority,
    split_authority,
    split_password,
    with_password,
    without_password,
)

RULE = "source.typed"
"""The rule in the details of what is refused here."""
_HOST = re.compile(r"[0-9a-f:.]+|[\w.-]+", re.IGNORECASE)


class ListedFolders(NamedTuple):
    """The folders from which a page may open files, and the setting that lists them."""

    setting: str
    paths: tuple[str, ...]


def with_kept_password(typed: str, was: Source) -> str:
    """The URL that was typed in the place of the one that a source has, which was shown without its
    password: with that password where it is for the same user at the same place."""
    if typed == without_password(was.url):
        return was.url
    before, after = split_authority(was.url), split_authority(typed)
    if not _same_place(before, after) or before is None or not before.password:
        return typed
    return with_password(typed, before.password)


def check_typed_url(url: str, folders: ListedFolders, was: Source | None = None) -> None:
    """Refuse what a page may not open; `was` is the source before the change. `folders` are those
    that may be read. Reads files, so it belongs in a thread.

    Raises: TidegateError POLICY_DENIED by the rule `source.typed`, SOURCE_URL, SOURCE_UNREACHABLE.
    """
    if was is not None and url == was.url:
        return
    if split_password(url)[1] is not None:
        raise TidegateError(
            Code.SOURCE_URL,
            "The URL holds a password.",
            hint="Take it out of the URL, and type it in the field for the password.",
        )
    entry = find(url)
    stays = was is not None and _same_place(split_authority(was.url), split_authority(url))
    if _refers_elsewhere(url, was.url if was is not None and stays else ""):
        raise denied(
            "What is typed in a page refers to no secret of the server.",
            hint="Type the password in its field, or change the source at the command line.",
        )
    if entry.files is not None or entry.engine == FOLDER_SCHEME:
        _check_file(url, entry, folders)
    elif entry.port is not None:
        _check_server(url, "" if was is None or not stays else was.url)
    else:
        raise denied(
            f"A source of the engine `{entry.engine}` gets its URL at the command line.",
            hint="What else is set for it can be changed here.",
        )


def check_typed_options(url: str, options: Mapping[str, str], was: Source | None = None) -> None:
    """Refuse options of an engine that name files or programs, or refer to secrets, unless the
    source has them already and stays where it is.

    Raises: TidegateError POLICY_DENIED by the rule `source.typed`, SOURCE_URL.
    """
    entry = find(url)
    before = {} if was is None else dict(was.options)
    stays = was is not None and without_password(was.url) == without_password(url)
    for name, value in options.items():
        kept = before.get(name) == value
        if "$" in value and not (kept and stays):
            raise denied(
                f"The option `{name[:80]}` refers to a secret of the server.",
                hint="Change the source at the command line.",
            )
        if not kept and name not in entry.plain_options:
            plain = ", ".join(entry.plain_options) or "none"
            raise denied(
                f"The option `{name[:80]}` is not set in a page.",
                hint=f"Set here: {plain}. The command line takes all.",
            )


async def check_address(url: str) -> None:
    """Refuse a server whose name leads, now, to an address that is no database's: of the link, such
    as where a cloud tells its machines their secrets, of many, or of none. A name that leads
    nowhere is left to the engine.

    Raises: TidegateError POLICY_DENIED by the rule `source.typed`, SOURCE_URL.
    """
    if find(url).port is None:
        return
    for place in parse_server_url(url).places:
        host = place.host.partition("%")[0]
        try:
            loop = asyncio.get_running_loop()
            found = await loop.getaddrinfo(host, None, type=socket.SOCK_STREAM)
        except (OSError, UnicodeError):
            continue
        if not all(may_hold_databases(str(address[0])) for *_, address in found):
            raise denied("The host is at an address where no database is opened.")


def denied(
    reason: str, hint: str = "The command line and the settings file take more."
) -> TidegateError:
    """The refusal by the rule."""
    return TidegateError(Code.POLICY_DENIED, reason, hint=hint, details={"rule": RULE})


def _same_place(before: Authority | None, after: Authority | None) -> bool:
    if before is None or after is None:
        return False
    schemes = [each.before_places.partition(":")[0] for each in (before, after)]
    return schemes[0] == schemes[1] and (before.user, before.places) == (after.user, after.places)


def _refers_elsewhere(url: str, was: str) -> bool:
    """Whether a URL refers to a secret in another way than the one before, at the same place, which
    is empty if there is none. What its options refer to is checked with these."""
    before, after = split_authority(was), split_authority(url)
    if before is None or after is None:
        return "$" in url
    paths = [each.rest.partition("?")[0] for each in (before, after)]
    kept_password = after.password in ("", before.password)
    return not kept_password or ("$" in paths[1] and paths[0] != paths[1])


def _check_file(url: str, entry: EngineEntry, folders: ListedFolders) -> None:
    plain, _, query = url.partition("?")
    if query:
        raise denied("The URL of a file has no options here.", hint="Set them as options.")
    if not folders.paths:
        raise denied(
            "No file is opened from a page.",
            hint=f"List the folders for it in the setting `{folders.setting}`.",
        )
    path = entry.path_of(plain)
    if path is None:
        raise denied("The URL names no file.")
    is_folder = entry.engine == FOLDER_SCHEME
    fault = fault_of(path, folders.paths, is_folder=is_folder, leaves_out_links=is_folder)
    if fault is not None or not is_below(path, folders.paths):
        raise denied(
            fault or "The file is in no folder that is listed.",
            hint=f"The setting `{folders.setting}` lists those from which files are opened.",
        )


def _check_server(url: str, was: str) -> None:
    server = parse_server_url(url)
    before = parse_qsl(parse_server_url(was).query, keep_blank_values=True) if was else []
    host = server.places[0].host
    if len(server.places) > 1 or (_HOST.fullmatch(host) is None and not was):
        raise denied("The URL names no host that could be checked.")
    for option in parse_qsl(server.query, keep_blank_values=True):
        harmless = option[0] in HARMLESS_OPTIONS and "$" not in option[1]
        if not harmless and option not in before:
            raise denied(f"The option {option[0][:80]!r} of a URL is not set in a page.")
