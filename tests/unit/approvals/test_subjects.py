"""What a person is shown of a call, and what the record says of the answer."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import pytest
from msgspec import structs

from tidegate.approvals.approval_request import ApprovalRequest
from tidegate.approvals.approvals import Approvals, Identities
from tidegate.approvals.render import describe
from tidegate.errors import TidegateError
from tidegate.model.actors import Actor, Scope
from tidegate.model.decisions import Verdict
from tidegate.model.source_settings import Mask, RowFilter
from tidegate.model.sources import Source
from tidegate.model.statements import DryRun, Effect, Judgement, Statement
from tidegate.secrets.redaction import MASK
from tidegate.store.records import PendingApproval
from tidegate.store.sqlite.state import SqliteState

WRITER = Actor("tok_1", "writer", Scope.READ_WRITE)
SHOP = Source("s1", "shop", "sqlite:////shop.db", "sqlite", "sqlite", approval_for="writes")
UPDATE = "UPDATE t SET a = ?"


def request(
    text: str = UPDATE, params: tuple[Any, ...] | None = None, source: Source = SHOP, **more: Any
) -> ApprovalRequest:
    judgement = Judgement(
        Effect.WRITE, "sql.write", "It changes rows", tables=("t",), unqualified=True
    )
    verdict = Verdict("ask", "source.approval_for", "A person must approve this call")
    return ApprovalRequest(WRITER, source, Statement(text, params), judgement, verdict, **more)


def shown(wanted: ApprovalRequest, dry_run: DryRun | None = None) -> str:
    """What the person reads."""
    asked = PendingApproval(
        "0123456789",
        wanted.digest,
        "pending",
        wanted.actor.id,
        wanted.subject(),
        0.0,
        dry_run=dry_run,
    )
    return describe(asked)


NOTE = "*** replaces what may be a secret; the statement runs with the real value."


@pytest.mark.parametrize(
    ("params", "text"),
    [((6,), "[6]"), (("red", None, 1.5), '["red",null,1.5]'), ((), "[]"), ((True,), "[true]")],
)
def test_parameters_are_shown_as_they_are(params: tuple[Any, ...], text: str) -> None:
    told = shown(request(params=params))
    assert f"Parameters: {text}" in told.splitlines()
    assert NOTE not in told


def test_a_statement_without_parameters_has_no_line_about_them() -> None:
    assert "Parameters" not in shown(request("DELETE FROM t"))


def test_long_parameters_are_shown_up_to_a_bound_with_their_length() -> None:
    whole = "x" * (65_536 - 4)
    assert request(params=(whole,)).subject().params == f'["{whole}"]'
    told = request(params=(whole + "x",)).subject().params
    assert told == f'["{whole}x"... (65,537 characters)'


@pytest.mark.parametrize(
    ("text", "params"),
    [
        ("UPDATE t SET password = ?", ("hunter2-hunter2",)),
        ("UPDATE t SET a = ?", ("tg_" + "x" * 43,)),
        ("UPDATE t SET token = 'hunter2-hunter2'", None),
    ],
)
def test_where_a_secret_is_left_out_a_line_says_what_stands_for_it(
    text: str, params: tuple[Any, ...] | None
) -> None:
    wanted = request(text, params)
    told = shown(wanted)
    assert wanted.subject().withheld
    assert NOTE in told.splitlines()
    assert MASK in told and "hunter2" not in told and "xxxxx" not in told


def test_a_password_beside_other_parameters_hides_them_all() -> None:
    subject = request("UPDATE t SET password = ?, age = ?", ("hunter2-hunter2", 41)).subject()
    assert subject.params == MASK
    assert subject.statement == "UPDATE t SET password = ?, age = ?"


def test_what_runs_where_and_for_whom_is_in_the_subject() -> None:
    subject = request(
        database="main", schema="temp", surface="core", tool="query", client="c" * 201
    ).subject()
    assert (subject.database, subject.schema) == ("main", "temp")
    assert (subject.surface, subject.tool, subject.client) == ("core", "query", "c" * 200)
    assert (subject.actor_name, subject.source, subject.source_id) == ("writer", "shop", "s1")
    assert (subject.effect, subject.rule) == ("write", "source.approval_for")
    assert (subject.reason, subject.tables) == ("It changes rows", ("t",))
    assert subject.unqualified and not subject.withheld


@pytest.mark.parametrize(
    ("source", "guarded"),
    [
        (SHOP, False),
        # Of a caller with masks the operator sees the dry run, and the caller's client does not.
        (structs.replace(SHOP, masks=(Mask("t.a", "null"),)), False),
        (structs.replace(SHOP, filters=(RowFilter("t", "a = 1"),)), False),
        (structs.replace(SHOP, agents="ask"), True),
        (structs.replace(SHOP, approval_for="everything"), True),
        (structs.replace(SHOP, agents="deny"), False),
    ],
)
def test_a_question_is_guarded_where_a_person_must_approve_reads(
    source: Source, guarded: bool
) -> None:
    assert request(source=source).subject().guarded is guarded


@pytest.mark.parametrize(
    ("rule", "why"),
    [
        ("source.agents", 'the source asks about every call of an agent (agents = "ask")'),
        ("source.approval_for", "the source asks a person (approval_for)"),
        ("sql.irreversible", "it cannot be undone"),
        ("another.rule", "another.rule"),
    ],
)
def test_the_reason_for_asking_is_shown_in_words(rule: str, why: str) -> None:
    wanted = structs.replace(request(), verdict=Verdict("ask", rule, ""))
    assert f"Asked for: {why}" in shown(wanted).splitlines()


def test_each_line_of_a_question_says_what_it_is() -> None:
    told = shown(request("DELETE\nFROM t", surface="core", tool="query", database="main"))
    assert told.splitlines() == [
        "Source:    shop (database main)",
        "Caller:    writer (tok_1)",
        "Through:   query (core)",
        "Effect:    write: It changes rows",
        "Tables:    t",
        "Asked for: the source asks a person (approval_for)",
        "Statement:",
        "  | DELETE",
        "  | FROM t",
        "It may change every row of a table.",
        "Dry run:   none was made.",
    ]


def test_a_question_without_tables_database_or_missing_where_says_so_or_nothing() -> None:
    judgement = Judgement(Effect.WRITE, "sql.write", "It writes")
    told = shown(structs.replace(request("CALL x()"), judgement=judgement, client="ide/1"))
    lines = told.splitlines()
    assert lines[0] == "Source:    shop"
    assert "Caller:    writer (tok_1), ide/1" in lines
    assert "Tables:    none is named" in lines
    assert not any("WHERE" in line for line in lines)


@pytest.mark.parametrize(
    ("dry_run", "lines"),
    [
        (DryRun(reason="only changes are tried."), ["Dry run:   none: only changes are tried."]),
        (DryRun(0), ["Dry run:   0 rows would be changed; it was rolled back."]),
        (
            DryRun(2, ("id",), (("1",), ("2",)), (None, None), reason="The rest is hidden."),
            [
                "Dry run:   2 rows would be changed; it was rolled back.",
                "  | id 1 (deleted)",
                "  | id 2 (deleted)",
                "  | The rest is hidden.",
            ],
        ),
        (
            DryRun(1234, reason="The rows have no key."),
            [
                "Dry run:   1,234 rows would be changed; it was rolled back.",
                "  | The rows have no key.",
            ],
        ),
        (
            DryRun(1002, ("id", "a"), (("1", "x"),), (("1", "x"),)),
            [
                "Dry run:   1,002 rows would be changed; it was rolled back.",
                "  | id 1, a x",
                "  | ... and 1,001 more",
            ],
        ),
    ],
)
def test_a_dry_run_says_how_many_rows_and_why_it_shows_no_more(
    dry_run: DryRun, lines: list[str]
) -> None:
    assert shown(request("DELETE FROM t"), dry_run).splitlines()[-len(lines) :] == lines


Records = list[tuple[str, str, dict[str, str]]]


class Inbox:
    def __init__(self, path: Path) -> None:
        self.state = SqliteState(path)
        self.told: Records = []
        self.done: Records = []
        self.approvals = Approvals(
            self.state.approvals,
            note=lambda *event: self._keep(self.told, *event),
            note_done=lambda *event: self._keep(self.done, *event),
        )

    def _keep(self, told: Records, name: str, actor: str, details: Mapping[str, str]) -> None:
        told.append((name, actor, dict(details)))

    def ask(self, wanted: ApprovalRequest) -> PendingApproval:
        return asyncio.run(self.approvals.request(wanted))


@pytest.fixture
def inbox(tmp_path: Path) -> Iterator[Inbox]:
    inbox = Inbox(tmp_path / "state.db")
    yield inbox
    inbox.state.close()


def test_a_denial_is_on_record_with_its_reason_and_its_person(inbox: Inbox) -> None:
    asked = inbox.ask(request())
    inbox.approvals.resolve(asked.id, "denied", "cli:ann", "on Friday")
    assert inbox.done == [
        (
            "approval.denied",
            "cli:ann",
            {
                "approval": asked.id,
                "source": "shop",
                "caller": "tok_1",
                "reason": "on Friday",
            },
        )
    ]
    with pytest.raises(TidegateError) as refusal:
        inbox.ask(request())
    assert refusal.value.hint == "on Friday"
    assert refusal.value.retry_after_s is not None and 0 < refusal.value.retry_after_s <= 60


def test_a_grant_is_on_record_before_it_counts_and_its_use_after(inbox: Inbox) -> None:
    asked = inbox.ask(request())
    inbox.approvals.resolve(asked.id, "allowed", "cli:ann")
    assert inbox.ask(request()).state == "used"
    details = {"approval": asked.id, "source": "shop", "caller": "tok_1"}
    assert inbox.told == [
        ("approval.asked", "tok_1", details),
        ("approval.allowed", "cli:ann", details),
        ("approval.used", "tok_1", details),
    ]
    assert inbox.done == []


def test_a_caller_is_on_record_with_its_name_where_that_is_known(tmp_path: Path) -> None:
    names = {"tok_1": "ada"}
    events: Records = []
    state = SqliteState(tmp_path / "state.db")
    approvals = Approvals(
        state.approvals,
        note=lambda name, actor, details: events.append((name, actor, dict(details))),
        identities=Identities(name_of=lambda actor: names.get(actor, "")),
    )
    for _ in range(2):
        asked = asyncio.run(approvals.request(request()))
        approvals.resolve(asked.id, "allowed", "cli:ann", minutes=0)
        asyncio.run(approvals.request(request()))
        names.clear()
    state.close()
    assert [details.get("caller_name") for _, _, details in events] == ["ada"] * 3 + [None] * 3
    assert all("minutes" not in details for _, _, details in events)


@pytest.mark.parametrize(("allow", "state"), [(True, "allowed"), (False, "denied")])
def test_an_answer_at_the_client_is_what_the_person_chose(
    inbox: Inbox, allow: bool, state: str
) -> None:
    asked = inbox.ask(request())
    asyncio.run(inbox.approvals.record_client_answer(asked, "tok_1", allow, "ann", "why not"))
    kept = inbox.approvals.find(asked.id)
    assert (kept.state, kept.decided_by, kept.reason) == (state, "ann", "why not")


def test_a_question_that_waits_no_more_says_who_answered_it(inbox: Inbox) -> None:
    asked = inbox.ask(request())
    inbox.approvals.resolve(asked.id, "allowed", "cli:ann")
    with pytest.raises(TidegateError) as refusal:
        inbox.approvals.resolve(asked.id, "denied", "cli:bob")
    assert f"{asked.id} is no longer open: it was allowed by cli:ann" in refusal.value.message
    assert inbox.approvals.find(asked.id).state == "allowed"


def test_the_inbox_lists_those_that_wait_and_all_on_request(inbox: Inbox) -> None:
    first, second = inbox.ask(request()), inbox.ask(request("DELETE FROM t"))
    inbox.approvals.resolve(first.id, "denied", "cli:ann")
    assert [each.id for each in inbox.approvals.list()] == [second.id]
    assert [each.id for each in inbox.approvals.list(everything=True)] == [first.id, second.id]
