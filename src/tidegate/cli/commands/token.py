"""`tidegate token create | list | show | edit | revoke`. A secret is printed once and not kept."""

from __future__ import annotations

import argparse
import time
from datetime import UTC, datetime
from typing import Any, cast

import msgspec

from tidegate.app import App
from tidegate.cli.allowlist import Allowlist, given, refuse_unknown
from tidegate.cli.consent import require_consent
from tidegate.cli.listing import chosen
from tidegate.cli.local_actor import with_app
from tidegate.cli.settings import load_for_query, load_for_state
from tidegate.cli.terminal import print_status, show, show_json, show_table
from tidegate.errors import Code, TidegateError
from tidegate.identity.tokens import parse_expiry, widened_rights
from tidegate.model.actors import Actor, Scope
from tidegate.policy.allowlist import admits
from tidegate.store.records import TokenEntry, TokenRights


def run(arguments: argparse.Namespace) -> int:
    """Run `arguments.action`."""
    actions = {
        "create": _create, "list": _list, "show": _show, "edit": _edit, "revoke": _revoke
    }  # fmt: skip
    action = actions[arguments.action]

    async def work(app: App) -> None:
        await action(app, arguments)

    asks_sources = arguments.action in ("create", "show", "edit")
    settings = load_for_query if asks_sources else load_for_state
    with_app(App.open(settings(arguments)), work)
    return 0


async def _create(app: App, arguments: argparse.Namespace) -> None:
    expires_at = parse_expiry(arguments.expires, time.time())
    listed = given(arguments)
    if not arguments.allow_unknown:
        await refuse_unknown(app, "token create", listed)
    proxy = ", a proxy" if arguments.proxy else ""
    owner = "" if arguments.owner is None else app.operators.find(arguments.owner).name
    what = f"create the token {arguments.name} ({arguments.scope}, {listed.words()}{proxy})"
    require_consent(app, "create", what, arguments, no_word=not app.granted_rights.exist)
    rights = TokenRights(
        Scope(arguments.scope),
        listed.sources,
        listed.tags,
        tables=listed.tables,
        max_rows_changed=arguments.max_rows_changed or None,
        owner=owner,
    )
    plaintext, entry = app.tokens.create(
        arguments.name, rights, expires_at=expires_at, proxy=arguments.proxy
    )
    show(plaintext)
    print_status(f"token {_rights(entry)}")


async def _list(app: App, arguments: argparse.Namespace) -> None:
    now = time.time()
    there = app.tokens.list()
    entries = chosen(there, arguments, "tokens", lambda entry: entry.name)
    rows = [_described(entry, now) for entry in entries]
    if arguments.json:
        show_json({"tokens": rows})
        return
    if there and not rows:
        print_status("no token has such a name")
        return
    if not rows:
        print_status("no tokens; `tidegate token create NAME --scope readOnly` creates one")
        return
    columns = ("name", "scope", "sources", "state", "prefix", "created_at", "expires_at")
    for row, entry in zip(rows, entries, strict=True):
        row["sources"] = Allowlist(entry.sources, entry.tags, entry.tables).words()
        row["expires_at"] = row["expires_at"] or "never"
    show_table(columns, [[row[name] for name in columns] for row in rows])


async def _show(app: App, arguments: argparse.Namespace) -> None:
    """Everything that is known of one token, and the sources that it sees now."""
    entry = app.tokens.find(arguments.name)
    fields = _described(entry, time.time())
    caller = Actor(entry.id, entry.name, entry.scope, entry.sources, tags=entry.tags)
    fields["sees"] = [each.name for each in app.connections.sources() if admits(caller, each)]
    if arguments.json:
        show_json(fields)
        return
    everything = {"sources": "every source", "tables": "every table", "expires_at": "never"}
    if entry.tags is not None:
        del everything["sources"]
    for name, value in fields.items():
        text = ", ".join(cast("list[str]", value)) if isinstance(value, list) else value
        if name == "proxy":
            text = "yes" if value else None
        if text or name in everything:
            show(f"{name:<16} {text or everything[name]}")


async def _edit(app: App, arguments: argparse.Namespace) -> None:
    """Change the given rights and leave the others. To give more, a person is asked."""
    was = app.tokens.find(arguments.name)
    if was.revoked_at is not None:
        raise TidegateError(
            Code.ARGUMENT_INVALID,
            f"The token `{was.name}` is revoked.",
            hint=f"Make another one with `tidegate token create {was.name} --scope SCOPE`.",
        )
    now = _edited(was, arguments)
    if now == was:
        print_status(f"nothing to change: {_rights(was)}")
        return
    if not arguments.allow_unknown:
        await refuse_unknown(app, "token edit", Allowlist(now.sources, now.tags, now.tables))
    wider = widened_rights(was, now)
    if wider:
        what = f"give the token {was.name} more ({', '.join(wider)}): {_rights(now)}"
        require_consent(app, "edit", what, arguments)
    app.tokens.change(now, was)
    print_status(f"changed {_rights(now)}")


def _edited(was: TokenEntry, arguments: argparse.Namespace) -> TokenEntry:
    """The token with what the options say. Raises: TidegateError ARGUMENT_INVALID."""
    limits = given(arguments)
    for option, names in (("sources", limits.sources or limits.tags), ("tables", limits.tables)):
        if names and getattr(arguments, f"all_{option}"):
            raise TidegateError(
                Code.ARGUMENT_INVALID,
                f"--all-{option} goes with no list of {option}.",
                hint="Leave one of them out.",
            )
    changes: dict[str, Any] = {}
    if arguments.scope is not None:
        changes["scope"] = Scope(arguments.scope)
    if arguments.all_sources:
        changes.update(sources=None, tags=None)
    if arguments.all_tables:
        changes["tables"] = None
    for name in ("sources", "tags", "tables"):
        if (names := getattr(limits, name)) is not None:
            changes[name] = names
    if arguments.no_proxy:
        changes["proxy"] = False
    if arguments.max_rows_changed is not None:
        changes["max_rows_changed"] = arguments.max_rows_changed or None
    if arguments.expires is not None:
        changes["expires_at"] = parse_expiry(arguments.expires, time.time())
    return msgspec.structs.replace(was, **changes)


def _rights(entry: TokenEntry) -> str:
    listed = Allowlist(entry.sources, entry.tags, entry.tables)
    proxy = ", a proxy" if entry.proxy else ""
    owner = f", of {entry.owner}" if entry.owner else ""
    most = entry.max_rows_changed
    limit = "" if most is None else f", at most {most:,} rows a change"
    whole = f"{entry.name}: {entry.scope.value}, {listed.words()}{proxy}{owner}{limit}"
    return f"{whole}, {_until(entry.expires_at)}"


async def _revoke(app: App, arguments: argparse.Namespace) -> None:
    app.tokens.revoke(arguments.name)
    print_status(f"revoked {arguments.name}")


def _described(entry: TokenEntry, now: float) -> dict[str, Any]:
    state = "active"
    if entry.revoked_at is not None:
        state = "revoked"
    elif entry.expires_at is not None and entry.expires_at <= now:
        state = "expired"
    return {
        "name": entry.name,
        "scope": entry.scope.value,
        "sources": None if entry.sources is None else sorted(entry.sources),
        "tags": None if entry.tags is None else sorted(entry.tags),
        "tables": None if entry.tables is None else sorted(entry.tables),
        "proxy": entry.proxy,
        "max_rows_changed": entry.max_rows_changed,
        "owner": entry.owner,
        "state": state,
        "prefix": entry.prefix,
        "created_at": _moment(entry.created_at),
        "expires_at": _moment(entry.expires_at),
        "last_used_at": _moment(entry.last_used_at),
        "revoked_at": _moment(entry.revoked_at),
    }


def _moment(seconds: float | None) -> str | None:
    """UTC, ISO 8601, to the second."""
    if seconds is None:
        return None
    return datetime.fromtimestamp(seconds, UTC).strftime("%Y-%m-%dT%H:%M:%SZ")


def _until(expires_at: float | None) -> str:
    return f"until {_moment(expires_at)}" if expires_at is not None else "never expires"
