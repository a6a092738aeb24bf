"""Decides what a source's URL names: scheme, file, options. Opens nothing, except to see a file.

File URLs are read as SQLAlchemy reads them: `sqlite:///relative.db`, `sqlite:////absolute.db`,
`sqlite://` and `sqlite:///:memory:` for a database in memory.
"""

from __future__ import annotations

import difflib
import os
from collections.abc import Iterable, Mapping
from pathlib import Path
from urllib.parse import parse_qsl, unquote

import msgspec

from tidegate.errors import Code, TidegateError


class FileUrl(msgspec.Struct, frozen=True):
    """A database in one file; `path` is absolute, None means in memory."""

    path: str | None
    options: Mapping[str, str] = {}

    @property
    def name(self) -> str:
        """What the database is called: the file's stem, `main` in memory."""
        return Path(self.path).stem if self.path else "main"


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


def parse_file_url(url: str, known_options: Iterable[str]) -> FileUrl:
    """Read the URL of a database that is a file, which must be there.

    A name is tried as it is written, then with its percent escapes decoded.
    Raises: TidegateError SOURCE_URL, SOURCE_UNREACHABLE (names the absolute path that was tried).
    """
    rest = url.partition("://")[2]
    rest, _, query = rest.partition("?")
    options = read_options(query, known_options)
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


def require_file(url: str) -> None:
    """See that the file of a database URL is there. Raises: TidegateError SOURCE_UNREACHABLE."""
    host, _, path = url.partition("://")[2].partition("?")[0].partition("/")
    if not host and path not in ("", ":memory:"):
        _existing(path)


def _existing(path: str) -> str:
    written = str(Path(path).expanduser().absolute())
    decoded = str(Path(unquote(path)).expanduser().absolute())
    for candidate in (written, decoded):
        if os.path.isdir(candidate):  # noqa: PTH112 - Path.is_dir hides permission errors
            raise TidegateError(
                Code.SOURCE_UNREACHABLE,
                f"{candidate} is a directory, not a database.",
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


def read_options(query: str, known: Iterable[str]) -> dict[str, str]:
    """The options behind a URL's `?`. Raises: TidegateError SOURCE_URL if one is unknown or
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
