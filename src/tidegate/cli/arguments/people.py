"""The arguments of `operator` and `webhook`."""

from __future__ import annotations

import argparse

from tidegate.cli.arguments.options import (
    Commands,
    consent_option,
    filled,
    home_options,
    json_option,
)

ROLES = ("viewer", "approver", "admin")


def add_webhook(commands: Commands) -> None:
    webhook = commands.add_parser(
        "webhook", help="check the messages that go out when a call waits for approval"
    )
    actions = webhook.add_subparsers(
        title="actions", dest="action", metavar="ACTION", required=True
    )
    testing = actions.add_parser(
        "test",
        help="send a test message, and show what came back",
        description="Send one message of the type webhook.test to the webhook of the "
        "settings (approvals.webhook), in its format, and show what came back. Fails if the "
        "message was not taken.",
    )
    testing.set_defaults(module="webhook")
    home_options(testing)
    json_option(testing)


def add_operator(commands: Commands) -> None:
    operator = commands.add_parser(
        "operator", help="manage the people who use the console, and what each may do"
    )
    actions = operator.add_subparsers(
        title="actions", dest="action", metavar="ACTION", required=True
    )
    adding = actions.add_parser(
        "add",
        help="add an operator",
        description="Add an operator. A viewer sees what is asked and done on its sources, an "
        "approver answers as well, an admin gives and takes rights as well. The first operator is "
        "an admin unless --role says otherwise.",
    )
    roles = actions.add_parser("roles", help="replace the roles of an operator")
    passphrase = actions.add_parser(
        "passphrase", help="set another passphrase, and end the operator's sessions"
    )
    listing = actions.add_parser("list", help="list the operators, their roles and sessions")
    removing = actions.add_parser("remove", help="remove an operator and end its sessions")
    for action in (adding, roles, passphrase, removing):
        action.add_argument("name", type=filled, metavar="NAME", help="the name of the operator")
    for action in (adding, roles):
        _role_options(action)
    for action in (adding, passphrase):
        action.add_argument(
            "--new-passphrase-file",
            type=filled,
            metavar="FILE",
            help="read the operator's new passphrase from FILE, - for standard input",
        )
    for action in (adding, roles, passphrase):
        consent_option(action)
    json_option(listing)
    for action in (adding, roles, passphrase, listing, removing):
        action.set_defaults(module="operator")
        home_options(action)


def _role_options(action: argparse.ArgumentParser) -> None:
    action.add_argument("--role", choices=ROLES, help="what it may do (default: approver)")
    action.add_argument(
        "--source",
        action="append",
        default=[],
        type=filled,
        metavar="NAME",
        help="a source on which it has the role (default: all); may be repeated",
    )
