"""`tidegate source harden`: makes an account that can only read, and gives it to the source.

Without `--apply` it prints the SQL. With it, it runs the SQL with an administrator's login, which
is used for that alone and kept nowhere, opens the source with the new account, and saves the new
login only if that works. Until then the source keeps the login that it has.
"""

from __future__ import annotations

import argparse
import asyncio
import re
import secrets
from collections.abc import Generator
from contextlib import contextmanager
from functools import partial
from typing import NamedTuple
from urllib.parse import quote

import msgspec

from tidegate.app import App
from tidegate.cli.consent import require_consent
from tidegate.cli.local_actor import ask, with_app
from tidegate.cli.settings import config_path, load_for_query, load_for_state
from tidegate.cli.source_check import ask_password, can_ask, forget_password
from tidegate.cli.source_report import report_of, show_report
from tidegate.cli.terminal import ask_line, print_status, show
from tidegate.config.sources import SourceSettings
from tidegate.engines.common.account import AccountExists, AccountGuide, ReadingRequest
from tidegate.engines.registry import account_guide, find, locate, set_up_account
from tidegate.errors import Code, TidegateError
from tidegate.gateway.configured_sources import source_from_settings
from tidegate.model.replies import ConnectionState
from tidegate.model.requests import Browse, Connect
from tidegate.model.schema import Catalog
from tidegate.model.sources import Source
from tidegate.secrets.references import check_references, typed
from tidegate.secrets.url_logins import (
    asks_for_password,
    refuse_literal,
    with_password,
    without_password,
)
from tidegate.sources.changes import changed_meanwhile
from tidegate.sources.report import place_of
from tidegate.sources.settings import settings_of
from tidegate.store.passwords import Passwords, place_of_password

_TOOL = "source harden"
_USER = re.compile(r"^([A-Za-z][\w+.-]*://)(?:[^/?#@]*@)?")
_ROLE = re.compile(r"[A-Za-z_][A-Za-z0-9_]{0,30}")


class _Plan(NamedTuple):
    """What is to run. `password` is a reference to the account's password; None if the source has
    the account, which keeps its password. `is_new`: no password was kept for it before."""

    source: Source
    role: str
    script: list[str]
    password: str | None
    is_new: bool

    @property
    def url(self) -> str:
        """The source's URL with the new login; its own if it has that login."""
        if self.password is None:
            return self.source.url
        return with_password(_with_user(self.source.url, self.role), self.password)


async def print_script(app: App, arguments: argparse.Namespace) -> None:
    """Print what makes an account that can only read, and say how the source gets it.

    Raises: TidegateError UNSUPPORTED for an engine without accounts, ARGUMENT_INVALID.
    """
    plan = await _plan(app, arguments)
    show("\n".join(plan.script))
    name = plan.source.name
    app.note("source.hardened", {"source": name, "account": plan.role})
    print_status(f"nothing was changed yet. 1. Run what was printed: `tidegate source harden {name}"
                 " > reader.sql`, then the database's own client as an administrator")  # fmt: skip
    if plan.password is None:
        print_status(f"2. check it: `tidegate source test {name}`")
        return
    print_status(
        f"2. give the source its new account: `tidegate source update {name} --url '{plan.url}'`"
    )
    print_status(f"3. check it: `tidegate source test {name}`")


def apply_script(arguments: argparse.Namespace) -> None:
    """Make the account with an administrator's login, try it, and give it to the source.

    Raises: TidegateError; the source then keeps the login that it has.
    """
    config = load_for_state(arguments)
    _check_saved(arguments)
    plan = with_app(App.open(config), partial(_prepared, arguments=arguments))
    try:
        with _administrator(plan.source, arguments.admin_url) as url:
            with_app(App.open(config), partial(_agreed, plan=plan, url=url, arguments=arguments))
            noted = _set_up(plan, url)
    except BaseException as error:
        if plan.is_new and plan.password is not None and not _has_begun(error):
            with_app(App.open(config), partial(_drop_password, reference=plan.password))
        raise
    for text in noted:
        print_status(f"note: {text}")
    print_status(f"the account {plan.role} is there")
    settings = settings_of(plan.source, url=plan.url)
    try:
        report = with_app(
            App.open(msgspec.structs.replace(config, sources=(settings,))),
            partial(report_of, name=settings.name),
        )
    except TidegateError as error:
        raise TidegateError(
            error.code,
            f"The source cannot be used with the new account, and keeps the one it has: "
            f"{error.message}",
            hint=f"{error.hint} Then run this command again.",
            details=error.details,
        ) from None
    if plan.password is not None:
        with_app(App.open(config), partial(_save, plan=plan, settings=settings))
    show_report(report, as_json=False)


async def _plan(app: App, arguments: argparse.Namespace) -> _Plan:
    source, guide, role = _chosen(app, arguments)
    state = await ask(app, _TOOL, Connect(), source.name, ConnectionState)
    catalog = await ask(app, _TOOL, Browse("catalog"), source.name, Catalog)
    user = locate(source.url).user
    password = reference = None
    is_new = False
    if guide.ADMINISTRATOR and user != role:
        passwords = Passwords(app.directory)
        kept = passwords.find(f"{source.name}.{role}")
        is_new = kept is None
        password = kept[1] if kept else secrets.token_urlsafe(24)
        place = place_of_password(source.url)
        reference = kept[0] if kept else passwords.save(f"{source.name}.{role}", password, place)
    schemas = tuple(arguments.schema) or _schemas(catalog)
    request = ReadingRequest(
        *(source.name, source.url, role, password, catalog.database, schemas, user),
        state.current.server_version if state.current else "",
    )
    return _Plan(source, role, guide.reading_script(request), reference, is_new)


def _chosen(app: App, arguments: argparse.Namespace) -> tuple[Source, AccountGuide, str]:
    """The source, what its engine says of accounts, and the new account's name."""
    source = next((each for each in app.connections.sources() if each.name == arguments.name), None)
    if source is None:
        raise TidegateError(
            Code.SOURCE_UNKNOWN,
            f"There is no source {arguments.name!r}",
            hint="`tidegate source list` shows them.",
        )
    guide = account_guide(source)
    if guide is None:
        raise TidegateError(
            Code.UNSUPPORTED, f"Nothing is known of accounts on the engine `{source.engine}`."
        )
    role = arguments.role or f"{re.sub(r'[^A-Za-z0-9_]', '_', source.name)[:20]}_reader"
    if not _ROLE.fullmatch(role):
        raise TidegateError(
            Code.ARGUMENT_INVALID,
            f"`{role[:40]}` is no name for an account here.",
            hint="Use up to 31 letters, digits and underscores.",
        )
    return source, guide, role


async def _prepared(app: App, arguments: argparse.Namespace) -> _Plan:
    """The plan of what will be applied, if that can be done here. Raises: TidegateError."""
    source, guide, _ = _chosen(app, arguments)
    if not guide.ADMINISTRATOR:
        raise TidegateError(
            Code.UNSUPPORTED,
            f"Accounts of a source on `{source.engine}` are those of the operating system, which"
            " --apply does not change.",
            hint="Leave out --apply, read what is printed, and run it in a shell.",
        )
    if source.run_as is not None:
        raise TidegateError(
            Code.UNSUPPORTED,
            f"The callers of {source.name!r} take roles of the database, which the new account"
            " would have to be a member of.",
            hint="Leave out --apply, and grant these roles to the account before the source gets"
            " it.",
        )
    return await _plan(app, arguments)


def _check_saved(arguments: argparse.Namespace) -> None:
    """Refuse a source of the settings: its URL is not changed from here."""
    if arguments.name in {each.name for each in load_for_query(arguments).sources}:
        raise TidegateError(
            Code.ARGUMENT_INVALID,
            f"The source {arguments.name!r} is in the settings and not saved.",
            hint="Leave out --apply, run what is printed, and write the new URL into"
            f" {config_path(arguments)}.",
        )


@contextmanager
def _administrator(source: Source, given: str | None) -> Generator[str]:
    """The URL of an administrator's login at the source's server, while the block runs.

    Raises: TidegateError ARGUMENT_INVALID if no one can be asked, SOURCE_URL.
    """
    if given is None and not can_ask():
        raise TidegateError(
            Code.ARGUMENT_INVALID,
            "An administrator's login is needed, and there is no terminal to ask on.",
            hint="Give --admin-url with a reference to the password, such as"
            " postgresql://postgres:${ENV:ADMIN_PASSWORD}@host/database.",
        )
    if given is None:
        guide = account_guide(source)
        proposed = "" if guide is None else guide.ADMINISTRATOR
        user = ask_line(f"Administrator's account at {place_of(source.url)}", proposed)
        url = _with_user(source.url, quote(user, safe=""))
    else:
        url = given
        check_references(url)
        refuse_literal(url)
        if find(url).engine != source.engine:
            raise TidegateError(
                Code.ARGUMENT_INVALID,
                f"The URL in --admin-url is not one of the engine `{source.engine}`.",
                hint="Write the source's URL with the administrator's login.",
            )
    password = ask_password(url) if asks_for_password(url) and can_ask() else ""
    if not password:
        yield url
        return
    with typed(password) as reference:
        yield with_password(url, reference)


async def _agreed(app: App, plan: _Plan, url: str, arguments: argparse.Namespace) -> None:
    """Go on only if a person agrees, and if that is on record. Raises: TidegateError."""
    source = plan.source
    writes = ", with which changes will fail" if source.writable else ""
    what = (
        f"make the account {plan.role}, which can only read, at {place_of(url)}, and give it to the"
        f" source {source.name}{writes}"
    )
    require_consent(app, "harden", what, arguments)
    noted = {"source": source.name, "account": plan.role, "by": locate(url).user, "applied": "yes"}
    app.note("source.hardened", noted)


def _set_up(plan: _Plan, url: str) -> list[str]:
    """Run the script; what the server noted. Raises: TidegateError."""
    undone = "The source keeps the account it has"
    try:
        return asyncio.run(set_up_account(url, plan.script, plan.role, is_new=plan.is_new))
    except AccountExists:
        raise TidegateError(
            Code.ARGUMENT_INVALID,
            f"There is already an account {plan.role}, which was not made here; nothing was"
            " changed.",
            hint="Name another one with --role.",
        ) from None
    except TimeoutError:
        raise TidegateError(
            Code.LIMIT_TIME, f"The server took too long to make the account. {undone}."
        ) from None
    except TidegateError as error:
        done = error.details.get("done", 0)
        left = f", and {done} statements before it have run" if done else ""
        raise TidegateError(
            error.code,
            f"The account {plan.role} was not made: {error.message.rstrip('.')}. {undone}{left}.",
            hint="Give the login of an administrator, and run this command again.",
            details=error.details,
        ) from None


def _has_begun(error: BaseException) -> bool:
    return isinstance(error, TidegateError) and bool(error.details.get("done"))


async def _drop_password(app: App, reference: str) -> None:
    Passwords(app.directory).remove(reference)


async def _save(app: App, plan: _Plan, settings: SourceSettings) -> None:
    """Give the source its new login. Raises: TidegateError; then it keeps the one that it has."""
    was = app.state.sources.find(settings.name)
    app.note("source.changed", {"source": settings.name, "settings": "url", "account": plan.role})
    changed = source_from_settings(settings)
    if (
        was is None
        or was != plan.source
        or not app.state.sources.change(
            msgspec.structs.replace(changed, id=was.id, ephemeral=False), was
        )
    ):
        raise changed_meanwhile(settings.name)
    forget_password(app, was)
    print_status(f"the source {was.name} uses it from now on")


def _with_user(url: str, user: str) -> str:
    return _USER.sub(rf"\g<1>{user}@", without_password(url))


def _schemas(catalog: Catalog) -> tuple[str, ...]:
    """Those that hold tables; the default one if none does."""
    holding = sorted({table.schema for table in catalog.tables})
    return tuple(holding) or (catalog.default_schema,)
