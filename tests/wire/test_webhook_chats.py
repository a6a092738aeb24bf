"""A channel of Slack or Teams, as stand-ins, from end to end: an agent asks over HTTP, the channel
gets a sentence and a link, and the secret URL is nowhere that a person or an agent reads."""

from __future__ import annotations

import json
import sqlite3
from collections.abc import Generator
from contextlib import closing, contextmanager
from pathlib import Path
from typing import Any

import pytest

from support.audit_records import records
from support.chat_standins import CHATS, SECRET_PARTS, Chat, SlackStandIn, TeamsStandIn, say
from support.command_line import tidegate
from support.eventually import wait_until
from support.webhook_receiver import Answer, running
from wire.test_webhook import Place

each_chat = pytest.mark.parametrize("kind", CHATS, ids=lambda kind: kind.FORMAT)


@contextmanager
def place_with(kind: type[Chat], folder: Path, *answers: Answer) -> Generator[Place]:
    with closing(sqlite3.connect(folder / "towns.db")) as connection, connection:
        connection.execute("CREATE TABLE towns (id INTEGER PRIMARY KEY, name TEXT)")
        connection.execute("INSERT INTO towns VALUES (1, 'Köln'), (2, 'Lemberg')")
    with running(kind, folder / "chat", *answers) as chat:
        place = Place(folder, chat)
        place.write()
        yield place


def chat_of(place: Place) -> Chat:
    assert isinstance(place.receiver, Chat)
    return place.receiver


@each_chat
def test_a_call_that_waits_and_its_answer_reach_the_channel(
    kind: type[Chat], tmp_path: Path
) -> None:
    with place_with(kind, tmp_path) as place, place.serving():
        assert place.ask().result["isError"]
        asked = chat_of(place).next_seen()
        assert "wants to change 1 row of towns on towns" in asked.text and "Lviv" not in asked.text
        ((link, words),) = asked.links
        (waiting,) = place.run("approvals", "list", "--json").json["approvals"]
        assert link == f"http://127.0.0.1:{place.port}/console#/inbox/{waiting['id']}"
        assert words == "Open the Inbox"
        assert place.run("approvals", "deny", waiting["id"]).status == 0
        assert chat_of(place).next_seen().text.startswith("Denied: ")


@each_chat
def test_the_url_is_in_no_log_record_list_or_reply(kind: type[Chat], tmp_path: Path) -> None:
    with place_with(kind, tmp_path, say(404, "no_service")) as place:
        with place.serving():
            told = json.dumps(place.ask().response)
            chat_of(place).next_seen()
            place.await_event("webhook.failed")
            commands = Path(f"/proc/{place.server.process.pid}/cmdline").read_bytes()
            shown: list[Any] = [
                told,
                commands.decode(),
                tidegate("status", "--json", state=place.state).out,
                tidegate("status", state=place.state).out,
                json.dumps(records(place.state)),
                place.run("webhook", "test"),
                place.run("webhook", "test", "--json"),
                place.run("doctor"),
                place.run("doctor", "--json"),
                place.run("config", "check"),
            ]
        shown.append(place.server.ended().err)
        shown += [
            file.read_bytes() for file in place.state.rglob("*") if file.is_file()
        ]  # whatever the server keeps
    for text in shown:
        assert not any(part in str(text) for part in SECRET_PARTS), text


@pytest.mark.parametrize(
    ("kind", "answer", "said"),
    [
        (SlackStandIn, say(404, "no_service"), "HTTP status 404 and `no_service`"),
        (SlackStandIn, say(400, "invalid_blocks"), "`invalid_blocks`"),
        (TeamsStandIn, say(401, ""), "HTTP status 401"),
    ],
)
def test_a_refusal_is_seen_where_failures_of_the_webhook_are(
    kind: type[Chat], answer: Answer, said: str, tmp_path: Path
) -> None:
    with place_with(kind, tmp_path, answer) as place, place.serving():
        place.ask()
        place.await_event("webhook.failed")
        assert said in json.dumps(place.events("webhook.failed"))
        wait_until(
            lambda: said in tidegate("status", state=place.state).out, "the status has the reason"
        )
        ended = place.run("webhook", "test")
        assert ended.status == 75 and said in ended.err
        assert "`approvals.webhook" in ended.err


@each_chat
def test_the_test_command_sends_in_the_format_and_doctor_finds_the_url(
    kind: type[Chat], tmp_path: Path
) -> None:
    with place_with(kind, tmp_path) as place:
        ended = place.run("webhook", "test", "--json")
        assert ended.status == 0, ended.err
        assert "This is a test" in chat_of(place).next_seen().text
        assert ended.json["origin"] == f"https://127.0.0.1:{place.receiver.port}"
        assert "it has its URL at https://127.0.0.1" in place.run("doctor").out
        chat_of(place).url_file.write_text("http://hooks.example/s3cr3t")
        ended = place.run("doctor")
        assert ended.status == 1 and "`approvals.webhook.url`" in ended.out
        assert "s3cr3t" not in ended.out
        chat_of(place).url_file.unlink()
        assert "cannot be read" in place.run("doctor").out
        assert place.run("webhook", "test").status == 78


@each_chat
def test_a_change_of_the_format_holds_for_messages_that_wait(
    kind: type[Chat], tmp_path: Path
) -> None:
    with place_with(kind, tmp_path, say(503, "")) as place, place.serving():
        place.ask()
        chat_of(place).next_seen()
        place.await_event("webhook.failed")
        other = TeamsStandIn if kind is SlackStandIn else SlackStandIn
        with running(other, tmp_path / "other") as chat:
            place.receiver = chat
            place.write()
            place.ask()  # a call has the settings read again
            assert "wants to change 1 row" in chat.next_seen().text


@pytest.mark.parametrize("url", [f"https://hooks.example{SlackStandIn.CHANNEL}", "${KEYRING:x}"])
def test_a_url_that_is_written_out_is_refused_and_not_repeated(tmp_path: Path, url: str) -> None:
    with place_with(SlackStandIn, tmp_path) as place:
        place.write(url=url)
        for words in (["webhook", "test"], ["config", "check"], ["doctor"]):
            ended = place.run(*words)
            assert ended.status and "`approvals.webhook.url`" in ended.err + ended.out, ended
            assert not any(part in ended.err + ended.out for part in SECRET_PARTS)
