"""The arguments of `cloud`."""

from __future__ import annotations

import argparse

from tidegate.cli.arguments.options import (
    Commands,
    at_least_one,
    filled,
    home_options,
    json_option,
    seconds,
)


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
    importing = actions.add_parser(
        "import",
        help="make a provider from an OpenAPI document",
        description="Make a provider from an OpenAPI 3 document, and put it into a folder. "
        "Resources are made from its paths: GET and HEAD are for SELECT, and every other operation "
        "is reached by EXEC alone. What cannot be used is left out and named. Nothing is sent.",
    )
    importing.add_argument("file", type=filled, metavar="FILE", help="OpenAPI 3 in YAML or JSON")
    importing.add_argument(
        "--provider", type=filled, required=True, metavar="NAME", help="the provider's name in SQL"
    )
    importing.add_argument(
        "--service", type=filled, default="api", metavar="NAME", help="its service (default: api)"
    )
    importing.add_argument(
        "--server",
        type=filled,
        metavar="URL",
        help="the address of the API (default: the document's first server)",
    )
    importing.add_argument(
        "--replace", action="store_true", help="replace a provider of that name in the folder"
    )
    _folder_option(importing)
    home_options(importing)
    for action in (check, pull, importing):
        action.set_defaults(module="tidegate.products.cloud.commands.cloud")
    _add_snapshots(actions)
    _add_shell(actions)


def _add_snapshots(actions: Commands) -> None:
    snapshot = actions.add_parser(
        "snapshot",
        help="keep what a query gives now, to see later what has changed",
        description="Run a query that reads, through the gate, and write its whole result to a "
        "file that `tidegate cloud diff` compares. There is no file if the result was cut.",
    )
    snapshot.add_argument("source", type=filled, metavar="SOURCE", help="the name of a source")
    snapshot.add_argument("query", type=filled, metavar="QUERY", help="a statement that reads")
    snapshot.add_argument(
        "--output", type=filled, required=True, metavar="FILE", help="the file to write"
    )
    snapshot.add_argument("--overwrite", action="store_true", help="replace a file that is there")
    snapshot.add_argument(
        "--timeout",
        type=seconds,
        default=300.0,
        metavar="S",
        help="how long the query may take (default 300)",
    )
    home_options(snapshot)
    diff = actions.add_parser(
        "diff",
        help="show what changed between two snapshots",
        description="Show the rows that were added, removed and changed between two snapshots. "
        "The exit status is 1 if there are any.",
    )
    diff.add_argument("old", type=filled, metavar="OLD", help="the earlier snapshot")
    diff.add_argument("new", type=filled, metavar="NEW", help="the later snapshot")
    diff.add_argument(
        "--key",
        type=filled,
        action="append",
        default=[],
        metavar="COLUMN",
        help="a column by which rows are the same; may be repeated (default: all columns)",
    )
    json_option(diff)
    for action in (snapshot, diff):
        action.set_defaults(module="tidegate.products.cloud.commands.snapshot")


def _add_shell(actions: Commands) -> None:
    shell = actions.add_parser(
        "shell",
        help="ask cloud providers at a terminal, with history and completion",
        description="Read statements for cloud providers, each ending in a semicolon, and show "
        "what they give. Tab completes providers, services, resources and columns; the arrow keys "
        "recall earlier statements. Without a terminal the statements come from standard input, "
        "and the exit status is 1 if one failed. It only reads: SELECT, SHOW, DESCRIBE, EXPLAIN.",
    )
    shell.set_defaults(module="tidegate.products.cloud.commands.shell")
    shell.add_argument(
        "source",
        nargs="?",
        type=filled,
        metavar="SOURCE",
        help="the source, if there are several of cloud providers",
    )
    shell.add_argument(
        "--rows",
        type=at_least_one,
        default=500,
        metavar="N",
        help="show at most N rows (default 500)",
    )
    shell.add_argument(
        "--timeout",
        type=seconds,
        default=60.0,
        metavar="S",
        help="how long a statement may take (default 60)",
    )
    home_options(shell)


def _folder_option(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "--folder",
        type=filled,
        metavar="DIR",
        help="the folder of provider documents (default: `cloud` in the state directory)",
    )
