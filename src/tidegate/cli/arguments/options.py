"""Options that several commands share."""

from __future__ import annotations

import argparse
from typing import Any

from tidegate.config.state import is_database

Commands = Any  # argparse names the type of a set of subparsers with an underscore.
Options = Any  # a parser, or a group of its options, whose type argparse names so as well.

SCOPES = ("readOnly", "readWrite", "fullAccess")
FORMATS = ("csv", "json", "jsonl", "sql", "parquet")
"""The forms in which rows are written to a file."""


def filled(text: str) -> str:
    """Refuse an empty value, which an unset shell variable would leave."""
    if not text:
        raise argparse.ArgumentTypeError("it is empty")
    return text


def at_least_one(text: str) -> int:
    """A whole number above 0."""
    if not text.isascii() or not text.isdigit() or int(text) < 1:
        raise argparse.ArgumentTypeError(f"{text[:40]!r} is not a number above 0")
    return int(text)


def row_limit(text: str) -> int:
    """A number of rows above 0, or 0 for `none`."""
    return 0 if text == "none" else at_least_one(text)


def seconds(text: str) -> float:
    """A time above 0."""
    try:
        value = float(text)
    except ValueError:
        value = 0.0
    if not 0 < value < 1e9:
        raise argparse.ArgumentTypeError(f"{text[:40]!r} is not a number of seconds")
    return value


class _StateAction(argparse.Action):
    """Keeps a directory as `state`, and the URL of a database as `state_url`."""

    def __call__(
        self,
        parser: argparse.ArgumentParser,
        namespace: argparse.Namespace,
        values: Any,
        option_string: str | None = None,
    ) -> None:
        setattr(namespace, "state_url" if is_database(values) else "state", values)


def state_option(
    parser: argparse.ArgumentParser,
    explanation: str = "holds all state (default: $TIDEGATE_STATE, else the data directory); or, "
    "also beside a DIR, postgresql://...: several servers share that state, and DIR holds the "
    "record and the keys of this one (default: $TIDEGATE_STATE_URL, else none)",
) -> None:
    parser.set_defaults(state_url=None)
    parser.add_argument(
        "--state", type=filled, action=_StateAction, metavar="DIR", help=explanation
    )


def config_option(
    parser: argparse.ArgumentParser,
    explanation: str = "the settings file of the server, which applies here too (default: "
    "$TIDEGATE_CONFIG, else none)",
) -> None:
    parser.add_argument("--config", type=filled, metavar="PATH", help=explanation)


def home_options(parser: argparse.ArgumentParser) -> None:
    """The state and the settings that a command works on."""
    state_option(parser)
    config_option(parser)


def ahead_option(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "--allow-unknown",
        action="store_true",
        help="allow names of sources, tags and tables that do not exist yet",
    )


def json_option(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--json", action="store_true", help="print JSON instead of a table")


def listing_options(parser: argparse.ArgumentParser) -> None:
    """For commands that print a list: see `cli/listing.py`."""
    parser.add_argument(
        "--limit",
        type=at_least_one,
        metavar="N",
        help="show at most N (default 200; all with --json)",
    )
    parser.add_argument(
        "--like", type=filled, metavar="TEXT", help="show only those whose name holds TEXT"
    )


def consent_option(parser: argparse.ArgumentParser) -> None:
    """For commands that give rights away: see `cli/consent.py`."""
    parser.add_argument(
        "--passphrase-file",
        type=filled,
        metavar="FILE",
        help="read the operator's passphrase from FILE, - for standard input, where one is set",
    )


def keep_option(parser: Options) -> None:
    parser.add_argument(
        "--keep-in",
        choices=("file", "keyring"),
        help="where the password is kept: in a file of the state directory that only your account "
        "can read (default), or in the keyring of the operating system, which needs the extra "
        "keyring; `source update` moves it there",
    )
