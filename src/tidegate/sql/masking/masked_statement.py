"""Rewrites one statement under data rules: finds what replaces which names, and has the result
verified. A statement that cannot be rewritten with certainty is refused.
"""

from __future__ import annotations

from collections.abc import Callable
from itertools import pairwise
from typing import Any

from tidegate.errors import HIDDEN_PLAN, masking_refused
from tidegate.model.statements import Effect
from tidegate.sql.dialects.model import Dialect
from tidegate.sql.judge import judge
from tidegate.sql.lex import NAME, WORD, Token
from tidegate.sql.masking.changes import change_refused, check_change
from tidegate.sql.masking.derived_tables import DerivedTables, refuse_macros
from tidegate.sql.masking.hash_key import readable
from tidegate.sql.masking.parsed_statement import ParsedStatement, replace_spans
from tidegate.sql.masking.rewrite_templates import Edit
from tidegate.sql.masking.scope import cte_names
from tidegate.sql.masking.system_catalogs import ALLOWED_PRAGMAS, DEFAULT_REVEALING, TRANSACTION
from tidegate.sql.masking.table_allowlist import table_refused_indirectly
from tidegate.sql.masking.touched_columns import Touched
from tidegate.sql.masking.verification import BLANK, check, table_names
from tidegate.sql.scan import scan
from tidegate.sql.statement_kinds import explained


class MaskedStatement:
    """A statement to be rewritten. `edits` are what was changed in the text itself; None before,
    and where more was. `masked` are columns as (table, column): the masked ones that a query
    touches, or those of the tables that a change names. `filtered` are the tables and views that a
    query reads and of which rows are hidden."""

    def __init__(
        self, text: str, tokens: list[Token], dialect: Dialect, derived: DerivedTables
    ) -> None:
        self._text = text
        self._tokens = tokens
        self._dialect = dialect
        self._form = dialect.roots.get(tokens[0].key)
        self._derived = derived
        self.edits: list[Edit] | None = None
        self.masked: Touched = ()
        self.filtered: tuple[str, ...] = ()

    def rewrite(self) -> str:
        """Its text as it may run. Raises: TidegateError POLICY_MASKED, POLICY_TABLE, Refusal."""
        form, tokens = self._form, self._tokens
        judgement = judge(self._text, self._dialect.name)
        allowlist = self._derived.allowlist
        if allowlist is not None:
            allowlist.check_calls(judgement)
        revealing = self._derived.revealing_function(judgement)
        if revealing is not None:
            raise masking_refused(
                f"`{revealing}` could tell what is masked", f"masking.{revealing}"
            )
        if tokens[0].key in TRANSACTION:
            return self._text
        changes = Effect.WRITE <= judgement.effect <= Effect.DESTRUCTIVE
        if form == "change" and judgement.effect <= Effect.DESTRUCTIVE:
            return self._change(tokens[0].key)
        if changes and tokens[0].key == "WITH" and self._dialect.with_before_change:
            return self._change_after_with(judgement.reason)
        if judgement.effect is not Effect.READ:
            raise _unlisted(judgement.reason)
        if form == "query":
            return self._query(tokens)
        if form == "explain":
            return self._explain()
        if allowlist is not None and form in ("pragma", "show") and not self._is_setting():
            raise table_refused_indirectly(tokens[0].key)
        if form == "describe":
            inner = tokens[1:]
            if not inner and allowlist is not None:  # it describes all tables
                raise table_refused_indirectly(tokens[0].key)
            if not inner:
                return self._text
            if inner[0].key == "TABLE":
                inner = inner[1:] or inner
            lead = "" if self._dialect.roots.get(inner[0].key) == "query" else "SELECT * FROM "
            return self._query(inner, lead, tokens[1].at)
        if (form == "pragma" and self._is_plain_pragma()) or (form == "show" and self._is_show()):
            return self._text
        raise _unlisted(f"{tokens[0].key} is not known to tell nothing of them")

    def _query(self, tokens: list[Token], lead: str = "", start: int | None = None) -> str:
        """The text with the query that these tokens are rewritten. `lead` is put before it, in
        place of the text from `start` on."""
        dialect = self._dialect
        if not dialect.values_parses and tokens[0].key == "VALUES":
            if any(token.key in ("SELECT", "TABLE", "FROM") for token in tokens):
                raise _unlisted("VALUES holds a query")
            return self._text
        if dialect.in_reads_tables:
            self._refuse_in_table(tokens)
        text = self._text
        shift = 0
        if lead or tokens[0].key == "TABLE":
            # Read as SELECT * FROM a table: its name is where it was.
            at = tokens[0].at if start is None else start
            name = tokens[1:] if tokens[0].key == "TABLE" else tokens
            begin = name[0].at
            lead = "SELECT * FROM "
            text = f"{text[:at]}{lead}{text[begin:]}"
            shift = at
            tokens = [token for token in scan(text, dialect) if token.at >= shift]
        parsed = ParsedStatement(text, tokens, dialect)
        edits, named, masked_tables = self._derived.edits(parsed)
        if masked_tables and (self._form == "query" or self._tokens[0].key == "SUMMARIZE"):
            self.masked = self._derived.touched(parsed, named)
            hiding = {each.table.name for each in named if self._derived.is_filtered(each.table)}
            self.filtered = tuple(sorted(hiding))
        self._check_allowlist(parsed)
        if self._form == "explain":
            for table in masked_tables:
                if dialect.plans_reveal_sizes or self._derived.is_filtered(table):
                    raise masking_refused(
                        f"The plan of a query on `{table.name}` would tell of what is hidden in it",
                        HIDDEN_PLAN,
                        "Explain a query on other tables.",
                    )
        skeleton = replace_spans(text, [(*edit[:2], _blanked(*edit)) for edit in edits])
        hidden = self._derived.hidden | {table.name.lower() for table in masked_tables}
        ctes = cte_names(parsed)
        check(skeleton, dialect, hidden, ctes)
        if self._derived.allowlist is not None:
            self._derived.allowlist.check_names(scan(skeleton, dialect), ctes, BLANK)
        if text is self._text:
            self.edits = edits
        if not edits:
            return self._text
        written = replace_spans(text, edits)
        again = judge(readable(written), dialect.name)
        if again.effect is not Effect.READ:
            raise _unlisted(f"what came of rewriting is not known to read: {again.reason}")
        return written

    def _explain(self) -> str:
        lead = self._dialect.plan_words.split()
        words = [token.key for token in self._tokens[: len(lead)]]
        if len(lead) > 1 and words != lead and self._derived.hidden:
            raise masking_refused(
                "This EXPLAIN shows where pages are, which follows from what is hidden",
                HIDDEN_PLAN,
                f"Write {self._dialect.plan_words.strip()}.",
            )
        at, _ = explained(self._tokens, self._dialect)
        inner = self._tokens[at:]
        if self._dialect.roots.get(inner[0].key) == "query":
            return self._query(inner)
        if self._dialect.explains_tables and all(
            token.kind in (WORD, NAME) or token.key == "." for token in inner
        ):
            if self._derived.allowlist is not None:
                self._check_described(inner)
            self._refuse_revealing(inner, self._derived.reveals_defaults)
            return self._text  # DESCRIBE of a table: its columns
        raise _unlisted("only queries are explained")

    def _change_after_with(self, reason: str) -> str:
        """A change of rows that begins with common table expressions."""
        parsed = ParsedStatement(self._text, self._tokens, self._dialect)
        tree: Any = parsed.tree
        root = type(tree).__name__.upper()
        if root not in ("INSERT", "UPDATE", "DELETE", "MERGE"):
            raise _unlisted(reason)
        target = tree.this.this if type(tree.this).__name__ == "Schema" else tree.this
        name = parsed.part(parsed.number(target.this)).text if target is not None else ""
        if not name or name.lower() in cte_names(parsed):
            # It is a table in any case, but what follows would take it for the expression.
            raise _unlisted("what is changed is called like a common table expression")
        return self._change(root)

    def _change(self, root: str) -> str:
        """A change as it is, if it neither reads nor writes what is hidden."""
        if self._dialect.in_reads_tables:
            self._refuse_in_table(self._tokens)
        parsed = ParsedStatement(self._text, self._tokens, self._dialect)
        if type(parsed.tree).__name__ == "Command":  # the tables of REPLACE are not in the tree
            raise _unlisted(f"{self._tokens[0].key} cannot be followed: say it with INSERT")
        refuse_macros(parsed)
        named = list(self._derived.named_tables(parsed))
        self._check_allowlist(parsed)
        if self._derived.allowlist is not None:
            self._derived.allowlist.check_change(root)
            self._derived.allowlist.check_names(self._tokens, cte_names(parsed))
        known = {each.reference.last for each in named}
        for number in table_names(self._tokens, self._dialect):
            if number not in known and self._tokens[number].text.lower() in self._derived.hidden:
                raise change_refused(self._tokens[number].text)
        self.masked = check_change(parsed, named, self._derived)
        return self._text

    def _check_allowlist(self, parsed: ParsedStatement) -> None:
        allowlist = self._derived.allowlist
        if allowlist is None:
            return
        allowlist.check_types(parsed)
        if self._form == "explain":
            allowlist.check_plan(judge(self._text, self._dialect.name).tables)

    def _check_described(self, tokens: list[Token]) -> None:
        """MySQL's DESCRIBE of a table, and of one of its columns."""
        size = 1
        while tokens[size : size + 1] and tokens[size].key == ".":
            size += 2
        name = self._text[tokens[0].at : tokens[size].at if size < len(tokens) else None]
        text = f"SELECT * FROM {name}"
        self._derived.edits(ParsedStatement(text, scan(text, self._dialect), self._dialect))

    def _is_setting(self) -> bool:
        """Whether a SHOW is of the server's settings."""
        shown = self._dialect.setting_shows
        return shown is None or any(token.key in shown for token in self._tokens[1:2])

    def _refuse_in_table(self, tokens: list[Token]) -> None:
        """SQLite takes a bare name after IN for a table."""
        for before, token in pairwise(tokens):
            if before.key == "IN" and token.key != "(":
                raise masking_refused(
                    "IN before a name reads a table", "masking.in_table", "Write IN (SELECT ...)."
                )

    def _is_plain_pragma(self) -> bool:
        rest = [token.text.lower() for token in self._tokens[1:]]
        if rest[1:2] == ["."]:
            rest = rest[2:]
        if not rest or rest[0] not in ALLOWED_PRAGMAS:
            return False
        message = "".join(rest[1:])
        if rest[0] in DEFAULT_REVEALING and any(
            name.lower() in message for _, name in self._derived.revealing
        ):
            raise _revealing(place=_WITHOUT_SCHEMA)
        return True

    def _is_show(self) -> bool:
        dialect = self._dialect
        keys = [token.key for token in self._tokens[1:3]]
        if dialect.masked_shows is None:
            return True
        if not keys or keys[0] not in dialect.masked_shows:
            return False
        if keys[0] in dialect.counting_shows:
            self._refuse_revealing(self._tokens[2:], self._derived.reveals_counts)
        if keys[0] in dialect.describing_shows:
            self._refuse_revealing(self._tokens[2:], self._derived.reveals_defaults)
        if keys[0] == "CREATE":
            self._refuse_revealing(self._tokens[2:], self._derived.reveals_definition)
        return keys[0] != "FULL" or keys[1:] in (["TABLES"], ["COLUMNS"], ["FIELDS"])

    def _refuse_revealing(self, tokens: list[Token], reveals: Callable[[str], bool]) -> None:
        """Raises: TidegateError POLICY_MASKED for names of tables of which this would tell."""
        for token in tokens:
            if token.kind in (WORD, NAME) and reveals(token.text):
                raise _revealing(token.text)


def _blanked(start: int, end: int, piece: str) -> str:
    """What replaces a piece of ours in the text that is checked."""
    if piece.startswith("("):
        body, _, alias = piece.rpartition(")")
        return f"{BLANK}{start}{alias if body else ''}"
    if piece.startswith("SELECT * FROM ("):
        return f"SELECT * FROM {BLANK}{start}"
    return piece if start == end or not piece else f"{BLANK}{start}"


_SCHEMA = "Read the columns of information_schema, or describe the table with a tool."
_WITHOUT_SCHEMA = (
    "Describe the table with a tool; over PostgreSQL's wire read information_schema.columns."
)


def _revealing(name: str = "", place: str = _SCHEMA) -> Exception:
    about = f" of `{name}`" if name else ""
    return masking_refused(
        f"This would reveal counts or defaults{about} that are hidden from this caller",
        "masking.catalog",
        place,
    )


def _unlisted(reason: str) -> Exception:
    return masking_refused(
        f"Some of this source is hidden from this caller: {reason}", "masking.statement"
    )
