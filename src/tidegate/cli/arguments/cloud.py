"""The arguments of `cloud`."""

from __future__ import annotations

from tidegate.cli.arguments.options import Commands, filled, json_option


def add_cloud(commands: Commands) -> None:
    cloud = commands.add_parser("cloud", help="check documents of cloud providers")
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
    check.set_defaults(module="cloud")
