"""`tidegate operator add | roles | passphrase | list | remove`: the people who use the console."""

from __future__ import annotations

import argparse
import sys
from datetime import UTC, datetime

from tidegate.app import App
from tidegate.cli.consent import read_new_passphrase, require_consent
from tidegate.cli.local_actor import with_app
from tidegate.cli.settings import load_for_query, load_for_state
from tidegate.cli.terminal import print_status, show, show_json, show_table
from tidegate.config.installation import as_typed
from tidegate.errors import Code, TidegateError
from tidegate.identity.operators import roles_text
from tidegate.model.actors import Role, RoleGrant

BY = "cli"


def run(arguments: argparse.Namespace) -> int:
    """Run `arguments.action`."""
    action = {
        "add": _add,
        "roles": _set_roles,
        "passphrase": _set_passphrase,
        "list": _list,
        "remove": _remove,
    }[arguments.action]
    load = load_for_query if arguments.action in ("add", "roles") else load_for_state

    async def work(app: App) -> None:
        action(app, arguments)

    with_app(App.open(load(arguments)), work)
    return 0


def add_first_operator(app: App, name: str, arguments: argparse.Namespace) -> None:
    """Add the first operator, an admin, with a passphrase that a person types now.

    Raises: TidegateError OPERATOR_CONSENT, ARGUMENT_INVALID.
    """
    print_status(f"{name} needs a passphrase: the console asks for it before the first yes.")
    _add_operator(app, name, (RoleGrant("admin"),), arguments, None)


def _add_operator(
    app: App,
    name: str,
    roles: tuple[RoleGrant, ...],
    arguments: argparse.Namespace,
    file: str | None,
) -> None:
    what = f"add the operator {name} ({roles_text(roles)})"
    require_consent(app, "add", what, arguments, no_word=not app.granted_rights.exist)
    app.operators.add(name, read_new_passphrase(file, "operator add"), roles, BY)


def _add(app: App, arguments: argparse.Namespace) -> None:
    first = not app.operators.list()
    roles = _roles(app, arguments, "admin" if first else "approver")
    _add_operator(app, arguments.name, roles, arguments, arguments.new_passphrase_file)
    print_status(f"added {arguments.name}: {roles_text(roles)}")
    console = as_typed(f"tidegate console --operator {_quoted(arguments.name)}")
    show(f"Next: {console}")


def _set_roles(app: App, arguments: argparse.Namespace) -> None:
    operator = app.operators.find(arguments.name)
    roles = _roles(app, arguments, "approver")
    what = f"make {operator.name} {roles_text(roles)} (now {roles_text(operator.roles)})"
    require_consent(app, "change", what, arguments)
    app.operators.set_roles(operator.name, roles, BY)
    print_status(f"{operator.name} is {roles_text(roles)} now")


def _set_passphrase(app: App, arguments: argparse.Namespace) -> None:
    operator = app.operators.find(arguments.name)
    what = f"give {operator.name} another passphrase and end its sessions"
    require_consent(app, "change", what, arguments)
    passphrase = read_new_passphrase(arguments.new_passphrase_file, "operator passphrase")
    app.operators.set_passphrase(operator.name, passphrase, BY)
    print_status(f"{operator.name} has another passphrase; its sessions have ended")


def _remove(app: App, arguments: argparse.Namespace) -> None:
    app.operators.remove(arguments.name, BY)
    print_status(f"removed {arguments.name}")


def _list(app: App, arguments: argparse.Namespace) -> None:
    sessions = [name for _, name in app.operators.sessions()]
    rows = [
        {
            "name": each.name,
            "roles": roles_text(each.roles),
            "since": _moment(each.created_at),
            "sessions": sessions.count(each.name),
        }
        for each in app.operators.list()
    ]
    if arguments.json:
        show_json({"operators": rows})
    elif rows:
        show_table(tuple(rows[0]), [list(row.values()) for row in rows])
    else:
        print_status("there is no operator; `tidegate operator add NAME` adds one")


def _roles(app: App, arguments: argparse.Namespace, default: Role) -> tuple[RoleGrant, ...]:
    known = {source.name for source in app.connections.sources()}
    unknown = [name for name in arguments.source if name not in known]
    if unknown:
        raise TidegateError(
            Code.ARGUMENT_INVALID,
            f"There is no source {unknown[0]}.",
            hint="`tidegate source list` shows the saved ones; --config names others.",
        )
    role: Role = arguments.role or default
    return (RoleGrant(role, frozenset(arguments.source) or None),)


def _quoted(name: str) -> str:
    return name if sys.platform == "win32" or name.isalnum() else f"'{name}'"


def _moment(seconds: float) -> str:
    return datetime.fromtimestamp(seconds, UTC).strftime("%Y-%m-%dT%H:%M:%SZ")
