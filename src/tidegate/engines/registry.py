"""Finds the engine of a source by the beginning of its URL, and opens it.

An engine's module is imported when the first source of its kind is opened. To add an engine: one
folder with a class that has the members of `api.Engine`, one line in `ENGINES`, one case in
`tests/support/engine_cases.py`. CONTRIBUTING.md shows each.
"""

from __future__ import annotations

import difflib
import re
from collections.abc import Callable, Iterable, Sequence
from contextlib import AbstractAsyncContextManager, nullcontext
from importlib import import_module
from typing import NamedTuple, cast

from msgspec import structs

from tidegate.engines.api import Engine
from tidegate.engines.common.account import AccountGuide
from tidegate.engines.common.url import (
    FOLDER_SCHEME,
    UNREADABLE,
    Location,
    file_of,
    folder_path,
    locate_file,
    locate_server,
    scheme_of,
)
from tidegate.engines.ssh.url import SshRoute, parse_route
from tidegate.errors import Code, TidegateError
from tidegate.model.language import Language
from tidegate.model.sources import RunAs, Source
from tidegate.secrets import keyring_entries_of, resolve_option


class Entry(NamedTuple):
    """The module and class of an engine, and what is known of it before it is imported.

    `dialect` is a name, or a function of the URL where one engine speaks several. `extra` is the
    optional dependency that brings its driver. `port` is where its servers listen by default; an
    engine with a port can be reached through an SSH tunnel. `identities`: see `api.Capabilities`.
    `language` is the module that defines the engine's `LANGUAGE` (`model.language.Language`).
    `options` are the names that a source's `options` may have, `NAME.*` for any that begins so; the
    engine reads them with `resolve_options`. `compares_rows`: it finds out whether a change was
    about every row of its table (`Permit.whole_changes`); else the text alone decides.
    `reads_only`: a source on it cannot have the access `write`. `locate` says what a listing shows
    of its URLs, where they are not written as others.
    `path` is the absolute path of the file or folder that a URL names, None where it names none.
    `own_functions`: a source on it may have `functions`: the engine knows in its database which
    functions users wrote, and that database keeps a read from changing anything.
    `reader` is the `module:function` by which the engine reads a URL and the source's options.
    """

    engine: str
    dialect: str | Callable[[str], str]
    module: str
    attribute: str
    extra: str | None = None
    port: int | None = None
    identities: bool = False
    language: str = "tidegate.sql.language"
    options: tuple[str, ...] = ()
    compares_rows: bool = False
    reads_only: bool = False
    locate: Callable[[str], Location] | None = None
    path: Callable[[str], str | None] | None = None
    own_functions: bool = False
    reader: str = ""

    def dialect_of(self, url: str) -> str:
        """The dialect that the database behind `url` speaks. The URL is not opened."""
        return self.dialect if isinstance(self.dialect, str) else self.dialect(url)

    def has_option(self, name: str) -> bool:
        """Whether a source may have the option."""
        return name in self.options or f"{name.partition('.')[0]}.*" in self.options


def _jdbc_dialect(url: str) -> str:
    from tidegate.engines.jdbc.products import product_of

    return product_of(url).dialect


def _locate_jdbc(url: str) -> Location:
    from tidegate.engines.jdbc.url import locate_jdbc

    return locate_jdbc(url)


def _jdbc_path(url: str) -> str | None:
    from tidegate.engines.jdbc.url import file_of, parse_jdbc_url

    return file_of(parse_jdbc_url(url))


def _locate_datalevin(url: str) -> Location:
    from tidegate.engines.datalevin.url import locate as locate_datalevin

    return locate_datalevin(url)


def _datalevin_path(url: str) -> str | None:
    from tidegate.engines.datalevin.url import path_of

    return path_of(url)


def _locate_cloud(url: str) -> Location:
    from tidegate.engines.cloud.options import locate as locate_cloud

    return locate_cloud(url)


def _locate_cloud_proxy(url: str) -> Location:
    from tidegate.engines.cloud_proxy.url import locate as locate_cloud_proxy

    return locate_cloud_proxy(url)


def _cloud_path(url: str) -> str | None:
    from tidegate.engines.cloud.options import path_of as cloud_folder

    return cloud_folder(url)


DATALEVIN = Entry(
    *("datalevin", "datalog", "tidegate.engines.datalevin", "DatalevinEngine", "datalog"),
    language="tidegate.datalog.language",
    options=("heap", "java", "journal", "private_copy_mb"),
    locate=_locate_datalevin,
    path=_datalevin_path,
)

POSTGRES = Entry(
    *("postgres", "postgres", "tidegate.engines.postgres", "PostgresEngine", "postgres", 5432),
    identities=True,
    compares_rows=True,
    own_functions=True,
    reader="tidegate.engines.postgres.url:parse_conninfo",
)

MYSQL = Entry(
    *("mysql", "mysql", "tidegate.engines.mysql", "MysqlEngine", "mysql", 3306),
    identities=True,
    compares_rows=True,
    own_functions=True,
    reader="tidegate.engines.mysql.url:parse_conninfo",
)

ENGINES: dict[str, Entry] = {
    "sqlite": Entry(
        "sqlite",
        "sqlite",
        "tidegate.engines.sqlite",
        "SqliteEngine",
        compares_rows=True,
        options=("timeout",),
        path=file_of,
        reader="tidegate.engines.sqlite.url:read_url",
    ),
    "postgres": POSTGRES,
    "postgresql": POSTGRES,
    "duckdb": Entry(
        "duckdb",
        "duckdb",
        "tidegate.engines.duckdb",
        "DuckdbEngine",
        "duckdb",
        compares_rows=True,
        options=("memory_limit", "threads", "timeout", "workers"),
        path=file_of,
        own_functions=True,
        reader="tidegate.engines.duckdb.url:DuckUrl",
    ),
    FOLDER_SCHEME: Entry(
        "files",
        "duckdb",
        "tidegate.engines.duckdb",
        "FilesEngine",
        "duckdb",
        options=("files", "memory_limit", "threads", "workers"),
        reads_only=True,
        path=folder_path,
        reader="tidegate.engines.duckdb.url:FolderUrl",
    ),
    "mysql": MYSQL,
    "mariadb": MYSQL,
    "datalevin": DATALEVIN,
    "dtlv": DATALEVIN,
    "cloud": Entry(
        *("cloud", "cloud", "tidegate.engines.cloud", "CloudEngine"),
        language="tidegate.cloud.language",
        options=(
            *("cache_bytes", "cache_seconds", "concurrency", "join_bytes", "join_rows"),
            *("max_calls", "max_calls_per_minute", "page_limit", "request_timeout", "settings"),
        ),
        locate=_locate_cloud,
        path=_cloud_path,
        reader="tidegate.engines.cloud.options:read_cloud_options",
    ),
    "cloud+postgresql:": Entry(
        *("cloud", "cloud", "tidegate.engines.cloud_proxy", "CloudProxyEngine", "postgres"),
        language="tidegate.cloud.language",
        options=("application_name", "connect_timeout", "plain_postgresql", "pool"),
        locate=_locate_cloud_proxy,
        reader="tidegate.engines.cloud_proxy.url:read_target",
    ),
    "jdbc:": Entry(
        "jdbc",
        _jdbc_dialect,
        "tidegate.engines.jdbc",
        "JdbcEngine",
        "jdbc",
        options=(
            *("connections", "driver", "driver_coordinate", "driver_path", "driver_repository"),
            *("heap", "java", "jvm_options", "password", "process", "property.*", "restart"),
            *("time_zone", "user", "variables"),
        ),
        locate=_locate_jdbc,
        path=_jdbc_path,
    ),
}
"""Engines by the scheme of their URLs, or by a longer prefix that ends in a colon (`jdbc:h2:`).

Of several prefixes that fit a URL, the longest counts.
"""


_BY_JDBC = {
    **dict.fromkeys(
        ("mssql", "sqlserver", "tds", "mssql+pyodbc"),
        "jdbc:sqlserver://host:1433;databaseName=NAME",
    ),
    **dict.fromkeys(("oracle", "oracle+oracledb"), "jdbc:oracle:thin:@//host:1521/SERVICE"),
    "snowflake": "jdbc:snowflake://ACCOUNT.snowflakecomputing.com/",
    **dict.fromkeys(("clickhouse", "clickhouses"), "jdbc:clickhouse://host:8123/NAME"),
    "db2": "jdbc:db2://host:50000/NAME",
    "trino": "jdbc:trino://host:8080/CATALOG",
    "h2": "jdbc:h2:/absolute/path",
    "hsqldb": "jdbc:hsqldb:file:/absolute/path",
    "derby": "jdbc:derby:/absolute/path",
    "hive": "jdbc:hive2://host:10000/NAME",
    "databricks": "jdbc:databricks://host:443/NAME",
}
"""How the URLs of other libraries are written for a JDBC driver."""

_LIKE_POSTGRES = {
    "redshift": "jdbc:redshift://host:5439/NAME",
    **dict.fromkeys(("cockroach", "cockroachdb"), "jdbc:postgresql://host:26257/NAME"),
}

_languages: dict[str, Language] = {}


def language_of(source: Source) -> Language:
    """The language of the source's engine. Its module is imported at the first call.

    Raises: TidegateError SOURCE_URL if no such engine is known; as `check_settings` for a source
    of the settings that cannot be used.
    """
    language = _languages.get(source.engine)
    if language is None:
        if not source.engine:
            check_settings(source)
        entry = next((each for each in ENGINES.values() if each.engine == source.engine), None)
        if entry is None:
            raise TidegateError(
                Code.SOURCE_URL,
                f"The source {source.name!r} names the engine {source.engine!r}, which is unknown",
                hint="Remove the source and add it again with its URL.",
            )
        language = cast("Language", import_module(entry.language).LANGUAGE)
        _languages[source.engine] = language
    return language


def compares_rows(source: Source) -> bool:
    """Whether the source's engine finds out that a change was about every row."""
    return any(each.compares_rows for each in ENGINES.values() if each.engine == source.engine)


def account_guide(source: Source) -> AccountGuide | None:
    """What the source's engine says of accounts; None if it has no module for that."""
    package = find(source.url).module
    try:
        return cast("AccountGuide", import_module(f"{package}.account"))
    except ModuleNotFoundError as error:
        if error.name != f"{package}.account":
            raise
        return None


async def set_up_account(
    url: str, script: Sequence[str], account: str, *, is_new: bool
) -> list[str]:
    """Run the script of an `AccountGuide` with the administrator's login in `url`, which is used
    for that alone; what the server notes meanwhile. `is_new` refuses an account that is there.

    Raises: TidegateError, where the engine has no transaction for it with the number of statements
    that ran in `details["done"]`; AccountExists; TimeoutError.
    """
    entry = find(url)
    module = import_module(f"{entry.module}.account_setup")
    route = _route(entry, url)
    async with _read_secrets(url):
        if route is None:
            return cast("list[str]", await module.run_script(url, script, account, is_new=is_new))
        from tidegate.engines.ssh.tunnel import Tunnel

        tunnel = await Tunnel.open(route)
        try:
            near = route.url_at(tunnel.port)
            return cast("list[str]", await module.run_script(near, script, account, is_new=is_new))
        except TidegateError as error:
            raise tunnel.explained(error) from error
        finally:
            await tunnel.close()


def find(url: str) -> Entry:
    """The engine that reads `url`, without importing it.

    Raises: TidegateError SOURCE_URL that lists the known prefixes.
    """
    lowered = url.lower()
    fitting = [prefix for prefix in ENGINES if prefix[-1] == ":" and lowered.startswith(prefix)]
    if fitting:
        return ENGINES[max(fitting, key=len)]
    scheme = scheme_of(url)
    entry = ENGINES.get(scheme)
    if entry is not None:
        return entry
    form = _BY_JDBC.get(scheme)
    if form is not None:
        raise TidegateError(
            Code.SOURCE_URL,
            f"`{scheme}://` is the URL of another library: this database is reached by its JDBC"
            " driver.",
            hint=f"Write {form}, with `--driver-coordinate GROUP:ARTIFACT:VERSION`.",
        )
    if scheme in _LIKE_POSTGRES:
        raise TidegateError(
            Code.SOURCE_URL,
            f"No engine opens `{scheme}://`. The database speaks PostgreSQL's protocol, but is not"
            " PostgreSQL, and the checks of that engine do not hold for it.",
            hint=f"Write {_LIKE_POSTGRES[scheme]}, with `--driver-coordinate"
            " GROUP:ARTIFACT:VERSION`.",
        )
    near = difflib.get_close_matches(scheme, ENGINES, 1)
    known = ", ".join(_shown(prefix) for prefix in sorted(ENGINES))
    hint = f"Did you mean `{_shown(near[0])}`? Known: {known}." if near else f"Known: {known}."
    raise TidegateError(Code.SOURCE_URL, f"No engine opens `{scheme}://`.", hint=hint)


def _shown(prefix: str) -> str:
    return prefix if prefix[-1] == ":" else f"{prefix}://"


def engine_of(url: str) -> tuple[str, str]:
    """(engine name, dialect) for a source's URL, without importing the engine.

    Raises: TidegateError SOURCE_URL if no engine reads such a URL, or if its SSH options are
    wrong.
    """
    entry = find(url)
    _route(entry, url)
    return entry.engine, entry.dialect_of(url)


def locate(url: str) -> Location:
    """Host, port, database and user of a source, for listings. Opens nothing, resolves no secret
    and never raises: a URL that cannot be read gives `UNREADABLE`."""
    try:
        entry = find(url)
    except TidegateError:
        return UNREADABLE
    if entry.locate is not None:
        return entry.locate(url)
    return locate_file(url) if entry.port is None else locate_server(url, entry.port)


def check_settings(source: Source) -> None:
    """Refuse a source that its engine cannot be opened with. Opens nothing.

    Raises: TidegateError SOURCE_URL, CONFIG_INVALID.
    """
    engine_of(source.url)
    check_run_as(source.url, source.run_as)
    check_options(source.url, [name for name, _ in source.options])
    check_access(source.url, source.access)
    check_functions(source)


def check_url(source: Source) -> None:
    """Refuse a URL that the source's engine cannot be opened with, such as one with an option that
    it does not have. Opens no database and reads no secret: what could depend on one, and an engine
    whose library is not there, is left for the opening.

    Raises: TidegateError SOURCE_URL, SOURCE_UNREACHABLE for a file or folder that is not there.
    """
    entry = find(source.url)
    url = re.sub(r"\$\{[^}]*\}", "1", source.url)  # also where a port is expected
    if entry.path is not None:
        entry.path(url)
    if not entry.reader or "${" in source.url.partition("?")[2]:
        return
    route = _route(entry, url)
    module, _, name = entry.reader.partition(":")
    try:
        read = getattr(import_module(module), name)
    except ImportError:
        return
    given = (dict(source.options),) if entry.options else ()
    read(url if route is None else route.url_at(1), *given)


def check_run_as(url: str, run_as: RunAs | None) -> None:
    """Refuse to map callers on an engine without roles, where the setting would do nothing.

    Raises: TidegateError CONFIG_INVALID, SOURCE_URL.
    """
    entry = find(url)
    if run_as is not None and not entry.identities:
        raise TidegateError(
            Code.CONFIG_INVALID,
            f"A source on the engine `{entry.engine}` cannot have `run_as`: it has no roles.",
            hint="Leave `run_as` out; `masks` and `filters` hide columns and rows on every engine.",
        )


def check_access(url: str, access: str) -> None:
    """Refuse to admit changes to what is only read. Raises: TidegateError CONFIG_INVALID,
    SOURCE_URL."""
    entry = find(url)
    if access in ("write", "admin") and entry.reads_only:
        raise TidegateError(
            Code.CONFIG_INVALID,
            f"A source on the engine `{entry.engine}` is only read.",
            hint=f"Leave out the access `{access}`.",
        )


def check_functions(source: Source) -> None:
    """Refuse functions of users where the setting would do nothing, or more than it says. Raises:
    TidegateError CONFIG_INVALID, SOURCE_URL."""
    entry = find(source.url)
    if source.functions and source.run_as is not None:
        raise TidegateError(
            Code.CONFIG_INVALID,
            "A source cannot have `functions` and `run_as`: a function that a user wrote can set"
            " the role and the variables by which the database knows the caller.",
            hint="Leave one of them out, or make two sources of the database.",
        )
    if source.functions and not entry.own_functions:
        raise TidegateError(
            Code.CONFIG_INVALID,
            f"A source on the engine `{entry.engine}` cannot have `functions`: its databases"
            " keep no functions of users, or nothing there keeps these from changing data in a"
            " read.",
            hint="Leave `functions` out. PostgreSQL, MariaDB, MySQL and DuckDB files take it.",
        )


def check_options(url: str, names: Iterable[str]) -> None:
    """Refuse options that the engine of `url` does not have, and could only ignore.

    Raises: TidegateError CONFIG_INVALID, which names the nearest option; SOURCE_URL.
    """
    entry = find(url)
    for name in names:
        if not entry.has_option(name):
            raise TidegateError(
                Code.CONFIG_INVALID,
                f"The engine `{entry.engine}` has no option `{name[:80]}`.",
                hint=_option_hint(name, entry),
            )


def _option_hint(name: str, entry: Entry) -> str:
    if not entry.options:
        return "It has none: its URL says all that it needs."
    near = difflib.get_close_matches(name, entry.options, 1)
    return f"Did you mean `{near[0]}`?" if near else f"Known: {', '.join(entry.options)}."


def resolve_options(source: Source) -> dict[str, str]:
    """The source's options with the secrets that they refer to, for its engine's `open`. What is
    resolved is not stored and not shown.

    Raises: TidegateError SOURCE_URL if a reference leads nowhere, CONFIG_INVALID for an option that
    the engine does not have.
    """
    check_options(source.url, [name for name, _ in source.options])
    return {name: resolve_option(value) for name, value in source.options}


async def open_engine(source: Source) -> Engine:
    """Import the source's engine and open it.

    Raises: TidegateError SOURCE_URL, SOURCE_UNREACHABLE, KEYRING_FAILED, ENGINE_MISSING (names the
    extra to install), CONFIG_INVALID if the source maps callers or has options and the engine
    cannot.
    """
    check_settings(source)
    entry = find(source.url)
    try:
        module = import_module(entry.module)
    except ImportError as missing:  # a driver without its library is found, and then fails
        if missing.name is not None and missing.name.partition(".")[0] == "tidegate":
            raise
        needs = f"the package `{missing.name}`" if missing.name else "a library that is not there"
        from tidegate.config.installation import add_command

        hint = f"Run: {add_command(entry.extra)}" if entry.extra else None
        raise TidegateError(
            Code.ENGINE_MISSING,
            f"The engine `{entry.engine}` needs {needs}.",
            hint=hint,
        ) from missing
    engine = cast("type[Engine]", getattr(module, entry.attribute))
    route = _route(entry, source.url)
    async with secrets_of(source):
        if route is not None:
            return await _open_through(engine, source, route)
        return await engine.open(source)


def secrets_of(source: Source) -> AbstractAsyncContextManager[None]:
    """While the block runs, the source's secrets in the keyring can be read without waiting.

    Raises, when it is entered: TidegateError KEYRING_FAILED, ENGINE_MISSING.
    """
    return _read_secrets(source.url, *(value for _, value in source.options))


def _read_secrets(*texts: str) -> AbstractAsyncContextManager[None]:
    if not any(map(keyring_entries_of, texts)):
        return nullcontext()
    from tidegate.config.system_keyring import keyring_secrets

    return keyring_secrets(*texts)


async def _open_through(engine: type[Engine], source: Source, route: SshRoute) -> Engine:
    """Open the tunnel, and the engine on the near end of it. Raises: TidegateError."""
    from tidegate.engines.ssh.tunnel import Tunnel, TunnelledEngine

    tunnel = await Tunnel.open(route)
    try:
        near = structs.replace(source, url=route.url_at(tunnel.port))
        return cast("Engine", TunnelledEngine(await engine.open(near), tunnel))
    except TidegateError as error:
        failure = tunnel.explained(error)
        await tunnel.close()
        raise failure from error
    except BaseException:
        await tunnel.close()
        raise


def _route(entry: Entry, url: str) -> SshRoute | None:
    return None if entry.port is None else parse_route(url, entry.port)
