"""The arguments of `datalog` and `dtlv`."""

from __future__ import annotations

import argparse

from tidegate.cli.arguments.options import (
    Commands,
    consent_option,
    filled,
    home_options,
    json_option,
)


def add_datalog(commands: Commands) -> None:
    datalog = commands.add_parser("datalog", help="prepare Datalog sources, and import into them")
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
    importing = actions.add_parser(
        "import",
        help="import a file of JSON lines, CSV or EDN into a Datalog source",
        description="Import a file into a Datalog source that may be written. The schema that is "
        "inferred from the file is shown first. Each record is an entity; it is known again by "
        "the attribute --key, if one is named. Attributes that the database has keep their schema.",
    )
    importing.add_argument("source", metavar="SOURCE", help="the name of a source")
    importing.add_argument("file", type=filled, metavar="FILE", help="a .jsonl, .csv or .edn file")
    importing.add_argument(
        "--format",
        choices=("jsonl", "csv", "edn"),
        help="what the file holds (default: its ending)",
    )
    importing.add_argument(
        "--namespace",
        metavar="NAME",
        help="the namespace of attributes without one (default: the name of the file; empty: none)",
    )
    importing.add_argument(
        "--key", type=filled, metavar="ATTRIBUTE", help="the attribute that is an entity's identity"
    )
    importing.add_argument(
        "--fulltext",
        type=filled,
        metavar="ATTRIBUTE",
        action="append",
        default=[],
        help="an attribute whose words are indexed; may be repeated",
    )
    importing.add_argument(
        "--vector",
        type=filled,
        metavar="ATTRIBUTE",
        action="append",
        default=[],
        help="an attribute whose values are vectors: lists of numbers; may be repeated",
    )
    importing.add_argument(
        "--schema-only", action="store_true", help="show the schema and import nothing"
    )
    consent_option(importing)
    for action in (warm_up, importing, *_maintenance(actions)):
        action.set_defaults(module="tidegate.products.datalog.commands.datalog")
        home_options(action)
        json_option(action)


def _maintenance(actions: Commands) -> list[argparse.ArgumentParser]:
    """Datalevin's commands on a whole directory."""
    copy = actions.add_parser(
        "copy",
        help="copy the directory of a source, also while it is in use",
        description="Copy a Datalevin directory as it is at one moment, also while other programs "
        "write to it.",
    )
    dump = actions.add_parser(
        "dump",
        help="write all of a source to a file of text",
        description="Write the schema, the facts and the tables of a source to a new file, as the "
        "command dump of Datalevin does, as they are at one moment.",
    )
    load = actions.add_parser(
        "load",
        help="fill a new source from a dump",
        description="Fill a source from a file that `dump`, or Datalevin's own command, wrote. Its "
        "directory must be empty, and the source must allow writes.",
    )
    stat = actions.add_parser(
        "stat",
        help="show entries and pages of each table of a source",
        description="Show how many entries and pages each table of the store has.",
    )
    migrate = actions.add_parser(
        "migrate",
        help="copy a directory of another patch release for this one",
        description="Copy the directory of a source that another patch release of Datalevin made, "
        "so that the copy can be opened. The directory itself is not changed, and nothing is "
        "downloaded. Directories of another major or minor version are dumped and loaded.",
    )
    undo = actions.add_parser(
        "undo",
        help="take back a change by the journal of its source",
        description="Take back a change of a source that keeps a journal (its option `journal`): "
        "facts that it added are retracted, those that it retracted are added again. Nothing is "
        "changed if one of these facts has changed since. Attributes that the change made stay. "
        "Without RECORD the last changes are listed.",
    )
    for action in (copy, dump, load, stat, migrate, undo):
        action.add_argument("source", metavar="SOURCE", help="the name of a source")
    copy.add_argument("directory", type=filled, metavar="DIRECTORY", help="a new directory")
    copy.add_argument("--compact", action="store_true", help="leave out free pages")
    dump.add_argument("file", type=filled, metavar="FILE", help="a new file")
    load.add_argument("file", type=filled, metavar="FILE", help="a file of text that dump wrote")
    consent_option(load)
    migrate.add_argument(
        "--copy-to", type=filled, metavar="DIRECTORY", required=True, help="a new directory"
    )
    undo.add_argument("record", metavar="RECORD", nargs="?", help="the change, by its call id")
    consent_option(undo)
    return [copy, dump, load, stat, migrate, undo]


def add_dtlv(commands: Commands) -> None:
    dtlv = commands.add_parser(
        "dtlv",
        help="serve the surface datalog on stdio, spelled as Datalevin's own command",
        description="`tidegate dtlv mcp` is `tidegate serve --surface datalog`, so that a client "
        "that starts `dtlv mcp` needs one word more.",
    )
    dtlv.set_defaults(module="tidegate.products.datalog.commands.dtlv")
    dtlv.add_argument(
        "-w", "--allow-writes", action="store_true", help="allow the client to change data"
    )
    actions = dtlv.add_subparsers(title="actions", dest="action", metavar="ACTION", required=True)
    mcp = actions.add_parser("mcp", help="serve MCP on stdio")
    home_options(mcp)
