"""JDBC URLs: where the database is, and which parameters the URL has. Pure except for `~`.

A URL begins with `jdbc:` and a name of the database; what follows is the driver's own. Parameters
follow a `?`, with `&` between them, or a `;`. Only those are taken that
`products.KnownDatabase.parameters` lists: drivers have others that run code, read files or send
credentials elsewhere.
"""

from __future__ import annotations

import difflib
import re
from collections.abc import Mapping
from typing import Literal
from urllib.parse import unquote

import msgspec

from tidegate.engines.common.url import UNREADABLE, Location, parse_server_url
from tidegate.errors import Code, TidegateError
from tidegate.paths import expand
from tidegate.products.jdbc.engine.known_databases import OTHER, KnownDatabase, known_database_of

Kind = Literal["server", "file", "memory", "other"]

_SCHEME = re.compile(r"(?i)jdbc:[a-z][a-z0-9+.-]*:")
_FILE = re.compile(r"(?is)((?:(?:file|split|nio|directory):)*)(.*)")
_INSIDE = re.compile(r"(?i)(?:zip|jar|classpath|res|cipher|encrypt):|:resource:")
_SERVER = re.compile(r"(?i)(?:[a-z][a-z0-9_+-]*:)*(?:@(?:tcps?:)?)?(//.*)", re.DOTALL)
"""The part of a URL after the name of the database, from which on it is read as others are."""
_ONE_HOST = re.compile(r"//(?:[\w.-]+|\[[0-9A-Fa-f:.]+\])(?::\d+)?(/.*)?", re.DOTALL)
_PLAIN_NAME = re.compile(r"(?:/(?:\w[\w$.-]*)?)?", re.ASCII)
_CREATES = frozenset({"create"})
_IN_MEMORY = frozenset({"create", "DB_CLOSE_DELAY"})
"""Parameters that are taken for a database in memory only."""


class JdbcUrl(msgspec.Struct, frozen=True):
    """A URL, taken apart. `target` is what is between the name of the database and the
    parameters; `text` is the whole, as the driver gets it. It may hold a password: never write it
    anywhere."""

    text: str
    product: KnownDatabase
    kind: Kind
    target: str
    parameters: Mapping[str, str]

    def with_parameters(self, more: Mapping[str, str]) -> str:
        """The URL with further parameters, in the way in which this database writes them."""
        if not more:
            return self.text
        head, mark, tail = _split(self.text)
        mark = mark or self.product.mark
        between = "&" if mark == "?" else ";"
        given = [tail] if tail else []
        return head + mark + between.join([*given, *[f"{k}={v}" for k, v in more.items()]])


def parse_jdbc_url(url: str) -> JdbcUrl:
    """Take a JDBC URL apart and check its parameters.

    Raises: TidegateError SOURCE_URL for what is no JDBC URL, or has a parameter that is not taken.
    The message holds no value of a parameter.
    """
    if not _SCHEME.match(url) or "\0" in url:
        raise TidegateError(
            Code.SOURCE_URL,
            "Invalid URL: a JDBC URL begins with `jdbc:` and the name of a database.",
            hint="Write it like jdbc:postgresql://host:port/database.",
        )
    product = known_database_of(url)
    head, mark, tail = _split(url)
    target = _SCHEME.sub("", head, count=1)
    kind = _kind(product, target)
    parameters = _parameters(tail, mark, product, kind)
    if kind == "server" and target.startswith("//") and product.mark == "?":
        parse_server_url(f"jdbc:{target}")
    return JdbcUrl(url, product, kind, target, parameters)


def dialect_of(url: str) -> str:
    """The dialect of the database of a URL."""
    return known_database_of(url).dialect


def path_of(url: str) -> str | None:
    """The file of the database of a URL, if it has one."""
    return file_of(parse_jdbc_url(url))


def is_in_memory(url: str) -> bool:
    """Whether the database of a URL is in the memory of its Java."""
    return parse_jdbc_url(url).kind == "memory"


def exclusive_path_of(url: str, changes: bool) -> str | None:
    """The file that a Java has alone while it has it open, to change it or not; None if there is
    none."""
    parsed = parse_jdbc_url(url)
    exclusive = parsed.product.exclusive
    return (
        file_of(parsed) if exclusive == "always" or (changes and exclusive == "changed") else None
    )


def locate_jdbc(url: str) -> Location:
    """What a listing shows of a JDBC URL; never raises."""
    try:
        parsed = parse_jdbc_url(url)
    except TidegateError:
        return UNREADABLE
    if parsed.kind != "server":
        name = re.split(r"[/:\\]", parsed.target)[-1]
        return Location("", 0, name.partition(".")[0] or name, "")
    found = _SERVER.fullmatch(parsed.target)
    try:
        server = parse_server_url(f"jdbc:{found[1] if found else ''}")
    except TidegateError:
        return UNREADABLE
    hosts = ",".join([place.host for place in server.places])
    database = parsed.parameters.get("databaseName") or server.database
    return Location(hosts, server.places[0].port or parsed.product.port or 0, database, server.user)


def names_one_server(url: JdbcUrl) -> bool:
    """Whether every driver would find the same server in a URL as `locate_jdbc` does. Drivers that
    are not known may take what follows a host for a path, or for parameters."""
    found = _SERVER.fullmatch(url.target) if url.kind == "server" else None
    one = None if found is None else _ONE_HOST.fullmatch(found[1])
    if one is None:
        return False
    return url.product is not OTHER or _PLAIN_NAME.fullmatch(one[1] or "") is not None


def file_of(url: JdbcUrl) -> str | None:
    """The path of a database in a file, without the endings that the database adds; None for
    another."""
    if url.kind != "file":
        return None
    found = _FILE.fullmatch(url.target)
    return None if found is None else str(expand(unquote(found[2])).absolute())


def coordinate_of(url: str) -> str:
    """The coordinate that is known of the driver for a URL; empty for one that is not known."""
    product = known_database_of(url)
    try:
        serves = parse_jdbc_url(url).kind == "server"
    except TidegateError:
        serves = False
    return (serves and product.server_coordinate) or product.coordinate


def absolute_url(url: str) -> str:
    """The URL with the path of a database file made absolute: the JVM runs in a folder of its own.

    A URL that cannot be read stays as it is.
    """
    try:
        parsed = parse_jdbc_url(url)
    except TidegateError:
        return url
    if parsed.kind != "file":
        return url
    before, mark, parameters = _split(url)
    path = re.sub(_FILE, r"\2", parsed.target, count=1)
    head = before.removesuffix(path)
    return f"{head}{expand(path).absolute()}{mark}{parameters}"


def _split(url: str) -> tuple[str, str, str]:
    """(before the parameters, the mark that begins them, the parameters)."""
    found = re.search(r"[?;]", url)
    return (url, "", "") if found is None else (url[: found.start()], found[0], url[found.end() :])


def _kind(product: KnownDatabase, target: str) -> Kind:
    if not product.in_process:
        return "server" if "//" in target or product.port else "other"
    if target.startswith(product.servers):
        return "server"
    name = re.fullmatch(r"(\w+:)[^/\\]*", target)
    if target in product.memory or (name is not None and name[1] in product.memory):
        return "memory"
    if _INSIDE.match(target):
        raise TidegateError(
            Code.SOURCE_URL,
            "Invalid URL: a database inside an archive or a resource is not opened.",
            hint="Copy the database to a file and name that.",
        )
    return "file"


def _parameters(tail: str, mark: str, product: KnownDatabase, kind: Kind) -> dict[str, str]:
    found: dict[str, str] = {}
    for part in re.split(r"&" if mark == "?" else r";", tail):
        if not part:
            continue
        name, _, value = part.partition("=")
        name = unquote(name).strip()
        _check_parameter(name, value, product, kind)
        if name in found:
            raise TidegateError(Code.SOURCE_URL, f"The URL gives the parameter `{name}` twice.")
        found[name] = unquote(value)
    return found


def _check_parameter(name: str, value: str, product: KnownDatabase, kind: Kind) -> None:
    if kind == "memory" and name in _IN_MEMORY:
        return
    if name in _CREATES:
        raise TidegateError(
            Code.SOURCE_URL,
            f"The URL's parameter `{name}` is refused: connecting creates no database.",
            hint="Create the database with its own tools, then connect without the parameter.",
        )
    if name in product.parameters and re.fullmatch(r"[\w.,:+/-]*", value):
        return
    near = difflib.get_close_matches(name, product.parameters, 1)
    known = ", ".join(sorted(product.parameters)) or "none"
    raise TidegateError(
        Code.SOURCE_URL,
        f"The URL's parameter `{name[:80]}` is not taken for {product.title}.",
        hint=f"Did you mean `{near[0]}`?" if near else f"Taken: {known}.",
    )
