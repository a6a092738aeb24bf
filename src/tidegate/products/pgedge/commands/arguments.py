"""The arguments of `ask`."""

from __future__ import annotations

from tidegate.cli.arguments.options import (
    Commands,
    at_least_one,
    home_options,
    json_option,
    seconds,
)


def add_ask(commands: Commands) -> None:
    ask = commands.add_parser(
        "ask",
        help="answer a question in plain language with SQL",
        description="Answer a question about a source: find its tables, have the configured model "
        "write a statement, check it, show it and run it. A confirmed question needs no model. "
        "Without a model, show what is needed to write the statement. "
        "docs/howto/ask-questions.md has the steps.",
    )
    ask.set_defaults(module="tidegate.products.pgedge.commands.ask")
    ask.add_argument("source", metavar="SOURCE", help="a saved source")
    ask.add_argument(
        "question",
        metavar="QUESTION",
        nargs="?",
        help="a question, or a statement; - reads it from standard input",
    )
    ask.add_argument(
        "--mode",
        choices=("auto", "sql", "nl"),
        default="auto",
        help="what QUESTION is: SQL, natural language (nl), or to be found out (default: auto)",
    )
    ask.add_argument(
        "--previous", metavar="HANDLE", help="the handle of an answer that QUESTION continues"
    )
    ask.add_argument(
        "--confirm",
        metavar="HANDLE",
        help="confirm the answer of that handle: its question, also with other values, is then "
        "answered without a model",
    )
    ask.add_argument("--forget", metavar="ID", help="remove a confirmed question")
    ask.add_argument(
        "--check",
        action="store_true",
        help="run every confirmed question again, and show which give other rows, fail, or have "
        "lapsed because a table has changed",
    )
    ask.add_argument("--export", action="store_true", help="print the confirmed questions as YAML")
    ask.add_argument(
        "--import",
        dest="pairs",
        metavar="FILE",
        help="confirm the questions of a file that --export wrote; each is checked on SOURCE, and "
        "if one cannot be kept, none is kept; - reads standard input",
    )
    ask.add_argument(
        "--show-prompt",
        action="store_true",
        help="print what the model would be sent, and send nothing",
    )
    ask.add_argument(
        "--no-run", action="store_true", help="write and check the statement, and do not run it"
    )
    ask.add_argument(
        "--rows", type=at_least_one, default=500, metavar="N", help="at most N rows (default 500)"
    )
    ask.add_argument(
        "--timeout",
        type=seconds,
        default=30.0,
        metavar="S",
        help="end the statement after S seconds (default 30)",
    )
    json_option(ask)
    home_options(ask)
