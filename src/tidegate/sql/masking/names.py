"""Resolves a name to a table of the catalog. A name that resolves to no known table is refused:
an unknown table could disclose hidden values.
"""

from __future__ import annotations

from collections.abc import Sequence

from tidegate.errors import masking_refused
from tidegate.model.schema import Catalog, Table
from tidegate.sql.dialects.model import Dialect
from tidegate.sql.masking.parsed_statement import Part
from tidegate.sql.masking.system_tables import system_table

_UPPER = "ABCDEFGHIJKLMNOPQRSTUVWXYZ"
_LOWER = str.maketrans(_UPPER, _UPPER.lower())


def folded(part: Part, dialect: Dialect) -> str:
    """A name as the database compares it: PostgreSQL leaves quoted ones alone, and no database
    folds more than ASCII for certain."""
    if part.quoted and not dialect.folds_quoted:
        return part.text
    return part.text.translate(_LOWER)


def qualified(table: Table, dialect: Dialect) -> str:
    """A table's name with its schema: so no CTE and no search path changes what it means."""
    return f"{dialect.quote(table.schema)}.{dialect.quote(table.name)}"


class Names:
    """The tables of one catalog by name. `schema` takes the place of its default schema."""

    def __init__(self, catalog: Catalog, dialect: Dialect, schema: str | None = None) -> None:
        self.catalog = catalog
        self.dialect = dialect
        self.database = catalog.database
        self.default = schema or catalog.default_schema
        self.tables: dict[str, list[Table]] = {}
        for table in catalog.tables:
            self.tables.setdefault(table.name.translate(_LOWER), []).append(table)
        self._systems = dialect.system_tables

    def called(self, name: str, schema: str | None = None) -> list[Table]:
        """The tables that an operator may mean by a name: exactly as written, else in any case."""
        found = [
            table
            for table in self.tables.get(name.translate(_LOWER), [])
            if schema is None or table.schema.lower() == schema.lower()
        ]
        return [table for table in found if table.name == name] or found

    def find(self, parts: Sequence[Part], home: str | None = None) -> Table | None:
        """The table that a dotted name means; None for a system table that reveals nothing hidden.
        One that reveals something else has the kind `system table` and no columns.

        `home` is a schema that is searched before the default one, as in a view's definition.
        Raises: TidegateError POLICY_MASKED for any other name.
        """
        *prefix, last = parts
        name = folded(last, self.dialect)
        candidates = self._candidates(last, name)
        if not prefix:
            return self._bare(last, name, candidates, home)
        if len(prefix) == 2 and self._is_database(prefix[0]) and self.dialect.database_prefix:
            prefix = prefix[1:]
        elif len(prefix) != 1:
            raise _unknown(parts)
        schema = folded(prefix[0], self.dialect)
        found = [table for table in candidates if self._same(table.schema, schema)]
        if self.dialect.database_as_schema and len(parts) == 2 and self._is_database(prefix[0]):
            at_home = [table for table in candidates if self._same(table.schema, self.default)]
            if found and at_home != found:
                raise _doubtful(parts)
            found = at_home
        if len(found) == 1:
            return found[0]
        if not found and name in self._systems.get(schema.lower(), ()):
            return system_table((schema.lower(), name), self.dialect)
        raise _unknown(parts)

    def _candidates(self, last: Part, name: str) -> list[Table]:
        found = self.tables.get(name.translate(_LOWER), [])
        exact = [table for table in found if table.name == name]
        if not self.dialect.folds_quoted:
            return exact
        return [table for table in found if table.name == last.text] or exact or found

    def _bare(
        self, last: Part, name: str, candidates: list[Table], home: str | None
    ) -> Table | None:
        prefix = self.dialect.system_prefix
        if prefix and name.startswith(prefix):
            candidates = []  # a table of the caller's of that name is not what is meant
        for schema in (home, self.default):
            at_home = [table for table in candidates if self._same(table.schema, schema or "")]
            if len(at_home) == 1:
                return at_home[0]
        if len(candidates) == 1:
            return candidates[0]
        if candidates:
            raise _doubtful((last,))
        searched = self.dialect.system_schema
        for schema in ("", searched):
            if schema is not None and name in self._systems.get(schema, ()):
                return system_table((schema, name), self.dialect)
        raise _unknown((last,))

    def _is_database(self, part: Part) -> bool:
        return self._same(self.database, folded(part, self.dialect))

    def _same(self, known: str, asked: str) -> bool:
        if not self.dialect.folds_quoted:
            return known == asked
        return known.translate(_LOWER) == asked.translate(_LOWER)


def _unknown(parts: Sequence[Part]) -> Exception:
    name = ".".join(part.text for part in parts)[:120]
    return masking_refused(
        f"`{name}` is no table that is known here, and some tables of this source are masked",
        "masking.unknown_table",
        "Name a table of the catalog; after a change of the schema, retry.",
    )


def _doubtful(parts: Sequence[Part]) -> Exception:
    name = ".".join(part.text for part in parts)[:120]
    return masking_refused(
        f"`{name}` could mean several tables", "masking.ambiguous_table", "Name the schema, too."
    )
