"""What the account of a source could do if the gate were not there, and how to make one that can
only read: `tidegate source test` and `tidegate source harden`."""

from __future__ import annotations

import argparse
import re
import secrets
from typing import Any

import msgspec

from tidegate.app import App
from tidegate.cli.local_actor import ask
from tidegate.cli.terminal import print_status
from tidegate.engines.common.account import AccountFacts, ReadingRequest, Risk
from tidegate.engines.registry import account_guide, locate
from tidegate.errors import Code, TidegateError
from tidegate.model.replies import ConnectionState
from tidegate.model.requests import Browse, Connect, Query
from tidegate.model.results import Page
from tidegate.model.schema import Catalog
from tidegate.model.sources import Source
from tidegate.model.statements import Statement
from tidegate.secrets import with_password, without_password
from tidegate.store.passwords import Passwords

_USER = re.compile(r"^([A-Za-z][\w+.-]*://)(?:[^/?#@]*@)?")
_ROLE = re.compile(r"[A-Za-z_][A-Za-z0-9_]{0,30}")


async def account_risks(app: App, source: Source, state: ConnectionState) -> list[Risk]:
    """What the account could do, with what to do about each; one that says so if it cannot be
    found out."""
    guide = account_guide(source)
    if guide is None:
        return []
    warnings = state.current.warnings if state.current else ()
    row: dict[str, Any] = {}
    if guide.RISKS_QUERY is not None:
        try:
            query = Query(Statement(guide.RISKS_QUERY))
            page = await ask(app, "source test", query, source.name, Page)
        except TidegateError as error:
            return [Risk(f"what the account could do was not found out: {error.message}", "none")]
        names = [column.name for column in page.columns]
        row = dict(zip(names, msgspec.json.decode(page.rows)[0], strict=True))
    command = f"tidegate source harden {source.name}"
    return [
        Risk(risk.could, risk.remedy or command)
        for risk in guide.risks(AccountFacts(source.url, row, warnings))
    ]


async def harden(app: App, arguments: argparse.Namespace) -> None:
    """Print what makes an account that can only read, and say how the source gets it.

    Raises: TidegateError UNSUPPORTED for an engine without accounts, ARGUMENT_INVALID.
    """
    source = _source(app, arguments.name)
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
    state = await ask(app, "source harden", Connect(), source.name, ConnectionState)
    catalog = await ask(app, "source harden", Browse("catalog"), source.name, Catalog)
    user = locate(source.url).user
    password = reference = None
    if guide.HAS_USERS and user != role:
        passwords = Passwords(app.directory)
        kept = passwords.find(f"{source.name}.{role}")
        password = kept[1] if kept else secrets.token_urlsafe(24)
        reference = kept[0] if kept else passwords.save(f"{source.name}.{role}", password)
    schemas = tuple(arguments.schema) or _schemas(catalog)
    request = ReadingRequest(
        *(source.name, source.url, role, password, catalog.database, schemas, user),
        state.current.server_version if state.current else "",
    )
    print("\n".join(guide.reading_script(request)))
    app.note("source.hardened", {"source": source.name, "account": role})
    _print_steps(source, role, reference)


def _print_steps(source: Source, role: str, reference: str | None) -> None:
    name = source.name
    print_status(f"nothing was changed yet. 1. Run what was printed: tidegate source harden {name}"
                 " > reader.sql, then the database's own client as an administrator")  # fmt: skip
    if reference is None:
        print_status(f"2. look at it: tidegate source test {name}")
        return
    bare = _USER.sub(rf"\g<1>{role}@", without_password(source.url))
    url = with_password(bare, reference)
    print_status(f"2. give the source its new account: tidegate source update {name} --url '{url}'")
    print_status(f"3. look at it: tidegate source test {name}")


def _schemas(catalog: Catalog) -> tuple[str, ...]:
    """Those that hold tables; the default one if none does."""
    holding = sorted({table.schema for table in catalog.tables})
    return tuple(holding) or (catalog.default_schema,)


def _source(app: App, name: str) -> Source:
    found = next((each for each in app.connections.sources() if each.name == name), None)
    if found is None:
        raise TidegateError(Code.SOURCE_UNKNOWN, f"There is no source {name!r}")
    return found
