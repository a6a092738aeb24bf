"""The words of the commands about callers, what they were allowed, and what they did."""

from __future__ import annotations

from tidegate.cli.arguments.options import (
    SCOPES,
    Commands,
    ahead_option,
    at_least_one,
    filled,
    home_options,
    json_option,
)


def add_token(commands: Commands) -> None:
    token = commands.add_parser("token", help="create, list and revoke tokens")
    actions = token.add_subparsers(title="actions", dest="action", metavar="ACTION", required=True)
    create = actions.add_parser(
        "create", help="make a token and print it, once, alone on standard output"
    )
    create.add_argument("name", metavar="NAME", help="the name of its holder")
    create.add_argument("--scope", choices=SCOPES, required=True, help="what it may do at most")
    create.add_argument(
        "--source",
        action="append",
        default=[],
        metavar="NAME",
        help="a source it may see (default: every source); may be repeated",
    )
    create.add_argument(
        "--tag",
        action="append",
        default=[],
        metavar="TAG",
        help="it may see the sources with this tag too; may be repeated",
    )
    create.add_argument(
        "--table",
        action="append",
        default=[],
        metavar="TABLE",
        help="a table it may use there, as table, schema.table or source:table (default: every "
        "table); may be repeated",
    )
    ahead_option(create)
    create.add_argument(
        "--expires",
        default="never",
        metavar="TIME",
        help="when it ends: after 30d, 12h, 2w or such (default: never)",
    )
    listing = actions.add_parser("list", help="list the tokens, without their secrets")
    json_option(listing)
    revoke = actions.add_parser("revoke", help="revoke a token, from the next call on")
    revoke.add_argument("name", metavar="NAME", help="an active token")
    for action in (create, listing, revoke):
        action.set_defaults(module="token")
        home_options(action)


def add_pair(commands: Commands) -> None:
    pair = commands.add_parser(
        "pair", help="get a token from a running server, with its operator's approval"
    )
    actions = pair.add_subparsers(title="actions", dest="action", metavar="ACTION", required=True)
    ask = actions.add_parser(
        "ask", help="ask a server for a token, wait for the answer, and print the token once"
    )
    ask.add_argument("url", metavar="URL", help="the server, such as http://127.0.0.1:7878")
    ask.add_argument("--name", required=True, help="who asks, as the operator will see it")
    ask.add_argument(
        "--scope",
        choices=SCOPES,
        default="readOnly",
        help="what it would do at most (default: readOnly)",
    )
    listing = actions.add_parser("list", help="list the pending requests")
    json_option(listing)
    approve = actions.add_parser("approve", help="grant a request, or less than it asks for")
    approve.add_argument("--scope", choices=SCOPES, help="grant this scope instead")
    approve.add_argument("--name", help="list the token under this name (default: the client's)")
    approve.add_argument(
        "--expires", metavar="TIME", help="when the token ends: after 30d, 12h, 2w or such"
    )
    approve.add_argument(
        "--table",
        action="append",
        default=[],
        metavar="TABLE",
        help="let it use only this table; may be repeated",
    )
    ahead_option(approve)
    deny = actions.add_parser("deny", help="refuse a request")
    for action in (approve, deny):
        action.add_argument("id", metavar="ID", help="as shown by both sides, such as 7F3K-92QM")
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
        help="check the whole record",
        description="Check the whole record: every line, every segment, every signature. Ends "
        "with status 1 and says where, if anything was changed, removed, moved or cut off.",
    )
    verify.add_argument(
        "--anchor",
        action="append",
        default=[],
        metavar="FILE|TEXT",
        help="hold it to checkpoints that were kept elsewhere; may be repeated",
    )
    verify.add_argument(
        "--directory", type=filled, metavar="DIR", help="check a copy of the record there"
    )
    verify.add_argument(
        "--key",
        action="append",
        default=[],
        metavar="TEXT",
        help="trust this public key too; may be repeated",
    )
    tail = actions.add_parser("tail", help="print the newest records")
    tail.add_argument(
        "-n",
        dest="count",
        type=at_least_one,
        default=20,
        metavar="N",
        help="at most N, the newest (default 20)",
    )
    tail.add_argument("--follow", action="store_true", help="go on with those that come")
    tail.add_argument("--actor", metavar="ID|NAME", help="of this caller")
    tail.add_argument("--source", metavar="NAME", help="on this source")
    tail.add_argument("--since", type=filled, metavar="TIME", help="such as 2h, 1d or 2026-01-31")
    tail.add_argument(
        "--until", type=filled, metavar="TIME", help="not from then on; the same forms"
    )
    tail.add_argument("--all", action="store_true", help="checkpoints and openings too")
    checkpoint = actions.add_parser(
        "checkpoint", help="print the newest signed checkpoint, to be kept elsewhere"
    )
    key = actions.add_parser("key", help="print the public key that checkpoints are signed with")
    key.add_argument("--all", action="store_true", help="those before it too, which still count")
    key.add_argument("--replace", action="store_true", help="sign with another one from now on")
    for action in (verify, tail, checkpoint, key):
        action.set_defaults(module="audit")
        home_options(action)
    for action in (verify, tail):
        json_option(action)


def add_approvals(commands: Commands) -> None:
    approvals = commands.add_parser("approvals", help="answer calls that wait for a person")
    actions = approvals.add_subparsers(
        title="actions", dest="action", metavar="ACTION", required=True
    )
    listing = actions.add_parser("list", help="list the questions that wait")
    listing.add_argument("--all", action="store_true", help="those that were answered too")
    show = actions.add_parser("show", help="show all of a question: statement, caller, dry run")
    allow = actions.add_parser("allow", help="let exactly this call run, once")
    deny = actions.add_parser("deny", help="refuse it; it is not asked again for a minute")
    deny.add_argument("--reason", default="", metavar="TEXT", help="shown to the caller")
    for action in (show, allow, deny):
        action.add_argument("id", metavar="ID", help="a question's id, or the start of it")
    for action in (listing, show, allow, deny):
        action.set_defaults(module="approvals")
        home_options(action)
    for action in (listing, show):
        json_option(action)
