"""The reader of sources' URLs: scheme, hosts, ports, file, options. Opens nothing, except to see a
file.

It is the only one: engines, tunnels, temporary sources and listings read a URL here, so that what
one of them checks or shows is what another connects to. References to secrets (`${FILE:/path}`) may
be in a URL; whatever they hold is one piece.

File URLs are read as SQLAlchemy reads them: `sqlite:///relative.db`, `sqlite:////absolute.db`,
`sqlite://` and `sqlite:///:memory:` for a database in memory. A folder of files is written as in
`file:` URLs: `files:///absolute/folder`.
"""

from __future__ import annotations

import difflib
import os
import re
from collections.abc import Iterable, Mapping
from pathlib import Path
from urllib.parse import parse_qsl, unquote

import msgspec

from tidegate.errors import Code, TidegateError
from tidegate.paths import expand
from tidegate.secrets.url_logins import PIECE, split_authority


class FileUrl(msgspec.Struct, frozen=True):
    """A database in one file; `path` is absolute, None means in memory."""

    path: str | None
    options: Mapping[str, str] = {}

    @property
    def name(self) -> str:
        """What the database is called: the file's stem, `main` in memory."""
        return Path(self.path).stem if self.path else "main"


NONE_GIVEN: Mapping[str, str] = {}

_PATH = re.compile(PIECE % "?" + "*")
_HOST = r"\[[^\]]*\]|" + PIECE % r":\[\]" + "*"
_PLACE = re.compile(f"({_HOST})" + r"(?::(\d{0,5}|\$\{[^}]*\}))?")
_COMMA = re.compile(r",(?![^{]*\})")


class Place(msgspec.Struct, frozen=True):
    """Where one server listens. `host` has no brackets or percent escapes and is empty if none is
    named; `port` is None if none is named, or if it is a reference to a secret."""

    host: str
    port: int | None = None


class ServerUrl(msgspec.Struct, frozen=True):
    """A server's URL, taken apart. It may hold a password: never write it anywhere.

    `user`, `password` and `database` are decoded; `login` is the text before the first host, `path`
    and `query` are as they are written.
    """

    login: str
    user: str
    password: str
    places: tuple[Place, ...]
    path: str
    query: str

    @property
    def database(self) -> str:
        """The database that the path names; empty if it names none."""
        return unquote(self.path.removeprefix("/"))


def parse_server_url(url: str) -> ServerUrl:
    """Take `scheme://user:password@host:port,host:port/database?options` apart.

    Raises: TidegateError SOURCE_URL; the message holds no part of the URL.
    """
    parts = split_authority(url)
    path = "" if parts is None else _match(_PATH, parts.rest)
    query = "" if parts is None else parts.rest[len(path) :]
    if parts is None or path[:1] not in ("", "/") or query[:1] not in ("", "?"):
        raise TidegateError(
            Code.SOURCE_URL,
            "The user, host or port in the source's URL cannot be read.",
            hint="Write SCHEME://user@host:port/database; percent-encode `@` in a name.",
        )
    return ServerUrl(
        login=parts.before_places,
        user=unquote(parts.user),
        password=unquote(parts.password),
        places=tuple([_place(each) for each in _COMMA.split(parts.places)]),
        path=path,
        query=query[1:],
    )


def _place(text: str) -> Place:
    found = _PLACE.fullmatch(text)
    port = None if found is None else found[2]
    if found is None or (port and port.isdecimal() and not 1 <= int(port) <= 65_535):
        raise TidegateError(
            Code.SOURCE_URL,
            # Digits alone are named: anything else might be a password in the wrong place.
            f"The URL's port {port} is not between 1 and 65535."
            if port and port.isdecimal()
            else "The host and port in the source's URL cannot be read.",
            hint="Write host:port, [::1]:port for IPv6; a port is a number from 1 to 65535.",
        )
    number = int(port) if port and port.isdecimal() else None
    return Place(unquote(found[1]).removeprefix("[").removesuffix("]"), number)


def _match(pattern: re.Pattern[str], text: str) -> str:
    found = pattern.match(text)
    return found[0] if found else ""


class Location(msgspec.Struct, frozen=True):
    """What a listing shows of a URL. `host` is empty and `port` 0 for a database in a file; several
    hosts have commas between them, and `port` is the first one's."""

    host: str
    port: int
    database: str
    user: str


UNREADABLE = Location("(unreadable URL)", 0, "", "")
"""What a listing shows of a URL that cannot be read."""


def locate_file(url: str) -> Location:
    """The name of the file, never its path or whether it is there."""
    name = unquote(url.partition("://")[2].partition("?")[0]).rpartition("/")[2]
    return Location("", 0, name.rpartition(".")[0] or name, "")


def locate_server(url: str, default_port: int) -> Location:
    """Hosts, port, database and user, each where a client of the database would read it: an
    option such as `host` counts before the authority. Nothing is looked up, no secret is read.

    Returns `UNREADABLE` for a URL that cannot be read.
    """
    try:
        server = parse_server_url(url)
    except TidegateError:
        return UNREADABLE
    options = dict(parse_qsl(server.query, keep_blank_values=True))
    hosts = ",".join([place.host for place in server.places])
    port = options.get("port", "").partition(",")[0]
    return Location(
        options.get("socket") or options.get("host") or hosts,
        int(port) if port.isdecimal() and len(port) <= 5 else server.places[0].port or default_port,
        options.get("dbname") or server.database,
        options.get("user") or server.user,
    )


def scheme_of(url: str) -> str:
    """The lower-case scheme, without a driver's name (`sqlite+pysqlite` is `sqlite`).

    Raises: TidegateError SOURCE_URL if there is none.
    """
    scheme, separator, _ = url.partition("://")
    if not separator or not scheme:
        raise TidegateError(
            Code.SOURCE_URL,
            "A source's URL starts with a scheme and `://`.",
            hint="Write it like `sqlite:////absolute/path.db`.",
        )
    return scheme.partition("+")[0].lower()


def parse_file_url(
    url: str, known_options: Iterable[str], given: Mapping[str, str] = NONE_GIVEN
) -> FileUrl:
    """Read the URL of a database that is a file, which must be there.

    A name is tried as it is written, then with its percent escapes decoded. `given` are the options
    of the source in addition to its URL.
    Raises: TidegateError SOURCE_URL, SOURCE_UNREACHABLE (names the absolute path that was tried).
    """
    rest = url.partition("://")[2]
    rest, _, query = rest.partition("?")
    options = _all_options(query, known_options, given)
    host, slash, path = rest.partition("/")
    if host:
        raise TidegateError(
            Code.SOURCE_URL,
            "The URL of a database file has no host.",
            hint="Use three slashes before a relative path and four before an absolute one.",
        )
    if not slash or path in ("", ":memory:"):
        return FileUrl(None, options)
    if "\0" in path or "%00" in path:
        raise TidegateError(Code.SOURCE_URL, "A file name cannot hold a NUL character.")
    if path.startswith("file:"):
        raise TidegateError(
            Code.SOURCE_URL,
            "SQLite's own `file:` names are not read here.",
            hint="Write the plain path after the third slash, and options after a `?`.",
        )
    return FileUrl(_existing(path), options)


FOLDER_SCHEME = "files"


def folder_path(url: str) -> str:
    """The path that a `files://` URL names: from the third slash on, or relative after `./`, `../`
    or `~/`. Raises: TidegateError SOURCE_URL."""
    path = url.partition("://")[2].partition("?")[0]
    if "\0" in path or "%00" in path:
        raise TidegateError(Code.SOURCE_URL, "A folder's name cannot hold a NUL character.")
    first = path.partition("/")[0]
    if not path or first not in ("", ".", "..", "~"):
        raise TidegateError(
            Code.SOURCE_URL,
            "The URL of a folder has no host.",
            hint="Write files:///absolute/folder, or files://./folder for a relative one.",
        )
    return str(expand(path).absolute())


def parse_folder_url(
    url: str, known_options: Iterable[str], given: Mapping[str, str] = NONE_GIVEN
) -> tuple[str, Mapping[str, str]]:
    """The folder of a `files://` URL, which must be there, and the options.

    A name is tried as it is written, then with its percent escapes decoded.
    Raises: TidegateError SOURCE_URL, SOURCE_UNREACHABLE (names the absolute path that was tried).
    """
    options = _all_options(url.partition("?")[2], known_options, given)
    written = folder_path(url)
    for candidate in (written, unquote(written)):
        if os.path.isdir(candidate):  # noqa: PTH112 - Path.is_dir hides permission errors
            return candidate, options
    if os.path.exists(written):  # noqa: PTH110 - as above
        raise TidegateError(
            Code.SOURCE_URL,
            f"{written} is not a folder.",
            hint="Name the folder that the file is in.",
            details={"path": written},
        )
    raise TidegateError(
        Code.SOURCE_UNREACHABLE,
        f"There is no folder at {written}.",
        hint="Write files:///absolute/folder, or files://./folder for a relative one.",
        details={"path": written},
    )


def file_of(url: str) -> str | None:
    """The absolute path of a database file; None for a database in memory. Raises: TidegateError
    SOURCE_UNREACHABLE, SOURCE_URL."""
    path = url.partition("://")[2].partition("?")[0].partition("/")[2]
    return None if path in ("", ":memory:") else _existing(path)


def is_in_memory(url: str) -> bool:
    """Whether the URL of a database file names one in memory."""
    return url.partition("://")[2].partition("?")[0].partition("/")[2] in ("", ":memory:")


def require_file(url: str) -> None:
    """See that the file or folder of a URL is there. Raises: TidegateError SOURCE_UNREACHABLE,
    SOURCE_URL."""
    if scheme_of(url) == FOLDER_SCHEME:
        parse_folder_url(url.partition("?")[0], ())
        return
    host, _, path = url.partition("://")[2].partition("?")[0].partition("/")
    if not host and path not in ("", ":memory:"):
        _existing(path)


def _existing(path: str) -> str:
    written = str(expand(path).absolute())
    decoded = str(expand(unquote(path)).absolute())
    for candidate in (written, decoded):
        if os.path.isdir(candidate):  # noqa: PTH112 - Path.is_dir hides permission errors
            raise TidegateError(
                Code.SOURCE_URL,
                f"{candidate} is a directory, not a database.",
                hint="Correct the source's URL: it must name the database's file.",
                details={"path": candidate},
            )
        if os.path.exists(candidate):  # noqa: PTH110 - as above
            return candidate
    raise TidegateError(
        Code.SOURCE_UNREACHABLE,
        f"There is no file at {written}.",
        hint="Check the path: three slashes begin a relative path, four an absolute one.",
        details={"path": written},
    )


def _all_options(query: str, known: Iterable[str], given: Mapping[str, str]) -> dict[str, str]:
    """The options of the URL and those that the source has in addition. Raises: TidegateError
    SOURCE_URL, also for one that is in both."""
    options = read_options(query, known)
    for name, value in given.items():
        if name in options:
            raise TidegateError(
                Code.SOURCE_URL,
                f"The option `{name}` is in the URL and among the source's options.",
                hint="Remove one of them.",
            )
        options[name] = value
    return options


def read_options(query: str, known: Iterable[str]) -> dict[str, str]:
    """The options after a URL's `?`. Raises: TidegateError SOURCE_URL if one is unknown or
    twice."""
    options: dict[str, str] = {}
    names = sorted(known)
    for name, value in parse_qsl(query, keep_blank_values=True):
        if name not in names:
            near = difflib.get_close_matches(name, names, 1)
            hint = f"Did you mean `{near[0]}`?" if near else f"Known: {', '.join(names)}."
            raise TidegateError(
                Code.SOURCE_URL, f"The URL has an unknown option `{name}`.", hint=hint
            )
        if name in options:
            raise TidegateError(Code.SOURCE_URL, f"The URL gives the option `{name}` twice.")
        options[name] = value
    return options
