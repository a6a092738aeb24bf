"""Foreign keys through which a change would tell what is hidden.

The database checks a key against all rows, also against those that the caller may not see. So an
INSERT that succeeds says that the key exists, and a DELETE that fails says that a row refers to it.
A change that the key carries on to another table can fail there, in a unique index.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

from tidegate.errors import masking_refused
from tidegate.model.schema import ForeignKey, Table
from tidegate.sql.masking.names import Names
from tidegate.sql.masking.parsed_statement import ParsedStatement
from tidegate.sql.masking.rules import Place, Rules
from tidegate.sql.masking.unique_conflicts import compares_masked

_REPLACES = frozenset({"CONFLICT", "DUPLICATE", "REPLACE"})
"""Words in an INSERT that can change or delete rows."""
_EMPTIED = frozenset({"SET NULL", "SET DEFAULT"})
_CARRIED = _EMPTIED | {"CASCADE"}


class KeyChecks:
    """The foreign keys of a catalog that refer to something hidden, or from it."""

    def __init__(self, names: Names, rules: Rules, copies: Mapping[Place, str]) -> None:
        self._rules = rules
        self._copies = copies
        self._tables = {(t.schema, t.name): t for group in names.tables.values() for t in group}
        self._children: dict[Place, list[tuple[Table, ForeignKey]]] = {}
        for table in self._tables.values():
            for key in table.foreign_keys:
                self._children.setdefault(_parent(table, key), []).append((table, key))

    def check(self, table: Table, change: Any, parsed: ParsedStatement) -> None:
        """Raises: TidegateError POLICY_MASKED if `change`, which is the statement or a part of it,
        would have such a key of `table` checked."""
        root = type(change).__name__.upper()
        assigned = _assigned(change) if root == "UPDATE" else None
        replaces = any(token.key in _REPLACES for token in parsed.tokens)
        if root != "DELETE":
            for key in table.foreign_keys:
                written = assigned is None or _touches(assigned, key.columns)
                if written and self._hides(_parent(table, key), key.references):
                    raise _refused(table, key.table)
        if root != "INSERT" or replaces:
            self._check_children(table, assigned, root)

    def _check_children(self, table: Table, assigned: frozenset[str] | None, root: str) -> None:
        """Check all tables whose rows refer to those of `table`, directly or through others,
        which a cascade may delete as well."""
        seen: set[Place] = set()
        waiting = [(table.schema, table.name)]
        while waiting:
            place = waiting.pop()
            for child, key in self._children.get(place, ()):
                direct = place == (table.schema, table.name)
                if assigned is not None and direct and not _touches(assigned, key.references):
                    continue
                where = (child.schema, child.name)
                carried = (key.on_update in _CARRIED and not (direct and root == "DELETE")) or (
                    key.on_delete in _EMPTIED and not (direct and root == "UPDATE")
                )
                if self._hides(where, key.columns) or (carried and self._compares(child, key)):
                    raise _refused(table, child.name)
                if where not in seen:
                    seen.add(where)
                    waiting.append(where)

    def _compares(self, child: Table, key: ForeignKey) -> bool:
        """Whether the child's key, when it is written, is compared with masked values."""
        masks = self._rules.masks.get((child.schema, child.name), {})
        written = {name.lower() for name in key.columns}
        return compares_masked(child, masks, written, adds_rows=False)

    def _hides(self, place: Place, columns: Iterable[str]) -> bool:
        """Whether which values these columns of a table have is hidden."""
        if place in self._copies or self._rules.filters.get(place):
            return True
        masks = {name.lower() for name in self._rules.masks.get(place, ())}
        named = {name.lower() for name in columns}
        return bool(masks & named) or (bool(masks) and not named)


def _parent(table: Table, key: ForeignKey) -> Place:
    return (key.schema or table.schema, key.table)


def _assigned(change: Any) -> frozenset[str] | None:
    """The columns that an UPDATE assigns, in lower case; None if one cannot be located."""
    names: set[str] = set()
    expressions: list[Any] = change.args.get("expressions") or []
    for expression in expressions:
        target: Any = expression.args.get("this") if type(expression).__name__ == "EQ" else None
        columns: list[Any] = target.expressions if type(target).__name__ == "Tuple" else [target]
        for column in columns:
            if type(column).__name__ not in ("Column", "Identifier"):
                return None
            names.add(column.name.lower())
    return frozenset(names) if names else None


def _touches(assigned: frozenset[str], columns: Iterable[str]) -> bool:
    named = {name.lower() for name in columns}
    return not named or bool(assigned & named)


def _refused(table: Table, other: str) -> Exception:
    return masking_refused(
        f"The database would check a change of `{table.name}` against `{other}`, of which some is"
        " hidden from this caller: its answer would tell what is there",
        f"masking.{other}",
        "Change other tables or other columns, or ask the operator.",
    )
