"""A source: where a database is, and what the operator said of it. Frozen; imports nothing."""

from __future__ import annotations

from typing import Literal

import msgspec


class Mask(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """Hides one column. `column` is `table.column` or `schema.table.column`.

    `show` is what is left of a value: `nothing` (NULL), `hash` (equal values stay equal) or
    `partial` (its ends). It binds every actor, or those named in `tokens`, less those in
    `except_tokens`; with a `tag`, on sources of that tag only.
    """

    column: str
    show: Literal["nothing", "hash", "partial"] = "nothing"
    tokens: tuple[str, ...] = ()
    except_tokens: tuple[str, ...] = ()
    tag: str | None = None


class RowFilter(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """Hides the rows of a table for which `where` is not true. Binds whom a `Mask` binds.

    `{actor.name}` and `{actor.id}` in `where` stand for literals.
    """

    table: str
    where: str
    tokens: tuple[str, ...] = ()
    except_tokens: tuple[str, ...] = ()
    tag: str | None = None


class RunAs(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """Who a caller is to the database, so that its own row-level security holds for the person
    behind the agent.

    `roles` names the database's role by the name of the caller's token; `role` is that of every
    other, and None leaves no other in. `variables` are set for each statement. `{actor.name}` and
    `{actor.id}` stand for the caller's.
    """

    role: str | None = None
    roles: tuple[tuple[str, str], ...] = ()
    variables: tuple[tuple[str, str], ...] = ()


class Identity(msgspec.Struct, frozen=True):
    """Who one caller is to one database: its role, if it has one, and (name, value) to set."""

    role: str | None
    variables: tuple[tuple[str, str], ...] = ()


class Source(msgspec.Struct, frozen=True):
    """A saved or ad-hoc connection. `url` never holds a secret, only references to one.

    `approval` says where a person may answer: in the client (elicitation) or the inbox, or in the
    inbox alone. `unattended` says what happens to what a person should see when the client cannot
    ask one; where the inbox alone counts, it is always asked there. `unqualified` is about UPDATE
    and DELETE without WHERE; `destructive_scope` is the scope that DROP, TRUNCATE and ALTER...DROP
    need.
    """

    id: str
    name: str
    url: str
    engine: str
    dialect: str
    external_access: Literal["blocked", "readOnly", "readWrite"] = "readOnly"
    ai_policy: Literal["alwaysAllow", "askEachTime", "never"] = "alwaysAllow"
    safe_mode: Literal["silent", "alert", "alertFull", "safeMode", "safeModeFull", "readOnly"] = (
        "silent"
    )
    tags: tuple[str, ...] = ()
    ephemeral: bool = False
    approval: Literal["any", "inbox"] = "any"
    unattended: Literal["deny", "allow"] = "deny"
    unqualified: Literal["confirm", "allow", "deny"] = "confirm"
    destructive_scope: Literal["readWrite", "fullAccess"] = "readWrite"
    masks: tuple[Mask, ...] = ()
    filters: tuple[RowFilter, ...] = ()
    run_as: RunAs | None = None
