"""Which settings decided a verdict: of the caller, of the source, or none that anyone can set.

A person who wants another verdict changes one of these. Pure: where each is kept is for others to
say.
"""

from __future__ import annotations

from typing import Literal

import msgspec

from tidegate.model.actors import Actor, role_on
from tidegate.model.sources import Source
from tidegate.model.statement_rules import StatementRules
from tidegate.policy.rules import (
    ADMINISTRATION,
    ALLOWLIST_RULE,
    RULES,
    STATEMENT_RULES,
)

Holder = Literal["caller", "source", "mode", "program"]
"""Whose a setting is: the caller's token or account, the source, the mode of the surface for its
kind of sources, or the program, which has it fixed."""


class DecidingSetting(msgspec.Struct, frozen=True):
    """A setting with its value, as people write it."""

    holder: Holder
    name: str
    value: str


_SCOPE: tuple[Holder, str] = ("caller", "scope")
_SOURCES: tuple[Holder, str] = ("caller", "sources")
_FIXED: tuple[Holder, str] = ("program", "")

_OF_RULE: dict[str, tuple[tuple[Holder, str], ...]] = {
    ALLOWLIST_RULE: (_SOURCES,),
    "source.agents": (("source", "agents"),),
    "source.access": (("source", "access"),),
    "actor.scope": (_SCOPE,),
    "source.tools": (("source", "access"),),
    "sql.readable": (_FIXED,),
    "sql.effect": (_FIXED,),
    "tool.reads": (_FIXED,),
    "sql.confirmable": (_FIXED,),
    "source.writes": (("source", "access"),),
    "source.changes": (("source", "changes"),),
    STATEMENT_RULES: (("mode", "mode"),),
    "actor.writes": (_SCOPE,),
    "actor.role": (("caller", "roles"),),
    "actor.destructive": (_SCOPE, ("source", "destructive_scope")),
    "source.administration": (("source", "access"),),
    "actor.administration": (_SCOPE,),
    "source.run_as": (("source", "run_as"),),
    "source.unqualified": (("source", "unqualified"),),
    "sql.irreversible": (_FIXED,),
    "source.approval": (("source", "approval_for"),),
    "source.approval_for": (("source", "approval_for"),),
    ADMINISTRATION: (_FIXED,),
    "all": (_SOURCES, _SCOPE, ("source", "access"), ("source", "agents")),
    "source.masking": (("source", "masks"), ("source", "filters"), ("caller", "tables")),
}


def deciding_settings(
    rule: str, actor: Actor, source: Source, statements: StatementRules | None = None
) -> tuple[DecidingSetting, ...]:
    """The settings by which a verdict of this rule (`Verdict.rule`) came about; none for a rule
    that is not of policy."""
    key = rule
    if key not in _OF_RULE:
        # Refusals by data rules name the mask, the filter or the table that they are about.
        key = "source.masking" if not rule.startswith("source.run_as") else "source.run_as"
    found: list[DecidingSetting] = []
    for holder, name in _OF_RULE[key]:
        if holder == "caller":
            value = _of_actor(actor, name, source)
        elif holder == "source":
            value = _of_source(source, name)
        else:
            value = statements.name if holder == "mode" and statements is not None else ""
        if value is not None:
            found.append(DecidingSetting(holder, name, value))
    return tuple(found)


def known_rules() -> frozenset[str]:
    """The rules whose settings are known. Every rule of policy must be among them."""
    return frozenset(_OF_RULE)


def every_rule() -> frozenset[str]:
    """The names of all rules of policy."""
    return frozenset(rule.name for rule in RULES)


def _of_actor(actor: Actor, name: str, source: Source) -> str | None:
    if name == "scope":
        return actor.scope.value
    if name == "roles":
        role = None if actor.roles is None else role_on(actor.roles, source.name)
        return role or "none"
    if name == "tables":
        return None if actor.tables is None else _listed(actor.tables, "no table")
    if actor.sources is None and actor.tags is None:
        return "every source"
    tags = [f"#{tag}" for tag in actor.tags or ()]
    return _listed([*(actor.sources or ()), *tags], "no source")


def _of_source(source: Source, name: str) -> str | None:
    if name in ("masks", "filters"):
        count = len(getattr(source, name))
        return str(count) if count else None
    if name == "run_as":
        return None if source.run_as is None else "callers are mapped to roles"
    return str(getattr(source, name))


def _listed(names: frozenset[str] | list[str], none: str) -> str:
    return ", ".join(sorted(names)) or none
