"""`tidegate passphrase set | remove`: what commands that give rights ask for."""

from __future__ import annotations

import argparse

from tidegate.app import App
from tidegate.cli.consent import read_new_passphrase, require_consent
from tidegate.cli.local_actor import with_app
from tidegate.cli.settings import load_for_state
from tidegate.cli.terminal import print_status


def run(arguments: argparse.Namespace) -> int:
    """Do what `arguments.action` says."""
    action = {"set": _set, "remove": _remove}[arguments.action]

    async def work(app: App) -> None:
        action(app, arguments)

    with_app(App.open(load_for_state(arguments)), work)
    return 0


def _set(app: App, arguments: argparse.Namespace) -> None:
    what = "set the operator's passphrase"
    require_consent(app, "set", what, arguments, no_word=not app.granted_rights.exist)
    passphrase = read_new_passphrase(arguments.new_passphrase_file, "passphrase set")
    app.note("operator.passphrase_set", {})
    app.operator_passphrase.set(passphrase)
    print_status("the passphrase is set: whatever gives rights asks for it from now on")
    _name_other_gates(app)


def _remove(app: App, arguments: argparse.Namespace) -> None:
    if not app.operator_passphrase.is_set:
        print_status("there is no passphrase")
        return
    require_consent(app, "remove", "remove the operator's passphrase", arguments)
    app.note("operator.passphrase_removed", {})
    app.operator_passphrase.remove()
    print_status("the passphrase is removed: a typed word on a terminal is asked for instead")
    _name_other_gates(app)


def _name_other_gates(app: App) -> None:
    """Say that each gate on a shared state keeps the passphrase for its own commands."""
    if app.lease is not None:
        file = app.directory / "operator.json"
        print_status(f"note: at this gate alone. Bring `{file}` to the same at the other gates.")
