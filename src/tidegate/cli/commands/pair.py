"""`tidegate pair ask | list | approve | deny`: a client requests a token from a server, and the
operator of the server approves or denies it. The client prints the token once."""

from __future__ import annotations

import argparse
import json
import time
from typing import Any, NamedTuple, cast

from msgspec import structs

from tidegate.app import App
from tidegate.cli.allowlist import Allowlist, refuse_unknown
from tidegate.cli.consent import require_consent
from tidegate.cli.local_actor import with_app
from tidegate.cli.settings import load_for_query, load_for_state
from tidegate.cli.terminal import print_status, show, show_json, show_table
from tidegate.config.addresses import parse_http_url
from tidegate.errors import Code, TidegateError
from tidegate.identity.pairing import challenge_of, described, make_verifier
from tidegate.identity.tokens import check_tables, parse_expiry
from tidegate.model.actors import Scope
from tidegate.store.records import Pairing

TIMEOUT_S = 30
_DAY_S = 86_400.0


def run(arguments: argparse.Namespace) -> int:
    """Run `arguments.action`."""
    if arguments.action == "ask":
        _ask(arguments)
        return 0
    actions = {"list": _list, "approve": _approve, "deny": _deny}
    action = actions[arguments.action]

    async def work(app: App) -> None:
        await action(app, arguments)

    settings = load_for_query if arguments.action == "approve" else load_for_state
    with_app(App.open(settings(arguments)), work)
    return 0


# Commands of the operator


async def _list(app: App, arguments: argparse.Namespace) -> None:
    now = time.time()
    waiting = app.pairing_service.waiting()
    if arguments.json:
        rows = [
            {
                "id": each.id,
                "client": each.client,
                "address": each.address,
                "wanted": described(each.wanted),
                "expires_in_s": round(each.expires_at - now),
            }
            for each in waiting
        ]
        show_json({"pairings": rows})
        return
    if not waiting:
        print_status("no pending pairing requests")
        return
    columns = ("id", "client", "address", "scope", "sources", "for", "answer within")
    show_table(columns, [_row(each, now) for each in waiting])


def _row(pairing: Pairing, now: float) -> list[Any]:
    wanted = pairing.wanted
    lasts = "no limit" if wanted.lasts_s is None else f"{wanted.lasts_s / _DAY_S:g} days"
    within = f"{round(pairing.expires_at - now)} s"
    sees = Allowlist(wanted.sources, wanted.tags, wanted.tables).words()
    return [pairing.id, pairing.client, pairing.address, wanted.scope.value, sees, lasts, within]


async def _approve(app: App, arguments: argparse.Namespace) -> None:
    asked = app.pairing_service.find(arguments.id)
    granted = asked.wanted
    if arguments.scope:
        granted = structs.replace(granted, scope=Scope(arguments.scope))
    if arguments.source or arguments.tag:
        granted = structs.replace(
            granted,
            sources=frozenset(arguments.source) or None,
            tags=frozenset(arguments.tag) or None,
        )
    if arguments.table:
        check_tables(arguments.table)
        granted = structs.replace(granted, tables=frozenset(arguments.table))
    if arguments.expires:
        granted = structs.replace(granted, lasts_s=parse_expiry(arguments.expires, 0.0))
    if arguments.owner:
        granted = structs.replace(granted, owner=app.operators.find(arguments.owner).name)
    listed = Allowlist(granted.sources, granted.tags, granted.tables)
    if not arguments.allow_unknown:
        await refuse_unknown(app, "pair approve", listed)
    what = f"give {asked.client} a token ({granted.scope.value}, {listed.words()})"
    require_consent(app, "approve", what, arguments)
    approved = app.pairing_service.approve(arguments.id, granted, arguments.name)
    print_status(
        f"approved {approved.id} for {approved.client}: {granted.scope.value}, {listed.words()}"
    )
    print_status(
        f"its token will be listed as {approved.token_name}; it must be fetched within 5 minutes"
    )


async def _deny(app: App, arguments: argparse.Namespace) -> None:
    denied = app.pairing_service.deny(arguments.id)
    print_status(f"denied {denied.id} for {denied.client}")


# Command of the client


class _Server(NamedTuple):
    host: str
    port: int
    secure: bool

    def post(self, path: str, body: dict[str, Any]) -> tuple[int, dict[str, Any]]:
        """(status, JSON body). Raises: TidegateError SOURCE_UNREACHABLE."""
        from http.client import HTTPConnection, HTTPException, HTTPSConnection

        kind = HTTPSConnection if self.secure else HTTPConnection
        connection = kind(self.host, self.port, timeout=TIMEOUT_S)
        try:
            headers = {"Content-Type": "application/json"}
            connection.request("POST", path, json.dumps(body), headers)
            response = connection.getresponse()
            answer: Any = json.loads(response.read(65_536))
        except (OSError, HTTPException, ValueError) as error:
            reason = getattr(error, "strerror", None) or error
            raise _unreachable(f"The server did not answer: {reason}") from None
        finally:
            connection.close()
        if not isinstance(answer, dict):
            raise _unreachable("The server at this address is not Tidegate")
        return response.status, cast("dict[str, Any]", answer)


def _ask(arguments: argparse.Namespace) -> None:
    server = _server(arguments.url)
    verifier = make_verifier()
    lasts_s = parse_expiry(arguments.expires, 0.0)
    body: dict[str, Any] = {
        "client": arguments.name,
        "code_challenge": challenge_of(verifier),
        "scope": arguments.scope,
        "sources": arguments.source or None,
        "tags": arguments.tag or None,
        "days": None if lasts_s is None else lasts_s / _DAY_S,
    }
    status, asked = server.post("/v1/integrations/pair", body)
    if status != 201:
        raise _refused(asked)
    print_status(
        f"Asked for a token as {arguments.name}. The operator answers within 5 minutes with:"
    )
    print_status(f"    {asked['approve_with']}")
    show(_fetch(server, asked, verifier))


def _fetch(server: _Server, asked: dict[str, Any], verifier: str) -> str:
    """Poll until the operator has answered."""
    while True:
        status, answer = server.post(
            "/v1/integrations/exchange", {"code": asked["code"], "code_verifier": verifier}
        )
        if status == 200:
            return str(answer["token"])
        if status != 202:
            raise _refused(answer)
        time.sleep(float(asked["interval"]))


def _server(url: str) -> _Server:
    try:
        parts = parse_http_url(url)
    except ValueError:
        raise TidegateError(
            Code.ARGUMENT_INVALID,
            f"`{url[:80]}` is not the address of a server.",
            hint="Write it like http://127.0.0.1:7878.",
        ) from None
    if not parts.is_private:
        raise TidegateError(
            Code.ARGUMENT_INVALID,
            "The token would be sent over the network unencrypted.",
            hint="Use https, or a server on this machine.",
        )
    return _Server(parts.host, parts.tcp_port, parts.scheme == "https")


def _refused(answer: dict[str, Any]) -> TidegateError:
    message = str(answer.get("message") or "The server refused it.")
    return TidegateError(Code.AUTH_INVALID, message, hint=str(answer.get("hint") or "Ask again."))


def _unreachable(message: str) -> TidegateError:
    return TidegateError(
        Code.SOURCE_UNREACHABLE, message, hint="Check the address, and that the server runs."
    )
