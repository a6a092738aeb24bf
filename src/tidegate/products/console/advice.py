"""What a person at the console's pages can do about an error.

Errors are written for callers of tools. Their advice is shown here as the page allows it: where it
says to list or to describe something, the page that does so; where it is for a program alone, what
the person does in its place. A test collects all hints of the package and checks what is shown.
"""

from __future__ import annotations

from collections.abc import Mapping

from tidegate.approvals.approvals import MANY_WAIT
from tidegate.errors import Code, TidegateError
from tidegate.gateway.gateway import BY_OPERATOR
from tidegate.surfaces.hints import Guide

GUIDE = Guide(
    tables="Search for it on the page Data.",
    columns="Open the table on the page Data: it lists its columns.",
    sources="Choose one of your sources on the page Data.",
    codes={
        Code.AUTH_MISSING: "Sign in.",
        Code.AUTH_INVALID: "Sign in again.",
        Code.AUTH_EXPIRED: "Sign in again.",
        Code.AUTH_LOCKED_OUT: "Wait, then sign in.",
        Code.POLICY_SCOPE: "Ask an admin for another role on the source.",
        Code.POLICY_BLOCKED: "An admin can allow it in the settings of the source.",
        Code.POLICY_READ_ONLY: "Only statements that read, such as SELECT, run here.",
        Code.POLICY_DENIED: "Ask an admin, or run a statement that only reads.",
        Code.POLICY_IDENTITY: "An admin can name a role of the database for you.",
        Code.POLICY_MASKED: "Use a plain SELECT. An admin can remove the mask.",
        Code.POLICY_TABLE: "Use another table: this one is not among those that you may use.",
        Code.POLICY_CONFIRM: "Run it on the page Data: a person is asked there.",
        Code.CONFIRM_NEEDLESS: "Run it again.",
        Code.APPROVAL_NEEDED: "A person must say yes in the Inbox.",
        Code.APPROVAL_DECLINED: "Ask the person who denied it before you run it again.",
        Code.OPERATOR_CONSENT: "Type your passphrase.",
        Code.ARGUMENT_INVALID: "Correct it, and try again.",
        Code.SQL_EMPTY: "Write a statement.",
        Code.SQL_MULTIPLE: "Run one statement at a time.",
        Code.SQL_FAILED: "Correct the statement, and run it again.",
        Code.SQL_OUTCOME: "Look whether it took effect before you run it again.",
        Code.QUESTION_EMPTY: "Write a question, or a statement.",
        Code.CALL_CANCELLED: "Run it again if you still need it.",
        Code.AUDIT_OUTCOME: "It ran. Look at what it changed before you run it again.",
        Code.SOURCE_NOT_CONNECTED: "Open the source on the page Data.",
        Code.TAB_CHANGED: "Look at the tab as it is now before you write.",
        Code.UNDO_UNAVAILABLE: "Activity shows which changes can be taken back.",
        Code.INTERNAL: "Activity has the call: report its number and time.",
    },
)

NO_ROLE = "You have no role on a source of that name"
"""What a person reads in place of a token that lacks the source, whether it exists or not."""

HINTS: Mapping[str, str] = {
    "Change its facts with datalevin_transact.": (
        "Queries run here; tools of an agent change facts."
    ),
    "Change the index by its own tools, such as datalevin_add_document.": (
        "Queries run here; tools of an agent change the index."
    ),
    BY_OPERATOR: "Ask the person who cancelled it before you run it again.",
    "Send it again.": "Run it again.",
    "Send the call again.": "Run it again.",
    "Send the statement again.": "Run it again.",
}
"""Advice for programs alone, and what a person does in its place."""

_NOUNS = (
    ("the operator of the gate", "the server's administrator"),
    ("The operator of the gate", "The server's administrator"),
    ("the operator", "the server's administrator"),
    ("The operator", "The server's administrator"),
)
"""The administrator of the server: the reader of a page is an operator, too."""


def advice(error: TidegateError) -> str:
    """What to do about an error, for a person at a page."""
    if error.code is Code.APPROVAL_DECLINED and error.hint != error.mapping.hint:
        return f"The reason: {error.hint}"  # the words of the person who denied it
    if error.hint.startswith("The question waits in "):
        return "Answer it in the Inbox, then run it again."
    if error.hint.startswith(MANY_WAIT):
        return "Answer some of them in the Inbox."
    if error.hint in HINTS:
        return HINTS[error.hint]
    hint = GUIDE.hint(error)
    for before, shown in _NOUNS:
        hint = hint.replace(before, shown)
    return hint
