"""Whatever the names are, a message to a chat has the published form, notifies no one, has one
link, which is ours, and still says what is wanted."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import msgspec
import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from support.chat_standins import Seen, read_slack, read_teams
from tidegate.store.records import PendingApproval, Subject
from tidegate.webhook import messages
from tidegate.webhook.chat import disarm, render

GATE = "https://gate.example.com"
FORMATS: list[tuple[str, Callable[[bytes], Seen]]] = [("slack", read_slack), ("teams", read_teams)]
PIECES = (
    "<!channel>", "<!here>", "<@U1>", "<#C1>", "<http://evil.example|ok>", "@everyone", "@",
    "[ok](http://evil.example)", "[", "](", ")", "http://", "https://evil.example", "://", "//",
    "www.", "mailto:", "javascript:", "&lt;", "&amp;", "&#60;", "&", "<", ">", "|", "`", "*", "_",
    "~", "{{DATE(", "{{", "}}", "${", "<at>", "</at>", ":tada:", "#general", "\\", "\n", "\r", "\t",
    "\u202e", "\u2066", "\u200b", "\u2060", "\ufeff", "\u00ad", "\u034f", "\ufe0f", "\u3164",
    "\u2028", "\x00", "\x1b[31m", "“", "”", "…", "\uff20", "towns", " ", "1",
)  # fmt: skip
NAMES = st.one_of(
    st.lists(st.sampled_from(PIECES), min_size=1, max_size=12).map("".join),
    st.text(st.characters(codec="utf-8"), min_size=1, max_size=400),
    st.lists(st.sampled_from(PIECES) | st.text(max_size=5), min_size=1, max_size=200).map("".join),
)


def question(id: str, client: str, tables: tuple[str, ...], source: str) -> PendingApproval:
    subject = Subject(
        *("agent", client, "core", "query", source, "s1"),
        *("DELETE FROM towns", "destructive", "source.approval", "why"),
        tables=tables,
    )
    return PendingApproval(id, f"digest {id}", "pending", "actor", subject, 1_700_000_000.0)


@pytest.mark.parametrize(("format", "read"), FORMATS, ids=["slack", "teams"])
@given(client=NAMES, tables=st.lists(NAMES, max_size=5).map(tuple), source=NAMES)
@example("<!channel>", ("<http://evil.example|ok>",), "@everyone")
def test_a_message_says_what_is_wanted_and_nothing_that_a_chat_acts_on(
    format: str,
    read: Callable[[bytes], Seen],
    client: str,
    tables: tuple[str, ...],
    source: str,
) -> None:
    made = messages.asked(question("q1", client, tables, source), GATE, 1.0, "waiting")
    seen = read(render(format, made.body))
    assert seen.links == [(f"{GATE}/console#/inbox/q1", "Open the Inbox")]
    assert "wants to run a statement (destructive)" in seen.text
    assert len(seen.text.strip().splitlines()) == 1
    assert not seen.alert or seen.alert == seen.text.strip()


@pytest.mark.parametrize(("format", "read"), FORMATS, ids=["slack", "teams"])
@given(named=st.lists(st.tuples(NAMES, NAMES, NAMES), min_size=1, max_size=30))
def test_a_digest_fits_and_counts_every_question(
    format: str, read: Callable[[bytes], Seen], named: list[tuple[str, str, str]]
) -> None:
    questions = [question(f"q{n}", a, (b,), c) for n, (a, b, c) in enumerate(named)]
    body = messages.digest(questions, GATE, 1.0).body
    seen = read(render(format, body))
    lines = seen.text.strip().splitlines()
    listed = [line for line in lines if "wants to run" in line]
    left = len(questions) - len(listed)
    assert len(lines) == 1 + len(listed) + bool(left)
    assert not left or lines[-1] == f"and {left} more"
    assert seen.links == [(f"{GATE}/console#/inbox", "Open the Inbox")]


@given(text=NAMES)
def test_what_is_disarmed_is_read_the_same_and_stays_as_it_is(text: str) -> None:
    shown = disarm(text)
    assert len(shown) == len(text) and disarm(shown) == shown
    back = "".join(
        chr(ord(char) - 0xFEE0) if "\uff01" <= char <= "\uff5e" else char for char in shown
    )
    same = "".join(
        chr(ord(char) - 0xFEE0) if "\uff01" <= char <= "\uff5e" else char for char in text
    )
    assert back == same


@given(state=st.sampled_from(["allowed", "denied", "expired", "used", "revoked"]), name=NAMES)
def test_how_a_question_ended_is_as_harmless(state: Any, name: str) -> None:
    ended = msgspec.structs.replace(question("q1", name, (name,), name), state=state)
    for format, read in FORMATS:
        assert len(read(render(format, messages.decided(ended, GATE, 1.0).body)).links) == 1
