"""The console over HTTP: who may reach it, who may answer, what each sees, and what is live."""

from __future__ import annotations

import hashlib
import json
import re
import sqlite3
import threading
import time
from contextlib import closing
from pathlib import Path
from typing import Any
from urllib.parse import urlencode

import httpx
import pytest

from products.console.support.console_place import (
    DELETE,
    PASSPHRASE,
    PHRASE,
    UPDATE,
    Place,
    query,
    ran,
)
from products.console.support.console_routes import UNSIGNED, is_download, served
from support.audit_records import records
from support.command_line import serving
from support.console_visitor import Stream, Visitor
from support.eventually import wait_until

PING = {"jsonrpc": "2.0", "id": 1, "method": "ping"}

# Signing in


def test_a_link_signs_in_once_and_never_again(place: Place) -> None:
    link = place.link("ada")
    first, second = place.stranger(), place.stranger()
    session = first.sign_in(link=link)
    assert (session["operator"]["name"], session["by"], session["confirmed"]) == (
        *("ada", "link"),
        False,
    )
    refused = second.post("sign-in", {"link": link})
    assert (refused.status_code, refused.json()["error"]) == (401, "auth.invalid")
    assert second.post("session").status_code == 401
    assert link not in json.dumps(records(place.state))


def test_of_all_who_open_a_link_at_once_one_is_signed_in(place: Place) -> None:
    link = place.link("ada")
    statuses: list[int] = []
    visitors = [place.stranger() for _ in range(4)]

    def open_link(visitor: Visitor) -> None:
        statuses.append(visitor.post("sign-in", {"link": link}).status_code)

    threads = [threading.Thread(target=open_link, args=(each,)) for each in visitors]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert sorted(statuses) == [200, 401, 401, 401]


def test_every_sign_in_has_a_session_of_its_own(place: Place) -> None:
    visitor = place.visitor()
    before = dict(visitor.client.cookies)
    visitor.sign_in(name="ada", passphrase=PASSPHRASE)
    assert dict(visitor.client.cookies) != before


@pytest.mark.parametrize(
    ("accepted", "coding"),
    [("gzip, br", "gzip"), ("*", "gzip"), ("br", None), ("gzip;q=0", None), ("", None)],
)
def test_files_of_the_page_are_compressed_for_who_takes_it(
    place: Place, accepted: str, coding: str | None
) -> None:
    client = place.visitor().client
    address = addresses(client.get("/console").text)[-1]
    whole = client.get(address, headers={"accept-encoding": ""})
    sent = client.get(address, headers={"accept-encoding": accepted})
    assert sent.headers.get("content-encoding") == coding
    assert sent.headers["vary"] == "accept-encoding" and sent.content == whole.content
    if coding:
        assert int(sent.headers["content-length"]) < 0.5 * len(whole.content)
    again = {"if-none-match": sent.headers["etag"], "accept-encoding": accepted}
    assert client.get(address, headers=again).status_code == 304


def test_what_an_address_of_a_build_gives_is_kept_and_another_build_is_answered(
    place: Place,
) -> None:
    client = place.visitor().client
    page = client.get("/console")
    assert page.headers["cache-control"] == "no-cache"
    found = addresses(page.text)
    assert len(found) > 15 and found[-1].endswith("/app.js")
    for address in found:
        sent = client.get(address)
        assert sent.status_code == 200, address
        assert sent.headers["cache-control"] == "public, max-age=31536000, immutable"
    build = found[-1].split("/")[-2]
    needs = re.findall(r'data-module="([\w.]+)" content="([^"]+)"', page.text)
    known = {name for name, _ in needs}
    assert known > {"access.js", "activity.js", "data.js", "diagram.js", "now.js"}
    for name in " ".join(names for _, names in needs).split():
        assert client.get(f"/console/assets/{build}/{name}").status_code == 200, name
    for address in (
        found[-1].replace(build, "0" * 16), "/console/assets/app.js",
        f"/console/assets/{build}/index.html", f"/console/assets/{build}/none.js",
    ):  # fmt: skip
        refused = client.get(address)
        assert refused.status_code == 404, address
        assert refused.headers["cache-control"] == "no-store"
    assert "load the page again" in client.get(found[-1].replace(build, "0" * 16)).text


def addresses(text: str) -> list[str]:
    """The files that a page names, in their order."""
    return re.findall(r'(?:href|src)="(/console/assets/[^"]+)"', text)


def test_a_cookie_that_the_visitor_chose_becomes_no_session(place: Place) -> None:
    visitor = place.stranger()
    instance = place.visitor().resume().json()["instance"]
    visitor.client.cookies.set(f"tidegate_{instance}", "chosen", path="/console")
    visitor.sign_in(name="ada", passphrase=PASSPHRASE)
    other = place.stranger()
    other.client.cookies.set(f"tidegate_{instance}", "chosen", path="/console")
    assert other.post("session").status_code == 401


def test_a_cookie_that_another_port_has_read_opens_no_session(place: Place) -> None:
    """Browsers send cookies to all ports of a host: a server beside this one may know it."""
    visitor, thief = place.visitor(), place.stranger()
    other = place.visitor()
    for name, value in visitor.client.cookies.items():
        thief.client.cookies.set(name, value, path="/console")
    for key in ("", "0" * 64, other.key, visitor.page, "ä"):
        answer = thief.post("session", {"key": key})
        assert (answer.status_code, answer.json()["error"]) == (401, "console.signed_out")
        assert visitor.page not in answer.text
    assert thief.get("inbox").status_code == 401
    assert visitor.resume().json()["page"] == visitor.page


def test_the_cookie_is_for_the_console_alone_and_hidden_from_scripts(place: Place) -> None:
    answer = place.stranger().post("sign-in", {"name": "ada", "passphrase": PASSPHRASE})
    cookie = answer.headers["set-cookie"]
    assert "Path=/console; HttpOnly; SameSite=Strict" in cookie


def test_guesses_lock_the_address_out_and_are_on_record(place: Place) -> None:
    visitor = place.stranger()
    body = {"name": "ada", "passphrase": "wrong horse 1"}
    statuses = [visitor.post("sign-in", body).status_code for _ in range(7)]
    assert statuses[:5] == [401] * 5
    assert statuses[-1] == 429
    assert visitor.post("sign-in", {**body, "passphrase": PASSPHRASE}).status_code == 429
    failed = [each for each in place.events() if each["name"] == "console.sign_in_failed"]
    assert len(failed) == 5


def test_wrong_tokens_lock_no_passphrase_out_and_wrong_passphrases_no_token(
    place: Place, token: str
) -> None:
    def send_token(bearer: str) -> int:
        headers = {"authorization": f"Bearer {bearer}"}
        return place.stranger().client.post("/mcp", json=PING, headers=headers).status_code

    assert [send_token(f"tg_{'a' * 43}") for _ in range(7)][4:] == [401, 429, 429]
    guesser = place.stranger()
    body = {"name": "ada", "passphrase": PASSPHRASE}
    assert guesser.post("sign-in", body).status_code == 200
    wrong = {**body, "passphrase": "wrong horse 1"}
    assert [guesser.post("sign-in", wrong).status_code for _ in range(6)][-1] == 429
    assert send_token(token) not in (401, 429)


def test_a_body_that_says_it_is_compressed_is_refused(place: Place) -> None:
    for coding in ("gzip", "br", "gzip, identity", "none-such"):
        answer = place.visitor().client.post(
            "/console/api/sign-out", content=b"{}", headers={"content-encoding": coding}
        )
        assert (answer.status_code, answer.headers["accept-encoding"]) == (415, "identity")


def test_guesses_of_others_lock_no_operator_out_of_a_session_or_a_link(
    place: Place, token: str
) -> None:
    ada, guesser = place.visitor(by_link=True), place.stranger()
    query(place.agent(token))
    (card,) = ada.get("inbox").json()["pending"]
    for _ in range(6):
        guesser.post("sign-in", {"name": "ada", "passphrase": "wrong horse 1"})
    assert place.visitor(by_link=True).get("inbox").status_code == 200
    body = {"digest": card["digest"], "passphrase": PASSPHRASE}
    assert ada.post(f"inbox/{card['id']}/allow", body).status_code == 200


def test_too_many_wrong_passphrases_in_a_session_end_it(place: Place, token: str) -> None:
    ada = place.visitor(by_link=True)
    query(place.agent(token))
    (card,) = ada.get("inbox").json()["pending"]
    body = {"digest": card["digest"], "passphrase": "wrong horse 1"}
    statuses = [ada.post(f"inbox/{card['id']}/allow", body).status_code for _ in range(6)]
    assert statuses == [403] * 5 + [401]
    body["passphrase"] = PASSPHRASE
    assert ada.post(f"inbox/{card['id']}/allow", body).status_code == 401
    assert "approval.needed" in query(place.agent(token)).text


def test_an_unknown_name_and_a_wrong_passphrase_get_the_same_answer(place: Place) -> None:
    visitor = place.stranger()
    answers = [
        visitor.post("sign-in", {"name": name, "passphrase": "wrong horse 1"}).json()
        for name in ("ada", "eve")
    ]
    assert answers[0] == answers[1]


def test_signing_out_ends_the_session_and_everywhere_ends_all(place: Place) -> None:
    first, second, third = (place.visitor() for _ in range(3))
    assert first.post("sign-out", {"everywhere": False}).status_code == 204
    assert first.get("inbox").status_code == 401
    assert second.get("inbox").status_code == 200
    assert second.post("sign-out", {"everywhere": True}).status_code == 204
    assert third.get("inbox").status_code == 401


def test_a_removed_operator_is_out_at_once(place: Place) -> None:
    place.add_operator("eve", "--role", "viewer")
    visitor = place.visitor("eve")
    assert place.run("operator", "remove", "eve").status == 0
    assert visitor.get("inbox").status_code == 401


# Requests of other pages


def send(visitor: Visitor, method: str, path: str, **changes: str | None) -> Any:
    if method == "POST":
        return visitor.post(path, **changes)
    headers = visitor.headers(**{"origin": None, "content_type": None, **changes})
    return visitor.client.request(method, f"/console/api/{path}", headers=headers)


OTHER_PAGES: tuple[dict[str, str | None], ...] = (
    {"origin": "http://127.0.0.1:1"},
    {"origin": "http://localhost:3000"},
    {"origin": "null"},
    {"sec_fetch_site": "same-site"},
    {"sec_fetch_site": "cross-site"},
    {"sec_fetch_site": None},
    {"host": "gate.example"},
    {"host": "127.0.0.1:1"},
)


def test_no_route_answers_another_page(place: Place) -> None:
    visitor = place.visitor()
    for changes in OTHER_PAGES:
        for method, path in served():
            answer = send(visitor, method, path, **changes)
            assert answer.status_code == 403, (changes, method, path, answer.text)
            assert "access-control-allow-origin" not in answer.headers
            assert "default-src 'none'" in answer.headers["content-security-policy"]


def test_no_route_but_those_that_begin_a_session_answers_without_the_pages_secret(
    place: Place,
) -> None:
    visitor = place.visitor()
    for method, path in served()[len(UNSIGNED) :]:
        answer = send(visitor, method, path, x_tidegate_page="0" * 64)
        # A download begins by a ticket, which the page alone gets.
        assert answer.status_code == (403 if is_download(path) else 401), (method, path)


def test_no_route_answers_who_is_not_signed_in(place: Place) -> None:
    stranger = place.stranger()
    for method, path in served()[len(UNSIGNED) :]:
        answer = send(stranger, method, path)
        assert answer.status_code == 401, (method, path)


def test_no_route_answers_a_token(place: Place, token: str) -> None:
    visitor = place.stranger()
    for method, path in served():
        if path not in ("session", "sign-in"):
            answer = send(visitor, method, path, authorization=f"Bearer {token}")
            assert answer.status_code == 401, path


def test_no_preflight_lets_another_page_in(place: Place) -> None:
    answer = place.visitor().client.request(
        "OPTIONS",
        "/console/api/inbox",
        headers={"origin": place.address, "access-control-request-method": "GET"},
    )
    assert answer.status_code == 405
    assert not [name for name in answer.headers if name.startswith("access-control")]


def test_a_form_of_another_page_is_refused_by_its_media_type(place: Place) -> None:
    answer = place.visitor().post("sign-out", content_type="text/plain")
    assert answer.status_code == 415


def test_the_page_holds_no_data_and_is_protected(place: Place) -> None:
    answer = place.visitor().client.get("/console")
    assert answer.status_code == 200
    headers = answer.headers
    assert "require-trusted-types-for 'script'" in headers["content-security-policy"]
    assert "frame-ancestors 'none'" in headers["content-security-policy"]
    assert headers["x-content-type-options"] == "nosniff"
    assert headers["referrer-policy"] == "no-referrer"
    assert "ada" not in answer.text
    assert place.visitor().client.get("/console/assets/..%2f..%2fapp.py").status_code == 404


# Answers


def test_a_yes_needs_the_passphrase_first_and_then_runs_the_call_once(
    place: Place, token: str
) -> None:
    agent, visitor = place.agent(token), place.visitor(by_link=True)
    assert "approval.needed" in query(agent).text
    (card,) = visitor.get("inbox").json()["pending"]
    assert card["sentence"].endswith("change 1 row of towns on towns")
    assert card["dry_run"]["before"] == [["2", "Lemberg"]]
    assert card["may"]["passphrase"]
    body = {"digest": card["digest"]}
    for passphrase in ({}, {"passphrase": "wrong horse 1"}):
        refused = visitor.post(f"inbox/{card['id']}/allow", {**body, **passphrase})
        assert (refused.status_code, refused.json()["error"]) == (403, "operator.consent")
    assert "approval.needed" in query(agent).text
    assert place.names() == ["Köln", "Lemberg"]
    allowed = visitor.post(f"inbox/{card['id']}/allow", {**body, "passphrase": PASSPHRASE})
    assert allowed.json()["state"] == "allowed"
    assert ran(query(agent))
    assert place.names() == ["Köln", "Lviv"]
    card = visitor.get(f"inbox/{card['id']}").json()
    assert (card["state"], card["run"]["state"], card["run"]["rows"]) == ("used", "done", 1)
    assert card["decided_by"] == "operator:ada"
    lines = visitor.get("activity").json()["lines"]
    assert [each["outcome"] for each in lines if each["surface"] == "core"] == [
        "ok",
        "asked",
        "asked",
    ]
    (event,) = [each for each in place.events() if each["name"] == "approval.allowed"]
    assert (event["actor"], event["actor_name"]) == ("operator:ada", "ada")
    details = {name: event["details"][name] for name in ("via", "address", "by")}
    assert details == {"via": "console", "address": "127.0.0.1", "by": "passphrase"}
    sessions = visitor.get("access").json()["sessions"]
    (session,) = [each["id"] for each in sessions if each["current"]]
    assert event["details"]["session"] == session
    assert visitor.resume().json()["confirmed"]


def test_what_cannot_be_undone_asks_for_the_passphrase_each_time(place: Place, token: str) -> None:
    agent, visitor = place.agent(token), place.visitor()
    agent.call("query", {"sql": DELETE, "source": "towns", "confirm": PHRASE})
    (card,) = visitor.get("inbox").json()["pending"]
    assert not card["may"]["minutes"]
    assert card["irreversible"] and card["may"]["passphrase"]
    refused = visitor.post(f"inbox/{card['id']}/allow", {"digest": card["digest"]})
    assert (refused.status_code, refused.json()["error"]) == (403, "operator.consent")
    assert place.names() == ["Köln", "Lemberg"]


def test_a_no_reaches_the_agent_with_its_word(place: Place, token: str) -> None:
    agent, visitor = place.agent(token), place.visitor()
    query(agent)
    (card,) = visitor.get("inbox").json()["pending"]
    body = {"digest": card["digest"], "reason": "Lemberg is right for 1900"}
    assert visitor.post(f"inbox/{card['id']}/deny", body).json()["state"] == "denied"
    said = query(agent).text
    assert "approval.declined" in said and "Lemberg is right for 1900" in said
    about = visitor.get(f"activity?approval={card['id']}").json()["lines"]
    assert [each["outcome"] for each in about if each["call_id"]] == ["denied", "asked"]
    assert place.names() == ["Köln", "Lemberg"]
    # The card says that the agent tried again.
    query(agent)
    assert visitor.get(f"inbox/{card['id']}").json()["refused"]["count"] == 2


def test_a_call_that_a_rule_refuses_after_the_yes_is_shown_on_its_card(
    place: Place, token: str
) -> None:
    agent, visitor = place.agent(token), place.visitor()
    query(agent)
    (card,) = visitor.get("inbox").json()["pending"]
    visitor.post(f"inbox/{card['id']}/allow", {"digest": card["digest"]})
    stream = Stream(place.visitor())
    wait_until(lambda: stream.of("hello"), "the stream")
    words = ["source", "update", "towns", "--access", "read"]
    ended = place.run(*words, "--passphrase-file", str(place.directory / "consent"))
    assert ended.status == 0, ended.err
    assert "policy.read_only" in query(agent).text
    query(agent, "UPDATE towns SET name = 'Leopolis'")  # no one has allowed it
    shown = visitor.get(f"inbox/{card['id']}").json()
    assert (shown["state"], shown["refused"]["count"]) == ("allowed", 1)
    assert "read-only" in shown["refused"]["message"]
    wait_until(lambda: any(each["refused"] for each in stream.of("card")), "the live card")
    assert place.names() == ["Köln", "Lemberg"]


def test_a_yes_to_another_card_than_the_one_shown_changes_nothing(place: Place, token: str) -> None:
    agent, visitor = place.agent(token), place.visitor()
    query(agent)
    (card,) = visitor.get("inbox").json()["pending"]
    answer = visitor.post(f"inbox/{card['id']}/allow", {"digest": "0" * 64})
    assert (answer.status_code, answer.json()["error"]) == (409, "approval.changed")
    assert "approval.needed" in query(agent).text


def test_of_two_approvers_the_first_counts_and_the_second_reads_who_it_was(
    place: Place, token: str
) -> None:
    place.add_operator("eve")
    agent, ada, eve = place.agent(token), place.visitor(), place.visitor("eve")
    query(agent)
    (card,) = ada.get("inbox").json()["pending"]
    body = {"digest": card["digest"]}
    assert ada.post(f"inbox/{card['id']}/allow", body).status_code == 200
    late = eve.post(f"inbox/{card['id']}/deny", body)
    assert late.status_code == 409
    assert "allowed by ada" in late.json()["message"]


def test_a_grant_for_minutes_serves_calls_like_it_until_it_is_revoked(
    place: Place, token: str
) -> None:
    agent, visitor = place.agent(token), place.visitor()
    query(agent)
    (card,) = visitor.get("inbox").json()["pending"]
    assert card["may"]["minutes"] == 60
    body = {"digest": card["digest"], "minutes": 5}
    card = visitor.post(f"inbox/{card['id']}/allow", body).json()
    assert card["grant"]["most_uses"] == 20
    for _ in range(3):
        assert ran(query(agent))
    assert "approval.needed" in query(agent, UPDATE.replace("Lviv", "Lwów")).text
    assert visitor.post(f"inbox/{card['id']}/revoke").json()["state"] == "expired"
    assert "approval.needed" in query(agent).text
    names = [each["name"] for each in place.events()]
    assert names.count("approval.revoked") == 1


def test_a_grant_for_minutes_ends_when_the_change_is_about_more_rows(
    place: Place, token: str
) -> None:
    agent, visitor = place.agent(token), place.visitor()
    wide = "UPDATE towns SET name = upper(name) WHERE name LIKE 'K%'"
    query(agent, wide)
    (card,) = visitor.get("inbox").json()["pending"]
    visitor.post(f"inbox/{card['id']}/allow", {"digest": card["digest"], "minutes": 5})
    assert ran(query(agent, wide))
    with closing(sqlite3.connect(place.directory / "towns.db")) as connection, connection:
        connection.execute("INSERT INTO towns VALUES (3, 'Kiel')")
    assert "approval.needed" in query(agent, wide).text
    assert place.names() == ["KÖLN", "Lemberg", "Kiel"] or place.names()[2] == "Kiel"


def test_a_grant_for_minutes_ends_when_the_source_changes(place: Place, token: str) -> None:
    agent, visitor = place.agent(token), place.visitor()
    query(agent)
    (card,) = visitor.get("inbox").json()["pending"]
    visitor.post(f"inbox/{card['id']}/allow", {"digest": card["digest"], "minutes": 5})
    assert ran(query(agent))
    words = ["source", "update", "towns", "--mask", "towns.id=nothing"]
    ended = place.run(*words, "--passphrase-file", str(place.directory / "consent"))
    assert ended.status == 0, ended.err
    assert not ran(query(agent))
    assert visitor.get(f"inbox/{card['id']}").json()["state"] in ("allowed", "expired")


# Roles


def test_a_viewer_looks_and_answers_nothing(place: Place, token: str) -> None:
    place.add_operator("eve", "--role", "viewer")
    agent, eve = place.agent(token), place.visitor("eve")
    query(agent)
    (card,) = eve.get("inbox").json()["pending"]
    assert card["dry_run"] is None and card["dry_run_hidden"]
    assert not card["may"]["allow"] and not card["may"]["deny"] and card["may"]["why_not"]
    for what in ("allow", "deny", "revoke"):
        answer = eve.post(
            f"inbox/{card['id']}/{what}", {"digest": card["digest"]} if what != "revoke" else {}
        )
        assert answer.status_code == 403, what
    assert "approval.needed" in query(agent).text


def test_an_approver_of_one_source_sees_nothing_of_another(place: Place, token: str) -> None:
    place.add_operator("eve", "--role", "approver", "--source", "other")
    agent, eve, ada = place.agent(token), place.visitor("eve"), place.visitor()
    query(agent)
    (card,) = ada.get("inbox").json()["pending"]
    assert eve.get("inbox").json()["pending"] == []
    assert eve.get(f"inbox/{card['id']}").status_code == 400
    for what in ("allow", "deny"):
        answer = eve.post(f"inbox/{card['id']}/{what}", {"digest": card["digest"]})
        assert answer.status_code == 400
    lines = eve.get("activity").json()["lines"]
    assert all(line["source"] == "other" for line in lines)
    words = eve.get("activity?q=lviv").json()
    assert words["lines"] == [] and words["counts"]["total"] == 0
    (line,) = [each for each in ada.get("activity?q=lviv").json()["lines"] if each["call_id"]]
    assert eve.get(f"activity/lines/{line['n']}").status_code == 400
    assert eve.get("activity?source=towns").json()["lines"] == []


def test_where_a_source_hides_columns_a_viewer_reads_and_searches_no_statements(
    place: Place, token: str
) -> None:
    place.add_operator("eve", "--role", "viewer")
    words = ["source", "update", "towns", "--mask", "towns.id=nothing"]
    assert place.run(*words, "--passphrase-file", str(place.directory / "consent")).status == 0
    query(place.agent(token), "SELECT name FROM towns WHERE name = 'Lemberg'")
    eve, ada = place.visitor("eve"), place.visitor()
    assert "Lemberg" in json.dumps(ada.get("activity").json())
    found = eve.get("activity").json()
    assert "Lemberg" not in json.dumps(found)
    (line,) = [each for each in found["lines"] if each["tool"] == "query"]
    assert "Lemberg" not in eve.get(f"activity/lines/{line['n']}").text
    assert eve.get("activity?q=Lemberg").json()["lines"] == []


def test_where_a_source_hides_columns_a_viewer_gets_no_digest_of_statements(
    place: Place, token: str
) -> None:
    place.add_operator("eve", "--role", "viewer")
    words = ["source", "update", "towns", "--mask", "towns.id=nothing"]
    assert place.run(*words, "--passphrase-file", str(place.directory / "consent")).status == 0
    agent, eve, ada = place.agent(token), place.visitor("eve"), place.visitor()
    query(agent, "SELECT name FROM towns WHERE name = 'Lemberg'")
    query(agent, UPDATE.replace("Lviv", "Lemberg"))
    lines = [each for each in ada.get("activity").json()["lines"] if each["statement"]]
    assert lines
    secrets = {hashlib.sha256(each["statement"].encode()).hexdigest() for each in lines}
    for line in lines:
        shown = ada.get(f"activity/lines/{line['n']}").json()
        hidden = eve.get(f"activity/lines/{line['n']}")
        assert shown["fields"]["digest"].removeprefix("sha256:") in secrets
        assert shown["proof"]["hash"] and shown["proof"]["hash"] not in hidden.text
        assert not [each for each in secrets if each in hidden.text]
        assert hidden.json()["proof"]["state"] == shown["proof"]["state"]
    for card in ada.get("inbox").json()["pending"]:
        assert card["digest"] not in eve.get("inbox").text
    assert "Lemberg" not in eve.get("inbox").text


def test_what_a_source_hid_stays_hidden_from_viewers_after_it_was_removed(
    place: Place, token: str
) -> None:
    place.add_operator("eve", "--role", "viewer")
    consent = ["--passphrase-file", str(place.directory / "consent")]
    assert (
        place.run("source", "update", "towns", "--mask", "towns.id=nothing", *consent).status == 0
    )
    agent = place.agent(token)
    query(agent, "SELECT name FROM towns WHERE name = 'Lemberg'")
    query(agent)
    eve, ada = place.visitor("eve"), place.visitor()
    assert place.run("source", "remove", "towns").status == 0
    assert "Lviv" in ada.get("inbox").text and "Lemberg" in ada.get("activity").text
    for path in ("inbox", "activity", "activity/sessions", "access"):
        assert "Lemberg" not in eve.get(path).text and "Lviv" not in eve.get(path).text
    for word in ("Lemberg", "Lviv"):
        found = eve.get(f"activity?q={word}").json()
        assert found["lines"] == [] and found["counts"]["total"] == 0
    assert eve.get("activity?q=operator").json()["lines"]


def test_questions_are_seen_and_answered_while_the_index_of_activity_is_damaged(
    place: Place, token: str
) -> None:
    (place.state / "activity.db").mkdir()
    agent, ada = place.agent(token), place.visitor()
    stream = Stream(place.visitor())
    wait_until(lambda: stream.of("hello"), "the stream")
    query(agent)
    (card,) = wait_until(lambda: stream.of("card"), "the card")
    assert ada.get("activity").json()["error"]
    assert [each["id"] for each in ada.get("inbox").json()["pending"]] == [card["id"]]
    answer = {"digest": card["digest"], "reason": "not today"}
    assert ada.post(f"inbox/{card['id']}/deny", answer).json()["state"] == "denied"
    assert not ran(query(agent))
    assert place.names() == ["Köln", "Lemberg"]


@pytest.mark.parametrize(
    "words", ['"', "*", "a OR", "text:a", "NEAR(", "^", "a\0b", "-", "'", "(", "\ud7ff"]
)
def test_no_words_are_a_syntax_of_the_search(place: Place, words: str) -> None:
    found = place.visitor().get("activity?" + urlencode({"q": words}))
    assert found.status_code == 200 and isinstance(found.json()["lines"], list)


def test_the_owner_of_a_token_does_not_say_yes_to_it_once_there_are_two_operators(
    place: Place,
) -> None:
    consent = str(place.directory / "consent")
    words = ["token", "create", "mine", "--scope", "readWrite", "--owner", "ada"]
    own = place.run(*words, "--passphrase-file", consent).out.strip()
    place.add_operator("eve")
    agent, ada, eve = place.agent(own), place.visitor(), place.visitor("eve")
    query(agent)
    (card,) = ada.get("inbox").json()["pending"]
    assert not card["may"]["allow"] and card["may"]["deny"] and "yours" in card["may"]["why_not"]
    body = {"digest": card["digest"]}
    assert ada.post(f"inbox/{card['id']}/allow", body).status_code == 403
    ended = place.run("approvals", "allow", card["id"], "--passphrase-file", consent)
    assert ended.status != 0 and "console" in ended.err
    assert "approval.needed" in query(agent).text
    assert eve.post(f"inbox/{card['id']}/allow", body).status_code == 200
    assert ran(query(agent))


def test_only_an_admin_revokes_tokens_and_ends_others_sessions(place: Place, token: str) -> None:
    place.add_operator("eve", "--role", "approver")
    eve, ada = place.visitor("eve"), place.visitor()
    access = ada.get("access").json()
    (row,) = [each for each in access["tokens"] if each["name"] == "claude"]
    assert token not in json.dumps(access)
    assert eve.get("access").json()["tokens"] == []
    assert eve.post(f"access/tokens/{row['id']}/revoke").status_code == 403
    mine = next(each for each in access["sessions"] if each["operator"] == "ada")
    assert eve.post(f"access/sessions/{mine['id']}/end").status_code == 403
    assert ran(query(place.agent(token), "SELECT 1"))
    query(place.agent(token))
    (card,) = ada.get("inbox").json()["pending"]
    ada.post(f"inbox/{card['id']}/allow", {"digest": card["digest"], "minutes": 5})
    assert len(ada.get("access").json()["grants"]) == 1
    assert ada.post(f"access/tokens/{row['id']}/revoke").status_code == 204
    assert ada.get("access").json()["grants"] == []
    (row,) = place.run("token", "list", "--json").json["tokens"]
    assert row["state"] == "revoked"
    own = next(each for each in eve.get("access").json()["sessions"])
    assert eve.post(f"access/sessions/{own['id']}/end").status_code == 204
    assert eve.get("inbox").status_code == 401


# Activity


def test_a_call_is_found_by_its_words_with_its_proof(place: Place, token: str) -> None:
    query(place.agent(token), "SELECT count(*) AS zebras FROM towns")
    query(place.agent(token), "DELETE FROM towns")
    ada = place.visitor()
    # An empty Inbox shows what agents do, and not what people do at the command line and here.
    inbox = ada.get("inbox").json()
    assert [each["name"] for each in inbox["agents"]] == ["claude"]
    assert {each["actor_name"] for each in inbox["calls"]} == {"claude"}
    assert inbox["steps"] == {"source": True, "token": True, "client": True}
    found = ada.get("activity?q=zebr").json()
    (line,) = found["lines"]
    assert (line["outcome"], line["source"], line["rows"]) == ("ok", "towns", 1)
    assert dict(found["facets"]["source"]) == {"towns": 1}
    whole = ada.get(f"activity/lines/{line['n']}").json()
    assert whole["fields"]["statement"] == "SELECT count(*) AS zebras FROM towns"
    assert whole["proof"]["state"] in ("verified", "after_checkpoint")
    proof = ada.get("activity/proof?again=1").json()
    assert proof["state"] != "mismatch" and not proof["running"]
    assert (proof["after_checkpoint"] is None) == (proof["signed_until"] is None)
    # A session has an address that outlives the index: that of one of its calls.
    sessions = ada.get("activity/sessions").json()["sessions"]
    (session,) = [each for each in sessions if each["actor_name"] == "claude"]
    for name in (session["call_id"], line["call_id"]):
        story = ada.get(f"activity/story?session={name}").json()
        assert [each["statement"][:6] for each in story["lines"]] == ["SELECT", "DELETE"]
        assert story["lines"][0]["proof"]["state"] in ("verified", "after_checkpoint")
        assert story["session"]["calls"] == 2
    place.add_operator("bob", "--source", "other")
    for words in ("", "&after=0", "&after=99"):
        hidden = place.visitor("bob").get(f"activity/story?session={line['call_id']}{words}")
        assert hidden.status_code == 400
    segment = place.state / "audit" / whole["proof"]["segment"]
    text = segment.read_bytes()
    segment.write_bytes(text.replace(b"zebras FROM", b"zebraz FROM"))
    assert ada.get(f"activity/lines/{line['n']}").json()["proof"]["state"] == "mismatch"
    story = ada.get(f"activity/story?session={line['call_id']}").json()
    assert story["lines"][0]["proof"]["state"] == "mismatch"
    assert ada.get("activity/proof?again=1").json()["state"] == "mismatch"


def test_an_export_holds_what_is_shown_once_and_is_on_record(place: Place, token: str) -> None:
    query(place.agent(token), "SELECT name FROM towns")
    ada = place.visitor()
    for form in ("jsonl", "csv"):
        body = {"format": form, "filters": {"source": "towns"}}
        ticket = ada.post("activity/export-ticket", body).json()["ticket"]
        answer = ada.get(f"activity/export?ticket={ticket}")
        assert "attachment" in answer.headers["content-disposition"]
        assert "SELECT name FROM towns" in answer.text
        assert ada.get(f"activity/export?ticket={ticket}").status_code == 403
    ticket = ada.post("activity/export-ticket", {"format": "csv"}).json()["ticket"]
    assert place.visitor().get(f"activity/export?ticket={ticket}").status_code == 403
    exported = [each for each in place.events() if each["name"] == "console.exported"]
    assert len(exported) == 2
    assert all(each["details"]["session"] and each["details"]["address"] for each in exported)


# Live


def test_a_question_and_what_becomes_of_it_are_live(place: Place, token: str) -> None:
    agent, ada = place.agent(token), place.visitor()
    stream = Stream(place.visitor())
    wait_until(lambda: stream.of("hello"), "the stream")
    query(agent)
    (card,) = wait_until(lambda: stream.of("card"), "the card")
    wait_until(lambda: stream.of("counts")[-1] == {"pending": 1}, "the count")
    ada.post(f"inbox/{card['id']}/allow", {"digest": card["digest"]})
    query(agent)
    wait_until(
        lambda: any((each["run"] or {}).get("state") == "done" for each in stream.of("card")),
        "what became of the call",
    )
    wait_until(lambda: stream.of("counts")[-1] == {"pending": 0}, "the count")
    wait_until(lambda: stream.of("line"), "the new lines of Activity")


def test_a_stream_shows_nothing_of_other_sources(place: Place, token: str) -> None:
    place.add_operator("eve", "--source", "other")
    eve, ada = Stream(place.visitor("eve")), Stream(place.visitor())
    wait_until(lambda: eve.of("hello") and ada.of("hello"), "the streams")
    query(place.agent(token))
    wait_until(lambda: ada.of("card") and ada.of("line"), "the card and its line")
    assert not eve.of("card") and eve.of("counts")[-1] == {"pending": 0}
    query(place.agent(token), "SELECT name FROM towns", "other")

    def known() -> set[int]:
        lines = place.visitor("eve").get("activity").json()["lines"]
        assert {each["source"] for each in lines} == {"other"}
        return {each["n"] for each in lines}

    wait_until(lambda: max(known()) in [each["n"] for each in eve.of("line")], "the newest line")
    assert {each["n"] for each in eve.of("line")} <= known()


def test_a_session_of_an_agent_counts_what_its_reader_may_see(place: Place, token: str) -> None:
    place.add_operator("eve", "--source", "other")
    agent = place.agent(token)
    for source in ("towns", "towns", "other"):
        query(agent, source=source)
    seen: dict[str, Any] = {}
    for name in ("ada", "eve"):
        visitor = place.visitor(name)
        sessions = visitor.get("activity/sessions").json()["sessions"]
        (seen[name],) = [each for each in sessions if each["actor_name"] == "claude"]
        story = visitor.get(f"activity/story?session={seen[name]['session']}").json()
        assert story["session"] == seen[name]
    assert seen["ada"]["calls"] > seen["eve"]["calls"]
    lines = place.visitor("eve").get(f"activity?session={seen['eve']['session']}").json()["lines"]
    assert len(lines) == seen["eve"]["calls"]
    assert seen["eve"]["started_at"] > seen["ada"]["started_at"]


def test_a_session_has_a_bounded_number_of_streams_and_downloads(place: Place) -> None:
    ada = place.visitor()
    streams = [Stream(ada) for _ in range(16)]
    for stream in streams:
        wait_until(lambda each=stream: each.of("hello"), "the stream")
    refused = ada.get("events")
    assert (refused.status_code, refused.json()["error"]) == (429, "limit.rate")
    other = Stream(place.visitor())
    wait_until(lambda: other.of("hello"), "a stream of another session")
    tickets = [
        ada.post("activity/export-ticket", {"format": "csv"}).json()["ticket"] for _ in range(9)
    ]
    first, last = (ada.get(f"activity/export?ticket={tickets[at]}") for at in (0, -1))
    assert (first.status_code, last.status_code) == (403, 200)


def test_a_stream_ends_with_its_session(place: Place) -> None:
    visitor = place.visitor()
    stream = Stream(visitor)
    wait_until(lambda: stream.of("hello"), "the stream")
    visitor.post("sign-out", {"everywhere": True})
    assert wait_until(lambda: stream.of("end"), "the end of the stream")
    wait_until(stream.ended.is_set, "the end of the response")


# Bad input


def test_bodies_that_fit_no_request_are_refused_and_change_nothing(
    place: Place, token: str
) -> None:
    visitor = place.visitor()
    query(place.agent(token))
    (card,) = visitor.get("inbox").json()["pending"]
    for body in (
        [],
        {"digest": 1},
        {"digest": card["digest"], "minutes": -1},
        {"nonsense": 1},
        "x" * 20_000,
    ):
        answer = visitor.post(f"inbox/{card['id']}/allow", body)
        assert answer.status_code == 400, body
        assert answer.json()["error"] == "argument.invalid"
    assert visitor.get(f"inbox/{card['id']}").json()["state"] == "pending"
    assert time.time() - card["asked_at"] < 600


def test_no_body_is_nested_so_deeply_that_a_route_has_a_fault(place: Place) -> None:
    visitor = place.visitor()
    deep = b'{"nothing": ' + b"[" * 2_000 + b"]" * 2_000 + b"}"
    # Who signs out is not signed in for the others.
    for method, path in sorted(served(), key=lambda each: each[1] == "sign-out"):
        if method == "POST":
            url, headers = f"/console/api/{path}", visitor.headers()
            answer = visitor.client.post(url, content=deep, headers=headers)
            assert 400 <= answer.status_code < 500, (path, answer.text)


# Putting rows back


def test_the_rows_of_an_approved_change_are_put_back_by_the_person_who_allowed_it(
    place: Place, token: str
) -> None:
    words = ["source", "update", "towns", "--undo", "keep"]
    ended = place.run(*words, "--passphrase-file", str(place.directory / "consent"))
    assert ended.status == 0, ended.err
    agent, ada = place.agent(token), place.visitor()
    query(agent)
    (card,) = ada.get("inbox").json()["pending"]
    assert card["undo"]["possible"], card["undo"]
    ada.post(f"inbox/{card['id']}/allow", {"digest": card["digest"]})
    assert ran(query(agent))
    assert place.names() == ["Köln", "Lviv"]
    card = ada.get(f"inbox/{card['id']}").json()
    change = card["run"]["change_id"]
    assert change and card["may"]["undo"]
    preview = ada.get(f"changes/{change}").json()
    assert (preview["possible"], preview["conflicts"]) == (True, 0)
    assert preview["rows"][0]["before"] == ["2", "Lemberg"]
    done = ada.post(f"changes/{change}/undo")
    assert (done.status_code, done.json().get("rows")) == (200, 1), done.text
    assert place.names() == ["Köln", "Lemberg"]
    asked = ada.get("inbox").json()["recent"][0]
    assert asked["sentence"] == "ada wants to put back 1 row of towns on towns"
    card = ada.get(f"inbox/{card['id']}").json()
    assert card["run"]["undone"] and not card["may"]["undo"]
    assert ada.post(f"changes/{change}/undo").status_code == 409
    assert place.names() == ["Köln", "Lemberg"]
    # So are those of a change that no one was asked about: Activity finds it by its call.
    words = ["source", "update", "towns", "--approval-for", "nothing"]
    ended = place.run(*words, "--passphrase-file", str(place.directory / "consent"))
    assert ended.status == 0, ended.err
    assert ran(query(agent))
    assert place.names() == ["Köln", "Lviv"]
    (line,) = ada.get("activity?q=lviv&outcome=ok&limit=1").json()["lines"]
    shown = ada.get(f"activity/lines/{line['call_id']}").json()
    assert shown["approval"] is None
    assert (shown["change"]["state"], shown["change"]["may_undo"]) == ("done", True)
    assert ada.post(f"changes/{shown['change']['id']}/undo").status_code == 200
    assert place.names() == ["Köln", "Lemberg"]
    change = ada.get(f"activity/lines/{line['call_id']}").json()["change"]
    assert (change["state"], change["may_undo"]) == ("undone", False)


def test_rows_that_have_changed_since_are_not_put_back(place: Place, token: str) -> None:
    words = ["source", "update", "towns", "--undo", "keep"]
    place.run(*words, "--passphrase-file", str(place.directory / "consent"))
    agent, ada = place.agent(token), place.visitor()
    query(agent)
    (card,) = ada.get("inbox").json()["pending"]
    ada.post(f"inbox/{card['id']}/allow", {"digest": card["digest"]})
    assert ran(query(agent))
    with closing(sqlite3.connect(place.directory / "towns.db")) as connection, connection:
        connection.execute("UPDATE towns SET name = 'Lvov' WHERE id = 2")
    change = ada.get(f"inbox/{card['id']}").json()["run"]["change_id"]
    refused = ada.post(f"changes/{change}/undo")
    assert (refused.status_code, refused.json()["error"]) == (409, "undo.conflict")
    assert place.names() == ["Köln", "Lvov"]


def test_a_viewer_and_an_approver_of_another_source_put_no_rows_back(
    place: Place, token: str
) -> None:
    words = ["source", "update", "towns", "--undo", "keep"]
    place.run(*words, "--passphrase-file", str(place.directory / "consent"))
    place.add_operator("eve", "--role", "viewer")
    place.add_operator("bob", "--source", "other")
    agent, ada = place.agent(token), place.visitor()
    query(agent)
    (card,) = ada.get("inbox").json()["pending"]
    ada.post(f"inbox/{card['id']}/allow", {"digest": card["digest"]})
    assert ran(query(agent))
    change = ada.get(f"inbox/{card['id']}").json()["run"]["change_id"]
    (line,) = ada.get("activity?q=lviv&outcome=ok").json()["lines"]
    assert ada.get(f"activity/lines/{line['n']}").json()["change"]["may_undo"]
    seen = place.visitor("eve").get(f"activity/lines/{line['n']}").json()
    assert not seen["change"]["may_undo"]
    for name, status in (("eve", 403), ("bob", 409)):
        visitor = place.visitor(name)
        assert visitor.get(f"changes/{change}").status_code == status
        assert visitor.post(f"changes/{change}/undo").status_code == status
    assert place.names() == ["Köln", "Lviv"]


def test_the_console_s_own_address_is_no_other_host_or_origin(tmp_path: Path) -> None:
    """Behind a proxy its page comes from there; no other setting repeats it."""
    origin = "https://gate.example.com:8443"
    settings = json.dumps({"console": {"enabled": True, "origin": origin}})
    with serving(
        ["serve", "--http", "127.0.0.1:0", "--config", settings], tmp_path / "state"
    ) as server:
        place = server.until("http://").split("http://")[1].split("/")[0]
        headers = {"host": "gate.example.com:8443", "content-type": "application/json"}
        for page, status in ((origin, 400), ("https://other.example.com", 403)):
            sent = {**headers, "origin": page, "sec-fetch-site": "same-origin"}
            path = f"http://{place}/console/api/sign-in"
            said = httpx.post(path, content=b"[]", headers=sent, trust_env=False)
            assert said.status_code == status, said.text
