"""Opens the database of a JDBC URL that a caller names, as a source of its session.

The rule is that of every temporary source: a host or a directory that the operator has listed. A
client on stdio may also name this machine itself, and a URL that an environment variable holds is
the operator's own. Databases with an engine of ours need no driver; what names a driver, or has
none of our engines, goes to a Java process.
"""

from __future__ import annotations

import os
import re
import uuid
from collections.abc import Awaitable, Callable, Mapping
from fnmatch import fnmatchcase
from functools import partial
from typing import NamedTuple
from urllib.parse import unquote

from msgspec import structs

from tidegate.config.sources import SourceSettings, TemporarySourceSettings
from tidegate.engines.api import Engine, ProcessEngine
from tidegate.engines.common.errors import DRIVER
from tidegate.engines.common.url import UNREADABLE
from tidegate.engines.registry import locate
from tidegate.errors import Code, TidegateError
from tidegate.gateway.configured_sources import source_from_settings
from tidegate.gateway.handlers import HandlerParts, RequestHandler, prepare_source
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
from tidegate.model.requests import Call, Progress, Request
from tidegate.model.sources import Source
from tidegate.paths import expand
from tidegate.products.jdbc.engine.known_databases import known_database_of
from tidegate.products.jdbc.engine.native_url import NativeUrl, native_url, split_login
from tidegate.products.jdbc.engine.url import (
    JdbcUrl,
    coordinate_of,
    file_of,
    names_one_server,
    parse_jdbc_url,
)
from tidegate.products.jdbc.requests import OpenedJdbc, OpenJdbc
from tidegate.products.jdbc.settings import OpeningSettings
from tidegate.secrets.redaction import MASK
from tidegate.secrets.references import HeldSecret

STDIO_VARIABLES = ("DB_*", "JDBC_*")
"""What a call on stdio may name unless the settings say otherwise."""

DRIVER_FAULTS = frozenset(
    {
        Code.ENGINE_MISSING,
        Code.DRIVER_REPOSITORY,
        Code.DRIVER_UNRESOLVED,
        Code.DRIVER_UNTRUSTED,
        Code.CONFIG_INVALID,
    }
)
"""What is wrong where a driver cannot be had."""

UNAVAILABLE = frozenset({Code.DRIVER_REPOSITORY, Code.DRIVER_UNRESOLVED, Code.CONFIG_INVALID})
"""What is wrong where a library cannot be had, and is no sign of tampering."""

_OWN_ENGINE = "The driver that was named is not there; Tidegate's own engine serves this URL."

_AMBIGUOUS = re.compile(r"[%\\]")
_REFERENCE = re.compile(r"\$\{([A-Za-z_]\w*)\}|env:([A-Za-z_]\w*)", re.ASCII)
_COORDINATE = re.compile(r"[\w.-]+:[\w.-]+:[\w.+-]+", re.ASCII)
_FIELDS = ("url", "user", "password", "driver", "dependency", "repository")
_WORDS = re.compile(r"[\w.-]{3,}")
_SHORT = 2
"""Characters of what could be part of any word."""
_COMMON = frozenset(
    {"jdbc", "localhost", "127.0.0.1", "mem", "file", "tcp", "database", "server", "oracle", "thin"}
    | {"postgresql", "mysql", "mariadb", "sqlite", "duckdb", "hsqldb", "derby", "sqlserver"}
)
"""Words of URLs that say nothing of a place."""


Report = Callable[[str], None]
Locate = Callable[[Source, Report], Awaitable[object]]
"""Sees to it that a source's driver is there; the report gets each library that is downloaded."""


class _Given(NamedTuple):
    """What a call gave, with the values of the environment in place; `secret` are these values."""

    values: Mapping[str, str | None]
    resolved: frozenset[str]
    redact: Callable[[str], str]


def make_handler(parts: HandlerParts, request: type[Request]) -> RequestHandler:
    """What answers `OpenJdbc`."""
    sources = JdbcSources(
        parts.connections,
        parts.config.temporary_sources,
        parts.config.section(OpeningSettings),
        partial(prepare_source, parts),
    )
    return sources.open


class JdbcSources:
    """Answers `OpenJdbc` requests by the settings."""

    def __init__(
        self,
        connections: SourceConnections,
        settings: TemporarySourceSettings,
        own: OpeningSettings,
        locate: Locate,
    ) -> None:
        self._connections = connections
        self._settings = settings
        self._opening = own
        self._locate = locate
        self._own = str(uuid.uuid4())
        """Keeps the processes of callers apart from those that saved sources name."""

    async def open(self, call: Call, _: tuple[Source, ...]) -> OpenedJdbc:
        """Open the source and connect to it.

        Raises: TidegateError ARGUMENT_INVALID for a variable that may not be named or is not set,
        SOURCE_URL, POLICY_DENIED by the rule `source.temporary`, ENGINE_MISSING,
        SOURCE_UNREACHABLE. No message shows what the environment holds.
        """
        request = call.request
        if not isinstance(request, OpenJdbc):
            raise TypeError(type(request).__name__)
        given = self._resolve(call, request)
        try:
            try:
                return await self._open(call, request.name, given)
            except TidegateError as error:
                if not _can_do_without(error, given):
                    raise
                values = {**given.values, **dict.fromkeys(("driver", "dependency", "repository"))}
                opened = await self._open(call, request.name, given._replace(values=values))
                note = f"{_OWN_ENGINE} {given.redact(error.message)} {_how_to_get(given)}"
                return structs.replace(opened, note=note)
        except TidegateError as error:
            raise _redacted(error, given.redact) from None

    async def _open(self, call: Call, name: str, given: _Given) -> OpenedJdbc:
        values = given.values
        url, login = split_login(values["url"] or "")
        user = values["user"] if values["user"] is not None else login.user
        password = values["password"] if values["password"] is not None else login.password
        if "$" in url or not url.lower().startswith("jdbc:"):
            raise TidegateError(
                Code.SOURCE_URL,
                "A JDBC URL begins with `jdbc:` and the name of a database.",
                hint="Write it like jdbc:postgresql://host:port/database.",
            )
        wants_driver = values["driver"] is not None or values["dependency"] is not None
        native = None if wants_driver else native_url(url)
        parsed = parse_jdbc_url(url) if native is None else None
        if "url" not in given.resolved:
            self._check_allowed(call, native, parsed)
        if native is not None and native.needs_user and user is None:
            raise TidegateError(
                Code.ARGUMENT_INVALID,
                "The connect parameter `user` is missing: the server's own login is not used.",
                hint="Give `user`, and `password` as a reference such as ${DB_PASSWORD}.",
                details={"field": "user"},
            )
        held = HeldSecret(password) if password else None
        unavailable: TidegateError | None = None
        try:
            if native is not None:
                account = native.with_account(user, held.reference if held else None)
                settings = SourceSettings(name=name, url=account)
            else:
                options = self._options(url, user, held, values, call.actor.id)
                settings = SourceSettings(name=name, url=url, options=options)
            given_by_operator = "url" in given.resolved
            directories = (os.sep,) if given_by_operator else self._settings.directories
            check = files_check(self._connections, settings.url, directories)
            await self._check_not_saved(settings.url, check)
            if native is None:
                settings, unavailable = await self._with_driver(settings, call.progress)
            source = self._add(call, settings, held, check)
        except BaseException as error:
            if held is not None:
                held.release()
            if isinstance(error, TidegateError):
                _say_what_to_give(error, url, wants_driver=wants_driver)
            raise
        try:
            engine = await self._connect(call.session or call.actor.id, name)
        except TidegateError as error:
            if unavailable is not None and error.code is Code.ENGINE_MISSING:
                error = unavailable
            _say_what_to_give(error, url, wants_driver=wants_driver)
            raise error from None
        in_process = engine if isinstance(engine, ProcessEngine) else None
        dependency = settings.options.get("driver_coordinate")
        return OpenedJdbc(
            source,
            native.driver if native is not None else in_process.driver_class if in_process else "",
            native is not None,
            dependency,
            given.redact,
            _shown_place(call.request, settings.url, given),
            in_process.process_id if in_process is not None else "",
            f"The driver that is there already is used. {given.redact(unavailable.message)}"
            if unavailable is not None
            else "",
        )

    async def _with_driver(
        self, settings: SourceSettings, progress: Progress | None
    ) -> tuple[SourceSettings, TidegateError | None]:
        """The settings, once their driver is in the cache, downloaded if need be. Where it cannot
        be had, those of a driver that is there already, with the reason. Raises: TidegateError."""
        report = _reporter(progress)
        try:
            await self._locate(source_from_settings(settings), report)
        except TidegateError as error:
            asked = settings.options.get("driver_coordinate")
            absent = error.code in UNAVAILABLE or error.details.get("rule") == "drivers.download"
            if asked is None or not absent:
                raise
            options = {
                name: value
                for name, value in settings.options.items()
                if name not in ("driver_coordinate", "driver_repository")
            }
            if self._opening.driver_path:
                options["driver_path"] = self._opening.driver_path
            return structs.replace(settings, options=options), error
        return settings, None

    def _add(
        self,
        call: Call,
        settings: SourceSettings,
        held: HeldSecret | None,
        check: Callable[[], Awaitable[None]] | None,
    ) -> Source:
        """Add the source; the password is forgotten when it ends."""
        source = source_from_settings(settings)
        limits = self._settings
        owner = call.session or call.actor.id
        return self._connections.add_temporary(
            source,
            str(uuid.uuid4()),
            owner,
            limits.lifetime_s,
            limits.per_owner,
            held.release if held is not None else None,
            check,
        )

    async def _connect(self, owner: str, name: str) -> Engine:
        connection = self._connections.find_temporary(owner, name)
        if connection is None:
            raise TidegateError(Code.SOURCE_UNKNOWN, "The session ended while it connected.")
        try:
            return await self._connections.engine(connection)
        except BaseException:
            await self._connections.close_temporary(owner, name)
            raise

    def _resolve(self, call: Call, request: OpenJdbc) -> _Given:
        """Put the values of environment variables in their places. Raises: TidegateError
        ARGUMENT_INVALID."""
        settings = self._opening.environment
        allowed = settings if settings is not None else () if call.address else STDIO_VARIABLES
        values: dict[str, str | None] = {}
        resolved: set[str] = set()
        for field in _FIELDS:
            value: str | None = getattr(request, field)
            found = None if value is None else _REFERENCE.fullmatch(value)
            if found is not None:
                value = _variable(found[1] or found[2], field, allowed)
                resolved.add(field)
            # Clients send an empty text for what they leave out.
            values[field] = value if value or field == "url" else None
        secrets = [value for field, value in values.items() if field in resolved and value]
        return _Given(values, frozenset(resolved), _redactor(secrets, values["password"]))

    def _check_allowed(self, call: Call, native: NativeUrl | None, parsed: JdbcUrl | None) -> None:
        """Apply the rule `source.temporary`. Raises: TidegateError POLICY_DENIED."""
        settings = self._settings
        hosts = settings.hosts if call.address else (*settings.hosts, *self._opening.stdio_hosts)
        local = parsed is not None and parsed.kind in ("file", "memory")
        if local or (native is not None and not native.is_server):
            path = native.path if native else file_of(parsed) if parsed else None
            if parsed is not None and _AMBIGUOUS.search(parsed.target):
                raise denied(
                    "The file's name has a `%` or a backslash, which drivers read in"
                    " ways that differ."
                )
            # An engine of ours takes a name as it is written, or else with its escapes decoded.
            for name in () if path is None else (path, unquote(path)):
                if not is_below(str(expand(name)), settings.directories):
                    raise denied("The file is in no directory that the operator has listed.")
            return
        url = native.url if native is not None else parsed.text if parsed is not None else ""
        place = locate(url)
        if place is UNREADABLE:
            raise TidegateError(
                Code.SOURCE_URL,
                "The host or the port of the URL cannot be read.",
                hint="Write it like jdbc:postgresql://host:port/database.",
            )
        port = place.port or (parsed.product.port if parsed is not None else None) or ""
        if not place.host:
            raise denied("The URL names no host that could be checked.")
        if parsed is not None and not names_one_server(parsed):
            refusal = denied("The URL does not say plainly which host its driver connects to.")
            refusal.hint = (
                "Write //host:port, without options, after the names before it, such as"
                " jdbc:oracle:thin:@//host:1521/service; or ask the operator to add the source."
            )
            raise refusal
        if not is_listed_host(place.host, port, hosts):
            raise denied(f"The host {place.host[:80]!r} is not on the operator's list.")

    def _options(
        self,
        url: str,
        user: str | None,
        held: HeldSecret | None,
        values: Mapping[str, str | None],
        actor: str,
    ) -> dict[str, str]:
        """The options of a source with a JDBC driver. What one actor opens with one driver has
        one Java process. Raises: TidegateError ARGUMENT_INVALID."""
        dependency, driver = values["dependency"], values["driver"]
        if dependency is not None and _COORDINATE.fullmatch(dependency) is None:
            raise TidegateError(
                Code.ARGUMENT_INVALID,
                f"Invalid dependency format: {dependency[:80]}. Expected group:artifact:version.",
                details={"field": "dependency"},
            )
        options = {
            "restart": "false",  # its caller shall know that a session was lost
            "process": f"{self._own} {actor} {driver or known_database_of(url).driver}",
        }
        if dependency is not None:
            options["driver_coordinate"] = dependency
            if values["repository"] is not None:
                options["driver_repository"] = values["repository"]
        elif self._opening.driver_path:
            options["driver_path"] = self._opening.driver_path
        if driver is not None:
            options["driver"] = driver
        if user is not None:
            options["user"] = user
        if held is not None:
            options["password"] = held.reference
        return options

    async def _check_not_saved(self, url: str, check: Callable[[], Awaitable[None]] | None) -> None:
        """Raises: TidegateError POLICY_DENIED for a database that is a source already, or whose
        files are elsewhere."""
        try:
            if check is None:
                await refuse_saved(self._connections, url)
            else:
                await check()
        except TidegateError as error:
            if error.details.get("rule") == RULE and error.message == SAVED:
                error.hint = "Connect to it by the name of the source, in place of a URL."
            raise


def _can_do_without(error: TidegateError, given: _Given) -> bool:
    """Whether the driver that was named cannot be had, and is the one that the URL is made for: an
    engine of ours then gives the same. A library that is not what it says stays an error."""
    url, _ = split_login(given.values["url"] or "")
    driver, dependency = given.values["driver"], given.values["dependency"]
    if driver is None and dependency is None:
        return False
    absent = error.code in UNAVAILABLE or error.code is Code.ENGINE_MISSING
    if not absent and error.details.get("rule") != "drivers.download":
        return False
    try:
        native = native_url(url)
    except TidegateError:
        return False
    known = coordinate_of(url).rpartition(":")[0]
    return (
        native is not None
        and driver in (None, native.driver)
        and (dependency is None or dependency.rpartition(":")[0] == known)
    )


def _how_to_get(given: _Given) -> str:
    """The command that gets the driver that a call named."""
    url, _ = split_login(given.values["url"] or "")
    named = given.values["dependency"] or coordinate_of(url)
    return f"For the driver itself, have the operator run `tidegate driver fetch {named}`."


def _say_what_to_give(error: TidegateError, url: str, *, wants_driver: bool) -> None:
    """Put the parameters of `connect` into the hint of an error whose hint is for an operator."""
    if error.code is Code.ENGINE_MISSING:
        known = coordinate_of(url)
        named = f", such as {known}" if known else ""
        error.hint = (
            f"Name the library of the driver as `dependency`{named}, or have the operator run"
            f" `tidegate driver fetch {known or 'COORDINATE'}`."
        )
        if wants_driver:
            error.hint += " Or correct `driver`."
    elif error.code is Code.SOURCE_URL and error.details.get("cause") == DRIVER:
        error.hint = "Correct `url`, or `driver` where you named one."
    if wants_driver and error.code in DRIVER_FAULTS and native_url(url) is not None:
        error.hint += " Without `driver` and `dependency` no driver is needed here."


def _reporter(progress: Progress | None) -> Report:
    """Reports the libraries of a driver, whose number is not known, as progress that grows."""
    done = 0

    def report(library: str) -> None:
        nonlocal done
        done += 1
        if progress is not None:
            progress(done / (done + 1), f"Downloading {library}")

    return report


def _variable(name: str, field: str, allowed: tuple[str, ...]) -> str:
    """The value of an environment variable. Whether one that may not be named is set is not said.
    Raises: TidegateError ARGUMENT_INVALID."""
    if not any(fnmatchcase(name, pattern) for pattern in allowed):
        raise TidegateError(
            Code.ARGUMENT_INVALID,
            f"The environment variable '{name[:80]}' may not be used for connect parameter"
            f" '{field}'.",
            hint=f"Allowed here: {', '.join(allowed) or 'none'}. The operator lists others under"
            " `jdbc.environment`.",
            details={"rule": RULE, "field": field},
        )
    value = os.environ.get(name)
    if value is None:
        raise TidegateError(
            Code.ARGUMENT_INVALID,
            f"Missing environment variable '{name[:80]}' for connect parameter '{field}'.",
            hint="Set it where the server starts, and start the server again.",
            details={"field": field},
        )
    return value


def _redactor(secrets: list[str], password: str | None) -> Callable[[str], str]:
    """A function that takes values of the environment and a password out of a text, and their
    parts."""
    parts: set[str] = {password} if password and len(password) > _SHORT else set()
    for secret in secrets:
        parts.add(secret)
        parts.update(word for word in _WORDS.findall(secret) if word.lower() not in _COMMON)
    ordered = sorted(parts, key=len, reverse=True)
    if not ordered:
        return str
    pattern = re.compile("|".join(map(re.escape, ordered)), re.IGNORECASE)
    return lambda text: pattern.sub(MASK, text)


def _redacted(error: TidegateError, redact: Callable[[str], str]) -> TidegateError:
    shown = TidegateError(
        error.code,
        redact(error.message),
        hint=redact(error.hint),
        retry_after_s=error.retry_after_s,
        details={
            name: value
            for name, value in error.details.items()
            if name in ("cause", "sqlstate", "rule", "field")
        },
    )
    shown.call_id = error.call_id
    return shown


def _shown_place(request: object, url: str, given: _Given) -> str:
    """Where a source is, for the records: never an account, and of a URL from the environment the
    name of its variable."""
    if "url" in given.resolved and isinstance(request, OpenJdbc):
        return request.url
    place = locate(url)
    host = f"{place.host}:{place.port}/" if place.port else ""
    return f"{host}{place.database}"
