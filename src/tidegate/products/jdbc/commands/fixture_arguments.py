"""The arguments of `tidegate fixture`."""

from __future__ import annotations

from tidegate.cli.arguments.options import Commands, filled, home_options, seconds

_FILE = "a file that names a source, queries and the files of code (TOML)"


def add_fixture(commands: Commands) -> None:
    fixture = commands.add_parser("fixture", help="keep rows of queries as code for tests")
    actions = fixture.add_subparsers(
        title="actions", dest="action", metavar="ACTION", required=True
    )
    check = actions.add_parser(
        "check",
        help="fail, and show the difference, if the code is not what the database has now",
        description="Run the confirmed queries of a file and compare their rows with the code "
        "that was written. Nothing is written. The exit status is 1 if they differ.",
    )
    refresh = actions.add_parser(
        "refresh",
        help="write the code from the rows of now",
        description="Show the queries of a file that were not confirmed as they are; with "
        "--confirm confirm those that were shown before, run all, and write the code of their "
        "rows. Masks and filters apply as for `tidegate query`.",
    )
    refresh.add_argument(
        "--confirm", action="store_true", help="confirm the queries that were shown before"
    )
    for each in (check, refresh):
        each.set_defaults(module="tidegate.products.jdbc.commands.fixture")
        each.add_argument("file", type=filled, metavar="FILE", help=_FILE)
        each.add_argument(
            "--timeout",
            type=seconds,
            default=30.0,
            metavar="S",
            help="end each query after S seconds (default 30)",
        )
        home_options(each)
