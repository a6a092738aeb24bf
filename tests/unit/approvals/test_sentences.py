"""What a caller wants, in one sentence."""

from __future__ import annotations

from typing import Any

import pytest
from msgspec import structs

from tidegate.approvals.render import describe, describe_at_client
from tidegate.approvals.sentence import sentence_of
from tidegate.model.statements import DryRun
from tidegate.store.records import PendingApproval, Subject


def question(dry_run: DryRun | None = None, **of_subject: Any) -> PendingApproval:
    subject = Subject(
        "ada", "", "core", "query", "shop", "s1", "DELETE FROM t", "write",
        "source.approval_for", "It deletes rows", tables=("t",),
    )  # fmt: skip
    subject = structs.replace(subject, **of_subject)
    return PendingApproval("0123456789", "d", "pending", "tok_1", subject, 0.0, dry_run=dry_run)


ROW = ("1", "a")


@pytest.mark.parametrize(
    ("dry_run", "of_subject", "sentence"),
    [
        (None, {}, "ada wants to run a statement (write) about t on shop"),
        (None, {"client": "ide/1.2"}, "ide wants to run a statement (write) about t on shop"),
        (None, {"tables": ()}, "ada wants to run a statement (write) on shop"),
        (None, {"effect": "read"}, "ada wants to read t on shop"),
        (None, {"effect": "read", "tables": ()}, "ada wants to read data on shop"),
        (None, {"effect": "read", "tables": ("a", "b", "c")}, "ada wants to read a, b, c on shop"),
        (
            None,
            {"effect": "read", "tables": ("a", "b", "c", "d", "e")},
            "ada wants to read a, b, c and 2 more on shop",
        ),
        (DryRun(reason="no"), {}, "ada wants to run a statement (write) about t on shop"),
        (DryRun(0), {}, "ada wants to change 0 rows of t on shop"),
        (DryRun(1), {}, "ada wants to change 1 row of t on shop"),
        (DryRun(1234), {}, "ada wants to change 1,234 rows of t on shop"),
        (
            DryRun(2, ("a",), (ROW, ROW), (None, None)),
            {},
            "ada wants to delete 2 rows of t on shop",
        ),
        (DryRun(1, ("a",), (None,), (ROW,)), {}, "ada wants to add 1 row to t on shop"),
        (DryRun(1, ("a",), (None,), (ROW,)), {"tables": ()}, "ada wants to add 1 row on shop"),
        (
            DryRun(2, ("a",), (ROW, ROW), (ROW, None)),
            {},
            "ada wants to change 2 rows of t on shop",
        ),
        (
            DryRun(2, ("a",), (None, ROW), (ROW, ROW)),
            {},
            "ada wants to change 2 rows of t on shop",
        ),
        (
            DryRun(2, requests=("PUT /a", "PUT /b")),
            {},
            "ada wants to send 2 requests of t on shop",
        ),
        (DryRun(1, requests=("PUT /a",)), {}, "ada wants to send 1 request of t on shop"),
        (DryRun(3, what="facts"), {}, "ada wants to run a statement (write) about t on shop"),
    ],
)
def test_a_sentence_says_who_wants_what_of_which_tables(
    dry_run: DryRun | None, of_subject: dict[str, Any], sentence: str
) -> None:
    assert sentence_of(question(dry_run, **of_subject)) == sentence


def test_a_client_of_a_guarded_question_shows_no_dry_run() -> None:
    dry_run = DryRun(1, ("id", "name"), (ROW,), (("1", "b"),), withheld=("secret",))
    shown = describe_at_client(question(dry_run, guarded=True))
    assert "Dry run:   not shown here; the operator of the gate can see it." in shown.splitlines()
    assert "secret" not in shown
    assert "name a -> b" not in shown
    open_to_all = describe_at_client(question(dry_run))
    assert "not shown here; the operator" not in open_to_all
    assert "Masked for the caller, and not shown here: secret." in open_to_all


def test_requests_are_listed_for_the_operator() -> None:
    dry_run = DryRun(2, requests=("PUT https://x/a", "DELETE https://x/b"))
    for request in dry_run.requests:
        assert request in describe(question(dry_run))
    assert describe(question(DryRun(2))) != describe(question(dry_run))
