"""Decides what stands in a table's place: for a table with rules a derived table, for a view that
reads such a table its definition, rewritten likewise. What holds copies of hidden rows is refused.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from tidegate.errors import GateError
from tidegate.metadata import Table
from tidegate.sql.dialects import find
from tidegate.sql.judge import judge
from tidegate.sql.opinion import Refusal
from tidegate.sql.scan import scan
from tidegate.sql.shield.allowance import Allowance, barred
from tidegate.sql.shield.definitions import query_of
from tidegate.sql.shield.labels import labels
from tidegate.sql.shield.model import Shield, masked
from tidegate.sql.shield.names import Names, folded, qualified, quoted
from tidegate.sql.shield.reading import Part, Sentence, Spot, splice
from tidegate.sql.shield.rules import Place, Rules
from tidegate.sql.shield.scope import is_recursion, means_cte
from tidegate.sql.shield.systems import FUNCTION_STARTS, FUNCTIONS, TABLE_MACROS
from tidegate.sql.shield.terms import FENCES, derived
from tidegate.statements import Effect, Judgement

_MAX_DEPTH = 12


class Cover:
    """A shield laid over a catalogue. Raises: GateError POLICY_MASKED if a rule does not fit it."""

    def __init__(self, shield: Shield, names: Names, key: str) -> None:
        self._names = names
        self._dialect = names.dialect
        self._key = key
        self._rules = rules = Rules(shield, names)
        self.allowance = (
            None if shield.only is None else Allowance(shield.only, names.catalog, names.dialect)
        )
        self._macros = frozenset(names.catalog.macros)
        self._stand_ins: dict[Place, str | None] = {}
        self.ruled = frozenset(rules.masks.keys() | rules.filters.keys())
        self._copies = self._holding_copies()
        self.hidden = frozenset(name.lower() for _, name in self.ruled | self._copies.keys())
        """Names, in lower case, of tables that no rewritten statement may name by itself."""

    def told_by_functions(self, judgement: Judgement) -> str | None:
        """The first function called that could tell what is hidden."""
        for name in judgement.functions:
            lower = name.lower().rpartition(".")[2]
            if lower in FUNCTIONS or lower.startswith(FUNCTION_STARTS) or lower in self._macros:
                return lower
        return None

    def is_filtered(self, table: Table) -> bool:
        """Whether rows of the table, or of one that a view reads, are hidden."""
        return FENCES[self._dialect] in (self.stand_in(table) or "")

    def stand_in(self, table: Table, depth: int = 0) -> str | None:
        """The query that stands for a table; None for one that may be read as it is.

        Raises: GateError POLICY_MASKED for what holds copies of hidden rows, or a view that cannot
        be rewritten.
        """
        place = (table.schema, table.name)
        if place not in self._stand_ins:
            self._stand_ins[place] = self._make(table, place, depth)
        return self._stand_ins[place]

    def _make(self, table: Table, place: Place, depth: int) -> str | None:
        parent = self._copies.get(place)
        if parent is not None:
            raise masked(
                f"`{table.name}` shares rows with `{parent}`, which is masked",
                f"shield.{table.name}",
                f"Read `{parent}` instead.",
            )
        if not self.ruled:
            return None
        if place not in self.ruled:
            self._check_behind(table, depth)
        inner = self._expanded(table, depth) if "view" in table.kind else None
        if place not in self.ruled:
            return inner
        origin = qualified(table, self._dialect)
        if inner is not None:
            origin = f"({inner}) AS {quoted(table.name, self._dialect)}"
        if not table.columns:
            raise masked(f"The columns of `{table.name}` are not known", f"shield.{table.name}")
        masks = self._rules.masks.get(place, {})
        return derived(
            table, origin, masks, self._rules.filters.get(place, []), self._dialect, self._key
        )

    def _holding_copies(self) -> dict[Place, str]:
        """Tables through which rows of a table with rules can be read past them, with its name:
        parts of it, and what it is itself a part of."""
        tables = {(t.schema, t.name): t for group in self._names.tables.values() for t in group}
        # An index that the operator made a rule for is told by that rule.
        indexes = {place for place in self.ruled if tables[place].kind == "virtual table"}
        copies: dict[Place, str] = {}
        for place, table in tables.items():
            if place in indexes:
                continue
            above = _ancestors(place, tables)
            for parent in above & self.ruled:
                copies[place] = parent[1]
            if place in self.ruled:
                copies |= dict.fromkeys(above, table.name)
        return copies

    # Views.

    def _check_behind(self, table: Table, depth: int) -> None:
        """Raises: GateError POLICY_MASKED for an index (SQLite's FTS5) of a view that would be
        rewritten, and for what lists the words of such an index."""
        for schema, name in table.reads:
            for other in self._names.called(name, schema):
                if depth > _MAX_DEPTH or self.stand_in(other, depth + 1) is not None:
                    raise masked(
                        f"`{table.name}` shares rows with `{other.name}`, which is masked",
                        f"shield.{table.name}",
                        f"Read `{other.name}` instead.",
                    )

    def _expanded(self, table: Table, depth: int) -> str | None:
        query = query_of(table.definition or "", find(self._dialect))
        if query is None or depth > _MAX_DEPTH:
            raise _bad_view(table, "its definition is not known")
        judgement = judge(query, self._dialect)
        if judgement.effect is not Effect.READ or self.told_by_functions(judgement):
            raise _bad_view(table, judgement.reason)
        dialect = find(self._dialect)
        try:
            sentence = Sentence(query, scan(query, dialect), dialect)
        except Refusal as refusal:
            raise _bad_view(table, refusal.opinion.reason) from None
        edits, covered = self.edits(sentence, table.schema, depth + 1)
        if not covered:
            return None
        if table.kind != "view":
            raise _bad_view(table, "it holds copies of rows of a masked table")
        name = quoted(f"{table.name}__", self._dialect)
        columns = ", ".join(quoted(column.name, self._dialect) for column in table.columns)
        text = splice(query, edits)
        return f"WITH {name}({columns}) AS ({text}\n) SELECT * FROM {name}"

    def edits(
        self, sentence: Sentence, home: str | None = None, depth: int = 0
    ) -> tuple[list[tuple[int, int, str]], list[Table]]:
        """What to change in a sentence, and the tables that were covered. With a `home`, as in a
        view of that schema, every table is named in full."""
        edits: list[tuple[int, int, str]] = []
        covered: list[Table] = []
        unaliased: dict[str, Table] = {}
        aliases: set[str] = set()
        replaced: list[Spot] = []
        _refuse_macros(sentence)
        for spot in sentence.spots():
            if spot.node.alias:
                aliases.add(spot.node.alias.lower())
            alone = len(spot.parts) == 1
            answer = means_cte(sentence, spot.node, spot.parts[0]) if alone else "no"
            if answer == "yes":
                continue
            if answer == "doubtful" and self._is_cte_after_all(sentence, spot, home):
                continue
            table = self._find(spot.parts, home)
            if table is None:
                continue
            text = self.stand_in(table, depth)
            if answer == "doubtful" and text is not None:
                raise masked(
                    f"`{table.name}` could be a CTE or a table",
                    "shield.ambiguous_cte",
                    "Give the CTE a name of its own.",
                )
            start, end = sentence.tokens[spot.first].at, sentence.end(spot.last)
            if text is None:
                twins = self._names.tables[table.name.lower()] if table.name.isascii() else ()
                if home is not None or len(twins) > 1:
                    edits.append((start, end, qualified(table, self._dialect)))
                continue
            _check_surroundings(sentence, spot.node, spot.first, spot.last, table)
            covered.append(table)
            replaced.append(spot)
            alias = ""
            if not spot.node.alias:
                alias = f" AS {self._alias(table, spot.parts[-1])}"
                unaliased[folded(spot.parts[-1], self._dialect).lower()] = table
            if sentence.key(spot.first - 1) == "TABLE":
                start = sentence.tokens[spot.first - 1].at
                text = f"SELECT * FROM ({text}){alias}"
            else:
                text = f"({text}){alias}"
            edits.append((start, end, text))
        edits += self._requalified(sentence, unaliased, aliases)
        edits += labels(sentence, replaced)
        return edits, covered

    def _is_cte_after_all(self, sentence: Sentence, spot: Spot, home: str | None) -> bool:
        """Of a name that could be a CTE or a table: whether there is no such table. Where that
        must not be told, whether there is no doubt after all."""
        if self.allowance is None or home is not None:
            return not self._names.called(spot.parts[0].text)
        return is_recursion(sentence, spot.node, spot.parts[0])

    def _find(self, parts: Sequence[Part], home: str | None) -> Table | None:
        """The table that is meant, if the caller may use it. Raises: GateError POLICY_MASKED,
        POLICY_TABLE."""
        if self.allowance is None or home is not None:
            return self._names.find(parts, home)
        try:
            table = self._names.find(parts)
        except GateError:
            raise barred(parts[-1].text) from None
        if table is None:
            if self._dialect == "mysql" and [folded(part, "mysql") for part in parts] == ["dual"]:
                return None
            raise barred(parts[-1].text)
        if not self.allowance.admits(table):
            raise barred(parts[-1].text)
        return table

    def _alias(self, table: Table, part: Part) -> str:
        """The name that columns are called by: PostgreSQL's as it folds, others' as written."""
        return quoted(table.name if self._dialect == "postgres" else part.text, self._dialect)

    def _requalified(
        self, sentence: Sentence, unaliased: dict[str, Table], aliases: set[str]
    ) -> list[tuple[int, int, str]]:
        """Takes the schema from columns of tables that are derived now, and so have none."""
        edits: list[tuple[int, int, str]] = []
        if not unaliased:
            return edits
        for node in sentence.tree.walk():
            if type(node).__name__ != "Column" or not node.args.get("db"):
                continue
            given = [node.args[arg] for arg in ("catalog", "db", "table") if node.args.get(arg)]
            parts, first, last = sentence.chain(given)
            table = unaliased.get(folded(parts[-1], self._dialect).lower())
            schema = folded(parts[-2], self._dialect).lower()
            if table is None or schema not in (table.schema.lower(), self._names.database.lower()):
                continue
            if schema in aliases:
                raise masked(f"`{schema}` could be a schema or a table", "shield.ambiguous_name")
            edits.append((sentence.tokens[first].at, sentence.tokens[last].at, ""))
        return edits


_AFTER_NAME = frozenset({"*", "(", "@", "INDEXED", "PARTITION", "USE", "FORCE", "IGNORE", "FOR",
                         "AT", "VERSION", "CHANGES"})  # fmt: skip
_HARMLESS = frozenset({"this", "db", "catalog", "alias", "joins", "laterals"})
_OF_DUCKDB = _HARMLESS | {"sample", "pivots"}


def _check_surroundings(
    sentence: Sentence, node: object, first: int, last: int, table: Table
) -> None:
    """Raises: GateError POLICY_MASKED for what can follow a table, but no derived one."""
    arguments: dict[str, object] = getattr(node, "args", {})
    harmless = _OF_DUCKDB if sentence.dialect.name == "duckdb" else _HARMLESS
    extra = {name for name, value in arguments.items() if value} - harmless
    after = sentence.key(last + 1)
    negated = after == "NOT" and sentence.key(last + 2) == "INDEXED"
    if extra or after in _AFTER_NAME or negated or sentence.key(first - 1) == "ONLY":
        what = ", ".join(sorted(extra)) or after or "ONLY"
        raise masked(
            f"`{table.name}` is masked, and cannot be read with {what.upper()}",
            "shield.surroundings",
            "Leave out what stands around the table's name.",
        )


_OF_VALUES = frozenset({"expressions", "having", "order", "qualify", "windows"})
"""The parts of a SELECT in which a call gives a value and not a table."""


def _refuse_macros(sentence: Sentence) -> None:
    """Raises: GateError POLICY_MASKED for a call that reads a table by its name."""
    if sentence.dialect.name != "duckdb":
        return
    for node in sentence.tree.walk():
        if type(node).__name__ != "Anonymous" or node.name.lower() not in TABLE_MACROS:
            continue
        child: Any = node
        while child.parent is not None and type(child.parent).__name__ != "Select":
            child = child.parent
        if child.parent is None or child.arg_key not in _OF_VALUES:
            raise masked(
                f"`{node.name}` could read a table that is masked",
                f"shield.{node.name.lower()}",
                "Call it on a column: SELECT histogram(a) FROM t.",
            )


def _ancestors(place: Place, tables: dict[Place, Table]) -> set[Place]:
    found: set[Place] = set()
    rest = [place]
    while rest:
        table = tables.get(rest.pop())
        for parent in table.reads if table is not None else ():
            if parent not in found:
                found.add(parent)
                rest.append(parent)
    return found


def _bad_view(table: Table, reason: str) -> Exception:
    return masked(
        f"The view `{table.name}` cannot be read while tables of this source are masked: {reason}",
        f"shield.{table.name}",
        "Read the tables behind it.",
    )
