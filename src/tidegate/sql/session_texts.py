"""Hides the statements of other callers' sessions, which the server shows to all that share an
account.

A view of the sessions is replaced, in the text as it was written, by a query that has all its
columns, with a word in place of what others run. A statement that changes something cannot name it
at all.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import cache, lru_cache

from tidegate.errors import Code, TidegateError
from tidegate.model.statements import Effect
from tidegate.sql.dialects import find
from tidegate.sql.dialects.model import Dialect
from tidegate.sql.finding import Refusal
from tidegate.sql.judge import judge
from tidegate.sql.lex import NAME, WORD, Token
from tidegate.sql.scan import scan
from tidegate.sql.statement_kinds import explained

RULE = "sessions.text"
_AFTER_NAME = frozenset({"*", "TABLESAMPLE"})


@cache
def has_session_views(dialect: str) -> bool:
    """Whether the dialect's databases have views that show what others run."""
    return bool(find(dialect).session_views)


def names_sessions(text: str, dialect: str) -> bool:
    """Whether a text may name a view of the sessions: too often rather than too seldom."""
    folded = text.lower()
    return any(name in folded for name in find(dialect).session_views)


@lru_cache(maxsize=256)
def hide_session_texts(text: str, dialect: str, *, plan: bool = False) -> str:
    """The statement with the texts of other sessions hidden; the same text if it reads none.

    `plan`: the text is a statement whose plan is asked for.
    Raises: TidegateError POLICY_DENIED for a change that names a view of the sessions, and for
    what cannot be followed.
    """
    found = find(dialect)
    lead = found.plan_words if plan else ""
    whole = lead + text
    try:
        tokens = scan(whole, found)
        if not any(_is_view(tokens, at, found) for at in range(len(tokens))):
            return text  # it is in a comment or a literal, or is a user's own
        judgement = judge(whole, dialect)
        if judgement.effect is not Effect.READ:
            raise _refused(
                "A change that names `pg_stat_activity` could copy statements of other callers",
                "Read it in a statement of its own, or ask the operator.",
            )
        return _rewritten(whole, tokens, found).removeprefix(lead)
    except Refusal as refusal:
        raise _refused(
            f"A statement that reads `pg_stat_activity` cannot be followed: "
            f"{refusal.finding.reason}"
        ) from None
    except RecursionError:
        raise _refused("A statement that reads `pg_stat_activity` nests too deep") from None


def _rewritten(text: str, tokens: list[Token], dialect: Dialect) -> str:
    """Raises: TidegateError POLICY_DENIED, Refusal."""
    # Read by few callers, and what it needs is not loaded where nothing is hidden.
    from tidegate.sql.masking.names import folded
    from tidegate.sql.masking.parsed_statement import ParsedStatement, replace_spans
    from tidegate.sql.masking.scope import cte_names, means_cte
    from tidegate.sql.masking.verification import BLANK, check

    start = 0
    if dialect.roots.get(tokens[0].key) == "explain":
        start, _ = explained(tokens, dialect)
    if dialect.roots.get(tokens[start].key) != "query":
        raise _refused(f"{tokens[0].key} of `pg_stat_activity` cannot be followed")
    if tokens[start].key == "TABLE":
        at, end = tokens[start].at, tokens[start + 1].at
        text = f"{text[:at]}SELECT * FROM {text[end:]}"
        tokens = scan(text, dialect)
    parsed = ParsedStatement(text, tokens[start:], dialect)
    edits: list[tuple[int, int, str]] = []
    skeleton: list[tuple[int, int, str]] = []
    try:
        for reference in parsed.references():
            parts = [folded(part, dialect) for part in reference.parts]
            query = dialect.session_views.get(parts[-1])
            if query is None and parts[-1].lower() not in dialect.session_views:
                continue
            span = (parsed.tokens[reference.first].at, parsed.end(reference.last))
            if query is None or (len(parts) > 1 and parts[-2] != dialect.system_schema):
                # A user's own, which only looks like the server's.
                skeleton.append((*span, f"{BLANK}{span[0]}"))
                continue
            meaning = "no"
            if len(parts) == 1:
                meaning = means_cte(parsed, reference.node, reference.parts[0])
            if meaning == "yes":
                continue
            if meaning == "doubtful":
                raise _refused(
                    f"`{parts[-1]}` could be another table of that name",
                    "Give the table, or the common table expression, a name of its own.",
                )
            before, after = parsed.key(reference.first - 1), parsed.key(reference.last + 1)
            if before == "ONLY" or after in _AFTER_NAME:
                raise _refused(f"`{parts[-1]}` is read with ONLY, * or TABLESAMPLE")
            named = "" if reference.node.alias else f" AS {parts[-1]}"
            lead = "SELECT * FROM " if before == "TABLE" else ""
            place = reference.first - 1 if before == "TABLE" else reference.first
            span = (parsed.tokens[place].at, parsed.end(reference.last))
            edits.append((*span, f"{lead}({query}){named}"))
            skeleton.append((*span, f"{lead}{BLANK}{span[0]}{named}"))
        for node in parsed.tree.walk():
            schema = node.args.get("db") if type(node).__name__ == "Column" else None
            if (
                schema is not None
                and schema.name.lower() == dialect.system_schema
                and node.args["table"].name.lower() in dialect.session_views
            ):
                raise _refused(
                    "A column of `pg_stat_activity` is named with its schema",
                    "Write pg_stat_activity.state, without pg_catalog before it.",
                )
        hidden = frozenset(dialect.session_views)
        check(replace_spans(text, skeleton), dialect, hidden, cte_names(parsed))
        written = replace_spans(text, edits)
    except TidegateError as error:
        if error.details.get("rule") == RULE:
            raise
        raise _refused(
            "A statement that reads `pg_stat_activity` cannot be followed, so that it could show"
            " statements of other callers"
        ) from None
    if judge(written, dialect.name).effect is not Effect.READ:
        raise _refused("A statement that reads `pg_stat_activity` cannot be followed")
    return written


def _is_view(tokens: Sequence[Token], at: int, dialect: Dialect) -> bool:
    """Whether a name may be that of a view of the sessions."""
    token = tokens[at]
    named = token.kind in (WORD, NAME) and token.text.lower() in dialect.session_views
    return named and not is_users_own(tokens, at, dialect)


def is_users_own(tokens: Sequence[Token], at: int, dialect: Dialect) -> bool:
    """Whether a name is surely not one of the server's own, which are in lower case and in the
    schema `pg_catalog`: one in quotes with other letters, or after the name of another schema."""
    token = tokens[at]
    if dialect.folds_quoted:
        return False
    if token.kind == NAME and token.text != token.text.lower():
        return True
    if at < 2 or tokens[at - 1].key != ".":
        return False
    schema = tokens[at - 2]
    name = schema.text if schema.kind == NAME else schema.text.lower()
    return schema.kind in (WORD, NAME) and name != dialect.system_schema


def _refused(
    reason: str, hint: str = "Read it as a plain table: SELECT pid, state FROM pg_stat_activity."
) -> TidegateError:
    return TidegateError(Code.POLICY_DENIED, f"{reason}.", hint=hint, details={"rule": RULE})
