"""Finds the tables and columns that data rules mean, and sees that the conditions of their
filters are what they should be. A rule that does not fit the catalog is refused, never left out.
"""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Iterable

from tidegate.errors import TidegateError, masking_refused
from tidegate.model.data_rules import DataRules, Show
from tidegate.model.schema import Table
from tidegate.model.statements import Effect
from tidegate.sql.finding import Refusal
from tidegate.sql.judge import judge
from tidegate.sql.masking.names import Names, qualified
from tidegate.sql.masking.parsed_statement import ParsedStatement, replace_spans
from tidegate.sql.masking.scope import means_cte
from tidegate.sql.scan import scan

Place = tuple[str, str]
"""A table's schema and name."""

_STRICTNESS: tuple[Show, ...] = ("nothing", "hash", "partial")


class Rules:
    """Data rules by table: columns' masks, and conditions that all must hold."""

    def __init__(self, data_rules: DataRules, names: Names) -> None:
        """Raises: TidegateError POLICY_MASKED if a rule does not fit."""
        self._names = names
        self._dialect = names.dialect
        self.masks: dict[Place, dict[str, Show]] = defaultdict(dict)
        self.filters: dict[Place, list[str]] = defaultdict(list)
        self.unfit: dict[Place, str] = {}
        for column, show in data_rules.masks:
            self._add_mask(column, show)
        for place in list(self.masks):
            self._add_computed(place)
        for table, condition in data_rules.filters:
            self._add_filter(table, condition)

    def _tables(self, path: str, rule: str) -> tuple[list[Table], str]:
        schema, _, name = path.rpartition(".")
        tables = self._names.called(name, schema or None)
        if not tables:
            raise masking_refused(
                f"The rule for `{rule}` names a table that is not there",
                f"masking.{rule}",
                "Ask the operator to correct the rule: until then nothing of this source is read.",
            )
        return tables, name

    def _add_mask(self, path: str, show: Show) -> None:
        """A rule without a schema is about every table of that name that has the column."""
        where, _, wanted = path.rpartition(".")
        fits = False
        for table in self._tables(where, path)[0]:
            names = [column.name for column in table.columns]
            found = [name for name in names if name == wanted] or [
                name for name in names if name.lower() == wanted.lower()
            ]
            masks = self.masks[table.schema, table.name] if found else {}
            for name in found:
                fits = True
                before = masks.get(name, show)
                masks[name] = min((before, show), key=lambda one: _STRICTNESS.index(one))
        if not fits:
            raise masking_refused(
                f"The mask `{path}` names a column that `{where}` does not have",
                f"mask.{path}",
                "Ask the operator to correct the rule: until then nothing of this source is read.",
            )

    def _add_computed(self, place: Place) -> None:
        """Hide the columns of a table that are computed from masked ones, as far as is known."""
        masks = self.masks[place]
        (table,) = [table for table in self._names.called(place[1], place[0]) if
                    (table.schema, table.name) == place]  # fmt: skip
        rest = [
            column
            for column in table.columns
            if (column.extra or "").startswith("generated") and column.name not in masks
        ]
        while computed := [column for column in rest if mentions(column.default, masks)]:
            masks |= {column.name: "nothing" for column in computed}
            rest = [column for column in rest if column.name not in masks]

    def _add_filter(self, path: str, condition: str) -> None:
        """A rule without a schema is about every table of that name. Those that it does not fit
        are refused when they are read, if it fits another."""
        unfit: dict[Place, TidegateError] = {}
        tables = self._tables(path, path)[0]
        for table in tables:
            place = (table.schema, table.name)
            try:
                filled = self._condition(table, path, condition)
                self.filters[place].append(filled)
            except TidegateError as refusal:
                unfit[place] = refusal
        for place, refusal in unfit.items():
            if len(unfit) == len(tables):
                raise refusal
            self.unfit[place] = refusal.message

    def _condition(self, table: Table, path: str, condition: str) -> str:
        """The condition with every table in it named in full: no CTE of the caller's takes its
        place. Its columns must exist: otherwise they could resolve to columns of the caller."""
        name = qualified(table, self._dialect)
        lead = f"SELECT 1 FROM {name} WHERE ("
        text = f"{lead}{condition}\n)"
        tables = self._dialect
        try:
            parsed = ParsedStatement(text, scan(text, tables), tables)
            judgement = judge(text, self._dialect.name)
            alone = scan(f"({condition}\n)", tables)
        except Refusal as refusal:
            raise _bad_filter(path, refusal.finding.reason) from None
        tree = parsed.tree
        wrapped = tree.args.get("where")
        plain_parts = {"expressions", "from", "from_", "where", "kind"}
        shape = {arg for arg, value in tree.args.items() if value} <= plain_parts
        if judgement.effect is not Effect.READ or not shape or wrapped is None or len(alone) < 3:
            raise _bad_filter(path, "it is not one condition that only reads")
        if type(wrapped.this).__name__ != "Paren":
            raise _bad_filter(path, "it is not one condition")
        known = {column.name.lower() for column in table.columns}
        edits: list[tuple[int, int, str]] = []
        for reference in parsed.references():
            if (
                len(reference.parts) == 1
                and means_cte(parsed, reference.node, reference.parts[0]) != "no"
            ):
                continue
            found = self._names.find(reference.parts)
            if found is None:
                continue
            known |= {column.name.lower() for column in found.columns}
            start = parsed.tokens[reference.first].at
            edits.append((start, parsed.end(reference.last), qualified(found, self._dialect)))
        for node in tree.walk():
            if type(node).__name__ != "Column" or type(node.this).__name__ != "Identifier":
                continue
            column = parsed.part(parsed.number(node.this)).text
            if not node.args.get("table") and column.lower() not in known:
                raise _bad_filter(path, f"there is no column `{column}`")
        return replace_spans(text, edits)[len(lead) : -1]


def mentions(expression: str | None, names: Iterable[str]) -> bool:
    """Whether an expression names one of the columns; of one that is not known that it does."""
    if expression is None:
        return True
    lowered = expression.lower()
    known = set(re.findall(r"\w+", lowered))
    return any(name.lower() in (known if name.isidentifier() else lowered) for name in names)


def _bad_filter(path: str, reason: str) -> Exception:
    return masking_refused(
        f"The row filter on `{path}` cannot be used: {reason}",
        f"filter.{path}",
        "Ask the operator to correct the rule: until then nothing of this source is read.",
    )
