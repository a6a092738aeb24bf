"""The words of the commands about sources, and of those that ask them."""

from __future__ import annotations

import argparse
from typing import Literal

from tidegate.cli.arguments.options import SCOPES, Commands, home_options, json_option
from tidegate.cli.terminal import print_status
from tidegate.config.old_names import OLD_POLICY, new_policy, policy_note

Show = Literal["nothing", "hash", "partial"]
SHOWS: tuple[Show, ...] = ("nothing", "hash", "partial")
SOURCE_RULES = {
    "access": (("read", "none", "write"), "the most that any caller may do"),
    "agents": (
        ("allow", "ask", "deny"),
        "whether agents may use it; ask: a person must approve each of their calls",
    ),
    "approval_for": (
        ("nothing", "writes", "everything"),
        "which statements a person must approve, for every caller",
    ),
    "changes": (
        ("allow", "deny"),
        "whether statements that change data may run where access is write",
    ),
    "approval": (
        ("any", "inbox"),
        "where a person may answer: in the client too, or in `tidegate approvals` alone",
    ),
    "unattended": (
        ("deny", "allow"),
        "what happens if a person must be asked and the client can show no question",
    ),
    "unqualified": (
        ("confirm", "allow", "deny"),
        "what happens to UPDATE and DELETE without WHERE",
    ),
    "destructive_scope": (("readWrite", "fullAccess"), "the scope that DROP and TRUNCATE need"),
}
"""Settings of a source that are flags of `source add` and `update`: what each may be, its default
first, and what it means."""


class _OldPolicyName(argparse.Action):
    """An option under its old name: sets what its word stands for now, and prints a note."""

    def __call__(
        self,
        parser: argparse.ArgumentParser,
        namespace: argparse.Namespace,
        values: object,
        option_string: str | None = None,
    ) -> None:
        for name, value in new_policy(self.dest, str(values)).items():
            setattr(namespace, name, value)
        print_status(f"note: {policy_note(self.dest, '--').replace('_', '-')}")


CLEARABLE = ("tags", "masks", "filters", "run-as", "options")


def _source_rules(action: argparse.ArgumentParser, *, anew: bool) -> None:
    """The flags that say what a source admits; what is not given is None or empty, and has its
    default if the source is made `anew`."""
    action.add_argument(
        "--tag", action="append", default=[], metavar="TAG", help="its tags; may be repeated"
    )
    for name, (choices, explanation) in SOURCE_RULES.items():
        told = f"{explanation} (default: {choices[0]})" if anew else explanation
        action.add_argument(f"--{name.replace('_', '-')}", choices=choices, help=told)
    for old, words in OLD_POLICY.items():
        action.add_argument(
            f"--{old.replace('_', '-')}",
            action=_OldPolicyName,
            choices=tuple(words),
            default=argparse.SUPPRESS,
            help=argparse.SUPPRESS,
        )
    action.add_argument(
        "--run-as-role",
        metavar="ROLE",
        help="the database's role that callers run as; {actor.name} is the name of their token",
    )
    action.add_argument(
        "--run-as",
        metavar="CALLER=ROLE",
        action="append",
        default=[],
        help="the role of one caller, by the name of its token, such as alice=reader; without "
        "--run-as-role all other callers are refused; repeatable",
    )
    action.add_argument(
        "--run-as-variable",
        metavar="NAME=VALUE",
        action="append",
        default=[],
        help="a variable of the database session, like app.actor={actor.name}; repeatable",
    )
    action.add_argument(
        "--option",
        metavar="NAME=VALUE",
        action="append",
        default=[],
        help="an option that the source's engine has beside its URL; a secret is a reference, "
        "${ENV:NAME} or ${FILE:/path}; may be repeated",
    )
    action.add_argument(
        "--mask",
        action="append",
        default=[],
        type=mask,
        metavar="COLUMN[=SHOW]",
        help="hide a column, such as customers.email, but for its hash, a part or nothing "
        "(default: nothing); may be repeated",
    )
    action.add_argument(
        "--filter",
        action="append",
        default=[],
        type=row_filter,
        metavar="TABLE:CONDITION",
        help="show rows of a table only where this holds, as 'orders: tenant_id = 7'; may be "
        "repeated",
    )


def _password_options(action: argparse.ArgumentParser) -> None:
    """How a password comes in, and what is done with a source that does not work."""
    how = action.add_mutually_exclusive_group()
    how.add_argument(
        "--ask-password",
        action="store_true",
        help="ask for the password on the terminal and keep it in the state directory; a URL with "
        "a user and no password is asked for anyway if the server wants one",
    )
    how.add_argument(
        "--password-stdin",
        action="store_true",
        help="take the password from the first line of standard input and keep it",
    )
    action.add_argument(
        "--anyway", action="store_true", help="save it although it does not work now"
    )


def add_source(commands: Commands) -> None:
    source = commands.add_parser("source", help="add, change, list, remove and test sources")
    actions = source.add_subparsers(title="actions", dest="action", metavar="ACTION", required=True)
    add = actions.add_parser("add", help="save a source")
    add.add_argument("name", metavar="NAME", help="the name that callers use")
    add.add_argument("url", metavar="URL", help="such as sqlite:////data/shop.db")
    add.add_argument(
        "--allow-writes",
        action="store_const",
        const="write",
        dest="access",
        help="let tokens that may write do so there; the same as --access write",
    )
    _source_rules(add, anew=True)
    update = actions.add_parser(
        "update",
        help="change a source's settings",
        description="Change what is given and leave the rest. Tags, masks and filters that are "
        "given replace those that were there; of --run-as, --run-as-variable and --option each "
        "replaces its own, and an empty one (alice=) takes it away. It holds from the next call, "
        "also in servers that run.",
    )
    update.add_argument("name", metavar="NAME", help="a saved source")
    update.add_argument("--url", metavar="URL", help="the new address")
    _source_rules(update, anew=False)
    update.add_argument(
        "--clear",
        action="append",
        default=[],
        choices=CLEARABLE,
        help="remove all of these first, then add those that are given; may be repeated",
    )
    for action in (add, update):
        _password_options(action)
    listing = actions.add_parser("list", help="list the saved sources")
    remove = actions.add_parser("remove", help="remove a saved source; its data stays as it is")
    remove.add_argument("name", metavar="NAME", help="a saved source")
    test = actions.add_parser("test", help="open a source and report what it is")
    test.add_argument("name", metavar="NAME", help="a saved source")
    for action in (add, update, listing, remove, test):
        action.set_defaults(module="source")
        home_options(action)
    for action in (listing, test):
        json_option(action)


def add_query(commands: Commands) -> None:
    query = commands.add_parser("query", help="run one statement through the gate")
    query.set_defaults(module="query")
    query.add_argument("source", metavar="SOURCE", help="a saved source")
    query.add_argument("sql", metavar="SQL", help="one statement; - reads it from standard input")
    query.add_argument(
        "--rows", type=int, default=500, metavar="N", help="show at most N rows (default 500)"
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


def add_explain(commands: Commands) -> None:
    explain = commands.add_parser(
        "explain",
        help="show the policy decision for a statement, rule by rule",
        description="Show the verdict on one caller's statement and every rule that was looked at."
        " Nothing is run.",
    )
    explain.set_defaults(module="explain")
    explain.add_argument("sql", metavar="SQL", help="the statement, or - to read it")
    explain.add_argument("--source", metavar="NAME", required=True, help="where it would run")
    explain.add_argument(
        "--token-name",
        metavar="NAME",
        help="the caller (default: the local operator, as with `tidegate query`)",
    )
    explain.add_argument(
        "--confirmed", action="store_true", help="as if the confirmation phrase was given"
    )
    explain.add_argument("--json", action="store_true", help="show JSON")
    home_options(explain)


def add_judge(commands: Commands) -> None:
    judge = commands.add_parser(
        "judge",
        help="classify a statement and decide on it, without running it",
        description="Say what a statement would do and whether a caller of the given scope may: "
        "one JSON object for each statement.",
    )
    judge.set_defaults(module="judge")
    judge.add_argument(
        "sql",
        metavar="SQL",
        nargs="?",
        default="-",
        help='one statement; - or nothing reads lines such as {"dialect":"sqlite","sql":"..."}',
    )
    judge.add_argument(
        "--dialect",
        metavar="NAME",
        default="default",
        help="postgres, mysql, sqlite, duckdb; any other, and none, is judged most cautiously",
    )
    judge.add_argument(
        "--source", metavar="NAME", help="judge for this source, with its database's own opinion"
    )
    judge.add_argument(
        "--scope", choices=SCOPES, default="readOnly", help="of the caller (default: readOnly)"
    )
    home_options(judge)


def seconds(text: str) -> float:
    """A time above 0."""
    try:
        value = float(text)
    except ValueError:
        value = 0.0
    if not 0 < value < 1e9:
        raise argparse.ArgumentTypeError(f"{text[:40]!r} is not a number of seconds")
    return value


def mask(text: str) -> tuple[str, Show]:
    """`COLUMN=SHOW` as a pair; without `=SHOW` nothing of the column is shown."""
    column, _, given = text.partition("=")
    for show in SHOWS:
        if show == (given or "nothing") and "." in column.strip("."):
            return column, show
    raise argparse.ArgumentTypeError(f"{text!r} is not of the form TABLE.COLUMN=hash")


def row_filter(text: str) -> tuple[str, str]:
    """`TABLE: CONDITION` as a pair."""
    table, _, condition = (part.strip() for part in text.partition(":"))
    if not (table and condition):
        raise argparse.ArgumentTypeError(f"{text!r} is not of the form 'TABLE: CONDITION'")
    return table, condition
