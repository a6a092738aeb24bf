"""The settings of a source: each is declared here, once, in `DeclaredSettings`.

Its name, type and default are those of the field, everything else is in its `Setting`. The settings
file, `tidegate source`, the saved sources, the records of the audit log, what an operator is asked
to agree to, `tidegate doctor`, the console and the reference read it from here. What is left to
write for a new setting is the code that obeys it.
"""

from __future__ import annotations

from functools import cache
from typing import Annotated, Any, Literal, cast, get_args, get_origin, get_type_hints

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
    """Who a caller is to the database, so that its own row-level security holds for the agent's
    person.

    `roles` names the database's role by the name of the caller's token; `role` is that of every
    other, and None leaves no other in. `variables` are set for each statement. `{actor.name}` and
    `{actor.id}` are replaced by the caller's.
    """

    role: str | None = None
    roles: tuple[tuple[str, str], ...] = ()
    variables: tuple[tuple[str, str], ...] = ()


GrantsMore = Literal[
    "a later word", "a higher number", "an added entry", "a lost entry", "a change", "nothing"
]
"""Which change of a setting grants callers more, so that an operator must agree to it. A setting of
words has them in the order of its type, the strictest first; of numbers, none is the highest.
`nothing`: people see it, and no caller may do more or less by it."""


class Setting(msgspec.Struct, frozen=True, kw_only=True):
    """What is said of a setting beside its name, type and default.

    `meaning` is what people read of it in the help and in the reference, without a full stop.
    `grants_more` says which change of it an operator must agree to. In the help its option is in
    `group`, and among those that `source add --help` shows if it is `common`. `option` is the name
    of the option, if that is not the setting's; `value` is the placeholder of what is given with
    it, and `syntax` says how that is written. `limit` is what the console and `tidegate doctor` say
    of a source with the setting: a text for each word that limits callers, or one with `{}` for the
    number.
    """

    meaning: str
    grants_more: GrantsMore
    group: str = "what callers may do"
    common: bool = False
    option: str = ""
    value: str = ""
    syntax: str = ""
    limit: str | dict[str, str] = ""


class DeclaredSettings(msgspec.Struct, frozen=True, kw_only=True):
    """The settings of a source, in the order in which they are listed.

    The text below a field is added to its meaning in the reference.
    """

    access: Annotated[
        Literal["none", "read", "write", "admin"],
        Setting(
            meaning="the most that any caller may do",
            grants_more="a later word",
        ),
    ] = "read"
    """`admin` adds to `write` what administers the database, each statement of which needs full
    access and a person's approval."""
    agents: Annotated[
        Literal["deny", "ask", "allow"],
        Setting(
            meaning="whether agents may use the source; ask: a person must approve each of their "
            "calls",
            grants_more="a later word",
        ),
    ] = "allow"
    approval_for: Annotated[
        Literal["everything", "writes", "nothing"],
        Setting(
            meaning="statements that a person approves",
            grants_more="a later word",
            common=True,
        ),
    ] = "nothing"
    changes: Annotated[
        Literal["deny", "allow"],
        Setting(
            meaning="whether statements that change data may run where access is write",
            grants_more="a later word",
        ),
    ] = "allow"
    """Tools that only need write access, such as closing a connection, work all the same."""
    approval: Annotated[
        Literal["inbox", "any"],
        Setting(
            meaning="where a person may answer: in the client and in `tidegate approvals`, or in "
            "`tidegate approvals` only",
            grants_more="a later word",
            limit={"inbox": "a yes counts in the inbox alone"},
        ),
    ] = "any"
    unattended: Annotated[
        Literal["deny", "allow"],
        Setting(
            meaning="what happens if a person must approve and the client cannot ask them",
            grants_more="a later word",
        ),
    ] = "deny"
    """Where `approval` is `inbox`, the question goes to the inbox all the same."""
    unqualified: Annotated[
        Literal["deny", "confirm", "allow"],
        Setting(
            meaning="what happens to a change of every row of a table, whatever its form",
            grants_more="a later word",
        ),
    ] = "confirm"
    destructive_scope: Annotated[
        Literal["fullAccess", "readWrite"],
        Setting(
            meaning="the scope that DROP, TRUNCATE and others that may lose data need",
            grants_more="a later word",
        ),
    ] = "readWrite"
    undo: Annotated[
        Literal["require", "keep", "off"],
        Setting(
            meaning="whether changed rows are kept, so as to put them back; require: refuse a "
            "change of which they cannot be kept",
            grants_more="a later word",
            limit={"require": "changes only what can be put back"},
            common=True,
        ),
    ] = "off"
    """They are kept, encrypted, where the engine can do that; `tidegate undo` puts them back."""
    max_rows_changed: Annotated[
        Annotated[int, msgspec.Meta(ge=1)] | None,
        Setting(
            meaning="how many rows a change may be of; one of more is refused, also in a "
            "transaction",
            grants_more="a higher number",
            value="N",
            limit="changes at most {} rows",
        ),
    ] = None
    """What is refused is rolled back. Where the rows cannot be counted, a person must approve the
    change. For a transaction the sum counts."""
    max_plan_cost: Annotated[
        Annotated[int, msgspec.Meta(ge=1)] | None,
        Setting(
            meaning="the cost that the database may expect of a statement, in its own unit; one "
            "of more does not run",
            grants_more="a higher number",
            value="N",
            limit="runs plans of a cost of {} at most",
        ),
    ] = None
    """The database plans the statement with its own values before it runs. On PostgreSQL."""
    max_plan_rows: Annotated[
        Annotated[int, msgspec.Meta(ge=1)] | None,
        Setting(
            meaning="the rows that the database may expect in one step of a statement's plan; a "
            "statement of more does not run",
            grants_more="a higher number",
            value="N",
            limit="runs plans of {} rows at most",
        ),
    ] = None
    """On PostgreSQL, DuckDB and MariaDB."""
    costly_plans: Annotated[
        Literal["deny", "ask"],
        Setting(
            meaning="what happens to a statement of which the database expects more than that",
            grants_more="a later word",
        ),
    ] = "deny"
    masks: Annotated[
        tuple[Mask, ...],
        Setting(
            meaning="columns that are hidden, such as customers.email",
            grants_more="a lost entry",
            group="what callers do not see",
            common=True,
            option="mask",
            value="COLUMN[=SHOW]",
            syntax="SHOW is nothing, hash or partial (default: nothing)",
        ),
    ] = ()
    filters: Annotated[
        tuple[RowFilter, ...],
        Setting(
            meaning="tables, each with a condition that its rows must meet",
            grants_more="a lost entry",
            group="what callers do not see",
            common=True,
            option="filter",
            value="TABLE:CONDITION",
            syntax="such as 'orders: tenant_id = 7'",
        ),
    ] = ()
    functions: Annotated[
        tuple[str, ...],
        Setting(
            meaning="functions that users of the database wrote and that reads may call, whatever "
            "they do; not in changes, nor for callers from whom something is hidden",
            grants_more="an added entry",
            option="function",
            value="SCHEMA.NAME",
        ),
    ] = ()
    """They are `schema.name`, in MariaDB `database.name`. All others are refused. Something is
    hidden from a caller by a mask, a filter or a list of tables."""
    tags: Annotated[
        tuple[str, ...],
        Setting(
            meaning="words by which tokens, masks and filters may name the source",
            grants_more="a change",
            option="tag",
            value="TAG",
        ),
    ] = ()
    run_as: Annotated[
        RunAs | None,
        Setting(
            meaning="the role and the variables that a caller gets in the database",
            grants_more="a change",
            group="the role in the database",
        ),
    ] = None
    options: Annotated[
        tuple[tuple[str, str], ...],
        Setting(
            meaning="what the source's engine is given in addition to the URL, such as a user; a "
            "secret is a reference, ${ENV:NAME} or ${FILE:/path}",
            grants_more="a change",
            group="the engine",
            option="option",
            value="NAME=VALUE",
        ),
    ] = ()
    color: Annotated[
        Literal[
            "auto", "red", "orange", "yellow", "green", "teal", "blue", "purple", "pink", "gray"
        ],
        Setting(
            meaning="the color in which pages show the source; auto: one by its name, in small",
            grants_more="nothing",
            group="how people see it",
        ),
    ] = "auto"
    """A color that is named is seen beside every statement that is typed for the source, such as
    red for what is in production."""
    group: Annotated[
        str,
        Setting(
            meaning="the name under which pages list the source with others",
            grants_more="nothing",
            group="how people see it",
            value="GROUP",
        ),
    ] = ""


class SourceSetting(msgspec.Struct, frozen=True):
    """A declared setting with its name and default. `form`: what it is, one of `words`, the
    strictest first; a number or none; a text, which may be empty; a list of entries; or what is
    given in several ways."""

    name: str
    default: Any
    about: Setting
    form: Literal["words", "number", "text", "entries", "other"]
    words: tuple[str, ...] = ()

    @property
    def option(self) -> str:
        """Its option of `tidegate source`."""
        return f"--{self.about.option or self.name.replace('_', '-')}"

    @property
    def dest(self) -> str:
        """Where argparse puts what that option gives."""
        return self.option[2:].replace("-", "_")


@cache
def source_settings() -> tuple[SourceSetting, ...]:
    """What is declared, in its order."""
    hints = get_type_hints(DeclaredSettings, include_extras=True)
    return tuple(
        _declared(field, *get_args(hints[field.name]))
        for field in msgspec.structs.fields(DeclaredSettings)
    )


def limits_of(settings: DeclaredSettings) -> list[tuple[str, str]]:
    """The settings that limit callers as they are here, each with what is said of it."""
    found: list[tuple[str, str]] = []
    for setting in source_settings():
        value, limit = getattr(settings, setting.name), setting.about.limit
        text = limit.get(value, "") if isinstance(limit, dict) else limit.format(value)
        if text and value != setting.default:
            found.append((setting.name, text))
    return found


def _declared(field: msgspec.structs.FieldInfo, of: Any, about: Setting) -> SourceSetting:
    arguments = get_args(of)
    if get_origin(of) is Literal:
        return SourceSetting(field.name, field.default, about, "words", cast("Any", arguments))
    if of is str:
        return SourceSetting(field.name, field.default, about, "text")
    if get_origin(of) is tuple and get_origin(arguments[0]) is None:
        return SourceSetting(field.name, field.default, about, "entries")
    number = any(each is int or get_args(each)[:1] == (int,) for each in arguments)
    return SourceSetting(field.name, field.default, about, "number" if number else "other")
