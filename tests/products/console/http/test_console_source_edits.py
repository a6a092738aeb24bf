"""Sources in the console over HTTP: added, tried, changed, renamed, removed. By admins of all
sources alone, with what each caller may do before and after, and as the command line does it."""

from __future__ import annotations

import json
import shlex
import socket
import sqlite3
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path
from typing import Any

import httpx
import pytest

import support.postgres_server as postgres_server
from products.console.http.test_console_access import ROLES
from products.console.support.console_place import (
    PASSPHRASE,
    UPDATE,
    Place,
    opened_place,
    query,
    ran,
)
from support.audit_records import records
from support.command_line import tidegate
from support.console_visitor import Visitor
from support.eventually import wait_until
from support.free_ports import claim_port

YES = {"passphrase": PASSPHRASE}
RULE = {"column": "towns.name", "show": "hash", "except_tokens": ["auditor"]}


@pytest.fixture(scope="module")
def place(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Place]:
    """One server for the whole file: each test leaves the sources towns and other as they were."""
    directory = tmp_path_factory.mktemp("edits")
    with opened_place(directory) as found:
        for name, flags in ROLES.items():
            if name != "ada":
                found.add_operator(name, *flags)
        found.settings(
            f'console.source_folders = ["{directory}"]\n'
            f'[[sources]]\nname = "filed"\nurl = "sqlite:///{directory}/other.db"\n'
        )
        yield found


@pytest.fixture(scope="module")
def ada(place: Place) -> Visitor:
    return place.visitor()


def answer(response: httpx.Response) -> Any:
    assert response.status_code in (200, 201), response.text
    return response.json()


def refused(response: httpx.Response, status: int, code: str) -> str:
    assert (response.status_code, response.json()["error"]) == (status, code), response.text
    return str(response.json()["message"])


def shown(visitor: Visitor, name: str) -> dict[str, Any]:
    found: dict[str, Any] = next(
        each for each in answer(visitor.get("sources"))["sources"] if each["name"] == name
    )
    return found


def draft(visitor: Visitor, name: str, **more: Any) -> dict[str, Any]:
    """The body that changes a source from what was shown."""
    return {"name": name, "version": shown(visitor, name)["version"], **more}


def change(visitor: Visitor, name: str, **settings: Any) -> httpx.Response:
    body = draft(visitor, name, settings=settings)
    return visitor.post("sources/change", {**body, **YES})


def saved(place: Place, name: str) -> Any:
    ended = place.run("source", "show", name, "--json")
    return ended.json if ended.status == 0 else None


def a_file(place: Place, name: str) -> str:
    path = place.directory / f"{name}.db"
    with closing(sqlite3.connect(path)) as connection:
        connection.execute("CREATE TABLE IF NOT EXISTS towns (id INTEGER PRIMARY KEY, name TEXT)")
    return f"sqlite:///{path}"


# Who may


def test_only_an_admin_of_all_sources_sees_or_changes_them(place: Place, ada: Visitor) -> None:
    url = a_file(place, "new")
    rows: tuple[tuple[str, dict[str, Any], int], ...] = (
        ("sources/preview", {"name": "new", "url": url}, 200),
        ("sources/try", {"name": "new", "url": url, **YES}, 200),
        ("sources", {"name": "new", "url": url, **YES}, 201),
        ("sources/change", {"name": "new", "settings": {"color": "red"}, **YES}, 200),
        ("sources/new/rename", {"to": "newer", **YES}, 200),
        ("sources/newer/remove", {}, 200),
    )
    visitors = {name: place.visitor(name) for name in ("vic", "app", "oli", "sue")}
    for path, body, status in rows:
        if path.endswith(("change", "rename", "remove")):
            name = body.get("name") or path.split("/")[1]
            body = {**body, "version": shown(ada, name)["version"]}
        before = answer(ada.get("sources"))
        for visitor in visitors.values():
            assert refused(visitor.post(path, body), 403, "policy.denied"), path
        assert answer(ada.get("sources")) == before
        assert ada.post(path, body).status_code == status, path
    for visitor in visitors.values():
        refused(visitor.get("sources"), 403, "policy.denied")
    assert saved(place, "new") is None and saved(place, "newer") is None


def test_the_passphrase_is_typed_each_time_except_where_rights_are_only_taken_away(
    place: Place, ada: Visitor
) -> None:
    before = saved(place, "towns")
    url = a_file(place, "more")
    for wrong in ("", "the wrong one"):
        bodies: tuple[tuple[str, dict[str, Any]], ...] = (
            ("sources", {"name": "more", "url": url}),
            ("sources/try", {"name": "more", "url": url}),
            ("sources/change", draft(ada, "towns", settings={"access": "admin"})),
            ("sources/change", draft(ada, "towns", settings={"color": "red"})),
            ("sources/change", draft(ada, "towns", url=url)),
            ("sources/towns/rename", {"version": shown(ada, "towns")["version"], "to": "places"}),
        )
        for path, body in bodies:
            # A wrong one ends sessions after some, so that each has one of its own.
            visitor = place.visitor() if wrong else ada
            refused(visitor.post(path, {**body, "passphrase": wrong}), 403, "operator.consent")
    assert saved(place, "towns") == before and saved(place, "more") is None
    narrower = draft(ada, "towns", settings={"access": "read", "masks": [RULE]})
    assert not answer(ada.post("sources/preview", narrower))["passphrase"]
    answer(ada.post("sources/change", narrower))
    assert saved(place, "towns")["access"] == "read"
    answer(change(ada, "towns", access="write", masks=[]))
    assert saved(place, "towns") == before


# What comes of it is shown before, by the policy, and is what the gate then does


def test_the_rights_shown_before_a_change_are_those_that_the_gate_then_gives(
    place: Place, ada: Visitor
) -> None:
    consent = ("--passphrase-file", str(place.directory / "consent"))
    words = ("token", "create", "claude", "--scope", "readWrite", *consent)
    agent = place.agent(place.run(*words).out.strip())
    caller = "token:" + next(
        each["id"] for each in ada.get("access").json()["tokens"] if each["name"] == "claude"
    )

    def row(matrix: dict[str, Any]) -> dict[str, Any]:
        found = (each for each in matrix["rows"] if each["caller"]["id"] == caller)
        return dict(next(found))

    def in_matrix() -> Any:
        page = answer(ada.get("access/matrix?source=towns"))
        return next(each["cells"] for each in page["rows"] if each["caller"]["id"] == caller)

    changes: tuple[dict[str, Any], ...] = (
        {"access": "read"},
        {"agents": "deny"},
        {"agents": "allow", "access": "write", "approval_for": "nothing", "masks": [RULE]},
        {"filters": [{"table": "towns", "where": "id = 1"}], "masks": []},
        {"approval_for": "writes", "filters": []},
    )
    reads, writes = "SELECT name FROM towns ORDER BY id", UPDATE
    for settings in changes:
        preview = answer(ada.post("sources/preview", draft(ada, "towns", settings=settings)))
        seen = row(preview["matrix"])
        assert seen["before"]["cells"] == in_matrix()
        answer(change(ada, "towns", **settings))
        assert seen["after"]["cells"] == in_matrix()
        kinds = [each["kind"] for each in seen["after"]["cells"]]
        names = [each["name"] for each in preview["matrix"]["verbs"]]
        allowed = dict(zip(names, kinds, strict=True))
        for verb, text in (("read", reads), ("change", writes)):
            if allowed[verb] != "masked":  # then it hangs on what the statement is about
                assert ran(query(agent, text)) == (allowed[verb] == "allow"), (settings, verb)
        if seen["after"]["hidden"]:
            assert "Köln" not in json.dumps(query(agent, reads).response) or "filters" in settings
    assert row(preview["matrix"])["before"]["hidden"] == ["towns where id = 1"]


# The same as the command line


def of_source(place_state: Path, name: str) -> tuple[Any, list[Any]]:
    """A source as it is saved, and what is on record of it, without what names the one who did."""
    entry = tidegate("source", "show", name, "--json", state=place_state).json
    return entry, noted_of(place_state, name)


def noted_of(place_state: Path, name: str) -> list[Any]:
    by = {"via", "session", "address"}
    return [
        (each["name"], {k: v for k, v in each["details"].items() if k not in by})
        for each in records(place_state)
        if each.get("phase") == "event" and each.get("details", {}).get("source") == name
        if each["name"] != "source.tried"
    ]


def test_a_page_and_the_command_that_it_shows_save_the_same_and_record_the_same(
    place: Place, ada: Visitor, tmp_path: Path
) -> None:
    other = tmp_path / "state"
    url = a_file(place, "twin")
    first = {
        "approval_for": "writes", "access": "write", "masks": [RULE, {"column": "towns.id"}],
        "filters": [{"table": "towns", "where": "name <> \'x: y\'"}], "tags": ["eu", "live one"],
        "options": {"timeout": "7"}, "max_rows_changed": 9, "color": "red", "group": "live",
    }  # fmt: skip
    second = {
        "masks": [], "filters": [{"table": "towns", "where": "id > 1", "tokens": ["a"]}],
        "options": {}, "max_rows_changed": None, "tags": ["eu"], "access": "read", "group": "",
    }  # fmt: skip
    steps = ({"url": url, "settings": first}, {"settings": second})
    for number, step in enumerate(steps):
        body = {"name": "twin", **step}
        if number:
            body["version"] = shown(ada, "twin")["version"]
        command = answer(ada.post("sources/preview", body))["command"]
        answer(ada.post("sources/change" if number else "sources", {**body, **YES}))
        words = shlex.split(command)
        assert words[:2] == ["tidegate", "source"]
        ended = tidegate(*words[1:], state=other)
        assert ended.status == 0, ended.err
        assert of_source(place.state, "twin") == of_source(other, "twin")
    version = shown(ada, "twin")["version"]
    answer(ada.post("sources/twin/remove", {"version": version}))
    assert tidegate("source", "remove", "twin", state=other).status == 0
    assert saved(place, "twin") is None
    assert noted_of(place.state, "twin") == noted_of(other, "twin")


def test_a_password_is_kept_as_a_command_keeps_it_and_seen_nowhere_else(place: Place) -> None:
    place.add_operator("pat", "--role", "admin")
    ada = place.visitor("pat")
    server, secret = postgres_server.shared("wheel"), postgres_server.PASSWORD
    base = f"postgresql://postgres@127.0.0.1:{server.port}"
    url = f"{base}/{server.new_database()}"
    said: list[str] = []

    def post(path: str, body: dict[str, Any]) -> httpx.Response:
        response = ada.post(path, body)
        said.append(response.text)
        return response

    body = {"name": "pg", "url": url, "with_password": True}
    preview = answer(post("sources/preview", body))
    assert preview["command"] == f"tidegate source add pg {url} --ask-password"
    del body["with_password"]
    message = refused(post("sources", {**body, **YES}), 503, "source.unreachable")
    assert "password" in message.lower()
    wrong = {**body, **YES, "password": f"{secret}-and-more"}
    refused(post("sources", wrong), 503, "source.unreachable")
    typed = f"postgresql://postgres:{secret}@127.0.0.1:{server.port}/x"
    refused(post("sources", {**body, **YES, "url": typed}), 400, "source.url")
    tried = answer(post("sources/try", {**body, **YES, "password": secret}))
    assert tried["report"]["tables"] == 0 and tried["message"] == ""
    assert saved(place, "pg") is None and not list(place.state.glob("passwords/pg.*"))
    answer(post("sources", {**body, **YES, "password": secret}))
    (kept,) = place.state.glob("passwords/pg.*")
    assert (kept.read_text(), kept.stat().st_mode & 0o777) == (secret, 0o600)
    entry = shown(ada, "pg")
    assert (entry["url"], entry["password"]) == (url, "file")
    # Another database of the same user keeps it; another user, and another server, do not get it.
    answer(post("sources/change", {**draft(ada, "pg", url=f"{base}/postgres"), **YES}))
    assert place.run("query", "pg", "SELECT 1").status == 0
    for elsewhere in (url.replace("postgres@", "ann@"), url.replace("127.0.0.1", "localhost")):
        changed = post("sources/change", {**draft(ada, "pg", url=elsewhere), **YES})
        refused(changed, 503, "source.unreachable")
    for typed in (f"{base.replace('postgres@', 'postgres:${FILE:/etc/passwd}@')}/postgres",
                  f"{base}/postgres?passfile=/etc/passwd"):  # fmt: skip
        refused(
            post("sources/change", {**draft(ada, "pg", url=typed), **YES}), 403, "policy.denied"
        )
    answer(post("sources/change", {**draft(ada, "pg"), **YES, "password": secret}))
    (other,) = place.state.glob("passwords/pg.*")
    assert other != kept
    answer(post("sources/pg/remove", {"version": shown(ada, "pg")["version"]}))
    assert not list(place.state.glob("passwords/pg.*"))
    everything = [*said, json.dumps(records(place.state))]
    files = [each for each in place.state.rglob("*") if each.is_file()]
    assert not any(secret in each for each in everything)
    assert not any(secret.encode() in each.read_bytes() for each in files)


# What a page may not open


@pytest.mark.parametrize(
    ("url", "said"),
    [
        ("sqlite:////etc/passwd", "no directory"),
        ("files:///etc", "no directory"),
        ("sqlite://", "no file"),
        ("postgresql://me@169.254.169.254/x", "address"),
        ("postgresql://me@[::ffff:169.254.169.254]/x", "address"),
        ("postgresql://me@2852039166/x", "address"),
        ("postgresql://me@[fe80::1]/x", "address"),
        ("postgresql://me@0.0.0.0/x", "address"),
        ("postgresql://me@db/x?host=/run", "host"),
        ("postgresql://me@db/x?hostaddr=169.254.169.254", "hostaddr"),
        ("postgresql://me@db/x?sslkey=/etc/key", "sslkey"),
        ("postgresql://me@db/x?ssh=bastion", "ssh"),
        ("postgresql://me@one,two/x", "host"),
        ("postgresql://me:${ENV:HOME}@db/x", "secret"),
        ("jdbc:h2:mem:x", "command line"),
        ("cloud:///etc", "command line"),
    ],
)
def test_a_page_opens_no_file_and_no_address_that_is_no_databases(
    ada: Visitor, url: str, said: str
) -> None:
    body = {"name": "bad", "url": url, **YES, "anyway": True}
    assert said in refused(ada.post("sources", body), 403, "policy.denied")
    del body["anyway"]
    assert said in refused(ada.post("sources/try", body), 403, "policy.denied")


def test_a_link_out_of_the_listed_folder_is_not_followed(place: Place, ada: Visitor) -> None:
    outside = place.directory.parent / "outside.db"
    a_file(Place(place.directory.parent, *place[1:]), "outside")
    link = place.directory / "link.db"
    link.symlink_to(outside)
    body = {"name": "bad", "url": f"sqlite:///{link}", **YES}
    refused(ada.post("sources", body), 403, "policy.denied")


def test_a_closed_port_and_one_where_another_program_answers_are_told_alike_and_on_record(
    place: Place,
) -> None:
    place.add_operator("eve", "--role", "admin")
    eve = place.visitor("eve")
    said: set[str] = set()
    with socket.create_server(("127.0.0.1", 0)) as listening:
        listening.settimeout(30)
        ports = (claim_port(), listening.getsockname()[1])
        for port in ports:
            url = f"mysql://me@127.0.0.1:{port}/x?connect_timeout=1"
            tried = answer(eve.post("sources/try", {"name": "scan", "url": url, **YES}))
            assert tried["report"] is None and tried["may_pass"]
            said.add(tried["message"].replace(str(port), "PORT") + tried["hint"])
    assert len(said) == 1, said
    tries = [each for each in place.events() if each["name"] == "source.tried"]
    noted = [each["details"]["place"] for each in tries if each["actor_name"] == "eve"]
    assert noted == [f"127.0.0.1:{port}" for port in ports]
    codes = []
    while len(codes) < 20 and "limit.rate" not in codes:
        body = draft(eve, "towns")
        codes.append(eve.post("sources/try", body).json().get("error", ""))
    assert codes[-1] == "limit.rate" and len(codes) == 9


# What others do meanwhile


def test_a_change_of_what_somebody_else_changed_meanwhile_is_refused(
    place: Place, ada: Visitor
) -> None:
    stale = draft(ada, "towns", settings={"undo": "keep"})
    assert place.run("source", "update", "towns", "--group", "live").status == 0
    for path in ("sources/preview", "sources/change"):
        body = stale if path.endswith("preview") else {**stale, **YES}
        assert "meanwhile" in refused(ada.post(path, body), 409, "access.changed")
    gone = {"version": stale["version"]}
    refused(ada.post("sources/towns/remove", gone), 409, "access.changed")
    refused(ada.post("sources/towns/rename", {**gone, "to": "x", **YES}), 409, "access.changed")
    assert (saved(place, "towns")["group"], saved(place, "towns")["undo"]) == ("live", "off")
    answer(change(ada, "towns", group=""))


def test_a_source_of_the_settings_file_gets_the_lines_to_change_there(
    place: Place, ada: Visitor
) -> None:
    entry = shown(ada, "filed")
    assert entry["from"] == "settings"
    settings = {"access": "write", "masks": [RULE]}
    body = {"name": "filed", "version": entry["version"], "settings": settings}
    preview = answer(ada.post("sources/preview", body))
    assert preview["command"] == "" and not preview["passphrase"]
    assert preview["matrix"]["changed"] > 0
    lines = [each[1:] for each in preview["patch"].splitlines() if each[:1] in " +"]
    refused(ada.post("sources/change", {**body, **YES}), 400, "argument.invalid")
    refused(
        ada.post("sources/filed/remove", {"version": entry["version"]}), 400, "argument.invalid"
    )
    file = place.directory / "settings.toml"
    text = file.read_text()
    head, _, _ = text.partition("[[sources]]")
    url = f'url = "{entry["url"]}"'
    try:
        file.write_text(head + "\n".join([*lines, url]) + "\n")
        wait_until(lambda: shown(ada, "filed")["settings"]["access"] == "write", "the new settings")
        (mask,) = shown(ada, "filed")["settings"]["masks"]
        assert mask["except_tokens"] == ["auditor"]
    finally:
        file.write_text(text)
        wait_until(lambda: shown(ada, "filed")["settings"]["access"] == "read", "the old settings")


def test_a_new_url_closes_the_connections_of_the_old_one_at_once(
    place: Place, ada: Visitor
) -> None:
    with closing(sqlite3.connect(place.directory / "moved.db")) as connection:
        connection.execute("CREATE TABLE towns (id INTEGER PRIMARY KEY, name TEXT)")
        connection.execute("INSERT INTO towns VALUES (1, 'Elsewhere')")
        connection.commit()
    consent = ("--passphrase-file", str(place.directory / "consent"))
    agent = place.agent(
        place.run("token", "create", "mover", "--scope", "readOnly", *consent).out.strip()
    )
    text = "SELECT name FROM towns ORDER BY id"
    assert "Lemberg" in json.dumps(query(agent, text, "other").response)
    old = shown(ada, "other")["url"]
    url = f"sqlite:///{place.directory / 'moved.db'}"
    answer(ada.post("sources/change", {**draft(ada, "other", url=url), **YES}))
    assert "Elsewhere" in json.dumps(query(agent, text, "other").response)
    files = [
        each.resolve()
        for each in Path(f"/proc/{place.server.process.pid}/fd").iterdir()
        if each.is_symlink()
    ]
    assert place.directory / "other.db" not in files
    answer(ada.post("sources/change", {**draft(ada, "other", url=old), **YES}))


def test_a_renamed_source_is_followed_by_the_lists_of_tokens_as_it_was_shown(
    place: Place, ada: Visitor
) -> None:
    consent = ("--passphrase-file", str(place.directory / "consent"))
    words = ("token", "create", "only", "--source", "towns", "--table", "towns:towns")
    made = place.run(*words, "--scope", "readOnly", *consent)
    assert made.status == 0, made.err
    version = shown(ada, "towns")["version"]
    body = {"version": version, "to": "places"}
    preview = answer(ada.post("sources/towns/rename", {**body, "shows": True}))
    assert preview["command"] == "tidegate source rename towns places"
    rows = {each["caller"]["name"]: each for each in preview["matrix"]["rows"]}
    assert not rows["only"]["changed"] and rows["sue"]["changed"]
    done = answer(ada.post("sources/towns/rename", {**body, **YES}))
    assert (done["name"], done["holders"]) == ("places", ["only"])
    page = answer(ada.get("access/matrix?source=places"))
    for each in page["rows"]:
        assert each["cells"] == rows[each["caller"]["name"]]["after"]["cells"], each
    back = {"version": shown(ada, "places")["version"], "to": "towns", **YES}
    answer(ada.post("sources/places/rename", back))
