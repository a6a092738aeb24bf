"""Decides how a table or view is written down as DDL. PostgreSQL keeps no text of a table, so it is
composed of the parts that the server itself prints."""

from __future__ import annotations

from typing import Any

from tidegate.engines.postgres.values import Rows

_KINDS = {"r": "TABLE", "p": "TABLE", "f": "FOREIGN TABLE"}
_VIEWS = {"v": "VIEW", "m": "MATERIALIZED VIEW"}
_PERSISTENCE = {"u": "UNLOGGED ", "t": "TEMPORARY "}


def compose(table: Rows, columns: Rows, constraints: Rows, behind: Rows) -> str:
    """The statements that make a table or view, each ending with a semicolon."""
    kind, name, *_, view = table[0]
    if kind in _VIEWS:
        first = f"CREATE {_VIEWS[kind]} {name} AS\n{view.strip().removesuffix(';')}"
    else:
        first = _table(table[0], columns, constraints)
    statements = [first, *[str(row[0]) for row in behind]]
    if kind not in _VIEWS and table[0][6]:
        statements.append(f"ALTER TABLE {name} ENABLE ROW LEVEL SECURITY")
    return "".join(f"{statement};\n" for statement in statements).rstrip("\n")


def _table(row: tuple[Any, ...], columns: Rows, constraints: Rows) -> str:
    kind, name, persistence, partition_key, bound, options, _, parents, server, _ = row
    parts = [f"  {_column(column)}" for column in columns]
    parts += [f"  {constraint}" for (constraint,) in constraints]
    text = f"CREATE {_PERSISTENCE.get(persistence, '')}{_KINDS[kind]} {name} (\n"
    text += ",\n".join(parts) + "\n)"
    if bound:
        return f"{text};\nALTER TABLE {parents[0]} ATTACH PARTITION {name} {bound}"
    if parents:
        text += f" INHERITS ({', '.join(parents)})"
    if partition_key:
        text += f" PARTITION BY {partition_key}"
    if server:
        text += f" SERVER {server}"
    if options:
        text += f" WITH ({options})"
    return text


def _column(column: tuple[Any, ...]) -> str:
    name, type_, collation, default, not_null, identity, generated = column
    text = f"{name} {type_}"
    if collation:
        text += f" COLLATE {collation}"
    if generated:
        stored = " STORED" if generated == "s" else " VIRTUAL"
        text += f" GENERATED ALWAYS AS ({default}){stored}"
    elif identity:
        how = "ALWAYS" if identity == "a" else "BY DEFAULT"
        text += f" GENERATED {how} AS IDENTITY"
    elif default is not None:
        text += f" DEFAULT {default}"
    return f"{text} NOT NULL" if not_null else text
