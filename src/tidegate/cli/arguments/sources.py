"""The arguments of `source`."""

from __future__ import annotations

import argparse
from typing import TYPE_CHECKING, Any, Literal, TypeVar

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
from tidegate.typed_values import decode_json

if TYPE_CHECKING:
    from tidegate.model.source_settings import Mask, RowFilter, SourceSetting

_RuleT = TypeVar("_RuleT", "Mask", "RowFilter")
Show = Literal["nothing", "hash", "partial"]
SHOWS: tuple[Show, ...] = ("nothing", "hash", "partial")


def _setting_options(parser: argparse.ArgumentParser, *, new: bool) -> None:
    """Add the options of the declared settings. Without a value an option is None or empty; the
    help names the default if the source is `new`."""
    from tidegate.model.source_settings import source_settings

    settings = source_settings()
    titles = dict.fromkeys(setting.about.group for setting in settings)
    groups = {title: parser.add_argument_group(title) for title in titles}
    if new:
        groups["what callers may do"].add_argument(
            "--allow-writes",
            action="store_const",
            const="write",
            dest="access",
            help="allow writes by tokens that may write; the same as --access write",
        )
    for setting in settings:
        if setting.name == "run_as":
            _run_as_options(groups[setting.about.group])
        else:
            _setting_option(groups[setting.about.group], setting, new=new)
    for hook in command_hooks():
        hook.add_source_options(groups["the engine"])


def _setting_option(group: Options, setting: SourceSetting, *, new: bool) -> None:
    option, meaning = setting.option, setting.about.meaning
    if setting.form == "words":
        text = f"{meaning} (default: {setting.default})" if new else meaning
        group.add_argument(option, choices=setting.words, help=text)
    elif setting.form == "number":
        text = f"{meaning} (default: none)" if new else f"{meaning}; none removes the limit"
        group.add_argument(option, type=row_limit, metavar=setting.about.value, help=text)
    elif setting.form == "text":
        text = meaning if new else f"{meaning}; an empty one removes it"
        group.add_argument(option, metavar=setting.about.value, help=text)
    else:
        group.add_argument(
            option,
            action="append",
            default=[],
            type=_ENTRIES.get(setting.name, str),
            metavar=setting.about.value,
            help="; ".join(filter(None, (meaning, setting.about.syntax, "may be repeated"))),
        )


def _run_as_options(roles: Options) -> None:
    """As which role of the database its callers run."""
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


def _clearable() -> list[str]:
    """The settings that are lists or tables: `--clear` empties them."""
    from tidegate.model.source_settings import source_settings

    lists = [each for each in source_settings() if each.form in ("entries", "other")]
    return [setting.name.replace("_", "-") for setting in lists]


def _no_changes() -> dict[str, Any]:
    """The arguments of `source update` where nothing is given."""
    from tidegate.model.source_settings import source_settings

    return {
        **{setting.dest: None for setting in source_settings()},
        **dict.fromkeys(("run_as", "run_as_variable", "clear"), ()),
        **dict.fromkeys(("url", "run_as_role", "keep_in")),
        **dict.fromkeys(("ask_password", "password_stdin"), False),
    }


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
    from tidegate.model.source_settings import source_settings

    common = [setting.option for setting in source_settings() if setting.about.common]
    add.show_most_used("--allow-writes", *common, "--ask-password")
    _setting_options(add, new=True)
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
    _setting_options(update, new=False)
    consent_option(update)
    update.add_argument(
        "--clear",
        action="append",
        default=[],
        choices=_clearable(),
        help="remove all of these first, then add the given ones; may be repeated",
    )
    _password_options(update)
    return update


def _edit(actions: Commands) -> argparse.ArgumentParser:
    edit = actions.add_parser(
        "edit",
        help="change a saved source by answering questions",
        description="Ask on the terminal for the URL, the password, the policy and the tags of a "
        "saved source. Enter keeps the present value; masks, filters, roles and options stay. The "
        "source is tried before it is saved, and what grants more asks for a typed word. "
        "`tidegate source update` does the same with options.",
    )
    edit.add_argument("name", metavar="NAME", help="a saved source")
    consent_option(edit)
    edit.set_defaults(**_no_changes())
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
    """Of `COLUMN=SHOW`; SHOW is `nothing` by default. Or of JSON, as the settings file has it."""
    from tidegate.model.source_settings import Mask

    if text.lstrip().startswith("{"):
        return _of_json(text, Mask)
    column, _, given = text.partition("=")
    for show in SHOWS:
        if show == (given or "nothing") and "." in column.strip("."):
            return Mask(column, show)
    raise argparse.ArgumentTypeError(f"{text!r} is not of the form TABLE.COLUMN=hash")


def row_filter(text: str) -> RowFilter:
    """Of `TABLE: CONDITION`. Or of JSON, as the settings file has it."""
    from tidegate.model.source_settings import RowFilter

    if text.lstrip().startswith("{"):
        return _of_json(text, RowFilter)
    table, _, condition = (part.strip() for part in text.partition(":"))
    if not (table and condition):
        raise argparse.ArgumentTypeError(f"{text!r} is not of the form 'TABLE: CONDITION'")
    return RowFilter(table, condition)


def _of_json(text: str, kind: type[_RuleT]) -> _RuleT:
    import msgspec

    try:
        return decode_json(text, kind)
    except msgspec.DecodeError as error:
        raise argparse.ArgumentTypeError(f"{text[:80]!r}: {error}") from None


_ENTRIES = {"masks": mask, "filters": row_filter}
"""What reads an entry of a setting whose entries have parts."""
