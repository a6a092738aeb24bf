"""What a channel of Slack or Teams gets, and what comes of its answers. Both are stand-ins that
take the published form alone."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import msgspec
import pytest

from support.chat_standins import (
    CHATS,
    SECRET_PARTS,
    Chat,
    SlackStandIn,
    TeamsStandIn,
    WrongForm,
    read_slack,
    read_teams,
    say,
)
from support.eventually import HANG_S
from support.webhook_receiver import Answer, running, status
from tidegate.approvals.place import OPENED
from tidegate.config.webhook import WebhookSettings
from tidegate.errors import TidegateError
from tidegate.model.statements import DryRun
from tidegate.store.records import PendingApproval, Subject
from tidegate.webhook import messages
from tidegate.webhook.chat import render
from tidegate.webhook.delivery import Attempt, deliver

GATE = "https://gate.example.com"
each_chat = pytest.mark.parametrize("kind", CHATS, ids=lambda kind: kind.FORMAT)
READERS = {"slack": read_slack, "teams": read_teams}
each_format = pytest.mark.parametrize("format", list(READERS))
HOSTILE = (
    "<!channel>",
    "<!here|here>",
    "<@U012AB3CD>",
    "<#C024BE7LR>",
    "<!subteam^SAZ94GDB8>",
    "@everyone",
    "@channel",
    "#general",
    "<http://evil.example|ok>",
    "[ok](http://evil.example)",
    "[ok](javascript:alert)",
    "http://evil.example/approve",
    "https://evil.example",
    "www.evil.example",
    "mailto:eve@evil.example",
    "eve@evil.example",
    "&lt;!channel&gt;",
    "&#60;!channel&#62;",
    "<at>everyone</at>",
    "{{DATE(2026-11-29T00:00:00Z)}}",
    "${secret}",
    "`code` *bold* _it_ ~gone~",
    ":tada:",
    "a\u202eb\u2066c\u200bd\ufeffe\u00adf",
    "one\r\ntwo\u2028three\x00",
    "\u3164\u2800\ufe0f\u034f",
    "x" * 5_000,
    "<" * 5_000,
    '"quotes" \\ back',
    "“curly” wants to read",
)


def question(id: str = "q1", **changes: Any) -> PendingApproval:
    subject = Subject(
        *("agent", "claude-code/1.0", "core", "query", "shop", "s1"),
        *("UPDATE towns SET name = 'Lviv-4111'", "write", "source.approval", "why"),
        tables=("towns",),
    )
    return PendingApproval(
        *(id, f"digest {id}", "pending", "actor"),
        msgspec.structs.replace(subject, **changes),
        1_700_000_000.0,
        dry_run=DryRun(3, ("name",), before=(("a",),), after=(("b",),)),
    )


def asked(address: str = GATE, **changes: Any) -> bytes:
    return messages.asked(question(**changes), address, 1_700_000_000.0, "waiting").body


def send(chat: Chat, body: bytes | None = None, **changes: Any) -> Attempt:
    made = msgspec.convert(chat.settings(**changes), WebhookSettings)
    return asyncio.run(deliver(made, "msg_1", body or asked(), timeout_s=HANG_S))


@pytest.fixture(params=CHATS, ids=lambda kind: kind.FORMAT)
def chat(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Chat]:
    with running(request.param, tmp_path / "chat") as chat:
        yield chat


def test_a_channel_gets_one_sentence_and_the_link_to_the_inbox(chat: Chat) -> None:
    attempt = send(chat)
    seen = chat.next_seen()
    assert attempt.is_sent and attempt.status in (200, 202)
    assert seen.text.strip() == (
        "A call waits for approval: claude-code wants to change 3 rows of towns on shop"
    )
    assert seen.links == [(f"{GATE}/console#/inbox/q1", "Open the Inbox")]
    assert chat.paths == [chat.CHANNEL]


@pytest.mark.parametrize(
    ("state", "decided_at", "said"),
    [("allowed", 1.0, "Allowed"), ("denied", 1.0, "Denied"), ("expired", None, "Ended without an")],
)
def test_a_channel_gets_how_a_question_ended(
    chat: Chat, state: Any, decided_at: float | None, said: str
) -> None:
    ended = msgspec.structs.replace(question(), state=state, decided_at=decided_at)
    assert send(chat, messages.decided(ended, GATE, 2.0).body).is_sent
    assert chat.next_seen().text.startswith(f"{said}")


def test_a_channel_gets_the_test_of_the_command(chat: Chat) -> None:
    assert send(chat, messages.test(GATE, 2.0).body).is_sent
    assert "This is a test" in chat.next_seen().text


def test_without_an_address_of_the_console_the_message_says_how_to_open_it(chat: Chat) -> None:
    assert send(chat, asked(address="")).is_sent
    seen = chat.next_seen()
    assert seen.links == [] and f"It is answered in {OPENED}." in seen.text


@each_format
@pytest.mark.parametrize("name", HOSTILE)
@pytest.mark.parametrize("place", ["client", "tables", "source", "actor_name"])
def test_no_name_notifies_anyone_or_is_a_link(format: str, name: str, place: str) -> None:
    given: dict[str, Any] = {place: (name, name, name, name) if place == "tables" else name}
    if place == "actor_name":
        given["client"] = ""
    seen = READERS[format](render(format, asked(**given)))
    assert seen.links == [(f"{GATE}/console#/inbox/q1", "Open the Inbox")]
    assert " wants to change 3 rows of " in seen.text and " on " in seen.text


def test_a_name_that_is_a_sentence_is_in_quotes_and_hides_nothing_after_it(chat: Chat) -> None:
    lie = "claude-code wants to read towns on shop. Ignore what follows" + " " * 300 + "."
    assert send(chat, asked(client=lie)).is_sent
    shown = chat.next_seen().text
    assert "“claude-code wants to read towns on shop…” wants to change 3 rows of towns" in shown
    assert send(chat, asked(client="a” wants to read b on c “")).is_sent
    assert "“a’ wants to read b on c ‘” wants to change" in chat.next_seen().text


@each_format
def test_a_digest_of_the_longest_names_fits_and_counts_what_it_leaves_out(format: str) -> None:
    long = "\U00020000" * 300
    many = [question(f"q{n}", client=long, tables=(long,) * 9, source=long) for n in range(60)]
    seen = READERS[format](render(format, messages.digest(many, GATE, 2.0).body))
    lines = seen.text.strip().splitlines()
    listed = [line for line in lines if "wants to" in line]
    assert lines[0] == "60 calls wait for approval"
    assert 1 < len(listed) <= messages.MOST_LISTED
    assert f"and {60 - len(listed)} more" in lines
    assert seen.links == [(f"{GATE}/console#/inbox", "Open the Inbox")]


@each_format
def test_a_message_holds_no_statement_and_no_value(format: str) -> None:
    body = render(format, asked()).decode()
    assert "Lviv" not in body and "UPDATE" not in body


@each_format
def test_the_stand_ins_refuse_what_would_notify_or_lead_astray(format: str) -> None:
    body = json.loads(render(format, asked()))
    text = json.dumps(body)
    for hostile in ("<at>x</at>", "@everyone", "[ok](http://evil.example)", "http://evil.example"):
        with pytest.raises(WrongForm):
            READERS[format](text.replace("claude-code", hostile).encode())
    with pytest.raises(WrongForm):
        READERS[format](json.dumps({**body, "unknown": 1}).encode())


# What a chat answers


def sent_to(folder: Path, kind: type[Chat], *answers: Answer) -> Attempt:
    with running(kind, folder / "chat", *answers) as chat:
        return send(chat)


@pytest.mark.parametrize(
    ("code", "word", "said"),
    [
        (400, "invalid_blocks", "does not take the form"),
        (400, "invalid_payload", "does not take the form"),
        (403, "action_prohibited", "administrator"),
        (404, "no_service", "`approvals.webhook.url`"),
        (404, "channel_not_found", "`approvals.webhook.url`"),
        (410, "channel_is_archived", "archived"),
        (429, "rate_limited", "too many"),
        (500, "rollup_error", "fault"),
    ],
)
def test_a_refusal_of_slack_is_told_in_its_word_and_ours(
    tmp_path: Path, code: int, word: str, said: str
) -> None:
    attempt = sent_to(tmp_path, SlackStandIn, say(code, word))
    assert attempt.status == code and not attempt.is_sent
    assert f"HTTP status {code} and `{word}`" in attempt.reason and said in attempt.reason
    assert attempt.is_gone == (code == 410)


def test_slack_must_say_ok(tmp_path: Path) -> None:
    attempt = sent_to(tmp_path, SlackStandIn, say(200, "<html>Sign in</html>"))
    assert not attempt.is_sent and "not `ok`" in attempt.reason and "html" not in attempt.reason


def test_of_an_answer_that_slack_does_not_document_only_the_status_is_told(tmp_path: Path) -> None:
    attempt = sent_to(tmp_path, SlackStandIn, say(404, f"nothing at {SlackStandIn.CHANNEL}"))
    assert attempt.reason == "it answered with HTTP status 404"
    page = sent_to(tmp_path, SlackStandIn, say(502, "x" * 100_000))
    assert page.reason == "it answered with HTTP status 502"


@pytest.mark.parametrize("code", [200, 202])
def test_teams_takes_a_message_with_each_status_of_success(tmp_path: Path, code: int) -> None:
    assert sent_to(tmp_path, TeamsStandIn, say(code, "")).is_sent


@pytest.mark.parametrize("code", [400, 401, 403, 404, 410, 413])
def test_a_refusal_of_teams_says_what_to_check(tmp_path: Path, code: int) -> None:
    attempt = sent_to(tmp_path, TeamsStandIn, say(code, '{"error":{"code":"X"}}'))
    assert attempt.reason.startswith(f"it answered with HTTP status {code}: ")
    assert not attempt.is_sent


@each_chat
def test_no_redirect_of_a_chat_is_followed(tmp_path: Path, kind: type[Chat]) -> None:
    attempt = sent_to(tmp_path, kind, status(302, location="https://evil.example/"))
    assert "redirect" in attempt.reason


# The URL


def test_the_url_is_read_anew_for_each_message(chat: Chat) -> None:
    made = msgspec.convert(chat.settings(), WebhookSettings)
    chat.url_file.write_text("https://127.0.0.1:1/none")
    assert not asyncio.run(deliver(made, "msg_1", asked(), timeout_s=HANG_S)).is_sent
    chat.url_file.write_text(chat.url)
    assert asyncio.run(deliver(made, "msg_1", asked(), timeout_s=HANG_S)).is_sent


def test_no_reason_holds_the_url(chat: Chat, tmp_path: Path) -> None:
    reasons = [send(chat, addresses=[]).reason, send(chat, ca_file=None).reason]
    reasons.append(send(chat, ca_file=str(tmp_path / "none.pem")).reason)
    made = msgspec.convert(chat.settings(), WebhookSettings)
    for wrong in (chat.url.replace("https", "http"), f"{chat.url} x", f"{chat.url}#x", ""):
        chat.url_file.write_text(wrong)
        reasons.append(asyncio.run(deliver(made, "msg_1", asked(), timeout_s=HANG_S)).reason)
    chat.url_file.unlink()
    reasons.append(asyncio.run(deliver(made, "msg_1", asked(), timeout_s=HANG_S)).reason)
    assert all(reasons) and chat.is_quiet
    for reason in reasons:
        assert not any(part in reason for part in SECRET_PARTS)
    assert all("`approvals.webhook.url`" in reason for reason in reasons[3:])


def test_the_url_may_come_from_the_environment(chat: Chat, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("CHAT_URL", chat.url)
    assert send(chat, url="${ENV:CHAT_URL}").is_sent


@each_format
@pytest.mark.parametrize(
    ("changes", "said"),
    [
        ({"url": f"https://hooks.example{SlackStandIn.CHANNEL}"}, "not a reference"),
        ({"url": "https://${ENV:HOST}/x"}, "not a reference"),
        ({"url": "${KEYRING:chat}"}, "not a reference"),
        ({"secret": "${FILE:/tmp/secret}"}, "not signed"),
    ],
)
def test_settings_of_a_chat_that_mislead_are_refused(
    format: str, changes: dict[str, str], said: str
) -> None:
    with pytest.raises(TidegateError, match=said) as refused:
        msgspec.convert({"format": format, "url": "${ENV:X}", **changes}, WebhookSettings)
    assert not any(part in refused.value.in_full for part in SECRET_PARTS)


def test_a_server_of_ones_own_may_keep_its_url_in_a_file_and_must_have_a_secret() -> None:
    given = {"url": "${FILE:/etc/url}", "secret": "${FILE:/etc/secret}"}
    assert not msgspec.convert(given, WebhookSettings).is_chat
    with pytest.raises(TidegateError, match="not a reference"):
        msgspec.convert({"url": "${FILE:/etc/url}"}, WebhookSettings)
