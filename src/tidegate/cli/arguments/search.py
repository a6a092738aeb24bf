"""The commands about search: `embed` and `search check`."""

from __future__ import annotations

from tidegate.cli.arguments.options import Commands, filled, home_options, json_option, seconds


def add_embed(commands: Commands) -> None:
    embed = commands.add_parser(
        "embed",
        help="fill a column with the vectors of a column of texts",
        description="Compute the vector of each text of COLUMN with the model of `embeddings` in "
        "the settings, and write it into a column next to the text. The same command continues "
        "after a stop, and later embeds changed texts only. The source needs the access write.",
    )
    embed.set_defaults(module="embed")
    embed.add_argument("source", metavar="SOURCE", help="a saved source")
    embed.add_argument("table", metavar="TABLE", help="a table, as table or schema.table")
    embed.add_argument("column", metavar="COLUMN", help="the column of texts")
    embed.add_argument(
        "--into",
        type=filled,
        metavar="NAME",
        help="the column of vectors (default COLUMN_embedding)",
    )
    embed.add_argument(
        "--replace",
        action="store_true",
        help="for a new model: fill a second column, then let it take the place of the first",
    )
    embed.add_argument(
        "--status", action="store_true", help="say how far it is, and change nothing"
    )
    embed.add_argument(
        "--follow",
        action="store_true",
        help="keep running and check for changed texts until stopped",
    )
    embed.add_argument(
        "--every", type=seconds, default=60.0, metavar="S", help="look again after S seconds (60)"
    )
    embed.add_argument(
        "--passphrase-file",
        type=filled,
        metavar="FILE",
        help="the operator's passphrase; - is stdin",
    )
    json_option(embed)
    home_options(embed)


def add_search(commands: Commands) -> None:
    search = commands.add_parser("search", help="check that tables can be searched well")
    kinds = search.add_subparsers(dest="action", metavar="ACTION", required=True)
    check = kinds.add_parser(
        "check",
        help="measure an index against exact search, and find what is wrong",
        description="For each column of vectors: whether the configured model fits, how many rows "
        "have no vector or a stale one, whether an index can be used, and how many of the nearest "
        "rows it finds, by the table's own vectors. Says what to do about each. Changes nothing.",
    )
    check.set_defaults(module="search")
    check.add_argument("source", metavar="SOURCE", help="a saved source")
    check.add_argument("table", metavar="TABLE", help="a table, as table or schema.table")
    json_option(check)
    home_options(check)
