"""Replaces tables that have rules: a table by a derived table, a view that reads such a table by
its definition, rewritten in the same way. Tables that hold copies of hidden rows are refused.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from itertools import pairwise
from typing import Any, NamedTuple

from tidegate.errors import TidegateError, masking_refused, table_refused
from tidegate.model.data_rules import DataRules, Show
from tidegate.model.schema import Table
from tidegate.model.statements import Effect, Judgement
from tidegate.sql.finding import Refusal
from tidegate.sql.judge import judge
from tidegate.sql.lex import NAME, WORD
from tidegate.sql.masking.column_aliases import column_aliases
from tidegate.sql.masking.hash_key import readable
from tidegate.sql.masking.key_checks import KeyChecks
from tidegate.sql.masking.mask_expressions import derived_table
from tidegate.sql.masking.names import Names, folded, qualified
from tidegate.sql.masking.parsed_statement import (
    ParsedStatement,
    Part,
    TableReference,
    replace_spans,
)
from tidegate.sql.masking.rules import Place, Rules
from tidegate.sql.masking.scope import is_recursion, means_cte
from tidegate.sql.masking.system_catalogs import (
    CATALOG_FUNCTION_STARTS,
    CATALOG_FUNCTIONS,
    DEFAULT_REVEALING,
    REFUSED_FUNCTION_STARTS,
    REFUSED_FUNCTIONS,
)
from tidegate.sql.masking.system_tables import KIND, system_table, visible_query
from tidegate.sql.masking.table_allowlist import TableAllowlist
from tidegate.sql.masking.touched_columns import Touched, touched_columns
from tidegate.sql.masking.view_definition import view_query
from tidegate.sql.scan import scan

_MAX_DEPTH = 12


class NamedTable(NamedTuple):
    """A table that a statement names. `stand_in` is the query that takes its place, None if it may
    be read as it is. `doubtful`: the name could be that of a common table expression."""

    reference: TableReference
    table: Table
    stand_in: str | None
    doubtful: bool


class DerivedTables:
    """What data rules make of the tables of a catalog. Raises: TidegateError POLICY_MASKED if a
    rule does not fit it."""

    def __init__(self, data_rules: DataRules, names: Names, key: str) -> None:
        """`key` is the term for the key of hashes."""
        self._names = names
        self._dialect = names.dialect
        self._key = key
        self._rules = rules = Rules(data_rules, names)
        self._filtered = set(rules.filters)
        """Tables with filters, and views that read one."""
        self.allowlist = (
            None
            if data_rules.only is None
            else TableAllowlist(data_rules.only, names.catalog, names.dialect)
        )
        self._macros = frozenset(names.catalog.macros)
        self._refuse_shadows()
        self._stand_ins: dict[Place, str | None] = {}
        self._touched: dict[Place, Touched] = {}
        self.tables_with_rules = frozenset(rules.masks.keys() | rules.filters.keys())
        self.masked_tables = [
            (table, masks)
            for (schema, name), masks in rules.masks.items()
            for table in names.called(name, schema)
            if (table.schema, table.name) == (schema, name)
        ]
        """The tables that have masks, with these."""
        self._copies = self._holding_copies()
        self.hidden = frozenset(
            name.lower() for _, name in self.tables_with_rules | self._copies.keys()
        )
        """Names, in lower case, of tables that no rewritten statement may name by itself."""
        self.revealing = frozenset(self._revealing())
        """Tables whose definitions tell defaults of masked columns."""
        self._keys = KeyChecks(names, self._rules, self._copies)

    def _refuse_shadows(self) -> None:
        """Refuse a user's operator, which may be in any text, and what takes the place of the
        catalog that the rules are for. Raises: TidegateError POLICY_MASKED."""
        for name in sorted(self._macros):
            if name.startswith(("duckdb_", "pragma_")) or not name.replace("_", "").isalnum():
                raise _shadowed(name)

    def _check_calls(self, query: str, *, filtered: bool) -> None:
        """Refuse a query of ours in which the database would call a user's function instead of its
        own: that could give what is hidden, the key of hashes included. The words of a filter are
        the operator's, and not every call in them looks like one.

        Raises: TidegateError POLICY_MASKED.
        """
        if not self._macros:
            return
        called = {
            token.text.lower()
            for token, behind in pairwise(scan(readable(query), self._dialect))
            if behind.key == "("
        }
        if filtered:
            called |= self._dialect.functions
        for name in sorted(called & self._macros):
            raise _shadowed(name)

    def revealing_function(self, judgement: Judgement) -> str | None:
        """The first function called that could tell what is hidden."""
        for name in judgement.functions:
            lower = name.lower().rpartition(".")[2]
            if (
                lower in REFUSED_FUNCTIONS
                or lower.startswith(REFUSED_FUNCTION_STARTS)
                or lower in self._macros
                or (lower.startswith(CATALOG_FUNCTION_STARTS) and not self._harmless(lower))
            ):
                return lower
        return None

    def _harmless(self, name: str) -> bool:
        """Whether a function that reads a catalog reveals nothing hidden."""
        if name.removeprefix("pragma_") in DEFAULT_REVEALING:
            return not self.revealing
        return name in CATALOG_FUNCTIONS or ("", name) in self._dialect.partial_tables

    def check_keys(self, table: Table, change: Any, parsed: ParsedStatement) -> None:
        """Raises: TidegateError POLICY_MASKED for a change of `table`, a part of the statement,
        whose foreign keys the database would check against something hidden."""
        if self.tables_with_rules:
            self._keys.check(table, change, parsed)

    def is_filtered(self, table: Table) -> bool:
        """Whether rows of the table, or of one that a view reads, are hidden."""
        return self.stand_in(table) is not None and _place(table) in self._filtered

    def masks_of(self, table: Table) -> Mapping[str, Show]:
        """The masked columns of a table, by name."""
        return self._rules.masks.get((table.schema, table.name), {})

    def touched(self, parsed: ParsedStatement, named: Sequence[NamedTable]) -> Touched:
        """The masked columns, as (table, column), that a statement reads or that the views do
        through which it reads."""
        behind = [pair for each in named for pair in self._touched.get(_place(each.table), ())]
        masked = [(each.reference, each.table, self.masks_of(each.table)) for each in named]
        return tuple(sorted({*touched_columns(parsed, masked), *behind}))

    def stand_in(self, table: Table, depth: int = 0) -> str | None:
        """The query that replaces a table; None for one that may be read as it is.

        Raises: TidegateError POLICY_MASKED for what holds copies of hidden rows, or a view that
        cannot be rewritten.
        """
        place = _place(table)
        if place not in self._stand_ins:
            self._stand_ins[place] = self._make(table, place, depth)
        return self._stand_ins[place]

    def _make(self, table: Table, place: Place, depth: int) -> str | None:
        parent = self._copies.get(place)
        if parent is not None:
            raise masking_refused(
                f"`{table.name}` shares rows with `{parent}`, which is masked",
                f"masking.{table.name}",
                f"Read `{parent}` instead.",
            )
        reason = self._rules.unfit.get(place)
        if reason is not None:
            raise masking_refused(
                reason,
                f"filter.{table.name}",
                "Ask the operator to correct the rule: until then this table is not read.",
            )
        if not self.tables_with_rules:
            return None
        if table.kind == KIND and place in self._dialect.partial_tables:
            query = visible_query(place, self._dialect, self._masked_columns(), self.revealing)
            if query is not None:
                self._check_calls(query, filtered=False)
            return query
        if place not in self.tables_with_rules:
            self._check_behind(table, depth)
        inner = self._expanded(table, depth) if "view" in table.kind else None
        if place not in self.tables_with_rules:
            return inner
        origin = qualified(table, self._dialect)
        if inner is not None:
            origin = f"({inner}) AS {self._dialect.quote(table.name)}"
        if not table.columns:
            raise masking_refused(
                f"The columns of `{table.name}` are not known", f"masking.{table.name}"
            )
        masks = self._rules.masks.get(place, {})
        filters = self._rules.filters.get(place, [])
        query = derived_table(
            table,
            origin,
            masks,
            filters,
            self._dialect,
            self._key,
            self.parts_of(table),
        )
        self._check_calls(query, filtered=bool(filters))
        return query

    def parts_of(self, table: Table) -> list[Table]:
        """The tables that hold rows of this one, which they are a partition of or inherit from."""
        place = _place(table)
        tables = {(t.schema, t.name): t for group in self._names.tables.values() for t in group}
        return [
            each
            for other, each in tables.items()
            if each.reads and place in _ancestors(other, tables)
        ]

    def _masked_columns(self) -> Iterator[tuple[str, str, str]]:
        """Masked columns, as (schema, table, column), with all those of copies and, where there are
        masks, of views: they may have the same columns under other names."""
        for group in self._names.tables.values():
            for table in group:
                place = (table.schema, table.name)
                masked = self._rules.masks.get(place, ())
                whole = place in self._copies or (self._rules.masks and "view" in table.kind)
                for column in table.columns:
                    if whole or column.name in masked:
                        yield (*place, column.name)

    def _revealing(self) -> Iterator[Place]:
        masked = set(self._masked_columns())
        for group in self._names.tables.values():
            for table in group:
                place = (table.schema, table.name)
                if any(
                    column.default is not None
                    and not (column.extra or "").startswith("generated")
                    and (*place, column.name) in masked
                    for column in table.columns
                ):
                    yield place

    def reveals_counts(self, name: str) -> bool:
        """Whether statistics of a table of that name would tell something hidden."""
        return name.lower() in self.hidden

    def reveals_defaults(self, name: str) -> bool:
        """Whether the columns of a table of that name would tell something hidden."""
        return any(table.lower() == name.lower() for _, table in self.revealing)

    def reveals_definition(self, name: str) -> bool:
        """Whether the CREATE statement of a table of that name would, which has the next number of
        its rows, too."""
        numbered = self._rules.filters.keys() | self._copies.keys() | self.revealing
        return any(table.lower() == name.lower() for _, table in numbered)

    def _holding_copies(self) -> dict[Place, str]:
        """Tables through which rows of a table with rules can be read past them, with its name:
        parts of it, and what it is itself a part of."""
        tables = {(t.schema, t.name): t for group in self._names.tables.values() for t in group}
        # A rule of the operator for an index already covers that index.
        indexes = {
            place for place in self.tables_with_rules if tables[place].kind == "virtual table"
        }
        copies: dict[Place, str] = {}
        for place, table in tables.items():
            if place in indexes:
                continue
            above = _ancestors(place, tables)
            for parent in above & self.tables_with_rules:
                copies[place] = parent[1]
            if place in self.tables_with_rules:
                copies |= dict.fromkeys(above, table.name)
        return copies

    # Views.

    def _check_behind(self, table: Table, depth: int) -> None:
        """Raises: TidegateError POLICY_MASKED for an index (SQLite's FTS5) of a view that would be
        rewritten, and for what lists the words of such an index."""
        for schema, name in table.reads:
            for other in self._names.called(name, schema):
                if depth > _MAX_DEPTH or self.stand_in(other, depth + 1) is not None:
                    raise masking_refused(
                        f"`{table.name}` shares rows with `{other.name}`, which is masked",
                        f"masking.{table.name}",
                        f"Read `{other.name}` instead.",
                    )

    def _expanded(self, table: Table, depth: int) -> str | None:
        query = view_query(table.definition or "", self._dialect)
        if query is None or depth > _MAX_DEPTH:
            raise _bad_view(table, "its definition is not known")
        judgement = judge(query, self._dialect.name)
        if judgement.effect is not Effect.READ or self.revealing_function(judgement):
            raise _bad_view(table, judgement.reason)
        dialect = self._dialect
        try:
            parsed = ParsedStatement(query, scan(query, dialect), dialect)
        except Refusal as refusal:
            raise _bad_view(table, refusal.finding.reason) from None
        edits, named, masked_tables = self.edits(parsed, table.schema, depth + 1)
        if not masked_tables:
            return None
        self._touched[_place(table)] = self.touched(parsed, named)
        if any(self.is_filtered(each.table) for each in named):
            self._filtered.add(_place(table))
        if table.kind != "view":
            raise _bad_view(table, "it holds copies of rows of a masked table")
        name = self._dialect.quote(f"{table.name}__")
        columns = ", ".join(self._dialect.quote(column.name) for column in table.columns)
        text = replace_spans(query, edits)
        return f"WITH {name}({columns}) AS ({text}\n) SELECT * FROM {name}"

    def named_tables(
        self, parsed: ParsedStatement, home: str | None = None, depth: int = 0
    ) -> Iterator[NamedTable]:
        """The tables that a statement names, except those that tell nothing hidden. With a
        `home`, as in a view of that schema.

        Raises: TidegateError POLICY_MASKED, POLICY_TABLE.
        """
        for reference in parsed.references():
            alone = len(reference.parts) == 1
            answer = means_cte(parsed, reference.node, reference.parts[0]) if alone else "no"
            if answer == "yes":
                continue
            if answer == "doubtful" and self._is_cte_after_all(parsed, reference, home):
                continue
            table = self._find(reference.parts, home)
            if table is not None:
                text = self.stand_in(table, depth)
                yield NamedTable(reference, table, text, answer == "doubtful")

    def edits(
        self, parsed: ParsedStatement, home: str | None = None, depth: int = 0
    ) -> tuple[list[tuple[int, int, str]], list[NamedTable], list[Table]]:
        """What to change in a statement, the tables that it names, and those that were replaced.
        With a `home`, as in a view of that schema, every table is named in full."""
        edits: list[tuple[int, int, str]] = []
        masked_tables: list[Table] = []
        unaliased: dict[str, Table] = {}
        replaced: list[TableReference] = []
        refuse_macros(parsed)
        named = list(self.named_tables(parsed, home, depth))
        for reference, table, text, doubtful in named:
            if doubtful and text is not None:
                raise masking_refused(
                    f"`{table.name}` could be a CTE or a table",
                    "masking.ambiguous_cte",
                    "Give the CTE a name of its own.",
                )
            start, end = parsed.tokens[reference.first].at, parsed.end(reference.last)
            if text is None:
                same_named = self._names.tables[table.name.lower()] if table.name.isascii() else ()
                if home is not None or len(same_named) > 1:
                    edits.append((start, end, qualified(table, self._dialect)))
                continue
            _check_surroundings(parsed, reference.node, reference.first, reference.last, table)
            masked_tables.append(table)
            replaced.append(reference)
            alias = ""
            if not reference.node.alias:
                alias = f" AS {self._alias(table, reference.parts[-1])}"
                unaliased[folded(reference.parts[-1], self._dialect).lower()] = table
            if parsed.key(reference.first - 1) == "TABLE":
                start = parsed.tokens[reference.first - 1].at
                text = f"SELECT * FROM ({text}){alias}"
            else:
                text = f"({text}){alias}"
            edits.append((start, end, text))
        for start, end, table in self._system_calls(parsed):
            edits.append((start, end, f"({self.stand_in(table)})"))
            masked_tables.append(table)
        edits += self._requalified(parsed, unaliased)
        edits += column_aliases(parsed, replaced)
        return edits, named, masked_tables

    def _system_calls(self, parsed: ParsedStatement) -> Iterator[tuple[int, int, Table]]:
        """Calls such as DuckDB's `duckdb_tables()`, which read a system table, with their
        places in the text. Raises: TidegateError POLICY_MASKED where one cannot be replaced."""
        if not self.tables_with_rules:
            return
        for number, token in enumerate(parsed.tokens):
            name = token.text.lower()
            if parsed.key(number + 1) != "(" or token.kind not in (WORD, NAME):
                continue
            table = system_table(("", name), self._dialect)
            if table is None:
                continue
            if parsed.key(number + 2) != ")" or parsed.key(number - 1) == ".":
                raise masking_refused(
                    f"`{name}` could tell what is masked",
                    f"masking.{name}",
                    f"Read it as a table: SELECT * FROM {name}.",
                )
            yield token.at, parsed.tokens[number + 2].at + 1, table

    def _is_cte_after_all(
        self, parsed: ParsedStatement, reference: TableReference, home: str | None
    ) -> bool:
        """Whether a name that could be a CTE or a table is a CTE: no such table exists. If the
        caller must not learn which tables exist, only the grammar of recursion decides."""
        if self.allowlist is None or home is not None:
            return not self._names.called(reference.parts[0].text)
        return is_recursion(parsed, reference.node, reference.parts[0])

    def _find(self, parts: Sequence[Part], home: str | None) -> Table | None:
        """The table that is meant, if the caller may use it. Raises: TidegateError POLICY_MASKED,
        POLICY_TABLE."""
        if self.allowlist is None or home is not None:
            return self._names.find(parts, home)
        try:
            table = self._names.find(parts)
        except TidegateError:
            raise table_refused(parts[-1].text) from None
        if table is None:
            if len(parts) == 1 and folded(parts[0], self._dialect) in self._dialect.dummy_tables:
                return None
            raise table_refused(parts[-1].text)
        if not self.allowlist.admits(table):
            raise table_refused(parts[-1].text)
        return table

    def _alias(self, table: Table, part: Part) -> str:
        """The name that columns are called by: PostgreSQL's as it folds, others' as written."""
        return self._dialect.quote(part.text if self._dialect.folds_quoted else table.name)

    def _requalified(
        self, parsed: ParsedStatement, unaliased: dict[str, Table]
    ) -> list[tuple[int, int, str]]:
        """Takes the schema from columns of tables that are derived now, and so have none."""
        edits: list[tuple[int, int, str]] = []
        if not unaliased:
            return edits
        aliases = {str(each.node.alias).lower() for each in parsed.references() if each.node.alias}
        for node in parsed.tree.walk():
            if type(node).__name__ != "Column" or not node.args.get("db"):
                continue
            given = [node.args[arg] for arg in ("catalog", "db", "table") if node.args.get(arg)]
            parts, first, last = parsed.chain(given)
            table = unaliased.get(folded(parts[-1], self._dialect).lower())
            schema = folded(parts[-2], self._dialect).lower()
            if table is None or schema not in (table.schema.lower(), self._names.database.lower()):
                continue
            if schema in aliases:
                raise masking_refused(
                    f"`{schema}` could be a schema or a table", "masking.ambiguous_name"
                )
            edits.append((parsed.tokens[first].at, parsed.tokens[last].at, ""))
        return edits


_AFTER_NAME = frozenset({"*", "(", "@", "INDEXED", "PARTITION", "USE", "FORCE", "IGNORE", "FOR",
                         "AT", "VERSION", "CHANGES"})  # fmt: skip
_HARMLESS = frozenset({"this", "db", "catalog", "alias", "joins", "laterals"})


def _check_surroundings(
    parsed: ParsedStatement, node: object, first: int, last: int, table: Table
) -> None:
    """Raises: TidegateError POLICY_MASKED for what can follow a table, but no derived one."""
    arguments: dict[str, object] = getattr(node, "args", {})
    extra = {name for name, value in arguments.items() if value}
    extra -= _HARMLESS | parsed.dialect.table_clauses
    after = parsed.key(last + 1)
    negated = after == "NOT" and parsed.key(last + 2) == "INDEXED"
    if extra or after in _AFTER_NAME or negated or parsed.key(first - 1) == "ONLY":
        what = ", ".join(sorted(extra)) or after or "ONLY"
        raise masking_refused(
            f"`{table.name}` is masked, and cannot be read with {what.upper()}",
            "masking.surroundings",
            "Leave out what is around the table's name.",
        )


_OF_VALUES = frozenset({"expressions", "having", "order", "qualify", "windows"})
"""The parts of a SELECT in which a call gives a value and not a table."""


def _shadowed(name: str) -> TidegateError:
    return masking_refused(
        f"Someone has defined `{name[:80]}`, which this database calls instead of its own: what is"
        " hidden would not stay so",
        "macro.shadow",
        f"Ask the operator to rename or drop the macro `{name[:80]}`.",
    )


def refuse_macros(parsed: ParsedStatement) -> None:
    """Raises: TidegateError POLICY_MASKED for a call that reads a table by its name."""
    macros = parsed.dialect.table_macros
    if not macros:
        return
    for node in parsed.tree.walk():
        if type(node).__name__ != "Anonymous" or node.name.lower() not in macros:
            continue
        child: Any = node
        while child.parent is not None and type(child.parent).__name__ != "Select":
            child = child.parent
        if child.parent is None or child.arg_key not in _OF_VALUES:
            raise masking_refused(
                f"`{node.name}` could read a table that is masked",
                f"masking.{node.name.lower()}",
                "Call it on a column: SELECT histogram(a) FROM t.",
            )


def _place(table: Table) -> Place:
    return (table.schema, table.name)


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
    return masking_refused(
        f"The view `{table.name}` cannot be read while tables of this source are masked: {reason}",
        f"masking.{table.name}",
        "Read the tables that it is made of.",
    )
