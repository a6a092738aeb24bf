"""The words of the command line, on argparse: what may be said, not what it does.

Each command names the module that runs it; `main.py` imports that module and no other, because
start-up is paid again for every agent. `docs/reference/cli.md` is generated from here.
"""

from __future__ import annotations

import argparse
import re
from difflib import get_close_matches
from typing import Any, Literal, NoReturn

from tidegate.errors import Code, GateError

CLIENTS = ("claude-code", "claude-desktop", "cursor", "vscode")
SCOPES = ("readOnly", "readWrite", "fullAccess")
Show = Literal["nothing", "hash", "partial"]
SHOWS: tuple[Show, ...] = ("nothing", "hash", "partial")
SOURCE_RULES = {
    "external_access": (
        ("blocked", "readOnly", "readWrite"),
        "what callers from outside may do at most (default: readOnly)",
    ),
    "ai_policy": (("alwaysAllow", "askEachTime", "never"), "what agents may do there"),
    "safe_mode": (
        ("silent", "alert", "alertFull", "safeMode", "safeModeFull", "readOnly"),
        "what a person must approve: alert is every change, alertFull every statement",
    ),
    "approval": (
        ("any", "inbox"),
        "where a person may answer: in the client too, or in `tidegate approvals` alone",
    ),
    "unattended": (("deny", "allow"), "what then happens if the client can show no question"),
    "unqualified": (("confirm", "allow", "deny"), "UPDATE and DELETE without WHERE"),
    "destructive_scope": (("readWrite", "fullAccess"), "what DROP and TRUNCATE need"),
}
"""Settings of a source that are flags of `source add` and `update`, with what they mean."""


class Parser(argparse.ArgumentParser):
    """An argparse parser that raises GateError ARGUMENT_INVALID where others print and exit."""

    def __init__(self, **options: Any) -> None:
        super().__init__(allow_abbrev=False, **options)

    def error(self, message: str) -> NoReturn:
        raise GateError(
            Code.ARGUMENT_INVALID,
            _plain(message),
            hint=f"`{self.prog} --help` lists what there is.",
        )


def _plain(message: str) -> str:
    """argparse's message as one sentence, with the nearest word where one was mistyped."""
    choice = re.match(r"argument (\S+): invalid choice: '(.*?)' \(choose from (.*)\)", message)
    if choice:
        name, given, offered = choice.groups()
        words = re.findall(r"[\w-]+", offered)
        near = get_close_matches(given, words, 1)
        meant = f"Did you mean {near[0]}?" if near else f"Choose from {', '.join(words)}."
        return f"There is no {name.lstrip('-').lower()} {given!r}. {meant}"
    return message[:1].upper() + message[1:].rstrip(".") + "."


def named_url(text: str) -> tuple[str, str]:
    """`NAME=URL` as a pair."""
    name, sign, url = text.partition("=")
    if not (name and sign and url):
        raise argparse.ArgumentTypeError(f"{text!r} is not of the form NAME=URL")
    return name, url


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


def build() -> Parser:
    """The whole command line."""
    parser = Parser(
        prog="tidegate",
        description="One gate between AI agents and data.",
        epilog="Every command has --help. Exit statuses: docs/reference/cli.md.",
    )
    commands = parser.add_subparsers(dest="command", metavar="COMMAND", required=True)
    _serve(commands)
    _bridge(commands)
    _install(commands)
    _source(commands)
    _query(commands)
    _judge(commands)
    _explain(commands)
    _token(commands)
    _approvals(commands)
    _pair(commands)
    _audit(commands)
    _demo(commands)
    version = commands.add_parser("version", help="print the version")
    version.set_defaults(module="version")
    return parser


_Commands = Any  # argparse names the type of a set of subparsers with an underscore.


def _serve(commands: _Commands) -> None:
    serve = commands.add_parser(
        "serve",
        help="speak MCP on stdio, or on HTTP with --http",
        description="Speak MCP on stdio, or on HTTP with --http. Ends cleanly on SIGTERM, SIGINT "
        "and, on stdio, at the end of the input.",
    )
    serve.set_defaults(module="serve")
    serve.add_argument(
        "--surface",
        action="append",
        default=[],
        metavar="NAME",
        help="a catalogue of tools to offer; may be repeated",
    )
    serve.add_argument(
        "--source",
        action="append",
        default=[],
        type=named_url,
        metavar="NAME=URL",
        help="open a source for this run, such as shop=sqlite:///shop.db; may be repeated",
    )
    serve.add_argument(
        "--config", metavar="PATH", help="a TOML, YAML or JSON file, or an inline JSON object"
    )
    serve.add_argument(
        "--http",
        metavar="HOST:PORT",
        help="serve HTTP there instead of stdio; port 0 takes a free one",
    )
    serve.add_argument(
        "--no-auth",
        action="store_true",
        help="ask HTTP callers for no token: on loopback and for reading only",
    )
    serve.add_argument(
        "--allow-writes",
        action="store_true",
        help="let the sources of --source and the person at stdio write",
    )
    serve.add_argument(
        "--extended",
        action="store_true",
        help="offer the workbench's newer tools beside the 19 of its document",
    )
    serve.add_argument(
        "--for-bridge",
        type=int,
        metavar="FD",
        help="as `tidegate bridge` starts it: tell this descriptor when it can be found, and end "
        "when it is idle for long",
    )
    _state(serve)


def _bridge(commands: _Commands) -> None:
    bridge = commands.add_parser(
        "bridge",
        help="speak MCP on stdio by way of the server on HTTP, which is started if none runs",
        description="Speak MCP on stdio by way of the server on HTTP of the same state directory. "
        "If none runs, one is started, which ends by itself when it is idle for long. No token is "
        "needed; what the bridge may do is set under `bridge` in the settings of the server.",
    )
    bridge.set_defaults(module="bridge")
    bridge.add_argument(
        "--surface", metavar="NAME", help="a catalogue of tools (default: the server's first)"
    )
    bridge.add_argument(
        "--config", metavar="PATH", help="the settings of a server that is started here"
    )
    _state(bridge)


def _install(commands: _Commands) -> None:
    install = commands.add_parser(
        "install",
        help="write the entry for Tidegate into a client's settings",
        description="Write the entry for Tidegate into a client's settings, and nothing else: "
        "whatever stands there stays as it is, comments too. A copy of the file as it was is kept "
        "beside it, with the ending .tidegate.bak.",
    )
    install.set_defaults(module="install")
    install.add_argument("client", choices=CLIENTS, help="whose settings", metavar="CLIENT")
    install.add_argument("--name", default="tidegate", help="of the entry (default: tidegate)")
    install.add_argument(
        "--scope",
        choices=("user", "project"),
        help="all your projects, or the one in this directory (default: user; vscode: project)",
    )
    how = install.add_mutually_exclusive_group()
    how.add_argument(
        "--bridge", action="store_true", help="by way of `tidegate bridge` (the default)"
    )
    how.add_argument("--stdio", action="store_true", help="with a server of its own on stdio")
    how.add_argument("--http", metavar="URL", help="at a server that runs, with a token")
    install.add_argument(
        "--token-env",
        default="TIDEGATE_TOKEN",
        metavar="NAME",
        help="the variable from which the client takes the token (default: TIDEGATE_TOKEN)",
    )
    install.add_argument("--surface", metavar="NAME", help="a catalogue of tools to ask for")
    install.add_argument("--config", metavar="PATH", help="settings that the entry names")
    install.add_argument("--print", action="store_true", help="show the entry and write nothing")
    install.add_argument("--remove", action="store_true", help="take the entry away again")
    install.add_argument("--force", action="store_true", help="replace another entry of that name")
    _state(install)


def _source_rules(action: argparse.ArgumentParser) -> None:
    """The flags that say what a source admits; what is not given is None or empty."""
    action.add_argument(
        "--tag", action="append", default=[], metavar="TAG", help="its tags; may be repeated"
    )
    for name, (choices, explanation) in SOURCE_RULES.items():
        action.add_argument(f"--{name.replace('_', '-')}", choices=choices, help=explanation)
    action.add_argument(
        "--run-as-role",
        metavar="ROLE",
        help="the database's role that callers run as; {actor.name} is the name of their token",
    )
    action.add_argument(
        "--run-as-variable",
        metavar="NAME=VALUE",
        action="append",
        default=[],
        help="a variable that the database is told, like app.actor={actor.name}; repeatable",
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


def _source(commands: _Commands) -> None:
    source = commands.add_parser("source", help="add, change, list, remove and test sources")
    actions = source.add_subparsers(dest="action", metavar="ACTION", required=True)
    add = actions.add_parser("add", help="save a source")
    add.add_argument("name", metavar="NAME", help="what callers will call it")
    add.add_argument("url", metavar="URL", help="such as sqlite:////data/shop.db")
    add.add_argument(
        "--allow-writes",
        action="store_const",
        const="readWrite",
        dest="external_access",
        help="let tokens that may write do so there; the same as --external-access readWrite",
    )
    _source_rules(add)
    update = actions.add_parser(
        "update",
        help="change a source's settings",
        description="Change what is given and leave the rest. It holds from the next call, also in"
        " servers that run.",
    )
    update.add_argument("name", metavar="NAME", help="a saved source")
    update.add_argument("--url", metavar="URL", help="where it is now")
    _source_rules(update)
    listing = actions.add_parser("list", help="list the saved sources")
    remove = actions.add_parser("remove", help="forget a source; its data stays as it is")
    remove.add_argument("name", metavar="NAME", help="a saved source")
    test = actions.add_parser("test", help="open a source and report what it is")
    test.add_argument("name", metavar="NAME", help="a saved source")
    for action in (add, update, listing, remove, test):
        action.set_defaults(module="source")
        _state(action)
    for action in (listing, test):
        _json(action)


def _query(commands: _Commands) -> None:
    query = commands.add_parser("query", help="run one statement through the gate")
    query.set_defaults(module="query")
    query.add_argument("source", metavar="SOURCE", help="a saved source")
    query.add_argument("sql", metavar="SQL", help="one statement; - reads it from standard input")
    query.add_argument(
        "--rows", type=int, default=500, metavar="N", help="show at most N rows (default 500)"
    )
    _json(query)
    _state(query)


def _explain(commands: _Commands) -> None:
    explain = commands.add_parser(
        "explain",
        help="show what the gate would say to a statement, rule by rule",
        description="Show the verdict on one caller's statement and every rule that was looked at."
        " Nothing is run.",
    )
    explain.set_defaults(module="explain")
    explain.add_argument("sql", metavar="SQL", help="the statement, or - to read it")
    explain.add_argument("--source", metavar="NAME", required=True, help="where it would run")
    explain.add_argument(
        "--token-name", metavar="NAME", help="the caller; the person here if left out"
    )
    explain.add_argument(
        "--confirmed", action="store_true", help="as if the phrase of confirmation was typed"
    )
    explain.add_argument("--json", action="store_true", help="show JSON")
    _state(explain)


def _judge(commands: _Commands) -> None:
    judge = commands.add_parser(
        "judge",
        help="say what a statement would do and whether it may, without running it",
        description="Say what a statement would do and whether a caller of the given scope may: "
        "one JSON object for each statement.",
    )
    judge.set_defaults(module="judge")
    judge.add_argument(
        "sql",
        metavar="SQL",
        nargs="?",
        default="-",
        help='one statement; - reads lines such as {"dialect":"sqlite","sql":"..."}',
    )
    judge.add_argument(
        "--dialect",
        metavar="NAME",
        default="default",
        help="postgres, mysql, sqlite, duckdb; any other is judged most cautiously",
    )
    judge.add_argument(
        "--source", metavar="NAME", help="judge for this source, with its database's own opinion"
    )
    judge.add_argument("--scope", choices=SCOPES, default="readOnly", help="of the caller")
    _state(judge)


def _token(commands: _Commands) -> None:
    token = commands.add_parser("token", help="create, list and revoke tokens")
    actions = token.add_subparsers(dest="action", metavar="ACTION", required=True)
    create = actions.add_parser(
        "create", help="make a token and print it, once, alone on standard output"
    )
    create.add_argument("name", metavar="NAME", help="who will hold it")
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
    create.add_argument(
        "--expires",
        default="never",
        metavar="TIME",
        help="after such as 30d, 12h or 2w (default: never)",
    )
    listing = actions.add_parser("list", help="list the tokens, without their secrets")
    _json(listing)
    revoke = actions.add_parser("revoke", help="make a token worthless from now on")
    revoke.add_argument("name", metavar="NAME", help="an active token")
    for action in (create, listing, revoke):
        action.set_defaults(module="token")
        _state(action)


def _pair(commands: _Commands) -> None:
    pair = commands.add_parser(
        "pair", help="get a token from a running server, which its operator approves"
    )
    actions = pair.add_subparsers(dest="action", metavar="ACTION", required=True)
    ask = actions.add_parser(
        "ask", help="ask a server for a token, wait for the answer, and print the token once"
    )
    ask.add_argument("url", metavar="URL", help="the server, such as http://127.0.0.1:7878")
    ask.add_argument("--name", required=True, help="who asks, as the operator will see it")
    ask.add_argument("--scope", choices=SCOPES, default="readOnly", help="what it would do at most")
    listing = actions.add_parser("list", help="list the requests that wait for an answer")
    _json(listing)
    approve = actions.add_parser("approve", help="grant a request, or less than it asks for")
    approve.add_argument("--scope", choices=SCOPES, help="grant this scope instead")
    approve.add_argument("--name", help="list the token under this name (default: the client's)")
    approve.add_argument(
        "--expires", metavar="TIME", help="let the token end after such as 30d, 12h or 2w"
    )
    approve.add_argument(
        "--table",
        action="append",
        default=[],
        metavar="TABLE",
        help="let it use this table alone, and others given likewise",
    )
    deny = actions.add_parser("deny", help="refuse a request")
    for action in (approve, deny):
        action.add_argument("id", metavar="ID", help="as shown by both sides, such as 7F3K-92QM")
    for action, says in ((ask, "it wants to see"), (approve, "it may see instead")):
        action.add_argument(
            "--source", action="append", default=[], metavar="NAME", help=f"a source {says}"
        )
        action.add_argument(
            "--tag", action="append", default=[], metavar="TAG", help=f"sources with a tag {says}"
        )
    ask.add_argument("--expires", default="90d", metavar="TIME", help="how long (default: 90d)")
    for action in (ask, listing, approve, deny):
        action.set_defaults(module="pair")
    for action in (listing, approve, deny):
        _state(action)


def _audit(commands: _Commands) -> None:
    audit = commands.add_parser(
        "audit", help="see what happened, and prove that the record is whole"
    )
    actions = audit.add_subparsers(dest="action", metavar="ACTION", required=True)
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
    verify.add_argument("--directory", metavar="DIR", help="check a copy of the record there")
    verify.add_argument(
        "--key",
        action="append",
        default=[],
        metavar="TEXT",
        help="trust this public key too; may be repeated",
    )
    tail = actions.add_parser("tail", help="print the newest records")
    tail.add_argument(
        "-n", dest="count", type=int, default=20, metavar="N", help="so many (default 20)"
    )
    tail.add_argument("--follow", action="store_true", help="go on with those that come")
    tail.add_argument("--actor", metavar="ID|NAME", help="of this caller")
    tail.add_argument("--source", metavar="NAME", help="on this source")
    tail.add_argument("--since", metavar="TIME", help="such as 2h, 1d or 2026-01-31")
    tail.add_argument("--all", action="store_true", help="checkpoints and openings too")
    checkpoint = actions.add_parser(
        "checkpoint", help="print the newest signed checkpoint, to be kept elsewhere"
    )
    key = actions.add_parser("key", help="print the public key that checkpoints are signed with")
    key.add_argument("--all", action="store_true", help="those before it too, which still count")
    key.add_argument("--replace", action="store_true", help="sign with another one from now on")
    for action in (verify, tail, checkpoint, key):
        action.set_defaults(module="audit")
        _state(action)
    for action in (verify, tail):
        _json(action)


def _approvals(commands: _Commands) -> None:
    approvals = commands.add_parser("approvals", help="answer calls that wait for a person")
    actions = approvals.add_subparsers(dest="action", metavar="ACTION", required=True)
    listing = actions.add_parser("list", help="list the questions that wait")
    listing.add_argument("--all", action="store_true", help="those that were answered too")
    show = actions.add_parser("show", help="show all of a question: statement, caller, dry run")
    allow = actions.add_parser("allow", help="let exactly this call run, once")
    deny = actions.add_parser("deny", help="refuse it; it is not asked again for a minute")
    deny.add_argument("--reason", default="", metavar="TEXT", help="told to the caller")
    for action in (show, allow, deny):
        action.add_argument("id", metavar="ID", help="a question's id, or the start of it")
    for action in (listing, show, allow, deny):
        action.set_defaults(module="approvals")
        _state(action)
    for action in (listing, show):
        _json(action)


def _demo(commands: _Commands) -> None:
    demo = commands.add_parser(
        "demo",
        help="a sample shop, served on loopback, and a short conversation with it",
        description="Make a sample database, serve it on loopback, hold a short conversation with "
        "it, then stay up with the entries for your clients.",
    )
    demo.set_defaults(module="demo")
    demo.add_argument("--once", action="store_true", help="end after the conversation")
    demo.add_argument(
        "--port", type=int, default=8765, metavar="PORT", help="if free (default 8765), else any"
    )
    _state(demo, "holds the sample and all state (default: a temporary directory)")


def _state(
    parser: argparse.ArgumentParser,
    explanation: str = "holds all state (default: $TIDEGATE_STATE, else the data directory)",
) -> None:
    parser.add_argument("--state", metavar="DIR", help=explanation)


def _json(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--json", action="store_true", help="print JSON instead of a table")
