"""The URLs of Datalog sources: `datalevin:///path` for a directory, `dtlv://user@host/database` for
a database of a remote server."""

from __future__ import annotations

import os
import re
from typing import NamedTuple
from urllib.parse import quote, unquote, urlsplit

from tidegate.engines.common.url import UNREADABLE, Location
from tidegate.errors import Code, TidegateError
from tidegate.paths import expand
from tidegate.secrets.references import resolve

LOCAL = "datalevin"
REMOTE = "dtlv"
PORT = 8898

_HOST = re.compile(r"[A-Za-z0-9](?:[A-Za-z0-9._-]*[A-Za-z0-9])?|[0-9A-Fa-f:.]*:[0-9A-Fa-f:.]*")
_DATABASE = re.compile(r"[a-z0-9]+(?:-[a-z0-9]+)*")


class Place(NamedTuple):
    """Where a source is. `name` is what the worker opens: the real path of a directory, or the URI
    with its password. `shown` is the same for people, without it; `secrets` are the spellings of
    the password, which no text may have."""

    name: str
    shown: str
    is_remote: bool
    host: str = ""
    port: int = 0
    database: str = ""
    secrets: tuple[str, ...] = ()


def place_of(url: str) -> Place:
    """The place of a source, with its password if a reference in the URL names one.

    Raises: TidegateError SOURCE_URL.
    """
    scheme = url.partition(":")[0].lower()
    if scheme == LOCAL:
        return _directory(url)
    return _server(url)


def path_of(url: str) -> str | None:
    """The directory that a URL names, None for a server. Raises: TidegateError SOURCE_URL."""
    return None if url.partition(":")[0].lower() == REMOTE else _path(url)


def exclusive_path_of(url: str, changes: bool) -> str | None:
    """The directory that a process has alone while it may change it, None if there is none."""
    return path_of(url) if changes else None


def locate(url: str) -> Location:
    """What a listing shows of a URL. Raises nothing."""
    try:
        path = path_of(url)
        if path is not None:
            return Location("", 0, path, "")
        parts = urlsplit(url)
        port = parts.port or PORT
        return Location(
            parts.hostname or "",
            port,
            unquote(parts.path.strip("/")),
            unquote(parts.username or ""),
        )
    except (TidegateError, ValueError):
        return UNREADABLE


def _path(url: str) -> str:
    rest = url.partition("://")[2]
    if "?" in rest or "#" in rest or not rest:
        raise _wrong("A `datalevin://` URL has the path of a directory and nothing else.")
    try:
        path = expand(unquote(rest))
    except TidegateError:
        raise _wrong("The path begins with the home of a user that there is not.") from None
    if "\0" in str(path):
        raise _wrong("The path holds a NUL character.")
    return os.path.abspath(path)  # noqa: PTH100  links are followed where it is opened


def _directory(url: str) -> Place:
    path = os.path.realpath(_path(url))
    return Place(path, path, is_remote=False)


def _server(url: str) -> Place:
    try:
        parts = urlsplit(resolve(url))
        host, port = parts.hostname, parts.port or PORT
    except ValueError as error:
        raise _wrong("The `dtlv://` URL cannot be read.") from error
    if parts.scheme.lower() != REMOTE or not host or parts.fragment:
        raise _wrong("A remote source has a URL that begins with `dtlv://` and names a host.")
    if not _HOST.fullmatch(host):
        raise _wrong("The host of a `dtlv://` URL is a name or an address.")
    database = parts.path.strip("/")
    if not _DATABASE.fullmatch(database):
        # Datalevin folds other spellings to this one, by which one database would have two names.
        raise _wrong(
            "The `dtlv://` URL names no database as Datalevin writes it: lower-case letters, digits"
            " and single hyphens."
        )
    if parts.query:
        raise _wrong("A `dtlv://` URL has no options here.")
    user, password = unquote(parts.username or ""), unquote(parts.password or "")
    if ":" in user:
        raise _wrong("The user of a `dtlv://` URL has no colon in its name.")
    shown_host = f"[{host}]" if ":" in host else host
    account = quote(user, safe="")
    login = f"{account}:{quote(password, safe='')}@" if password else f"{account}@"
    return Place(
        # Written again from its parts, so that the client reads the host that was checked.
        f"{REMOTE}://{login if user else ''}{shown_host}:{port}/{database}",
        f"{REMOTE}://{f'{account}@' if user else ''}{shown_host}:{port}/{database}",
        is_remote=True,
        host=host,
        port=port,
        database=database,
        secrets=_spellings(parts.password),
    )


def _spellings(password: str | None) -> tuple[str, ...]:
    if not password:
        return ()
    plain = unquote(password)
    every = {password, plain, quote(plain, safe=""), quote(plain)}
    return tuple(sorted(every, key=len, reverse=True))


def _wrong(reason: str) -> TidegateError:
    return TidegateError(
        Code.SOURCE_URL,
        reason,
        hint="Write datalevin:///path/to/directory, or dtlv://user:${ENV:PASSWORD}@host/database.",
    )
