"""The arguments of `token`, `pair`, `audit` and `approvals`."""

from __future__ import annotations

import argparse

from tidegate.cli.arguments.options import (
    SCOPES,
    Commands,
    ahead_option,
    at_least_one,
    consent_option,
    filled,
    home_options,
    json_option,
    listing_options,
    row_limit,
)


def add_token(commands: Commands) -> None:
    token = commands.add_parser("token", help="create, list, change and revoke tokens")
    actions = token.add_subparsers(title="actions", dest="action", metavar="ACTION", required=True)
    create = actions.add_parser(
        "create", help="create a token and print it once, as the only line on standard output"
    )
    create.add_argument("name", metavar="NAME", help="the name of its holder")
    create.add_argument("--scope", choices=SCOPES, required=True, help="the most that it may do")
    edit = actions.add_parser(
        "edit",
        help="change what a token may do, also in running servers",
        description="Change the given rights of a token and leave the others; a given list "
        "replaces the one before. What gives more asks on the terminal, as `token create` does; "
        "what takes away does not. Running servers follow at once, and end what still runs with "
        "more rights than the token has. The secret stays.",
    )
    edit.add_argument("name", metavar="NAME", help="an active token")
    edit.add_argument("--scope", choices=SCOPES, help="the most that it may do")
    for action, every in ((create, " (default: every {})"), (edit, "")):
        _lists(action, every)
        consent_option(action)
        ahead_option(action)
    create.add_argument(
        "--expires",
        default="never",
        metavar="TIME",
        help="how long it is valid, such as 30d, 12h or 2w (default: never expires)",
    )
    create.add_argument(
        "--proxy",
        action="store_true",
        help="for a server started with --proxy: it names the caller for whom it speaks, which is "
        "recorded, and what that server's own gate had approved is not asked again",
    )
    for action, explained in ((create, ""), (edit, "; none removes the limit")):
        action.add_argument(
            "--max-rows-changed",
            type=row_limit,
            metavar="N",
            help=f"refuse a change of more than N rows, also in a transaction{explained}",
        )
    create.add_argument(
        "--owner",
        type=filled,
        metavar="OPERATOR",
        help="the operator whose token it is: once there are two, another approves its calls",
    )
    edit.add_argument("--no-proxy", action="store_true", help="take away the right of a proxy")
    edit.add_argument(
        "--expires", metavar="TIME", help="how long from now on, such as 30d or 12h, or never"
    )
    edit.add_argument(
        "--all-sources", action="store_true", help="let it see every source; removes the lists"
    )
    edit.add_argument(
        "--all-tables", action="store_true", help="let it use every table; removes the list"
    )
    showing = actions.add_parser("show", help="show what one token may do, without its secret")
    showing.add_argument("name", metavar="NAME", help="a token; of several the newest")
    json_option(showing)
    listing = actions.add_parser("list", help="list the tokens, without their secrets")
    json_option(listing)
    listing_options(listing)
    revoke = actions.add_parser("revoke", help="revoke a token, from the next call on")
    revoke.add_argument("name", metavar="NAME", help="an active token")
    for action in (create, edit, listing, showing, revoke):
        action.set_defaults(module="token")
        home_options(action)


def _lists(action: argparse.ArgumentParser, every: str) -> None:
    """What a token may see; `every` ends the help, with the thing that is meant without a list."""
    action.add_argument(
        "--source",
        action="append",
        default=[],
        metavar="NAME",
        help=f"a source it may see{every.format('source')}; may be repeated",
    )
    action.add_argument(
        "--tag",
        action="append",
        default=[],
        metavar="TAG",
        help="a tag whose sources it may also see; may be repeated",
    )
    action.add_argument(
        "--table",
        action="append",
        default=[],
        metavar="TABLE",
        help="a table it may use, as table, schema.table or source:table, of cloud providers as "
        "provider.service.resource, provider.service.* or provider.*"
        f"{every.format('table')}; may be repeated",
    )


def add_pair(commands: Commands) -> None:
    pair = commands.add_parser(
        "pair", help="get a token from a running server, with its operator's approval"
    )
    actions = pair.add_subparsers(title="actions", dest="action", metavar="ACTION", required=True)
    ask = actions.add_parser(
        "ask", help="ask a server for a token, wait for the answer, and print the token once"
    )
    ask.add_argument("url", metavar="URL", help="the server, such as http://127.0.0.1:7878")
    ask.add_argument("--name", required=True, help="the client's name, which the operator sees")
    ask.add_argument(
        "--scope",
        choices=SCOPES,
        default="readOnly",
        help="the most that it may do (default: readOnly)",
    )
    listing = actions.add_parser("list", help="list the pending requests")
    json_option(listing)
    approve = actions.add_parser("approve", help="grant a request, or less than it asks for")
    approve.add_argument("--scope", choices=SCOPES, help="grant this scope instead")
    approve.add_argument("--name", help="list the token under this name (default: the client's)")
    approve.add_argument(
        "--owner", metavar="OPERATOR", help="whose client it is (default: the only operator)"
    )
    approve.add_argument(
        "--expires", metavar="TIME", help="how long the token is valid, such as 30d, 12h or 2w"
    )
    approve.add_argument(
        "--table",
        action="append",
        default=[],
        metavar="TABLE",
        help="a table it may use, instead of all; may be repeated",
    )
    ahead_option(approve)
    consent_option(approve)
    deny = actions.add_parser("deny", help="refuse a request")
    for action in (approve, deny):
        action.add_argument("id", metavar="ID", help="the id on both sides, such as 7F3K-92QM")
    for action, says in ((ask, "it wants to see"), (approve, "it may see instead")):
        action.add_argument(
            "--source",
            action="append",
            default=[],
            metavar="NAME",
            help=f"a source {says}; may be repeated",
        )
        action.add_argument(
            "--tag",
            action="append",
            default=[],
            metavar="TAG",
            help=f"sources with this tag {says}; may be repeated",
        )
    ask.add_argument("--expires", default="90d", metavar="TIME", help="for how long (default: 90d)")
    for action in (ask, listing, approve, deny):
        action.set_defaults(module="pair")
    for action in (listing, approve, deny):
        home_options(action)


def add_audit(commands: Commands) -> None:
    audit = commands.add_parser("audit", help="show the audit log, and verify that it is complete")
    actions = audit.add_subparsers(title="actions", dest="action", metavar="ACTION", required=True)
    verify = actions.add_parser(
        "verify",
        help="verify the whole audit log",
        description="Verify every line, segment and signature of the audit log. If anything was "
        "changed, removed, moved or truncated, print where and exit with status 1. Where gates "
        "share a state, name the directories of all of them: then the records are also compared "
        "with each other and with what the state knows.",
    )
    verify.add_argument(
        "directories",
        nargs="*",
        type=filled,
        metavar="DIR",
        help="the state directory of a gate, or a copy of it; one for each gate on the state "
        "(default: that of this one)",
    )
    verify.add_argument(
        "--anchor",
        action="append",
        default=[],
        metavar="FILE|TEXT",
        help="also compare with checkpoints that were kept elsewhere; may be repeated",
    )
    verify.add_argument(
        "--directory", type=filled, metavar="DIR", help="verify a copy of the log in DIR"
    )
    verify.add_argument(
        "--key",
        action="append",
        default=[],
        metavar="TEXT",
        help="also trust this public key; may be repeated",
    )
    tail = actions.add_parser("tail", help="print the newest records")
    tail.add_argument(
        "-n",
        dest="count",
        type=at_least_one,
        default=20,
        metavar="N",
        help="print at most N records (default 20)",
    )
    tail.add_argument("--follow", action="store_true", help="print new records as they are written")
    tail.add_argument("--actor", metavar="ID|NAME", help="only records of this caller")
    tail.add_argument("--source", metavar="NAME", help="only records of this source")
    tail.add_argument(
        "--since",
        type=filled,
        metavar="TIME",
        help="only records from this time on, such as 2h (ago), yesterday or 2026-01-31 "
        "(in this machine's time zone, which a note names)",
    )
    tail.add_argument("--until", type=filled, metavar="TIME", help="only records before this time")
    tail.add_argument(
        "--all",
        action="store_true",
        help="include segment headers, checkpoints, and the samples that the server reads to learn"
        " what columns hold",
    )
    checkpoint = actions.add_parser(
        "checkpoint", help="print the newest signed checkpoint, to keep it elsewhere"
    )
    key = actions.add_parser("key", help="print the public key that verifies checkpoints")
    key.add_argument("--all", action="store_true", help="print former keys too")
    key.add_argument("--replace", action="store_true", help="create a new signing key")
    forget = actions.add_parser(
        "forget",
        help="have a gate that was ended not be missed any more",
        description="Remove a gate from the state that gates share, so that `audit verify` does "
        "not miss its record. That is put on record. A gate that runs is not removed.",
    )
    forget.add_argument("gate", type=filled, metavar="GATE", help="its id, as `audit verify` says")
    consent_option(forget)
    for action in (verify, tail, checkpoint, key, forget):
        action.set_defaults(module="audit")
        home_options(action)
    for action in (verify, tail):
        json_option(action)


def add_approvals(commands: Commands) -> None:
    approvals = commands.add_parser("approvals", help="answer calls that wait for a person")
    actions = approvals.add_subparsers(
        title="actions", dest="action", metavar="ACTION", required=True
    )
    listing = actions.add_parser("list", help="list the pending approvals")
    listing_options(listing)
    listing.add_argument("--all", action="store_true", help="list decided approvals too")
    listing.add_argument(
        "--watch",
        action="store_true",
        help="go on showing them as they come and are answered, until Ctrl-C; a pipe gets a line "
        "for each change, with --json an object",
    )
    show = actions.add_parser("show", help="show the statement, the caller and the dry run")
    allow = actions.add_parser("allow", help="let exactly this call run once")
    deny = actions.add_parser("deny", help="refuse the call, and repetitions for a minute")
    consent_option(allow)
    deny.add_argument("--reason", default="", metavar="TEXT", help="shown to the caller")
    for action in (show, allow, deny):
        action.add_argument("id", metavar="ID", help="the id of an approval, or its beginning")
    for action in (listing, show, allow, deny):
        action.set_defaults(module="approvals")
        home_options(action)
    for action in (listing, show):
        json_option(action)


def add_passphrase(commands: Commands) -> None:
    passphrase = commands.add_parser(
        "passphrase", help="set the passphrase that commands ask for before they grant rights"
    )
    actions = passphrase.add_subparsers(
        title="actions", dest="action", metavar="ACTION", required=True
    )
    setting = actions.add_parser(
        "set",
        help="set or change the operator's passphrase",
        description="Set the operator's passphrase: `approvals allow`, `token create`, `pair "
        "approve`, `source rename`, and `token edit`, `source add`, `edit` and `update` where they "
        "grant more, ask for it from then on, and not for a typed word. A hash of it is kept in "
        "operator.json "
        "of the state directory.",
    )
    setting.add_argument(
        "--new-passphrase-file",
        type=filled,
        metavar="FILE",
        help="read the new passphrase from FILE, - for standard input",
    )
    removing = actions.add_parser("remove", help="ask for a typed word on a terminal again")
    for action in (setting, removing):
        action.set_defaults(module="passphrase")
        home_options(action)
        consent_option(action)
