"""`tidegate token create | list | revoke`. The secret is printed once and not stored."""

from __future__ import annotations

import argparse
import time
from datetime import UTC, datetime
from typing import Any

from tidegate.app import App
from tidegate.cli.allowlist import Allowlist, given, refuse_unknown
from tidegate.cli.consent import require_consent
from tidegate.cli.local_actor import with_app
from tidegate.cli.settings import load_for_query, load_for_state
from tidegate.cli.terminal import print_status, show_json, show_table
from tidegate.identity.tokens import parse_expiry
from tidegate.model.actors import Scope
from tidegate.store.records import TokenEntry


def run(arguments: argparse.Namespace) -> int:
    """Run `arguments.action`."""
    actions = {"create": _create, "list": _list, "revoke": _revoke}
    action = actions[arguments.action]

    async def work(app: App) -> None:
        await action(app, arguments)

    settings = load_for_query if arguments.action == "create" else load_for_state
    with_app(App.open(settings(arguments)), work)
    return 0


async def _create(app: App, arguments: argparse.Namespace) -> None:
    expires_at = parse_expiry(arguments.expires, time.time())
    listed = given(arguments)
    if not arguments.allow_unknown:
        await refuse_unknown(app, "token create", listed)
    what = f"create the token {arguments.name} ({arguments.scope}, {listed.words()})"
    require_consent(app, "create", what, arguments, no_word=not app.has_granted_rights)
    plaintext, entry = app.tokens.create(
        arguments.name,
        Scope(arguments.scope),
        listed.sources,
        expires_at,
        listed.tags,
        listed.tables,
    )
    print(plaintext)
    until = _until(entry.expires_at)
    print_status(f"token {entry.name}: {entry.scope.value}, {listed.words()}, {until}")


async def _list(app: App, arguments: argparse.Namespace) -> None:
    now = time.time()
    entries = app.tokens.list()
    rows = [_described(entry, now) for entry in entries]
    if arguments.json:
        show_json({"tokens": rows})
        return
    if not rows:
        print_status("no tokens; `tidegate token create NAME --scope readOnly` creates one")
        return
    columns = ("name", "scope", "sources", "state", "prefix", "created_at", "expires_at")
    for row, entry in zip(rows, entries, strict=True):
        row["sources"] = Allowlist(entry.sources, entry.tags, entry.tables).words()
        row["expires_at"] = row["expires_at"] or "never"
    show_table(columns, [[row[name] for name in columns] for row in rows])


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
