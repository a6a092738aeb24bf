"""The settings of a source, and of rules that hide columns and rows.
`gateway/configured_sources.py` makes a `Source` of them.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from typing import Annotated

import msgspec

from tidegate.config.errors import invalid
from tidegate.model.source_settings import DeclaredSettings, Mask, RowFilter, RunAs
from tidegate.product import found_already
from tidegate.secrets.references import check_references
from tidegate.secrets.url_logins import refuse_literal, refuse_literal_option

BLANKS = ("{actor.name}", "{actor.id}")
"""Placeholders for the caller in `run_as` and in the `where` of a filter."""
_BLANK = re.compile(r"\{actor\b[^{}]*\}")
SOURCE_NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9_.-]{0,63}")


class RunAsSettings(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """Who a caller is to the database.

    `roles` names the database's role by the name of the caller's token, `role` is that of every
    other caller; without `role` the others are refused. `variables` are set for each statement.
    `{actor.name}` and `{actor.id}` are replaced by the caller's.
    """

    role: str | None = None
    roles: dict[str, str] = {}
    variables: dict[str, str] = {}

    def __post_init__(self) -> None:
        if self.role is None and not self.roles and not self.variables:
            raise invalid("`run_as` names no role and no variable.")
        for text in (self.role or "", *self.roles.values(), *self.variables.values()):
            check_blanks(text, "run_as")

    @property
    def run_as(self) -> RunAs:
        return RunAs(self.role, tuple(self.roles.items()), tuple(self.variables.items()))


class _WrittenSettings(DeclaredSettings, frozen=True, kw_only=True):
    """The declared settings, of which two are written as tables; a `Source` is immutable."""

    run_as: RunAsSettings | None = None  # pyright: ignore[reportIncompatibleVariableOverride]
    options: dict[str, str] = msgspec.field(default_factory=dict[str, str])  # pyright: ignore[reportIncompatibleVariableOverride]


class SourceSettings(_WrittenSettings, frozen=True, forbid_unknown_fields=True):
    """One source. Of the words of a setting the first is the strictest."""

    name: str
    """What callers name it by."""
    url: str
    """Its address. It may refer to secrets, as `${ENV:NAME}`, `${FILE:/path}` or to where else they
    are kept, and never holds one."""

    def __post_init__(self) -> None:
        check_source_name(self.name)
        check_function_names(self.functions)
        check_references(self.url)
        refuse_literal(self.url)
        for name, value in self.options.items():
            check_references(value)
            refuse_literal_option(name, value)
        check_rules(self.masks, self.filters, self.url)
        for tag in self.tags:
            if not tag or not _is_word(tag):
                raise invalid(
                    f"`{tag[:80]}` cannot be a tag.", hint="Use 1 to 64 printable characters."
                )
        if not _is_word(self.group):
            raise invalid(
                f"`{self.group[:80]}` cannot be a group.",
                hint="Use up to 64 printable characters.",
            )


def _is_word(text: str) -> bool:
    return len(text) <= 64 and text.isprintable() and text == text.strip()


class TemporarySourceSettings(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """The sources that a session may open for itself while the server runs. By default none, except
    what the sections of products say.

    `hosts` lists database servers as `host` or `host:port`, `directories` the absolute paths of
    directories with database files. A temporary source is read-only and ends with its session, at
    the latest after `lifetime_s` seconds; a session has at most `per_owner` of them.
    """

    hosts: tuple[str, ...] = ()
    directories: tuple[str, ...] = ()
    lifetime_s: Annotated[float, msgspec.Meta(gt=0)] = 3600.0
    per_owner: Annotated[int, msgspec.Meta(ge=1)] = 16

    def __post_init__(self) -> None:
        check_directories("temporary_sources.directories", self.directories)


def check_directories(setting: str, directories: Iterable[str]) -> None:
    """Raises: TidegateError CONFIG_INVALID for one that is not an absolute path."""
    for directory in directories:
        if not directory.startswith("/"):
            raise invalid(
                f"`{setting}` holds `{directory[:80]}`, which is not an absolute path.",
                hint="Write the path from `/` on.",
            )


_TABLE = ("table", "schema.table")


def check_rules(
    masks: tuple[Mask, ...], filters: tuple[RowFilter, ...], url: str | None = None
) -> None:
    """`url` is that of their source; None for rules that are given for every source. Raises:
    TidegateError CONFIG_INVALID for a rule whose table or column cannot be made out."""
    forms = _table_forms(url)
    points = {form.count(".") for form in forms}
    for mask in masks:
        if mask.column.count(".") - 1 not in points or not all(mask.column.split(".")):
            raise invalid(
                f"`{mask.column[:80]}` names no column to mask.",
                hint=f"Write {' or '.join([f'{form}.column' for form in forms])}.",
            )
    for rule in filters:
        if rule.table.count(".") not in points or not all(rule.table.split(".")):
            raise invalid(
                f"`{rule.table[:80]}` names no table to filter.",
                hint=f"Write {' or '.join(forms)}.",
            )
        if not rule.where.strip():
            raise invalid(f"The row filter on `{rule.table}` has no condition.")
        check_blanks(rule.where, "where")


def _table_forms(url: str | None) -> tuple[str, ...]:
    """How rules for a source may name a table: every way, where its engine is not known."""
    others = {
        scheme: entry.table_form
        for product in found_already()
        for scheme, entry in product.engines.items()
        if entry.table_form
    }
    scheme = "$" if url is None else url.partition(":")[0].lower()
    if scheme.startswith("$"):
        return (*_TABLE, *dict.fromkeys(others.values()))
    return (others[scheme],) if scheme in others else _TABLE


_SERVERS_OWN = ("pg_catalog", "information_schema", "mysql", "sys", "performance_schema")


def check_function_names(functions: tuple[str, ...]) -> None:
    """Raises: TidegateError CONFIG_INVALID for what does not name one function of a user."""
    for name in functions:
        schema, _, bare = name.partition(".")
        if not schema or not bare or name.count(".") > 1 or set(name) & set('"`()*,; \t\n'):
            raise invalid(
                f"`functions` has `{name[:80]}`, which names no function.",
                hint="Write schema.name as the database's catalog has it: without quotes, arguments"
                " or a pattern.",
            )
        if schema.lower() in _SERVERS_OWN:
            raise invalid(
                f"`functions` has `{name[:80]}`, which is the server's own.",
                hint="The setting is for functions that users wrote; put what is needed of the"
                " server's own in one.",
            )


def check_blanks(text: str, setting: str) -> None:
    """Raises: TidegateError CONFIG_INVALID for a blank like `{actor.nmae}` that nothing fills."""
    for blank in _BLANK.findall(text):
        if blank not in BLANKS:
            raise invalid(
                f"`{setting}` has the placeholder `{blank[:80]}`, which does not exist.",
                hint=f"There are {' and '.join(BLANKS)}.",
            )


def check_source_name(name: str) -> None:
    """Raises: TidegateError CONFIG_INVALID unless a source can have the name."""
    if not SOURCE_NAME.fullmatch(name):
        raise invalid(
            f"`{name[:80]}` cannot name a source.",
            hint="Use 1 to 64 letters, digits, `_`, `.` or `-`, the first a letter or a digit.",
        )
