"""The arguments of `datalog`."""

from __future__ import annotations

from tidegate.cli.arguments.options import Commands, filled, home_options, json_option


def add_datalog(commands: Commands) -> None:
    datalog = commands.add_parser("datalog", help="prepare what Datalog sources need")
    actions = datalog.add_subparsers(
        title="actions", dest="action", metavar="ACTION", required=True
    )
    warm_up = actions.add_parser(
        "warm-up",
        help="prepare Datalevin's first start, which takes about a minute",
        description="Compile Datalevin and write the cache of the JVM, so that each later start "
        "takes seconds. It is done once for each version of Datalevin and of Java; without this "
        "command the first use of a Datalog source does it. The files are in the user's cache.",
    )
    which = warm_up.add_mutually_exclusive_group()
    which.add_argument("--status", action="store_true", help="say what is prepared")
    which.add_argument("--clear", action="store_true", help="remove what was prepared")
    warm_up.add_argument(
        "--java", type=filled, metavar="PATH", help="a Java of at least 21, or its home"
    )
    warm_up.set_defaults(module="datalog")
    home_options(warm_up)
    json_option(warm_up)
