"""What a person reads is what runs: nothing hidden, nothing that looks like our own words."""

from __future__ import annotations

import pytest
from msgspec import structs

from tidegate.approvals.render import describe, describe_at_client, visible
from tidegate.model.statements import DryRun
from tidegate.store.records import PendingApproval, Subject


def question(statement: str = "DELETE FROM t", dry_run: DryRun | None = None) -> PendingApproval:
    subject = Subject(
        "ann\u202e", "client/1", "core", "query", "shop", "s1", statement, "write",
        "source.approval_for", "It deletes rows", tables=("t",), unqualified=True, database="main",
    )  # fmt: skip
    return PendingApproval("0123456789", "d", "pending", "tok_1", subject, 0.0, dry_run=dry_run)


@pytest.mark.parametrize(
    "hidden", ["\u202e", "\u200b", "\x1b[2J", "\r", "\u2028", "\u2029", "\ue000", "\udc80"]
)
def test_nothing_is_hidden_or_moved(hidden: str) -> None:
    shown = visible(f"a{hidden}b")
    assert hidden[0] not in shown
    assert f"\\u{{{ord(hidden[0]):x}}}" in shown


def test_a_caller_cannot_add_lines_of_ours() -> None:
    reported = describe(question("SELECT 1\nTables:    none\r\nDry run:   none"))
    lines = reported.splitlines()
    assert lines.count("Tables:    t") == 1
    assert "Dry run:   none" not in lines and "  | Dry run:   none" in lines
    assert "\u202e" not in reported


def test_everything_an_answer_depends_on_is_reported() -> None:
    reported = describe(question())
    for words in ("shop (database main)", "tok_1", "client/1", "query (core)", "every row"):
        assert words in reported


def test_a_dry_run_shows_what_was_and_what_would_be() -> None:
    before, after = (("1", "a"), ("2", None)), (("1", "b\n"), None)
    reported = describe(question(dry_run=DryRun(3, ("id", "name"), before, after)))
    assert "3 rows would be changed" in reported
    assert "id 1, name a -> b\\u{a}" in reported
    assert "id 2, name NULL (deleted)" in reported
    assert "and 1 more" in reported


def test_a_change_that_nothing_undoes_is_called_so() -> None:
    asked = question()
    outside = structs.replace(asked.subject, outside_transaction=True)
    words = "what it has done stays if it fails"
    assert words in describe(structs.replace(asked, subject=outside))
    assert words not in describe(asked)


def test_the_reason_why_rows_are_left_out_is_shown_where_there_is_one() -> None:
    rows = ("id",), (("1",),), (("2",),)
    assert "too many" in describe(question(dry_run=DryRun(1, *rows, reason="too many rows")))
    assert describe(question(dry_run=DryRun(1, *rows))).endswith("  | id 1 -> 2")


def test_a_dry_run_shows_what_would_be_added() -> None:
    reported = describe(question(dry_run=DryRun(1, ("id", "name"), (None,), (("7", None),))))
    assert "1 row would be added" in reported
    assert "id 7, name NULL (added)" in reported


def test_rows_are_left_out_for_who_may_not_see_them() -> None:
    dry_run = DryRun(1, ("id", "name"), (("1", "secret"),), (None,))
    asked = question(dry_run=dry_run)
    guarded = structs.replace(asked, subject=structs.replace(asked.subject, guarded=True))
    told = describe_at_client(guarded)
    assert "secret" not in told and "1 row" not in told
    assert "secret" in describe(guarded)


def test_masked_columns_are_left_out_at_the_callers_client_alone() -> None:
    before, after = (("1", "secret", "old"),), (("1", "secret", "new"),)
    columns = ("id", "email", "status")
    asked = question(dry_run=DryRun(1, columns, before, after, withheld=("email",)))
    told = describe_at_client(asked)
    assert "1 row would be changed" in told and "id 1, status old -> new" in told
    assert "secret" not in told and "Masked for the caller, and not shown here: email." in told
    assert "email secret" in describe(asked)
    failed = question(dry_run=DryRun(reason="it failed: secret", withheld=("email",)))
    assert "secret" not in describe_at_client(failed)
    assert "the operator of the gate can see why" in describe_at_client(failed)
    assert "secret" in describe(failed)


def test_an_added_row_of_which_all_is_masked_is_still_counted() -> None:
    added = DryRun(1, ("email",), (None,), (("secret",),), withheld=("email",))
    reported = describe_at_client(question(dry_run=added))
    assert "1 row would be added" in reported and "(added)" in reported
    assert "secret" not in reported


def test_a_dry_run_that_is_not_about_rows_says_what_comes_and_what_goes() -> None:
    reported = describe(question(dry_run=DryRun(4, what="datoms", added=1_003, removed=1)))
    assert "datoms: 1,003 would be added and 1 removed; nothing was stored." in reported
    assert "4 rows" not in reported and "would be changed" not in reported
