"""The webhook from end to end: an agent asks over HTTP, a server of HTTPS gets a message, and
nothing that an agent can set leads the messages elsewhere."""

from __future__ import annotations

import json
import os
import sqlite3
from collections.abc import Callable, Generator
from contextlib import closing, contextmanager
from pathlib import Path
from typing import Any

import pytest

from support.audit_records import records
from support.command_line import STARTED, Ended, Serving, serving, tidegate
from support.console_visitor import Visitor
from support.eventually import wait_until
from support.webhook_receiver import PATH, SECRET, Answer, Receiver, receiving, status
from wire.wires import MODERN, HttpPeer, Outcome

PASSPHRASE = "correct horse 1"
UPDATE = "UPDATE towns SET name = 'Lviv-4111-1111' WHERE id = 2"


class Place:
    """A server with a webhook and a console before one database."""

    def __init__(self, folder: Path, receiver: Receiver) -> None:
        self.folder = folder
        self.receiver = receiver
        self.state = folder / "state"
        self.settings = folder / "tidegate.json"
        self.server: Serving
        self.port = 0
        self.consent = folder / "passphrase"
        self.consent.write_text(PASSPHRASE + "\n")
        words = ["passphrase", "set", "--new-passphrase-file", str(self.consent)]
        assert tidegate(*words, state=self.state).status == 0

    @property
    def agreed(self) -> list[str]:
        """What says that the operator agrees."""
        return ["--passphrase-file", str(self.consent)]

    def write(self, **changes: Any) -> None:
        settings = {
            "sources": [
                {
                    "name": "towns",
                    "url": f"sqlite:///{self.folder}/towns.db",
                    "access": "write",
                    "approval_for": "writes",
                }
            ],
            "approvals": {"webhook": self.receiver.settings(**changes)},
            "console": {"enabled": True},
        }
        self.settings.write_text(json.dumps(settings))
        self.settings.chmod(0o600)

    def run(self, *words: str) -> Ended:
        return tidegate(*words, "--config", str(self.settings), state=self.state)

    def ask(self) -> Outcome:
        words = ["token", "create", os.urandom(3).hex(), "--scope", "fullAccess", *self.agreed]
        made = tidegate(*words, state=self.state)
        peer = HttpPeer(self.port, MODERN, capabilities={})
        peer.token = made.out.strip()
        return peer.call("query", {"sql": UPDATE, "source": "towns"})

    def events(self, name: str) -> list[dict[str, Any]]:
        return [each for each in records(self.state) if each.get("name") == name]

    def await_event(self, name: str) -> None:
        wait_until(lambda: self.events(name), f"{name} is on record")

    @contextmanager
    def serving(self) -> Generator[None]:
        words = ["serve", "--http", "127.0.0.1:0", "--config", str(self.settings)]
        with serving(words, self.state, program=STARTED) as self.server:
            line = self.server.until("the console is at")
            self.port = int(line.rpartition("/console")[0].rpartition(":")[2])
            yield


Make = Callable[..., Any]


@pytest.fixture
def make(tmp_path: Path) -> Callable[..., Any]:
    @contextmanager
    def make(*answers: Answer) -> Generator[Place]:
        with closing(sqlite3.connect(tmp_path / "towns.db")) as connection, connection:
            connection.execute("CREATE TABLE towns (id INTEGER PRIMARY KEY, name TEXT)")
            connection.execute("INSERT INTO towns VALUES (1, 'Köln'), (2, 'Lemberg')")
        with receiving(tmp_path / "hooks", *answers) as receiver:
            place = Place(tmp_path, receiver)
            place.write()
            yield place

    return make


def test_a_call_that_waits_and_its_answer_reach_the_receiver(make: Make) -> None:
    with make() as place, place.serving():
        assert place.ask().result["isError"]
        asked = place.receiver.next()
        assert asked.is_signed and asked.json["type"] == "approval.asked"
        assert "wants to change 1 row of towns on towns" in asked.data["sentence"]
        assert asked.data["link"].endswith(f"/console#/inbox/{asked.data['id']}")
        assert asked.body.count(b"http") == 1 and b"Lviv" not in asked.body
        assert place.run("approvals", "deny", asked.data["id"]).status == 0
        decided = place.receiver.next()
        assert decided.is_signed and decided.json["type"] == "approval.decided"
        assert (decided.data["id"], decided.data["state"]) == (asked.data["id"], "denied")


def test_a_receiver_that_fails_delays_no_call_and_is_seen_everywhere(make: Make) -> None:
    with make(status(500)) as place, place.serving():
        assert place.ask().result["isError"]
        place.receiver.next()
        place.await_event("webhook.failed")
        shown = tidegate("status", "--json", state=place.state).json
        assert shown["webhook"]["state"] == "failing" and shown["webhook"]["waiting"] == 1
        assert "HTTP status 500" in tidegate("status", state=place.state).out
        words = ["--new-passphrase-file", str(place.consent), *place.agreed]
        added = tidegate("operator", "add", "ada", *words, state=place.state)
        assert added.status == 0, added.err
        visitor = Visitor(f"http://127.0.0.1:{place.port}")
        with visitor.client:
            visitor.sign_in(name="ada", passphrase=PASSPHRASE)
            inbox = visitor.get("inbox").json()
        assert inbox["webhook"]["state"] == "failing"
        assert len(inbox["pending"]) == 1


def test_the_secret_and_the_path_are_in_no_log_record_list_or_reply(make: Make) -> None:
    with make(status(500)) as place:
        with place.serving():
            place.ask()
            place.receiver.next()
            place.await_event("webhook.failed")
            commands = Path(f"/proc/{place.server.process.pid}/cmdline").read_bytes()
            shown = [
                commands.decode(),
                tidegate("status", "--json", state=place.state).out,
                json.dumps(records(place.state)),
                repr(place.run("webhook", "test")),
                repr(place.run("doctor")),
            ]
        shown.append(place.server.ended().err)
    for text in shown:
        assert SECRET not in text and SECRET.removeprefix("whsec_") not in text
        assert PATH not in text


def test_messages_that_were_not_sent_are_sent_after_a_restart(make: Make) -> None:
    with make(status(503), status(204)) as place:
        with place.serving():
            place.ask()
            first = place.receiver.next()
            place.await_event("webhook.failed")
        with place.serving():
            second = place.receiver.next()
    assert (second.id, second.body) == (first.id, first.body) and second.is_signed


def test_a_change_of_the_settings_file_leads_messages_elsewhere_without_a_restart(
    make: Make, tmp_path: Path
) -> None:
    with make(status(410)) as place, place.serving():
        place.ask()
        place.receiver.next()
        place.await_event("webhook.stopped")
        with receiving(tmp_path / "other") as other:
            place.receiver = other
            place.write()
            place.ask()
            got = other.next()
        assert got.is_signed and got.json["type"] == "approval.asked"


# The command


def test_the_test_command_says_what_came_back(make: Make) -> None:
    with make() as place:
        ended = place.run("webhook", "test", "--json")
        assert ended.status == 0, ended.err
        got = place.receiver.next()
        assert got.is_signed and got.json["type"] == "webhook.test"
        assert ended.json["status"] == 204 and ended.json["id"] == got.id
        assert ended.json["address"] == "127.0.0.1"
        assert "took msg_" in place.run("webhook", "test").out
        assert len(place.events("webhook.tested")) == 2


@pytest.mark.parametrize(
    ("answer", "reason"), [(status(500), "HTTP status 500"), (status(302), "redirect")]
)
def test_the_test_command_fails_if_the_message_was_not_taken(
    make: Make, answer: Answer, reason: str
) -> None:
    with make(answer) as place:
        ended = place.run("webhook", "test")
        assert ended.status == 75 and reason in ended.err and PATH not in ended.err


def test_the_test_command_refuses_an_address_that_is_not_listed(make: Make) -> None:
    with make() as place:
        place.write(addresses=[])
        ended = place.run("webhook", "test")
        assert ended.status == 75 and "approvals.webhook.addresses" in ended.err
        assert place.receiver.is_quiet


def test_doctor_says_whether_messages_can_be_signed(make: Make) -> None:
    with make() as place:
        assert "webhook" in place.run("doctor").out
        place.receiver.secret_file.write_text("no secret\n")
        ended = place.run("doctor")
        assert ended.status == 1 and "approvals.webhook.secret" in ended.out
        assert place.receiver.is_quiet


# What an agent can set


def test_inline_settings_and_the_environment_set_no_webhook(make: Make, tmp_path: Path) -> None:
    with make() as place:
        inline = json.dumps({"approvals": {"webhook": place.receiver.settings()}})
        for words in (["webhook", "test"], ["config", "check"], ["approvals", "list"]):
            ended = tidegate(*words, "--config", inline, state=place.state)
            assert ended.status == 78 and "inline settings" in ended.err
        assert place.receiver.is_quiet


@pytest.mark.parametrize(
    ("changes", "said"),
    [
        ({"url": "http://hooks.example/x"}, "not an https URL"),
        ({"url": "https://user:pw@hooks.example/x"}, "not an https URL"),
        ({"url": "https://hooks.example/x#y"}, "not an https URL"),
        ({"url": "https://${ENV:HOST}/x"}, "not an https URL"),
        ({"url": "https://hooks.example/ x"}, "not an https URL"),
        ({"secret": SECRET}, "not a reference"),
        ({"secret": ""}, "not a reference"),
        ({"events": []}, "is empty"),
        ({"addresses": ["0.0.0.0/0"]}, "every address"),
        ({"addresses": ["::/0"]}, "every address"),
        ({"addresses": ["hooks.example"]}, "neither an address nor a network"),
        ({"digest_minutes": 1_441}, "digest_minutes"),
    ],
)
def test_settings_that_lead_astray_are_refused_and_not_repeated(
    make: Make, changes: dict[str, Any], said: str
) -> None:
    with make() as place:
        place.write(**changes)
        ended = place.run("webhook", "test")
        assert ended.status == 78 and said in ended.err, ended.err
        assert SECRET not in ended.err and "user:pw" not in ended.err
        assert place.receiver.is_quiet
