"""Resolves whether a table's name means a common table expression, as its database would."""

from __future__ import annotations

from typing import Any, Literal

from tidegate.sql.dialects.model import Dialect
from tidegate.sql.masking.names import folded
from tidegate.sql.masking.parsed_statement import ParsedStatement, Part

Answer = Literal["yes", "no", "doubtful"]


def means_cte(parsed: ParsedStatement, node: Any, part: Part) -> Answer:
    """Whether `part`, a name without a schema, names a CTE where `node` is."""
    dialect = parsed.dialect
    wanted = folded(part, dialect)
    child, owner = node, node.parent
    came_from_with = False
    answer: Answer = "no"
    while owner is not None:
        if type(owner).__name__ == "With":
            found = _inside(parsed, owner, child, wanted, dialect)
            came_from_with = True
        else:
            clause = owner.args.get("with_") or owner.args.get("with")
            found = "no"
            if clause is not None and not came_from_with:
                names = [_name(parsed, cte, dialect) for cte in clause.expressions]
                found = "yes" if wanted in names else "no"
            came_from_with = False
        if found == "yes":
            return "yes" if answer == "no" else "doubtful"
        if found == "doubtful":
            answer = "doubtful"
        child, owner = owner, owner.parent
    return answer


def _inside(
    parsed: ParsedStatement, clause: Any, child: Any, wanted: str, dialect: Dialect
) -> Answer:
    """Of a name in the body of one of the clause's CTEs."""
    ctes: list[Any] = clause.expressions
    own = next(place for place, cte in enumerate(ctes) if cte is child)
    recursive = bool(clause.args.get("recursive"))
    answer: Answer = "no"
    for place, cte in enumerate(ctes):
        if _name(parsed, cte, dialect) != wanted:
            continue
        if place < own or dialect.ctes_see_all:
            return "yes"
        if recursive:
            # DuckDB takes what is no recursion for an ordinary CTE, which does not see itself.
            answer = "doubtful"
    return answer


def _name(parsed: ParsedStatement, cte: Any, dialect: Dialect) -> str:
    alias = cte.args["alias"].this
    return folded(parsed.part(parsed.number(alias)), dialect)


def cte_names(parsed: ParsedStatement) -> frozenset[str]:
    """The names of all CTEs of the statement, in lower case."""
    return frozenset(
        parsed.part(parsed.number(node.args["alias"].this)).text.lower()
        for node in parsed.tree.walk()
        if type(node).__name__ == "CTE"
    )


def is_recursion(parsed: ParsedStatement, node: Any, part: Part) -> bool:
    """Whether `part` names, in the second part of a UNION, the very CTE that this is."""
    wanted = folded(part, parsed.dialect)
    child, owner = node, node.parent
    while owner is not None:
        if type(owner).__name__ == "CTE" and _name(parsed, owner, parsed.dialect) == wanted:
            return False
        if (
            type(owner).__name__ == "Union"
            and owner.args.get("expression") is child
            and type(owner.parent).__name__ == "CTE"
        ):
            return _name(parsed, owner.parent, parsed.dialect) == wanted
        child, owner = owner, owner.parent
    return False
