"""The arguments of `cloud`."""

from __future__ import annotations

import argparse

from tidegate.cli.arguments.options import Commands, filled, home_options, json_option


def add_cloud(commands: Commands) -> None:
    cloud = commands.add_parser("cloud", help="fetch and check documents of cloud providers")
    actions = cloud.add_subparsers(title="actions", dest="action", metavar="ACTION", required=True)
    check = actions.add_parser(
        "check",
        help="check all provider documents of a registry folder",
        description="Load every provider document below a registry folder, compile all of its "
        "resources and methods, and say what could not be used. Nothing is sent anywhere. Services "
        "whose document is not in the folder are counted as absent. The exit status is 1 if there "
        "is an error.",
    )
    check.add_argument(
        "folder", type=filled, metavar="DIR", help="a folder with src/<provider>/<version>"
    )
    json_option(check)
    pull = actions.add_parser(
        "pull",
        help="fetch the documents of a provider from the registry",
        description="Fetch the documents of a provider from the registry of the setting "
        "`cloud.registry`, verify their signatures with `cloud.certificate`, and put them into a "
        "folder. A source for that folder has the URL that is printed.",
    )
    pull.add_argument("provider", type=filled, metavar="PROVIDER", help="such as github")
    pull.add_argument(
        "version",
        nargs="?",
        default="",
        metavar="VERSION",
        help="such as v24.11.00274 (default: the latest that is no preview)",
    )
    _folder_option(pull)
    home_options(pull)
    for action in (check, pull):
        action.set_defaults(module="cloud")


def _folder_option(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "--folder",
        type=filled,
        metavar="DIR",
        help="the folder of provider documents (default: `cloud` in the state directory)",
    )
