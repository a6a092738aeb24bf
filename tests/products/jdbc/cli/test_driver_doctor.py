"""`tidegate driver doctor`: what a JDBC source needs, checked up to the first fault."""

from __future__ import annotations

import os
from pathlib import Path
from socketserver import BaseRequestHandler
from typing import Any

from support import jdbc_drivers, postgres_server
from support.command_line import Ended, tidegate
from support.free_ports import claim_port
from support.thread_server import thread_server


def doctor(tmp_path: Path, url: str, *words: str, product: str = "h2", **options: str) -> Ended:
    given = {"driver_path": jdbc_drivers.driver_path(product), **options}
    pairs = [word for pair in given.items() for word in ("--option", "=".join(pair))]
    return tidegate("driver", "doctor", url, *pairs, *words, state=tmp_path / "state")


def checks(ended: Ended) -> list[tuple[str, str]]:
    """(state, check) of each line."""
    return [(each["state"], each["check"]) for each in ended.json["checks"]]


def last(ended: Ended) -> dict[str, Any]:
    found: dict[str, Any] = ended.json["checks"][-1]
    return found


def test_a_source_that_works_has_no_fault(tmp_path: Path) -> None:
    url = jdbc_drivers.new_database("h2", tmp_path, ('CREATE TABLE "items" ("id" INT)',))
    ended = doctor(tmp_path, url, "--json")
    assert ended.status == 0, ended.out + ended.err
    names = [name for _, name in checks(ended)]
    assert names == ["url", "java", "driver", "modules", "login", "fences"]
    assert "org.h2.Driver" in ended.json["checks"][2]["text"]
    shown = doctor(tmp_path, url)
    assert shown.status == 0 and shown.out.startswith("ok     url ")
    assert shown.err.startswith("no fault")


def test_a_saved_source_is_checked_by_its_name(tmp_path: Path) -> None:
    url = jdbc_drivers.new_database("h2", tmp_path, ('CREATE TABLE "items" ("id" INT)',))
    state = tmp_path / "state"
    path = f"driver_path={jdbc_drivers.driver_path('h2')}"
    added = tidegate("source", "add", "hr", url, "--option", path, state=state)
    assert added.status == 0, added.err
    assert tidegate("driver", "doctor", "hr", state=state).status == 0
    unknown = tidegate("driver", "doctor", "hx", state=state)
    assert unknown.status == 66 and "hr" in unknown.err


def test_the_first_fault_ends_the_checks_and_says_what_to_do(tmp_path: Path) -> None:
    ended = doctor(tmp_path, "jdbc:h2:./x;INIT=RUNSCRIPT", "--json")
    assert ended.status == 1 and checks(ended) == [("fault", "url")]
    assert "INIT" in last(ended)["text"] and last(ended)["to_do"]

    ended = doctor(tmp_path, "jdbc:h2:./x", "--json", java=str(tmp_path))
    assert checks(ended)[-1] == ("fault", "java") and "does not start" in last(ended)["text"]

    ended = doctor(tmp_path, "jdbc:h2:./x", "--json", driver_path=str(tmp_path / "no.jar"))
    assert checks(ended)[-1] == ("fault", "driver")
    assert "Correct the source's option `driver_path`" in last(ended)["to_do"]

    ended = doctor(tmp_path, "jdbc:h2:./x", "--json", driver="org.h2.Drivers")
    assert checks(ended)[-1] == ("fault", "driver")
    assert "no class org.h2.Drivers" in last(ended)["text"]

    ended = doctor(tmp_path, "jdbc:h2:./x", "--json")
    assert checks(ended)[-1] == ("fault", "login")
    assert "There is no database at" in last(ended)["text"]
    assert not list(Path.cwd().glob("x*.db"))


def test_a_driver_that_is_missing_says_how_to_fetch_it(tmp_path: Path) -> None:
    jdbc_drivers.driver_path("h2")
    ended = tidegate("driver", "doctor", "jdbc:h2:./x", "--json", state=tmp_path / "state")
    assert checks(ended)[-1] == ("fault", "driver")
    assert "tidegate driver fetch h2" in last(ended)["to_do"]


def postgres(tmp_path: Path, host: str, port: int, more: str = "", **options: str) -> Ended:
    url = f"jdbc:postgresql://{host}:{port}/postgres{more}"
    return doctor(tmp_path, url, "--json", "--timeout", "60", product="postgresql", **options)


def test_dns_and_tcp_are_told_apart(tmp_path: Path) -> None:
    ended = postgres(tmp_path, "no-such-host.invalid", 5432)
    assert checks(ended)[-1] == ("fault", "dns")
    assert last(ended)["text"] == "the name no-such-host.invalid has no address"
    ended = postgres(tmp_path, "127.0.0.1", claim_port())
    assert checks(ended)[-1] == ("fault", "tcp") and "refused" in last(ended)["text"]


def test_a_host_is_looked_up_where_no_port_is_known(tmp_path: Path) -> None:
    ended = doctor(tmp_path, "jdbc:h2:tcp://no-such-host.invalid/x", "--json")
    assert checks(ended)[-1] == ("fault", "dns")


class Stranger(BaseRequestHandler):
    """What is no database: it answers each connection with a line."""

    def handle(self) -> None:
        self.request.sendall(b"HTTP/1.1 400 Bad Request\r\n\r\n")


def test_another_server_at_the_port_is_found(tmp_path: Path) -> None:
    with thread_server(Stranger) as port:
        ended = postgres(tmp_path, "127.0.0.1", port)
    assert checks(ended)[-1] == ("fault", "tls")
    assert "does not speak the protocol of PostgreSQL" in last(ended)["text"]


def test_a_login_and_encryption_that_are_missing_are_told_apart(tmp_path: Path) -> None:
    server = postgres_server.shared("wheel")
    password = tmp_path / "password"
    password.write_text("wrong-words")
    os.chmod(password, 0o600)
    given = {"user": "postgres", "password": f"${{FILE:{password}}}"}
    ended = postgres(tmp_path, "127.0.0.1", server.port, **given)
    assert checks(ended)[-1] == ("fault", "login")
    assert last(ended)["to_do"] == "Correct the options `user` and `password`"
    assert "wrong-words" not in ended.out + ended.err
    password.write_text(postgres_server.PASSWORD)
    ended = postgres(tmp_path, "127.0.0.1", server.port, **given)
    assert ended.status == 0 and checks(ended)[-1] == ("ok", "fences"), ended.out
    assert ("note", "tls") in checks(ended)
    ended = postgres(tmp_path, "127.0.0.1", server.port, "?sslmode=require", **given)
    assert checks(ended)[-1] == ("fault", "tls")
    assert "the server has none" in last(ended)["text"]
