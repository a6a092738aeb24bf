"""The place where a person can answer, as those who ask are told."""

from __future__ import annotations

import pytest

from tidegate.approvals.place import OPENED, link_inbox, name_inbox


@pytest.mark.parametrize(
    ("address", "named"),
    [
        ("", OPENED),
        ("https://gate.example.com", "the Inbox at https://gate.example.com/console#/inbox"),
        ("https://gate.example.com/", "the Inbox at https://gate.example.com/console#/inbox"),
        (
            "http://127.0.0.1:8765",
            "the Inbox at http://127.0.0.1:8765/console#/inbox on the server's machine",
        ),
        ("http://[::1]:1", "the Inbox at http://[::1]:1/console#/inbox on the server's machine"),
    ],
)
def test_an_address_that_one_machine_alone_reaches_says_so(address: str, named: str) -> None:
    assert name_inbox(address) == named


def test_without_an_address_the_way_to_open_it_is_named_and_no_command_that_answers() -> None:
    assert "`tidegate console` on the server's machine" in OPENED
    assert "approvals" not in OPENED


def test_a_link_leads_to_a_card_where_one_is_named() -> None:
    assert link_inbox("https://gate.example.com", "q1").endswith("/console#/inbox/q1")
