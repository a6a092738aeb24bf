"""What a caller may do on a source, by kind of statement, before any statement is there.

Decides nothing itself: each cell is what the rules say to a judgement such as the judge gives for
a statement of that kind, and what the caller's identity and data rules say after them. The gate
asks the same functions in the same order for each call.
"""

from __future__ import annotations

from typing import Literal

import msgspec

from tidegate.errors import TidegateError
from tidegate.model.actors import Actor, Scope
from tidegate.model.decisions import Verdict
from tidegate.model.language import Language
from tidegate.model.requests import METADATA
from tidegate.model.sources import Source
from tidegate.model.statement_rules import StatementRules
from tidegate.model.statements import Administration, Effect, Judgement
from tidegate.policy.data_rules import rules_for, verdict_of
from tidegate.policy.explanation import Explanation, explain, under_data_rules
from tidegate.policy.rules import PolicyInput
from tidegate.policy.run_as import resolve_run_as
from tidegate.policy.verdict import first_verdict

CellKind = Literal["allow", "masked", "ask", "deny"]
"""`masked`: allowed, with something of the source hidden from the caller."""

STRICTNESS: tuple[CellKind, ...] = ("allow", "masked", "ask", "deny")


class StatementKind(msgspec.Struct, frozen=True):
    """Statements that the rules cannot tell apart: `word` names them, `judgement` is theirs."""

    word: str
    judgement: Judgement


class Verb(msgspec.Struct, frozen=True):
    """A column of the matrix. `reads_only`: by a tool that is for reading."""

    name: str
    label: str
    kinds: tuple[StatementKind, ...]
    reads_only: bool = False


def _changes(
    verb: str, reason: str, effect: Effect = Effect.WRITE, *, unqualified: bool = False
) -> Judgement:
    return Judgement(effect, f"kind.{verb}", reason, verb=verb, unqualified=unqualified)


def _administers(verb: str, reason: str, **known: bool) -> Judgement:
    return Judgement(
        Effect.ADMIN, f"kind.{verb}", reason, verb=verb, administration=Administration(**known)
    )


_READ = Judgement(Effect.READ, "read", "It reads data", verb="select")

VERBS: tuple[Verb, ...] = (
    Verb("names", "See names", (StatementKind("names of tables and columns", METADATA),)),
    Verb("read", "Read", (StatementKind("SELECT", _READ),)),
    Verb("export", "Export", (StatementKind("rows to a file", _READ),), reads_only=True),
    Verb(
        "change",
        "Change rows",
        (
            StatementKind("INSERT", _changes("insert", "It adds rows")),
            StatementKind("UPDATE with WHERE", _changes("update", "It changes rows")),
            StatementKind("DELETE with WHERE", _changes("delete", "It deletes rows")),
        ),
    ),
    Verb(
        "every_row",
        "Change every row",
        (
            StatementKind(
                "UPDATE without WHERE", _changes("update", "It changes every row", unqualified=True)
            ),
            StatementKind(
                "DELETE without WHERE", _changes("delete", "It deletes every row", unqualified=True)
            ),
        ),
    ),
    Verb(
        "structure",
        "Change structure",
        (StatementKind("CREATE, ALTER ... ADD", _changes("ddl", "It changes the structure")),),
    ),
    Verb(
        "destroy",
        "Destroy",
        (
            StatementKind(
                "DROP, TRUNCATE, ALTER ... DROP",
                _changes("ddl", "It destroys data or structure", Effect.DESTRUCTIVE),
            ),
        ),
    ),
    Verb(
        "administer",
        "Administer",
        (
            StatementKind("GRANT, CREATE USER", _administers("grant", "It gives rights")),
            StatementKind("DROP USER", _administers("ddl", "It drops an account", drops=True)),
            StatementKind(
                "VACUUM, CALL, outside of a transaction",
                _administers("call", "It runs outside of a transaction", in_transaction=False),
            ),
        ),
    ),
)
"""What the rules tell apart, from the least to the most."""

BY_NAME = {verb.name: verb for verb in VERBS}


class KindVerdict(msgspec.Struct, frozen=True):
    """What is decided of the statements of one kind. `confirms`: the caller types the phrase of
    confirmation first, and `verdict` is the one after it."""

    word: str
    kind: CellKind
    verdict: Verdict
    confirms: bool = False


class AccessCell(msgspec.Struct, frozen=True):
    """What a caller may do by a verb: the strictest of its kinds of statements, and all of them."""

    strictest: KindVerdict
    kinds: tuple[KindVerdict, ...]

    @property
    def kind(self) -> CellKind:
        return self.strictest.kind

    @property
    def differs(self) -> bool:
        """Whether not all kinds of statements of the verb are decided alike."""
        return any(each.kind != self.kind for each in self.kinds)


def access_cell(
    actor: Actor,
    source: Source,
    verb: Verb,
    language: Language,
    statements: StatementRules | None = None,
) -> AccessCell:
    """The cell of a caller, a source and a verb. `language` is the source's, `statements` its rules
    for classes of statements, if it has them. Raises nothing."""
    refused, hides = _binding(actor, source, language)
    kinds = tuple(
        [
            _decided(_case(actor, source, verb, each, statements), each.word, refused, hides)
            for each in kinds_of(verb, statements)
        ]
    )
    strictest = max(kinds, key=lambda each: STRICTNESS.index(each.kind))
    return AccessCell(strictest, kinds)


def explain_cell(
    actor: Actor,
    source: Source,
    verb: Verb,
    language: Language,
    statements: StatementRules | None = None,
) -> Explanation:
    """How the strictest kind of statements of a cell is decided, rule by rule."""
    cell = access_cell(actor, source, verb, language, statements)
    kinds = kinds_of(verb, statements)
    found = next(each for each in kinds if each.word == cell.strictest.word)
    confirmed = cell.strictest.confirms
    explanation = explain(
        actor,
        source,
        Scope.READ_WRITE if confirmed else Scope.READ_ONLY,
        found.judgement,
        confirmed=confirmed,
        reads_only=verb.reads_only,
        statements=statements,
    )
    if explanation.verdict.kind == "deny":
        return explanation
    refused, hides = _binding(actor, source, language)
    if refused is None and not hides:
        return explanation
    return under_data_rules(explanation, refused)


def kinds_of(verb: Verb, statements: StatementRules | None) -> tuple[StatementKind, ...]:
    """The kinds of statements of a verb that a source tells apart: where it has rules for classes
    of changes, these classes."""
    if verb.name != "change" or statements is None:
        return verb.kinds
    return tuple(
        [
            StatementKind(name.replace("_", " "), _changes(name, "It changes something"))
            for name, _ in statements.verbs
        ]
    )


def _binding(actor: Actor, source: Source, language: Language) -> tuple[Verdict | None, bool]:
    """What refuses the caller any request to the database, after the rules; whether something is
    hidden from it there."""
    try:
        resolve_run_as(actor, source)
        return None, rules_for(actor, source, language) is not None
    except TidegateError as refusal:
        return verdict_of(refusal), False


def _case(
    actor: Actor,
    source: Source,
    verb: Verb,
    kind: StatementKind,
    statements: StatementRules | None,
) -> PolicyInput:
    return PolicyInput(
        *(actor, source, Scope.READ_ONLY, kind.judgement),
        reads_only=verb.reads_only,
        statements=statements,
    )


def _decided(case: PolicyInput, word: str, refused: Verdict | None, hides: bool) -> KindVerdict:
    verdict, confirms = first_verdict(case), False
    if verdict.kind == "confirm":
        confirms = True
        # A tool that takes the phrase of confirmation is one for writing.
        verdict = first_verdict(
            msgspec.structs.replace(case, confirmed=True, scope=Scope.READ_WRITE)
        )
    if verdict.kind in ("deny", "confirm"):
        return KindVerdict(word, "deny", verdict, confirms)
    if refused is not None:
        return KindVerdict(word, "deny", refused, confirms)
    if verdict.kind == "ask":
        return KindVerdict(word, "ask", verdict, confirms)
    return KindVerdict(word, "masked" if hides else "allow", verdict, confirms)
