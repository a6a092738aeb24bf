"""Access in the console over HTTP: what each caller may do and by which rule, tokens made, limited
and revoked, requests for one answered, operators invited and changed. By whom, and by nobody else.
"""

from __future__ import annotations

import http.client
import json
import threading
from collections.abc import Callable
from typing import Any

import httpx

from products.console.support.console_place import PASSPHRASE, UPDATE, Place, query, ran
from support.audit_records import records
from support.console_visitor import Stream, Visitor
from support.eventually import PATIENCE_S, wait_until
from tidegate.identity.pairing import challenge_of, make_verifier
from wire.wires import HttpPeer

ENDLESS = "WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n) SELECT count(*) FROM n"
RIGHTS: dict[str, Any] = {"scope": "readOnly", "sources": ["towns"], "tags": None, "tables": None}
YES = {"passphrase": PASSPHRASE}


def make(visitor: Visitor, name: str = "new", **changes: Any) -> httpx.Response:
    return visitor.post("access/tokens", {**RIGHTS, "name": name, **YES, **changes})


def row(visitor: Visitor, name: str) -> dict[str, Any]:
    """A token as it is listed: the active one, where one of that name has ended."""
    listed = visitor.get("access").json()["tokens"]
    found: dict[str, Any] = next(each for each in listed if each["name"] == name)
    return found


def rights(shown: dict[str, Any], **changes: Any) -> dict[str, Any]:
    """The body that changes a token from what was shown."""
    names = ("scope", "sources", "tags", "tables", "max_rows_changed", "version")
    return {**{name: shown[name] for name in names}, **changes}


def state_of(place: Place) -> Any:
    """All that gives somebody a right."""
    tokens = place.run("token", "list", "--json").json["tokens"]
    return (
        [{name: each[name] for name in each if name != "last_used_at"} for each in tokens],
        [(each["name"], each["roles"]) for each in operators(place)],
        [each["id"] for each in place.run("pair", "list", "--json").json["pairings"]],
    )


def operators(place: Place) -> list[dict[str, Any]]:
    found: list[dict[str, Any]] = place.run("operator", "list", "--json").json["operators"]
    return found


def events(place: Place, name: str) -> list[dict[str, Any]]:
    return [each for each in place.events() if each["name"] == name]


class Client:
    """A client that asks for a token."""

    def __init__(self, place: Place, name: str = "laptop", **wanted: Any) -> None:
        self.verifier, self.address = make_verifier(), place.address
        body = {"client": name, "code_challenge": challenge_of(self.verifier), **wanted}
        answer = httpx.post(f"{place.address}/v1/integrations/pair", json=body)
        assert answer.status_code == 201, answer.text
        self.id, self.code = answer.json()["id"], answer.json()["code"]

    def fetch(self) -> httpx.Response:
        return httpx.post(
            f"{self.address}/v1/integrations/exchange",
            json={"code": self.code, "code_verifier": self.verifier},
        )


# Who may do what: every route, every role

BODIES: dict[str, Any] = {
    "access/ask": {"caller": "token:x", "source": "towns", "statement": "SELECT 1"},
    "access/preview": {"caller": "token:x", "source": "towns", "statement": "SELECT 1"},
    "access/tokens": {**RIGHTS, "name": "x", **YES},
    "access/tokens/ID/change": {**RIGHTS, "version": "VERSION", "scope": "readWrite", **YES},
    "access/tokens/ID/revoke": {},
    "access/pairings/PAIRING/approve": {**RIGHTS, **YES},
    "access/pairings/PAIRING/deny": {},
    "access/operators": {"name": "zoe", "roles": [{"role": "viewer"}], **YES},
    "access/operators/ivy/link": YES,
    "access/operators/ivy/roles": {
        "roles": [{"role": "approver"}],
        "was": [{"role": "viewer"}],
        **YES,
    },
    "access/operators/ivy/remove": YES,
}
ANSWERS = {
    # All of them, and for an admin of the source, of another source, an approver, a viewer.
    "access/ask": (400, 400, 400, 400, 400),
    "access/preview": (400, 400, 400, 400, 400),
    "access/tokens": (201, 201, 403, 403, 403),
    "access/tokens/ID/change": (200, 200, 403, 403, 403),
    "access/tokens/ID/revoke": (204, 204, 403, 403, 403),
    "access/pairings/PAIRING/approve": (204, 204, 403, 403, 403),
    "access/pairings/PAIRING/deny": (204, 204, 403, 403, 403),
    "access/operators": (201, 403, 403, 403, 403),
    "access/operators/ivy/link": (201, 403, 403, 403, 403),
    "access/operators/ivy/roles": (204, 403, 403, 403, 403),
    "access/operators/ivy/remove": (204, 403, 403, 403, 403),
}
ROLES = {
    "ada": (),
    "sue": ("--role", "admin", "--source", "towns"),
    "oli": ("--role", "admin", "--source", "other"),
    "app": ("--role", "approver"),
    "vic": ("--role", "viewer"),
}


def test_each_route_answers_those_who_may_and_changes_nothing_for_all_others(
    place: Place,
) -> None:
    for name, flags in ROLES.items():
        if name != "ada":
            place.add_operator(name, *flags)
    ada = place.visitor()
    invited = ada.post("access/operators", {**BODIES["access/operators"], "name": "ivy"})
    assert invited.status_code == 201
    make(ada, "old")
    client = Client(place, sources=["towns"])
    visitors = {name: place.visitor(name) for name in ROLES}
    for path, body in BODIES.items():
        # Those who may not come first: what they try is there until the end.
        for at, name in reversed(list(enumerate(ROLES))):
            shown = row(ada, "old") if "ID" in path else {"id": "", "version": ""}
            before = state_of(place)
            at_path = path.replace("ID", shown["id"]).replace("PAIRING", client.id)
            given = json.loads(json.dumps(body).replace("VERSION", shown["version"]))
            answer = visitors[name].post(at_path, given)
            assert answer.status_code == ANSWERS[path][at], (path, name, answer.text)
            if answer.status_code >= 400:
                assert state_of(place) == before, (path, name)
                continue
            _again(path, place, ada)
            client = Client(place, sources=["towns"]) if "PAIRING" in path else client
    assert set(BODIES) == set(ANSWERS)


def _again(path: str, place: Place, ada: Visitor) -> None:
    """Put back what a route of the matrix has changed, for the next one."""
    if path == "access/tokens":
        ada.post(f"access/tokens/{row(ada, 'x')['id']}/revoke")
    elif path.endswith("change"):
        shown = row(ada, "old")
        ada.post(f"access/tokens/{shown['id']}/change", rights(shown, scope="readOnly"))
    elif path.endswith("revoke"):
        assert make(ada, "old").status_code == 201
    elif path == "access/operators":
        assert place.run("operator", "remove", "zoe").status == 0


def test_what_gives_a_right_needs_the_passphrase_each_time_and_no_other_one_will_do(
    place: Place,
) -> None:
    ada = place.visitor()
    make(ada, "old")
    ada.post("access/operators", {**BODIES["access/operators"], "name": "ivy"})
    client, shown, before = Client(place, sources=["towns"]), row(ada, "old"), state_of(place)
    for path, body in BODIES.items():
        if "passphrase" not in body:
            continue
        at_path = path.replace("ID", shown["id"]).replace("PAIRING", client.id)
        for given in ("", "the wrong one"):
            text = json.dumps({**body, "passphrase": given}).replace("VERSION", shown["version"])
            answer = place.visitor().post(at_path, json.loads(text))
            assert (answer.status_code, answer.json()["error"]) == (403, "operator.consent")
            assert state_of(place) == before, path


def test_operators_see_the_tokens_and_requests_that_they_may_answer_for(
    place: Place,
) -> None:
    for name, flags in ROLES.items():
        if name != "ada":
            place.add_operator(name, *flags)
    ada = place.visitor()
    make(ada, "of-towns")
    make(ada, "of-all", sources=None)
    make(ada, "of-both", sources=["towns", "other"])
    Client(place, "one", sources=["towns"])
    Client(place, "any")
    seen = {}
    for name in ROLES:
        shown = place.visitor(name).get("access").json()
        tokens = {each["name"] for each in shown["tokens"]}
        seen[name] = tokens, {each["client"] for each in shown["pairings"]}
        assert shown["may"]["make"] == (name in ("ada", "sue", "oli"))
        assert bool(shown["may"]["why_not"]) == (name != "ada")
    assert seen["ada"] == ({"of-towns", "of-all", "of-both"}, {"one", "any"})
    assert seen["sue"] == ({"of-towns"}, {"one"})
    assert seen["oli"] == seen["app"] == seen["vic"] == (set(), set())


def test_an_admin_of_one_source_gives_nothing_on_another_nor_by_a_tag_nor_to_somebody_else(
    place: Place,
) -> None:
    place.add_operator("sue", *ROLES["sue"])
    sue, before = place.visitor("sue"), state_of(place)
    attempts: tuple[dict[str, Any], ...] = (
        {"sources": ["towns", "other"]},
        {"sources": None},
        {"sources": ["towns"], "tags": ["eu"]},
        {"sources": []},
        {"owner": "ada"},
    )
    for changes in attempts:
        answer = make(sue, **changes)
        assert answer.status_code in (400, 403), changes
        assert state_of(place) == before, changes
    assert make(sue).json()["token"]["owner"] == "sue"
    shown = row(sue, "new")
    answer = sue.post(f"access/tokens/{shown['id']}/change", rights(shown, sources=None, **YES))
    assert answer.status_code == 403
    assert row(sue, "new") == shown


MASKS = (
    # A rule, and the name under which a token would read what it hides from sue.
    ("operators", "sue", "any"),
    ("roles", "admin", "any"),
    ("except_tokens", "auditor", "auditor"),
)


def test_an_admin_of_one_source_gives_no_token_that_reads_what_is_hidden_from_it(
    place: Place,
) -> None:
    place.add_operator("sue", *ROLES["sue"])
    sue = place.visitor("sue")
    assert make(sue, "old").status_code == 201
    for field, name, token in MASKS:
        rule = f'column = "towns.name"\n{field} = ["{name}"]'
        place.settings(f"[[masks]]\n{rule}\n")
        client, shown, before = Client(place, sources=["towns"]), row(sue, "old"), state_of(place)
        path = f"access/pairings/{client.id}/approve"
        assert make(sue, token).status_code == 403, field
        answer = sue.post(path, {**RIGHTS, "name": token, **YES})
        assert (answer.status_code, answer.json()["error"]) == (403, "policy.denied"), field
        if token == "any":
            change = rights(shown, scope="readWrite", **YES)
            answer = sue.post(f"access/tokens/{shown['id']}/change", change)
            assert answer.status_code == 403
        assert state_of(place) == before
        assert place.run("pair", "deny", client.id).status == 0
    # Where it is hidden from the token as well, the token is given.
    place.settings('[[masks]]\ncolumn = "towns.name"\n')
    secret = make(sue, "plain").json()["secret"]
    assert "Köln" not in query(place.agent(secret), "SELECT name FROM towns").text


def test_no_token_has_a_name_that_shows_as_another_one(place: Place) -> None:
    ada, before = place.visitor(), state_of(place)
    for name in ("a\u202eb", "a\u200bb", "a\nb", "operator:ada", "Operator:ada", " a", "cli"):
        answer = make(ada, name)
        assert (answer.status_code, answer.json()["error"]) == (400, "argument.invalid"), name
    assert state_of(place) == before


# Tokens


def test_a_token_is_shown_once_and_is_in_no_record_and_no_other_answer(
    place: Place,
) -> None:
    ada = place.visitor()
    answer = make(ada, scope="readWrite", max_rows_changed=5, tables=["towns"], expires="30d")
    made = answer.json()
    secret, shown = made["secret"], made["token"]
    assert answer.headers["cache-control"] == "no-store"
    assert (shown["scope"], shown["sources"], shown["owner"]) == ("readWrite", ["towns"], "ada")
    assert (shown["tables"], shown["max_rows_changed"]) == (["towns"], 5)
    assert ran(query(place.agent(secret), "SELECT name FROM towns"))
    for path in ("access", "access/choices", "activity"):
        assert secret not in ada.get(path).text
    assert secret not in json.dumps(records(place.state))
    assert PASSPHRASE not in json.dumps(records(place.state))
    (event,) = events(place, "token.created")
    assert event["actor"] == "operator:ada"
    assert event["details"]["session"] and event["details"]["address"] == "127.0.0.1"
    # The name is taken, and a second one is not made.
    before = state_of(place)
    assert make(ada).status_code == 400
    assert state_of(place) == before


def test_less_needs_no_passphrase_and_more_does(place: Place) -> None:
    ada = place.visitor()
    secret = make(ada, scope="readWrite").json()["secret"]
    shown = row(ada, "new")
    path = f"access/tokens/{shown['id']}/change"
    less = rights(shown, scope="readOnly", tables=["towns"], expires="1d")
    answer = ada.post(path, less)
    assert answer.status_code == 200
    assert "policy.scope" in query(place.agent(secret)).text
    more = rights(answer.json(), tables=None)
    assert ada.post(path, more).json()["error"] == "operator.consent"
    assert row(ada, "new")["tables"] == ["towns"]
    assert ada.post(path, {**more, **YES}).status_code == 200
    assert row(ada, "new")["tables"] is None
    assert [each["actor"] for each in events(place, "token.changed")] == ["operator:ada"] * 2


def test_of_two_admins_who_change_a_token_the_second_reads_that_it_was_changed(
    place: Place,
) -> None:
    place.add_operator("eve", "--role", "admin")
    ada, eve = place.visitor(), place.visitor("eve")
    make(ada)
    shown = row(ada, "new")
    path = f"access/tokens/{shown['id']}/change"
    assert eve.post(path, rights(shown, tables=["towns"])).status_code == 200
    answer = ada.post(path, rights(shown, max_rows_changed=3))
    assert (answer.status_code, answer.json()["error"]) == (409, "access.changed")
    assert row(ada, "new")["tables"] == ["towns"] and row(ada, "new")["max_rows_changed"] is None
    assert eve.post(f"access/tokens/{shown['id']}/revoke").status_code == 204
    assert ada.post(path, rights(row(ada, "new"), max_rows_changed=3)).status_code == 400
    assert ada.post(f"access/tokens/{shown['id']}/revoke").status_code == 400


def of_endless(place: Place) -> list[dict[str, Any]]:
    return [each for each in records(place.state) if each.get("statement") == ENDLESS]


def at_once(*works: Callable[[], httpx.Response]) -> list[int]:
    """The statuses of requests that are sent at the same time."""
    answers: list[int] = []
    threads = [
        threading.Thread(target=lambda w=work: answers.append(w().status_code)) for work in works
    ]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    return sorted(answers)


def test_of_many_who_make_a_token_of_one_name_at_once_one_does(place: Place) -> None:
    visitors = [place.visitor() for _ in range(4)]
    statuses = at_once(*(lambda v=each: make(v) for each in visitors))
    assert statuses == [201, 400, 400, 400]
    assert len([each for each in state_of(place)[0] if each["state"] == "active"]) == 1


def test_a_call_that_runs_ends_when_its_token_is_revoked_and_the_next_is_refused(
    place: Place,
    token: str,
) -> None:
    ada, agent = place.visitor(), place.agent(token)
    assert ran(query(agent, ENDLESS.replace("FROM n) SELECT", "FROM n WHERE i < 9) SELECT")))
    arguments = {"sql": ENDLESS, "source": "towns"}
    params = agent.add_meta({"name": "query", "arguments": arguments})
    message = {"jsonrpc": "2.0", "id": "endless", "method": "tools/call", "params": params}
    running = http.client.HTTPConnection("127.0.0.1", agent.port, timeout=PATIENCE_S)
    running.request("POST", agent.path, json.dumps(message), agent.headers(message))
    assert ran(query(agent, "SELECT 1"))  # the endless one is under way by then
    assert ada.post(f"access/tokens/{row(ada, 'claude')['id']}/revoke").status_code == 204
    wait_until(
        lambda: [each for each in of_endless(place) if each.get("code") == "call.cancelled"],
        "the end of the call",
    )
    running.close()
    refused = httpx.post(
        f"{place.address}/mcp",
        json={"jsonrpc": "2.0", "id": 2, "method": "tools/list", "params": {}},
        headers={"authorization": f"Bearer {token}"},
    )
    assert refused.status_code == 401


# Requests for a token


def test_a_request_is_live_approved_to_an_owner_with_less_and_fetched_once(
    place: Place,
) -> None:
    ada = place.visitor()
    stream = Stream(place.visitor())
    wait_until(lambda: stream.of("pairing"), "the first list")
    client = Client(place, scope="readWrite", sources=["towns"])
    (card,) = wait_until(lambda: stream.of("pairing")[-1]["pairings"], "the request")
    assert (card["id"], card["client"], card["address"]) == (client.id, "laptop", "127.0.0.1")
    assert client.fetch().status_code == 202
    path = f"access/pairings/{client.id}/approve"
    more = ada.post(path, {**RIGHTS, "scope": "fullAccess", **YES})
    assert more.status_code == 400
    assert ada.post(path, {**RIGHTS, "sources": ["other"], **YES}).status_code == 400
    assert ada.post(path, {**RIGHTS, "sources": None, **YES}).status_code == 400
    assert client.fetch().status_code == 202
    given = {**RIGHTS, "tables": ["towns"], "expires": "1d", "name": "adas-laptop", **YES}
    assert ada.post(path, given).status_code == 204
    wait_until(lambda: not stream.of("pairing")[-1]["pairings"], "the end of the request")
    assert ada.post(path, given).status_code == 400
    secret = client.fetch().json()["token"]
    shown = row(ada, "adas-laptop")
    assert (shown["owner"], shown["scope"], shown["tables"]) == ("ada", "readOnly", ["towns"])
    assert ran(query(place.agent(secret), "SELECT name FROM towns"))
    assert client.fetch().status_code == 410
    (event,) = events(place, "pairing.approved")
    assert (event["actor"], event["details"]["owner"]) == ("operator:ada", "ada")


def test_a_request_that_was_denied_makes_no_token(place: Place) -> None:
    ada, client = place.visitor(), Client(place)
    assert ada.post(f"access/pairings/{client.id}/deny").status_code == 204
    assert client.fetch().status_code == 403
    assert ada.post(f"access/pairings/{client.id}/approve", {**RIGHTS, **YES}).status_code == 400
    assert state_of(place)[0] == []
    assert [each["actor"] for each in events(place, "pairing.denied")] == ["operator:ada"]


def test_of_a_yes_and_a_no_at_once_one_counts(place: Place) -> None:
    ada, eve = place.visitor(), place.visitor()
    client = Client(place, sources=["towns"])
    path = f"access/pairings/{client.id}"
    statuses = at_once(
        lambda: ada.post(f"{path}/approve", {**RIGHTS, **YES}), lambda: eve.post(f"{path}/deny")
    )
    assert statuses == [204, 400]


def test_at_the_command_line_a_yes_names_an_owner_as_soon_as_there_are_several_operators(
    place: Place,
) -> None:
    consent = ["--passphrase-file", str(place.directory / "consent")]
    first = Client(place, "first")
    assert place.run("pair", "approve", first.id, *consent).status == 0
    place.add_operator("eve")
    second = Client(place, "second")
    refused = place.run("pair", "approve", second.id, *consent)
    assert refused.status != 0 and "owner" in refused.err
    assert place.run("pair", "approve", second.id, "--owner", "eve", *consent).status == 0
    for client in (first, second):
        assert client.fetch().status_code == 200
    owners = {each["name"]: each["owner"] for each in state_of(place)[0]}
    assert owners == {"first": "ada", "second": "eve"}


# Operators


def test_an_invited_operator_signs_in_once_sets_a_passphrase_and_has_its_roles(
    place: Place,
) -> None:
    ada = place.visitor()
    roles = [{"role": "approver", "sources": ["towns"]}]
    made = ada.post("access/operators", {"name": "ivy", "roles": roles, **YES}).json()
    assert made["link"] not in json.dumps(records(place.state))
    ivy, stranger = place.stranger(), place.stranger()
    for guess in ("", PASSPHRASE):
        assert stranger.post("sign-in", {"name": "ivy", "passphrase": guess}).status_code == 401
    assert ivy.sign_in(link=made["link"])["invited"]
    assert stranger.post("sign-in", {"link": made["link"]}).status_code == 401
    assert ivy.post("access/passphrase", {"passphrase": "short"}).status_code == 400
    assert ivy.post("access/passphrase", {"passphrase": "a new passphrase"}).status_code == 204
    assert ivy.post("access/passphrase", {"passphrase": "another passphrase"}).status_code == 403
    again = place.stranger().sign_in(name="ivy", passphrase="a new passphrase")
    assert again["operator"]["roles"] == [{"role": "approver", "sources": ["towns"]}]
    assert ada.post("access/operators/ivy/link", YES).status_code == 400


def test_nobody_who_has_a_passphrase_gets_another_one_over_the_page(
    place: Place,
) -> None:
    by_link = place.visitor(by_link=True)
    refused = by_link.post("access/passphrase", {"passphrase": "another passphrase"})
    assert (refused.status_code, refused.json()["error"]) == (403, "operator.consent")
    assert place.visitor().get("access").status_code == 200


def test_other_roles_count_at_once_and_for_those_who_were_shown(
    place: Place,
) -> None:
    place.add_operator("eve", "--role", "viewer")
    ada, eve = place.visitor(), place.visitor("eve")
    body = {"was": [{"role": "viewer"}], "roles": [{"role": "admin"}], **YES}
    assert ada.post("access/operators/eve/roles", body).status_code == 204
    assert eve.get("access").json()["may"]["operators"]
    again = ada.post("access/operators/eve/roles", body)
    assert (again.status_code, again.json()["error"]) == (409, "access.changed")
    place.add_operator("bob")
    assert ada.post("access/operators/eve/remove", YES).status_code == 204
    assert eve.get("access").status_code == 401
    names = [(each["name"], each["actor"]) for each in place.events()]
    assert ("operator.roles_changed", "operator:ada") in names
    assert ("operator.removed", "operator:ada") in names


def test_the_last_admin_stays_one_whoever_asks_and_of_two_who_remove_each_other_one_stays(
    place: Place,
) -> None:
    ada = place.visitor()
    demote = {"was": [{"role": "admin"}], "roles": [{"role": "viewer"}], **YES}
    assert ada.post("access/operators/ada/remove", YES).json()["error"] == "operator.consent"
    assert ada.post("access/operators/ada/roles", demote).json()["error"] == "operator.consent"
    # One who is invited and has no passphrase yet is not another admin.
    invited = {"name": "ivy", "roles": [{"role": "admin"}], **YES}
    assert ada.post("access/operators", invited).status_code == 201
    assert ada.post("access/operators/ada/remove", YES).status_code == 403
    place.add_operator("eve", "--role", "admin")
    place.add_operator("bob", "--role", "viewer")
    eve = place.visitor("eve")
    statuses = at_once(
        lambda: ada.post("access/operators/eve/remove", YES),
        lambda: eve.post("access/operators/ada/roles", demote),
    )
    assert statuses[0] == 204 and statuses[1] >= 400
    left = [each["name"] for each in operators(place) if each["roles"] == "admin"]
    assert len(set(left) - {"ivy"}) == 1


# Four eyes against an admin


def answer_of(place: Place, agent: HttpPeer, visitor: Visitor) -> Any:
    """What came of an operator's yes to the question of a call."""
    assert "approval.needed" in query(agent).text
    (card,) = visitor.get("inbox").json()["pending"]
    assert card["may"]["allow"] == (not card["may"]["why_not"])
    body = {"digest": card["digest"], **YES}
    return visitor.post(f"inbox/{card['id']}/allow", body)


def test_an_admin_does_not_agree_to_its_own_call_by_an_account_or_a_token_of_its_making(
    place: Place,
) -> None:
    place.add_operator("eve", "--role", "approver")
    ada = place.visitor()
    # A token in the name of someone else.
    of_eve = place.agent(make(ada, "of-eve", scope="readWrite", owner="eve").json()["secret"])
    refused = answer_of(place, of_eve, ada)
    assert (refused.status_code, refused.json()["error"]) == (403, "operator.consent")
    assert "You made the token" in refused.json()["message"]
    # A second account, whose passphrase ada sets by the link.
    body = {"name": "second", "roles": [{"role": "admin"}], **YES}
    second = place.stranger()
    second.sign_in(link=ada.post("access/operators", body).json()["link"])
    assert second.post("access/passphrase", {"passphrase": PASSPHRASE}).status_code == 204
    for visitor in (ada, second):
        assert answer_of(place, of_eve, visitor).status_code == 403
    # An account that someone else invited, which ada takes over by another link.
    third = {"name": "third", "roles": [{"role": "approver"}], **YES}
    link = second.post("access/operators", third).json()["link"]
    first = place.stranger()
    first.sign_in(link=link)
    taken = place.stranger()
    taken.sign_in(link=ada.post("access/operators/third/link", YES).json()["link"])
    assert first.post("access/passphrase", {"passphrase": PASSPHRASE}).status_code == 401
    assert taken.post("access/passphrase", {"passphrase": PASSPHRASE}).status_code == 204
    assert answer_of(place, of_eve, taken).status_code == 403
    # Nor once the others are gone: the last two operators stay two.
    for name in ("eve", "third"):
        assert ada.post(f"access/operators/{name}/remove", YES).status_code == 204
    assert ada.post("access/operators/second/remove", YES).status_code == 403
    assert place.names() == ["Köln", "Lemberg"]
    # Who has the command line says who someone is.
    words = ["operator", "passphrase", "second", "--new-passphrase-file"]
    consent = ["--passphrase-file", str(place.directory / "consent")]
    assert place.run(*words, str(place.directory / "passphrase"), *consent).status == 0
    of_ada = place.agent(make(ada, "of-ada", scope="readWrite").json()["secret"])
    (card,) = second_card(place, of_ada)
    assert card["state"] == "allowed"
    assert ran(query(of_ada))
    assert place.names() == ["Köln", "Lviv"]


def second_card(place: Place, agent: HttpPeer) -> list[Any]:
    """The cards of a call that the account `second` has allowed."""
    assert "approval.needed" in query(agent).text
    visitor = place.visitor("second")
    cards = [each for each in visitor.get("inbox").json()["pending"] if each["may"]["allow"]]
    allow = [
        visitor.post(f"inbox/{each['id']}/allow", {"digest": each["digest"], **YES})
        for each in cards
    ]
    return [each.json() for each in allow]


def test_a_grant_that_was_given_alone_ends_when_a_second_operator_comes(place: Place) -> None:
    ada = place.visitor()
    agent = place.agent(make(ada, "claude", scope="readWrite").json()["secret"])
    query(agent)
    (card,) = ada.get("inbox").json()["pending"]
    body = {"digest": card["digest"], "minutes": 30, **YES}
    assert ada.post(f"inbox/{card['id']}/allow", body).status_code == 200
    place.add_operator("eve", "--role", "approver")
    assert "approval.needed" in query(agent).text
    assert place.names() == ["Köln", "Lemberg"]
    assert ada.get(f"inbox/{card['id']}").json()["state"] == "expired"


LOOK_ALIKE = (
    *("ADA", "аda", "ada ", "a  da", "ａda", "ada\u200b", "ada\u202e", "ada\n"),
    *("x" * 65, "", "-a", "a/b", "a<b>"),
)


def test_no_operator_is_invited_under_a_name_that_looks_like_another(place: Place) -> None:
    ada, before = place.visitor(), state_of(place)
    for name in LOOK_ALIKE:
        body = {"name": name, "roles": [{"role": "viewer"}], **YES}
        answer = ada.post("access/operators", body)
        assert (answer.status_code, answer.json()["error"]) == (400, "argument.invalid"), name
    assert state_of(place) == before


# The matrix


def matrix(visitor: Visitor, **query: str) -> Any:
    return visitor.get(f"access/matrix?{httpx.QueryParams(query)}").json()


def test_a_cell_says_what_the_gate_does_and_which_setting_decides(
    place: Place,
    token: str,
) -> None:
    ada = place.visitor()
    make(ada, "reader")
    verbs = [each["name"] for each in ada.get("access/choices").json()["verbs"]]
    caller = f"token:{row(ada, 'reader')['id']}"
    (shown,) = matrix(ada, caller=caller)["rows"][0:0] or [
        each for each in matrix(ada, caller=caller)["rows"] if each["source"]["name"] == "towns"
    ]
    kinds = dict(zip(verbs, [each["kind"] for each in shown["cells"]], strict=True))
    assert (kinds["read"], kinds["change"], kinds["administer"]) == ("allow", "deny", "deny")
    (other,) = [
        each for each in matrix(ada, caller=caller)["rows"] if each["source"]["name"] == "other"
    ]
    assert {each["rule"] for each in other["cells"]} == {"actor.sources"}
    where = httpx.QueryParams({"caller": caller, "source": "towns", "verb": "change"})
    cell = ada.get(f"access/cell?{where}").json()
    assert (cell["kind"], cell["rule"]) == ("deny", "actor.writes")
    assert cell["settings"] == [
        {"name": "scope", "value": "readOnly", "kept": "the token reader, in the state"}
    ]
    assert cell["rules"][-1]["rule"] == "actor.writes"
    rows = {each["caller"]["name"]: each for each in matrix(ada, source="towns")["rows"]}
    assert {"reader", "claude", "ada", "stdio", "bridge"} <= set(rows)
    asking = dict(zip(verbs, rows["claude"]["cells"], strict=True))["change"]
    assert (asking["kind"], asking["rule"]) == ("ask", "source.approval_for")
    assert "approval.needed" in query(place.agent(token)).text


def test_of_a_request_for_a_token_one_sees_what_it_would_get(place: Place) -> None:
    ada, client = place.visitor(), Client(place, sources=["towns"])
    rows = matrix(ada, caller=f"request:{client.id}")["rows"]
    kinds = {each["source"]["name"]: each["cells"][1]["kind"] for each in rows}
    assert kinds == {"towns": "allow", "other": "deny"}


def test_who_is_no_admin_looks_at_his_own_account_alone(
    place: Place,
    token: str,
) -> None:
    place.add_operator("vic", "--role", "viewer", "--source", "towns")
    vic, ada = place.visitor("vic"), place.visitor()
    assert [each["id"] for each in vic.get("access/choices").json()["callers"]] == ["operator:vic"]
    rows = matrix(vic, caller="operator:vic")["rows"]
    assert [each["source"]["name"] for each in rows] == ["towns"]
    claude = f"token:{row(ada, 'claude')['id']}"
    for query_of in (
        {"caller": claude},
        {"source": "towns"},
        {"caller": "operator:ada"},
        {"caller": "nobody"},
    ):
        assert vic.get(f"access/matrix?{httpx.QueryParams(query_of)}").status_code == 400
    where = httpx.QueryParams({"caller": claude, "source": "towns", "verb": "read"})
    assert vic.get(f"access/cell?{where}").status_code == 400
    own = httpx.QueryParams({"caller": "operator:vic", "source": "other", "verb": "read"})
    assert vic.get(f"access/cell?{own}").status_code == 400


def test_one_statement_is_asked_about_on_record_and_nothing_runs(
    place: Place,
    token: str,
) -> None:
    ada = place.visitor()
    make(ada, "reader")
    reader, claude = (f"token:{row(ada, name)['id']}" for name in ("reader", "claude"))

    def ask(caller: str, statement: str, **more: Any) -> Any:
        body = {"caller": caller, "source": "towns", "statement": statement, **more}
        return ada.post("access/ask", body).json()

    update = "UPDATE towns SET name = 'Lviv' WHERE id = 2"
    assert ask(reader, "SELECT name FROM towns")["verdict"] == "allow"
    refused = ask(reader, update)
    assert (refused["verdict"], refused["rule"]) == ("deny", "actor.writes")
    assert refused["settings"][0]["kept"] == "the token reader, in the state"
    assert ask(claude, update)["verdict"] == "ask"
    assert ask(claude, "DROP TABLE towns")["verdict"] == "confirm"
    assert ask(claude, "DROP TABLE towns", confirmed=True)["verdict"] == "ask"
    assert ask(claude, "gibberish")["verdict"] == "deny"
    make(ada, "elsewhere", sources=["other"])
    elsewhere = ask(f"token:{row(ada, 'elsewhere')['id']}", "SELECT 1")
    assert (elsewhere["verdict"], elsewhere["rule"]) == ("deny", "actor.sources")
    assert place.names() == ["Köln", "Lemberg"]
    asked = events(place, "access.asked")
    assert len(asked) == 7 and {each["actor"] for each in asked} == {"operator:ada"}
    assert asked[0]["details"]["caller"] == reader.removeprefix("token:")
    assert not [each for each in records(place.state) if each.get("request") == "query"]
    assert ada.get("inbox").json()["pending"] == []


HIDES = """
[[masks]]
column = "towns.name"
show = "partial"
tokens = ["reader"]
"""
HIDES_MORE = """
[[masks]]
column = "towns.name"
show = "nothing"
operators = ["ada"]
"""


def test_rows_are_shown_as_a_token_reads_them_masked_by_the_stricter_of_both(
    place: Place, token: str
) -> None:
    ada = place.visitor()
    make(ada, "reader")
    reader, claude = (f"token:{row(ada, name)['id']}" for name in ("reader", "claude"))

    def preview(caller: str, statement: str = "SELECT id, name FROM towns", who: Any = ada) -> Any:
        body = {"caller": caller, "source": "towns", "statement": statement}
        return who.post("access/preview", body).json()

    assert preview(reader)["rows"] == [["1", "Köln"], ["2", "Lemberg"]]
    place.settings(HIDES)
    (köln, lemberg) = preview(reader)["rows"]
    assert "Köln" not in köln[1] and "Lemberg" not in lemberg[1] and lemberg[1]
    assert preview(claude)["rows"] == [["1", "Köln"], ["2", "Lemberg"]]
    place.settings(HIDES + HIDES_MORE)
    for caller in (reader, claude):
        found = preview(caller)
        assert found["rows"] == [["1", None], ["2", None]]
        assert [each["masked"] for each in found["columns"]] == [False, True]
    # It only reads, whatever the token may do; who is no admin there looks at nothing.
    for statement in (UPDATE, "DROP TABLE towns", "gibberish", "SELECT nothing FROM nowhere"):
        assert preview(claude, statement).get("error")
    place.add_operator("eve", "--role", "approver")
    refused = place.visitor("eve").post(
        "access/preview", {"caller": claude, "source": "towns", "statement": "SELECT 1"}
    )
    assert refused.status_code == 400
    assert place.names() == ["Köln", "Lemberg"] and ada.get("inbox").json()["pending"] == []
    # Both are on record; the statement is in no one's history.
    ran = [each for each in records(place.state) if each.get("tool") == "preview"]
    assert {each.get("on_behalf_of") for each in ran} == {"operator:ada"}
    assert {each["actor"] for each in ran} == {reader[6:], claude[6:]}
    asked = events(place, "access.previewed")
    assert {each["actor"] for each in asked} == {"operator:ada"}
    assert {each["details"]["caller"] for each in asked} == {reader[6:], claude[6:]}
    assert ada.get("data/history").json()["entries"] == []


def test_a_role_that_ends_while_the_passphrase_is_checked_gives_nothing(
    place: Place,
) -> None:
    place.add_operator("eve", "--role", "admin")
    eve, ada = place.visitor("eve"), place.visitor()
    demote = {"was": [{"role": "admin"}], "roles": [{"role": "viewer"}], **YES}
    at_once(lambda: ada.post("access/operators/eve/roles", demote), lambda: make(eve, "late"))
    made = [each for each in place.events() if each["name"] == "token.created"]
    changed = [each for each in place.events() if each["name"] == "operator.roles_changed"]
    assert changed
    order = [each["seq"] for each in (*made, *changed)]
    assert order == sorted(order)  # made before the role ended, or not at all
    assert make(eve, "later").status_code == 403


def test_bodies_that_fit_no_request_change_nothing(place: Place) -> None:
    ada, before = place.visitor(), state_of(place)
    for path, bodies in {
        "access/tokens": (
            {},
            [],
            {**RIGHTS, "name": "x", "scope": "all", **YES},
            {**RIGHTS, "name": "", **YES},
            {**RIGHTS, "name": "bridge", **YES},
            {**RIGHTS, "name": "x", "sources": ["nowhere"], **YES},
            {**RIGHTS, "name": "x", "tags": ["nothing"], **YES},
            {**RIGHTS, "name": "x", "expires": "soon", **YES},
            {**RIGHTS, "name": "x", "tables": ["a b:c:d"], **YES},
            {**RIGHTS, "name": "x", "max_rows_changed": 0, **YES},
            {**RIGHTS, "name": "x", "owner": "nobody", **YES},
            {**RIGHTS, "name": "x", "proxy": True, **YES},
        ),
        "access/operators": (
            {"name": "zoe", "roles": [], **YES},
            {"name": "zoe", "roles": [{"role": "viewer", "sources": ["nowhere"]}], **YES},
            {"name": "zoe", "roles": [{"role": "owner"}], **YES},
            {"name": "", "roles": [{"role": "viewer"}], **YES},
            {"name": "ADA", "roles": [{"role": "viewer"}], **YES},
        ),
        "access/ask": ({"caller": "x", "source": "towns", "statement": "x" * 200_000},),
        "access/preview": ({"caller": "x", "source": "towns", "statement": ""},),
    }.items():
        for body in bodies:
            answer = ada.post(path, body)
            assert 400 <= answer.status_code < 500, (path, body, answer.text)
            assert state_of(place) == before, (path, body)
