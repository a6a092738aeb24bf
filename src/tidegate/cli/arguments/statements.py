"""The arguments of `query`, `tables`, `export`, `explain` and `judge`."""

from __future__ import annotations

import argparse

from tidegate.cli.arguments.options import (
    FORMATS,
    SCOPES,
    Commands,
    at_least_one,
    filled,
    home_options,
    json_option,
    seconds,
)
from tidegate.product import built_in


def _dialects() -> str:
    """The names of the dialects, those of the kernel first."""
    return ", ".join(
        ["postgres", "sqlite", *(name for each in built_in() for name in each.dialects)]
    )


def add_query(commands: Commands) -> None:
    query = commands.add_parser("query", help="run one statement through the gate")
    query.set_defaults(module="query", rest_into="values")
    query.add_argument("source", metavar="SOURCE", help="a saved source")
    query.add_argument(
        "sql",
        metavar="SQL",
        nargs="?",
        help="one statement in the language of the source; - reads it from standard input",
    )
    query.add_argument(
        "values",
        metavar="VALUE",
        nargs="*",
        default=[],
        help="the values of the placeholders (? or $1) in order; a number, true, false, null or a "
        "quoted text as in JSON, anything else is text",
    )
    query.add_argument(
        "--file", type=filled, metavar="FILE", help="read the statement from FILE instead"
    )
    query.add_argument(
        "--param",
        metavar="NAME=VALUE",
        action="append",
        default=[],
        help="the value of :NAME in the statement, written as VALUE is; may be repeated",
    )
    query.add_argument(
        "--format",
        choices=FORMATS,
        help="write the rows as csv, json (an array of objects), jsonl (an object a line), sql "
        "(INSERT statements) or parquet (needs the extra duckdb) (default: by the ending of "
        "--output, otherwise show a table)",
    )
    query.add_argument(
        "--csv", action="store_const", const="csv", dest="format", help="the same as --format csv"
    )
    query.add_argument(
        "--output", type=filled, metavar="FILE", help="write them to FILE, in any directory"
    )
    query.add_argument("--overwrite", action="store_true", help="replace FILE if it is there")
    query.add_argument(
        "--rows",
        type=int,
        metavar="N",
        help="return at most N rows (default 500 where they are shown, all with --format or "
        "--output)",
    )
    query.add_argument(
        "--timeout",
        type=seconds,
        default=30.0,
        metavar="S",
        help="end the statement after S seconds (default 30)",
    )
    json_option(query)
    home_options(query)


def add_tables(commands: Commands) -> None:
    """`tables` and `describe`."""
    tables = commands.add_parser("tables", help="list the tables of a source")
    describe = commands.add_parser("describe", help="show the columns and keys of tables")
    for command in (tables, describe):
        command.set_defaults(module="tables")
        command.add_argument("source", metavar="SOURCE", help="a saved source")
    describe.add_argument(
        "tables", metavar="TABLE", nargs="+", help="a table, as table or schema.table"
    )
    for command in (tables, describe):
        json_option(command)
        home_options(command)


def add_export(commands: Commands) -> None:
    export = commands.add_parser(
        "export",
        help="write whole tables to files, in any directory",
        description="Write each table to a file of its name. Masks, filters and limits of time "
        "apply as for `tidegate query`. (The tool `export_data` of agents writes to one directory "
        "only, which the settings name.)",
    )
    export.set_defaults(module="export", rest_into="tables")
    export.add_argument("source", metavar="SOURCE", help="a saved source")
    export.add_argument(
        "tables",
        metavar="TABLE",
        nargs="*",
        default=[],
        help="a table, as table or schema.table (default: every table that is no view)",
    )
    export.add_argument(
        "--directory",
        type=filled,
        default=".",
        metavar="DIR",
        help="where the files go (default: the current directory)",
    )
    export.add_argument(
        "--format",
        choices=[each for each in FORMATS if each != "sql"],
        default="csv",
        help="csv (default), json, jsonl or parquet (needs the extra duckdb)",
    )
    export.add_argument("--overwrite", action="store_true", help="replace files that are there")
    export.add_argument(
        "--rows", type=at_least_one, metavar="N", help="at most N rows of each table (default all)"
    )
    export.add_argument(
        "--timeout",
        type=seconds,
        default=300.0,
        metavar="S",
        help="end each statement after S seconds (default 300)",
    )
    home_options(export)


def add_explain(commands: Commands) -> None:
    explain = commands.add_parser(
        "explain",
        help="show the policy decision for a statement, rule by rule",
        description="Show the decision on one caller's statement and the result of every rule. "
        "The statement is not run.",
    )
    explain.set_defaults(module="explain")
    explain.add_argument("first", metavar="SOURCE", nargs="?", help="where it would run")
    explain.add_argument("second", metavar="SQL", nargs="?", help="the statement, or - to read it")
    _statement_options(explain)
    explain.add_argument(
        "--token-name",
        metavar="NAME",
        help="the caller (default: the local operator, as with `tidegate query`)",
    )
    explain.add_argument(
        "--confirmed", action="store_true", help="assume that the confirmation phrase was given"
    )
    explain.add_argument("--json", action="store_true", help="show JSON")
    home_options(explain)


def _statement_options(parser: argparse.ArgumentParser) -> None:
    """Where else a statement may come from, and the words that follow it."""
    parser.add_argument(
        "--file", type=filled, metavar="FILE", help="read the statement from FILE instead"
    )
    parser.set_defaults(rest=[], rest_into="rest")


def add_judge(commands: Commands) -> None:
    judge = commands.add_parser(
        "judge",
        help="classify a statement and decide on it, without running it",
        description="Print the effect of a statement, and the decision for a caller of the given "
        "scope, as one JSON object for each statement.",
    )
    judge.set_defaults(module="judge")
    judge.add_argument(
        "first",
        metavar="SOURCE",
        nargs="?",
        help="classify for this source, and ask its database as well; may be left out",
    )
    judge.add_argument(
        "second",
        metavar="SQL",
        nargs="?",
        help='one statement; - or nothing reads lines such as {"dialect":"sqlite","sql":"..."}',
    )
    _statement_options(judge)
    judge.add_argument(
        "--dialect",
        metavar="NAME",
        default="default",
        help=f"{_dialects()}; without it, or with another name, the strictest rules apply",
    )
    judge.add_argument(
        "--scope", choices=SCOPES, default="readOnly", help="the caller's scope (default: readOnly)"
    )
    home_options(judge)
