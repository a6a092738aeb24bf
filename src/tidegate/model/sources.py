"""A source: where a database is, and what the operator said of it. Frozen."""

from __future__ import annotations

from typing import Literal

import msgspec

from tidegate.model.actors import Role


class Mask(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """Hides one column. `column` is `table.column` or `schema.table.column`, of cloud providers
    `provider.service.resource.column`.

    `show` is what is left of a value: `nothing` (NULL), `hash` (equal values stay equal) or
    `partial` (its ends). It binds every caller, or those alone that are named: tokens in `tokens`,
    and of the people with an account in the console those in `operators` and those whose role on
    the source is in `roles`. Not bound are those in `except_tokens`, `except_operators` and
    `except_roles`. With a `tag` it holds on sources of that tag only.
    """

    column: str
    show: Literal["nothing", "hash", "partial"] = "nothing"
    tokens: tuple[str, ...] = ()
    except_tokens: tuple[str, ...] = ()
    operators: tuple[str, ...] = ()
    except_operators: tuple[str, ...] = ()
    roles: tuple[Role, ...] = ()
    except_roles: tuple[Role, ...] = ()
    tag: str | None = None


class RowFilter(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """Hides the rows of a table for which `where` is not true. Binds whom a `Mask` binds.

    `{actor.name}` and `{actor.id}` in `where` are replaced by literals.
    """

    table: str
    where: str
    tokens: tuple[str, ...] = ()
    except_tokens: tuple[str, ...] = ()
    operators: tuple[str, ...] = ()
    except_operators: tuple[str, ...] = ()
    roles: tuple[Role, ...] = ()
    except_roles: tuple[Role, ...] = ()
    tag: str | None = None


class RunAs(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """Who a caller is to the database, so that its own row-level security holds for the person
    behind the agent.

    `roles` names the database's role by the name of the caller's token; `role` is that of every
    other, and None leaves no other in. `variables` are set for each statement. `{actor.name}` and
    `{actor.id}` are replaced by the caller's.
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

    `access` is the most that any caller may do: `admin` adds to `write` what administers the
    database, each statement of which needs full access and a person's approval. `agents`: whether
    agents may use the source, and whether a person must approve each of their calls.
    `approval_for`: which statements a person must approve, for every caller. `changes`: `deny`
    refuses statements that change data where `access` covers them; tools that only need write
    access, such as closing a connection, still work.
    `approval` says where a person may answer: in the client (elicitation) or the inbox, or in the
    inbox alone. `unattended` says what happens to a call that needs approval when the client
    cannot ask a person; where the inbox alone counts, the question always goes there.
    `unqualified` is about changes of every row of a table; `destructive_scope` is the scope that
    DROP, TRUNCATE and ALTER...DROP need. `options` are (name, value) pairs for an engine whose URL
    cannot say everything: a driver, its dependencies, a user, a reference to a password. As in
    `url`, secrets are references only. `temporary`: a caller opened it, with a login of its own, so
    nothing of the gate's own environment and files may log in there. `undo`: whether the rows of
    changes are kept so that they can be put back (`keep`), and whether a change of which they
    cannot be kept is refused (`require`). `max_rows_changed`: a change of more rows is refused.
    `functions` are those of users (`schema.name`) that a read may call, whatever they do.
    """

    id: str
    name: str
    url: str
    engine: str
    dialect: str
    access: Literal["none", "read", "write", "admin"] = "read"
    agents: Literal["allow", "ask", "deny"] = "allow"
    approval_for: Literal["nothing", "writes", "everything"] = "nothing"
    changes: Literal["allow", "deny"] = "allow"
    tags: tuple[str, ...] = ()
    ephemeral: bool = False
    approval: Literal["any", "inbox"] = "any"
    unattended: Literal["deny", "allow"] = "deny"
    unqualified: Literal["confirm", "allow", "deny"] = "confirm"
    destructive_scope: Literal["readWrite", "fullAccess"] = "readWrite"
    masks: tuple[Mask, ...] = ()
    filters: tuple[RowFilter, ...] = ()
    run_as: RunAs | None = None
    options: tuple[tuple[str, str], ...] = ()
    temporary: bool = False
    undo: Literal["off", "keep", "require"] = "off"
    max_rows_changed: int | None = None
    functions: tuple[str, ...] = ()

    @property
    def writable(self) -> bool:
        """Whether `access` covers changes."""
        return self.access in ("write", "admin")
