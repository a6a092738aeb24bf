"""The arguments of `source`."""

from __future__ import annotations

import argparse
from typing import TYPE_CHECKING, Any, Literal

from tidegate.cli.arguments.options import (
    Commands,
    Options,
    consent_option,
    filled,
    home_options,
    json_option,
    keep_option,
    listing_options,
    row_limit,
)
from tidegate.cli.hooks import command_hooks

if TYPE_CHECKING:
    from tidegate.model.source_settings import Mask, RowFilter

Show = Literal["nothing", "hash", "partial"]
SHOWS: tuple[Show, ...] = ("nothing", "hash", "partial")
SOURCE_RULES = {
    "access": (("read", "none", "write", "admin"), "the most that any caller may do"),
    "agents": (
        ("allow", "ask", "deny"),
        "whether agents may use it; ask: a person must approve each of their calls",
    ),
    "approval_for": (
        ("nothing", "writes", "everything"),
        "statements that a person approves",
    ),
    "changes": (
        ("allow", "deny"),
        "whether statements that change data may run where access is write",
    ),
    "approval": (
        ("any", "inbox"),
        "where a person may answer: in the client and in `tidegate approvals`, or in `tidegate "
        "approvals` only",
    ),
    "unattended": (
        ("deny", "allow"),
        "what happens if a person must approve and the client cannot ask them",
    ),
    "unqualified": (
        ("confirm", "allow", "deny"),
        "what happens to a change of every row of a table, whatever its form",
    ),
    "destructive_scope": (
        ("readWrite", "fullAccess"),
        "the scope that DROP, TRUNCATE and others that may lose data need",
    ),
    "undo": (
        ("off", "keep", "require"),
        "whether the rows of changes are kept so that they can be taken back; require: refuse a "
        "change of which they cannot be kept",
    ),
}
"""The settings of a source that are options of `source add` and `update`: the values, the default
first, and the meaning."""


_NO_CHANGES: dict[str, Any] = {
    **dict.fromkeys(("url", "run_as_role", "max_rows_changed", *SOURCE_RULES)),
    **dict.fromkeys(("tag", "mask", "filter", "function", "option", "clear"), ()),
    **dict.fromkeys(("run_as", "run_as_variable"), ()),
    "ask_password": False,
    "keep_in": None,
    "password_stdin": False,
}
"""The arguments of `source update` where nothing is given."""
_MOST_USED = ("--allow-writes", "--approval-for", "--undo", "--mask", "--filter", "--ask-password")
"""The options of `source add` that its --help shows; the rest is in --help-all."""
CLEARABLE = ("tags", "masks", "filters", "functions", "run-as", "options")


def _source_rules(parser: argparse.ArgumentParser, *, new: bool) -> None:
    """Add the options for a source's policy. Without a value an option is None or empty; the help
    names the default if the source is `new`."""
    rights = parser.add_argument_group("what callers may do")
    rights.add_argument(
        "--tag", action="append", default=[], metavar="TAG", help="its tags; may be repeated"
    )
    if new:
        rights.add_argument(
            "--allow-writes",
            action="store_const",
            const="write",
            dest="access",
            help="allow writes by tokens that may write; the same as --access write",
        )
    for name, (choices, explanation) in SOURCE_RULES.items():
        text = f"{explanation} (default: {choices[0]})" if new else explanation
        rights.add_argument(f"--{name.replace('_', '-')}", choices=choices, help=text)
    rights.add_argument(
        "--max-rows-changed",
        type=row_limit,
        metavar="N",
        help="refuse a change of more than N rows, also in a transaction"
        + (" (default: none)" if new else "; none removes the limit"),
    )
    rights.add_argument(
        "--function",
        action="append",
        default=[],
        metavar="SCHEMA.NAME",
        help="a function that a user of the database wrote and that reads may call, whatever it "
        "does; not in changes, nor for callers from whom something is hidden; may be repeated",
    )
    _hiding_options(parser)
    _run_as_options(parser)
    _engine_options(parser)


def _hiding_options(parser: argparse.ArgumentParser) -> None:
    """What callers do not see."""
    hidden = parser.add_argument_group("what callers do not see")
    hidden.add_argument(
        "--mask",
        action="append",
        default=[],
        type=mask,
        metavar="COLUMN[=SHOW]",
        help="mask a column, such as customers.email; SHOW is nothing, hash or partial (default: "
        "nothing); may be repeated",
    )
    hidden.add_argument(
        "--filter",
        action="append",
        default=[],
        type=row_filter,
        metavar="TABLE:CONDITION",
        help="show only the rows of a table that meet a condition, such as 'orders: tenant_id = "
        "7'; may be repeated",
    )


def _run_as_options(parser: argparse.ArgumentParser) -> None:
    """As which role of the database its callers run."""
    roles = parser.add_argument_group("the role in the database")
    roles.add_argument(
        "--run-as-role",
        metavar="ROLE",
        help="the database role that callers run as; {actor.name} is the name of their token",
    )
    roles.add_argument(
        "--run-as",
        metavar="CALLER=ROLE",
        action="append",
        default=[],
        help="the role of one caller, by the name of its token, such as alice=reader; without "
        "--run-as-role all other callers are refused; may be repeated",
    )
    roles.add_argument(
        "--run-as-variable",
        metavar="NAME=VALUE",
        action="append",
        default=[],
        help="a variable of the database session, like app.actor={actor.name}; may be repeated",
    )


def _engine_options(parser: argparse.ArgumentParser) -> None:
    """What the source's engine is given in addition to its URL."""
    engine = parser.add_argument_group("the engine")
    engine.add_argument(
        "--option",
        metavar="NAME=VALUE",
        action="append",
        default=[],
        help="an option that the source's engine has in addition to its URL; a secret is a "
        "reference, ${ENV:NAME} or ${FILE:/path}; may be repeated",
    )
    for hook in command_hooks():
        hook.add_source_options(engine)


def _password_options(parser: argparse.ArgumentParser) -> None:
    """How a password comes in, and what is done with a source that does not work."""
    login = parser.add_argument_group("login and saving")
    how = login.add_mutually_exclusive_group()
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
    keep_option(login)
    anyway_option(login)


def anyway_option(parser: Options) -> None:
    parser.add_argument(
        "--anyway", action="store_true", help="save it although it does not work now"
    )


def add_source(commands: Commands) -> None:
    source = commands.add_parser("source", help="add, change, list, remove and test sources")
    actions = source.add_subparsers(title="actions", dest="action", metavar="ACTION", required=True)
    add, update = _add(actions), _update(actions)
    edit, rename = _edit(actions), _rename(actions)
    listing = actions.add_parser("list", help="list the saved sources")
    remove = actions.add_parser("remove", help="remove a saved source, but not its data")
    remove.add_argument("name", metavar="NAME", help="a saved source")
    showing = actions.add_parser("show", help="show the settings of one source")
    showing.add_argument("name", metavar="NAME", help="a source of the state or the settings")
    test = actions.add_parser(
        "test",
        help="open a source, report what it is and what its account could do",
        description="Open a source, count its tables and time it. A line that begins with risk "
        "says what the source's account could do if Tidegate were not there, and what to do.",
    )
    test.add_argument("name", metavar="NAME", help="a saved source")
    harden = _harden(actions)
    for action in (add, edit, update, rename, listing, showing, remove, test, harden):
        action.set_defaults(module="source")
        home_options(action)
    listing_options(listing)
    for action in (listing, showing, test):
        json_option(action)


def _add(actions: Commands) -> argparse.ArgumentParser:
    add = actions.add_parser("add", help="save a source")
    add.add_argument("name", metavar="NAME", help="the name that callers use")
    add.add_argument(
        "url",
        metavar="URL",
        help="such as sqlite:////data/shop.db, or files:///data for a folder of files",
    )
    add.show_most_used(*_MOST_USED)
    _source_rules(add, new=True)
    _password_options(add)
    consent_option(add)
    return add


def _update(actions: Commands) -> argparse.ArgumentParser:
    update = actions.add_parser(
        "update",
        help="change a source's settings",
        description="Change the given settings and leave the others. Given tags, masks, "
        "filters and functions replace the existing ones. --run-as, --run-as-variable and "
        "--option replace one entry each; an empty value (alice=) removes it. The change takes "
        "effect on the next call, also in running servers.",
    )
    update.add_argument("name", metavar="NAME", help="a saved source")
    update.show_most_used("--url", "--access", "--approval-for", "--mask", "--clear")
    update.add_argument("--url", metavar="URL", help="the new address")
    _source_rules(update, new=False)
    consent_option(update)
    update.add_argument(
        "--clear",
        action="append",
        default=[],
        choices=CLEARABLE,
        help="remove all of these first, then add the given ones; may be repeated",
    )
    _password_options(update)
    return update


def _edit(actions: Commands) -> argparse.ArgumentParser:
    edit = actions.add_parser(
        "edit",
        help="change a saved source by answering questions",
        description="Ask on the terminal for the URL, the password, the policy and the tags of a "
        "saved source. Enter keeps what there is; masks, filters, roles and options stay. The "
        "source is tried before it is saved, and what grants more asks for a typed word. "
        "`tidegate source update` does the same with options.",
    )
    edit.add_argument("name", metavar="NAME", help="a saved source")
    consent_option(edit)
    edit.set_defaults(**_NO_CHANGES)
    anyway_option(edit)
    return edit


def _rename(actions: Commands) -> argparse.ArgumentParser:
    rename = actions.add_parser(
        "rename",
        help="give a saved source another name",
        description="Give a saved source another name. Tokens that name it, its history and "
        "the kept password of its URL follow, approvals that were not used expire. Settings files "
        "and clients that name it do not follow, and records in the audit log stay as they are. "
        "Running servers use the new name from the next call on.",
    )
    rename.add_argument("name", metavar="OLD", help="a saved source")
    rename.add_argument("new_name", metavar="NEW", help="its new name")
    consent_option(rename)
    return rename


def _harden(actions: Commands) -> argparse.ArgumentParser:
    harden = actions.add_parser(
        "harden",
        help="make an account that can read and do nothing else, or print its SQL",
        description="Print the SQL that makes an account for the source that can read and do "
        "nothing else, and how to give it to the source. For a file, print the commands of a "
        "shell. With --apply run the SQL, give the source its new account and test it; until that "
        "works the source keeps its present login. It can be run again.",
    )
    harden.add_argument("name", metavar="NAME", help="a source")
    harden.add_argument(
        "--role", metavar="ROLE", help="the name of the account (default: NAME_reader)"
    )
    harden.add_argument(
        "--schema",
        action="append",
        default=[],
        metavar="SCHEMA",
        help="a schema that it may read (default: those with tables); may be repeated",
    )
    harden.add_argument(
        "--apply",
        action="store_true",
        help="run the SQL with an administrator's login, which is asked for and not kept",
    )
    harden.add_argument(
        "--admin-url",
        type=filled,
        metavar="URL",
        help="the administrator's login for --apply, with a reference to its password, such as "
        "'postgresql://postgres:${ENV:ADMIN_PASSWORD}@host/shop'",
    )
    consent_option(harden)
    return harden


def mask(text: str) -> Mask:
    """Of `COLUMN=SHOW`; SHOW is `nothing` by default."""
    from tidegate.model.source_settings import Mask

    column, _, given = text.partition("=")
    for show in SHOWS:
        if show == (given or "nothing") and "." in column.strip("."):
            return Mask(column, show)
    raise argparse.ArgumentTypeError(f"{text!r} is not of the form TABLE.COLUMN=hash")


def row_filter(text: str) -> RowFilter:
    """Of `TABLE: CONDITION`."""
    from tidegate.model.source_settings import RowFilter

    table, _, condition = (part.strip() for part in text.partition(":"))
    if not (table and condition):
        raise argparse.ArgumentTypeError(f"{text!r} is not of the form 'TABLE: CONDITION'")
    return RowFilter(table, condition)
