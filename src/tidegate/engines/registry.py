"""Finds the engine of a source by the beginning of its URL, and opens it.

An engine's module is imported when the first source of its kind is opened. To add an engine: a
class that has the members of `api.Engine`, one entry in its product's `product.py`, one case in
`tests/support/engine_cases.py`. CONTRIBUTING.md shows each.
"""

from __future__ import annotations

import difflib
import re
from collections.abc import Iterable, Mapping, Sequence
from contextlib import AbstractAsyncContextManager
from importlib import import_module
from typing import cast
from urllib.parse import parse_qsl

from msgspec import structs

from tidegate.config.kept_secrets import secrets_of as read_secrets
from tidegate.engines.api import Engine
from tidegate.engines.common.account import AccountGuide
from tidegate.engines.common.login_refusals import check_refusal
from tidegate.engines.common.url import (
    UNREADABLE,
    Location,
    locate_file,
    locate_server,
    scheme_of,
)
from tidegate.engines.ssh.url import SshRoute, parse_route
from tidegate.errors import Code, TidegateError
from tidegate.model.language import Language
from tidegate.model.source_settings import RunAs
from tidegate.model.sources import Source
from tidegate.model.worker_share import WorkerShare, own_share
from tidegate.product import (
    DatabaseFiles,
    EngineEntry,
    Product,
    add_installed,
    built_in,
    installed,
    load,
    own_entries,
    unusable,
)
from tidegate.secrets.references import refuse_server_secrets, resolve_option


def _engines(product: Product) -> Mapping[str, EngineEntry]:
    return product.engines


ENGINES: dict[str, EngineEntry] = {
    "sqlite": EngineEntry(
        *("sqlite", "sqlite", "tidegate.engines.sqlite", "SqliteEngine"),
        compares_rows=True,
        options=("timeout",),
        plain_options=("timeout",),
        path_reader="tidegate.engines.common.url:file_of",
        memory_reader="tidegate.engines.common.url:is_in_memory",
        files=DatabaseFiles((".db", ".sqlite", ".sqlite3")),
        reader="tidegate.engines.sqlite.url:read_url",
    ),
    **dict.fromkeys(
        ("postgres", "postgresql"),
        EngineEntry(
            *("postgres", "postgres", "tidegate.engines.postgres", "PostgresEngine"),
            *("postgres", 5432),
            identities=True,
            compares_rows=True,
            own_functions=True,
            plan_limits=("max_plan_cost", "max_plan_rows"),
            pool=10,
            tells_limit=True,
            reader="tidegate.engines.postgres.url:parse_conninfo",
        ),
    ),
    **own_entries(_engines),
}
"""Engines by the scheme of their URLs, or by a longer prefix that ends in a colon (`jdbc:h2:`).

Of several prefixes that fit a URL, the longest counts. Those of installed packages come in when
none fits.
"""

_OWN = frozenset([each.engine for each in ENGINES.values()])
_OWN_SCHEMES = frozenset(ENGINES)
_OWN_PREFIXES = tuple([each for each in ENGINES if each[-1] == ":"])

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
        entry = _named(source.engine)
        if entry is None and _add_installed():
            entry = _named(source.engine)
        if entry is None:
            raise TidegateError(
                Code.SOURCE_URL,
                f"The source {source.name!r} names the engine {source.engine!r}, which is unknown",
                hint="Remove the source and add it again with its URL.",
            )
        language = cast("Language", import_module(entry.language).LANGUAGE)
        _languages[source.engine] = language
    return language


def installed_product_of(engine: str) -> Product | None:
    """The product of another package that has the engine; None for an engine that is here.

    Raises: TidegateError CONFIG_INVALID for a package that cannot be used.
    """
    if not engine or engine in _OWN:
        return None
    products = installed()
    return next((each for each in products if _has_engine(each, engine)), None)


def _has_engine(product: Product, engine: str) -> bool:
    return any(each.engine == engine for each in product.engines.values())


def _named(engine: str) -> EngineEntry | None:
    return next((each for each in ENGINES.values() if each.engine == engine), None)


def _add_installed() -> bool:
    """Add the engines of installed packages; whether there are any that were not known. Raises:
    TidegateError CONFIG_INVALID for one that would take the place of another."""
    owners: dict[str, str] = {}
    for product in installed():
        for prefix, entry in product.engines.items():
            if (
                entry.engine in _OWN
                or owners.setdefault(entry.engine, product.name) != product.name
            ):
                raise unusable(product.name, f"its engine `{entry.engine}` is taken")
            if any(prefix.startswith(own) for own in _OWN_PREFIXES) or prefix in _OWN_SCHEMES:
                raise unusable(product.name, f"its engine's `{prefix}` is taken")
    return add_installed(ENGINES, _engines, "engine")


def entry_of(source: Source) -> EngineEntry | None:
    """What is known of the source's engine; None for a source that no engine can open."""
    return _named(source.engine)


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
    async with read_secrets(url):
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


def find(url: str) -> EngineEntry:
    """The engine that reads `url`, without importing it.

    Raises: TidegateError SOURCE_URL that lists the known prefixes; CONFIG_INVALID for an installed
    package that cannot be used.
    """
    entry = _find_known(url)
    if entry is None and _add_installed():
        entry = _find_known(url)
    if entry is not None:
        return entry
    scheme = scheme_of(url)
    for product in (*built_in(), *installed()):
        advice = product.url_advice.get(scheme)
        if advice is not None:
            raise TidegateError(Code.SOURCE_URL, advice.message, hint=advice.hint)
    near = difflib.get_close_matches(scheme, ENGINES, 1)
    known = ", ".join(_shown(prefix) for prefix in sorted(ENGINES))
    hint = f"Did you mean `{_shown(near[0])}`? Known: {known}." if near else f"Known: {known}."
    raise TidegateError(Code.SOURCE_URL, f"No engine opens `{scheme}://`.", hint=hint)


def _find_known(url: str) -> EngineEntry | None:
    lowered = url.lower()
    fitting = [prefix for prefix in ENGINES if prefix[-1] == ":" and lowered.startswith(prefix)]
    return ENGINES[max(fitting, key=len)] if fitting else ENGINES.get(scheme_of(url))


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
    if entry.locator:
        return cast("Location", load(entry.locator)(url))
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
    check_plan_limits(source)


def check_url(source: Source) -> None:
    """Refuse a URL that the source's engine cannot be opened with, such as one with an option that
    it does not have. Opens no database and reads no secret: what could depend on one, and an engine
    whose library is not there, is left for the opening.

    Raises: TidegateError SOURCE_URL, SOURCE_UNREACHABLE for a file or folder that is not there.
    """
    entry = find(source.url)
    url = re.sub(r"\$\{[^}]*\}", "1", source.url)  # also where a port is expected
    entry.path_of(url)
    if not entry.reader or "${" in source.url.partition("?")[2]:
        return
    route = _route(entry, url)
    try:
        read = load(entry.reader)
    except ImportError:
        return
    given = (dict(source.options),) if entry.options else ()
    read(url if route is None else route.url_at(1), *given)


def pool_of(source: Source) -> int | None:
    """How many connections a source may have in all; None where nothing bounds them. Raises:
    TidegateError SOURCE_URL."""
    entry = find(source.url)
    if not entry.pool:
        return None
    given = dict(parse_qsl(source.url.partition("?")[2])) | dict(source.options)
    text = given.get(entry.pool_option, "")
    return int(text) if text.isascii() and text.isdigit() else entry.pool


def check_share(source: Source, share: WorkerShare) -> None:
    """Refuse a source that the workers of the gate cannot share. Raises: TidegateError
    CONFIG_INVALID, SOURCE_URL."""
    if share.count == 1 or not source.engine:
        return
    entry = find(source.url)
    path = entry.exclusive_path(source.url, changes=source.writable)
    if path is not None:
        can_read = entry.exclusive_path(source.url, changes=False) is None
        reading = ", set its access to read," if can_read else ""
        raise TidegateError(
            Code.CONFIG_INVALID,
            f"The source `{source.name}` needs a process that has {path} alone, and each of"
            f" {share.count} workers would open it.",
            hint=f"Keep it at a server of the database{reading} or serve by one process.",
            details={"source": source.name},
        )
    if entry.is_in_memory(source.url):
        raise TidegateError(
            Code.CONFIG_INVALID,
            f"The source `{source.name}` is in the memory of one process, and each of"
            f" {share.count} workers would have its own.",
            hint="Keep the database in a file or at a server, or serve by one process.",
            details={"source": source.name},
        )
    total = pool_of(source)
    if total is not None and not share.divides(total):
        raise TidegateError(
            Code.CONFIG_INVALID,
            f"The source `{source.name}` may have {total} connections"
            f" (`{find(source.url).pool_option}`), and each of {share.count} workers needs one.",
            hint="Raise it, or serve by fewer workers.",
            details={"source": source.name},
        )


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
        others = sorted({each.engine for each in ENGINES.values() if each.own_functions})
        raise TidegateError(
            Code.CONFIG_INVALID,
            f"A source on the engine `{entry.engine}` cannot have `functions`: its databases"
            " keep no functions of users, or nothing there keeps these from changing data in a"
            " read.",
            hint=f"Leave `functions` out. Engines that take it: {', '.join(others)}.",
        )


def check_plan_limits(source: Source) -> None:
    """Refuse limits of plans whose figures the engine's databases do not have. Raises:
    TidegateError CONFIG_INVALID, SOURCE_URL."""
    entry = find(source.url)
    for name in ("max_plan_cost", "max_plan_rows"):
        if getattr(source, name) is None or name in entry.plan_limits:
            continue
        others = sorted({each.engine for each in ENGINES.values() if name in each.plan_limits})
        raise TidegateError(
            Code.CONFIG_INVALID,
            f"A source on the engine `{entry.engine}` cannot have `{name}`: its plans have no such"
            " figure.",
            hint=f"Leave `{name}` out. Engines that take it: {', '.join(others)}.",
        )
    if entry.figures_hide and source.max_plan_rows and (source.masks or source.filters):
        raise TidegateError(
            Code.CONFIG_INVALID,
            f"A source on the engine `{entry.engine}` cannot have `max_plan_rows` together with"
            " masks or filters: its plans have no figures then.",
            hint="Leave `max_plan_rows` out, and limit what callers use by a budget.",
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


def _option_hint(name: str, entry: EngineEntry) -> str:
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

    Raises: TidegateError SOURCE_URL, SOURCE_UNREACHABLE, KEYRING_FAILED, SECRET_UNAVAILABLE,
    ENGINE_MISSING (names the extra to install), CONFIG_INVALID if the source maps callers or has
    options and the engine cannot, POLICY_DENIED if a caller made it and it refers to a secret.
    """
    check_settings(source)
    if not source.temporary:  # one belongs to the process of its session
        check_share(source, own_share())
    if source.temporary:
        refuse_server_secrets(texts_of(source))
    check_refusal(source.id)
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
    """While the block runs, the source's secrets can be read without waiting.

    Raises, when it is entered: TidegateError KEYRING_FAILED, SECRET_UNAVAILABLE, ENGINE_MISSING.
    """
    return read_secrets(*texts_of(source))


def texts_of(source: Source) -> tuple[str, ...]:
    """Where a source may refer to secrets."""
    return (source.url, *(value for _, value in source.options))


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


def _route(entry: EngineEntry, url: str) -> SshRoute | None:
    return None if entry.port is None else parse_route(url, entry.port)
